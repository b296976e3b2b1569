package intake

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// protectedTask is a task of b and x with n deliveries to b behind their barriers, and restarted.
func protectedTask(t *testing.T, n int) *bench {
	t.Helper()
	b := newBench(t, Config{})
	b.tell(job("t", "b", "x")...)
	b.flush()
	for r := 1; r <= n; r++ {
		b.tell(delivered("t", readstate.Revision(r), "b"))
		if err := b.barrier("t", readstate.Revision(r), 0, "b"); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// A barrier writes the regular columns, which an older program reads on, and the Task columns of the
// same row; a flush leaves these as they are, byte by byte.
// covers: RT-285 RT-286 RT-287 RT-289
func TestBarrierWritesBoth(t *testing.T) {
	b := protectedTask(t, 2)
	first := b.task("b", "t")
	if !first.format.Valid || first.format.Int64 != 1 || !strings.Contains(first.text.String, `"unread":2`) {
		t.Errorf("protected: %+v", first)
	}
	if o := b.oldReads("b", "t"); o.count != 2 || o.accounted != 2 || o.visibility != "visible" {
		t.Errorf("an older program reads %+v", o)
	}
	if x := b.task("x", "t"); x.format.Valid || x.text.Valid {
		t.Errorf("nobody protected %+v", x)
	}
	b.tell(ReadCursorAdvanced{Scope: "t", Member: "b", Revision: 1}, ManualUnreadSet{Scope: "t", Member: "x"})
	b.flush()
	if o := b.oldReads("b", "t"); o.count != 1 || o.read != 1 {
		t.Errorf("after a flush an older program reads %+v", o)
	}
	if now := b.task("b", "t"); now != first {
		t.Errorf("a flush changed %+v\nto %+v", first, now)
	}
	// The regular columns know of the barrier: what came after it is served, whole.
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 1})
}

// An older program that writes a row late, whatever it thinks it counted and however far, takes
// nothing back of what a barrier protects, and adds nothing to it.
// covers: RT-288 RT-290 RT-302 RT-303 RT-304
func TestLateOlderWrite(t *testing.T) {
	for name, o := range map[string]older{
		"nothing":               {},
		"more":                  {count: 7, activity: 3, accounted: 9, activityAccounted: 9},
		"larger frontier":       {accounted: 100, activityAccounted: 100},
		"larger generations":    {messages: 100, activities: 100, wound: 100, accounted: 1},
		"the count, by chance":  {count: 1, accounted: 1},
		"all of them, by sight": {count: 2, accounted: 2, messages: 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := protectedTask(t, 2)
			before := b.task("b", "t")
			o.effective, o.notification, o.visibility = 1, "all", "visible"
			b.oldWrites("b", "t", o)
			if now := b.task("b", "t"); now != before {
				t.Errorf("it changed %+v to %+v", before, now)
			}
			b.crash()
			b.counts("b", "t", readstate.Values{Unread: 2})
			b.tell(delivered("t", 1, "b"), delivered("t", 2, "b"), delivered("t", 3, "b"))
			b.counts("b", "t", readstate.Values{Unread: 3})
			if err := b.barrier("t", 3, 0, "b"); err != nil {
				t.Fatal(err)
			}
			b.crash()
			b.counts("b", "t", readstate.Values{Unread: 3})
		})
	}
}

// Of what an older program wrote beside a protected row, controls count where they are newer by their
// own generation, and cursors where they cover all of it; one that stops inside hides the number.
// covers: RT-291 RT-292 RT-293
func TestControlsBesideProtected(t *testing.T) {
	const n = 4
	row := func(b *bench) unread.Row {
		b.t.Helper()
		r, err := b.row("b", "t")
		if err != nil {
			b.t.Fatalf("withheld: %v %s", err, r.State)
		}
		return r
	}
	for name, c := range map[string]struct {
		write func(o *older)
		check func(t *testing.T, b *bench)
	}{
		"newer level": {
			func(o *older) { o.notification, o.notified = "none", 6 },
			func(t *testing.T, b *bench) {
				if r := row(b); r.Level != readstate.LevelNone || r.Values.Unread != n {
					t.Errorf("%+v", r)
				}
			},
		},
		"level of the same generation": {
			func(o *older) { o.notification, o.notified = "none", 5 },
			func(t *testing.T, b *bench) {
				if r := row(b); r.Level != readstate.LevelAll {
					t.Errorf("%+v", r)
				}
			},
		},
		"newer mark": {
			func(o *older) { o.manual, o.marked = 1, 6 },
			func(t *testing.T, b *bench) {
				if r := row(b); !r.Row.Manual.Set || r.Values.Unread != n {
					t.Errorf("%+v", r)
				}
			},
		},
		"older mark": {
			func(o *older) { o.manual, o.marked = 1, 4 },
			func(t *testing.T, b *bench) {
				if r := row(b); r.Row.Manual.Set {
					t.Errorf("%+v", r)
				}
			},
		},
		"newer membership": {
			func(o *older) { o.visibility, o.membership = "left", 6 },
			func(t *testing.T, b *bench) {
				if r, err := b.row("b", "t"); err == nil {
					t.Errorf("seen: %+v", r)
				}
			},
		},
		"membership of the same generation": {
			func(o *older) { o.visibility, o.membership = "left", 5 },
			func(t *testing.T, b *bench) { b.counts("b", "t", readstate.Values{Unread: n, Activity: 1}) },
		},
		"cursor at the end": {
			func(o *older) { o.read = n },
			func(t *testing.T, b *bench) { b.counts("b", "t", readstate.Values{Activity: 1}) },
		},
		"cursor beyond": {
			func(o *older) { o.read, o.accounted = 90, 100 },
			func(t *testing.T, b *bench) { b.counts("b", "t", readstate.Values{Activity: 1}) },
		},
		"first revision beyond": {
			func(o *older) { o.effective = n + 1 },
			func(t *testing.T, b *bench) { b.counts("b", "t", readstate.Values{Activity: 1}) },
		},
		"activity cursor at the end": {
			func(o *older) { o.activityRead = 1 },
			func(t *testing.T, b *bench) { b.counts("b", "t", readstate.Values{Unread: n}) },
		},
		"cursor inside": {
			func(o *older) { o.read = 2 },
			func(t *testing.T, b *bench) { b.hides("b", "t", unread.Stale) },
		},
		"first revision inside": {
			func(o *older) { o.effective = n },
			func(t *testing.T, b *bench) { b.hides("b", "t", unread.Stale) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := protectedTask(t, n-1)
			b.tell(NotificationPolicyChanged{Scope: "t", Member: "b", Level: readstate.LevelAll, Until: 99, Generation: 5},
				ManualUnreadSet{Scope: "t", Member: "b", Generation: 4}, ManualUnreadCleared{Scope: "t", Member: "b", Generation: 5},
				MessageVisibilityChanged{Scope: "t", Member: "b", Generation: 4},
				MessageVisibilityChanged{Scope: "t", Member: "b", Visible: true, Generation: 5},
				delivered("t", n, "b"),
				NonMessageActivityStored{Scope: "t", Seq: 1, Actor: "a", HighSignal: true, Recipients: []readstate.MemberID{"b"}})
			if err := errors.Join(b.barrier("t", n, 0, "b"), b.barrier("t", 0, 1, "b")); err != nil {
				t.Fatal(err)
			}
			o := olderRow()
			c.write(&o)
			b.oldWrites("b", "t", o)
			b.crash()
			// Whatever the row says, what was restored says it again after a flush.
			c.check(t, b)
			b.tell(NotificationPolicyChanged{Scope: "t", Member: "x", Level: readstate.LevelMentions})
			b.restart()
			c.check(t, b)
			// A cursor at the end settles what is hidden.
			if _, err := b.row("b", "t"); err != nil && name != "newer membership" {
				b.tell(ReadCursorAdvanced{Scope: "t", Member: "b", Revision: 100, Head: 100})
				b.counts("b", "t", readstate.Values{Activity: 1})
			}
		})
	}
}

// The first barrier of a row that an older program left is written whatever that one thinks how far
// it got, and from then on the row counts what was told; its controls hold.
// covers: RT-294 RT-295 RT-296
func TestFirstBarrierOverOlderRow(t *testing.T) {
	for name, c := range map[string]func(o *older){
		"frontier":             func(o *older) { o.accounted, o.activityAccounted = 100, 100 },
		"scope generation":     func(o *older) { o.messages, o.activities, o.roster, o.accounted = 100, 100, 100, 5 },
		"rewind generation":    func(o *older) { o.wound, o.accounted = 100, 5 },
		"all, and it counts 3": func(o *older) { o.count, o.accounted, o.wound, o.messages = 3, 100, 100, 100 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Config{})
			o := olderRow()
			c(&o)
			o.read, o.notification = 2, "mentions"
			b.oldWrites("b", "t", o)
			m := delivered("t", 4, "b")
			m.Type = readstate.Task
			b.tell(m, m)
			if err := b.barrier("t", 4, 0, "b"); err != nil {
				t.Fatal(err)
			}
			b.counts("b", "t", readstate.Values{Unread: 1})
			b.tell(delivered("t", 2, "b")) // below its cursor
			b.counts("b", "t", readstate.Values{Unread: 1})
			o.updated++
			b.oldWrites("b", "t", o) // and late
			b.crash()
			b.counts("b", "t", readstate.Values{Unread: 1})
			if row, err := b.row("b", "t"); err != nil || row.Level != readstate.LevelMentions || row.Row.Read != 2 {
				t.Errorf("%+v %v", row, err)
			}
			b.tell(m, delivered("t", 101, "b"))
			b.counts("b", "t", readstate.Values{Unread: 2})
		})
	}
	t.Run("partial cover", func(t *testing.T) {
		b := newBench(t, Config{})
		b.tell(job("t", "b")...)
		b.flush()
		b.tell(delivered("t", 1, "b"), delivered("t", 2, "b"), delivered("t", 3, "b"))
		o := olderRow()
		o.read, o.accounted, o.count = 2, 100, 9
		b.oldWrites("b", "t", o)
		if err := b.barrier("t", 3, 0, "b"); !errors.Is(err, ErrDeferred) {
			t.Errorf("a cursor inside: %v", err)
		}
		b.hides("b", "t", unread.Stale)
		if c := b.task("b", "t"); c.format.Valid {
			t.Errorf("written: %+v", c)
		}
		b.tell(ReadCursorAdvanced{Scope: "t", Member: "b", Revision: 3, Head: 3})
		if err := b.barrier("t", 3, 0, "b"); err != nil {
			t.Error(err)
		}
		b.counts("b", "t", readstate.Values{})
	})
	t.Run("full cover", func(t *testing.T) {
		b := newBench(t, Config{})
		b.tell(job("t", "b")...)
		b.flush()
		b.tell(delivered("t", 1, "b"), delivered("t", 2, "b"))
		o := olderRow()
		o.read, o.notification, o.notified = 2, "none", 3
		b.oldWrites("b", "t", o)
		if err := b.barrier("t", 2, 0, "b"); err != nil {
			t.Fatal(err)
		}
		b.counts("b", "t", readstate.Values{})
		if row, err := b.row("b", "t"); err != nil || row.Level != readstate.LevelNone || row.Row.Read != 2 {
			t.Errorf("%+v %v", row, err)
		}
	})
}

// Task columns that nobody can read hide the row, are never written over, and defer its deliveries.
// covers: RT-301 RT-316 RT-337 RT-338
func TestUnreadableProtection(t *testing.T) {
	for name, set := range map[string]string{
		"unknown version": `task_snapshot_format_version = 2`,
		"no JSON":         `task_snapshot_json = '{'`,
		"nothing":         `task_snapshot_json = NULL`,
		"empty":           `task_snapshot_json = '{}'`,
		"negative":        `task_snapshot_json = json_set(task_snapshot_json, '$.unread', -1)`,
		"no barrier":      `task_snapshot_json = json_set(task_snapshot_json, '$.barrier', 0)`,
		"no runs":         `task_snapshot_json = json_set(task_snapshot_json, '$.detail.entries', '*')`,
	} {
		t.Run(name, func(t *testing.T) {
			b := protectedTask(t, 1)
			b.execute(`UPDATE member_scope_unread_runtime_snapshots SET ` + set + ` WHERE member_id = x'62'`)
			before := b.task("b", "t")
			b.crash()
			b.hides("b", "t", unread.Unavailable)
			b.tell(delivered("t", 2, "b"))
			if err := b.barrier("t", 2, 0, "b"); !errors.Is(err, ErrDeferred) {
				t.Error(err)
			}
			b.tell(ReadCursorAdvanced{Scope: "t", Member: "b", Revision: 2, Head: 2}, delivered("t", 3, "b"))
			b.counts("b", "t", readstate.Values{Unread: 1})
			if err := b.barrier("t", 3, 0, "b"); !errors.Is(err, ErrDeferred) {
				t.Error(err)
			}
			b.flush()
			if now := b.task("b", "t"); now != before {
				t.Errorf("%+v became %+v", before, now)
			}
		})
	}
}

// What an older program writes over a row of a channel is what is served, not the ranks that it left
// behind: the row counts on from there.
// covers: RT-287 RT-315 RT-334
func TestOlderWriteOfAChannel(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	for r := readstate.Revision(1); r <= 6; r++ {
		b.tell(msg("c", r, "a"))
	}
	b.flush()
	o := b.oldReads("b", "c")
	if o.count != 6 || o.accounted != 6 {
		t.Fatalf("an older program reads %+v", o)
	}
	o.count, o.read, o.updated = 2, 4, o.updated+1
	b.oldWrites("b", "c", o)
	b.crash()
	b.shows("b", "c", 2, unread.SnapshotServing)
	b.tell(msg("c", 7, "a"))
	b.shows("b", "c", 3, unread.SnapshotServing)
	b.restart()
	b.shows("b", "c", 3, unread.SnapshotServing)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 7, Head: 7})
	b.shows("b", "c", 0, unread.Ready)
}

// A flush that was under way in another process, of a program that knows everything but the newest
// barrier, takes nothing back of it.
// covers: RT-288 RT-305
func TestLateFlushOfAnotherProcess(t *testing.T) {
	b := protectedTask(t, 1)
	late, err := b.store.Store.Load(t.Context(), snapshot.Query{
		Workspace: space0, Member: "b", Only: []readstate.ScopeID{"t"}, Limit: 1,
	})
	if err != nil || len(late) != 1 {
		t.Fatalf("%v %v", late, err)
	}
	b.tell(delivered("t", 2, "b"))
	if err := b.barrier("t", 2, 0, "b"); err != nil {
		t.Fatal(err)
	}
	b.put(late[0])
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 2})
}
