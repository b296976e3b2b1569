package intake

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

const actors = 5

func memberOf(m model.MemberID) readstate.MemberID {
	if m == 0 {
		return ""
	}
	return readstate.MemberID(m.String())
}

func membersOf(list []model.MemberID) (ids []readstate.MemberID) {
	for _, m := range list {
		ids = append(ids, memberOf(m))
	}
	return ids
}

func scopeOf(s model.ScopeID) readstate.ScopeID { return readstate.ScopeID(s.String()) }

func kindOf(w *model.World, s model.ScopeID) readstate.ScopeType {
	info, _ := w.Scope(s)
	return readstate.ScopeType(info.Kind)
}

// teller plays operations on the oracle's world and tells a intake what became durable, as a
// program does that keeps its own facts.
type teller struct {
	world  *model.World
	events []Event
	known  bool // it says what newly blocked members wrote
}

func (x *teller) play(op model.Op) []Event {
	before := x.world.Clone()
	x.events = nil
	out, err := x.world.Apply(op)
	if err != nil {
		return nil
	}
	for _, s := range x.world.ScopeIDs() {
		x.scope(before, s)
	}
	if op.Kind == model.OpActivity && out.Activity > 0 {
		x.tell(NonMessageActivityStored{
			Scope: scopeOf(op.Scope), Type: kindOf(x.world, op.Scope), Seq: readstate.Seq(out.Activity), At: 1,
			Actor: memberOf(op.Member), HighSignal: !op.LowSignal,
			Recipients: membersOf(op.Recipients),
		})
	}
	for _, s := range x.world.ScopeIDs() {
		x.entries(before, s)
	}
	for _, s := range x.world.ScopeIDs() {
		for m := model.MemberID(1); m <= actors; m++ {
			x.row(before, m, s)
		}
	}
	for m := model.MemberID(1); m <= actors; m++ {
		x.blocks(before, m)
	}
	return x.events
}

func (x *teller) blocks(before *model.World, m model.MemberID) {
	was, is := before.Blocks(m), x.world.Blocks(m)
	if slices.Equal(was, is) {
		return
	}
	ev := BlocksChanged{Member: memberOf(m), Blocks: membersOf(is), Known: x.known}
	for _, s := range x.world.ScopeIDs() {
		w := Written{Scope: scopeOf(s)}
		for _, e := range x.world.Entries(s) {
			if slices.Contains(is, e.Author) && !slices.Contains(was, e.Author) && !e.Trimmed && e.Revision > 0 {
				w.Entries = append(w.Entries, facts(&e))
			}
		}
		for _, a := range x.world.Activities(s) {
			if slices.Contains(is, a.Actor) && !a.Low {
				w.Activities = append(w.Activities, ActivityFacts{
					Seq: readstate.Seq(a.Seq), Actor: memberOf(a.Actor), Recipients: membersOf(a.Recipients),
				})
			}
		}
		if ev.Known {
			ev.Written = append(ev.Written, w)
		}
	}
	x.tell(ev)
}

func (x *teller) tell(ev Event) { x.events = append(x.events, ev) }

func (x *teller) scope(before *model.World, s model.ScopeID) {
	was, existed := before.Scope(s)
	is, _ := x.world.Scope(s)
	if existed && was.Archived == is.Archived && was.Active == is.Active && was.Thinking == is.Thinking {
		return
	}
	ev := ScopeStateChanged{
		Scope: scopeOf(s), Type: readstate.ScopeType(is.Kind), Archived: is.Archived, Shared: is.Shared,
		Active: is.Active, Thinking: is.Thinking,
	}
	if is.Parent != 0 {
		ev.Parent = scopeOf(is.Parent)
	}
	x.tell(ev)
}

func facts(e *model.EntryInfo) MessageFacts {
	return MessageFacts{
		Seq: readstate.Seq(e.Seq), Revision: readstate.Revision(e.Revision),
		Author: memberOf(e.Author), NotifyPrincipal: memberOf(e.Principal),
		Mentions: membersOf(e.Mentions), Everyone: e.Everyone, Recipients: membersOf(e.Recipients),
	}
}

func (x *teller) entries(before *model.World, s model.ScopeID) {
	was, is := before.Entries(s), x.world.Entries(s)
	var removed, trimmed []MessageFacts
	var floor model.Revision
	for i := range is {
		e := &is[i]
		if i >= len(was) {
			f := facts(e)
			x.tell(MessageStored{
				Scope: scopeOf(s), Type: kindOf(x.world, s), Seq: f.Seq, Revision: f.Revision, ID: strconv.Itoa(int(e.Seq)),
				At: 1, Author: f.Author, NotifyPrincipal: f.NotifyPrincipal, Mentions: f.Mentions,
				Everyone: f.Everyone, Recipients: f.Recipients,
			})
			if !e.Live {
				removed = append(removed, f)
			}
			continue
		}
		old := &was[i]
		switch {
		case e.Trimmed != old.Trimmed:
			if e.Revision > 0 {
				trimmed = append(trimmed, facts(old))
				floor = max(floor, e.Revision)
			}
		case old.Live && !e.Live:
			removed = append(removed, facts(old))
		case old.Everyone != e.Everyone || !slices.Equal(old.Mentions, e.Mentions):
			x.tell(MessageEdited{
				Scope: scopeOf(s), Was: facts(old), Mentions: membersOf(e.Mentions), Everyone: e.Everyone,
			})
		}
	}
	if len(removed) > 0 {
		x.tell(MessageRewound{Scope: scopeOf(s), Removed: removed})
	}
	if floor > 0 {
		x.tell(ScopeTrimmed{Scope: scopeOf(s), Floor: readstate.Revision(floor), Trimmed: trimmed})
	}
}

func (x *teller) row(before *model.World, m model.MemberID, s model.ScopeID) {
	was, existed := before.Row(m, s)
	is, exists := x.world.Row(m, s)
	scope, member := scopeOf(s), memberOf(m)
	if existed && !exists {
		x.tell(MembershipChanged{Scope: scope, Member: member}) // of a session that was merged
	}
	if !exists || existed && was == is {
		return
	}
	if !existed || was.Joined != is.Joined || was.Epoch != is.Epoch || was.Effective != is.Effective {
		ev := MembershipChanged{Scope: scope, Member: member, Joined: is.Joined, Hidden: !is.Visible}
		if is.Joined && (!existed || was.Effective != is.Effective || was.Epoch != is.Epoch) {
			ev.EffectiveFrom = readstate.Revision(is.Effective)
		}
		x.tell(ev)
	} else if was.Visible != is.Visible {
		x.tell(MessageVisibilityChanged{Scope: scope, Member: member, Visible: is.Visible})
	}
	if is.Read != was.Read && is.Read > 0 {
		x.tell(ReadCursorAdvanced{Scope: scope, Member: member, Revision: readstate.Revision(is.Read)})
	}
	if is.Manual && (!was.Manual || is.ManualFrom != was.ManualFrom || is.Read != was.Read) {
		x.tell(ManualUnreadSet{Scope: scope, Member: member, From: readstate.Revision(is.ManualFrom)})
	} else if !is.Manual && was.Manual {
		x.tell(ManualUnreadCleared{Scope: scope, Member: member})
	}
	if is.Level != was.Level || is.Until != was.Until {
		x.tell(NotificationPolicyChanged{
			Scope: scope, Member: member, Level: readstate.Level(is.Level), Until: int64(is.Until) * 1000,
		})
	}
	if is.ActivityRead > was.ActivityRead {
		x.tell(ActivityReadCursorAdvanced{
			Scope: scope, Member: member, Seq: readstate.Seq(is.ActivityRead),
		})
	}
}

// rosters answers from the world, as it is now.
func (x *teller) rosters(p *people) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of = map[readstate.ScopeID][]RosterMember{}
	for _, s := range x.world.ScopeIDs() {
		for m := model.MemberID(1); m <= actors; m++ {
			if row, ok := x.world.Row(m, s); ok && row.Joined {
				p.of[scopeOf(s)] = append(p.of[scopeOf(s)], RosterMember{
					ID: memberOf(m), EffectiveFrom: readstate.Revision(row.Effective),
					Level: readstate.Level(row.Level), Until: int64(row.Until) * 1000, Hidden: !row.Visible,
				})
			}
		}
	}
}

type verdict struct {
	values, stale, hints, exact int
}

// compare holds every value that may be shown against the world.
func (v *verdict) compare(
	look func(readstate.MemberID, readstate.ScopeID) (unread.Row, error), w *model.World,
) error {
	for _, s := range w.ScopeIDs() {
		for m := model.MemberID(1); m <= actors; m++ {
			want := w.Values(m, s)
			row, err := look(memberOf(m), scopeOf(s))
			if row.State == unread.Stale {
				v.stale++
				continue
			}
			v.values++
			if !want.Present {
				if err == nil {
					return fmt.Errorf("%s sees %s: %+v", m, s, row)
				}
				continue
			}
			if err != nil {
				return fmt.Errorf("%s in %s: %w, want %v", m, s, err, want)
			}
			if row.State == unread.Ready {
				v.exact++
			} else {
				v.hints++
			}
			got := model.Values{
				Exists: true, Present: true, Archived: row.Archived, Counted: row.Presented.Counts,
				Unread: int(row.Values.Unread), Attention: int(row.Values.Attention),
				Activity: int(row.Values.Activity), Level: model.Level(row.Level),
				Manual: row.Row.Manual.Set, Version: want.Version,
				ActivityRead: model.ActivitySeq(row.Row.Activity.Read),
				Shown:        row.Presented.Shown, ShownUnread: int(row.Presented.Unread),
				ManualFrom: model.Revision(row.Row.Manual.From), Read: model.Revision(row.Row.Read),
				Head: model.Revision(row.Ranks.Head),
			}
			if got != want {
				return fmt.Errorf("%s in %s, %s:\n got %v\nwant %v\nrow %+v\nranks %+v", m, s, row.State, got, want, row.Row, row.Ranks)
			}
		}
	}
	return nil
}

// Whatever a program tells, every value that is shown is the one that counting all its messages
// gives, hints included as long as nothing was lost; restarts and flushes may come at any moment.
// covers: RT-232 RT-233 RT-238 RT-318 RT-320
func TestHistories(t *testing.T) {
	seeds := 8
	if testing.Short() {
		seeds = 3
	}
	if n, err := strconv.Atoi(os.Getenv("TIDEMARK_SEEDS")); err == nil {
		seeds = n
	}
	var sum verdict
	for seed := range seeds {
		history(t, uint64(seed), &sum)
	}
	t.Logf("%+v", sum)
	if sum.stale*5 > sum.values || sum.exact == 0 || sum.hints == 0 {
		t.Errorf("of %d values %d are exact, %d hints, %d withheld", sum.values, sum.exact, sum.hints, sum.stale)
	}
}

func history(t *testing.T, seed uint64, sum *verdict) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	cfg := Config{Limits: snapshot.Limits{Held: []int{3, 1000}[rng.IntN(2)]}}
	cfg.Limits.Cached = []int{3, 1000}[rng.IntN(2)]
	cfg.Limits.Scopes = []int{1, 5, 1000}[rng.IntN(3)]
	cfg.Runtime.MaxEntries = []int{30, 1000}[rng.IntN(2)]
	cfg.Runtime.HydratePageSize = 2 + rng.IntN(8)
	x := &teller{world: model.New(), known: rng.IntN(2) == 0}
	roster := &people{}
	if rng.IntN(2) == 0 {
		cfg.Roster = roster
	}
	b := newBench(t, cfg)
	for i, op := range model.RandomOps(rng, 120, model.FullMix()) {
		events := x.play(op)
		b.clock.Store(int64(x.world.Clock()) * 1000)
		x.rosters(roster)
		b.tell(events...)
		switch rng.IntN(20) {
		case 0:
			b.flush()
		case 1:
			b.restart()
		}
		if rng.IntN(6) > 0 && i < 119 {
			continue
		}
		if err := sum.compare(b.row, x.world); err != nil {
			t.Fatalf("seed %d, operation %d, %v: %v", seed, i, op, err)
		}
	}
	if s := b.f.Stats(); s.Failures+s.Runtime.Alarms+s.DroppedEvents+s.Books.Lost+s.Books.Contradictions > 0 {
		t.Fatalf("seed %d: %+v", seed, s)
	}
}

// Crashes lose what was not flushed, at any moment; rows and scopes are written in parts. Memory
// never contradicts itself afterwards, and once every member has read to the head, with the head
// told, everything is exact and goes on so.
// covers: RT-130 RT-357 RT-491
func TestCrashes(t *testing.T) {
	seeds := 12
	if n, err := strconv.Atoi(os.Getenv("TIDEMARK_SEEDS")); err == nil {
		seeds = n
	}
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		crashes(t, uint64(seed))
	}
}

func crashes(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 8))
	mix := model.FullMix().Without(
		model.StepRunState, model.StepRunEnds, model.StepMerge, model.StepFork)
	mix.Sessions, mix.Tasks = false, false
	cfg := Config{Limits: snapshot.Limits{Held: []int{3, 1000}[rng.IntN(2)]}}
	cfg.Limits.Cached, cfg.Limits.Scopes = 3, 3
	cfg.Flush.FlushBatchSize = []int{1, 2, 5}[rng.IntN(3)]
	x := &teller{world: model.New()}
	b := newBench(t, cfg)
	for i, op := range model.RandomOps(rng, 120, mix) {
		events := x.play(op)
		b.clock.Store(int64(x.world.Clock()) * 1000)
		b.tell(events...)
		if rng.IntN(3) == 0 {
			for m := model.MemberID(1); m <= actors; m++ {
				if _, err := b.f.Runtime().Summary(t.Context(), space0, memberOf(m)); err != nil {
					t.Fatalf("seed %d, operation %d, %v: %v", seed, i, op, err)
				}
			}
		}
		switch n := rng.IntN(20); {
		case n < 3:
			b.flush()
		case n == 3:
			if s := b.f.Stats(); s.Failures+s.Runtime.Alarms > 0 {
				t.Fatalf("seed %d, operation %d: %+v", seed, i, s)
			}
			b.crash()
		}
	}
	b.catchUp(x.world)
	if s := b.f.Stats(); s.Failures+s.Runtime.Alarms > 0 {
		t.Fatalf("seed %d: %+v", seed, s)
	}
}

// catchUp has every member read everything, and then something new.
func (b *bench) catchUp(w *model.World) {
	b.t.Helper()
	for m := model.MemberID(1); m <= actors; m++ {
		b.tell(BlocksChanged{Member: memberOf(m)})
	}
	for _, s := range w.ScopeIDs() {
		info, _ := w.Scope(s)
		if info.Kind == model.Thread || info.Head == 0 {
			continue // rows of threads may not know the channel's epoch any more
		}
		head := readstate.Revision(info.Head)
		b.tell(ScopeStateChanged{Scope: scopeOf(s), Type: readstate.ScopeType(info.Kind), Head: head})
		for m := model.MemberID(1); m <= actors; m++ {
			b.tell(
				MembershipChanged{Scope: scopeOf(s), Member: memberOf(m), Joined: true},
				NotificationPolicyChanged{Scope: scopeOf(s), Member: memberOf(m), Level: readstate.LevelAll},
				ActivityReadCursorAdvanced{
					Scope: scopeOf(s), Member: memberOf(m), Seq: readstate.Seq(info.LatestActivity),
				},
				ReadCursorAdvanced{Scope: scopeOf(s), Member: memberOf(m), Revision: head, Head: head},
				ManualUnreadCleared{Scope: scopeOf(s), Member: memberOf(m)},
			)
		}
		b.tell(MessageStored{
			Scope: scopeOf(s), Seq: readstate.Seq(info.LatestSeq) + 1, Revision: head + 1, Author: "A",
		})
		for m := model.MemberID(1); m <= actors; m++ {
			want := uint64(1)
			if m == 1 {
				want = 0
			}
			b.shows(memberOf(m), scopeOf(s), want, unread.Ready)
		}
	}
}
