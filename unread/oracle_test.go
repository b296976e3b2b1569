package unread

import (
	"fmt"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

const testSpace readstate.WorkspaceID = "w"

// oracle judges the memory of a runtime against a world of the same LSN.
type oracle struct {
	world       *model.World
	facts       *mirror
	comparisons int
}

// member compares everything that memory says of one member, row by row.
func (o *oracle) member(st *state, m int32, now int64) error {
	mb := st.members.At(m)
	id := model.MemberID(mb.key)
	for _, s := range o.world.ScopeIDs() {
		want := o.world.Values(id, s)
		e := st.entryOf(m, st.scopeByKey[scopeKey(s)])
		if e == none {
			if row, _ := o.world.Row(id, s); mb.is(complete) && row.Joined {
				return fmt.Errorf("%s in %s: complete, and the row is missing: %v", id, s, want)
			}
			continue
		}
		if err := o.row(st, e, now, want); err != nil {
			return fmt.Errorf("%s in %s: %w", id, s, err)
		}
	}
	return o.totals(st, m, id, now)
}

func (o *oracle) row(st *state, e int32, now int64, want model.Values) error {
	o.comparisons++
	v, err := st.evaluate(e, now)
	if err != nil {
		return err
	}
	if whole, err := st.evaluateWhole(e, now); err != nil || whole != v {
		return fmt.Errorf("by the short formula %+v, by the whole one %+v, %w", v, whole, err)
	}
	f := st.rows.load(e)
	got := model.Values{
		Exists: true, Present: v.standing.visible, Archived: v.standing.archived,
		Counted: v.presented.Counts,
		Unread:  int(v.values.Unread), Attention: int(v.values.Attention),
		Activity: int(v.values.Activity), Level: model.Level(v.standing.own.Level),
		Manual: f.row.Manual.Set, Version: model.Version(f.row.Manual.Version),
		ActivityRead: model.ActivitySeq(f.row.Activity.Read),
		Shown:        v.presented.Shown, ShownUnread: int(v.presented.Unread),
	}
	sc := st.scopes.At(st.rows.scope(e))
	shift := o.facts.offset[model.ScopeID(sc.key-100)]
	back := func(r readstate.Revision) model.Revision {
		if r == 0 {
			return 0
		}
		return model.Revision(r - shift)
	}
	got.ManualFrom, got.Read = back(f.row.Manual.From), back(f.row.Read)
	got.Head = model.Revision(sc.head - shift)
	if got != want {
		return fmt.Errorf("\n got %v\nwant %v\nrow %+v\nwriter %+v", got, want, f.row, f.writer)
	}
	return nil
}

// totals compares dot and badge, and that every candidate that a fold leaves is unread.
func (o *oracle) totals(st *state, m int32, id model.MemberID, now int64) error {
	o.comparisons++
	var want, sum readstate.Badge
	b := o.world.Badge(id)
	want = readstate.Badge{
		Messages: uint64(b.Messages), Conversations: uint64(b.Conversations),
		Attention: uint64(b.Attention),
	}
	x := st.members.At(m).run()
	for e := x.at; e < x.at+x.n; e++ {
		v, err := st.evaluate(e, now)
		if err != nil {
			return err
		}
		sum.Add(v.presented)
	}
	unread, err := st.anyUnread(m)
	if err != nil {
		return err
	}
	if unread != (sum.Conversations > 0) {
		return fmt.Errorf("%s: dot is %t, rows say %+v", id, unread, sum)
	}
	s, err := st.summary(m)
	if err != nil {
		return err
	}
	if s.Badge != sum {
		return fmt.Errorf("%s: badge %+v, its rows say %+v", id, s.Badge, sum)
	}
	if s.Complete && s.Badge != want {
		return fmt.Errorf("%s: badge %+v, want %+v", id, s.Badge, want)
	}
	if peeked, err := st.peek(m, now); err != nil || peeked != s {
		return fmt.Errorf("%s: a tidy member peeks %+v, %v, not %+v", id, peeked, err, s) //nolint:errorlint // err may be nil
	}
	return nil
}

// ranks compares every loaded slot with the world.
func (o *oracle) ranks(st *state, want func(model.ScopeID) readstate.ScopeRanks) error {
	for i := int32(1); i < st.scopes.Top(); i++ {
		if !st.scopes.InUse(i) {
			continue
		}
		sc := st.scopes.At(i)
		id := model.ScopeID(sc.key - 100)
		if got, w := st.ranks(i), want(id); got != w {
			return fmt.Errorf("slot %s:\n got %+v\nwant %+v", id, got, w)
		}
	}
	return nil
}

// sound checks what must hold of the slabs whatever happened.
func (st *state) sound() error {
	places, err := st.soundLists()
	if err != nil {
		return err
	}
	refer, watched, rows := map[int32]int32{}, 0, 0
	for m := int32(1); m < st.members.Top(); m++ {
		if !st.members.InUse(m) {
			continue
		}
		x := st.members.At(m).run()
		for e := x.at; e < x.at+x.n; e++ {
			rows++
			s := st.rows.scope(e)
			refer[s]++
			if l := st.listOf(e); l != none && places[e] != l || l == none && places[e] != none {
				return fmt.Errorf("row %d says list %d and is on %d", e, l, places[e])
			}
			if st.rows.member(e) != m || st.entryOf(m, s) != e {
				return fmt.Errorf("row %d is not where its member and scope say", e)
			}
			at := st.position(e)
			if (at != nil) != (st.connected[m] != nil) {
				return fmt.Errorf("row %d watched %t", e, at != nil)
			}
			if at != nil {
				watched++
				if st.audience[s][*at-1] != e {
					return fmt.Errorf("row %d is not in its audience", e)
				}
			}
		}
	}
	if watched != st.watched || rows != st.rows.n || len(refer) > st.scopes.Len() {
		return fmt.Errorf("%d watched rows, %d counted; %d rows, %d counted",
			watched, st.watched, rows, st.rows.n)
	}
	return st.soundScopes(refer)
}

// soundLists returns the list that each row was found on.
func (st *state) soundLists() (map[int32]int32, error) {
	places := map[int32]int32{}
	for l := 1 - st.members.Top(); l < st.lists.Top(); l++ {
		if l == none || l > 0 && !st.lists.InUse(l) || l < 0 && !st.members.InUse(-l) {
			continue
		}
		n, prev := int32(0), none
		for e := *st.head(l); e != none; e = st.rows.links.At(e).next {
			if at := st.rows.links.At(e).prev; st.listOf(e) != l || at != prev || places[e] != none {
				return nil, fmt.Errorf("row %d says list %d after %d, found on %d after %d",
					e, st.listOf(e), at, l, prev)
			}
			places[e] = l
			n++
			prev = e
		}
		if l > 0 && n != st.lists.At(l).n {
			return nil, fmt.Errorf("list %d has %d rows and says %d", l, n, st.lists.At(l).n)
		}
	}
	for _, l := range st.batches {
		if !st.lists.InUse(l) || st.lists.At(l).n == 0 {
			return nil, fmt.Errorf("batch %d is empty", l)
		}
	}
	return places, nil
}

func (st *state) soundScopes(refer map[int32]int32) error {
	for i := int32(1); i < st.scopes.Top(); i++ {
		if !st.scopes.InUse(i) {
			continue
		}
		sc := st.scopes.At(i)
		if plainness(sc.plain) != sc.plainness() {
			return fmt.Errorf("slot %d says plain %d", i, sc.plain)
		}
		if sc.entries != refer[i] {
			return fmt.Errorf("slot %d refers to %d rows, has %d", i, sc.entries, refer[i])
		}
		if sc.entries == 0 && sc.children == 0 {
			return fmt.Errorf("slot %d of %s is needed by nobody", i, st.scopeID(i))
		}
		n, before := int32(0), none
		for c := sc.child; c != none; c = st.scopes.At(c).after {
			if ch := st.scopes.At(c); ch.parent != i || ch.before != before {
				return fmt.Errorf("slot %d has child %d, which says %d after %d",
					i, c, ch.parent, ch.before)
			}
			n++
			before = c
		}
		if n != sc.children {
			return fmt.Errorf("slot %d has %d children and says %d", i, n, sc.children)
		}
	}
	return nil
}
