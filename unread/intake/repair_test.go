package intake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// ledger are the facts of the oracle's world.
type ledger struct {
	world  *model.World
	fail   bool
	asked  int
	during func() // called while facts are read
	wrong  func(f *MemberFacts)
}

func (l *ledger) Facts(_ context.Context, q FactsQuery) (MemberFacts, error) {
	l.asked++
	if l.fail {
		return MemberFacts{}, errFire
	}
	var f MemberFacts
	for _, s := range l.world.ScopeIDs() {
		for m := model.MemberID(1); m <= actors; m++ {
			if scopeOf(s) == q.Scope && memberOf(m) == q.Member {
				f = l.of(m, s)
			}
		}
	}
	if l.wrong != nil {
		l.wrong(&f)
	}
	if during := l.during; during != nil {
		l.during = nil
		during()
	}
	return f, nil
}

func (l *ledger) of(m model.MemberID, s model.ScopeID) MemberFacts {
	row, _ := l.world.Row(m, s)
	info, _ := l.world.Scope(s)
	f := MemberFacts{
		Joined: row.Joined, Hidden: !row.Visible, Level: readstate.Level(row.Level),
		Until: int64(row.Until) * 1000, EffectiveFrom: readstate.Revision(row.Effective),
		Read: readstate.Revision(row.Read), ActivityRead: readstate.Seq(row.ActivityRead),
		Manual: row.Manual, ManualFrom: readstate.Revision(row.ManualFrom),
		Head: readstate.Revision(info.Head), LatestActivity: readstate.Seq(info.LatestActivity),
	}
	from := row.Read
	if row.Manual && row.ManualFrom > 0 {
		from = min(from, row.ManualFrom-1)
	}
	from = max(from, row.Effective-1, info.Floor)
	for _, e := range l.world.Entries(s) {
		if e.Revision > from {
			f.Entries = append(f.Entries, EntryFacts{MessageFacts: facts(&e), Removed: !e.Live})
		}
	}
	for _, a := range l.world.Activities(s) {
		if !a.Low && a.Seq > row.ActivityRead {
			f.Activities = append(f.Activities, ActivityFacts{
				Seq: readstate.Seq(a.Seq), Actor: memberOf(a.Actor), Recipients: membersOf(a.Recipients),
			})
		}
	}
	return f
}

// Whatever crashes left behind, a repair makes exactly what the facts say of it, and everything goes
// on from there.
// covers: RT-358 RT-476
func TestRepairs(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		repairs(t, uint64(seed))
	}
}

func repairs(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	mix := model.FullMix().Without(model.StepTrim, model.StepMerge, model.StepFork)
	x := &teller{world: model.New()}
	l := &ledger{}
	cfg := Config{Facts: l, Comparison: true}
	cfg.Limits.Cached, cfg.Flush.FlushBatchSize = 3, 1+rng.IntN(3)
	b := newBench(t, cfg)
	for _, op := range model.RandomOps(rng, 100, mix) {
		events := x.play(op)
		b.clock.Store(int64(x.world.Clock()) * 1000)
		if rng.IntN(8) > 0 {
			b.tell(events...)
		}
		switch n := rng.IntN(20); {
		case n < 3:
			b.flush()
		case n == 3:
			b.crash()
		}
	}
	l.world = x.world
	for m := model.MemberID(1); m <= actors; m++ {
		b.tell(BlocksChanged{Member: memberOf(m), Blocks: membersOf(x.world.Blocks(m))})
	}
	for _, s := range x.world.ScopeIDs() {
		b.mend(seed, x.world, s)
	}
	for range 2 {
		b.compareAll(seed, x.world)
		b.restart()
	}
	if st := b.f.Stats(); st.FailedRepairs+st.Mismatches+st.Failures+st.Runtime.Alarms > 0 || st.Repairs != 0 {
		t.Fatalf("seed %d: %+v", seed, st)
	}
}

// mend repairs everybody's row in a scope.
func (b *bench) mend(seed uint64, w *model.World, s model.ScopeID) {
	b.t.Helper()
	info, _ := w.Scope(s)
	state := ScopeStateChanged{
		Scope: scopeOf(s), Type: readstate.ScopeType(info.Kind), Archived: info.Archived, Shared: info.Shared,
		Active: info.Active, Thinking: info.Thinking,
	}
	if info.Parent != 0 {
		state.Parent = scopeOf(info.Parent)
	}
	b.tell(state)
	var members []readstate.MemberID
	for m := model.MemberID(1); m <= actors; m++ {
		if row, ok := w.Row(m, s); ok && row.Joined {
			b.tell(MembershipChanged{Scope: scopeOf(s), Member: memberOf(m), Joined: true})
			members = append(members, memberOf(m))
		}
	}
	if len(members) == 0 {
		return
	}
	if err := b.f.Repair(b.t.Context(), space0, Bounds{Scope: scopeOf(s), Members: members}); err != nil {
		b.t.Fatalf("seed %d, %s: %v", seed, s, err)
	}
}

// compareAll holds every row against the world, by the intake's own comparison and by the oracle.
func (b *bench) compareAll(seed uint64, w *model.World) {
	b.t.Helper()
	for _, s := range w.ScopeIDs() {
		info, _ := w.Scope(s)
		for m := model.MemberID(1); m <= actors; m++ {
			want := w.Values(m, s)
			if !want.Present || info.Kind == model.Thread {
				continue // rows of threads may not know the channel's epoch any more
			}
			row, err := b.row(memberOf(m), scopeOf(s))
			if err != nil || int(row.Values.Unread) != want.Unread || int(row.Values.Attention) != want.Attention ||
				int(row.Values.Activity) != want.Activity {
				b.t.Fatalf("seed %d, %s in %s: %+v %s, %v; want %v", seed, m, s, row.Values, row.State, err, want)
			}
			n, err := b.f.Compare(b.t.Context(), space0, Bounds{Scope: scopeOf(s), Members: []readstate.MemberID{memberOf(m)}})
			if n != 0 || err != nil {
				b.t.Fatalf("seed %d, %s in %s: %d differ, %v", seed, m, s, n, err)
			}
		}
	}
}

// small is a world with a channel of three, two messages of which b has read none.
func small(t *testing.T) (*teller, []Event) {
	t.Helper()
	x := &teller{world: model.New()}
	var events []Event
	ops, err := model.ParseOps("create s1 channel\njoin s1 A\njoin s1 B\njoin s1 C\npost s1 A @B\npost s1 A\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		events = append(events, x.play(op)...)
	}
	return x, events
}

// A repair that fails is counted, names whom it failed for, and changes nothing. It is asked for by
// name and within bounds, and nothing else ever asks.
// covers: RT-430 RT-359 RT-360
func TestFailedRepairs(t *testing.T) {
	x, events := small(t)
	l := &ledger{world: x.world}
	b := newBench(t, Config{Facts: l})
	b.tell(events...)
	b.restart()
	ask := func(s readstate.ScopeID, members ...readstate.MemberID) error {
		return b.f.Repair(t.Context(), space0, Bounds{Scope: s, Members: members})
	}
	for name, err := range map[string]error{
		"no scope": ask("", "B"), "nobody": ask("s1"),
		"a crowd": ask("s1", make([]readstate.MemberID, MaxRepair+1)...),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.shows("B", "s1", 2, unread.SnapshotServing)
	b.f.Runtime().HasUnread(space0, "B")
	b.flush()
	b.crash()
	b.shows("B", "s1", 2, unread.SnapshotServing)
	if l.asked != 0 || b.f.Stats().FailedRepairs != 0 {
		t.Fatalf("facts were read %d times", l.asked)
	}
	failed := uint64(0)
	fails := func(what string, target error) {
		t.Helper()
		err := ask("s1", "B")
		if failed++; err == nil || target != nil && !errors.Is(err, target) {
			t.Errorf("%s: %v", what, err)
		}
		if st := b.f.Stats(); st.FailedRepairs != failed || st.Repairs != 0 {
			t.Errorf("%s: %d failed, want %d", what, st.FailedRepairs, failed)
		}
		b.shows("B", "s1", 2, unread.SnapshotServing)
	}
	l.fail = true
	fails("unreadable facts", errFire)
	l.fail = false
	for what, wrong := range map[string]func(f *MemberFacts){
		"a hole":           func(f *MemberFacts) { f.Entries = f.Entries[:1] },
		"another order":    func(f *MemberFacts) { slices.Reverse(f.Entries) },
		"an older head":    func(f *MemberFacts) { f.Head, f.Entries = 1, f.Entries[:1] },
		"a far head":       func(f *MemberFacts) { f.Head = 1 << 40 },
		"a stray activity": func(f *MemberFacts) { f.Activities = []ActivityFacts{{Seq: 9, Actor: "A"}} },
	} {
		l.wrong = wrong
		fails(what, nil)
	}
	l.wrong = nil
	n := 2
	var again func()
	again = func() { // events keep coming while facts are read
		n++
		if err := b.f.Tell(space0, ManualUnreadSet{Scope: "s1", Member: "C", From: 0}, ManualUnreadCleared{Scope: "s1", Member: "C"}); err != nil {
			t.Error(err)
		}
		b.settle()
		l.during = again
	}
	l.during = again
	fails("a busy scope", ErrBusy)
	l.during = nil
	if err := ask("s1", "B", "C"); err != nil {
		t.Fatal(err)
	}
	b.shows("B", "s1", 2, unread.Ready)
	b.shows("C", "s1", 2, unread.Ready)
	if st := b.f.Stats(); st.Repairs != 2 || st.FailedRepairs != failed {
		t.Errorf("%+v", st)
	}
	var none *Intake
	if none, _ = New(Config{Store: b.store}); none == nil {
		t.Fatal("no intake")
	}
	defer none.Abandon()
	if err := none.Repair(t.Context(), space0, Bounds{Scope: "s1", Members: []readstate.MemberID{"B"}}); !errors.Is(err, ErrNoFacts) {
		t.Error(err)
	}
}

// Comparison is off unless it was asked for. Where it is on, each served row that differs from its
// facts is counted once, and stays as it is.
// covers: RT-431
func TestMismatches(t *testing.T) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			x, events := small(t)
			l := &ledger{world: x.world}
			b := newBench(t, Config{Facts: l, Comparison: on})
			b.tell(events...)
			compare := func(want int) {
				t.Helper()
				n, err := b.f.Compare(t.Context(), space0, Bounds{Scope: "s1", Members: []readstate.MemberID{"A", "B", "C"}})
				if !on {
					if n != 0 || !errors.Is(err, ErrNoComparison) || l.asked != 0 {
						t.Errorf("%d, %v, facts read %d times", n, err, l.asked)
					}
					return
				}
				if n != want || err != nil {
					t.Errorf("%d differ, %v; want %d", n, err, want)
				}
			}
			compare(0)
			b.restart()
			// A forced difference: the flush of what followed is lost, and so are the events.
			ops, err := model.ParseOps("post s1 A @C\n")
			if err != nil {
				t.Fatal(err)
			}
			x.play(ops[0])
			compare(2) // B and C lack one; A wrote it
			if got, want := b.f.Stats().Mismatches, uint64(map[bool]int{true: 2}[on]); got != want {
				t.Errorf("%d mismatches, want %d", got, want)
			}
			b.shows("B", "s1", 2, unread.SnapshotServing)
			if on {
				for _, m := range []readstate.MemberID{"B", "C", "A"} {
					if err := b.f.Repair(t.Context(), space0, Bounds{Scope: "s1", Members: []readstate.MemberID{m}}); err != nil {
						t.Fatal(err)
					}
				}
				compare(0)
				b.shows("C", "s1", 3, unread.Ready)
			}
		})
	}
}
