package snapshot

import (
	"errors"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/readstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRevisions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s revisions
		all := map[readstate.Revision]bool{}
		for range rng.IntN(80) {
			from := readstate.Revision(rng.IntN(3 * readstate.BlockSize))
			for r := from; r < from+readstate.Revision(1+rng.IntN(9)); r++ {
				if s.add(r) == all[r] {
					t.Fatalf("%d was there: %t", r, all[r])
				}
				all[r] = true
			}
			gone := readstate.Revision(rng.IntN(3 * readstate.BlockSize))
			if s.remove(gone) != all[gone] {
				t.Fatalf("%d was not there", gone)
			}
			delete(all, gone)
		}
		base := readstate.Revision(rng.IntN(3 * readstate.BlockSize))
		check := func(s *revisions) {
			t.Helper()
			var above uint64
			for r := range all {
				if !s.has(r) {
					t.Fatalf("%d is missing", r)
				}
				if r > base {
					above++
				}
			}
			if got := s.above(base); got != above {
				t.Fatalf("%d above %d, want %d", got, base, above)
			}
		}
		check(&s)
		back, err := unpackRevisions(s.pack())
		if err != nil {
			t.Fatal(err)
		}
		check(&back)
		s.trimBelow(base)
		for r := range all {
			if s.has(r) != (r > base) {
				t.Fatalf("after a trim to %d, %d is there: %t", base, r, s.has(r))
			}
		}
	}
	for _, text := range []string{"*", "AQ", "AAA", "//////////8BAQ", "AP///////////wE"} {
		if _, err := unpackRevisions(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// A flusher's budgets are positive.
// covers: RT-409 RT-443 RT-444
func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {FlushInterval: -1}, {FlushBatchSize: -1}, {FlushRetry: -1}, {FlushTimeout: -1}} {
		if c != (Config{}) {
			c.Store = noStore{}
		}
		if _, err := NewFlusher(c, nil, nil); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

type noStore struct{ Store }

// What needs facts that nobody has here is refused, and what was not fetched is no guess.
func TestRefusals(t *testing.T) {
	b := NewBook("w", 1, nil, func() int64 { return 0 }, Limits{Backlog: 1, Cached: 1})
	if _, err := b.Apply(2, []readstate.Event{readstate.BlockEvent{Member: 1, Other: 2}}); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if _, err := b.Apply(3, []readstate.Event{readstate.MessageEvent{Scope: 1, Seq: 1, Revision: 1}}); !errors.Is(err, ErrNotLoaded) {
		t.Error(err)
	}
	b.Begin(readstate.ScopeInfo{Key: 1, ID: "c", Type: readstate.Channel}, readstate.ScopeRanks{}, true)
	if _, err := b.Apply(4, []readstate.Event{readstate.MessageEvent{Scope: 1, Seq: 1, Revision: 1, Author: 7}}); !errors.Is(err, ErrNotLoaded) {
		t.Error(err)
	}
	if _, err := b.Apply(5, []readstate.Event{readstate.MessageEvent{Scope: 1, Seq: 1, Revision: 1 << 50}}); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if s, _ := b.Scope(1); s.Ranks.Head != 0 {
		t.Errorf("a refused message moved the head to %d", s.Ranks.Head)
	}
}
