package unread

import (
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// serving is how far a row may be relied on now: an exact row that counts from below what its
// scope missed is behind. A hint that is shown already stays one.
func (st *state) serving(e int32, f *full) readstate.Serving {
	sc := st.scopes.At(st.rows.scope(e))
	if f.row.Serving == readstate.Exact && f.row.Point.Base(sc.floor) < sc.doubt {
		return readstate.Behind
	}
	return f.row.Serving
}

// stateFor names the state of an answer about one row.
func stateFor(s readstate.Serving) State {
	switch s {
	case readstate.Exact:
		return Ready
	case readstate.Hint:
		return SnapshotServing
	case readstate.Behind:
		return Stale
	}
	return Unavailable
}

// stateOfMember is the state of what is said of a member as a whole. Where pages are hints, a
// member is Ready only if every row is, and there is some: rows may be missing from a snapshot.
func (st *state) stateOfMember(m int32) State {
	if !st.hints {
		return Ready
	}
	x := st.members.At(m).run()
	for e := x.at; e < x.at+x.n; e++ {
		if f := st.rows.load(e); st.serving(e, &f) != readstate.Exact {
			return SnapshotServing
		}
	}
	if x.n == 0 {
		return SnapshotServing
	}
	return Ready
}

// withheld is the error for a row whose values may not be shown.
func withheld(s State) error {
	if s.Servable() {
		return nil
	}
	return fmt.Errorf("row is %s: %w", s, ErrNotServable)
}

// applyGap fills a scope up with entries that nobody told of: they count for nobody.
func (st *state) applyGap(lsn readstate.LSN, ev *readstate.GapEvent) error {
	s := st.scopeByKey[ev.Scope]
	if s == none {
		return nil
	}
	sc := st.scopes.At(s)
	for r := sc.head + 1; r <= ev.Head; r++ {
		if err := st.sets.add(&sc.removed, r); err != nil {
			return fmt.Errorf("gap in scope %d: %w", ev.Scope, err)
		}
	}
	sc.setHead(max(sc.head, ev.Head))
	sc.doubt = max(sc.doubt, ev.Doubt)
	sc.lastLSN = lsn
	sc.settle()
	st.markScope(s, nobody)
	return nil
}

// applyFound has a page bring a row that a loaded member lacks.
func (st *state) applyFound(ev *readstate.RowFoundEvent) {
	m := st.memberByKey[ev.Member]
	if m != none && st.entryOf(m, st.scopeByKey[ev.Scope]) == none {
		st.miss(m, ev.Scope)
	}
}
