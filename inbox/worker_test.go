package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// A batch that is broken off before its commit has changed nothing; the next one begins where the
// last committed one ended, also after a restart.
//
// covers: IN-082 IN-083 IN-084
func TestWorkerIsInterrupted(t *testing.T) {
	w := newWorld(t)
	fail := true
	b := w.inbox(func(o *Options) {
		o.OnProject = func(context.Context) error {
			if fail {
				return errInjected
			}
			return nil
		}
	})
	for _, m := range []readstate.MemberID{"Bo", "Bo", "Cy", "Dee"} {
		w.send(m)
	}
	before := w.all()
	if n, err := b.Work(t.Context()); !errors.Is(err, errInjected) || n != 0 || w.all() != before {
		t.Fatalf("%d, %v", n, err)
	}
	w.reopen()
	fail = false
	b = w.inbox()
	w.wantBadge(b, "H4 A0 P0 tail 4: Bo Cy Dee")
	w.ok(b.rescan(t.Context()))
	var order []string
	w.count = func(query string) {
		if strings.Contains(query, "ORDER BY p.position LIMIT") {
			order = append(order, query)
		}
	}
	b.Limits.BatchRows = 2
	if n := w.work(b); n != 4 {
		t.Errorf("%d items", n)
	}
	if w.count = nil; len(order) != 2 {
		t.Errorf("%d loads, each of the next items in their order", len(order))
	}
	w.wantBadge(b, "H4 A0 P4 tail 0: Bo Cy Dee")
	if got := w.maxima(); got != "Bo2 Cy3 Dee4" {
		t.Errorf("positions are %s", got)
	}
	before = w.all()
	b.Poke(w.key("Ada"))
	w.work(b)
	if w.all() != before {
		t.Error("working twice changed something")
	}
}

// Workers that run beside each other, and beside senders, skip nothing and do nothing twice; readers
// never see less than there is.
//
// covers: IN-065 IN-070 IN-088
func TestWorkersAtOnce(t *testing.T) {
	w := newWorld(t)
	b, other := w.inbox(), w.inbox()
	b.Limits.BatchRows, other.Limits.BatchRows = 3, 2
	const all = 150
	var wg sync.WaitGroup
	for _, m := range []readstate.MemberID{"Bo", "Cy", "Dee"} {
		wg.Go(func() {
			for range all / 3 {
				w.send(m)
			}
		})
	}
	done := make(chan struct{})
	for _, worker := range []*Inbox{b, other} {
		wg.Go(func() {
			for w.accepted() < all || worker.pending.len() > 0 {
				worker.Poke(w.key("Ada"))
				if _, err := worker.Work(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		senders := 0
		for {
			out, err := b.Badge(t.Context(), ada)
			if err != nil || len(out.Senders) < senders {
				t.Errorf("%s after %d senders: %v", textOf(out), senders, err)
				return
			}
			senders = len(out.Senders)
			select {
			case <-done:
				return
			default:
			}
		}
	})
	wg.Wait()
	close(done)
	readers.Wait()
	w.wantBadge(b, fmt.Sprintf("H%d A0 P%d tail 0: Bo Cy Dee", all, all))
	rows := w.query(`SELECT (SELECT max(p.position) FROM inbox_positions p WHERE p.sender = x.sender), x.position
  FROM inbox_sender_maxima x`)
	for _, r := range rows {
		if r[0] != r[1] {
			t.Errorf("position %v of %v", r[1], r[0])
		}
	}
	// The projection may go at any time.
	w.exec(`DELETE FROM inbox_sender_maxima`)
	w.exec(`DELETE FROM inbox_projections`)
	w.wantBadge(b, fmt.Sprintf("H%d A0 P0 tail %d: Bo Cy Dee", all, all))
}

func (w *world) accepted() int64 {
	v, err := w.store.InboxView(context.Background())
	if err != nil {
		return 0
	}
	defer v.Close()
	rows, err := v.Inboxes(context.Background(), []readstate.MemberKey{w.key("Ada")})
	if err != nil || len(rows) == 0 {
		return 0
	}
	return int64(rows[0].Accepted)
}

// Run works off what commits tell of, and what is found behind at its start; it ends at once.
func TestRun(t *testing.T) {
	w := newWorld(t)
	w.send("Bo")
	b := w.inbox()
	ended := make(chan error, 1)
	go func() { ended <- b.Run(t.Context()) }()
	wait := func(want string) {
		t.Helper()
		for {
			next := b.moved.next()
			if got := w.badge(b); got == want {
				return
			}
			select {
			case <-next:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s, want %s", w.badge(b), want)
			}
		}
	}
	wait("H1 A0 P1 tail 0: Bo")
	w.send("Cy")
	wait("H2 A0 P2 tail 0: Bo Cy")
	if err := b.Run(t.Context()); err == nil {
		t.Error("it runs twice")
	}
	b.Close()
	b.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := b.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after its end: %v", err)
	}
	w.send("Dee")
	w.wantBadge(b, "H3 A0 P2 tail 1: Bo Cy Dee")
}

// Figures tell the tail, the lag and how long badges took.
//
// covers: IN-164 IN-165 IN-166
func TestStats(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	w.send("Bo")
	w.badge(b)
	s := b.Stats()
	if s.TailRows != 2 || s.Lag != 2 || s.BadgeReads != 1 || s.Pending != 1 || s.BadgeBuckets[10] != 1 {
		t.Errorf("%+v", s)
	}
	w.clock.move(time.Second)
	w.step(b)
	if s = b.Stats(); s.Lag != 1 || s.Projected != 1 || s.Age != time.Second {
		t.Errorf("%+v", s)
	}
	w.work(b)
	w.badge(b)
	if s = b.Stats(); s.TailRows != 0 || s.Lag != 0 || s.BadgeReads != 2 || s.Projected != 2 || s.Pending != 0 {
		t.Errorf("%+v", s)
	}
}

// A rebuild resets greatest positions and P together or not at all; reads are exact meanwhile.
//
// covers: IN-148 IN-151 IN-152
func TestRebuild(t *testing.T) {
	w := newWorld(t)
	fail := false
	b := w.inbox(func(o *Options) {
		o.OnProject = func(context.Context) error {
			if fail {
				return errInjected
			}
			return nil
		}
	})
	w.send("Bo")
	w.ack(b, w.open1(b).Snapshot)
	w.send("Cy")
	w.work(b)
	before := w.all()
	fail = true
	if err := b.Rebuild(t.Context(), ada, 0); !errors.Is(err, errInjected) || w.all() != before {
		t.Errorf("%v", err)
	}
	fail = false
	w.ok(b.Rebuild(t.Context(), ada, 0))
	w.wantBadge(b, "H2 A1 P0 tail 2: Cy")
	if got := w.maxima(); got != "" {
		t.Errorf("positions are %s", got)
	}
	w.work(b)
	if w.all() != before {
		t.Error("it was rebuilt to something else")
	}
}

// Items, snapshots and receipts are kept each for a time of its own. What is trimmed and counts leaves
// somebody who vouches, so that a badge does not change and a rebuild comes to the same.
//
// covers: IN-147 IN-149 IN-150 IN-154 IN-155
func TestRetention(t *testing.T) {
	w := newWorld(t)
	const day = 24 * time.Hour
	b := w.inbox(func(o *Options) {
		o.Limits.KeepItems, o.Limits.KeepSnapshots, o.Limits.KeepReceipts = 10, 20, 30
	})
	ctx := t.Context()
	w.send("Bo")
	o := w.open1(b)
	op := Ack{OpID: "op", Snapshot: o.Snapshot}
	w.ok(second(b.Acknowledge(ctx, ada, op)))
	w.send("Cy")
	w.send("Cy")
	w.send("Dee")
	w.clock.move(5 * day)
	w.send("Dee")
	w.clock.move(6 * day)
	w.work(b)
	w.wantBadge(b, "H5 A1 P5 tail 0: Cy Dee")
	w.ok(b.upkeep(ctx))
	kept := w.query(`SELECT position FROM inbox_positions ORDER BY position`)
	if fmt.Sprint(kept) != "[[3] [4] [5]]" { // Cy's newest and Dee's newest below the floor vouch
		t.Errorf("kept are %v", kept)
	}
	w.wantBadge(b, "H5 A1 P5 tail 0: Cy Dee")
	if err := b.Rebuild(ctx, ada, 3); !errors.Is(err, ErrBelowFloor) {
		t.Errorf("below the floor: %v", err)
	}
	w.ok(b.Rebuild(ctx, ada, 4))
	w.wantBadge(b, "H5 A1 P4 tail 1: Cy Dee")
	w.work(b)
	w.wantBadge(b, "H5 A1 P5 tail 0: Cy Dee")
	w.exec(`DELETE FROM inbox_sender_maxima`)
	w.exec(`DELETE FROM inbox_projections`)
	w.wantBadge(b, "H5 A1 P4 tail 1: Cy Dee")
	w.b(b)
	w.work(b)
	w.wantBadge(b, "H5 A1 P5 tail 0: Cy Dee")

	// The snapshot is kept: it still authorises; then it is not, and says so.
	w.ok(second(b.Acknowledge(ctx, ada, Ack{"later", o.Snapshot})))
	w.clock.move(10 * day)
	w.ok(b.upkeep(ctx))
	if _, err := b.Acknowledge(ctx, ada, Ack{"latest", o.Snapshot}); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("with a snapshot that is not kept: %v", err)
	}
	if r, err := b.Acknowledge(ctx, ada, op); err != nil || !r.Duplicate || r.Acknowledged != 1 {
		t.Errorf("its receipt is kept: %+v, %v", r, err)
	}
	w.clock.move(10 * day)
	w.ok(b.upkeep(ctx))
	if _, err := b.Acknowledge(ctx, ada, op); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("neither is kept: %v", err)
	}
	w.wantBadge(b, "H5 A1 P5 tail 0: Cy Dee")
	w.ack(b, w.open1(b).Snapshot)
	w.send("Bo")
	w.clock.move(11 * day)
	w.work(b)
	w.ok(b.upkeep(ctx))
	if kept := w.query(`SELECT position FROM inbox_positions`); fmt.Sprint(kept) != "[[6]]" {
		t.Errorf("what nobody needs any more is kept: %v", kept)
	}
	w.wantBadge(b, "H6 A5 P6 tail 0: Bo")
}

// b makes Ada's inbox pending, as its next commit would.
func (w *world) b(b *Inbox) { b.Poke(w.key("Ada")) }
