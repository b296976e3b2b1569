package intake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// crush is an intake in which everything happens at once.
type crush struct {
	*bench
	worlds map[readstate.WorkspaceID]*teller
	over   atomic.Bool
	helper sync.WaitGroup
}

// newCrush has every budget so small that it is always in force.
func newCrush(t *testing.T) *crush {
	cfg := Config{MaxQueuedEvents: 100_000, MaxPendingEvents: 100_000, DrainBatch: 3, Comparison: true, Facts: &ledger{}}
	cfg.Limits.Scopes, cfg.Limits.Cached, cfg.Limits.Held, cfg.Limits.HeldTotal = 3, 6, 12, 30
	cfg.Runtime.MaxEntries, cfg.Runtime.HydratePageSize, cfg.Runtime.HydrateConcurrency = 12, 3, 3
	cfg.Runtime.HydrateRetry = time.Millisecond
	cfg.Flush.FlushInterval, cfg.Flush.FlushBatchSize, cfg.Flush.FlushRetry = time.Millisecond, 4, time.Millisecond
	c := &crush{bench: newBench(t, cfg), worlds: map[readstate.WorkspaceID]*teller{}}
	for _, w := range []readstate.WorkspaceID{space0, "w2", "w3"} {
		c.worlds[w] = &teller{world: model.New(), known: true}
		if w != space0 {
			if err := c.f.Open(w); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// help runs something again and again, beside everything else, until it is all over.
func (c *crush) help(step func(rng *rand.Rand)) {
	seed := uint64(len(c.worlds))
	c.helper.Go(func() {
		for rng := rand.New(rand.NewPCG(seed, 1)); !c.over.Load(); {
			step(rng)
		}
	})
}

// readers look, follow, let go, flush, deliver, repair and compare, in every workspace.
func (c *crush) readers() {
	ctx := c.t.Context()
	for w := range c.worlds {
		someone := func(rng *rand.Rand) readstate.MemberID { return memberOf(model.MemberID(1 + rng.IntN(actors))) }
		somewhere := func(rng *rand.Rand) readstate.ScopeID { return scopeOf(model.ScopeID(1 + rng.IntN(12))) }
		c.help(func(rng *rand.Rand) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			r := c.f.Runtime()
			m := someone(rng)
			r.HasUnread(w, m)
			r.Summary(short, w, m)
			r.Counts(short, w, m, nil)
			r.Row(short, w, m, somewhere(rng))
			r.Rows(short, w, m, "", 5)
			if rng.IntN(4) == 0 {
				r.Forget(w, m)
			}
		})
		c.help(func(rng *rand.Rand) {
			watch, err := c.f.Runtime().Watch(w, []readstate.MemberID{someone(rng), someone(rng)})
			if err != nil {
				return
			}
			defer watch.Close()
			for range 20 {
				if watch.Next(10); c.over.Load() {
					return
				}
			}
		})
		c.help(func(rng *rand.Rand) {
			d := Delivery{Scope: somewhere(rng), Revision: readstate.Revision(1 + rng.IntN(9)), Recipients: []readstate.MemberID{someone(rng)}}
			if err := c.f.Barrier(ctx, w, d); err != nil && !errors.Is(err, ErrDeferred) {
				c.t.Error(err)
			}
			c.f.Repair(ctx, "nowhere", Bounds{Scope: d.Scope, Members: d.Recipients})
			c.f.Stats()
		})
	}
	c.help(func(rng *rand.Rand) {
		if c.f.Flush(ctx); c.clock.Load() < 500 { // levels end later than that
			c.clock.Add(1) // failed pages are read again by the clock
		}
		if c.store.fail(rng.IntN(5) == 0); rng.IntN(5) > 0 {
			c.store.fail(false)
		}
	})
}

// play has each workspace told of a history of its own, and of what tells nothing new beside it.
func (c *crush) play(seed uint64, ops int) {
	mix := model.FullMix().Without(model.StepClock, model.StepExpire) // there is one clock for all
	var tellers sync.WaitGroup
	for w, x := range c.worlds {
		tellers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(len(w))))
			var before []Event
			for i, op := range model.RandomOps(rng, ops, mix) {
				events := x.play(op)
				for j, ev := range events {
					if blocks, ok := ev.(BlocksChanged); ok {
						blocks.Generation = uint64(i + 1)
						events[j] = blocks
					}
				}
				if err := c.f.Tell(w, events...); err != nil {
					if !errors.Is(err, ErrClosed) {
						c.t.Errorf("%v: %v", op, err)
					}
					return
				}
				if rng.IntN(3) == 0 {
					c.f.Tell(w, repeats(before)...)
				}
				before = events
			}
		})
	}
	tellers.Wait()
}

// repeats are those of the events that can be told again without a generation.
func repeats(events []Event) (again []Event) {
	for _, ev := range events {
		switch ev.(type) {
		case MessageStored, NonMessageActivityStored, MessageRewound, BlocksChanged, ScopeTrimmed:
			again = append(again, ev)
		}
	}
	return again
}

func (c *crush) finish() {
	c.over.Store(true)
	c.helper.Wait()
	c.store.fail(false)
	c.clock.Add(50)
}

// Every kind of event, reads, streams, evictions, failing and succeeding flushes, barriers and pages at
// once, with budgets that are always exceeded: nothing races, memory is inside its budgets in the end,
// and every value that is shown is the one that counting all messages gives.
// covers: RT-034 RT-423 RT-420
func TestCrush(t *testing.T) {
	rounds, ops := 3, 120
	if testing.Short() {
		rounds, ops = 1, 60
	}
	for round := range rounds {
		c := newCrush(t)
		c.readers()
		c.play(uint64(round), ops)
		c.finish()
		var sum verdict
		for w, x := range c.worlds {
			if err := c.f.Settle(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			look := func(m readstate.MemberID, s readstate.ScopeID) (unread.Row, error) {
				return c.f.Runtime().Row(t.Context(), w, m, s)
			}
			if err := sum.compare(look, x.world); err != nil {
				t.Fatalf("round %d, %s: %v", round, w, err)
			}
		}
		c.inBudget(fmt.Sprint("round ", round))
		t.Logf("%+v", sum)
		if sum.hints+sum.exact <= sum.stale {
			t.Errorf("%+v", sum)
		}
	}
}

// inBudget flushes what is dirty, has each workspace take one more event in, and holds memory against
// its budgets.
func (c *crush) inBudget(what string) {
	c.t.Helper()
	c.flush()
	for w := range c.worlds {
		for range 30 {
			if err := c.f.Tell(w, EventLost{Scope: "s1"}); err != nil {
				c.t.Fatal(err)
			}
		}
		if err := c.f.Settle(c.t.Context(), w); err != nil {
			c.t.Fatal(err)
		}
	}
	c.flush()
	for w := range c.worlds {
		if err := c.f.Tell(w, EventLost{Scope: "s1"}); err != nil {
			c.t.Fatal(err)
		}
	}
	s := c.f.Stats()
	l := s.Budgets.Limits
	loaded := s.Runtime.Scopes // scopes of which a row is loaded stay
	if s.Books.Backlog > 2*len(c.worlds) || s.Queued != 0 || s.PendingScopes != 0 || s.Books.Owed != 0 ||
		s.WorkspaceCached > l.Cached+6 || s.WorkspaceScopes > l.Scopes+loaded+3 || s.WorkspaceHeld > l.HeldTotal+2 ||
		s.Runtime.WorkspaceIdleEntries > s.Runtime.Budgets.MaxEntries+8 || s.Runtime.Bytes > int64(s.Runtime.Budgets.MaxBytes) {
		c.t.Errorf("%s: %+v", what, s)
	}
	if s.Failures+s.Runtime.Alarms+s.DroppedEvents+s.Books.Lost+s.Books.Damaged > 0 {
		c.t.Errorf("%s: %+v", what, s)
	}
}

// A stop in the middle of all that ends every goroutine, and leaves a table that can be opened; so does
// a crash.
// covers: RT-032
func TestCrushStops(t *testing.T) {
	for _, crash := range []bool{false, true} {
		c := newCrush(t)
		c.readers()
		stop := make(chan struct{})
		var stopped sync.WaitGroup
		stopped.Go(func() {
			<-stop
			if crash {
				c.f.Abandon()
			} else {
				c.f.Close(t.Context()) // the store may be failing just now
			}
		})
		c.help(func(*rand.Rand) {
			if c.f.Stats().Events > 150 {
				select {
				case <-stop:
				default:
					close(stop)
				}
				c.over.Store(true)
			}
		})
		c.play(9, 80)
		c.over.Store(true)
		c.helper.Wait()
		select {
		case <-stop:
		default:
			close(stop)
		}
		stopped.Wait()
		if err := c.f.Tell(space0, EventLost{Scope: "s1"}); !errors.Is(err, ErrClosed) {
			t.Errorf("a stopped intake says %v", err)
		}
		c.store.fail(false)
		c.open()
		for m := model.MemberID(1); m <= actors; m++ {
			if _, err := c.f.Runtime().Summary(t.Context(), space0, memberOf(m)); err != nil {
				t.Error(err)
			}
		}
		if s := c.f.Stats(); s.Runtime.Alarms+s.Books.Damaged > 0 {
			t.Errorf("crash %t: %+v", crash, s)
		}
	}
}
