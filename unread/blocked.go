package unread

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// blockedWriter is what a slot knows of a writer whom the owner of some loaded row blocks: once
// per scope and writer, however many block them.
type blockedWriter struct {
	authorHead uint64
	actorHead  uint64
	atFloor    uint64               // author rank at the floor, where a trim said so
	removed    []readstate.Revision // above the floor, ascending
	everyone   []readstate.EveryoneRevision
}

// pair is what a row knows of one blocked writer. A row without one for a writer whom the slot
// knows has the zero pair: the writer came after the row's point.
type pair struct {
	blocked readstate.MemberKey
	counts  readstate.Pair // of which AuthorHead, ActorHead, Removed and Everyone are derived
}

func newBlockedWriter(o *readstate.BlockedWriter) *blockedWriter {
	return &blockedWriter{
		authorHead: o.AuthorHead, actorHead: o.ActorHead,
		removed: slices.Clone(o.Removed), everyone: slices.Clone(o.Everyone),
	}
}

func (w *blockedWriter) clone() *blockedWriter {
	c := *w
	c.removed, c.everyone = slices.Clone(w.removed), slices.Clone(w.everyone)
	return &c
}

func (w *blockedWriter) remove(r readstate.Revision) {
	if i, found := slices.BinarySearch(w.removed, r); !found {
		w.removed = slices.Insert(w.removed, i, r)
	}
	w.setEveryone(readstate.EveryoneRevision{Revision: r}, false)
}

func compareEveryone(a, b readstate.EveryoneRevision) int {
	return cmp.Compare(a.Revision, b.Revision)
}

func (w *blockedWriter) setEveryone(r readstate.EveryoneRevision, on bool) {
	i, found := slices.BinarySearchFunc(w.everyone, r, compareEveryone)
	switch {
	case on && !found:
		w.everyone = slices.Insert(w.everyone, i, r)
	case !on && found:
		w.everyone = slices.Delete(w.everyone, i, i+1)
	}
}

// trim forgets what lies at or below the floor.
func (w *blockedWriter) trim(floor readstate.Revision) {
	i, found := slices.BinarySearch(w.removed, floor)
	if found {
		i++
	}
	w.removed = slices.Delete(w.removed, 0, i)
	i, found = slices.BinarySearchFunc(w.everyone,
		readstate.EveryoneRevision{Revision: floor}, compareEveryone)
	if found {
		i++
	}
	w.everyone = slices.Delete(w.everyone, 0, i)
}

func (w *blockedWriter) removedAbove(base readstate.Revision) uint64 {
	i, found := slices.BinarySearch(w.removed, base)
	if found {
		i++
	}
	return uint64(len(w.removed) - i)
}

func (w *blockedWriter) everyoneAbove(
	base readstate.Revision, blocker readstate.MemberKey, t readstate.ScopeType,
) uint64 {
	var n uint64
	for i := len(w.everyone) - 1; i >= 0 && w.everyone[i].Revision > base; i-- {
		if w.everyone[i].Principal != blocker || !t.NeutralWriters() {
			n++
		}
	}
	return n
}

// blockedTerms assembles the pairs of a row; nil for the many who block nobody.
func (st *state) blockedTerms(e int32, base readstate.Revision) []readstate.Pair {
	en := st.entries.at(e)
	mb := st.members.at(en.member)
	sc := st.scopes.at(en.scope)
	if len(mb.blocks) == 0 || len(sc.blocked) == 0 {
		return nil
	}
	var terms []readstate.Pair
	take := func(x readstate.MemberKey, w *blockedWriter) {
		var t readstate.Pair
		if p := st.findPair(e, x); p != nil {
			t = p.counts
		}
		t.AuthorHead, t.ActorHead = w.authorHead, w.actorHead
		t.AuthorAt = max(t.AuthorAt, w.atFloor)
		t.Removed = w.removedAbove(base)
		t.Everyone = w.everyoneAbove(base, mb.info.Key, sc.info.Type)
		terms = append(terms, t)
	}
	if len(sc.blocked) < len(mb.blocks) {
		for x, w := range sc.blocked {
			if st.blocks(en.member, x) {
				take(x, w)
			}
		}
		return terms
	}
	for _, x := range mb.blocks {
		if w := sc.blocked[x]; w != nil {
			take(x, w)
		}
	}
	return terms
}

func (st *state) findPair(e int32, x readstate.MemberKey) *pair {
	side := st.entries.at(e).side
	if side == none {
		return nil
	}
	pairs := *st.sides.at(side)
	for i := range pairs {
		if pairs[i].blocked == x {
			return &pairs[i]
		}
	}
	return nil
}

// pairFor returns the row's pair about x for a change, nil where the row's owner does not block
// x. The pointer lasts until the next pair is made.
func (st *state) pairFor(e int32, x readstate.MemberKey) *pair {
	if !st.blocks(st.entries.at(e).member, x) {
		return nil
	}
	if p := st.findPair(e, x); p != nil {
		return p
	}
	en := st.entries.at(e)
	if en.side == none {
		side := st.sides.take(nil)
		en.side = side
	}
	pairs := st.sides.at(en.side)
	*pairs = append(*pairs, pair{blocked: x})
	return &(*pairs)[len(*pairs)-1]
}

// setPairs replaces the pairs of a row by those of a page or event of the same moment, and adds
// the writers that the slot does not know.
func (st *state) setPairs(e int32, rows []readstate.PairRow) {
	st.dropSide(e)
	if len(rows) == 0 {
		return
	}
	pairs := make([]pair, len(rows))
	s := st.entries.at(e).scope
	for i := range rows {
		r := &rows[i]
		pairs[i] = pair{blocked: r.Blocked, counts: readstate.Pair{
			AuthorAt: r.AuthorAt, Overlap: r.Overlap, Direct: r.Direct, Targets: r.Targets,
			ActorAt: r.ActorAt, ActivityTargets: r.ActivityTargets,
		}}
		st.learnWriter(s, r.Blocked, newBlockedWriter(&r.Other))
	}
	st.entries.at(e).side = st.sides.take(pairs)
}

// learnWriter adds a record of the same moment if the slot has none.
func (st *state) learnWriter(s int32, x readstate.MemberKey, w *blockedWriter) {
	sc := st.scopes.at(s)
	if sc.blocked[x] != nil {
		return
	}
	if sc.blocked == nil {
		sc.blocked = map[readstate.MemberKey]*blockedWriter{}
	}
	sc.blocked[x] = w
}

func (st *state) dropSide(e int32) {
	en := st.entries.at(e)
	if en.side != none {
		st.sides.drop(en.side)
		en.side = none
	}
}

// writerRecord finds the slot's record of x for an event in which x writes or acts. It makes
// one when x appears in the scope for the first time and the owner of some row here blocks x.
// First says that x never did so before.
func (st *state) writerRecord(
	s int32, x readstate.MemberKey, first bool,
) (*blockedWriter, error) {
	if w := st.scopes.at(s).blocked[x]; w != nil {
		return w, nil
	}
	for _, m := range st.blockers[x] {
		if st.entryOf(m, s) == none {
			continue
		}
		if !first {
			return nil, fmt.Errorf("%w: scope %d lacks blocked writer %d",
				ErrInvariant, st.scopes.at(s).info.Key, x)
		}
		st.learnWriter(s, x, &blockedWriter{})
		return st.scopes.at(s).blocked[x], nil
	}
	return nil, nil
}
