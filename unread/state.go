package unread

import (
	"sync/atomic"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// none is an index that points nowhere. Index 0 of every slab is never given out, so that zero
// values point nowhere too.
const none int32 = 0

// state is one workspace's memory at one LSN: a plain value machine without locks, clock or
// input. What there is once per row, member or scope lies in slabs without pointers and is found
// through 32-bit indexes; the collector has nothing to look at there. What only connected
// members and blocked writers need is kept in ordinary maps.
//
// A page that is being installed becomes a state of its own first, is brought up to date by the
// same code, and is then merged.
type state struct {
	lsn     readstate.LSN
	now     int64 // of the present operation, milliseconds
	memory  *slab.Memory
	members *slab.Slab[member]
	scopes  *slab.Slab[scope]
	lists   *slab.Slab[list]
	hints   bool          // pages come from snapshots
	began   readstate.LSN // with hints, where memory began: rows know no earlier change
	rows    rows
	sets    sets
	text    *slab.Text
	ids     ids
	blocked blockedState

	memberByKey map[readstate.MemberKey]int32
	memberByID  *index
	scopeByKey  map[readstate.ScopeKey]int32
	scopeByID   *index

	connected map[int32]*connected // of watched members
	audience  map[int32][]int32    // rows of watched members, by scope

	batches   []int32      // lists of rows that were fired and not moved yet,
	batched   atomic.Int32 // and how many
	marks     []bulkMark
	fireLimit int
	touched   []touch              // scratch of one event,
	touchAt   map[int32]int        // by row, beyond the first few
	noted     []*Watch             // watches to wake once the lock is released
	untils    []readstate.MemberID // watched members whose next end of a level changed
	missing   []missing            // rows that only a page can bring
	stale     []readstate.MemberID // members whose rows all have to be read again
	arrived   []readstate.MemberID // members who changed and are not loaded
	retaken   []readstate.MemberID // ids of erased members that others took
	watched   int                  // rows of watched members
	checks    *tally               // candidate checks
}

// list is the head of a doubly linked list of rows that wait in a scope. One that fires as a whole
// becomes a batch, and its scope gets a new one of the next generation: rows of the old one are
// pending.
type list struct {
	head  int32
	n     int32
	scope int32
	spot  spot
	gen   uint8
}

type missing struct {
	member readstate.MemberID
	scope  readstate.ScopeKey
}

func newState(memory *slab.Memory, fireLimit int, checks *tally) *state {
	return &state{
		memory:      memory,
		members:     slab.NewSlab[member](memory),
		scopes:      slab.NewSlab[scope](memory),
		lists:       slab.NewSlab[list](memory),
		rows:        newRows(memory),
		sets:        newSets(memory),
		text:        slab.NewText(memory),
		ids:         newIDs(memory),
		blocked:     newBlockedState(),
		memberByKey: map[readstate.MemberKey]int32{},
		memberByID:  newIndex(),
		scopeByKey:  map[readstate.ScopeKey]int32{},
		scopeByID:   newIndex(),
		connected:   map[int32]*connected{},
		audience:    map[int32][]int32{},
		touchAt:     map[int32]int{},
		fireLimit:   fireLimit,
		checks:      checks,
	}
}

// bytes is how much memory the items in use take, free places aside.
func (st *state) bytes() int64 {
	rows := st.rows.hot.Used() / int64(len(hotWords{})) * rowWords
	return rows + st.rows.cold.Used() + st.members.Used() + st.scopes.Used() + st.lists.Used() +
		st.sets.bits.Used() + st.sets.blocks.Used() + st.ids.words.Used() + st.text.Used()
}

// rowWords is how many words of four bytes a row takes in its columns.
const rowWords = int64(len(hotWords{})) + 3

func (st *state) newList(l list) int32 {
	i := st.lists.Take()
	to := st.lists.At(i) // its head is none already
	to.scope, to.spot, to.gen = l.scope, l.spot, l.gen
	return i
}

// entryByKey finds the row of a member by key, none where it is not loaded.
func (st *state) entryByKey(s int32, key readstate.MemberKey) int32 {
	m, ok := st.memberByKey[key]
	if !ok {
		return none
	}
	return st.entryOf(m, s)
}

// parentOf finds the member's row in the channel of a thread's row.
func (st *state) parentOf(e int32) int32 {
	p := st.scopes.At(st.rows.scope(e)).parent
	if p == none {
		return none
	}
	return st.entryOf(st.rows.member(e), p)
}

// addEntry makes a row, as a candidate. Its pairs are attached by the caller. Rows of the same
// member may move.
func (st *state) addEntry(m, s int32, row *readstate.MemberRow) int32 {
	e := st.extend(m, s)
	st.rows.store(e, &full{row: row.Row, writer: row.Writer, stateLSN: row.StateLSN})
	st.scopes.At(s).entries++
	st.push(candidatesOf(m), e)
	st.noteUntil(m, row.Row.Until)
	st.watchEntry(m, e)
	return e
}

// dropEntry forgets a row and what only it needed, the scope's slot included. The member's last
// row takes its place.
func (st *state) dropEntry(e int32) {
	s := st.rows.scope(e)
	st.unwatchEntry(e)
	st.unlist(e)
	st.dropPairs(e)
	st.shorten(e)
	st.scopes.At(s).entries--
	st.releaseScope(s)
}

func (st *state) dropRows(m int32) {
	for x := st.members.At(m).run(); x.n > 0; x = st.members.At(m).run() {
		st.dropEntry(x.at + x.n - 1)
	}
}
