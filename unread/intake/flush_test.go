package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// timed runs a test on a clock of its own, with the default interval unless cfg says otherwise.
func timed(
	t *testing.T, cfg Config, f func(t *testing.T, b *bench, pass func(time.Duration)),
) {
	synctest.Test(t, func(t *testing.T) {
		if cfg.Flush.FlushInterval == 0 {
			cfg.Flush.FlushInterval = snapshot.DefaultFlushInterval
		}
		b := newBench(t, cfg)
		f(t, b, func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		})
		b.f.Abandon() // its goroutines end with the bubble
	})
}

// Nothing is written before the interval is over, and then each changed row once, whatever
// changed it and how often.
// covers: RT-047 RT-056 RT-272 RT-356 RT-416 RT-435 RT-471
func TestFlushByInterval(t *testing.T) {
	timed(t, Config{}, func(t *testing.T, b *bench, pass func(time.Duration)) {
		b.tell(room("c", "a", "b")...)
		for r := readstate.Revision(1); r <= 50; r++ {
			b.tell(msg("c", r, "a"), ReadCursorAdvanced{Scope: "c", Member: "b", Revision: r})
		}
		b.f.Runtime().HasUnread(space0, "b")
		b.shows("b", "c", 0, unread.Ready)
		// Writes and reads return before anything is written.
		// covers: RT-004 RT-134 RT-141 RT-270 RT-278 RT-488 RT-494
		pass(29 * time.Second)
		if rows := b.store.written(); len(rows) > 0 {
			t.Fatalf("%d rows before the interval", len(rows))
		}
		if n := b.f.Stats().Books.Backlog; n != 3 {
			t.Errorf("backlog of %d rows", n)
		}
		pass(time.Second)
		if rows := b.store.written(); len(rows) != 3 {
			t.Errorf("%d rows for one scope with two members", len(rows))
		}
		// A message to everybody is one row and its author's.
		// covers: RT-065 RT-267 RT-271
		b.tell(msg("c", 51, "a"))
		pass(30 * time.Second)
		if rows := b.store.written(); len(rows) != 2 || rows[0].Member != "" || rows[1].Member != "a" {
			t.Errorf("%+v", rows)
		}
		// Reads make nothing dirty.
		// covers: RT-268
		for range 10 {
			b.f.Runtime().HasUnread(space0, "b")
			b.f.Runtime().Rows(t.Context(), space0, "b", "", 10)
			b.shows("b", "c", 1, unread.Ready)
		}
		pass(5 * time.Minute)
		if rows := b.store.written(); len(rows) > 0 {
			t.Errorf("reads wrote %+v", rows)
		}
	})
}

// covers: RT-273 RT-436 RT-417
func TestFlushInBatches(t *testing.T) {
	timed(t, Config{}, func(t *testing.T, b *bench, pass func(time.Duration)) {
		b.tell(ScopeStateChanged{Scope: "c", Type: readstate.Channel})
		for i := range 1000 {
			b.tell(MembershipChanged{
				Scope: "c", Member: readstate.MemberID(fmt.Sprintf("m%04d", i)), Joined: true,
			})
		}
		pass(30 * time.Second)
		b.store.mu.Lock()
		defer b.store.mu.Unlock()
		if n := len(b.store.upserts); n != 2 || len(b.store.upserts[0]) != 1000 || len(b.store.upserts[1]) != 1 {
			t.Errorf("%d flushes for 1,001 rows", n)
		}
	})
}

// A message makes its scope dirty, and the rows of its author and of those it names; they wait for the
// flush. Everybody else's value changes without a row of theirs.
// covers: RT-120
func TestAMessageMakesItsScopeDirty(t *testing.T) {
	timed(t, Config{}, func(t *testing.T, b *bench, pass func(time.Duration)) {
		b.tell(room("c", crowdIDs(40)...)...)
		b.flush()
		b.store.written()
		m := msg("c", 1, "m00")
		m.Mentions = []readstate.MemberID{"m07"}
		b.tell(m)
		for _, id := range crowdIDs(40)[1:] {
			b.shows(id, "c", 1, unread.Ready)
		}
		if n, rows := b.f.Stats().Books.Backlog, b.store.written(); n != 3 || len(rows) > 0 {
			t.Errorf("a backlog of %d rows, %d written", n, len(rows))
		}
		pass(30 * time.Second)
		var who []readstate.MemberID
		for _, r := range b.store.written() {
			who = append(who, r.Member)
		}
		slices.Sort(who)
		if !slices.Equal(who, []readstate.MemberID{"", "m00", "m07"}) {
			t.Errorf("rows of %q were written", who)
		}
	})
}

// crowdIDs are n members.
func crowdIDs(n int) (ids []readstate.MemberID) {
	for i := range n {
		ids = append(ids, readstate.MemberID(fmt.Sprintf("m%02d", i)))
	}
	return ids
}

// A failed flush is tried again after pauses that grow, and its rows stay dirty.
// covers: RT-274 RT-275 RT-276 RT-425 RT-433 RT-417
func TestFlushRetries(t *testing.T) {
	timed(t, Config{}, func(t *testing.T, b *bench, pass func(time.Duration)) {
		b.tell(room("c", "a", "b")...)
		b.tell(msg("c", 1, "a"))
		b.shows("b", "c", 1, unread.Ready)
		b.store.fail(true)
		var at []time.Duration
		start := time.Now()
		for len(at) < 5 {
			pass(time.Second)
			if b.store.written() != nil {
				at = append(at, time.Since(start))
			}
		}
		for i, seconds := range []float64{30, 31, 33, 37, 45} {
			if at[i].Seconds() != seconds {
				t.Fatalf("attempts after %v", at)
			}
		}
		b.clock.Add(60_000)
		s := b.f.Stats()
		if s.Books.Backlog != 3 || s.Books.OldestDirty != 60_000 || s.Flush.Failures != 5 {
			t.Errorf("%+v %+v", s.Books, s.Flush)
		}
		b.shows("b", "c", 1, unread.Ready) // reads go on
		b.store.fail(false)
		pass(16 * time.Second)
		if s := b.f.Stats(); s.Books.Backlog != 0 || s.Flush.Rows != 3 {
			t.Errorf("%+v %+v", s.Books, s.Flush)
		}
	})
}

// A row that changes while it is being written stays dirty and is written again.
// covers: RT-279
func TestChangeInFlight(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"))
	book := b.f.books()[0]
	batch := book.Take(10)
	b.tell(msg("c", 2, "a"))
	if err := b.store.Store.Upsert(t.Context(), batch.Rows); err != nil {
		t.Fatal(err)
	}
	book.Done(batch)
	if n := book.Backlog(); n != 2 {
		t.Fatalf("%d rows are dirty", n)
	}
	b.restart()
	b.shows("b", "c", 2, unread.SnapshotServing)
	b.shows("a", "c", 0, unread.SnapshotServing)
}

// A shorter interval makes the lag shorter, and never makes a hint exact.
// covers: RT-448 RT-449 RT-442 RT-357
func TestShortInterval(t *testing.T) {
	cfg := Config{}
	cfg.Flush.FlushInterval = time.Second
	timed(t, cfg, func(t *testing.T, b *bench, pass func(time.Duration)) {
		b.tell(room("c", "a", "b")...)
		b.tell(msg("c", 1, "a"))
		pass(time.Second)
		b.tell(msg("c", 2, "a"))
		b.crash()
		b.shows("b", "c", 1, unread.SnapshotServing)
	})
}

// An orderly stop flushes once, a crash does not.
// covers: RT-032
func TestStop(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"))
	if err := b.f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.f.Tell(space0, msg("c", 2, "a")); err == nil {
		t.Error("a closed intake takes events")
	}
	b.open()
	b.shows("b", "c", 1, unread.SnapshotServing)
	b.tell(msg("c", 2, "a"))
	b.f.Abandon()
	if err := b.f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.shows("b", "c", 1, unread.SnapshotServing)
}

// An orderly stop takes in what waits before it flushes; what cannot be read holds it up no longer than
// its first failure, and a store that stands still half of the time that there is.
// covers: RT-032
func TestStopTakesInWhatWaits(t *testing.T) {
	for _, store := range []string{"sound", "failing", "still"} {
		t.Run(store, func(t *testing.T) {
			b := newBench(t, Config{})
			b.tell(room("c", "a", "b")...)
			b.tell(append(room("d", "a", "b"), ScopeStateChanged{Scope: "t", Parent: "c"})...)
			b.tell(msg("d", 1, "a"))
			b.restart()
			gate := make(chan struct{})
			b.store.mu.Lock()
			b.store.gate = gate
			b.store.mu.Unlock()
			if err := b.f.Tell(space0, msg("c", 1, "a"), MembershipChanged{Scope: "c", Member: "x", Joined: true},
				MembershipChanged{Scope: "t", Member: "x", Joined: true}, msg("t", 1, "a")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if store == "still" {
				ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
			} else {
				b.store.fail(store == "failing")
				close(gate)
			}
			defer cancel()
			err := b.f.Close(ctx)
			if ctx.Err() != nil && store != "still" {
				t.Errorf("the stop took all of its time: %v", err)
			}
			if err := b.f.Tell(space0, msg("c", 2, "a")); !errors.Is(err, ErrClosed) {
				t.Errorf("told after the stop: %v", err)
			}
			b.store.fail(false)
			if store == "still" {
				close(gate)
			}
			b.open()
			if store == "sound" {
				b.shows("b", "c", 1, unread.SnapshotServing)
				b.shows("x", "t", 1, unread.SnapshotServing)
			}
			b.shows("b", "d", 1, unread.SnapshotServing)
		})
	}
}

// Once an intake has stopped, nothing of it writes any more: the rows may be somebody else's.
func TestNothingIsWrittenAfterAStop(t *testing.T) {
	for _, crash := range []bool{false, true} {
		b := newBench(t, Config{})
		b.tell(room("c", "a", "b")...)
		b.tell(msg("c", 1, "a"))
		old := b.f
		if crash {
			old.Abandon()
		} else if err := old.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.store.written()
		if err := old.Flush(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("crash %t: a flush after it: %v", crash, err)
		}
		if err := old.Barrier(t.Context(), space0, Delivery{Scope: "c", Revision: 1}); !errors.Is(err, ErrClosed) {
			t.Errorf("crash %t: a barrier after it: %v", crash, err)
		}
		if rows := b.store.written(); len(rows) > 0 {
			t.Errorf("crash %t: %d rows were written after it", crash, len(rows))
		}
	}
}

// A stop ends flushes of operators, also those that wait for another one; the last flush writes what
// they left.
func TestStopEndsAFlush(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"))
	stopped := make(chan error, 1)
	b.store.during = func() {
		go func() { stopped <- b.f.Close(context.Background()) }()
		if err := b.f.Flush(context.Background()); !errors.Is(err, ErrClosed) {
			t.Errorf("a flush that waited: %v", err)
		}
	}
	b.f.Flush(context.Background()) // its write ends with the stop, or was faster
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	b.open()
	b.shows("b", "c", 1, unread.SnapshotServing)
}

// Events, reads, flushes, evictions and stops at once: nothing races, and nothing contradicts
// itself.
// covers: RT-034
func TestEverythingAtOnce(t *testing.T) {
	roster := &people{}
	for i := range 4 {
		roster.set(1, readstate.ScopeID(fmt.Sprint("s", i)), crowd(8)...)
	}
	cfg := Config{Roster: roster}
	cfg.Limits.Cached, cfg.Runtime.MaxEntries = 4, 12
	cfg.Flush.FlushInterval = time.Millisecond
	b := newBench(t, cfg)
	var wg sync.WaitGroup
	const rounds = 60
	for i := range 4 {
		scope := readstate.ScopeID(fmt.Sprint("s", i))
		wg.Go(func() {
			for r := readstate.Revision(1); r <= rounds; r++ {
				m := msg(scope, r, "m00")
				m.Mentions = []readstate.MemberID{"m01"}
				b.f.Tell(space0, m)
				if r%3 == 0 {
					b.f.Tell(space0, MessageRewound{Scope: scope, Removed: []MessageFacts{{Revision: r - 1, Author: "m00"}}})
				}
				if r%7 == 0 {
					b.f.Tell(space0, ReadCursorAdvanced{Scope: scope, Member: "m02", Revision: r - 2})
				}
			}
		})
	}
	for i := range 4 {
		member := readstate.MemberID(fmt.Sprintf("m%02d", i))
		wg.Go(func() {
			for range rounds {
				b.f.Runtime().HasUnread(space0, member)
				b.f.Runtime().Summary(t.Context(), space0, member)
				b.f.Runtime().Forget(space0, member)
				b.f.Stats()
			}
		})
	}
	wg.Wait()
	b.settle()
	for i := range 4 {
		scope := readstate.ScopeID(fmt.Sprint("s", i))
		row, err := b.row("m01", scope)
		if err != nil || row.Values.Unread != rounds-rounds/3 || row.Values.Attention != rounds-rounds/3 {
			t.Errorf("%s: %+v %s %v", scope, row.Values, row.State, err)
		}
	}
	if s := b.f.Stats(); s.Failures+s.Runtime.Alarms+s.DroppedEvents > 0 {
		t.Errorf("%+v", s)
	}
}
