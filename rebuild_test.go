package tidemark_test

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	_ "modernc.org/sqlite" // a look at the file with a handle of its own

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// factTables are where every fact is that a count follows from.
var factTables = []string{
	"scope_messages", "scope_activity_events", "scope_memberships", "scope_notification_settings",
	"scopes", "members", "conversation_member_states", "tasks",
}

// onlyFacts copies those tables, and nothing else, to a database of its own.
func onlyFacts(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "copy.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	run(`ATTACH ? AS whole`, path)
	for _, table := range factTables {
		run(fmt.Sprintf(`CREATE TABLE main.%s AS SELECT * FROM whole.%s`, table, table))
	}
	run(`DETACH whole`)
	return db
}

// rebuilt are the values of a member in a scope, counted one by one.
type rebuilt struct {
	unread, attention, activity uint64
	level                       string
	manual                      bool
}

// rowFacts is what the tables say of a member in a scope.
type rowFacts struct {
	member, scope   int64
	id, in          string
	kind            readstate.ScopeType
	eff, floor      uint64
	read, from      uint64
	manual          bool
	activityRead    uint64
	level           sql.NullInt64
	values          rebuilt
	joined, visible bool
}

func rowsOfFacts(t *testing.T, db *sql.DB) (all []rowFacts) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT m.member, s.scope, CAST(m.id AS TEXT),
    CAST(s.id AS TEXT), s.type, ms.eff, s.floor_revision, coalesce(c.read_revision, 0),
    coalesce(c.manual_unread, 0), coalesce(c.manual_unread_from, 0),
    coalesce(c.activity_read_seq, 0), n.level, ms.joined, ms.visible
  FROM scope_memberships ms JOIN members m USING (member) JOIN scopes s USING (scope)
  LEFT JOIN conversation_member_states c USING (member, scope)
  LEFT JOIN scope_notification_settings n USING (member, scope)`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r rowFacts
		err := rows.Scan(&r.member, &r.scope, &r.id, &r.in, &r.kind, &r.eff, &r.floor, &r.read,
			&r.manual, &r.from, &r.activityRead, &r.level, &r.joined, &r.visible)
		if err != nil {
			t.Fatal(err)
		}
		if r.joined && r.visible {
			all = append(all, r)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// has says whether a packed list holds a member.
func has(packed []byte, member int64) bool {
	for len(packed) > 0 {
		n, size := binary.Uvarint(packed)
		if size <= 0 {
			return false
		}
		if n == uint64(uint32(member)) {
			return true
		}
		packed = packed[size:]
	}
	return false
}

// count counts what the tables hold for a member in a scope.
func (r *rowFacts) count(t *testing.T, db *sql.DB) {
	t.Helper()
	e := r.read
	if r.manual && r.from > 0 {
		e = min(e, r.from-1)
	}
	e = max(e, r.floor, r.eff-1)
	rows, err := db.QueryContext(t.Context(), `SELECT author, coalesce(principal, 0), named, recipients,
    everyone FROM scope_messages WHERE scope = ? AND live = 1 AND revision > ?`, r.scope, e)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var author, principal int64
		var named, recipients []byte
		var everyone bool
		if err := rows.Scan(&author, &principal, &named, &recipients, &everyone); err != nil {
			t.Fatal(err)
		}
		if author == r.member || principal == r.member ||
			r.kind == readstate.Task && !has(recipients, r.member) {
			continue
		}
		r.values.unread++
		if r.kind == readstate.DM || everyone || has(named, r.member) {
			r.values.attention++
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	r.countActivities(t, db)
	r.values.manual, r.values.level = r.manual, readstate.LevelAll.String()
	if r.level.Valid {
		r.values.level = readstate.Level(r.level.Int64).String()
	}
}

func (r *rowFacts) countActivities(t *testing.T, db *sql.DB) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT actor, recipients FROM scope_activity_events
  WHERE scope = ? AND high_signal = 1 AND seq > ?`, r.scope, r.activityRead)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var actor int64
		var recipients []byte
		if err := rows.Scan(&actor, &recipients); err != nil {
			t.Fatal(err)
		}
		if actor != r.member && (r.kind != readstate.Task || has(recipients, r.member)) {
			r.values.activity++
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// lively has something of every kind happen.
func (h *hub) lively() {
	h.t.Helper()
	ctx := h.t.Context()
	h.task()
	ok := func(_ any, err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
	}
	ok(h.PutScope(ctx, facts.PutScope{ID: "dm", Type: readstate.DM}))
	for _, m := range []readstate.MemberID{"a", "b"} {
		ok(h.PutMembership(ctx, facts.PutMembership{Scope: "dm", Member: m}))
	}
	d, status := readstate.MemberID("d"), "open"
	ok(h.PutTask(ctx, facts.PutTask{Scope: "task", Actor: "a", Assignee: &d, Status: &status}))
	for i := range 6 {
		h.post("a", "b")
		h.post("b")
		h.postIn("dm", facts.Post{Author: "a"})
		h.postIn("task", facts.Post{Author: "a", Mentions: []readstate.MemberID{"c"}})
		h.record("c", "file_shared")
		h.record("task", "task_due_changed")
		if i == 2 {
			two, at := readstate.Revision(2), readstate.Seq(3)
			for _, m := range []readstate.MemberID{"b", "c", "d"} {
				ok(h.MarkRead(ctx, facts.MarkRead{Scope: "c", Member: m, Revision: &two}))
				ok(h.MarkRead(ctx, facts.MarkRead{
					Scope: "task", Member: m, Revision: &two, ActivitySeq: &at, Trusted: true,
				}))
			}
			ok(h.PutMembership(ctx, facts.PutMembership{Scope: "c", Member: "late", CreateMember: true}))
			ok(h.Leave(ctx, facts.Leave{Scope: "c", Member: "c"}))
		}
	}
	none := readstate.LevelNone
	ok(h.PutMembership(ctx, facts.PutMembership{Scope: "dm", Member: "b", Level: &none}))
	ok(h.MarkUnread(ctx, facts.MarkUnread{Scope: "task", Member: "b", From: 1, Trusted: true}))
	everyone := h.postIn("c", facts.Post{Author: "d", Everyone: true})
	gone := h.post("a", "d")
	for i, r := range []facts.Receipt{gone, everyone} {
		if i == 0 {
			ok(h.Remove(ctx, facts.Remove{Scope: "c", Message: r.MessageID, OpID: "gone"}))
		}
	}
}

// Everything that a count follows from is in eight tables: whoever has these and nothing else
// counts what memory shows, of messages and activities, in channels, dms and tasks.
//
// covers: RT-283
func TestCountsFollowFromEightTables(t *testing.T) {
	h := newHub(t)
	h.lively()
	db := onlyFacts(t, h.path)
	all := rowsOfFacts(t, db)
	var sum rebuilt
	for i := range all {
		r := &all[i]
		r.count(t, db)
		row := h.row(readstate.MemberID(r.id), readstate.ScopeID(r.in))
		shown := rebuilt{
			row.Values.Unread, row.Values.Attention, row.Values.Activity, row.Level.String(),
			row.Row.Manual.Set,
		}
		if shown != r.values {
			t.Errorf("%s in %s is shown %+v, and the tables say %+v", r.id, r.in, shown, r.values)
		}
		sum.unread += shown.unread
		sum.attention += shown.attention
		sum.activity += shown.activity
	}
	if len(all) < 10 || sum.unread < 20 || sum.attention < 10 || sum.activity < 10 {
		t.Errorf("%d rows with %+v prove little", len(all), sum)
	}
	var assignee, status string
	err := db.QueryRowContext(t.Context(), `SELECT CAST(m.id AS TEXT), t.status FROM tasks t
  JOIN members m ON m.member = t.assignee`).Scan(&assignee, &status)
	if err != nil || assignee != "d" || status != "open" {
		t.Errorf("the task is given to %q and %q: %v", assignee, status, err)
	}
	if slices.ContainsFunc(all, func(r rowFacts) bool { return r.id == "c" && r.in == "c" }) {
		t.Error("somebody who has left is counted")
	}
}
