package model

import (
	"math/rand/v2"
	"slices"
)

// recordSize is how many bytes of a decoded history make one step. A fixed size
// keeps the steps after a changed, cut or inserted record as they were.
const recordSize = 8

// DecodeOps turns any bytes into a history of the full mix, eight bytes a step. It
// starts with [Setup]. Equal bytes give equal histories.
func DecodeOps(data []byte) []Op { return DecodeMix(data, FullMix()) }

// DecodeMix is [DecodeOps] with another mix.
func DecodeMix(data []byte, mix Mix) []Op {
	g := newGenerator(mix)
	for len(data) > 0 {
		n := min(recordSize, len(data))
		record := data[:n]
		data = data[n:]
		g.draw = func(n int) int {
			if len(record) == 0 {
				return 0
			}
			b := int(record[0])
			record = record[1:]
			return b % n
		}
		g.step()
	}
	return g.ops
}

// RandomOps draws a history of n steps, which are somewhat more operations, from a
// source. Equal sources give equal histories.
func RandomOps(rng *rand.Rand, n int, mix Mix) []Op {
	g := newGenerator(mix)
	g.draw = rng.IntN
	for range n {
		g.step()
	}
	return g.ops
}

// generator plays the history that it makes, so that it can name entries, revisions
// and versions that exist. Operations carry absolute values: a history stays
// meaningful when a part of it is taken out.
type generator struct {
	mix   Mix
	total int
	world *World
	ops   []Op
	draw  func(n int) int // 0..n-1
}

func newGenerator(mix Mix) *generator {
	g := &generator{mix: mix, world: New()}
	for _, w := range mix.Weights {
		g.total += w
	}
	for _, op := range Setup(mix) {
		g.emit(op)
	}
	return g
}

// emit adds an operation, refused or not.
func (g *generator) emit(op Op) Outcome {
	g.ops = append(g.ops, op)
	out, _ := g.world.Apply(op)
	return out
}

func (g *generator) step() {
	if g.total == 0 {
		return
	}
	n := g.draw(g.total)
	for s, weight := range g.mix.Weights {
		if n -= weight; n < 0 {
			g.take(Step(s))
			return
		}
	}
}

// chance is true once in n.
func (g *generator) chance(n int) bool { return g.draw(n) == n-1 }

func (g *generator) member() MemberID { return MemberID(g.draw(genMembers)) + 1 }

// other returns somebody else.
func (g *generator) other(m MemberID) MemberID {
	n := MemberID(g.draw(genMembers-1)) + 1
	if n >= m {
		n++
	}
	return n
}

// names draws a set of members, mostly small, often empty.
func (g *generator) names() []MemberID {
	bits := g.draw(64)
	if bits < 24 {
		return nil
	}
	var ids []MemberID
	for m := MemberID(1); m <= MemberID(genMembers); m++ {
		if bits&(1<<(m-1)) != 0 {
			ids = append(ids, m)
		}
	}
	return ids
}

// scopeOf draws a scope among those that satisfy the test; nil when none does.
func (g *generator) scopeOf(ok func(*scope) bool) *scope {
	var ids []ScopeID
	for _, id := range g.world.ScopeIDs() {
		if s := g.world.scopes[id]; s.replacedBy == 0 && ok(s) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return g.world.scopes[ids[g.draw(len(ids))]]
}

func anyScope(*scope) bool { return true }

func joinable(s *scope) bool { return s.kind != Thread && s.kind != Session }

func ofKind(kinds ...ScopeKind) func(*scope) bool {
	return func(s *scope) bool { return slices.Contains(kinds, s.kind) }
}

// row draws a scope and a member that has it, visible or not; false when there is none.
func (g *generator) row() (*scope, MemberID, bool) {
	s := g.scopeOf(func(s *scope) bool { return len(g.reached(s)) > 0 })
	if s == nil {
		return nil, 0, false
	}
	ids := g.reached(s)
	return s, ids[g.draw(len(ids))], true
}

func (g *generator) reached(s *scope) []MemberID {
	var ids []MemberID
	for m := MemberID(1); m <= MemberID(genMembers); m++ {
		if g.world.inReach(s, m) {
			ids = append(ids, m)
		}
	}
	return ids
}

// liveEntry draws an entry that can be edited, mostly a recent one; nil when there
// is none.
func (g *generator) liveEntry(s *scope, ok func(*entry) bool) *entry {
	var found []*entry
	for _, e := range slices.Backward(s.entries) {
		if e.live && !e.trimmed && ok(e) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil
	}
	if len(found) > 6 && !g.chance(4) {
		found = found[:6]
	}
	return found[g.draw(len(found))]
}

// spared reports whether the entry shall stay, because a thread hangs on it and would
// be archived: mostly. Else threads would not live long.
func (g *generator) spared(s *scope, e *entry) bool {
	for _, id := range g.world.ScopeIDs() {
		t := g.world.scopes[id]
		if t.kind == Thread && !t.archived && t.parent == s.id && t.root == e.seq {
			return !g.chance(4)
		}
	}
	return false
}

func anyEntry(*entry) bool { return true }

// revision draws one in 0..head, leaning to the end.
func (g *generator) revision(s *scope) Revision {
	head := s.head()
	back := Revision(g.draw(8))
	if back == 7 {
		back = Revision(g.draw(int(head) + 1))
	}
	return max(head-back, 0)
}

// seq draws one in 0..latest, leaning to the end.
func (g *generator) seq(s *scope) Seq { return max(s.latestSeq()-Seq(g.draw(6)), 0) }

// version mostly draws the row's present one.
func (g *generator) version(s *scope, m MemberID) Version {
	r := s.rows[m]
	if r == nil {
		return 0
	}
	if g.chance(5) {
		return max(r.version-1, 0)
	}
	return r.version
}
