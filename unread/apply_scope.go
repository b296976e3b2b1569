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
	watched := st.scopes.at(s).watched
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
	en := st.entries.at(e)
	mb := st.members.at(en.member)
	if len(mb.watchers) == 0 || !st.visible(e) {
		return
	}
	if k := mb.info.Key; k == except[0] || k == except[1] {
		return
	}
	st.mark(e)
}

// mark tells the watches of the row's member that the row changed.
func (st *state) mark(e int32) {
	en := st.entries.at(e)
	mb := st.members.at(en.member)
	if len(mb.watchers) == 0 {
		return
	}
	info := &st.scopes.at(en.scope).info
	for _, w := range mb.watchers {
		w.note(mb.info.ID, info.Key, info.ID)
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
	sc := st.scopes.at(s)
	sc.ranks.Floor = max(sc.ranks.Floor, ev.Floor)
	sc.ranks.LastLSN = lsn
	sc.ranks.Latest, sc.ranks.Replies = ev.Latest, ev.Replies
	sc.removed.trim(ev.Removed)
	sc.everyone.trim(ev.Everyone)
	for _, w := range sc.blocked {
		w.trim(ev.Floor)
	}
	for i := range ev.Writers {
		f := &ev.Writers[i]
		if w := sc.blocked[f.Member]; w != nil {
			w.atFloor = max(w.atFloor, f.AuthorAtFloor)
		}
		if e := st.entryByKey(s, f.Member); e != none {
			w := &st.entries.at(e).writer
			w.AuthorAtFloor, w.PrincipalAtFloor = f.AuthorAtFloor, f.PrincipalAtFloor
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
	sc := st.scopes.at(s)
	was := sc.info
	sc.info = *info
	sc.ranks.LastLSN = lsn
	busy := func(i *readstate.ScopeInfo) bool { return i.Active && i.Thinking }
	returns := was.Archived && !info.Archived
	if returns || (busy(&was) && !busy(info)) {
		st.fireAll(s)
		st.fireNamed(s)
	}
	st.markScope(s, nobody)
	if was.Archived == info.Archived {
		return
	}
	for _, c := range st.scopes.at(s).children {
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
		en := st.entries.at(e)
		before = en.row
		en.row, en.writer, en.stateLSN = mr.Row, mr.Writer, mr.StateLSN
		st.noteUntil(m, mr.Row.Until)
	} else {
		if p := st.scopes.at(s).parent; st.scopes.at(s).info.Parent != 0 &&
			(p == none || st.entryOf(m, p) == none) {
			st.miss(m, mr.Scope)
			return
		}
		e = st.addEntry(m, s, mr)
	}
	if mr.StateLSN == 0 {
		st.entries.at(e).stateLSN = lsn
	}
	sc := st.scopes.at(s)
	sc.removed.learn(mr.Removed)
	sc.everyone.learn(mr.Everyone)
	st.setPairs(e, mr.Pairs)
	st.fire(e)
	if governs(&before) != governs(&mr.Row) {
		st.fireThreads(m, s, func(en *entry) bool { return en.row.Joined && en.row.Visible })
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
	mb := st.members.at(m)
	mb.complete = false
	st.missing = append(st.missing, missing{member: mb.info.ID, scope: key})
}

// applyBlock keeps whom a member blocks. What the newly blocked one wrote before is known to the
// store alone, so that a block takes the member's rows out and has them read again, with their
// pairs. After an unblock the pairs are no longer looked at, and a next block has them read anew.
func (st *state) applyBlock(ev *readstate.BlockEvent) {
	m := st.memberByKey[ev.Member]
	if m == none {
		return
	}
	mb := st.members.at(m)
	mb.info.MemberLSN = max(mb.info.MemberLSN, ev.MemberLSN)
	if ev.Blocked {
		st.block(m, ev.Other)
		for _, e := range mb.entries {
			st.markVisible(e, nobody) // told once the rows are back
		}
		st.dropRows(m)
		mb.complete = false
		st.stale = append(st.stale, mb.info.ID)
		return
	}
	st.unblock(m, ev.Other)
	for _, e := range mb.entries {
		if st.scopes.at(st.entries.at(e).scope).blocked[ev.Other] == nil {
			continue
		}
		st.fireWaiting(e)
		st.markVisible(e, nobody)
	}
}

func (st *state) applyPrincipal(info *readstate.MemberInfo) {
	m := st.memberByKey[info.Key]
	if m == none {
		if old := st.memberByID[info.ID]; old != none && st.members.at(old).info.Erased {
			st.dropMember(old) // its id is somebody else's from now on
			st.retaken = append(st.retaken, info.ID)
		}
		st.arrived = append(st.arrived, info.ID)
		return
	}
	mb := st.members.at(m)
	id := mb.info.ID
	mb.info = *info
	mb.info.ID = id // under which watches and reads know the member; a pseudonym is nobody's
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
	st.members.at(m).gone = lsn
	if st.visible(e) {
		st.mark(e)
	}
	st.fireThreads(m, s, func(en *entry) bool { return en.row.Joined && en.row.Visible })
	st.dropEntry(e)
}
