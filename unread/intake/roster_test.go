package intake

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

func crowd(n int) (members []RosterMember) {
	for i := range n {
		members = append(members, RosterMember{ID: readstate.MemberID(fmt.Sprintf("m%02d", i)), EffectiveFrom: 1})
	}
	return members
}

// A message of a cold scope waits in memory while the roster is read, once and page by page; then
// it counts for everybody on the roster, loaded or not, and what was durable before it for nobody.
// covers: RT-055 RT-059 RT-125 RT-129 RT-131 RT-393 RT-463
func TestColdRoster(t *testing.T) {
	roster := &people{}
	roster.set(1, "c", crowd(50)...)
	cfg := Config{Roster: roster}
	cfg.Runtime.HydratePageSize = 20
	b := newBench(t, cfg)
	if _, state := b.f.Runtime().HasUnread(space0, "m07"); state.Servable() {
		t.Fatal(state) // one member is loaded before anything happens
	}
	b.f.Runtime().Summary(t.Context(), space0, "m07")
	b.store.asked()
	roster.mu.Lock() // the roster stands still
	for r := readstate.Revision(6); r <= 8; r++ {
		if err := b.f.Tell(space0, msg("c", r, "m00")); err != nil {
			t.Fatal(err)
		}
	}
	// covers: RT-114 RT-122 RT-124 RT-392
	s := b.f.Stats()
	if s.Queued != 3 || s.PendingScopes != 1 || s.Rosters != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := b.row("m07", "c"); err == nil {
		t.Error("a scope without a roster is shown")
	}
	roster.mu.Unlock()
	if t.Failed() {
		return // who waits for a worker that is lost waits for ever
	}
	b.settle()
	// covers: RT-126 RT-422
	if n := roster.asked(); n != 3 {
		t.Errorf("%d pages for 50 members", n)
	}
	for i := range 50 {
		want := uint64(3)
		if i == 0 {
			want = 0
		}
		b.shows(readstate.MemberID(fmt.Sprintf("m%02d", i)), "c", want, unread.SnapshotServing)
	}
	if s := b.f.Stats(); s.Rosters != 1 || s.Queued != 0 || s.PendingScopes != 0 {
		t.Errorf("%+v", s)
	}
	// Warm: nothing is read for a message any more, and one row is dirty, whoever sees it.
	b.flush()
	b.store.asked()
	b.store.written()
	b.tell(msg("c", 9, "m00"))
	if q := b.store.asked(); len(q) > 0 || roster.asked() > 0 {
		t.Errorf("a warm message read %v", q)
	}
	b.flush()
	if rows := b.store.written(); len(rows) > 2 {
		t.Errorf("a message in a scope of 50 wrote %d rows", len(rows))
	}
}

// Reads never warm a roster.
// covers: RT-132 RT-068 RT-066 RT-067
func TestReadsLeaveRostersAlone(t *testing.T) {
	roster := &people{}
	roster.set(1, "c", crowd(3)...)
	b := newBench(t, Config{Roster: roster})
	b.tell(msg("c", 1, "m00"))
	b.restart()
	roster.asked()
	for range 10 {
		b.shows("m01", "c", 1, unread.SnapshotServing)
		b.f.Runtime().HasUnread(space0, "m01")
		b.f.Runtime().Summary(t.Context(), space0, "m02")
	}
	if n := roster.asked(); n != 0 {
		t.Errorf("reads asked for %d pages of rosters", n)
	}
	// Rows that reads loaded are no roster: the next message waits for it.
	roster.mu.Lock()
	if err := b.f.Tell(space0, msg("c", 2, "m00")); err != nil {
		t.Fatal(err)
	}
	if s := b.f.Stats(); s.Queued != 1 {
		t.Errorf("%+v", s)
	}
	b.shows("m01", "c", 1, unread.SnapshotServing) // what is shown already stays meanwhile
	roster.mu.Unlock()
	b.settle()
	b.shows("m01", "c", 2, unread.SnapshotServing)
}

// A message that saw a newer roster than memory waits for that roster.
// covers: RT-049 RT-104 RT-105 RT-106 RT-107
func TestRosterGenerations(t *testing.T) {
	roster := &people{}
	roster.set(8, "c", crowd(2)...)
	timed(t, Config{Roster: roster}, func(t *testing.T, b *bench, _ func(time.Duration)) {
		rosterGenerations(t, b, roster)
	})
}

func rosterGenerations(t *testing.T, b *bench, roster *people) {
	first := msg("c", 1, "m00")
	first.RosterGeneration = 8
	b.tell(first)
	roster.mu.Lock()
	roster.failing = true
	roster.mu.Unlock()
	second, third := msg("c", 2, "m00"), msg("c", 3, "m00")
	second.RosterGeneration, third.RosterGeneration = 9, 9
	if err := b.f.Tell(space0, second, third); err != nil {
		t.Fatal(err)
	}
	b.shows("m01", "c", 1, unread.Ready)
	// The change of the roster goes before them, and is what they waited for.
	join := MembershipChanged{Scope: "c", Member: "x", Joined: true, EffectiveFrom: 2, RosterGeneration: 9}
	if err := b.f.Tell(space0, join); err != nil {
		t.Fatal(err)
	}
	b.shows("m01", "c", 1, unread.Ready) // x's row is looked for in the table first
	roster.mu.Lock()
	roster.failing = false
	roster.mu.Unlock()
	roster.set(9, "c", append(crowd(2), RosterMember{ID: "x", EffectiveFrom: 2})...)
	b.settle()
	b.shows("m01", "c", 3, unread.Ready)
	row, err := b.row("x", "c")
	if err != nil || row.Values.Unread != 2 {
		t.Errorf("x: %+v, %v", row.Values, err)
	}
	// A generation that was skipped: the roster is not complete, and is read again.
	roster.asked()
	roster.set(12, "c", append(crowd(4), RosterMember{ID: "x", EffectiveFrom: 2})...)
	b.tell(MembershipChanged{Scope: "c", Member: "m02", Joined: true, RosterGeneration: 11})
	if roster.asked() != 0 {
		t.Error("a membership read a roster")
	}
	fourth := msg("c", 4, "m00")
	fourth.RosterGeneration = 11
	b.tell(fourth)
	if roster.asked() == 0 {
		t.Error("no roster was read after a gap of generations")
	}
	b.shows("m02", "c", 1, unread.Ready)
}

// covers: RT-130 RT-354
func TestCrashLosesWaitingEvents(t *testing.T) {
	roster := &people{}
	roster.set(1, "c", crowd(2)...)
	b := newBench(t, Config{Roster: roster})
	roster.mu.Lock()
	for r := readstate.Revision(1); r <= 3; r++ {
		if err := b.f.Tell(space0, msg("c", r, "m00")); err != nil {
			t.Fatal(err)
		}
	}
	old := b.f
	roster.mu.Unlock()
	old.Abandon()
	b.open()
	b.tell(msg("c", 4, "m00"))
	row, err := b.row("m01", "c")
	if err != nil || row.Values.Unread > 4 {
		t.Fatalf("%+v %v", row.Values, err)
	}
}

// A scope whose roster is over budget is not ready, and no guess is made.
// covers: RT-057 RT-123 RT-127 RT-423
func TestRosterOverBudget(t *testing.T) {
	roster := &people{}
	roster.set(1, "big", crowd(30)...)
	cfg := Config{Roster: roster, MaxRoster: 10}
	cfg.Runtime.HydratePageSize = 5
	b := newBench(t, cfg)
	b.tell(MembershipChanged{Scope: "big", Member: "m01", Joined: true, EffectiveFrom: 1})
	b.shows("m01", "big", 0, unread.Ready)
	b.tell(msg("big", 1, "m00"))
	s := b.f.Stats()
	if s.RefusedRosters != 1 || s.RosterPages != 3 || s.PendingFrontiers == 0 {
		t.Errorf("%+v", s)
	}
	if _, err := b.row("m02", "big"); err == nil {
		t.Error("a member of a roster that was not read is shown")
	}
}

// A restore reads pages of rows and the frontiers of their scopes, each once, and nothing else: no
// facts are looked at to see how far a row may be trusted.
// covers: RT-060 RT-343 RT-400 RT-280 RT-438 RT-472 RT-341 RT-342 RT-331 RT-332 RT-333 RT-351
func TestHydrationReadsPages(t *testing.T) {
	cfg := Config{}
	cfg.Runtime.HydratePageSize = 100
	b := newBench(t, cfg)
	var events []Event
	for i := range 250 {
		events = append(events, MembershipChanged{
			Scope: readstate.ScopeID(fmt.Sprintf("s%03d", i)), Member: "a", Joined: true,
		})
	}
	b.tell(events...)
	b.restart()
	b.store.asked()
	s, err := b.f.Runtime().Summary(t.Context(), space0, "a")
	if err != nil || !s.Complete || s.State != unread.SnapshotServing {
		t.Fatalf("%+v %v", s, err)
	}
	var own, frontiers int
	for _, q := range b.store.asked() {
		if q.Limit > 100 || len(q.Only) > 100 {
			t.Errorf("a load of %d rows", max(q.Limit, len(q.Only)))
		}
		if q.Member == "" {
			frontiers++
		} else {
			own++
		}
	}
	if own != 3 || frontiers != 3 {
		t.Errorf("%d pages of rows and %d of frontiers for 250 scopes", own, frontiers)
	}
	for range 3 {
		b.f.Runtime().Summary(t.Context(), space0, "a")
	}
	if q := b.store.asked(); len(q) > 0 {
		t.Errorf("a warm read loaded %v", q)
	}
}

// A roster that could not be read is read again after the retry interval, for the scopes that wait
// for it and for no other.
// covers: RT-349 RT-350 RT-403 RT-348
func TestRosterRetries(t *testing.T) {
	roster := &people{}
	for i := range 10 {
		roster.set(1, readstate.ScopeID(fmt.Sprint("s", i)), crowd(2)...)
	}
	timed(t, Config{Roster: roster}, func(t *testing.T, b *bench, pass func(time.Duration)) {
		for i := range 9 {
			b.tell(msg(readstate.ScopeID(fmt.Sprint("s", i)), 1, "m00"))
		}
		roster.asked()
		roster.fail(true)
		if err := b.f.Tell(space0, msg("s9", 1, "m00")); err != nil {
			t.Fatal(err)
		}
		pass(4999 * time.Millisecond)
		if n := roster.asked(); n != 1 {
			t.Errorf("%d reads before the retry", n)
		}
		pass(time.Millisecond)
		if n := roster.asked(); n != 1 || b.f.Stats().Retries != 2 {
			t.Errorf("%d reads by the retry, %+v", n, b.f.Stats())
		}
		roster.fail(false)
		pass(5 * time.Second)
		b.shows("m01", "s9", 1, unread.Ready)
		if n := roster.asked(); n != 1 {
			t.Errorf("%d reads for one scope", n)
		}
		pass(time.Minute)
		if n := roster.asked(); n != 0 {
			t.Errorf("%d reads for nobody", n)
		}
	})
}

// Who joins above the head comes in when the head gets there.
// covers: RT-232
func TestLateMembers(t *testing.T) {
	roster := &people{}
	roster.set(1, "c", append(crowd(2), RosterMember{ID: "z", EffectiveFrom: 4})...)
	b := newBench(t, Config{Roster: roster})
	b.tell(msg("c", 1, "m00"))
	if row, err := b.row("z", "c"); err == nil {
		t.Errorf("%+v", row)
	}
	b.tell(msg("c", 2, "m00"), msg("c", 3, "m00"))
	b.shows("z", "c", 0, unread.Ready)
	b.tell(msg("c", 4, "m00"))
	b.shows("z", "c", 1, unread.Ready)
	if n := b.f.Stats().Runtime.Alarms; n > 0 {
		t.Errorf("%d alarms", n)
	}
}
