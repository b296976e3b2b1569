package intake

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// job is a task with people in it.
func job(s readstate.ScopeID, members ...readstate.MemberID) []Event {
	events := []Event{ScopeStateChanged{Scope: s, Type: readstate.Task}}
	for _, m := range members {
		events = append(events, MembershipChanged{Scope: s, Member: m, Joined: true})
	}
	return events
}

func delivered(s readstate.ScopeID, r readstate.Revision, to ...readstate.MemberID) MessageStored {
	m := msg(s, r, "a")
	m.Recipients = to
	return m
}

func (b *bench) barrier(s readstate.ScopeID, r readstate.Revision, q readstate.Seq, to ...readstate.MemberID) error {
	b.t.Helper()
	return b.f.Barrier(b.t.Context(), space0, Delivery{Scope: s, Revision: r, Activity: q, Recipients: to})
}

// A delivery that passed its barrier outlives a crash; what is ordinary, and dirty beside it, does
// not, is not written with it, and waits for the interval.
func TestBarrier(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(job("t", "a", "b", "x", "y")...)
	b.tell(job("u", "b")...)
	b.tell(room("c", "a", "b")...)
	b.flush()
	b.store.written()
	b.tell(delivered("t", 1, "b", "x"), delivered("u", 1, "b"), msg("c", 1, "a"),
		ManualUnreadSet{Scope: "c", Member: "b"}, ManualUnreadSet{Scope: "t", Member: "y"},
		NonMessageActivityStored{Scope: "t", Seq: 1, Actor: "a", HighSignal: true, Recipients: []readstate.MemberID{"x"}})
	before := b.f.Stats().Books.Backlog
	if err := b.barrier("t", 1, 0, "b", "x"); err != nil {
		t.Fatal(err)
	}
	rows := b.store.written()
	for _, row := range rows {
		if row.Scope != "t" || row.Member != "b" && row.Member != "x" || !row.Durable {
			t.Errorf("the barrier wrote %+v", row)
		}
	}
	if after := b.f.Stats().Books.Backlog; len(rows) != 2 || after != before-2 {
		t.Errorf("%d rows written, %d of %d still wait", len(rows), after, before)
	}
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 1})
	b.counts("x", "t", readstate.Values{Unread: 1, Activity: 1}) // its row as it was, with the activity
	b.counts("b", "u", readstate.Values{})
	b.counts("b", "c", readstate.Values{})
	// The delivery is told again, as its outbox does that never heard of the success: it counts once.
	b.tell(delivered("t", 1, "b", "x"))
	if err := b.barrier("t", 1, 0, "b", "x"); err != nil {
		t.Fatal(err)
	}
	b.counts("b", "t", readstate.Values{Unread: 1})
	b.tell(delivered("u", 1, "b"), delivered("t", 2, "b"))
	b.counts("b", "t", readstate.Values{Unread: 2})
	if s := b.f.Stats(); s.Flush.Barriers != 1 || s.Flush.Deferred+s.Failures+s.Runtime.Alarms > 0 {
		t.Errorf("%+v", s)
	}
	b.restart()
	b.counts("b", "t", readstate.Values{Unread: 2})
	b.counts("b", "u", readstate.Values{Unread: 1})
}

// A barrier in a scope that the table does not have yet leaves the scope as it began: whatever else
// was told of it can be told again.
func TestBarrierOfANewScope(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(job("t", "b", "x")...)
	b.tell(delivered("t", 1, "x"), delivered("t", 2, "b"))
	if err := b.barrier("t", 2, 0, "b"); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 1})
	if _, err := b.row("x", "t"); err == nil {
		t.Error("a row that nobody wrote came back")
	}
	b.tell(MembershipChanged{Scope: "t", Member: "x", Joined: true, EffectiveFrom: 1},
		delivered("t", 1, "x"), delivered("t", 2, "b"))
	b.counts("x", "t", readstate.Values{Unread: 1})
	b.counts("b", "t", readstate.Values{Unread: 1})
}

// Nothing is delivered that is not taken in, or not written: the delivery is deferred and tried again,
// which counts nothing twice.
func TestBarrierDefers(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(job("t", "b")...)
	b.tell(room("c", "b")...)
	b.tell(delivered("t", 1, "b"), msg("c", 1, "b"))
	for name, err := range map[string]error{
		"not told":          b.barrier("t", 2, 0, "b"),
		"activity not told": b.barrier("t", 1, 1, "b"),
		"ordinary scope":    b.barrier("c", 1, 0, "b"),
		"unknown scope":     b.barrier("z", 1, 0, "b"),
		"no scope":          b.barrier("", 1, 0, "b"),
		"crowd":             b.barrier("t", 1, 0, make([]readstate.MemberID, MaxRecipients+1)...),
		"other workspace":   b.f.Barrier(t.Context(), "?", Delivery{Scope: "t", Revision: 1}),
	} {
		if !errors.Is(err, ErrDeferred) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.store.fail(true)
	for range 3 {
		if err := b.barrier("t", 1, 0, "b"); !errors.Is(err, ErrDeferred) || !errors.Is(err, errFire) {
			t.Errorf("failing store: %v", err)
		}
	}
	if s := b.f.Stats().Flush; s.Deferred != 3 {
		t.Errorf("%+v", s)
	}
	b.store.fail(false)
	if err := b.barrier("t", 1, 0, "b"); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 1})
}

// A barrier never goes before a write of the same rows that is under way, and holds an older state.
func TestBarrierDuringFlush(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(job("t", "b")...)
	b.tell(delivered("t", 1, "b"))
	done := make(chan error, 1)
	b.store.during = func() {
		b.tell(delivered("t", 2, "b"))
		go func() { done <- b.barrier("t", 2, 0, "b") }()
		for range 10_000 { // the barrier gets every chance to be early
			runtime.Gosched()
			if len(done) > 0 {
				t.Error("the barrier did not wait")
				return
			}
		}
	}
	b.flush()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 2})
}

// A delivery that was overtaken, by another one or by a cursor, is taken in when it is told at last,
// and not called delivered before.
func TestLateDeliveries(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(job("t", "b", "x")...)
	b.tell(delivered("t", 1, "b"), ReadCursorAdvanced{Scope: "t", Member: "x", Revision: 4, Head: 4},
		delivered("t", 5, "b"))
	acted := func(q readstate.Seq) NonMessageActivityStored {
		return NonMessageActivityStored{Scope: "t", Seq: q, Actor: "a", HighSignal: true, Recipients: []readstate.MemberID{"b"}}
	}
	b.tell(acted(1), acted(3))
	b.hides("b", "t", unread.Stale) // one of those that nobody told of may be for b
	b.restart()
	b.counts("b", "t", readstate.Values{Unread: 2, Activity: 2})
	late := func() {
		t.Helper()
		if b.barrier("t", 3, 0, "b") == nil || b.barrier("t", 0, 2, "b") == nil {
			t.Fatal("what nobody told of is delivered")
		}
	}
	late()
	b.restart()
	late()
	three := delivered("t", 3, "b", "x")
	three.Mentions = []readstate.MemberID{"b", "x"}
	b.tell(three, three, acted(2), acted(2))
	b.counts("b", "t", readstate.Values{Unread: 3, Attention: 1, Activity: 3})
	b.counts("x", "t", readstate.Values{}) // x read past it
	if err := errors.Join(b.barrier("t", 3, 0, "b", "x"), b.barrier("t", 0, 2, "b")); err != nil {
		t.Error(err)
	}
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 3, Attention: 1, Activity: 3})
	b.tell(MessageRewound{Scope: "t", Removed: []MessageFacts{{Revision: 3, Author: "a", Recipients: []readstate.MemberID{"b", "x"}, Mentions: three.Mentions}}})
	b.counts("b", "t", readstate.Values{Unread: 2, Activity: 3})
	b.tell(ReadCursorAdvanced{Scope: "t", Member: "b", Revision: 1})
	if row, err := b.row("b", "t"); err == nil && row.Values.Unread != 1 {
		t.Errorf("%+v", row.Values)
	}
	if s := b.f.Stats(); s.Failures+s.Runtime.Alarms > 0 {
		t.Errorf("%+v", s)
	}
}

// errand is one delivery as its outbox knows it.
type errand struct {
	event     MessageStored
	delivered bool
	removed   bool
	why       error // it was deferred last
}

// Whatever a crash cuts off, what was delivered is shown, nothing is shown that was never stored, and
// once everything was told again each delivery counts once.
func TestDeliveriesOverCrashes(t *testing.T) {
	seeds := 24
	if os.Getenv("TIDEMARK_SOAK") != "" {
		seeds = 600
	}
	for seed := range seeds {
		errands(t, uint64(seed))
	}
}

func errands(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 9))
	cfg := Config{}
	cfg.Flush.FlushBatchSize = 1 + rng.IntN(3)
	cfg.Limits.Cached, cfg.Limits.Held = 1+rng.IntN(8), 1+rng.IntN(4)
	b := newBench(t, cfg)
	people := []readstate.MemberID{"b", "x", "y"}
	b.tell(job("t", people...)...)
	b.flush()
	var all []*errand
	read := map[readstate.MemberID]readstate.Revision{}
	retell := func(e *errand) {
		b.tell(e.event)
		err := b.barrier("t", e.event.Revision, 0, e.event.Recipients...)
		if e.delivered = e.delivered || err == nil; err != nil {
			e.why = err
		}
	}
	unroll := func(e *errand) {
		b.tell(MessageRewound{Scope: "t", Removed: []MessageFacts{{
			Revision: e.event.Revision, Author: "a", Recipients: e.event.Recipients,
		}}})
	}
	check := func(what string, exact bool) {
		t.Helper()
		for _, m := range people {
			row, err := b.row(m, "t")
			if err != nil {
				continue // withheld
			}
			var least, most uint64
			for _, e := range all {
				if e.event.Revision <= row.Row.Read || !slices.Contains(e.event.Recipients, m) {
					continue
				}
				most++
				if e.delivered && !e.removed || exact && !e.removed {
					least++
				}
			}
			if exact {
				most = least
			}
			if n := row.Values.Unread; n < least || n > most {
				t.Fatalf("seed %d, %s: %s sees %d, want %d to %d; %+v", seed, what, m, n, least, most, row.Row)
			}
		}
	}
	for step := range 80 {
		what := fmt.Sprint("step ", step)
		switch n := rng.IntN(12); {
		case n < 4:
			e := &errand{event: delivered("t", readstate.Revision(len(all)+1))}
			for _, m := range people {
				if rng.IntN(2) == 0 {
					e.event.Recipients = append(e.event.Recipients, m)
				}
			}
			if all = append(all, e); rng.IntN(4) > 0 {
				b.tell(e.event)
			}
		case n < 7 && len(all) > 0:
			retell(all[rng.IntN(len(all))]) // some outbox, at some time
		case n == 7 && len(all) > 0:
			e := all[rng.IntN(len(all))]
			if e.removed = true; rng.IntN(2) == 0 {
				unroll(e)
			}
		case n == 8 && len(all) > 0:
			m := people[rng.IntN(len(people))]
			read[m] = max(read[m], readstate.Revision(rng.IntN(len(all)+1)))
			b.tell(ReadCursorAdvanced{Scope: "t", Member: m, Revision: read[m]})
		case n == 9:
			b.store.failAfter(rng.IntN(4) - 1)
			b.f.Flush(t.Context())
			b.store.failAfter(-1)
		case n == 10:
			b.crash()
		}
		check(what, false)
	}
	for _, e := range all {
		retell(e)
		if e.removed {
			unroll(e)
		}
		if !e.delivered {
			t.Fatalf("seed %d: %d is not delivered: %v", seed, e.event.Revision, e.why)
		}
	}
	check("in the end", true)
	b.restart()
	check("after all", true)
	if s := b.f.Stats(); s.Failures+s.Runtime.Alarms > 0 {
		t.Fatalf("seed %d: %+v", seed, s)
	}
}
