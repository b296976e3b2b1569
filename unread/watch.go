package unread

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-im/tidemark/readstate"
)

// Watch tells one stream what changed for its members. It keeps no values: only which scopes of
// which members changed, each once, so that a slow reader gets the newest value and costs no
// more than its members' scopes. Its members stay loaded until it is closed.
//
// Make the watch first and take a snapshot afterwards, so that nothing falls in between.
type Watch struct {
	r     *Runtime
	ws    *workspace
	ready chan struct{}
	lost  chan struct{}
	// onReady is called in place of ready; nil for none.
	onReady atomic.Pointer[func()]

	mu    sync.Mutex          // innermost: taken with the workspace's lock held, never the reverse
	order []told              // what changed, each change once
	index map[change]struct{} // of order, once it was long
	held  []told              // too early to tell: their member is being loaded
	drops uint64              // how often members were removed
	gone  bool                // lost or closed

	members map[readstate.MemberID]struct{} // guarded by the workspace's lock
}

type change struct {
	member readstate.MemberID
	scope  readstate.ScopeKey
}

// Watch begins to watch members. Those who are not loaded are loaded. ErrBudget means that
// there are too many for one watch.
func (r *Runtime) Watch(id readstate.WorkspaceID, members []readstate.MemberID) (*Watch, error) {
	ws, err := r.workspace(id)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	w := &Watch{
		r: r, ws: ws,
		ready: make(chan struct{}, 1), lost: make(chan struct{}),
		members: map[readstate.MemberID]struct{}{},
	}
	return w, w.Add(members...)
}

// Ready receives when Next may have something. It is never closed.
func (w *Watch) Ready() <-chan struct{} { return w.ready }

// OnReady has fn called, from now on and once at once, where Ready would receive. Commits call it:
// it must not wait, nor call the watch.
func (w *Watch) OnReady(fn func()) {
	w.onReady.Store(&fn)
	fn()
}

// Lost is closed when the workspace's memory went: take a new watch and a new snapshot.
func (w *Watch) Lost() <-chan struct{} { return w.lost }

// Add watches more members. Those watched already are left alone.
func (w *Watch) Add(members ...readstate.MemberID) error {
	r, ws := w.r, w.ws
	r.lock(ws)
	defer r.unlock(ws)
	if ws.dropped {
		return fmt.Errorf("watch: %w %q", ErrNoWorkspace, ws.id)
	}
	if w.over() {
		return nil
	}
	if len(w.members)+len(members) > r.cfg.MaxWatchMembers {
		r.metrics.overWatches.Add(1)
		return fmt.Errorf("watch: %w: more than %d members", ErrBudget, r.cfg.MaxWatchMembers)
	}
	for _, id := range members {
		if _, found := w.members[id]; found {
			continue
		}
		w.members[id] = struct{}{}
		ws.watches[id] = append(ws.watches[id], w)
		m := ws.st.memberNamed(id)
		if m == none {
			// A refusal is counted; the reads of the stream ask again.
			_, _ = r.wantMember(ws, id)
			continue
		}
		ws.st.connect(m, w)
		if ws.st.members.At(m).nextUntil.Load() != 0 {
			ws.st.untils = append(ws.st.untils, id)
		}
	}
	return nil
}

// Remove ends watching members and drops what was not told of them yet.
func (w *Watch) Remove(members ...readstate.MemberID) {
	w.r.lock(w.ws)
	defer w.r.unlock(w.ws)
	w.release(members)
	leaving := make(map[readstate.MemberID]struct{}, len(members))
	for _, id := range members {
		leaving[id] = struct{}{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drops++
	w.order = slices.DeleteFunc(w.order, func(c told) bool {
		if _, found := leaving[c.member]; !found {
			return false
		}
		delete(w.index, c.change)
		return true
	})
	w.held = slices.DeleteFunc(w.held, func(c told) bool {
		_, found := leaving[c.member]
		return found
	})
}

// Close ends the watch. It is safe to call twice.
func (w *Watch) Close() {
	w.r.lock(w.ws)
	defer w.r.unlock(w.ws)
	members := make([]readstate.MemberID, 0, len(w.members))
	for id := range w.members {
		members = append(members, id)
	}
	w.release(members)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
	w.order, w.index, w.held = nil, nil, nil
}

// release unpins members. Under the workspace's lock.
func (w *Watch) release(members []readstate.MemberID) {
	st := w.ws.st
	self := func(x *Watch) bool { return x == w }
	for _, id := range members {
		if _, found := w.members[id]; !found {
			continue
		}
		delete(w.members, id)
		rest := slices.DeleteFunc(w.ws.watches[id], self)
		if len(rest) == 0 {
			delete(w.ws.watches, id)
		} else {
			w.ws.watches[id] = rest
		}
		if m := st.memberNamed(id); m != none && st.disconnect(m, w) {
			w.r.agenda.remove(w.ws, id, levelEnds)
		}
	}
}

// note records a change; id is asked for the scope's name if it is the first, m is where the
// member is. Under the workspace's lock.
func (w *Watch) note(c change, m int32, id func() readstate.ScopeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone && !w.waits(c) {
		w.push(told{c, id(), m})
	}
}

// few changes are looked through; of more an index is kept.
const few = 8

// waits reports that a change is there already. Under the lock.
func (w *Watch) waits(c change) bool {
	if w.index != nil {
		_, found := w.index[c]
		return found
	}
	return slices.ContainsFunc(w.order, func(t told) bool { return t.change == c })
}

// push puts a change behind the others. Under the lock.
func (w *Watch) push(c told) {
	w.order = append(w.order, c)
	switch {
	case w.index != nil:
		w.index[c.change] = struct{}{}
	case len(w.order) > few:
		w.index = make(map[change]struct{}, 2*few)
		for _, c := range w.order {
			w.index[c.change] = struct{}{}
		}
	}
}

// hold puts changes aside until Next is called again.
func (w *Watch) hold(early []told) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone {
		w.held = append(w.held, early...)
	}
}

// reclaim has another look at what was held.
func (w *Watch) reclaim() {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = nil
	for _, c := range held {
		if !w.gone && !w.waits(c.change) {
			w.push(c)
		}
	}
}

// wake makes Ready receive. It never waits.
func (w *Watch) wake() {
	if fn := w.onReady.Load(); fn != nil {
		(*fn)()
		return
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *Watch) over() bool {
	gone, _ := w.standing()
	return gone
}

func (w *Watch) standing() (gone bool, drops uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone, w.drops
}

// lose tells the stream that the memory went.
func (w *Watch) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return
	}
	w.gone = true
	w.order, w.index, w.held = nil, nil, nil
	close(w.lost)
	w.r.metrics.lostWatches.Add(1)
}

// told is a change with the name of its scope, which may be gone by now.
type told struct {
	change
	id readstate.ScopeID
	m  int32 // where the member was: a hint
}

// taken are changes on their way to deltas.
type taken struct {
	changes []told
	drops   uint64 // of the watch when they were taken: members removed before are not in there
}

// take removes up to limit changes in the order in which they came.
func (w *Watch) take(limit int) taken {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(limit, len(w.order))
	t := taken{w.order[:n:n], w.drops}
	for _, c := range t.changes {
		delete(w.index, c.change)
	}
	w.order = w.order[n:]
	if len(w.order) == 0 {
		w.order = nil
	} else {
		w.wake()
	}
	return t
}

// Next returns up to limit deltas with the values of this moment, nil when there is none. It
// waits for nothing.
func (w *Watch) Next(limit int) []Delta { return w.AppendNext(nil, limit) }

// AppendNext appends what Next would return.
func (w *Watch) AppendNext(to []Delta, limit int) []Delta {
	w.reclaim()
	had := len(to)
	for t := w.take(limit); len(t.changes) > 0; t = w.take(limit) {
		if to = w.evaluate(to, t); len(to) > had {
			w.r.metrics.deltas.Add(uint64(len(to) - had))
			break
		}
	}
	return to
}

// evaluate turns changes into deltas, and holds those for which it is too early: the rows of
// their member are being read again, and the watch is woken when that is done. It shares the
// lock with readers as long as nobody's candidates need tidying.
func (w *Watch) evaluate(to []Delta, t taken) []Delta {
	r, ws := w.r, w.ws
	ws.mu.RLock()
	st, now := ws.st, max(ws.st.now, r.now())
	var messy []readstate.MemberID
	deltas, err := w.deltas(to, st, t, now, func(m int32) (Summary, error) {
		s, err := st.peek(m, now)
		if st.members.At(m).is(untidy) {
			messy = append(messy, st.memberID(m))
		}
		return s, err
	})
	ws.mu.RUnlock()
	if err == nil {
		for _, id := range messy {
			r.tidy(ws, id)
		}
		return deltas
	}
	r.lock(ws)
	defer r.unlock(ws)
	deltas, err = w.deltas(to, ws.st, t, ws.st.now, ws.st.summary)
	if err != nil {
		r.alarm(ws)
	}
	return deltas
}

// deltas appends those of changes. An error leaves what was there.
func (w *Watch) deltas(
	to []Delta, st *state, t taken, now int64, sum func(m int32) (Summary, error),
) (all []Delta, err error) {
	gone, drops := w.standing()
	if all = to; gone {
		return to, nil
	}
	var early []told
	var s Summary
	of := none // the member whose summary it is
	for _, c := range t.changes {
		if drops != t.drops {
			if _, found := w.members[c.member]; !found {
				continue
			}
		}
		m := c.m
		if is := st.connected[m]; is == nil || is.id != c.member {
			m = st.memberNamed(c.member)
		}
		e := none
		if m != none {
			e = st.entryOf(m, st.scopeByKey[c.scope])
		}
		if m == none || (e == none && !st.members.At(m).is(complete)) {
			early = append(early, c)
			continue
		}
		if m != of {
			if s, err = sum(m); err != nil {
				return to, err
			}
			of = m
		}
		all = append(all, Delta{Member: c.member, Scope: c.id, Summary: s})
		d := &all[len(all)-1]
		if e == none || !st.standing(e, now).visible {
			d.Removed = true
		} else if d.Row, err = st.row(e, now); err != nil {
			return to, err
		}
	}
	w.hold(early)
	return all, nil
}
