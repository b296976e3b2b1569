package unread

import (
	"fmt"
	"slices"

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
	mb := st.members.at(m)
	id := model.MemberID(mb.info.Key)
	for _, s := range o.world.ScopeIDs() {
		want := o.world.Values(id, s)
		e := st.entryOf(m, st.scopeByKey[scopeKey(s)])
		if e == none {
			if row, _ := o.world.Row(id, s); mb.complete && row.Joined {
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
	en := st.entries.at(e)
	got := model.Values{
		Exists: true, Present: v.standing.visible, Archived: v.standing.archived,
		Counted: v.presented.Counts,
		Unread:  int(v.values.Unread), Attention: int(v.values.Attention),
		Activity: int(v.values.Activity), Level: model.Level(v.standing.own.Level),
		Manual: en.row.Manual.Set, Version: model.Version(en.row.Manual.Version),
		ActivityRead: model.ActivitySeq(en.row.Activity.Read),
		Shown:        v.presented.Shown, ShownUnread: int(v.presented.Unread),
	}
	sc := st.scopes.at(en.scope)
	shift := o.facts.offset[model.ScopeID(sc.info.Key-100)]
	back := func(r readstate.Revision) model.Revision {
		if r == 0 {
			return 0
		}
		return model.Revision(r - shift)
	}
	got.ManualFrom, got.Read = back(en.row.Manual.From), back(en.row.Read)
	got.Head = model.Revision(sc.ranks.Head - shift)
	if got != want {
		return fmt.Errorf("\n got %v\nwant %v\nrow %+v\nwriter %+v", got, want, en.row, en.writer)
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
	for _, e := range st.members.at(m).entries {
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
	for i := 1; i < len(st.scopes.items); i++ {
		sc := st.scopes.at(int32(i))
		if sc.info.Key == 0 {
			continue
		}
		id := model.ScopeID(sc.info.Key - 100)
		if w := want(id); sc.ranks != w {
			return fmt.Errorf("slot %s:\n got %+v\nwant %+v", id, sc.ranks, w)
		}
	}
	return nil
}

// sound checks what must hold of the slabs whatever happened.
func (st *state) sound() error {
	places := map[int32]int{}
	for i := 1; i < len(st.lists.items); i++ {
		n := int32(0)
		prev := none
		for e := st.lists.at(int32(i)).head; e != none; e = st.entries.at(e).next {
			if en := st.entries.at(e); en.list != int32(i) || en.prev != prev {
				return fmt.Errorf("entry %d says list %d prev %d, found on %d after %d",
					e, en.list, en.prev, i, prev)
			}
			places[e]++
			n++
			prev = e
		}
		if n != st.lists.at(int32(i)).n {
			return fmt.Errorf("list %d has %d entries and says %d", i, n, st.lists.at(int32(i)).n)
		}
	}
	entries, watched := map[int32]int32{}, 0
	for i := 1; i < len(st.entries.items); i++ {
		en := st.entries.at(int32(i))
		if en.member == none {
			continue
		}
		entries[en.scope]++
		if en.list != none && places[int32(i)] != 1 {
			return fmt.Errorf("entry %d is in %d places", i, places[int32(i)])
		}
		if (en.watched != 0) != (len(st.members.at(en.member).watchers) > 0) {
			return fmt.Errorf("entry %d watched %d", i, en.watched)
		}
		if en.watched != 0 {
			watched++
		}
		if st.members.at(en.member).entries[en.at] != int32(i) ||
			st.entryOf(en.member, en.scope) != int32(i) {
			return fmt.Errorf("entry %d is not where its member and scope say", i)
		}
	}
	if watched != st.watched || len(entries) > st.scopes.len() {
		return fmt.Errorf("%d watched entries, %d counted", watched, st.watched)
	}
	for i := 1; i < len(st.scopes.items); i++ {
		sc := st.scopes.at(int32(i))
		switch {
		case sc.info.Key == 0:
			continue
		case sc.entries != entries[int32(i)]:
			return fmt.Errorf("slot %d refers to %d entries, has %d", i, sc.entries, entries[int32(i)])
		case sc.entries == 0 && len(sc.children) == 0:
			return fmt.Errorf("slot %d of %s is needed by nobody", i, sc.info.ID)
		}
		for at, c := range sc.children {
			if ch := st.scopes.at(c); ch.parent != int32(i) || ch.childAt != int32(at) {
				return fmt.Errorf("slot %d has child %d, which says %d at %d", i, c, ch.parent, ch.childAt)
			}
		}
	}
	for _, l := range st.batches {
		if st.lists.at(l).n == 0 || slices.Contains(st.lists.free, l) {
			return fmt.Errorf("batch %d is empty", l)
		}
	}
	return nil
}
