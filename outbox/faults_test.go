package outbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Whatever fails before or after any step of a row, and however often: nobody is woken before the
// barrier, every agent is woken for every row, once, in order, and the row is delivered.
//
// covers: RT-211, RT-212, RT-214, RT-218
func TestFaultAtEveryStep(t *testing.T) {
	for stage := StageProjection; stage <= StageDelivered; stage++ {
		for _, done := range []bool{false, true} {
			if stage == StageDelivered && !done || stage == StageWake && done {
				continue // both are the inside of one transaction: see the killed processes
			}
			t.Run(fmt.Sprintf("%s done %v", stage, done), func(t *testing.T) { faultAt(t, stage, done) })
		}
	}
}

func faultAt(t *testing.T, stage Stage, done bool) {
	s := &spy{}
	var there atomic.Pointer[world]
	var left atomic.Int64
	left.Store(settleTries - 1) // a settlement is tried that often while its rows are known
	fault := func(_ context.Context, at Step) error {
		if w := there.Load(); at.Stage == StageUpsert && !at.Done && w != nil {
			// The wakes of a row come after its barrier only.
			rows := w.query(`SELECT 1 FROM wakes WHERE event = ?`, int64(at.Row.Key))
			if len(rows) > 0 {
				t.Errorf("%d wakes before the barrier", len(rows))
			}
		}
		if at.Stage == stage && at.Done == done && left.Add(-1) >= 0 {
			return errInjected
		}
		return nil
	}
	bubble(t, func(o *Options) {
		spied(s)(o)
		o.OnStep = fault
	}, func(w *world, b *Outbox) {
		there.Store(w)
		var want []string
		for range 3 {
			want = append(want, w.post("t"))
		}
		b.Poke(1)
		pass(2 * b.Limits.LeaseFor)
		synctest.Wait()
		if n := left.Load(); n > 0 {
			t.Errorf("%d faults did not happen", n)
		}
		for _, a := range []readstate.MemberID{"a0", "a1", "a2"} {
			if got := w.waiting(a); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", a, got, want)
			}
		}
		for id, st := range w.states() {
			spent := 0
			if stage == StageProjection {
				spent = st.failures // the one stage whose errors are failures
			}
			if st.state != facts.EffectDelivered || st.failures != spent {
				t.Errorf("%s: %+v", id, st)
			}
		}
	})
}

// storm runs rows of many tasks and agents through faults of every kind, by a seed.
type storm struct {
	*world
	t       *testing.T
	mu      sync.Mutex
	rng     *rand.Rand
	calm    bool
	passed  map[uint64]bool     // events whose barrier has been passed
	sent    map[string][]uint64 // by agent, the events as they were accepted first
	ids     map[string]string   // what an id was used for
	repeats int
}

// hit says whether something goes wrong now.
func (s *storm) hit(percent int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.calm && s.rng.IntN(100) < percent
}

func (s *storm) step(_ context.Context, at Step) error {
	if at.Stage == StageUpsert && at.Done {
		s.mu.Lock()
		s.passed[uint64(at.Row.Key)] = true
		s.mu.Unlock()
	}
	if s.hit(3) {
		return errInjected
	}
	return nil
}

// stormStore fails before or after what it does.
type stormStore struct {
	facts.OutboxStore
	s *storm
}

func (x stormStore) ClaimEffects(ctx context.Context, c facts.EffectClaim) (facts.EffectBatch, error) {
	if x.s.hit(5) {
		return facts.EffectBatch{}, errInjected
	}
	batch, err := x.OutboxStore.ClaimEffects(ctx, c)
	if x.s.hit(5) {
		return facts.EffectBatch{}, errInjected // the leases are held, and nobody knows
	}
	return batch, err
}

func (x stormStore) SettleEffects(
	ctx context.Context, c facts.EffectSettlement,
) (facts.EffectsSettled, error) {
	if x.s.hit(10) {
		return facts.EffectsSettled{}, errInjected
	}
	settled, err := x.OutboxStore.SettleEffects(ctx, c)
	if x.s.hit(10) {
		return facts.EffectsSettled{}, errInjected
	}
	return settled, err
}

func (x stormStore) ClaimWakes(ctx context.Context, c facts.WakeClaim) (facts.WakeBatch, error) {
	batch, err := x.OutboxStore.ClaimWakes(ctx, c)
	if x.s.hit(5) {
		return facts.WakeBatch{}, errInjected
	}
	return batch, err
}

func (x stormStore) SettleWakes(
	ctx context.Context, c facts.WakeSettlement,
) (facts.WakesSettled, error) {
	if x.s.hit(10) {
		return facts.WakesSettled{}, errInjected
	}
	settled, err := x.OutboxStore.SettleWakes(ctx, c)
	if x.s.hit(10) {
		return facts.WakesSettled{}, errInjected
	}
	return settled, err
}

// Accounted and Upsert fail now and then.
func (s *storm) Accounted(
	context.Context, readstate.WorkspaceID, readstate.LSN, readstate.ScopeKey, []readstate.MemberKey,
) error {
	if s.hit(20) {
		return ErrPending
	}
	return nil
}

func (s *storm) Upsert(context.Context, readstate.WorkspaceID, *facts.OutboxRow) error {
	if s.hit(10) {
		return errInjected
	}
	return nil
}

// take is told of an accepted wake.
func (s *storm) take(agent, id string) {
	var event uint64
	var w, member int
	if _, err := fmt.Sscanf(id, "wake_%d_%d_%d", &w, &event, &member); err != nil {
		s.t.Errorf("id %q: %v", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.passed[event] {
		s.t.Errorf("%s was woken for %d before its barrier", agent, event)
	}
	if s.ids[id] != "" {
		s.repeats++
		return
	}
	s.ids[id] = agent
	s.sent[agent] = append(s.sent[agent], event)
}

// RoundTrip is the network: it loses requests, and answers to requests that were taken.
func (s *storm) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.hit(15) {
		return nil, errInjected
	}
	s.take(r.URL.Path[1:], r.Header.Get("webhook-id"))
	if s.hit(15) {
		return nil, errInjected
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// In a storm of faults nothing is lost, nothing comes before the barrier, and each agent's order
// holds: the order in which its events are first accepted is that of the events.
func TestSeededStorm(t *testing.T) {
	seeds := 2
	if n, err := strconv.Atoi(os.Getenv("TIDEMARK_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { ride(t, uint64(seed)) })
	}
}

func ride(t *testing.T, seed uint64) {
	s := &storm{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), passed: map[uint64]bool{},
		sent: map[string][]uint64{}, ids: map[string]string{},
	}
	bubble(t, func(o *Options) {
		o.Store = stormStore{o.Store, s}
		o.OnStep, o.Accounting, o.Barrier, o.RequireBarrier = s.step, s, s, true
		o.Limits.BatchRows, o.Limits.FreshRows, o.Limits.CommitWakes = 16, 8, 10
		o.Limits.Burst = 5
	}, func(w *world, b *Outbox) {
		s.world = w
		b.client.Transport = s
		const agents, tasks = 6, 5
		var all []readstate.MemberID
		for i := range agents {
			agent := readstate.MemberID(fmt.Sprintf("a1%d", i))
			w.member(string(agent))
			w.endpoint(b, agent, "http://town/"+string(agent))
			all = append(all, agent)
		}
		plan := rand.New(rand.NewPCG(seed, 2))
		members := map[int][]readstate.MemberID{}
		for i := range tasks {
			for _, a := range all {
				if plan.IntN(2) == 0 {
					members[i] = append(members[i], a)
				}
			}
			w.task(taskName(i), append([]readstate.MemberID{"author", "h0"}, members[i]...)...)
		}
		want := map[string][]uint64{}
		for range 100 {
			task := plan.IntN(tasks)
			w.post(taskName(task))
			last := w.query(`SELECT max(event) FROM outbox`)[0][0].(int64)
			for _, a := range members[task] {
				want[string(a)] = append(want[string(a)], uint64(last))
			}
			b.Poke(1)
			pass(time.Duration(plan.IntN(10_000)) * time.Millisecond)
		}
		s.mu.Lock()
		s.calm = true
		s.mu.Unlock()
		pass(5 * time.Hour)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range all {
			if got := s.sent[string(a)]; !slices.Equal(got, want[string(a)]) {
				t.Errorf("%s: %v\nwant %v", a, got, want[string(a)])
			}
		}
		if rows := w.query(`SELECT 1 FROM wakes`); len(rows) != 0 {
			t.Errorf("%d wakes are left", len(rows))
		}
		if rows := w.query(`SELECT 1 FROM outbox_waits`); len(rows) != 0 {
			t.Errorf("%d waits are left", len(rows))
		}
		if rows := w.query(`SELECT 1 FROM dead_letters`); len(rows) != 0 {
			t.Errorf("%d dead letters", len(rows))
		}
		if s.repeats == 0 {
			t.Error("no answer was lost: the storm was none")
		}
	})
}

func taskName(i int) readstate.ScopeID { return readstate.ScopeID(fmt.Sprint("task", i)) }
