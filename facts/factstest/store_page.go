package factstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// household is one member with rows in many scopes, some of them threads, and a list of blocks.
type household struct {
	*world
	rng     *rand.Rand
	me      readstate.MemberKey
	info    readstate.MemberInfo
	blocked []readstate.MemberKey // ascending
	scopes  map[readstate.ScopeKey]*history
	states  map[readstate.ScopeKey]facts.StateRow
}

func newHousehold(w *world, seed uint64, scopes int) *household {
	hh := &household{
		world: w, rng: rand.New(rand.NewPCG(seed, 1)), me: w.member(),
		scopes: make(map[readstate.ScopeKey]*history),
		states: make(map[readstate.ScopeKey]facts.StateRow),
	}
	members := []readstate.MemberKey{hh.me, w.member(), w.member(), w.member(), w.member()}
	c := &facts.Changes{}
	for _, m := range members {
		row := memberRow(m, fmt.Sprint("member-", m))
		c.Members = append(c.Members, row)
		if m == hh.me {
			hh.info = row.MemberInfo
		} else if hh.rng.IntN(2) == 0 {
			hh.blocked = append(hh.blocked, m)
			c.Block = append(c.Block, facts.BlockedPair{Member: hh.me, Other: m})
		}
	}
	w.write(c)
	types := []readstate.ScopeType{
		readstate.Channel, readstate.DM, readstate.Thread, readstate.Task, readstate.Session,
	}
	var parents []*history
	for range scopes {
		h := newHistory(w, hh.rng, types[hh.rng.IntN(len(types))], members...)
		h.scope.Ranks.LastActivityAt = int64(hh.rng.IntN(5)) // ties are broken by the LSN
		h.scope.Ranks.LastLSN = readstate.LSN(h.scope.Info.Key)
		if h.scope.Info.Type == readstate.Thread && len(parents) > 0 {
			p := parents[hh.rng.IntN(len(parents))].scope.Info
			h.scope.Info.Parent, h.scope.Info.ParentID = p.Key, p.ID
		}
		if h.scope.Info.Type == readstate.Channel {
			parents = append(parents, h)
		}
		h.live(12)
		hh.scopes[h.scope.Info.Key] = h
		if hh.rng.IntN(10) > 0 {
			hh.enter(h)
		}
	}
	return hh
}

// enter gives the member a row in a scope, with a point anywhere, joined or not.
func (hh *household) enter(h *history) {
	row := stateRow(h.scope.Info.Key, hh.me)
	row.Row.Joined = hh.rng.IntN(5) > 0
	row.Row.Activity.Read = 0
	// A point may lie below the floor.
	row.Row.Point.E = h.point() - readstate.Revision(hh.rng.IntN(3))
	hh.states[row.Scope] = row
	h.pending.States = []facts.StateRow{row}
	h.commit()
}

// row is what a page has to say of a scope; nil where the member has no row.
func (hh *household) row(key readstate.ScopeKey) *readstate.MemberRow {
	state, ok := hh.states[key]
	if !ok {
		return nil
	}
	h := hh.scopes[key]
	base := state.Row.Point.Base(h.scope.Ranks.Floor)
	bits := func(set facts.BlockSet) readstate.BlockBits {
		out := readstate.BlockBits{Block: readstate.BlockOf(base)}
		row := h.blocks[facts.BlockKey{Set: set, Scope: key, Block: out.Block}]
		if row != nil && row.Count > 0 {
			out.Bits = &row.Bits
		}
		return out
	}
	row := &readstate.MemberRow{
		Scope: key, Member: hh.me, MemberID: hh.info.ID, Row: state.Row,
		Removed: bits(facts.RemovedSet), Everyone: bits(facts.EveryoneSet),
		Pairs: h.pairs(hh.me, base, hh.blocked), StateLSN: state.StateLSN,
	}
	if w := h.writers[hh.me]; w != nil {
		row.Writer = *w
	}
	return row
}

func (hh *household) scopeOf(key readstate.ScopeKey) readstate.PageScope {
	h := hh.scopes[key]
	counts := func(set facts.BlockSet) []readstate.BlockCount {
		var out []readstate.BlockCount
		for block := range uint64(4) {
			row := h.blocks[facts.BlockKey{Set: set, Scope: key, Block: block}]
			if row != nil && row.Count > 0 {
				out = append(out, readstate.BlockCount{Block: block, Count: row.Count})
			}
		}
		return out
	}
	return readstate.PageScope{
		Info: h.scope.Info, Ranks: h.scope.Ranks,
		Removed: counts(facts.RemovedSet), Everyone: counts(facts.EveryoneSet),
	}
}

// page is the page with the rows of these scopes.
func (hh *household) page(next string, scopes []readstate.ScopeKey) readstate.Page {
	p := readstate.Page{
		LSN: hh.fence.LSN, Member: hh.info, Blocks: hh.blocked, Next: next,
	}
	listed := make(map[readstate.ScopeKey]bool)
	show := func(key readstate.ScopeKey) {
		if !listed[key] {
			listed[key] = true
			p.Scopes = append(p.Scopes, hh.scopeOf(key))
		}
	}
	for _, key := range scopes {
		row := hh.row(key)
		if row == nil {
			continue
		}
		show(key)
		out := readstate.PageRow{MemberRow: *row}
		if parent := hh.scopes[key].scope.Info.Parent; parent != 0 {
			show(parent)
			out.Parent = hh.row(parent)
		}
		p.Rows = append(p.Rows, out)
	}
	for _, state := range hh.states {
		if !state.Row.Joined {
			p.LeftLSN = max(p.LeftLSN, state.MembershipLSN)
		}
	}
	return p
}

func (hh *household) joined() []readstate.ScopeKey {
	var out []readstate.ScopeKey
	for key, state := range hh.states {
		if state.Row.Joined {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// byActivity puts the scopes of most recent activity first.
func (hh *household) byActivity(keys []readstate.ScopeKey) []readstate.ScopeKey {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b readstate.ScopeKey) int {
		x, y := hh.scopes[a].scope.Ranks, hh.scopes[b].scope.Ranks
		if x.LastActivityAt != y.LastActivityAt {
			return int(y.LastActivityAt - x.LastActivityAt)
		}
		return int(y.LastLSN) - int(x.LastLSN)
	})
	return keys
}

func (hh *household) query(q facts.PageQuery) readstate.Page {
	hh.Helper()
	q.Workspace, q.Member = hh.key, hh.me
	var page readstate.Page
	hh.view(func(v facts.View) {
		var err error
		page, err = v.Page(hh.Context(), q)
		hh.ok(err)
	})
	return page
}

func testPage(_ *testing.T, w *world) {
	hh := newHousehold(w, 3, 30)
	want := hh.page("", hh.byActivity(hh.joined()))
	hh.same("page", hh.query(facts.PageQuery{Limit: 100}), want)
	hh.same("page without a limit", hh.query(facts.PageQuery{}), want)
	// A member who is nowhere still has a page.
	stranger := memberRow(w.member(), "stranger")
	w.write(&facts.Changes{Members: []facts.MemberChange{stranger}})
	w.view(func(v facts.View) {
		page, err := v.Page(w.Context(), facts.PageQuery{Workspace: w.key, Member: stranger.Key})
		w.ok(err)
		w.same("page", page, readstate.Page{LSN: w.fence.LSN, Member: stranger.MemberInfo})
	})
}

// testPageCursor walks through all pages in pages of every size.
func testPageCursor(_ *testing.T, w *world) {
	hh := newHousehold(w, 4, 12)
	joined := hh.joined()
	for limit := 1; limit <= len(joined)+1; limit++ {
		recent := hh.byActivity(joined)
		if limit >= len(joined) {
			hh.same("only page", hh.query(facts.PageQuery{Limit: limit}), hh.page("", recent))
			continue
		}
		page := hh.query(facts.PageQuery{Limit: limit})
		if page.Next == "" {
			hh.Fatalf("%d rows of %d and no next page", limit, len(joined))
		}
		hh.same("first page", page, hh.page(page.Next, recent[:limit]))
		var walked []readstate.ScopeKey
		for page.Next != "" {
			cursor := page.Next
			page = hh.query(facts.PageQuery{Limit: limit, Cursor: cursor})
			rest := joined[len(walked):]
			hh.same("page at "+cursor, page, hh.page(page.Next, rest[:min(limit, len(rest))]))
			for _, row := range page.Rows {
				walked = append(walked, row.Scope)
			}
		}
		hh.same("rows of all later pages", walked, joined)
	}
}

// testPageOnly asks for single scopes, rows of members who left included.
func testPageOnly(_ *testing.T, w *world) {
	hh := newHousehold(w, 5, 30)
	var all []readstate.ScopeKey
	for key := range hh.scopes {
		all = append(all, key)
	}
	slices.Sort(all)
	for range w.turns(10) {
		var only []readstate.ScopeKey
		for _, key := range all {
			if hh.rng.IntN(4) == 0 {
				only = append(only, key)
			}
		}
		if len(only) == 0 {
			continue
		}
		got := hh.query(facts.PageQuery{Only: append(only, only[0], 12345), Limit: 1})
		hh.same("page", sorted(got), sorted(hh.page("", only)))
	}
}

// sorted puts rows and scopes, whose order means nothing here, in order.
func sorted(p readstate.Page) readstate.Page {
	slices.SortFunc(p.Rows, func(a, b readstate.PageRow) int { return int(a.Scope) - int(b.Scope) })
	slices.SortFunc(p.Scopes, func(a, b readstate.PageScope) int {
		return int(a.Info.Key) - int(b.Info.Key)
	})
	return p
}

func testPageRandom(_ *testing.T, w *world) {
	for seed := range uint64(w.turns(4)) {
		w.last += 1000
		hh := newHousehold(w, 100+seed, 15)
		for range 3 {
			hh.same("page", hh.query(facts.PageQuery{}), hh.page("", hh.byActivity(hh.joined())))
			for _, h := range hh.scopes {
				h.live(1)
			}
		}
	}
}
