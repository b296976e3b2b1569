package factstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// testRevisionThrough looks for revisions among long runs of entries that have none.
func testRevisionThrough(_ *testing.T, w *world) {
	scope := w.scope()
	readable := map[readstate.Seq]bool{3: true, 4: true, 40: true, 200: true, 201: true, 290: true}
	c := &facts.Changes{}
	want := make([]readstate.Revision, 301)
	for seq := readstate.Seq(1); seq <= 300; seq++ {
		m := messageRow(scope, seq, fmt.Sprint(seq))
		m.Revision = 0
		want[seq] = want[seq-1]
		if readable[seq] {
			want[seq]++
			m.Revision = want[seq]
		}
		c.NewMessages = append(c.NewMessages, m)
	}
	w.write(c)
	check := func() {
		w.view(func(v facts.View) {
			for seq := range want {
				got, err := v.RevisionThrough(w.Context(), scope, readstate.Seq(seq))
				w.ok(err)
				w.same(fmt.Sprint("revision through seq ", seq), got, want[seq])
			}
			got, err := v.RevisionThrough(w.Context(), scope, readstate.MaxCounter)
			w.ok(err)
			w.same("last revision", got, want[300])
			got, err = v.RevisionThrough(w.Context(), scope+1, 300)
			w.ok(err)
			w.same("revision of nothing", got, readstate.Revision(0))
		})
	}
	check()
	// What the floor has passed is not retained.
	w.write(&facts.Changes{Trimmed: []facts.Trim{{Scope: scope, Seq: 50, Revision: 3}}})
	for seq := range 200 {
		want[seq] = 0
	}
	check()
}

// testSeeks compares every answer about a scope with looking at all its entries.
func testSeeks(_ *testing.T, w *world) {
	for _, t := range []readstate.ScopeType{
		readstate.Channel, readstate.DM, readstate.Thread, readstate.Task, readstate.Session,
	} {
		for seed := range uint64(w.turns(2)) {
			rng := rand.New(rand.NewPCG(seed, uint64(t)))
			members := []readstate.MemberKey{w.member(), w.member(), w.member(), w.member()}
			h := newHistory(w, rng, t, members...)
			for range w.turns(4) {
				h.live(40)
				h.check()
			}
		}
	}
}

func (h *history) check() {
	h.w.Helper()
	h.w.inTx(func(tx facts.Tx) { h.checkSeeker(tx) })
	h.w.view(func(v facts.View) {
		h.checkSeeker(v)
		h.checkMessages(v)
		h.checkCounted(v)
	})
}

func (h *history) what(q string, args ...any) string {
	return fmt.Sprintf("%v, head %d, floor %d: %s", h.scope.Info.Type, h.scope.Ranks.Head,
		h.scope.Ranks.Floor, fmt.Sprintf(q, args...))
}

// point returns a revision anywhere from the floor to the head.
func (h *history) point() readstate.Revision {
	r := h.scope.Ranks
	return r.Floor + readstate.Revision(h.rng.IntN(int(r.Head-r.Floor)+1))
}

func (h *history) checkSeeker(s facts.Seeker) {
	h.w.Helper()
	ctx, scope := h.w.Context(), h.scope.Info.Key
	for _, m := range append(h.members, 99) {
		key := facts.RowKey{Scope: scope, Member: m}
		for range 6 {
			q := h.point()
			ranks, err := s.RanksAt(ctx, key, q)
			h.w.ok(err)
			h.w.same(h.what("ranks of %d at %d", m, q), ranks, h.ranksAt(m, q))
			low, high := min(q, h.point()), max(q, h.point())
			crossed, err := s.Crossed(ctx, key, low, high)
			h.w.ok(err)
			h.w.same(h.what("crossed by %d in (%d, %d]", m, low, high), crossed,
				h.crossed(m, low, high))
			h.checkPairs(s, key, q)
		}
	}
	seq := h.scope.FloorSeq +
		readstate.Seq(h.rng.IntN(int(h.scope.Ranks.LatestSeq-h.scope.FloorSeq)+1))
	through, err := s.RevisionThrough(ctx, scope, seq)
	h.w.ok(err)
	var wantThrough readstate.Revision
	var latest readstate.Latest
	for _, m := range h.entries {
		if m.Seq <= seq && m.Revision > 0 {
			wantThrough = m.Revision
		}
		if m.Live {
			latest = readstate.Latest{ID: m.ID, At: m.CreatedAt}
		}
	}
	h.w.same(h.what("revision through %d", seq), through, wantThrough)
	got, err := s.Newest(ctx, scope)
	h.w.ok(err)
	h.w.same(h.what("newest"), got, latest)
}

func (h *history) ranksAt(m readstate.MemberKey, q readstate.Revision) readstate.Ranks {
	var ranks readstate.Ranks
	if w := h.writers[m]; w != nil {
		ranks = readstate.Ranks{Author: w.AuthorAtFloor, Principal: w.PrincipalAtFloor}
	}
	for _, e := range h.entries {
		if e.Revision == 0 || e.Revision > q {
			continue
		}
		if e.Author == m {
			ranks.Author = e.AuthorRank
		}
		if e.Principal == m {
			ranks.Principal = e.PrincipalRank
		}
	}
	return ranks
}

// named reports a mention row that counts.
func (h *history) named(e *facts.MessageRow, m readstate.MemberKey) bool {
	t := h.scope.Info.Type
	return e.Live && !e.Everyone && slices.Contains(e.Named, m) && !neutral(t, e, m) &&
		(!t.Targeted() || slices.Contains(e.Recipients, m))
}

func (h *history) delivered(e *facts.MessageRow, m readstate.MemberKey) bool {
	t := h.scope.Info.Type
	return e.Live && t.Targeted() && slices.Contains(e.Recipients, m) && !neutral(t, e, m)
}

func (h *history) crossed(m readstate.MemberKey, low, high readstate.Revision) readstate.Crossed {
	var c readstate.Crossed
	for i := range h.entries {
		e := &h.entries[i]
		if e.Revision <= low || e.Revision > high {
			continue
		}
		if neutral(h.scope.Info.Type, e, m) {
			if !e.Live {
				c.OwnRemoved++
			} else if e.Everyone {
				c.OwnEveryone++
			}
		}
		if h.named(e, m) {
			c.Direct++
		}
		if h.delivered(e, m) {
			c.Targets++
		}
	}
	return c
}

func (h *history) checkPairs(s facts.Seeker, key facts.RowKey, base readstate.Revision) {
	h.w.Helper()
	var blocked []readstate.MemberKey
	for _, x := range append(h.members, 98) {
		if h.chance(60) {
			blocked = append(blocked, x)
		}
	}
	got, err := s.Pairs(h.w.Context(), key, h.scope.Info.Type, base, h.scope.Ranks.Floor, 0, blocked)
	h.w.ok(err)
	h.w.same(h.what("pairs of %d above %d with %d", key.Member, base, blocked), got,
		h.pairs(key.Member, base, blocked))
}

// pairs answers in the order of the blocked members' keys.
func (h *history) pairs(
	m readstate.MemberKey, base readstate.Revision, blocked []readstate.MemberKey,
) []readstate.PairRow {
	var out []readstate.PairRow
	for _, x := range slices.Sorted(slices.Values(blocked)) {
		w := h.writers[x]
		if x == m || w == nil || w.AuthorHead == 0 {
			continue
		}
		p := readstate.PairRow{
			Blocked: x, AuthorAt: h.ranksAt(x, base).Author,
			Other: readstate.BlockedWriter{Member: x, AuthorHead: w.AuthorHead},
		}
		for i := range h.entries {
			e := &h.entries[i]
			if e.Author != x || e.Revision == 0 {
				continue
			}
			if !e.Live {
				p.Other.Removed = append(p.Other.Removed, e.Revision)
				continue
			}
			if e.Everyone {
				p.Other.Everyone = append(p.Other.Everyone, readstate.EveryoneRevision{
					Revision: e.Revision, Principal: e.Principal,
				})
			}
			if e.Revision <= base {
				continue
			}
			if e.Principal == m && h.scope.Info.Type.NeutralWriters() {
				p.Overlap++
			}
			if h.named(e, m) {
				p.Direct++
			}
			if h.delivered(e, m) {
				p.Targets++
			}
		}
		out = append(out, p)
	}
	return out
}

func (h *history) checkMessages(v facts.View) {
	h.w.Helper()
	ctx, scope := h.w.Context(), h.scope.Info.Key
	var live []facts.MessageRow
	for _, e := range h.entries {
		if e.Live {
			live = append(live, e)
		}
	}
	for range 4 {
		at := readstate.Seq(1 + h.rng.IntN(int(h.scope.Ranks.LatestSeq)))
		limit := 1 + h.rng.IntN(9)
		after, before := []facts.MessageRow{}, []facts.MessageRow{}
		for _, e := range live {
			if e.Seq > at {
				after = append(after, e)
			}
			if e.Seq < at {
				before = append(before, e)
			}
		}
		got, err := v.Messages(ctx, facts.MessageQuery{Scope: scope, After: at, Limit: limit})
		h.w.ok(err)
		h.w.same(h.what("after %d", at), got, after[:min(limit, len(after))])
		got, err = v.Messages(ctx, facts.MessageQuery{Scope: scope, Before: at, Limit: limit})
		h.w.ok(err)
		h.w.same(h.what("before %d", at), got, before[max(0, len(before)-limit):])
		got, err = v.Messages(ctx, facts.MessageQuery{Scope: scope, Limit: limit})
		h.w.ok(err)
		h.w.same(h.what("newest %d", limit), got, live[max(0, len(live)-limit):])
	}
}

func (h *history) checkCounted(v facts.View) {
	h.w.Helper()
	for _, m := range append(h.members, 99) {
		for range 3 {
			q := facts.CountedQuery{
				Scope: h.scope.Info.Key, Type: h.scope.Info.Type, Member: m, Base: h.point(),
				Attention: h.chance(50), Limit: 1 + h.rng.IntN(20),
			}
			for _, x := range h.members {
				if h.chance(30) {
					q.Blocked = append(q.Blocked, x) // oneself among them is no block
				}
			}
			got, err := v.Counted(h.w.Context(), q)
			h.w.ok(err)
			h.w.same(h.what("counted %+v", q), got, h.counted(q))
		}
	}
}

func (h *history) counted(q facts.CountedQuery) []facts.MessageRow {
	var out []facts.MessageRow
	for i := range h.entries {
		e := &h.entries[i]
		if !e.Live || e.Revision <= q.Base || neutral(q.Type, e, q.Member) ||
			(e.Author != q.Member && slices.Contains(q.Blocked, e.Author)) {
			continue
		}
		counts := !q.Type.Targeted() || h.delivered(e, q.Member)
		if q.Attention && q.Type != readstate.DM {
			counts = h.named(e, q.Member) || (e.Everyone && !q.Type.Targeted())
		}
		if counts && len(out) < q.Limit {
			out = append(out, *e)
		}
	}
	return out
}
