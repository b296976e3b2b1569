package sqlsnap

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := OpenSQLite(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// full is a row in which every column differs from every other.
func full(member readstate.MemberID, scope readstate.ScopeID) snapshot.Row {
	n := int64(10)
	next := func() int64 { n++; return n }
	r := snapshot.Row{
		Workspace: "w", Member: member, Scope: scope,
		MessageUnread: next(), ActivityUnread: next(), ManualUnread: 1, MessageRead: next(),
		ActivityRead: next(), EffectiveFrom: next(), MessageAccounted: next(),
		ActivityAccounted: next(), Notification: "mentions until 7", Visibility: "invisible",
		Generations: snapshot.Generations{
			Roster: next(), Message: next(), Activity: next(), Membership: next(),
			Notification: next(), Manual: next(), Rewind: next(),
		},
		Ranks: new(snapshot.Ranks), Detail: `{"epoch":2}`, UpdatedAt: next(),
	}
	for _, p := range places(r.Ranks) {
		*p = next()
	}
	return r
}

func same(a, b snapshot.Row) bool {
	x, y := a.Ranks, b.Ranks
	if (x == nil) != (y == nil) || x != nil && *x != *y || (a.TaskFormat == nil) != (b.TaskFormat == nil) {
		return false
	}
	a.Ranks, b.Ranks, a.TaskFormat, b.TaskFormat = nil, nil, nil, nil
	return a == b
}

func load(t *testing.T, s *Store, q snapshot.Query) []snapshot.Row {
	t.Helper()
	q.Workspace = "w"
	rows, err := s.Load(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// covers: RT-253 RT-255 RT-256 RT-257 RT-258 RT-259 RT-261 RT-287
func TestRowsComeBack(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "snap.db"))
	a, front, old := full("a", "s1"), full("", "s1"), full("b", "s1")
	old.Ranks, old.Detail = nil, ""
	if err := s.Upsert(t.Context(), []snapshot.Row{a, front, old}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []snapshot.Row{a, front, old} {
		rows := load(t, s, snapshot.Query{Member: want.Member, Only: []readstate.ScopeID{"s1", "s2"}})
		if len(rows) != 1 || !same(rows[0], want) {
			t.Errorf("got %+v\nwant %+v", rows, want)
		}
	}
	b := a
	b.MessageUnread, b.UpdatedAt, b.Ranks = 99, 1000, &snapshot.Ranks{E: 5}
	first := full("a", "s1")
	first.IfAbsent, first.MessageUnread = true, 1
	if err := s.Upsert(t.Context(), []snapshot.Row{b, first}); err != nil {
		t.Fatal(err)
	}
	if rows := load(t, s, snapshot.Query{Member: "a", Limit: 9}); len(rows) != 1 || !same(rows[0], b) {
		t.Errorf("an upsert left %+v", rows)
	}
}

// covers: RT-280 RT-281
func TestPages(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "snap.db"))
	hostile := []readstate.ScopeID{"", "%", "a b", "s'--", "Z", "a", "ä", "日本", "\x7f", "a\xff"}
	var rows []snapshot.Row
	for _, id := range hostile[1:] {
		rows = append(rows, full("m", id), full("n", id))
	}
	if err := s.Upsert(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	var got []readstate.ScopeID
	q := snapshot.Query{Member: "m", Limit: 2}
	for {
		page := load(t, s, q)
		if len(page) > 2 {
			t.Fatalf("a page of %d rows", len(page))
		}
		for _, r := range page {
			got = append(got, r.Scope)
		}
		if len(page) < 2 {
			break
		}
		q.After = page[1].Scope
	}
	want := slices.Sorted(slices.Values(hostile[1:]))
	if !slices.Equal(got, want) {
		t.Errorf("pages gave %q, want %q", got, want)
	}
	var many []readstate.ScopeID
	for i := range 1200 {
		many = append(many, readstate.ScopeID(fmt.Sprint("x", i)))
	}
	if rows := load(t, s, snapshot.Query{Member: "m", Only: append(many, "Z")}); len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
}

// Every load is a search by the primary key.
// covers: RT-280
func TestPlans(t *testing.T) {
	var queries []string
	s, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "snap.db"), Options{
		OnStatement: func(_ context.Context, q string) { queries = append(queries, q) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	load(t, s, snapshot.Query{Member: "m", Limit: 5})
	load(t, s, snapshot.Query{Member: "m", Only: []readstate.ScopeID{"a", "b"}})
	n := 0
	for _, q := range queries {
		if !strings.HasPrefix(q, "SELECT scope_id") {
			continue
		}
		n++
		args := make([]any, strings.Count(q, "?"))
		var id, parent, unused int
		var plan string
		err := s.db.QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN "+q, args...).Scan(
			&id, &parent, &unused, &plan)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, "SEARCH") || !strings.Contains(plan, "PRIMARY KEY") {
			t.Errorf("%s\nfor %s", plan, q)
		}
	}
	if n != 2 {
		t.Errorf("%d loads", n)
	}
}

// An upsert writes all or nothing.
func TestAllOrNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "snap.db"))
	if _, err := s.db.ExecContext(t.Context(), `CREATE TRIGGER no BEFORE INSERT ON `+name+`
		WHEN NEW.scope_id = x'6261' BEGIN SELECT RAISE(ABORT, 'no'); END`); err != nil {
		t.Fatal(err)
	}
	if err := s.Upsert(t.Context(), []snapshot.Row{full("a", "ok"), full("a", "ba")}); err == nil {
		t.Fatal("no failure")
	}
	if rows := load(t, s, snapshot.Query{Member: "a", Limit: 9}); len(rows) > 0 {
		t.Errorf("%d rows of a failed upsert", len(rows))
	}
}

// What no program of ours knows of a row's Task columns stays, and makes the row unusable.
// covers: RT-260 RT-289 RT-316
func TestTaskColumnsStay(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "snap.db"))
	if err := s.Upsert(t.Context(), []snapshot.Row{full("a", "s")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), `UPDATE `+name+
		` SET task_snapshot_format_version = 999, task_snapshot_json = '{"n":1}'`); err != nil {
		t.Fatal(err)
	}
	if err := s.Upsert(t.Context(), []snapshot.Row{full("a", "s")}); err != nil {
		t.Fatal(err)
	}
	rows := load(t, s, snapshot.Query{Member: "a", Limit: 9})
	if len(rows) != 1 || rows[0].TaskFormat == nil || *rows[0].TaskFormat != 999 {
		t.Fatalf("%+v", rows)
	}
	var text string
	if err := s.db.QueryRowContext(t.Context(), `SELECT task_snapshot_json FROM `+name).Scan(&text); err != nil || text != `{"n":1}` {
		t.Errorf("%q %v", text, err)
	}
}

// Task columns are written by rows that ask for it, if the table's row is the one they know; else
// nothing of the whole write is there.
// covers: RT-260 RT-282 RT-286 RT-306
func TestConditionalUpsert(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "snap.db"))
	format := int64(1)
	protected := func(was uint64, text string) snapshot.Row {
		r := full("a", "s")
		r.TaskFormat, r.TaskText, r.Protect, r.Was = &format, text, true, was
		return r
	}
	put := func(want error, rows ...snapshot.Row) {
		t.Helper()
		if err := s.Upsert(t.Context(), rows); !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
	}
	has := func() snapshot.Row {
		t.Helper()
		rows := load(t, s, snapshot.Query{Member: "a", Only: []readstate.ScopeID{"s"}})
		if len(rows) != 1 {
			t.Fatalf("%d rows", len(rows))
		}
		return rows[0]
	}
	put(snapshot.ErrConflict, protected(7, "{}"))
	if rows := load(t, s, snapshot.Query{Member: "a", Limit: 9}); len(rows) > 0 {
		t.Fatalf("%+v", rows)
	}
	put(nil, protected(0, "one"))
	put(snapshot.ErrConflict, full("b", "s"), protected(0, "two"))
	if rows := load(t, s, snapshot.Query{Member: "b", Limit: 9}); len(rows) > 0 {
		t.Error("a refused write left something")
	}
	first := has()
	if first.TaskText != "one" || *first.TaskFormat != 1 {
		t.Fatalf("%+v", first)
	}
	// Whatever somebody changes makes it another row.
	const table = name
	for name, change := range map[string]string{
		"a count": "message_unread_count = 1", "a frontier": "latest_message_accounted_seq = 1",
		"a cursor": "last_message_read_seq = 1", "a level": "notification_state = 'none'",
		"a generation": "rewind_generation = 1", "its time": "updated_at = 1",
		"its detail": "rank_detail = '{}'", "Task text": "task_snapshot_json = 'three'",
		"Task format": "task_snapshot_format_version = 2",
	} {
		before := has()
		if _, err := s.db.ExecContext(t.Context(), "UPDATE "+table+" SET "+change); err != nil {
			t.Fatal(err)
		}
		if now := has(); now.Fingerprint() == before.Fingerprint() {
			t.Errorf("%s: the same row", name)
		}
		put(snapshot.ErrConflict, protected(before.Fingerprint(), "two"))
		now := has()
		put(nil, protected(now.Fingerprint(), "two"))
	}
	// A flush asks for nothing and leaves the Task columns; the way back empties them.
	put(nil, full("a", "s"))
	last := has()
	if last.TaskText != "two" {
		t.Errorf("%+v", last)
	}
	empty := protected(last.Fingerprint(), "")
	empty.TaskFormat = nil
	put(nil, empty)
	if last = has(); last.TaskFormat != nil || last.TaskText != "" {
		t.Errorf("%+v", last)
	}
}

// covers: RT-337
func TestDamagedColumns(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "snap.db"))
	if err := s.Upsert(t.Context(), []snapshot.Row{full("a", "s"), full("a", "t")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), `UPDATE `+name+
		` SET message_unread_count = 'many' WHERE scope_id = x'73'`); err != nil {
		t.Fatal(err)
	}
	rows := load(t, s, snapshot.Query{Member: "a", Limit: 9})
	if len(rows) != 2 || rows[0].MessageUnread != -1 || rows[1].MessageUnread != full("a", "t").MessageUnread {
		t.Errorf("%+v", rows)
	}
}

// covers: RT-007
func TestOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snap.db")
	s := open(t, path)
	if _, err := OpenSQLite(t.Context(), path, Options{}); !errors.Is(err, ErrOwned) {
		t.Fatalf("a second owner: %v", err)
	}
	if err := s.Upsert(t.Context(), []snapshot.Row{full("a", "s")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	if rows := load(t, again, snapshot.Query{Member: "a", Limit: 1}); len(rows) != 1 {
		t.Error("the row went with its owner")
	}
}
