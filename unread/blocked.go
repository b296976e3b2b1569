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
	low        uint64               // author and actor rank of rows without a pair
	removed    []readstate.Revision // above the floor, ascending
	everyone   []readstate.EveryoneRevision
}

// pair is what a row knows of one blocked writer. A row without one for a writer whom the slot
// knows has the zero pair: the writer came after the row's point.
type pair struct {
	blocked readstate.MemberKey
	counts  readstate.Pair // of which AuthorHead, ActorHead, Removed and Everyone are derived
}

// blockedState is what is known because loaded members block others. Few do, so that it is kept
// in ordinary maps.
type blockedState struct {
	writers  map[int32]map[readstate.MemberKey]*blockedWriter // by scope
	pairs    map[int32][]pair                                 // by row
	by       map[int32][]readstate.MemberKey                  // whom a member blocks, ascending
	blockers map[readstate.MemberKey][]int32                  // loaded members who block the key
}

func newBlockedState() blockedState {
	return blockedState{
		writers:  map[int32]map[readstate.MemberKey]*blockedWriter{},
		pairs:    map[int32][]pair{},
		by:       map[int32][]readstate.MemberKey{},
		blockers: map[readstate.MemberKey][]int32{},
	}
}

// relocate follows a row that moved.
func (b *blockedState) relocate(from, to int32) {
	if pairs, found := b.pairs[from]; found {
		delete(b.pairs, from)
		b.pairs[to] = pairs
	}
}

func (st *state) block(m int32, other readstate.MemberKey) {
	mb, b := st.members.At(m), &st.blocked
	i, found := slices.BinarySearch(b.by[m], other)
	if found || other == mb.key {
		return
	}
	b.by[m] = slices.Insert(b.by[m], i, other)
	b.blockers[other] = append(b.blockers[other], m)
	mb.set(blocks, true)
}

func (st *state) unblock(m int32, other readstate.MemberKey) {
	b := &st.blocked
	i, found := slices.BinarySearch(b.by[m], other)
	if !found {
		return
	}
	if b.by[m] = slices.Delete(b.by[m], i, i+1); len(b.by[m]) == 0 {
		delete(b.by, m)
		st.members.At(m).set(blocks, false)
	}
	rest := slices.DeleteFunc(b.blockers[other], func(x int32) bool { return x == m })
	if len(rest) == 0 {
		delete(b.blockers, other)
	} else {
		b.blockers[other] = rest
	}
}

func (st *state) blocks(m int32, other readstate.MemberKey) bool {
	if !st.members.At(m).is(blocks) {
		return false
	}
	_, found := slices.BinarySearch(st.blocked.by[m], other)
	return found
}

func newBlockedWriter(o *readstate.BlockedWriter) *blockedWriter {
	return &blockedWriter{
		authorHead: o.AuthorHead, actorHead: o.ActorHead, low: o.Low,
		removed: slices.Clone(o.Removed), everyone: slices.Clone(o.Everyone),
	}
}

// zero is the pair of a row that has none: the writer came after the row's point.
func (w *blockedWriter) zero() readstate.Pair {
	return readstate.Pair{AuthorAt: w.low, ActorAt: w.low}
}

// next is a head of the writer after an event: the rank in it, where ranks are facts. Whoever noted
// the writer without facts numbers from low on, and knows no rank of what was before.
func (w *blockedWriter) next(head, rank uint64) uint64 {
	if w.low == 0 {
		return rank
	}
	return head + 1
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
	m, s := st.rows.member(e), st.rows.scope(e)
	mb, sc := st.members.At(m), st.scopes.At(s)
	if !mb.is(blocks) || !sc.blocked {
		return nil
	}
	writers, by := st.blocked.writers[s], st.blocked.by[m]
	var terms []readstate.Pair
	take := func(x readstate.MemberKey, w *blockedWriter) {
		t := w.zero()
		if p := st.findPair(e, x); p != nil {
			t = p.counts
		}
		t.AuthorHead, t.ActorHead = w.authorHead, w.actorHead
		t.AuthorAt = max(t.AuthorAt, w.atFloor)
		t.Removed = w.removedAbove(base)
		t.Everyone = w.everyoneAbove(base, mb.key, sc.kind)
		terms = append(terms, t)
	}
	if len(writers) < len(by) {
		for x, w := range writers {
			if st.blocks(m, x) {
				take(x, w)
			}
		}
		return terms
	}
	for _, x := range by {
		if w := writers[x]; w != nil {
			take(x, w)
		}
	}
	return terms
}

func (st *state) findPair(e int32, x readstate.MemberKey) *pair {
	pairs := st.blocked.pairs[e]
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
	if !st.blocks(st.rows.member(e), x) {
		return nil
	}
	if p := st.findPair(e, x); p != nil {
		return p
	}
	w := st.blocked.writers[st.rows.scope(e)][x]
	if w == nil {
		return nil // nothing that x wrote is above the row's point
	}
	st.blocked.pairs[e] = append(st.blocked.pairs[e], pair{blocked: x, counts: w.zero()})
	pairs := st.blocked.pairs[e]
	return &pairs[len(pairs)-1]
}

// setPairs replaces the pairs of a row by those of a page or event of the same moment, and adds
// the writers that the slot does not know.
func (st *state) setPairs(e int32, rows []readstate.PairRow) {
	st.dropPairs(e)
	if len(rows) == 0 {
		return
	}
	pairs := make([]pair, len(rows))
	s := st.rows.scope(e)
	for i := range rows {
		r := &rows[i]
		pairs[i] = pair{blocked: r.Blocked, counts: readstate.Pair{
			AuthorAt: r.AuthorAt, Overlap: r.Overlap, Direct: r.Direct, Targets: r.Targets,
			ActorAt: r.ActorAt, ActivityTargets: r.ActivityTargets,
		}}
		st.learnWriter(s, r.Blocked, newBlockedWriter(&r.Other))
	}
	st.blocked.pairs[e] = pairs
}

// learnWriter adds a record of the same moment if the slot has none.
func (st *state) learnWriter(s int32, x readstate.MemberKey, w *blockedWriter) {
	writers := st.blocked.writers[s]
	if writers[x] != nil {
		return
	}
	if writers == nil {
		writers = map[readstate.MemberKey]*blockedWriter{}
		st.blocked.writers[s] = writers
		sc := st.scopes.At(s)
		sc.blocked = true
		sc.settle()
	}
	writers[x] = w
}

func (st *state) dropPairs(e int32) { delete(st.blocked.pairs, e) }

// applyWriter takes a record over that whoever feeds memory has begun or completed.
func (st *state) applyWriter(ev *readstate.WriterEvent) {
	s := st.scopeByKey[ev.Scope]
	if s == none {
		return
	}
	w := newBlockedWriter(&ev.Other)
	if old := st.blocked.writers[s][ev.Other.Member]; old != nil {
		w.atFloor = old.atFloor
		*old = *w
		return
	}
	st.learnWriter(s, ev.Other.Member, w)
}

// writerRecord finds the slot's record of x for an event in which x writes or acts. It makes
// one when x appears in the scope for the first time and the owner of some row here blocks x.
// First says that x never did so before.
func (st *state) writerRecord(
	s int32, x readstate.MemberKey, first bool,
) (*blockedWriter, error) {
	if w := st.blocked.writers[s][x]; w != nil {
		return w, nil
	}
	for _, m := range st.blocked.blockers[x] {
		if st.entryOf(m, s) == none {
			continue
		}
		if !first {
			return nil, fmt.Errorf("%w: scope %d lacks blocked writer %d",
				ErrInvariant, st.scopes.At(s).key, x)
		}
		st.learnWriter(s, x, &blockedWriter{})
		return st.blocked.writers[s][x], nil
	}
	return nil, nil
}
