package fanout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-im/tidemark/internal/bench/fanout"
	"github.com/tidemark-im/tidemark/internal/model"
)

// For what it can do, the baseline counts what the oracle counts: it is a fair rival.
func TestAgainstOracle(t *testing.T) {
	const members, channels = 6, 3
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w, c := model.New(), fanout.New()
		heads := map[int]model.Revision{}
		for s := 1; s <= channels; s++ {
			apply(t, w, model.Op{Kind: model.OpCreate, Scope: model.ScopeID(s), Type: model.Channel})
			c.Join(channel(s), "watcher")
		}
		joined := map[[2]int]bool{}
		for step := range 300 {
			s, m := 1+rng.IntN(channels), 1+rng.IntN(members)
			at := model.Op{Scope: model.ScopeID(s), Member: model.MemberID(m)}
			switch n := rng.IntN(10); {
			case n < 5:
				at.Kind = model.OpPost
				apply(t, w, at)
				heads[s]++
				c.Post(channel(s), person(m))
			case n < 7:
				if joined[[2]int{s, m}] {
					continue // the oracle's second join may start an epoch; the baseline has none
				}
				joined[[2]int{s, m}] = true
				at.Kind = model.OpJoin
				apply(t, w, at)
				c.Join(channel(s), person(m))
			case joined[[2]int{s, m}]:
				at.Kind, at.Revision, at.Service, at.Version = model.OpRead, heads[s], true, model.NoVersion
				apply(t, w, at)
				c.Read(channel(s), person(m))
			}
			compare(t, w, c, joined, seed, step)
		}
	}
}

func compare(
	t *testing.T, w *model.World, c *fanout.Counters, joined map[[2]int]bool, seed uint64, step int,
) {
	t.Helper()
	totals := map[int]int{}
	for at := range joined {
		want := w.Values(model.MemberID(at[1]), model.ScopeID(at[0])).Unread
		totals[at[1]] += want
		got, ok := c.Count(channel(at[0]), person(at[1]))
		if !ok || int(got) != want {
			t.Fatalf("seed %d, step %d: %v has %d, want %d", seed, step, at, got, want)
		}
	}
	for m, want := range totals {
		sum := 0
		counts, _ := c.Counts(person(m), nil)
		for _, n := range counts {
			sum += int(n.Unread)
		}
		if sum != want || c.HasUnread(person(m)) != (want > 0) {
			t.Fatalf("seed %d, step %d: member %d has %d in all, want %d", seed, step, m, sum, want)
		}
	}
}

func apply(t *testing.T, w *model.World, op model.Op) {
	t.Helper()
	if _, err := w.Apply(op); err != nil {
		t.Fatal(err)
	}
}

func channel(n int) string { return fmt.Sprint("c", n) }
func person(n int) string  { return fmt.Sprint("u", n) }

func TestUnknown(t *testing.T) {
	c := fanout.New()
	c.Join("c", "u")
	if c.Post("x", "u") || c.Read("c", "x") || c.HasUnread("x") {
		t.Error("an unknown id was taken")
	}
	if _, ok := c.Counts("x", nil); ok {
		t.Error("an unknown member has counts")
	}
}
