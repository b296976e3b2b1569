package unread

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/tidemark-im/tidemark/readstate"
)

// Every row is in one place: among its member's candidates, on a waiter list of its scope, on a
// pending batch, or hidden (on no list). Whatever may make a row unread moves it to the
// candidates; whatever makes it read does nothing, since a read of the candidates checks them
// and puts the clean ones back.

// spot says which kind of list a row is on.
type spot uint8

const (
	hidden spot = iota // on none
	candidate
	waitingAll
	waitingNamed
)

// generations is how many waiter lists of one kind a scope can have at once: the one on which
// rows come to rest, and batches not yet worked off.
const generations = 16

// Lists have numbers. Those of scopes lie in a slab; a member's candidates are the negative number of
// the member, whose slot has the head.

func candidatesOf(m int32) int32 { return -m }

// head is where the first row of a list stands.
func (st *state) head(l int32) *int32 {
	if l < 0 {
		return &st.members.At(-l).first
	}
	return &st.lists.At(l).head
}

// listOf finds the list that a row is on; none for a hidden row.
func (st *state) listOf(e int32) int32 {
	h := hot{flags: uint16(atomic.LoadUint32(&st.rows.hot.At(e)[wordFlags]))}
	at := h.spot()
	if at == hidden {
		return none
	}
	if at == candidate {
		return candidatesOf(st.rows.member(e))
	}
	s := st.rows.scope(e)
	l := st.scopes.At(s).waiting(at)
	if st.lists.At(l).gen == h.gen() {
		return l
	}
	return st.batch(s, at, h.gen())
}

func (sc *scope) waiting(at spot) int32 {
	if at == waitingNamed {
		return sc.waitNamed
	}
	return sc.waitAll
}

func (st *state) setBatches(batches []int32) {
	st.batches = batches
	st.batched.Store(int32(len(batches)))
}

// batch finds the batch that a generation of a scope's waiter list became.
func (st *state) batch(s int32, at spot, gen uint8) int32 {
	for _, l := range st.batches {
		if b := st.lists.At(l); b.scope == s && b.spot == at && b.gen == gen {
			return l
		}
	}
	return none
}

func (st *state) push(l, e int32) {
	head, at, gen := st.head(l), candidate, uint8(0)
	if l > 0 {
		x := st.lists.At(l)
		x.n++
		at, gen = x.spot, x.gen
	}
	*st.rows.links.At(e) = link{next: *head}
	if *head != none {
		st.rows.links.At(*head).prev = e
	}
	st.rows.hot.At(e).place(at, gen)
	atomic.StoreInt32(head, e)
}

func (st *state) unlist(e int32) {
	l := st.listOf(e)
	if l == none {
		return
	}
	x := *st.rows.links.At(e)
	if x.prev != none {
		st.rows.links.At(x.prev).next = x.next
	} else {
		atomic.StoreInt32(st.head(l), x.next)
	}
	if x.next != none {
		st.rows.links.At(x.next).prev = x.prev
	}
	*st.rows.links.At(e) = link{}
	st.rows.hot.At(e).place(hidden, 0)
	if l < 0 {
		return
	}
	left := st.lists.At(l)
	if left.n--; left.n == 0 {
		if i := slices.Index(st.batches, l); i >= 0 {
			st.setBatches(slices.Delete(st.batches, i, i+1))
			st.lists.Drop(l)
		}
	}
}

func (st *state) move(e, l int32) {
	if st.listOf(e) == l {
		return
	}
	st.unlist(e)
	if l != none {
		st.push(l, e)
	}
}

// fire makes a row a candidate.
func (st *state) fire(e int32) {
	st.move(e, candidatesOf(st.rows.member(e)))
}

// fireWaiting makes a row a candidate unless it is hidden.
func (st *state) fireWaiting(e int32) {
	if h := st.rows.hotAt(e); h.spot() != hidden {
		st.fire(e)
	}
}

// fireList makes all rows of a waiter list candidates, at once or, when they are many, as a
// batch, unless batches of all generations are pending. It returns the list that the scope has
// from now on.
func (st *state) fireList(l int32) int32 {
	old := *st.lists.At(l)
	next := list{scope: old.scope, spot: old.spot, gen: (old.gen + 1) % generations}
	if int(old.n) > st.fireLimit && st.batch(next.scope, next.spot, next.gen) == none {
		st.setBatches(append(st.batches, l))
		return st.newList(next)
	}
	for e := old.head; e != none; e = st.lists.At(l).head {
		st.fire(e)
	}
	return l
}

func (st *state) fireAll(s int32) {
	l := st.fireList(st.scopes.At(s).waitAll)
	st.scopes.At(s).waitAll = l
}

func (st *state) fireNamed(s int32) {
	l := st.fireList(st.scopes.At(s).waitNamed)
	st.scopes.At(s).waitNamed = l
}

// fireThreads makes the member's rows in the threads of a channel candidates and tells watches
// of them. Only says which rows matter.
func (st *state) fireThreads(m, channel int32, only func(*full) bool) {
	if st.scopes.At(channel).children == 0 {
		return
	}
	x := st.members.At(m).run()
	for e := x.at; e < x.at+x.n; e++ {
		if st.scopes.At(st.rows.scope(e)).parent != channel {
			continue
		}
		if f := st.rows.load(e); only(&f) {
			st.fire(e)
			st.mark(e)
		}
	}
}

// open is a row that its member may see as far as the row alone says.
func open(f *full) bool { return f.row.Joined && f.row.Visible }

// tick moves rows of pending batches and tells watches of big scopes, touching at most limit
// rows. It reports that more is left.
func (st *state) tick(limit int) bool {
	for len(st.batches) > 0 && limit > 0 {
		e := st.lists.At(st.batches[0]).head
		st.fire(e)
		limit--
	}
	for len(st.marks) > 0 && limit > 0 {
		b := &st.marks[0]
		watched := st.audience[b.scope]
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
		s := st.lists.At(l).scope
		if e := st.entryOf(m, s); e != none && st.listOf(e) == l {
			st.fire(e)
			found = true
		}
	}
	return found
}

// awaiting yields the member's rows that pending batches have.
func (st *state) awaiting(m int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, l := range st.batches {
			e := st.entryOf(m, st.lists.At(l).scope)
			if e != none && st.listOf(e) == l && !yield(e) {
				return
			}
		}
	}
}

// considered yields every row of the member that may be unread.
func (st *state) considered(m int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for e := st.members.At(m).first; e != none; e = st.rows.links.At(e).next {
			if !yield(e) {
				return
			}
		}
		for e := range st.awaiting(m) {
			if !yield(e) {
				return
			}
		}
	}
}

// noteUntil keeps the earliest end of a level.
func (st *state) noteUntil(m int32, until int64) {
	mb := st.members.At(m)
	if next := mb.nextUntil.Load(); until > st.now && (next == 0 || until < next) {
		mb.nextUntil.Store(until)
		if c := st.connected[m]; c != nil {
			st.untils = append(st.untils, c.id)
		}
	}
}

// due fires the rows whose level ended by now, and the threads that inherit it.
func (st *state) due(m int32) {
	mb := st.members.At(m)
	from := mb.nextUntil.Load()
	if from == 0 || st.now < from {
		return
	}
	mb.nextUntil.Store(0)
	inherits := func(f *full) bool { return f.row.Level == readstate.LevelInherit }
	x := mb.run()
	for e := x.at; e < x.at+x.n; e++ {
		until := st.rows.load(e).row.Until
		if until == 0 || until < from {
			continue
		}
		if until > st.now {
			st.noteUntil(m, until)
			continue
		}
		st.fire(e)
		st.markVisible(e, nobody)
		st.fireThreads(m, st.rows.scope(e), inherits)
	}
}

// rest puts a row that was found clean where it belongs.
func (st *state) rest(e int32, standing *standing) {
	sc := st.scopes.At(st.rows.scope(e))
	switch {
	case !standing.visible, standing.own.Level == readstate.LevelNone:
		st.move(e, none)
	case standing.own.Level == readstate.LevelMentions && sc.kind != readstate.DM:
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
	mb := st.members.At(m)
	var next int32
	for e := mb.first; e != none; e = next {
		next = st.rows.links.At(e).next
		st.checks.add(m, 1)
		v, err := st.evaluate(e, st.now)
		switch {
		case err != nil:
			return false, err
		case !v.presented.Shown:
			st.rest(e, &v.standing)
		case badge == nil:
			return true, nil // the clean ones before it are gone: it comes first now
		default:
			badge.Add(v.presented)
		}
	}
	return mb.first != none, nil
}
