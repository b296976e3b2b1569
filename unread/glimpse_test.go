package unread

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// Dots and counts are read while somebody holds the workspace's lock for ever.
func TestGlimpsesTakeNoLock(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 A")...)
	d.load("A", "B")
	d.dot("A") // tidies
	d.dot("B")
	ws := d.space()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for member, want := range map[readstate.MemberID]bool{"A": false, "B": true} {
		if unread, state := d.r.HasUnread(testSpace, member); unread != want || state != Ready {
			t.Errorf("%s: %t, %s", member, unread, state)
		}
		counts, lsn, err := d.r.Counts(cold(), testSpace, member, nil)
		if err != nil || len(counts) != 1 || counts[0].Shown != want || lsn != d.facts.lsn {
			t.Errorf("%s: %+v at %d, %v", member, counts, lsn, err)
		}
	}
}

// What is glimpsed while commits are applied is of one moment: every count of a member is the
// one at the LSN that came with them.
func TestGlimpsesAreOfOneMoment(t *testing.T) {
	c := &town{t: t, facts: newMirror(nil)}
	r, err := New(Config{Source: c, Now: c.facts.now, MaxFirePerTick: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	c.r = r
	c.worlds = append(c.worlds, c.facts.world.Clone())
	r.Open(testSpace, 0)
	ops := plainOps(t, rand.New(rand.NewPCG(5, 6)), 2000)
	var wg sync.WaitGroup
	var hits [3]int
	for i := range hits {
		wg.Go(func() { hits[i] = c.glimpses(rand.New(rand.NewPCG(7, uint64(i)))) })
	}
	c.apply(ops)
	wg.Wait()
	if hits[0]+hits[1]+hits[2] == 0 {
		t.Error("nothing was glimpsed")
	}
	if s := r.Stats(); s.Alarms > 0 {
		t.Errorf("%+v", s)
	}
	t.Logf("%v glimpses, %d values judged", hits, c.checks.Load())
}

// glimpses reads dots and counts without a lock and judges them; it returns how often it could.
func (c *town) glimpses(rng *rand.Rand) (hits int) {
	ws, err := c.r.workspace(testSpace)
	if err != nil {
		c.t.Error(err)
		return 0
	}
	for !c.done.Load() {
		m := memberID(model.MemberID(rng.IntN(mirrorMembers)) + 1)
		c.r.HasUnread(testSpace, m) // loads and tidies
		var counts []Count
		var lsn readstate.LSN
		var dot bool
		if !c.r.glimpse(ws, func(g *glimpse) outcome {
			lsn = readstate.LSN(ws.applied.Load())
			var first, second outcome
			dot, first = g.hasUnread(m)
			counts, second = g.counts(m, counts[:0])
			return max(first, second)
		}) {
			continue
		}
		hits++
		world, some := c.world(lsn), false
		id := model.MemberID(m[0]-'A') + 1
		for _, x := range counts {
			want := world.Values(id, model.ScopeID(x.Scope-100))
			some = some || x.Shown
			c.checks.Add(1)
			if int(x.Unread) != want.Unread || int(x.Attention) != want.Attention ||
				x.Shown != want.Shown || int(x.ShownUnread) != want.ShownUnread {
				c.t.Errorf("%s at %d: %+v, want %v", m, lsn, x, want)
			}
		}
		all := lsn < plainScopes*(1+mirrorMembers) || len(counts) == plainScopes
		if dot != some || !all {
			c.t.Errorf("%s at %d: dot %t over %+v", m, lsn, dot, counts)
		}
	}
	return hits
}

const plainScopes = 4

// plainOps is a history of channels in which people only write, mention and read.
func plainOps(t *testing.T, rng *rand.Rand, n int) []model.Op {
	t.Helper()
	var text strings.Builder
	for s := range plainScopes {
		fmt.Fprintf(&text, "create s%d channel\n", s+1)
		for m := range mirrorMembers {
			fmt.Fprintf(&text, "join s%d %c\n", s+1, 'A'+m)
		}
	}
	var heads [plainScopes]int
	for range n {
		s, who := rng.IntN(plainScopes), 'A'+rng.IntN(mirrorMembers)
		switch rng.IntN(4) {
		case 0:
			fmt.Fprintf(&text, "read s%d %c %d v=0\n", s+1, who, heads[s])
		case 1:
			fmt.Fprintf(&text, "post s%d %c @%c\n", s+1, who, 'A'+rng.IntN(mirrorMembers))
			heads[s]++
		default:
			fmt.Fprintf(&text, "post s%d %c\n", s+1, who)
			heads[s]++
		}
	}
	ops, err := model.ParseOps(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return ops
}
