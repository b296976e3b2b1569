package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// claim claims everything there is, as a worker of its own would.
func (w *world) claim(b *Outbox) (facts.Lease, []facts.Effect) {
	w.t.Helper()
	w.ok(b.rescan(w.t.Context()))
	lease := b.lease()
	batch, err := w.store.ClaimEffects(w.t.Context(), facts.EffectClaim{
		Terms: b.Terms, Lease: lease, Now: b.now(), Fresh: b.fresh.take(10), FreshRows: 100,
		Rows: 100, Recipients: 10_000, BehindFor: 1000,
	})
	w.ok(err)
	return lease, batch.Effects
}

func (w *world) deliver(b *Outbox, lease facts.Lease, effects []facts.Effect) facts.EffectsSettled {
	w.t.Helper()
	s := facts.EffectSettlement{
		Terms: b.Terms, Lease: lease, Now: b.now(), QueueLimit: 100,
		Held: map[readstate.MemberKey]struct{}{},
	}
	for i := range effects {
		s.Outcomes = append(s.Outcomes, facts.EffectOutcome{
			Effect: &effects[i], State: facts.EffectDelivered,
		})
	}
	settled, err := w.store.SettleEffects(w.t.Context(), s)
	w.ok(err)
	return settled
}

// A leased row is nobody else's, until the lease has run out; then whoever had it settles nothing.
func TestLeaseOfRows(t *testing.T) {
	w := newWorld(t)
	one, two := w.outbox(), w.outbox()
	id := w.post("t")
	lease, mine := w.claim(one)
	if len(mine) != 1 {
		t.Fatalf("%d rows", len(mine))
	}
	if n := w.rows(two); n != 0 {
		t.Fatalf("the other took %d", n)
	}
	// A later row of the same agents waits for the one that is being worked on.
	later := w.post("t")
	w.rows(two)
	if st := w.states()[later]; st.state != facts.EffectBehind {
		t.Errorf("%+v", st)
	}
	w.clock.move(one.Limits.LeaseFor - time.Millisecond)
	if n := w.rows(two); n != 0 {
		if st := w.states()[id]; st.state != facts.EffectLeased {
			t.Fatalf("taken before its time: %+v", st)
		}
	}
	w.clock.move(time.Millisecond)
	lease2, theirs := w.claim(two)
	if !slices.ContainsFunc(theirs, func(e facts.Effect) bool { return e.ID == id }) {
		t.Fatal("the lease ran out and nobody may have it")
	}
	settled := w.deliver(one, lease, mine)
	if settled.States[0] != 0 || settled.Wakes != 0 {
		t.Errorf("a lost lease settled %+v", settled)
	}
	w.deliver(two, lease2, theirs)
	w.clock.move(time.Hour)
	w.rows(two)
	if got := w.waiting("a0"); !slices.Equal(got, []string{id, later}) {
		t.Errorf("wakes %v", got)
	}
}

// What an owner of an earlier term held is free at once.
func TestLeaseOfEarlierTerm(t *testing.T) {
	w := newWorld(t)
	id := w.post("t")
	b := w.outbox()
	if _, mine := w.claim(b); len(mine) != 1 {
		t.Fatal("no row")
	}
	w.reopen()
	b = w.outbox()
	if n := w.rows(b); n != 1 {
		t.Fatalf("%d rows after the restart", n)
	}
	if got := w.waiting("a0"); !slices.Equal(got, []string{id}) {
		t.Errorf("wakes %v", got)
	}
}

// Who does not own a workspace any more neither claims nor settles in it.
func TestTermIsChecked(t *testing.T) {
	w := newWorld(t)
	w.post("t")
	stale := w.terms
	w.reopen()
	b := w.outbox(func(o *Options) {
		o.Terms = func(k facts.WorkspaceKey) (uint64, bool) { return stale[k], true }
	})
	if n := w.rows(b); n != 0 {
		t.Errorf("claimed %d rows with an old term", n)
	}
	lease, mine := w.claim(w.outbox())
	if len(mine) != 1 {
		t.Fatal("no row")
	}
	if settled := w.deliver(b, lease, mine); settled.States[0] != 0 || settled.Wakes != 0 {
		t.Errorf("settled with an old term: %+v", settled)
	}
	e := Endpoint{URL: "https://example.com/", Secret: secretText}
	if err := b.PutEndpoint(t.Context(), space, "a0", e); !errors.Is(err, facts.ErrNotOwner) {
		t.Errorf("put endpoint: %v", err)
	}
	nobody := w.outbox(func(o *Options) {
		o.Terms = func(facts.WorkspaceKey) (uint64, bool) { return 0, false }
	})
	if n := w.rows(nobody); n != 0 {
		t.Errorf("claimed %d rows of others", n)
	}
	if err := nobody.PutEndpoint(t.Context(), space, "a0", e); !errors.Is(err, facts.ErrNotOwner) {
		t.Errorf("put endpoint: %v", err)
	}
}

// Two workers at once take every row once, and each agent's in order.
func TestTwoWorkers(t *testing.T) {
	w := newWorld(t)
	var want []string
	for range 200 {
		want = append(want, w.post("t"))
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	tried := map[facts.EventKey]int{}
	for range 2 {
		b := w.outbox(func(o *Options) {
			o.Limits.BatchRows, o.Limits.FreshRows = 10, 10
			o.OnStep = func(_ context.Context, s Step) error {
				if s.Stage == StageAccount && !s.Done {
					mu.Lock()
					tried[s.Row.Key]++
					mu.Unlock()
				}
				return nil
			}
		})
		all.Go(func() {
			for range 200 {
				if err := b.rescan(t.Context()); err != nil {
					t.Error(err)
				}
				if _, _, err := b.workRows(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	w.clock.move(time.Hour)
	w.rows(w.outbox())
	for key, n := range tried {
		if n != 1 {
			t.Errorf("row %d was worked on %d times", key, n)
		}
	}
	for _, a := range []readstate.MemberID{"a0", "a1", "a2"} {
		if got := w.waiting(a); !slices.Equal(got, want) {
			t.Errorf("%s: %d of %d wakes, or another order", a, len(got), len(want))
		}
	}
}

// The outbox raises no LSN and touches nothing that is counted.
//
// covers: RT-394, RT-395
func TestStatementsOfARow(t *testing.T) {
	w := newWorld(t)
	lsn := w.query(`SELECT lsn FROM workspaces`)[0][0]
	w.post("t")
	w.assign("t", "h1")
	after := w.query(`SELECT lsn FROM workspaces`)[0][0]
	if lsn == after {
		t.Fatal("the posts have no commit")
	}
	s := &spy{}
	b := w.outbox(spied(s))
	w.sql.reset()
	if n := w.rows(b); n != 2 {
		t.Fatalf("%d rows", n)
	}
	if now := w.query(`SELECT lsn FROM workspaces`)[0][0]; now != after {
		t.Errorf("lsn %v became %v", after, now)
	}
	mayRead := []string{"workspaces", "members", "outbox", "outbox_state", "outbox_progress",
		"outbox_waits", "wakes", "wake_endpoints"}
	for _, query := range w.sql.list() {
		for _, table := range tablesOf(query) {
			if !slices.Contains(mayRead, table) {
				t.Errorf("table %s in %s", table, query)
			}
		}
	}
	if n := len(w.sql.list()); n > 60 {
		t.Errorf("%d statements for two rows", n)
	}
	if calls := s.take(); len(calls) != 6 {
		t.Errorf("ports were called %v", calls)
	}
}
