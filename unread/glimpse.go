package unread

import (
	"sync/atomic"

	"github.com/tidemark-im/tidemark/readstate"
)

// glimpses is how often a reader tries without a lock before it takes the shared one.
const glimpses = 4

// glimpse is a read without a lock. The workspace counts its sequence up when it begins to change
// memory and when it has done so; what was read under one even number is of one moment. Memory
// stays mapped as long as somebody holds the state, and indexes that were once good always lead
// to some item, so that a read which is overtaken sees old or mixed numbers and nothing worse.
type glimpse struct {
	r   *Runtime
	ws  *workspace
	st  *state
	seq uint64
}

// outcome is how a glimpse ended.
type outcome uint8

const (
	overtaken outcome = iota // memory changed meanwhile
	answered
	unable // this needs a lock
)

// glimpse looks at memory until nothing changes meanwhile, a few times at most. It reports that f
// answered.
func (r *Runtime) glimpse(ws *workspace, f func(g *glimpse) outcome) bool {
	for range glimpses {
		g := glimpse{r: r, ws: ws, seq: ws.seq.Load()}
		if g.seq&1 != 0 {
			continue
		}
		if g.st = ws.current.Load(); g.st == nil {
			return false
		}
		result := f(&g)
		if !g.valid() {
			continue
		}
		return result == answered
	}
	return false
}

// valid reports that everything read so far is of one moment.
func (g *glimpse) valid() bool { return g.ws.seq.Load() == g.seq }

// member finds a member whose rows can be judged: loaded, not erased, with no end of a level to
// be looked at. It marks them as used.
func (g *glimpse) member(id readstate.MemberID) (int32, *member) {
	m := g.st.memberNamed(id)
	if m == none {
		return none, nil
	}
	mb := g.st.members.At(m)
	until := mb.nextUntil.Load()
	if mb.is(erased) || until != 0 && until <= g.r.now() {
		return none, nil
	}
	mb.use()
	return m, mb
}

// hasUnread is the dot, where the first candidate or the lack of any tells it.
func (g *glimpse) hasUnread(id readstate.MemberID) (unread bool, result outcome) {
	m, mb := g.member(id)
	if m == none {
		return false, unable
	}
	e := atomic.LoadInt32(&mb.first)
	if e == none {
		if mb.is(complete) && g.st.batched.Load() == 0 {
			return false, answered
		}
		return false, unable
	}
	g.st.checks.add(m, 1)
	if row, ok := g.st.glance(g.st.rows.hot.At(e), g.st.rows.scope(e)); ok {
		if _, shown := row.presented(); shown {
			return true, answered
		}
	}
	return false, unable
}

// counts is state.counts for a member with plain rows only.
func (g *glimpse) counts(id readstate.MemberID, dst []Count) ([]Count, outcome) {
	m, mb := g.member(id)
	if m == none || !mb.is(complete) {
		return dst, unable
	}
	x := mb.run()
	if !g.valid() {
		return dst, overtaken
	}
	hots, scopes := g.st.rows.hot.View(x.at, int(x.n)), g.st.rows.scopes.View(x.at, int(x.n))
	g.st.checks.add(m, len(hots))
	dst, n := g.st.plainCounts(hots, scopes, dst)
	if n < len(hots) {
		return dst, unable
	}
	return dst, answered
}
