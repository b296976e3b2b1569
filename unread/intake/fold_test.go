package intake

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot/sqlsnap"
)

// The way back brings what the Task columns protect into the regular ones, with the controls that are
// safe, and nothing of what somebody counted who knew no better; then the Task columns are empty.
// covers: RT-308 RT-309 RT-310 RT-311
func TestFold(t *testing.T) {
	const n = 3
	for name, c := range map[string]struct {
		write func(o *older)
		want  func(o *older)
	}{
		"as it was":         {nil, func(o *older) { o.count = n }},
		"another count":     {func(o *older) { o.count, o.accounted = 1, 40 }, func(o *older) { o.count = n }},
		"no count":          {func(*older) {}, func(o *older) { o.count = n }},
		"cursor at the end": {func(o *older) { o.read = n }, func(o *older) { o.read = n }},
		"first revision":    {func(o *older) { o.effective = n + 1 }, func(o *older) { o.effective = n + 1 }},
		"newer level": {
			func(o *older) { o.notification, o.notified = "none", 4 },
			func(o *older) { o.count, o.notification, o.notified = n, "none", 4 },
		},
		"newer mark": {
			func(o *older) { o.manual, o.marked = 1, 4 },
			func(o *older) { o.count, o.manual, o.marked = n, 1, 4 },
		},
		"newer membership": {
			func(o *older) { o.visibility, o.membership = "invisible", 4 },
			func(o *older) { o.count, o.visibility, o.membership = n, "invisible", 4 },
		},
		"controls of no generation": {
			func(o *older) { o.visibility, o.notification, o.manual = "left", "none", 1 },
			func(o *older) { o.count = n },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := protectedTask(t, n)
			if c.write != nil {
				o := olderRow()
				c.write(&o)
				b.oldWrites("b", "t", o)
			}
			b.f.Abandon()
			f, err := b.fold(true)
			if err != nil || f.Protected != 1 || f.Stopped != 0 {
				t.Fatalf("%+v %v", f, err)
			}
			if c := b.task("b", "t"); !c.format.Valid {
				t.Error("a look changed something")
			}
			if f, err = b.fold(false); err != nil || f.Protected != 1 {
				t.Fatalf("%+v %v", f, err)
			}
			want := olderRow()
			want.notification = "inherit" // as the membership said
			c.want(&want)
			got := b.oldReads("b", "t")
			if got.updated <= want.updated {
				t.Errorf("written at %d", got.updated)
			}
			want.accounted, want.messages, want.updated = got.accounted, got.messages, got.updated
			if got != want || got.accounted < n {
				t.Errorf("an older program reads\n%+v, want\n%+v", got, want)
			}
			if c := b.task("b", "t"); c.format.Valid || c.text.Valid {
				t.Errorf("left behind: %+v", c)
			}
			// Again there is nothing to do, and forth again all is as it was.
			if f, err = b.fold(false); err != nil || f.Protected != 0 {
				t.Errorf("%+v %v", f, err)
			}
			b.open()
			if want.visibility == "visible" {
				b.counts("b", "t", readstate.Values{Unread: uint64(want.count)})
			}
			b.tell(delivered("t", n+1, "b"))
			if err := b.barrier("t", n+1, 0, "b"); err != nil {
				t.Error(err)
			}
		})
	}
}

// What this program would not show stops the way back, and is named; nothing is changed then, not even
// the rows that could go.
// covers: RT-312 RT-313 RT-314
func TestFoldIsStopped(t *testing.T) {
	set := func(what string) func(b *bench) {
		return func(b *bench) {
			b.execute(`UPDATE member_scope_unread_runtime_snapshots SET ` + what + ` WHERE member_id = x'62'`)
		}
	}
	for name, c := range map[string]struct {
		spoil func(b *bench)
		why   string
	}{
		"cursor inside": {func(b *bench) {
			o := olderRow()
			o.read = 1
			b.oldWrites("b", "t", o)
		}, "a cursor stops inside"},
		"unknown version": {set(`task_snapshot_format_version = 999`), "not known here"},
		"words":           {set(`task_snapshot_format_version = 'new'`), "damaged"},
		"bad JSON":        {set(`task_snapshot_json = '{"barrier":1'`), "damaged"},
		"no JSON":         {set(`task_snapshot_json = NULL`), "damaged"},
		"bad level":       {set(`notification_state = 'loud'`), "damaged"},
		"a task of nobody": {func(b *bench) {
			b.execute(`UPDATE member_scope_unread_runtime_snapshots SET task_snapshot_format_version = 1
 WHERE member_id = x''`)
		}, "no row but that of a member"},
	} {
		t.Run(name, func(t *testing.T) {
			b := protectedTask(t, 2)
			b.tell(delivered("t", 3, "x"))
			if err := b.barrier("t", 3, 0, "x"); err != nil {
				t.Fatal(err)
			}
			c.spoil(b)
			b.f.Abandon()
			before := b.dump()
			for _, check := range []bool{true, false} {
				f, err := b.fold(check)
				if err != nil || f.Stopped != 1 || len(f.Obstacles) != 1 || !strings.Contains(f.Obstacles[0].Why, c.why) {
					t.Errorf("%+v %v", f, err)
				}
			}
			if after := b.dump(); after != before {
				t.Errorf("changed from\n%s\nto\n%s", before, after)
			}
			b.open()
		})
	}
}

// dump is the whole table.
func (b *bench) dump() (text string) {
	b.t.Helper()
	b.table(func(db *sql.DB) {
		rows, err := db.QueryContext(b.t.Context(), `SELECT hex(member_id) || hex(scope_id) || ' ' || updated_at || ' ' ||
 message_unread_count || ' ' || last_message_read_seq || ' ' || coalesce(rank_detail, '') || ' ' ||
 coalesce(task_snapshot_format_version, '-') || ' ' || coalesce(task_snapshot_json, '-')
 FROM member_scope_unread_runtime_snapshots ORDER BY 1`)
		if err != nil {
			b.t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				b.t.Fatal(err)
			}
			text += line + "\n"
		}
		if err := rows.Err(); err != nil {
			b.t.Fatal(err)
		}
	})
	return text
}

// Many rows of several workspaces go back page by page; a way back that broke off goes on.
// covers: RT-308
func TestFoldManyRows(t *testing.T) {
	b := newBench(t, Config{})
	const members, tasks = 40, 30
	for i := range tasks {
		s := readstate.ScopeID(fmt.Sprint("t", i))
		var to []readstate.MemberID
		for m := range members {
			to = append(to, readstate.MemberID(fmt.Sprint("m", m)))
		}
		b.tell(job(s, to...)...)
		b.tell(delivered(s, 1, to...))
		if err := b.barrier(s, 1, 0, to...); err != nil {
			t.Fatal(err)
		}
	}
	b.flush()
	b.f.Abandon()
	b.execute(`INSERT INTO member_scope_unread_runtime_snapshots
 SELECT x'7a', member_id, scope_id, message_unread_count, activity_unread_count, manual_unread, last_message_read_seq,
 last_activity_read_seq, effective_from_seq, latest_message_accounted_seq, latest_activity_accounted_seq, notification_state,
 membership_visibility, scope_roster_generation, scope_message_generation, scope_activity_generation, membership_generation,
 notification_generation, manual_unread_generation, rewind_generation, task_snapshot_format_version, task_snapshot_json, e,
 author_at_e, principal_at_e, own_removed_above_e, own_everyone_above_e, direct_above_e, targets_above_e, signal_at, actor_at,
 activity_targets_above, head_revision, floor_revision, signal_head, author_head, principal_head, actor_head, updated_at, rank_detail
 FROM member_scope_unread_runtime_snapshots`)
	b.execute(`UPDATE member_scope_unread_runtime_snapshots SET message_unread_count = 77`)
	b.execute(`CREATE TRIGGER no BEFORE UPDATE ON member_scope_unread_runtime_snapshots
 WHEN NEW.workspace_id = x'7a' BEGIN SELECT RAISE(ABORT, 'no'); END`)
	if f, err := b.fold(false); err == nil || f.Protected != 2*members*tasks {
		t.Fatalf("%+v %v", f, err)
	}
	b.execute(`DROP TRIGGER no`)
	if f, err := b.fold(false); err != nil || f.Protected != members*tasks {
		t.Fatalf("%+v %v", f, err)
	}
	b.table(func(db *sql.DB) {
		var rows, left int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*), coalesce(sum(message_unread_count <> 1 OR task_snapshot_json NOT NULL), 0)
 FROM member_scope_unread_runtime_snapshots WHERE member_id <> x'' AND scope_id <> x''`).Scan(&rows, &left); err != nil {
			t.Fatal(err)
		}
		if rows != 2*members*tasks || left != 0 {
			t.Errorf("%d of %d rows are not what they were", left, rows)
		}
	})
	b.open()
}

// Nobody goes back while somebody writes.
// covers: RT-307
func TestFoldNeedsTheFile(t *testing.T) {
	b := protectedTask(t, 1)
	if _, err := sqlsnap.OpenSQLite(t.Context(), b.path, sqlsnap.Options{Existing: true}); !errors.Is(err, sqlsnap.ErrOwned) {
		t.Errorf("%v", err)
	}
}

// A delivery is not delivered to somebody of whom nobody told: it waits until they have a row that
// counts it, and then it survives.
// covers: RT-208 RT-212 RT-217
func TestBarrierOfStrangers(t *testing.T) {
	b := protectedTask(t, 1)
	b.tell(delivered("t", 2, "b", "s"))
	for range 2 {
		if err := b.barrier("t", 2, 0, "b", "s"); !errors.Is(err, ErrDeferred) {
			t.Fatal(err)
		}
	}
	b.tell(MembershipChanged{Scope: "t", Member: "s", Joined: true, EffectiveFrom: 2}, delivered("t", 2, "b", "s"))
	if err := b.barrier("t", 2, 0, "b", "s"); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.counts("s", "t", readstate.Values{Unread: 1})
	b.counts("b", "t", readstate.Values{Unread: 2})
	// A damaged row counts nothing either, until a cursor settles it.
	b.tell(delivered("t", 3, "s"))
	b.flush()
	b.execute(`UPDATE member_scope_unread_runtime_snapshots SET notification_state = 'loud' WHERE member_id = x'73'`)
	b.crash()
	b.hides("s", "t", unread.Unavailable)
	b.tell(delivered("t", 3, "s"))
	if err := b.barrier("t", 3, 0, "s"); !errors.Is(err, ErrDeferred) {
		t.Fatal(err)
	}
	b.tell(ReadCursorAdvanced{Scope: "t", Member: "s", Revision: 3, Head: 3})
	if err := b.barrier("t", 3, 0, "s"); err != nil {
		t.Fatal(err)
	}
}

// What somebody else's write took from a row between its telling and its barrier is told again first.
// covers: RT-217 RT-304
func TestBarrierOfALostEntry(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Cached = 1
	b := newBench(t, cfg)
	b.tell(job("t", "b", "x")...)
	b.tell(delivered("t", 1, "b"))
	b.flush()
	o := olderRow()
	o.accounted = 1
	b.oldWrites("b", "t", o)
	b.tell(delivered("t", 2, "x")) // b's row is let go
	if s := b.f.Stats().Books; s.Rows > 1 {
		t.Fatalf("%d rows are kept", s.Rows)
	}
	if err := b.barrier("t", 1, 0, "b"); !errors.Is(err, ErrDeferred) {
		o := b.oldReads("b", "t")
		t.Fatalf("%v: %+v", err, o)
	}
	b.tell(delivered("t", 1, "b"))
	if err := b.barrier("t", 1, 0, "b"); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 1})
}
