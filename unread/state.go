package unread

import (
	"slices"
	"sync/atomic"

	"github.com/tidemark-im/tidemark/readstate"
)

// none is an index that points nowhere. Index 0 of every slab is never given out, so that zero
// values point nowhere too.
const none int32 = 0

// state is one workspace's memory at one LSN: a plain value machine without locks, clock or
// input. Everything is found through 32-bit indexes into slabs; a pointer into a slab is never
// kept beyond the statement sequence that took it, since slabs move when they grow.
//
// A page that is being installed becomes a state of its own first, is brought up to date by the
// same code, and is then merged.
type state struct {
	lsn     readstate.LSN
	now     int64 // of the present operation, milliseconds
	members slab[member]
	scopes  slab[scope]
	entries slab[entry]
	lists   slab[list]
	sides   slab[[]pair] // the pairs of entries whose owner blocks somebody

	memberByKey map[readstate.MemberKey]int32
	memberByID  map[readstate.MemberID]int32
	scopeByKey  map[readstate.ScopeKey]int32
	scopeByID   map[readstate.ScopeID]int32
	entryAt     map[uint64]int32                // member<<32 | scope
	blockers    map[readstate.MemberKey][]int32 // loaded members who block the key

	batches   []int32 // lists of rows that were fired and not moved yet
	marks     []bulkMark
	fireLimit int
	touched   []touch              // scratch of one event
	noted     []*Watch             // watches to wake once the lock is released
	untils    []readstate.MemberID // watched members whose next end of a level changed
	missing   []missing            // rows that only a page can bring
	stale     []readstate.MemberID // members whose rows all have to be read again
	arrived   []readstate.MemberID // members who changed and are not loaded
	retaken   []readstate.MemberID // ids of erased members that others took
	watched   int                  // rows of watched members
	checks    *atomic.Uint64       // candidate checks
}

// member is a loaded member.
type member struct {
	info      readstate.MemberInfo
	entries   []int32
	blocks    []readstate.MemberKey // ascending
	watchers  []*Watch
	nextUntil int64         // the earliest end of a level that was not looked at yet, zero for none
	gone      readstate.LSN // when a row went of which memory knows nothing
	candidate int32         // list of rows that may be unread
	used      uint32        // set by reads, cleared by the eviction hand; atomic
	complete  bool
}

// scope is the slot of a scope that some loaded row, or a thread of such a row, needs.
type scope struct {
	info      readstate.ScopeInfo
	ranks     readstate.ScopeRanks
	removed   revSet
	everyone  revSet
	blocked   map[readstate.MemberKey]*blockedWriter
	children  []int32 // slots of threads
	watched   []int32 // entries of watched members
	parent    int32   // slot of a thread's channel
	childAt   int32   // position among the parent's children
	entries   int32   // number of entries that refer to the slot
	waitAll   int32   // lists of rows that were found clean
	waitNamed int32
}

// entry is one row. It has no pointers.
type entry struct {
	row      readstate.Row
	writer   readstate.Writer
	stateLSN readstate.LSN
	member   int32
	scope    int32
	at       int32 // position among the member's entries
	watched  int32 // 1 + position among the scope's watched entries
	list     int32 // the list the row is on; none for a hidden row
	prev     int32
	next     int32
	side     int32
	touch    int32 // 1 + position in the scratch of the present event
}

// list is the head of a doubly linked list of entries. A waiter list that fires as a whole
// becomes a batch, and its scope gets a new one: rows still on the old list are pending.
type list struct {
	head int32
	n    int32
}

type missing struct {
	member readstate.MemberID
	scope  readstate.ScopeKey
}

func newState(fireLimit int, checks *atomic.Uint64) *state {
	return &state{
		memberByKey: map[readstate.MemberKey]int32{},
		memberByID:  map[readstate.MemberID]int32{},
		scopeByKey:  map[readstate.ScopeKey]int32{},
		scopeByID:   map[readstate.ScopeID]int32{},
		entryAt:     map[uint64]int32{},
		blockers:    map[readstate.MemberKey][]int32{},
		fireLimit:   fireLimit,
		checks:      checks,
	}
}

// slab is a growing array of values with a free list.
type slab[T any] struct {
	items []T
	free  []int32
}

func (s *slab[T]) at(i int32) *T { return &s.items[i] }

func (s *slab[T]) take(v T) int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		s.items[i] = v
		return i
	}
	if len(s.items) == 0 {
		s.items = make([]T, 1, 16)
	}
	s.items = append(s.items, v)
	return int32(len(s.items) - 1)
}

func (s *slab[T]) drop(i int32) {
	var zero T
	s.items[i] = zero
	s.free = append(s.free, i)
}

// len is the number of values in use.
func (s *slab[T]) len() int { return max(0, len(s.items)-1) - len(s.free) }

func pairKey(m, s int32) uint64 { return uint64(uint32(m))<<32 | uint64(uint32(s)) }

// entryOf finds the row of a member in a scope, none where it is not loaded.
func (st *state) entryOf(m, s int32) int32 { return st.entryAt[pairKey(m, s)] }

func (st *state) entryByKey(s int32, key readstate.MemberKey) int32 {
	m, ok := st.memberByKey[key]
	if !ok {
		return none
	}
	return st.entryOf(m, s)
}

// parentOf finds the member's row in the channel of a thread's row.
func (st *state) parentOf(e int32) int32 {
	en := st.entries.at(e)
	p := st.scopes.at(en.scope).parent
	if p == none {
		return none
	}
	return st.entryOf(en.member, p)
}

func (st *state) addMember(info readstate.MemberInfo, blocks []readstate.MemberKey) int32 {
	m := st.members.take(member{info: info, candidate: st.lists.take(list{})})
	st.memberByKey[info.Key] = m
	st.memberByID[info.ID] = m
	for _, b := range blocks {
		st.block(m, b)
	}
	return m
}

func (st *state) block(m int32, other readstate.MemberKey) {
	mb := st.members.at(m)
	i, found := slices.BinarySearch(mb.blocks, other)
	if found || other == mb.info.Key {
		return
	}
	mb.blocks = slices.Insert(mb.blocks, i, other)
	st.blockers[other] = append(st.blockers[other], m)
}

func (st *state) unblock(m int32, other readstate.MemberKey) {
	mb := st.members.at(m)
	i, found := slices.BinarySearch(mb.blocks, other)
	if !found {
		return
	}
	mb.blocks = slices.Delete(mb.blocks, i, i+1)
	rest := slices.DeleteFunc(st.blockers[other], func(x int32) bool { return x == m })
	if len(rest) == 0 {
		delete(st.blockers, other)
	} else {
		st.blockers[other] = rest
	}
}

func (st *state) blocks(m int32, other readstate.MemberKey) bool {
	_, found := slices.BinarySearch(st.members.at(m).blocks, other)
	return found
}

// addScope makes a slot. A thread's parent must be there already if it is to be found.
func (st *state) addScope(v scope) int32 {
	v.parent = st.scopeByKey[v.info.Parent]
	s := st.scopes.take(v)
	st.scopeByKey[v.info.Key] = s
	st.scopeByID[v.info.ID] = s
	if v.parent != none {
		p := st.scopes.at(v.parent)
		st.scopes.at(s).childAt = int32(len(p.children))
		p.children = append(p.children, s)
	}
	sc := st.scopes.at(s)
	sc.waitAll = st.lists.take(list{})
	sc.waitNamed = st.lists.take(list{})
	return s
}

// releaseScope drops the slot if neither a row nor a thread's slot refers to it.
func (st *state) releaseScope(s int32) {
	for s != none {
		sc := st.scopes.at(s)
		if sc.info.Key == 0 || sc.entries > 0 || len(sc.children) > 0 {
			return
		}
		parent, at := sc.parent, sc.childAt
		delete(st.scopeByKey, sc.info.Key)
		delete(st.scopeByID, sc.info.ID)
		st.lists.drop(sc.waitAll)
		st.lists.drop(sc.waitNamed)
		st.marks = slices.DeleteFunc(st.marks, func(b bulkMark) bool { return b.scope == s })
		st.scopes.drop(s)
		if parent == none {
			return
		}
		p := st.scopes.at(parent)
		last := len(p.children) - 1
		p.children[at] = p.children[last]
		st.scopes.at(p.children[at]).childAt = at
		p.children = p.children[:last]
		s = parent
	}
}

// addEntry makes a row, as a candidate. Its pairs are attached by the caller.
func (st *state) addEntry(m, s int32, row *readstate.MemberRow) int32 {
	mb := st.members.at(m)
	e := st.entries.take(entry{
		row: row.Row, writer: row.Writer, stateLSN: row.StateLSN,
		member: m, scope: s, at: int32(len(mb.entries)),
	})
	mb.entries = append(mb.entries, e)
	st.entryAt[pairKey(m, s)] = e
	st.scopes.at(s).entries++
	st.push(mb.candidate, e)
	st.noteUntil(m, row.Row.Until)
	if len(mb.watchers) > 0 {
		st.watchEntry(e)
	}
	return e
}

// dropEntry forgets a row and what only it needed, the scope's slot included.
func (st *state) dropEntry(e int32) {
	en := *st.entries.at(e)
	st.unwatchEntry(e)
	st.unlist(e)
	st.dropSide(e)
	mb := st.members.at(en.member)
	last := len(mb.entries) - 1
	mb.entries[en.at] = mb.entries[last]
	st.entries.at(mb.entries[en.at]).at = en.at
	mb.entries = mb.entries[:last]
	delete(st.entryAt, pairKey(en.member, en.scope))
	st.entries.drop(e)
	st.scopes.at(en.scope).entries--
	st.releaseScope(en.scope)
}

// dropMember forgets a member with all rows.
func (st *state) dropMember(m int32) {
	st.dropRows(m)
	mb := st.members.at(m)
	for _, b := range slices.Clone(mb.blocks) {
		st.unblock(m, b)
	}
	delete(st.memberByKey, mb.info.Key)
	if st.memberByID[mb.info.ID] == m {
		delete(st.memberByID, mb.info.ID)
	}
	st.lists.drop(mb.candidate)
	st.members.drop(m)
}

func (st *state) dropRows(m int32) {
	mb := st.members.at(m)
	for len(mb.entries) > 0 {
		st.dropEntry(mb.entries[len(mb.entries)-1])
	}
}

func (st *state) watchEntry(e int32) {
	en := st.entries.at(e)
	if en.watched != 0 {
		return
	}
	sc := st.scopes.at(en.scope)
	sc.watched = append(sc.watched, e)
	en.watched = int32(len(sc.watched))
	st.watched++
}

func (st *state) unwatchEntry(e int32) {
	en := st.entries.at(e)
	if en.watched == 0 {
		return
	}
	sc := st.scopes.at(en.scope)
	at, last := en.watched-1, len(sc.watched)-1
	sc.watched[at] = sc.watched[last]
	st.entries.at(sc.watched[at]).watched = at + 1
	sc.watched = sc.watched[:last]
	en.watched = 0
	st.watched--
}
