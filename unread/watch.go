package unread

import (
	"fmt"
	"slices"
	"sync"

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

	mu    sync.Mutex // innermost: taken with the workspace's lock held, never the reverse
	dirty map[change]readstate.ScopeID
	order []change
	held  []told // too early to tell: their member is being loaded
	gone  bool   // lost or closed

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
		dirty:   map[change]readstate.ScopeID{},
		members: map[readstate.MemberID]struct{}{},
	}
	return w, w.Add(members...)
}

// Ready receives when Next may have something. It is never closed.
func (w *Watch) Ready() <-chan struct{} { return w.ready }

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
	w.order = slices.DeleteFunc(w.order, func(c change) bool {
		if _, found := leaving[c.member]; !found {
			return false
		}
		delete(w.dirty, c)
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
	clear(w.dirty)
	w.order, w.held = nil, nil
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

// note records a change; id is asked for the scope's name if it is the first. Under the
// workspace's lock.
func (w *Watch) note(m readstate.MemberID, key readstate.ScopeKey, id func() readstate.ScopeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, found := w.dirty[change{m, key}]; !found && !w.gone {
		w.add(told{change{m, key}, id()})
	}
}

func (w *Watch) add(c told) {
	if _, found := w.dirty[c.change]; found || w.gone {
		return
	}
	w.dirty[c.change] = c.id
	w.order = append(w.order, c.change)
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
		w.add(c)
	}
}

// wake makes Ready receive. It never waits.
func (w *Watch) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *Watch) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}

// lose tells the stream that the memory went.
func (w *Watch) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return
	}
	w.gone = true
	clear(w.dirty)
	w.order, w.held = nil, nil
	close(w.lost)
	w.r.metrics.lostWatches.Add(1)
}

// told is a change with the name of its scope, which may be gone by now.
type told struct {
	change
	id readstate.ScopeID
}

// take removes up to limit changes in the order in which they came.
func (w *Watch) take(limit int) []told {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(limit, len(w.order))
	taken := make([]told, n)
	for i, c := range w.order[:n] {
		taken[i] = told{c, w.dirty[c]}
		delete(w.dirty, c)
	}
	w.order = w.order[n:]
	if len(w.order) == 0 {
		w.order = nil
	} else {
		w.wake()
	}
	return taken
}

// Next returns up to limit deltas with the values of this moment, nil when there is none. It
// waits for nothing.
func (w *Watch) Next(limit int) []Delta {
	w.reclaim()
	for taken := w.take(limit); len(taken) > 0; taken = w.take(limit) {
		if deltas := w.evaluate(taken); len(deltas) > 0 {
			w.r.metrics.deltas.Add(uint64(len(deltas)))
			return deltas
		}
	}
	return nil
}

// evaluate turns changes into deltas, and holds those for which it is too early: the rows of
// their member are being read again, and the watch is woken when that is done. It shares the
// lock with readers as long as nobody's candidates need tidying.
func (w *Watch) evaluate(taken []told) []Delta {
	r, ws := w.r, w.ws
	ws.mu.RLock()
	st, now := ws.st, max(ws.st.now, r.now())
	var untidy []readstate.MemberID
	deltas, err := w.deltas(st, taken, now, func(m int32) (Summary, error) {
		s, err := st.peek(m, now)
		if st.members.At(m).untidy() {
			untidy = append(untidy, st.memberID(m))
		}
		return s, err
	})
	ws.mu.RUnlock()
	if err == nil {
		for _, id := range untidy {
			r.tidy(ws, id)
		}
		return deltas
	}
	r.lock(ws)
	defer r.unlock(ws)
	deltas, err = w.deltas(ws.st, taken, ws.st.now, ws.st.summary)
	if err != nil {
		r.alarm(ws)
	}
	return deltas
}

func (w *Watch) deltas(
	st *state, taken []told, now int64, sum func(m int32) (Summary, error),
) (deltas []Delta, err error) {
	if w.over() {
		return nil, nil
	}
	var early []told
	summaries := map[readstate.MemberID]Summary{}
	for _, c := range taken {
		if _, found := w.members[c.member]; !found {
			continue
		}
		m := st.memberNamed(c.member)
		e := none
		if m != none {
			e = st.entryOf(m, st.scopeByKey[c.scope])
		}
		if m == none || (e == none && !st.members.At(m).complete.Load()) {
			early = append(early, c)
			continue
		}
		s, found := summaries[c.member]
		if !found {
			if s, err = sum(m); err != nil {
				return nil, err
			}
			summaries[c.member] = s
		}
		d := Delta{Member: c.member, Scope: c.id, Summary: s}
		if e == none || !st.standing(e, now).visible {
			d.Removed = true
		} else if d.Row, err = st.row(e, now); err != nil {
			return nil, err
		}
		deltas = append(deltas, d)
	}
	w.hold(early)
	return deltas, nil
}
