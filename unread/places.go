package unread

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// Every row is in one place: among its member's candidates, on a waiter list of its scope, on a
// pending batch, or hidden (on no list). Whatever may make a row unread moves it to the
// candidates; whatever makes it read does nothing, since a read of the candidates checks them
// and puts the clean ones back.

func (st *state) push(l, e int32) {
	head := st.lists.at(l)
	en := st.entries.at(e)
	en.list, en.prev, en.next = l, none, head.head
	if head.head != none {
		st.entries.at(head.head).prev = e
	}
	head.head = e
	head.n++
}

func (st *state) unlist(e int32) {
	en := st.entries.at(e)
	if en.list == none {
		return
	}
	l := st.lists.at(en.list)
	if en.prev != none {
		st.entries.at(en.prev).next = en.next
	} else {
		l.head = en.next
	}
	if en.next != none {
		st.entries.at(en.next).prev = en.prev
	}
	if l.n--; l.n == 0 {
		if i := slices.Index(st.batches, en.list); i >= 0 {
			st.batches = slices.Delete(st.batches, i, i+1)
			st.lists.drop(en.list)
		}
	}
	en.list, en.prev, en.next = none, none, none
}

func (st *state) move(e, l int32) {
	if st.entries.at(e).list == l {
		return
	}
	st.unlist(e)
	if l != none {
		st.push(l, e)
	}
}

// fire makes a row a candidate.
func (st *state) fire(e int32) {
	st.move(e, st.members.at(st.entries.at(e).member).candidate)
}

// fireWaiting makes a row a candidate unless it is hidden.
func (st *state) fireWaiting(e int32) {
	if st.entries.at(e).list != none {
		st.fire(e)
	}
}

// fireList makes all rows of a waiter list candidates, at once or, when they are many, as a
// batch. It returns the list that the scope has from now on.
func (st *state) fireList(l int32) int32 {
	if int(st.lists.at(l).n) > st.fireLimit {
		st.batches = append(st.batches, l)
		return st.lists.take(list{})
	}
	for e := st.lists.at(l).head; e != none; e = st.lists.at(l).head {
		st.fire(e)
	}
	return l
}

func (st *state) fireAll(s int32) {
	l := st.fireList(st.scopes.at(s).waitAll)
	st.scopes.at(s).waitAll = l
}

func (st *state) fireNamed(s int32) {
	l := st.fireList(st.scopes.at(s).waitNamed)
	st.scopes.at(s).waitNamed = l
}

// fireThreads makes the member's rows in the threads of a channel candidates and tells watches
// of them, by the shorter of two ways to find them. Only says which rows matter.
func (st *state) fireThreads(m, channel int32, only func(*entry) bool) {
	children, own := st.scopes.at(channel).children, st.members.at(m).entries
	visit := func(e int32) {
		if e == none || !only(st.entries.at(e)) {
			return
		}
		st.fire(e)
		st.mark(e)
	}
	if len(children) <= len(own) {
		for _, s := range children {
			visit(st.entryOf(m, s))
		}
		return
	}
	for _, e := range own {
		if st.scopes.at(st.entries.at(e).scope).parent == channel {
			visit(e)
		}
	}
}

// tick moves rows of pending batches and tells watches of big scopes, touching at most limit
// rows. It reports that more is left.
func (st *state) tick(limit int) bool {
	for len(st.batches) > 0 && limit > 0 {
		e := st.lists.at(st.batches[0]).head
		st.fire(e)
		limit--
	}
	for len(st.marks) > 0 && limit > 0 {
		b := &st.marks[0]
		watched := st.scopes.at(b.scope).watched
		b.next = min(b.next, int32(len(watched)))
		for ; b.next > 0 && limit > 0; limit-- {
			b.next--
			st.markVisible(watched[b.next], b.except)
		}
		if b.next == 0 {
			st.marks = st.marks[1:]
		}
	}
	return st.pending()
}

func (st *state) pending() bool { return len(st.batches) > 0 || len(st.marks) > 0 }

// collect makes the member's own rows of pending batches candidates, so that a read that
// follows is exact. It reports that there were any.
func (st *state) collect(m int32) bool {
	found := false
	for i := len(st.batches) - 1; i >= 0; i-- {
		l := st.batches[i]
		s := st.entries.at(st.lists.at(l).head).scope
		if e := st.entryOf(m, s); e != none && st.entries.at(e).list == l {
			st.fire(e)
			found = true
		}
	}
	return found
}

// awaits reports that some row of the member is on a pending batch.
func (st *state) awaits(m int32) bool {
	for _, l := range st.batches {
		s := st.entries.at(st.lists.at(l).head).scope
		if e := st.entryOf(m, s); e != none && st.entries.at(e).list == l {
			return true
		}
	}
	return false
}

// noteUntil keeps the earliest end of a level.
func (st *state) noteUntil(m int32, until int64) {
	mb := st.members.at(m)
	if until > st.now && (mb.nextUntil == 0 || until < mb.nextUntil) {
		mb.nextUntil = until
		if len(mb.watchers) > 0 {
			st.untils = append(st.untils, mb.info.ID)
		}
	}
}

// due fires the rows whose level ended by now, and the threads that inherit it.
func (st *state) due(m int32) {
	mb := st.members.at(m)
	if mb.nextUntil == 0 || st.now < mb.nextUntil {
		return
	}
	from := mb.nextUntil
	mb.nextUntil = 0
	inherits := func(en *entry) bool { return en.row.Level == readstate.LevelInherit }
	for _, e := range slices.Clone(mb.entries) {
		en := st.entries.at(e)
		until := en.row.Until
		if until == 0 || until < from {
			continue
		}
		if until > st.now {
			st.noteUntil(m, until)
			continue
		}
		st.fire(e)
		st.markVisible(e, nobody)
		st.fireThreads(m, en.scope, inherits)
	}
}

// rest puts a row that was found clean where it belongs.
func (st *state) rest(e int32, standing *standing) {
	sc := st.scopes.at(st.entries.at(e).scope)
	switch {
	case !standing.visible, standing.own.Level == readstate.LevelNone:
		st.move(e, none)
	case standing.own.Level == readstate.LevelMentions && sc.info.Type != readstate.DM:
		st.move(e, sc.waitNamed)
	default:
		st.move(e, sc.waitAll)
	}
}

// anyUnread stops at the member's first unread candidate, which it leaves where the next call
// finds it at once. Clean candidates on its way go back to their lists.
func (st *state) anyUnread(m int32) (bool, error) {
	st.due(m)
	hit, err := st.check(m, nil)
	if hit || err != nil || !st.collect(m) {
		return hit, err
	}
	return st.check(m, nil)
}

// total folds all of the member's candidates and puts the clean ones back.
func (st *state) total(m int32) (readstate.Badge, error) {
	st.due(m)
	st.collect(m)
	var badge readstate.Badge
	_, err := st.check(m, &badge)
	return badge, err
}

// check evaluates candidates: all of them, where badge wants their sum, else up to the first
// unread one.
func (st *state) check(m int32, badge *readstate.Badge) (bool, error) {
	candidates := st.members.at(m).candidate
	var next int32
	for e := st.lists.at(candidates).head; e != none; e = next {
		next = st.entries.at(e).next
		st.checks.Add(1)
		v, err := st.evaluate(e, st.now)
		switch {
		case err != nil:
			return false, err
		case !v.presented.Shown:
			st.rest(e, &v.standing)
		case badge == nil:
			st.unlist(e)
			st.push(candidates, e)
			return true, nil
		default:
			badge.Add(v.presented)
		}
	}
	return st.lists.at(candidates).n > 0, nil
}
