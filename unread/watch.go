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

	mu     sync.Mutex // innermost: taken with the workspace's lock held, never the reverse
	dirty  map[change]readstate.ScopeID
	order  []change
	gone   bool // lost or closed

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

// Ready receives when Next has something. It is never closed.
func (w *Watch) Ready() <-chan struct{} { return w.ready }

// Lost is closed when the workspace's memory went: take a new watch and a new snapshot.
func (w *Watch) Lost() <-chan struct{} { return w.lost }

// Add watches more members. Those watched already are left alone.
func (w *Watch) Add(members ...readstate.MemberID) error {
	r, ws := w.r, w.ws
	r.lock(ws)
	defer r.unlock(ws)
	if ws.dropped {
		return fmt.Errorf("watch: workspace %s: %w", ws.id, ErrNoWorkspace)
	}
	if w.over() {
		return nil
	}
	if len(w.members)+len(members) > r.cfg.MaxWatchMembers {
		return fmt.Errorf("watch: %w: more than %d members", ErrBudget, r.cfg.MaxWatchMembers)
	}
	for _, id := range members {
		if _, found := w.members[id]; found {
			continue
		}
		w.members[id] = struct{}{}
		ws.watches[id] = append(ws.watches[id], w)
		m := ws.st.memberByID[id]
		if m == none {
			// A refusal is counted; the reads of the stream ask again.
			_, _ = r.wantMember(ws, id)
			continue
		}
		mb := ws.st.members.at(m)
		mb.watchers = append(mb.watchers, w)
		for _, e := range mb.entries {
			ws.st.watchEntry(e)
		}
		if mb.nextUntil != 0 {
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
	w.order = nil
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
		m := st.memberByID[id]
		if m == none {
			continue
		}
		mb := st.members.at(m)
		mb.watchers = slices.DeleteFunc(mb.watchers, self)
		if len(mb.watchers) > 0 {
			continue
		}
		for _, e := range mb.entries {
			st.unwatchEntry(e)
		}
		w.r.agenda.remove(w.ws, id, levelEnds)
	}
}

// note records a change. Under the workspace's lock.
func (w *Watch) note(m readstate.MemberID, key readstate.ScopeKey, id readstate.ScopeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := change{m, key}
	if _, found := w.dirty[c]; found || w.gone {
		return
	}
	w.dirty[c] = id
	w.order = append(w.order, c)
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
	w.order = nil
	close(w.lost)
	w.r.metrics.lostWatches.Add(1)
}

// take removes up to limit changes in the order in which they came.
func (w *Watch) take(limit int) ([]change, []readstate.ScopeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(limit, len(w.order))
	taken := slices.Clone(w.order[:n])
	w.order = w.order[n:]
	if len(w.order) == 0 {
		w.order = nil
	} else {
		w.wake()
	}
	ids := make([]readstate.ScopeID, n)
	for i, c := range taken {
		ids[i] = w.dirty[c]
		delete(w.dirty, c)
	}
	return taken, ids
}

// Next returns up to limit deltas with the values of this moment, nil when there is none. It
// waits for nothing.
func (w *Watch) Next(limit int) []Delta {
	changes, ids := w.take(limit)
	if len(changes) == 0 {
		return nil
	}
	r, ws := w.r, w.ws
	r.lock(ws)
	defer r.unlock(ws)
	if w.over() {
		return nil
	}
	deltas := make([]Delta, 0, len(changes))
	summaries := map[readstate.MemberID]Summary{}
	for i, c := range changes {
		m := ws.st.memberByID[c.member]
		if m == none {
			continue
		}
		s, found := summaries[c.member]
		if !found {
			var err error
			if s, err = ws.st.summary(m); err != nil {
				r.alarm(ws)
				return nil
			}
			summaries[c.member] = s
		}
		d := Delta{Member: c.member, Scope: ids[i], Summary: s}
		e := ws.st.entryOf(m, ws.st.scopeByKey[c.scope])
		if e == none || !ws.st.visible(e) {
			d.Removed = true
		} else if row, err := ws.st.row(e, ws.st.now); err != nil {
			r.alarm(ws)
			return nil
		} else {
			d.Row = row
		}
		deltas = append(deltas, d)
	}
	r.metrics.deltas.Add(uint64(len(deltas)))
	return deltas
}
