package unread

import "github.com/tidemark-im/tidemark/readstate"

// exempt names up to two members whose watches are not told of a change.
type exempt [2]readstate.MemberKey

var nobody exempt

// bulkMark is a change of a scope whose watched rows are too many to be told at once. It goes
// down the scope's watched rows: those that move while it runs were told already.
type bulkMark struct {
	scope  int32
	next   int32
	except exempt
}

// markScope tells the watches of everyone who sees the scope, but the exempt.
func (st *state) markScope(s int32, except exempt) {
	watched := st.audience[s]
	if len(watched) == 0 {
		return
	}
	if len(watched) <= st.fireLimit {
		for _, e := range watched {
			st.markVisible(e, except)
		}
		return
	}
	for i := range st.marks {
		if b := &st.marks[i]; b.scope == s {
			b.next = int32(len(watched))
			if b.except != except {
				b.except = nobody
			}
			return
		}
	}
	st.marks = append(st.marks, bulkMark{scope: s, next: int32(len(watched)), except: except})
}

func (st *state) markVisible(e int32, except exempt) {
	m := st.rows.member(e)
	c := st.connected[m]
	if c == nil || !st.visible(e) {
		return
	}
	if k := st.members.At(m).key; k == except[0] || k == except[1] {
		return
	}
	st.markFor(c, e)
}

// mark tells the watches of the row's member that the row changed.
func (st *state) mark(e int32) {
	if c := st.connected[st.rows.member(e)]; c != nil {
		st.markFor(c, e)
	}
}

func (st *state) markFor(c *connected, e int32) {
	m, s := st.rows.member(e), st.rows.scope(e)
	c.sum.change(s)
	key := st.scopes.At(s).key
	for _, w := range c.watchers {
		w.note(change{c.id, key}, m, func() readstate.ScopeID { return st.scopeID(s) })
		if n := len(st.noted); n == 0 || st.noted[n-1] != w {
			st.noted = append(st.noted, w)
		}
	}
}

func (st *state) applyFloor(lsn readstate.LSN, ev *readstate.FloorEvent) error {
	s := st.scopeByKey[ev.Scope]
	if s == none {
		return nil
	}
	sc := st.scopes.At(s)
	sc.setFloor(max(sc.floor, ev.Floor))
	sc.replies, sc.lastLSN = ev.Replies, lsn
	st.setLatest(sc, ev.Latest)
	st.sets.trim(&sc.removed, ev.Removed)
	st.sets.trim(&sc.everyone, ev.Everyone)
	sc.settle()
	if sc.doubt > 0 {
		st.fireAll(s) // what was missed may lie below the floor now
		st.fireNamed(s)
	}
	writers := st.blocked.writers[s]
	for _, w := range writers {
		w.trim(ev.Floor)
	}
	for i := range ev.Writers {
		x := &ev.Writers[i]
		if w := writers[x.Member]; w != nil {
			w.atFloor = max(w.atFloor, x.AuthorAtFloor)
		}
		if e := st.entryByKey(s, x.Member); e != none {
			f := st.rows.load(e)
			f.writer.AuthorAtFloor, f.writer.PrincipalAtFloor = x.AuthorAtFloor, x.PrincipalAtFloor
			st.rows.store(e, &f)
		}
	}
	st.markScope(s, nobody)
	return nil
}

func (st *state) applyScope(lsn readstate.LSN, info *readstate.ScopeInfo) {
	s := st.scopeByKey[info.Key]
	if s == none {
		return
	}
	sc := st.scopes.At(s)
	archived, busy := sc.archived, sc.busy()
	st.describe(s, info)
	sc.lastLSN = lsn
	returns := archived && !sc.archived
	if returns || (busy && !sc.busy()) {
		st.fireAll(s)
		st.fireNamed(s)
	}
	st.markScope(s, nobody)
	if archived == sc.archived {
		return
	}
	for c := sc.child; c != none; c = st.scopes.At(c).after {
		if returns {
			st.fireAll(c)
			st.fireNamed(c)
		}
		st.markScope(c, nobody)
	}
}

// applyRow replaces a row whole. A row that is not there yet can be made if its scope is, and
// for a thread the member's row in the channel; otherwise a page has to bring it.
func (st *state) applyRow(lsn readstate.LSN, mr *readstate.MemberRow) {
	m := st.memberByKey[mr.Member]
	if m == none {
		return
	}
	s := st.scopeByKey[mr.Scope]
	if s == none {
		st.miss(m, mr.Scope)
		return
	}
	var before readstate.Row
	saw := false
	e := st.entryOf(m, s)
	if e != none {
		saw = st.visible(e)
		before = st.rows.load(e).row
		st.rows.store(e, &full{row: mr.Row, writer: mr.Writer, stateLSN: mr.StateLSN})
		st.noteUntil(m, mr.Row.Until)
	} else {
		if sc := st.scopes.At(s); sc.parentKey != 0 && st.entryOf(m, sc.parent) == none {
			st.miss(m, mr.Scope)
			return
		}
		e = st.addEntry(m, s, mr)
	}
	if mr.StateLSN == 0 {
		f := st.rows.load(e)
		f.stateLSN = lsn
		st.rows.store(e, &f)
	}
	sc := st.scopes.At(s)
	st.sets.learn(&sc.removed, mr.Removed)
	st.sets.learn(&sc.everyone, mr.Everyone)
	st.setPairs(e, mr.Pairs)
	st.fire(e)
	if governs(&before) != governs(&mr.Row) {
		st.fireThreads(m, s, open)
	}
	if saw || st.visible(e) {
		st.mark(e)
	}
}

// rule is the part of a row that decides about the member's threads under the scope.
type rule struct {
	joined, visible bool
	epoch           uint64
	notification    readstate.Notification
}

func governs(r *readstate.Row) rule {
	return rule{r.Joined, r.Visible, r.Epoch, r.Notification}
}

func (st *state) miss(m int32, key readstate.ScopeKey) {
	st.members.At(m).set(complete, false)
	st.missing = append(st.missing, missing{member: st.memberID(m), scope: key})
}

// applyBlock keeps whom a member blocks. What the newly blocked one wrote before is known to the
// store alone, so that a block takes the member's rows out and has them read again, with their
// pairs. After an unblock the pairs are no longer looked at, and a next block has them read anew.
func (st *state) applyBlock(ev *readstate.BlockEvent) {
	m := st.memberByKey[ev.Member]
	if m == none {
		return
	}
	mb := st.members.At(m)
	mb.memberLSN = max(mb.memberLSN, ev.MemberLSN)
	x := mb.run()
	if ev.Blocked {
		st.block(m, ev.Other)
		for e := x.at; e < x.at+x.n; e++ {
			st.markVisible(e, nobody) // told once the rows are back
		}
		st.dropRows(m)
		mb.set(complete, false)
		st.stale = append(st.stale, st.memberID(m))
		return
	}
	st.unblock(m, ev.Other)
	for e := x.at; e < x.at+x.n; e++ {
		if st.blocked.writers[st.rows.scope(e)][ev.Other] == nil {
			continue
		}
		st.fireWaiting(e)
		st.markVisible(e, nobody)
	}
}

func (st *state) applyPrincipal(info *readstate.MemberInfo) {
	m := st.memberByKey[info.Key]
	if m != none {
		st.setMember(m, info)
		return
	}
	if old := st.memberNamed(info.ID); old != none && st.members.At(old).is(erased) {
		st.dropMember(old) // its id is somebody else's from now on
		st.retaken = append(st.retaken, info.ID)
	}
	st.arrived = append(st.arrived, info.ID)
}

func (st *state) applyGone(lsn readstate.LSN, ev *readstate.RowGoneEvent) {
	m, s := st.memberByKey[ev.Member], st.scopeByKey[ev.Scope]
	if m == none || s == none {
		return
	}
	e := st.entryOf(m, s)
	if e == none {
		return
	}
	st.members.At(m).gone = lsn
	if st.visible(e) {
		st.mark(e)
	}
	st.fireThreads(m, s, open)
	st.dropEntry(e)
}
