package unread

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// simulation plays a history against a runtime whose every step it takes itself, in an order
// drawn from a seed: commits that the applier reaches late, pages asked for, read, answered and
// installed at any moment in between, members let go, commits lost, big fires worked off in
// pieces, streams that come and go. After every step all that is loaded is compared with the
// oracle of the applied LSN.
type simulation struct {
	t       *testing.T
	rng     *rand.Rand
	r       *Runtime
	ws      *workspace
	facts   *mirror
	ops     []model.Op
	history []moment // of the LSN at their index
	applied int
	flights []*flight
	streams []*stream
	oracle  oracle
	shelf   *shelf // snapshot rows instead of facts, where it is not nil
}

// moment is a workspace right after a commit.
type moment struct {
	world  *model.World
	events []readstate.Event
	ranks  map[model.ScopeID]readstate.ScopeRanks
}

// flight is a page on its way.
type flight struct {
	job  *job
	req  PageRequest
	read bool
	page readstate.Page
	err  error
}

func newSimulation(t *testing.T, seed uint64, steps int, shelf *shelf) *simulation {
	rng := rand.New(rand.NewPCG(seed, 1))
	mix := model.FullMix()
	if seed%3 == 0 {
		mix = model.HubMix()
	}
	if shelf != nil {
		mix = mix.Without(model.StepBlock, model.StepUnblock, model.StepFirstWriter)
	}
	s := &simulation{
		t: t, rng: rng, facts: newMirror(rng), ops: model.RandomOps(rng, steps, mix), shelf: shelf,
	}
	s.oracle.facts = s.facts
	s.shelf.open(s.facts)
	r, err := newRuntime(Config{
		Source: s.facts, Now: s.facts.now, Hints: shelf != nil,
		HydratePageSize: 1 + rng.IntN(6), RingEvents: []int{1, 8, 10_000}[rng.IntN(3)],
		MaxEntries:     []int{1, 20, 10_000}[rng.IntN(3)],
		MaxFirePerTick: []int{1, 2, 10_000}[rng.IntN(3)],
	})
	if err != nil {
		t.Fatal(err)
	}
	s.r = r
	r.Open(testSpace, 0)
	s.ws, _ = r.workspace(testSpace)
	s.history = []moment{s.moment(nil)}
	return s
}

func (s *simulation) moment(events []readstate.Event) moment {
	m := moment{
		world: s.facts.world.Clone(), events: events,
		ranks: map[model.ScopeID]readstate.ScopeRanks{},
	}
	for _, id := range m.world.ScopeIDs() {
		m.ranks[id] = s.facts.ranks(id)
	}
	return m
}

// run plays the whole history and then lets everything come to rest.
func (s *simulation) run() error {
	for len(s.ops) > 0 {
		if err := s.step(); err != nil {
			return err
		}
	}
	return s.settle()
}

func (s *simulation) settle() error {
	for s.applied < len(s.history)-1 || len(s.flights) > 0 || len(s.r.queue.jobs) > 0 {
		for s.applied < len(s.history)-1 {
			if err := s.apply(); err != nil {
				return err
			}
		}
		s.begin()
		for len(s.flights) > 0 {
			s.read(s.flights[0])
			s.finish(0)
		}
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulation) step() error {
	switch n := s.rng.IntN(100); {
	case n < 20:
		s.commit() // time may pass
	case n < 44:
		if s.applied == len(s.history)-1 {
			return nil
		}
		if err := s.apply(); err != nil {
			return err
		}
	case n < 54:
		s.want()
		return nil
	case n < 66:
		s.begin()
		return nil
	case n < 72:
		if len(s.flights) > 0 {
			s.read(s.flights[s.rng.IntN(len(s.flights))])
		}
		return nil
	case n < 84:
		if len(s.flights) == 0 {
			return nil
		}
		i := s.rng.IntN(len(s.flights))
		s.read(s.flights[i])
		s.finish(i)
	case n < 86 && s.shelf != nil && s.rng.IntN(3) == 0:
		s.shelf.flush(s.t)
	case n == 86 && s.shelf != nil && s.rng.IntN(3) == 0:
		if err := s.restart(); err != nil {
			return err
		}
	case n < 87:
		s.r.Forget(testSpace, memberID(s.member()))
	case n < 90:
		s.r.step(s.ws)
	case n < 92:
		s.connect()
		return nil
	case n < 93:
		s.disconnect()
		return nil
	case n < 94:
		s.facts.failing[memberID(s.member())]++
		return nil
	case n < 97:
		return s.drain()
	default:
		if s.rng.IntN(6) > 0 || s.applied+1 >= len(s.history)-1 {
			return nil
		}
		s.applied++ // a commit is lost on its way
		if err := s.apply(); err != nil {
			return err
		}
	}
	return s.check()
}

func (s *simulation) member() model.MemberID {
	return model.MemberID(s.rng.IntN(mirrorMembers)) + 1
}

// commit plays one to three operations as one commit, which waits for the applier.
func (s *simulation) commit() {
	n := min(1+s.rng.IntN(3), len(s.ops))
	ops := s.ops[:n]
	s.ops = s.ops[n:]
	if events := s.facts.play(ops...); events != nil {
		s.history = append(s.history, s.moment(s.shelf.keep(s.t, s.facts.lsn, events)))
	}
}

func (s *simulation) apply() error {
	s.applied++
	lsn := readstate.LSN(s.applied)
	events := s.history[s.applied].events
	if s.rng.IntN(8) == 0 {
		// A commit that is told of again changes nothing.
		again := readstate.LSN(s.rng.IntN(int(s.ws.st.lsn) + 1))
		if err := s.r.Apply(testSpace, again, events); err != nil {
			return err
		}
	}
	return s.r.Apply(testSpace, lsn, events)
}

func (s *simulation) want() { s.r.HasUnread(testSpace, memberID(s.member())) }

// begin takes a job from the queue, as a worker does.
func (s *simulation) begin() {
	q := &s.r.queue
	for len(q.jobs) > 0 {
		j := q.next()
		if req, ok := s.r.beginPage(j); ok {
			s.flights = append(s.flights, &flight{job: j, req: req})
			return
		}
	}
}

// read takes the page of what is durable now, which the applier may not have reached.
func (s *simulation) read(f *flight) {
	if !f.read {
		f.read = true
		f.page, f.err = s.shelf.page(s.facts, f.req)
	}
}

func (s *simulation) finish(i int) {
	f := s.flights[i]
	s.flights = slices.Delete(s.flights, i, i+1)
	s.r.finishPage(f.job, f.page, f.err)
	if f.err != nil {
		// The retry, without the wait.
		s.r.keep(appointment{s.ws, f.job.member, retryPage})
	}
}

// world is the oracle's world of the applied LSN at the present time.
func (s *simulation) world() *model.World {
	w := s.history[s.applied].world
	if late := s.facts.world.Clock() - w.Clock(); late > 0 {
		if _, err := w.Apply(model.Op{Kind: model.OpAdvanceClock, Advance: late}); err != nil {
			s.t.Fatal(err)
		}
	}
	return w
}

// check compares everything that is loaded with the oracle.
func (s *simulation) check() error {
	if n := s.r.metrics.alarms.Load(); n > 0 {
		return fmt.Errorf("%d invariant alarms", n)
	}
	s.oracle.world = s.world()
	s.r.lock(s.ws)
	defer s.r.unlock(s.ws)
	st := s.ws.st
	if st.lsn != readstate.LSN(s.applied) {
		return fmt.Errorf("memory stands at %d, applied are %d", st.lsn, s.applied)
	}
	if err := st.sound(); err != nil {
		return err
	}
	now := s.history[s.applied]
	ranks := func(id model.ScopeID) readstate.ScopeRanks { return now.ranks[id] }
	if s.shelf != nil && s.shelf.repeated+s.shelf.book.Stats().Repeated > 0 {
		ranks = s.shelf.ranks(st, ranks)
	}
	if err := s.oracle.ranks(st, ranks); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(st.memberByKey)) {
		// Now and then a member is left unread, so that candidates and batches pile up.
		if s.rng.IntN(4) == 0 {
			continue
		}
		if err := s.oracle.member(st, st.memberByKey[key], st.now); err != nil {
			return err
		}
	}
	return nil
}

func simulate(t *testing.T, seed uint64, steps int, shelf *shelf) (int, Stats) {
	t.Helper()
	s := newSimulation(t, seed, steps, shelf)
	defer s.r.Close()
	if err := s.run(); err != nil {
		t.Fatalf("seed %d, %d steps, lsn %d of %d: %v", seed, steps, s.applied,
			len(s.history)-1, err)
	}
	stats := s.r.Stats()
	if left := s.emptied(); left != 0 {
		t.Fatalf("seed %d: %d bytes are left without a member", seed, left)
	}
	return s.oracle.comparisons, stats
}

// emptied drops every member and returns the bytes that memory takes then.
func (s *simulation) emptied() int64 {
	s.r.lock(s.ws)
	defer s.r.unlock(s.ws)
	for _, m := range slices.Collect(maps.Values(s.ws.st.memberByKey)) {
		s.ws.st.dropMember(m)
	}
	return s.ws.st.bytes()
}

// Comparisons that TestHydrationRaces makes at least, and how many parts share them.
const (
	raceComparisons  = 520_000
	shortComparisons = 60_000
	raceShards       = 4
)

// covers: RT-353, RT-062, RT-100, RT-101
func TestHydrationRaces(t *testing.T) {
	t.Parallel()
	goal := raceComparisons
	if testing.Short() {
		goal = shortComparisons
	}
	var shards [raceShards]struct {
		comparisons int
		happened    Stats
	}
	t.Run("shards", func(t *testing.T) {
		for i := range shards {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				x := &shards[i]
				for seed := i; x.comparisons < goal/raceShards; seed += raceShards {
					n, stats := simulate(t, uint64(seed), 150, nil)
					x.comparisons += n
					x.happened.add(stats)
				}
			})
		}
	})
	total, sum := 0, Stats{}
	for i := range shards {
		total += shards[i].comparisons
		sum.add(shards[i].happened)
	}
	t.Logf("%d comparisons, %d pages, %d overruns, %d evictions, %d gaps, %d restarts, %d "+
		"failed pages, %d deltas, %d lost watches, %d repeated commits, %d ticks", total, sum.Pages,
		sum.RingOverruns, sum.Evicted, sum.Gaps, sum.Restarts, sum.PageFailures, sum.Deltas,
		sum.LostWatches, sum.RepeatedCommits, sum.Ticks)
	for name, n := range map[string]uint64{
		"ring overrun": sum.RingOverruns, "eviction": sum.Evicted, "gap": sum.Gaps,
		"restart": sum.Restarts, "failed page": sum.PageFailures, "delta": sum.Deltas,
		"lost watch": sum.LostWatches, "repeated commit": sum.RepeatedCommits, "tick": sum.Ticks,
	} {
		if n == 0 {
			t.Errorf("no %s happened", name)
		}
	}
}

// add sums what happened in several runtimes.
func (s *Stats) add(o Stats) {
	s.Pages += o.Pages
	s.RingOverruns += o.RingOverruns
	s.Evicted += o.Evicted
	s.Gaps += o.Gaps
	s.Restarts += o.Restarts
	s.PageFailures += o.PageFailures
	s.Deltas += o.Deltas
	s.LostWatches += o.LostWatches
	s.RepeatedCommits += o.RepeatedCommits
	s.Ticks += o.Ticks
}
