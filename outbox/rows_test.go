package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// spy is every port at once and remembers what it was asked.
type spy struct {
	mu    sync.Mutex
	calls []string
	fail  map[Stage]error
	rows  []facts.OutboxRow // as projected
	upped []readstate.MemberKey
}

func (s *spy) note(stage Stage, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, text)
	return s.fail[stage]
}

func (s *spy) Project(_ context.Context, _ readstate.WorkspaceID, row *facts.OutboxRow) error {
	s.mu.Lock()
	s.rows = append(s.rows, *row)
	s.mu.Unlock()
	return s.note(StageProjection, "project")
}

func (s *spy) Accounted(
	_ context.Context, _ readstate.WorkspaceID, lsn readstate.LSN, _ readstate.ScopeKey,
	humans []readstate.MemberKey,
) error {
	return s.note(StageAccount, fmt.Sprintf("account %d", len(humans)))
}

func (s *spy) Upsert(_ context.Context, _ readstate.WorkspaceID, row *facts.OutboxRow) error {
	s.mu.Lock()
	s.upped = append(s.upped, row.Humans...)
	s.mu.Unlock()
	return s.note(StageUpsert, fmt.Sprintf("upsert %d", len(row.Humans)))
}

func (s *spy) set(stage Stage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = map[Stage]error{stage: err}
}

func (s *spy) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func spied(s *spy) func(o *Options) {
	return func(o *Options) {
		o.Projection, o.Accounting, o.Barrier, o.RequireBarrier = s, s, s, true
	}
}

// The stages of a row come in their order, wakes after all of them, and the mark with the wakes.
//
// covers: RT-109, RT-179, RT-203
func TestStagesInOrder(t *testing.T) {
	for _, kind := range []string{"message", "activity"} {
		t.Run(kind, func(t *testing.T) {
			w, s := newWorld(t), &spy{}
			var steps []string
			b := w.outbox(spied(s), func(o *Options) {
				o.OnStep = func(_ context.Context, at Step) error {
					when := "before"
					if at.Done {
						when = "after"
					}
					queued := len(w.query(`SELECT 1 FROM wakes`))
					delivered := len(w.query(`SELECT 1 FROM outbox_state WHERE state = 5`))
					steps = append(steps, fmt.Sprintf("%s %s: %d wakes, %d delivered", when, at.Stage,
						queued, delivered))
					return nil
				}
			})
			if kind == "message" {
				w.post("t")
			} else {
				w.assign("t", "h0")
			}
			if n := w.rows(b); n != 1 {
				t.Fatalf("%d rows", n)
			}
			want := []string{
				"before projection: 0 wakes, 0 delivered", "after projection: 0 wakes, 0 delivered",
				"before account: 0 wakes, 0 delivered", "after account: 0 wakes, 0 delivered",
				"before upsert: 0 wakes, 0 delivered", "after upsert: 0 wakes, 0 delivered",
				"before wake: 0 wakes, 0 delivered", "after delivered: 3 wakes, 1 delivered",
			}
			if diff := cmp.Diff(want, steps); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"project", "account 3", "upsert 3"}, s.take()); diff != "" {
				t.Error(diff)
			}
			// The barrier was given the frozen humans and nobody else, the agents were woken.
			humans := []readstate.MemberKey{w.key("h0"), w.key("h1"), w.key("h2")}
			if diff := cmp.Diff(humans, s.upped); diff != "" {
				t.Error(diff)
			}
			for _, m := range []readstate.MemberID{"a0", "a1", "a2"} {
				if n := len(w.waiting(m)); n != 1 {
					t.Errorf("%s has %d wakes", m, n)
				}
			}
			for _, m := range []readstate.MemberID{"h0", "h1", "h2", "x", "author"} {
				if n := len(w.waiting(m)); n != 0 {
					t.Errorf("%s has %d wakes", m, n)
				}
			}
			if n := w.rows(b); n != 0 {
				t.Errorf("a delivered row is worked off again: %d", n)
			}
		})
	}
}

// assign is a typed activity of a task.
func (w *world) assign(task readstate.ScopeID, to readstate.MemberID) {
	w.t.Helper()
	_, err := w.lane.PutTask(w.t.Context(), space, facts.PutTask{
		Scope: task, Actor: "author", Assignee: &to, By: facts.Actor{Trusted: true},
	})
	w.ok(err)
}

// What is missing, pending or failing before the wakes defers a row: nobody is woken, nothing is
// marked, and no budget is spent, however often.
//
// covers: RT-208, RT-209, RT-210, RT-211, RT-212, RT-213, RT-396, RT-469
func TestDeferred(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(o *Options, s *spy)
		mend  func(o *Outbox, s *spy)
	}{
		{"no runtime", func(o *Options, _ *spy) { o.Accounting = nil },
			func(b *Outbox, s *spy) { b.Accounting = s }},
		{"not accounted", func(_ *Options, s *spy) { s.set(StageAccount, ErrPending) }, nil},
		{"accounting fails", func(_ *Options, s *spy) { s.set(StageAccount, errInjected) }, nil},
		{"no barrier", func(o *Options, _ *spy) { o.Barrier = nil },
			func(b *Outbox, s *spy) { b.Barrier = s }},
		{"upsert fails", func(_ *Options, s *spy) { s.set(StageUpsert, errInjected) }, nil},
		{"upsert pending", func(_ *Options, s *spy) { s.set(StageUpsert, ErrPending) }, nil},
		{"projection pending", func(_ *Options, s *spy) { s.set(StageProjection, ErrPending) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s := newWorld(t), &spy{}
			b := w.outbox(spied(s), func(o *Options) { c.spoil(o, s) })
			message := w.post("t")
			w.assign("t", "h1")
			tries := 10
			if c.name == "upsert fails" {
				tries = 100
			}
			for range tries {
				if n := w.rows(b); n != 2 {
					t.Fatalf("%d rows were tried", n)
				}
				w.clock.move(b.Limits.DeferMost)
			}
			states := w.states()
			if len(states) != 2 {
				t.Fatalf("%v", states)
			}
			for id, st := range states {
				// The later one shares agents, so it may be behind: then it was tried as often.
				if st.state != facts.EffectDeferred || st.failures != 0 || st.deferrals != tries {
					t.Errorf("%s: %+v", id, st)
				}
			}
			if n := len(w.waiting("a0")); n != 0 {
				t.Errorf("%d wakes of a deferred row", n)
			}
			s.set(0, nil)
			if c.mend != nil {
				c.mend(b, s)
			}
			w.rows(b)
			for id, st := range w.states() {
				if st.state != facts.EffectDelivered || st.failures != 0 {
					t.Errorf("%s: %+v", id, st)
				}
			}
			if got := w.waiting("a0"); len(got) != 2 || got[0] != message {
				t.Errorf("wakes %v", got)
			}
		})
	}
}

// A row that is tried again, in another process too, is the same row with the same recipients,
// whoever is watching or assigned by then, and its wakes exist once.
//
// covers: RT-196, RT-214, RT-216, RT-218
func TestRetriedRowIsFrozen(t *testing.T) {
	w, s := newWorld(t), &spy{}
	b := w.outbox(spied(s))
	w.assign("t", "h0")
	w.rows(b)
	s.rows = nil
	s.set(StageUpsert, errInjected)
	id := w.post("t", "x")
	w.rows(b)
	_, err := w.lane.SetFollow(t.Context(), space, facts.SetFollow{
		Scope: "t", Member: "a1", Following: false, Trusted: true,
	})
	w.ok(err)
	w.assign("t", "h2")
	w.reopen()
	if st := w.states()[id]; st.state != facts.EffectDeferred {
		t.Fatalf("after the restart: %+v", st)
	}
	s.set(StageUpsert, nil)
	w.clock.move(time.Minute)
	w.rows(w.outbox(spied(s)))
	if len(s.rows) < 2 {
		t.Fatal("the row was not tried again")
	}
	var again []facts.OutboxRow
	for _, row := range s.rows {
		if row.ID == id {
			again = append(again, row)
		}
	}
	if len(again) != 2 {
		t.Fatalf("tried %d times", len(again))
	}
	if diff := cmp.Diff(again[0], again[1]); diff != "" {
		t.Error(diff)
	}
	if EventID(&again[0]) != EventID(&again[1]) {
		t.Error("the event has two names")
	}
	for _, m := range []readstate.MemberID{"a0", "a1", "a2"} {
		n := 0
		for _, got := range w.waiting(m) {
			if got == id {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s was woken %d times", m, n)
		}
	}
}

// A failure is counted, and after so many the row is a dead letter, which can be taken up again.
func TestRowBudget(t *testing.T) {
	w, s := newWorld(t), &spy{}
	b := w.outbox(spied(s), func(o *Options) { o.Limits.RowAttempts = 3 })
	s.set(StageProjection, errInjected)
	id := w.post("t")
	later := ""
	for try := 1; try <= 3; try++ {
		w.rows(b)
		st := w.states()[id]
		if st.failures != try {
			t.Fatalf("try %d: %+v", try, st)
		}
		if try == 1 {
			if want := w.clock.now().Add(b.Limits.RetryFirst).UnixMilli(); st.due != want {
				t.Errorf("due at %d, want %d", st.due, want)
			}
			s.set(0, nil)
			later = w.post("t")
			w.rows(b)
			if st := w.states()[later]; st.state != facts.EffectBehind {
				t.Errorf("a later row of the same agents: %+v", st)
			}
			s.set(StageProjection, errInjected)
		}
		w.clock.move(b.Limits.RetryMost)
	}
	if st := w.states()[id]; st.state != facts.EffectDead || !strings.Contains(st.err, "injected") {
		t.Fatalf("%+v", st)
	}
	letters, err := b.DeadLetters(t.Context(), space, 0, 10)
	if err != nil || len(letters) < 1 || !letters[0].Row || letters[0].Message.MessageID != id ||
		letters[0].Attempts != 3 || letters[0].Message.Event == "" {
		t.Fatalf("%+v %v", letters, err)
	}
	s.set(0, nil)
	w.clock.move(time.Hour)
	w.rows(b)
	if got := w.waiting("a0"); !slices.Equal(got, []string{later}) {
		t.Fatalf("the rest waits for the dead: %v", got)
	}
	w.ok(b.Requeue(t.Context(), space, letters[0].ID))
	w.rows(b)
	if got := w.waiting("a0"); !slices.Equal(got, []string{later, id}) {
		t.Errorf("after requeue: %v", got)
	}
	if err := b.Requeue(t.Context(), space, letters[0].ID); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("requeued twice: %v", err)
	}
}

// Rows of one agent are delivered in their order; those of others do not wait.
func TestRowsInOrder(t *testing.T) {
	w, s := newWorld(t), &spy{}
	w.task("u", "author", "a1", "a0")
	w.task("v", "author", "a1", "h1")
	w.task("x", "author", "a2")
	b := w.outbox(spied(s))
	s.set(StageAccount, ErrPending)
	first := w.post("u") // a0, a1
	w.rows(b)
	s.set(0, nil)
	second := w.post("v") // a1: behind the first
	third := w.post("x")  // a2: free
	w.rows(b)
	if got := w.waiting("a2"); !slices.Equal(got, []string{third}) {
		t.Errorf("a2: %v", got)
	}
	if got := w.waiting("a1"); len(got) != 0 {
		t.Errorf("a1 was told of the second before the first: %v", got)
	}
	if st := w.states()[second]; st.state != facts.EffectBehind {
		t.Errorf("%+v", st)
	}
	w.clock.move(b.Limits.DeferMost)
	w.rows(b)
	if got := w.waiting("a1"); !slices.Equal(got, []string{first, second}) {
		t.Errorf("a1: %v", got)
	}
	if rows := w.query(`SELECT 1 FROM outbox_waits`); len(rows) != 0 {
		t.Errorf("%d waits are left", len(rows))
	}
}

// Many rows behind one are delivered soon after it, in their order, in a few claims.
func TestManyRowsBehind(t *testing.T) {
	w, s := newWorld(t), &spy{}
	b := w.outbox(spied(s), func(o *Options) { o.Limits.BatchRows = 50 })
	s.set(StageAccount, ErrPending)
	want := []string{w.post("t")}
	w.rows(b)
	s.set(0, nil)
	const n = 300
	for range n {
		want = append(want, w.post("t"))
	}
	w.rows(b)
	if got := w.waiting("a0"); len(got) != 0 {
		t.Fatalf("%d wakes", len(got))
	}
	w.clock.move(b.Limits.DeferMost)
	claimed := w.rows(b)
	if got := w.waiting("a0"); !slices.Equal(got, want) {
		t.Errorf("%d of %d wakes, or another order", len(got), len(want))
	}
	if claimed > n+10 {
		t.Errorf("%d claims for %d rows", claimed, n)
	}
}

// A row of the kind without recipients of its own is finished without a barrier; one of a kind
// that is not known is given up in the end.
//
// covers: RT-223
func TestOlderAndNewerRows(t *testing.T) {
	w, s := newWorld(t), &spy{}
	b := w.outbox(spied(s), func(o *Options) { o.Limits.RowAttempts = 1 })
	old, odd := w.post("t"), w.post("t")
	w.exec(`UPDATE outbox SET version = 1, humans = NULL, agents = NULL WHERE id = ?`, []byte(old))
	w.exec(`UPDATE outbox SET version = 3 WHERE id = ?`, []byte(odd))
	w.rows(b)
	if diff := cmp.Diff([]string{"project"}, s.take()); diff != "" {
		t.Error(diff)
	}
	states := w.states()
	if states[old].state != facts.EffectDelivered || states[odd].state != facts.EffectDead {
		t.Errorf("%+v", states)
	}
}

// Nothing but a row of a task calls the barrier: not a message of a channel, a read, a mark, or a
// look at what is there.
//
// covers: RT-219
func TestOrdinaryFlowsHaveNoBarrier(t *testing.T) {
	s := &spy{}
	bubble(t, spied(s), func(w *world, b *Outbox) {
		ctx := w.t.Context()
		_, err := w.lane.PutScope(ctx, space, facts.PutScope{ID: "c", Type: readstate.Channel})
		w.ok(err)
		for _, m := range []readstate.MemberID{"author", "h0", "a0"} {
			_, err := w.lane.PutMembership(ctx, space, facts.PutMembership{Scope: "c", Member: m, Trusted: true})
			w.ok(err)
		}
		w.post("c", "h0", "a0")
		rev := readstate.Revision(1)
		for _, scope := range []readstate.ScopeID{"c", "t"} {
			if scope == "t" {
				rev = 0
			}
			_, err = w.lane.MarkRead(ctx, space, facts.MarkRead{
				Scope: scope, Member: "h0", Revision: &rev, Trusted: true,
			})
			w.ok(err)
			_, err = w.lane.MarkUnread(ctx, space, facts.MarkUnread{Scope: scope, Member: "h0", Trusted: true})
			w.ok(err)
		}
		_, err = b.Stats(ctx)
		w.ok(err)
		b.Poke(1)
		pass(time.Hour)
		if calls := s.take(); len(calls) != 0 {
			t.Errorf("ports were called: %v", calls)
		}
		w.post("t")
		b.Poke(1)
		pass(time.Second)
		if calls := s.take(); len(calls) != 3 {
			t.Errorf("a task's message called %v", calls)
		}
	})
}
