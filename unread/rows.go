package unread

import (
	"sync/atomic"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// runUnit is what sizes of runs are multiples of, and how many neighbouring rows surely have one
// owner.
const runUnit = 8

// run is where a member's rows lie, one beside the other.
type run struct {
	at, n, size int32
}

// rows holds every row in columns of one numbering: what a read needs is dense. A read of all
// rows of a member walks one run of memory.
type rows struct {
	hot    *slab.Runs[hotWords]
	scopes *slab.Column[int32]
	links  *slab.Column[link]
	cold   *slab.Runs[uint32]
	owners column // a member for each unit of rows
	n      int
	// base is what the LSNs of rows are counted from: earlier ones are as good as this one.
	base readstate.LSN
}

// link joins a row to its neighbours on the list it is on.
type link struct {
	prev, next int32
}

// column is a growing array that never moves.
type column struct{ pages [][]int32 }

const columnPage = 1024

func (c *column) at(i int32) *int32 {
	for int(i/columnPage) >= len(c.pages) {
		c.pages = append(c.pages, make([]int32, columnPage))
	}
	return &c.pages[i/columnPage][i%columnPage]
}

func newRows(m *slab.Memory) rows {
	h := slab.NewRuns[hotWords](m, runUnit)
	return rows{
		hot: h, scopes: slab.NewColumn[int32](m, h), links: slab.NewColumn[link](m, h),
		cold: slab.NewRuns[uint32](m, coldUnit),
	}
}

func (r *rows) scope(e int32) int32 { return atomic.LoadInt32(r.scopes.At(e)) }

func (r *rows) setScope(e, s int32) { atomic.StoreInt32(r.scopes.At(e), s) }

func (r *rows) member(e int32) int32 { return *r.owners.at(e / runUnit) }

// take makes room for a run of at least n rows.
func (r *rows) take(n, owner int32) run {
	at, size := r.hot.Take(int(n))
	r.scopes.Cover(at + int32(size))
	r.links.Cover(at + int32(size))
	for u := at / runUnit; u < (at+int32(size))/runUnit; u++ {
		*r.owners.at(u) = owner
	}
	return run{at: at, size: int32(size)}
}

func (r *rows) drop(x run) {
	if x.size == 0 {
		return
	}
	r.hot.Drop(x.at, int(x.size))
}

// entryOf finds the row of a member in a scope, none where it is not loaded.
func (st *state) entryOf(m, s int32) int32 {
	if m == none || s == none {
		return none
	}
	x := st.members.At(m).run()
	for i, scope := range st.rows.scopes.View(x.at, int(x.n)) {
		if scope == s {
			return x.at + int32(i)
		}
	}
	return none
}

// reserve makes room for more rows at the end of the member's run, which moves for it.
func (st *state) reserve(m, more int32) run {
	mb := st.members.At(m)
	x := mb.run()
	if x.n+more <= x.size {
		return x
	}
	wider := st.rows.take(x.n+more, m)
	for i := range x.n {
		st.relocate(x.at+i, wider.at+i)
		st.rewatch(m, i, i, wider.at+i)
	}
	wider.n = x.n
	st.rows.drop(x)
	mb.setRun(wider)
	return wider
}

// extend adds an empty row of the scope at the end of the member's run.
func (st *state) extend(m, s int32) int32 {
	mb := st.members.At(m)
	x := st.reserve(m, 1)
	e := x.at + x.n
	x.n++
	mb.setRun(x)
	st.rows.n++
	st.rows.setScope(e, s)
	return e
}

// shorten takes a row out that is on no list; the member's last row fills the gap.
func (st *state) shorten(e int32) {
	m := st.rows.member(e)
	mb := st.members.At(m)
	st.rows.forget(e)
	x := mb.run()
	last := x.at + x.n - 1
	if e != last {
		st.relocate(last, e)
		st.rewatch(m, last-x.at, e-x.at, e)
	}
	st.rows.setScope(last, none)
	x.n--
	st.rows.n--
	if x.n == 0 {
		st.rows.drop(x)
		x = run{}
	}
	mb.setRun(x)
}

// relocate moves a row with what refers to it, but for the audience of its scope.
func (st *state) relocate(from, to int32) {
	r := &st.rows
	if l := st.listOf(from); l != none {
		x := *r.links.At(from)
		if x.prev != none {
			r.links.At(x.prev).next = to
		} else {
			atomic.StoreInt32(st.head(l), to)
		}
		if x.next != none {
			r.links.At(x.next).prev = to
		}
		*r.links.At(to) = x
		*r.links.At(from) = link{}
	}
	h := r.hotAt(from)
	r.hot.At(to).put(&h)
	r.hot.At(from).put(&hot{})
	r.setScope(to, r.scope(from))
	r.setScope(from, none)
	st.blocked.relocate(from, to)
}
