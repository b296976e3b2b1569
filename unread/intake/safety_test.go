package intake

import (
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// stored is a sound row of member b in scope c: 5 unread of 9, by a program that knows no ranks.
func stored() snapshot.Row {
	return snapshot.Row{
		Workspace: space0, Member: "b", Scope: "c", MessageUnread: 5, MessageRead: 4,
		EffectiveFrom: 1, MessageAccounted: 9, Notification: "all", Visibility: "visible",
	}
}

func (b *bench) put(rows ...snapshot.Row) {
	b.t.Helper()
	if err := b.store.Store.Upsert(b.t.Context(), rows); err != nil {
		b.t.Fatal(err)
	}
}

// Rows without ranks are served from their counts, and go on counting from there.
// covers: RT-287 RT-315 RT-334 RT-352
func TestRowsWithoutRanks(t *testing.T) {
	b := newBench(t, Config{})
	b.put(stored())
	// The row says 5 through 9; the event of 10 comes before the row is loaded.
	b.tell(msg("c", 10, "a"))
	b.flush()
	for _, row := range b.store.written() {
		if row.Member == "b" {
			t.Errorf("the flush wrote a row that nobody loaded: %+v", row)
		}
	}
	b.shows("b", "c", 6, unread.SnapshotServing)
	b.tell(msg("c", 11, "a"))
	b.shows("b", "c", 7, unread.SnapshotServing)
	b.restart()
	b.shows("b", "c", 7, unread.SnapshotServing)
}

// covers: RT-337 RT-338 RT-473 RT-316 RT-323 RT-089
func TestUnusableRows(t *testing.T) {
	unknown := int64(999)
	for name, damage := range map[string]func(r *snapshot.Row){
		"negative count":      func(r *snapshot.Row) { r.MessageUnread = -1 },
		"more than there are": func(r *snapshot.Row) { r.MessageUnread = 10 },
		"huge cursor":         func(r *snapshot.Row) { r.MessageRead = 1 << 60 },
		"no visibility":       func(r *snapshot.Row) { r.Visibility = "seen" },
		"no level":            func(r *snapshot.Row) { r.Notification = "loud" },
		"level without end":   func(r *snapshot.Row) { r.Notification = "all until x" },
		"task format":         func(r *snapshot.Row) { r.TaskFormat = &unknown },
		"detail":              func(r *snapshot.Row) { r.Detail = "{" },
		"manual":              func(r *snapshot.Row) { r.ManualUnread = 2 },
		"negative generation": func(r *snapshot.Row) { r.Generations.Manual = -4 },
		"ranks that contradict": func(r *snapshot.Row) {
			r.Ranks = &snapshot.Ranks{E: 9, Head: 9, AuthorHead: 3}
		},
		"ranks below zero": func(r *snapshot.Row) { r.Ranks = &snapshot.Ranks{E: -1} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Config{})
			row := stored()
			damage(&row)
			b.put(row)
			b.store.tamper = func(r *snapshot.Row) {
				if damage(r); r.Member == "" {
					r.TaskFormat = nil // no frontier has one
				}
			}
			if row.TaskFormat == nil {
				b.store.tamper = nil
			}
			b.hides("b", "c", unread.Unavailable)
			if dot, _ := b.f.Runtime().HasUnread(space0, "b"); dot {
				t.Error("a withheld row makes a dot")
			}
			counts, _, err := b.f.Runtime().Counts(t.Context(), space0, "b", nil)
			if err != nil || len(counts) > 0 {
				t.Errorf("counts %v, %v", counts, err)
			}
			// Events leave it alone, whatever they name.
			m := msg("c", 10, "b")
			b.tell(m, MessageStored{Scope: "c", Seq: 11, Revision: 11, Author: "a", Mentions: []readstate.MemberID{"b"}})
			b.tell(MessageRewound{Scope: "c", Removed: []MessageFacts{
				{Seq: 9, Revision: 9, Author: "b"}, {Seq: 8, Revision: 8, Author: "a", Mentions: []readstate.MemberID{"b"}},
			}})
			b.hides("b", "c", unread.Unavailable)
			// A cursor at the head settles it.
			b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 11, Head: 11})
			b.shows("b", "c", 0, unread.Ready)
			if s := b.f.Stats(); s.Failures+s.Runtime.Alarms > 0 || s.Books.Damaged == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// covers: RT-339 RT-227 RT-228 RT-251 RT-081 RT-084
func TestHiddenRows(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b", "x", "y")...)
	b.tell(msg("c", 1, "a"))
	b.tell(
		MembershipChanged{Scope: "c", Member: "x", Joined: false},
		MessageVisibilityChanged{Scope: "c", Member: "y"},
	)
	gone := func() {
		t.Helper()
		for _, m := range []readstate.MemberID{"x", "y"} {
			if row, err := b.row(m, "c"); err == nil {
				t.Errorf("%s sees %+v", m, row)
			}
			if s, _ := b.f.Runtime().Summary(t.Context(), space0, m); s.HasUnread {
				t.Errorf("%s has a dot", m)
			}
		}
	}
	gone()
	b.restart()
	gone()
	b.shows("b", "c", 1, unread.SnapshotServing)
	b.tell(ScopeStateChanged{Scope: "c", Archived: true})
	archived := func() {
		t.Helper()
		row, err := b.row("b", "c")
		if err != nil || !row.Archived || row.Presented.Shown {
			t.Errorf("archived: %+v %v", row.Presented, err)
		}
		if s, _ := b.f.Runtime().Summary(t.Context(), space0, "b"); s.HasUnread {
			t.Error("an archived scope makes a dot")
		}
	}
	archived()
	b.restart()
	archived()
	b.tell(ScopeStateChanged{Scope: "c"}, MessageVisibilityChanged{Scope: "c", Member: "y", Visible: true})
	b.shows("y", "c", 1, unread.SnapshotServing)
	b.shows("b", "c", 1, unread.SnapshotServing)
}

// What ends somebody's access hides the row at once, although the row itself has to be read first
// and the table does not answer.
// covers: RT-227 RT-362
func TestHiddenAtOnce(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Cached = 1
	b := newBench(t, cfg)
	b.tell(room("c", "a", "b")...)
	b.tell(room("d", "a", "b")...)
	b.tell(msg("c", 1, "a"), msg("d", 1, "a"))
	b.restart()
	b.shows("b", "c", 1, unread.SnapshotServing)
	b.store.fail(true)
	if err := b.f.Tell(space0, MembershipChanged{Scope: "c", Member: "b"}); err != nil {
		t.Fatal(err)
	}
	if row, err := b.row("b", "c"); err == nil {
		t.Errorf("still seen: %+v", row)
	}
	b.store.fail(false)
	b.f.Runtime().Forget(space0, "b")
	if row, err := b.row("b", "c"); err == nil {
		t.Errorf("seen again from the table: %+v", row)
	}
	b.settle()
	b.restart()
	if row, err := b.row("b", "c"); err == nil {
		t.Errorf("seen after a restart: %+v", row)
	}
	b.shows("b", "d", 1, unread.SnapshotServing)
}

// A table that cannot be read is no failure of the answer: nothing is shown, and the read is
// tried again.
// covers: RT-362 RT-321 RT-348 RT-475 RT-015
func TestUnreadableTable(t *testing.T) {
	b := newBench(t, Config{})
	b.put(stored())
	b.store.fail(true)
	if dot, state := b.f.Runtime().HasUnread(space0, "b"); dot || state != unread.Hydrating {
		t.Errorf("%t %s", dot, state)
	}
	if dot, state := b.f.Runtime().HasUnread(space0, "b"); dot || state != unread.Hydrating {
		t.Errorf("%t %s", dot, state)
	}
}

// covers: RT-080 RT-226 RT-230 RT-245 RT-246 RT-249 RT-322 RT-340 RT-376 RT-224
func TestUnknownChanges(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b", "x")...)
	b.tell(msg("c", 1, "a"))
	b.shows("b", "c", 1, unread.Ready)
	b.shows("x", "c", 1, unread.Ready)
	b.store.asked()
	b.tell(NotificationPolicyChanged{Scope: "c", Member: "b", Level: readstate.LevelAll, Unknown: true})
	b.hides("b", "c", unread.Stale)
	b.shows("x", "c", 1, unread.Ready)
	b.tell(msg("c", 2, "a"))
	b.hides("b", "c", unread.Stale)
	if q := b.store.asked(); len(q) > 0 {
		t.Errorf("a withheld row was looked for: %v", q)
	}
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 2})
	b.shows("b", "c", 0, unread.Ready)
	b.tell(MembershipChanged{Scope: "c", Member: "x", Joined: true, Unknown: true})
	b.hides("x", "c", unread.Stale)
}

// A lost event withholds what was exact. Who reads everything is exact again; nothing else makes
// it so.
// covers: RT-087 RT-088 RT-090 RT-057 RT-058 RT-091 RT-378
func TestLostEvents(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b", "x")...)
	b.tell(msg("c", 1, "a"), ReadCursorAdvanced{Scope: "c", Member: "x", Revision: 1})
	b.shows("b", "c", 1, unread.Ready)
	b.shows("x", "c", 0, unread.Ready)
	b.store.asked()
	b.tell(msg("c", 3, "a")) // nobody told of 2
	b.hides("b", "c", unread.Stale)
	b.hides("x", "c", unread.Stale)
	for range 10 {
		b.f.Runtime().HasUnread(space0, "b")
		b.hides("b", "c", unread.Stale)
	}
	if q := b.store.asked(); len(q) > 0 {
		t.Errorf("repair: %v", q)
	}
	s := b.f.Stats()
	if s.PendingFrontiers != 1 || s.Books.Lost != 1 || s.Runtime.Suppressed == 0 {
		t.Errorf("%+v", s)
	}
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "x", Revision: 3}, msg("c", 4, "a"))
	b.shows("x", "c", 1, unread.Ready)
	b.hides("b", "c", unread.Stale)
	b.tell(EventLost{Scope: "c"})
	b.hides("x", "c", unread.Stale)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 4})
	b.shows("b", "c", 0, unread.Ready)
}

// A hint that is shown stays shown after a loss.
// covers: RT-128 RT-089 RT-087
func TestLossKeepsHints(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"))
	b.restart()
	b.shows("b", "c", 1, unread.SnapshotServing)
	b.tell(EventLost{Scope: "c"})
	b.shows("b", "c", 1, unread.SnapshotServing)
}

// covers: RT-404 RT-413 RT-429 RT-458 RT-434 RT-277
func TestQueueOverBudget(t *testing.T) {
	for _, limit := range []string{"process", "scope", "scopes"} {
		t.Run(limit, func(t *testing.T) {
			cfg := Config{}
			switch limit {
			case "process":
				cfg.MaxQueuedEvents = 4
			case "scope":
				cfg.MaxPendingEvents = 4
			case "scopes":
				cfg.MaxWarmScopes = 1
			}
			b := newBench(t, cfg)
			b.tell(room("c", "a", "b")...)
			b.tell(room("d", "a", "b")...)
			b.tell(msg("c", 1, "a"), msg("d", 1, "a"))
			b.restart()
			gate := make(chan struct{})
			b.store.mu.Lock()
			b.store.gate = gate
			b.store.mu.Unlock()
			for r := readstate.Revision(2); r <= 6; r++ {
				for _, s := range []readstate.ScopeID{"c", "d"} {
					if err := b.f.Tell(space0, msg(s, r, "a")); err != nil {
						t.Fatal(err)
					}
				}
			}
			dropped := b.f.Stats().DroppedEvents
			want := map[string]uint64{"process": 6, "scope": 2, "scopes": 5}[limit]
			if dropped != want {
				t.Errorf("%d dropped, want %d", dropped, want)
			}
			b.store.mu.Lock()
			b.store.gate = nil
			b.store.mu.Unlock()
			close(gate)
			b.settle()
			b.tell(msg("c", 7, "a"), msg("d", 7, "a"))
			for _, s := range []readstate.ScopeID{"c", "d"} {
				row, err := b.row("b", s)
				if err != nil || row.State != unread.SnapshotServing || row.Values.Unread > 7 {
					t.Errorf("%s: %+v %s %v", s, row.Values, row.State, err)
				}
			}
			if b.f.Stats().Queued != 0 {
				t.Error("something still waits")
			}
		})
	}
}

// Above the budget of the backlog the rows that it refuses are withheld; nothing fails, nothing is
// lost, and a flush makes room.
// covers: RT-277 RT-413 RT-423
func TestBacklogOverBudget(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Backlog = 6
	b := newBench(t, cfg)
	var members []readstate.MemberID
	for i := range 10 {
		members = append(members, readstate.MemberID(fmt.Sprintf("m%d", i)))
	}
	b.tell(room("c", members...)...)
	b.tell(msg("c", 1, "m0"))
	b.shows("m1", "c", 1, unread.Ready)
	b.hides("m9", "c", unread.Unavailable)
	if s := b.f.Stats().Books; s.Owed == 0 || s.Backlog > 7 {
		t.Fatalf("%+v", s)
	}
	b.store.fail(true)
	if err := b.f.Flush(t.Context()); err == nil {
		t.Fatal("no failure")
	}
	b.hides("m9", "c", unread.Unavailable)
	b.shows("m1", "c", 1, unread.Ready)
	b.store.fail(false)
	b.flush()
	b.flush()
	b.shows("m9", "c", 1, unread.Ready)
	b.restart()
	b.shows("m9", "c", 1, unread.SnapshotServing)
}

// A table that takes nothing for long costs no more memory than four backlogs: events beyond that are
// dropped as those are that no queue has room for, and everything goes on once it takes rows again.
// covers: RT-277 RT-413 RT-429 RT-434
func TestTableThatTakesNothing(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Backlog, cfg.Limits.Cached = 5, 5
	for _, what := range []string{"rows", "scopes", "members"} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, cfg)
			b.tell(room("c", "a", "b")...)
			b.tell(msg("c", 1, "a"))
			b.flush()
			b.store.failAfter(0)
			for i := range 300 {
				m := readstate.MemberID(fmt.Sprint("m", i))
				switch what {
				case "rows":
					b.tell(MembershipChanged{Scope: "c", Member: m, Joined: true})
				case "scopes":
					b.tell(msg(scopeNo(i), 1, "a"))
				case "members":
					b.tell(BlocksChanged{Member: m, Blocks: []readstate.MemberID{"a"}, Known: true})
				}
				if i%50 == 49 {
					b.f.Flush(t.Context())
				}
				b.f.all()[0].book.Trim()
			}
			s := b.f.Stats()
			if n := s.Books.Rows + s.Books.Scopes + s.Books.People; s.DroppedEvents == 0 || n > 80 {
				t.Errorf("%d dropped, in memory %+v", s.DroppedEvents, s.Books)
			}
			b.tell(MembershipChanged{Scope: "c", Member: "b"}) // who left is never shown
			if row, err := b.row("b", "c"); err == nil {
				t.Errorf("still seen: %+v", row)
			}
			b.store.failAfter(-1)
			for range 5 {
				b.flush()
			}
			b.tell(MembershipChanged{Scope: "c", Member: "z", Joined: true}, msg("c", 2, "a"))
			b.shows("z", "c", 1, unread.Ready)
			if s := b.f.Stats(); s.Failures+s.Runtime.Alarms+s.Books.Damaged > 0 || s.Books.Owed > 0 {
				t.Errorf("%+v %+v", s.Books, s)
			}
		})
	}
}

// A dropped event that leaves no gap of revisions withholds what was exact, too.
// covers: RT-087 RT-429
func TestDroppedEditIsALoss(t *testing.T) {
	cfg := Config{MaxPendingEvents: 1}
	cfg.Limits.Cached = 1
	b := newBench(t, cfg)
	for _, ev := range append(room("c", "a", "b"), msg("c", 1, "a")) {
		b.tell(ev)
	}
	b.shows("b", "c", 1, unread.Ready)
	b.flush()
	b.f.all()[0].book.Trim()
	gate := make(chan struct{})
	b.store.mu.Lock()
	b.store.gate = gate
	b.store.mu.Unlock()
	edit := MessageEdited{Scope: "c", Was: MessageFacts{Revision: 1, Author: "a"}, Mentions: []readstate.MemberID{"b"}}
	if err := b.f.Tell(space0, edit, edit); err != nil {
		t.Fatal(err)
	}
	b.store.mu.Lock()
	b.store.gate = nil
	b.store.mu.Unlock()
	close(gate)
	b.settle()
	b.hides("b", "c", unread.Stale)
	if s := b.f.Stats(); s.DroppedEvents != 1 || s.PendingFrontiers != 1 {
		t.Errorf("%+v", s)
	}
}
