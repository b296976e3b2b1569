package tidemark_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// rowCounts is how many rows each table of the file has.
func rowCounts(t *testing.T, path string) map[string]int {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(),
		`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, name := range names {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		out[name] = n
	}
	return out
}

func (h *hub) counted(query string) (n int) {
	h.t.Helper()
	db, err := sql.Open("sqlite", "file:"+h.path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		h.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(h.t.Context(), query).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// A task that a hundred thousand may read and three have to know of: its message is counted in
// three rows, and its activity in two, whatever the size of the workspace.
//
// covers: RT-073 RT-197
func TestThreeAmongAHundredThousand(t *testing.T) {
	crowd := 100_000
	if testing.Short() {
		crowd = 5_000
	}
	h := newHub(t)
	h.task()
	for at := 0; at < crowd; at += 5_000 {
		b := h.Batch()
		for i := range 5_000 {
			b.PutMembership(facts.PutMembership{
				Scope: "task", Member: readstate.MemberID(fmt.Sprint("crowd", at+i)), CreateMember: true,
			})
		}
		if _, err := b.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d := readstate.MemberID("d")
	if _, err := h.PutTask(t.Context(), facts.PutTask{Scope: "task", Actor: "a", Assignee: &d}); err != nil {
		t.Fatal(err)
	}
	grown := func(fn func()) map[string]int {
		before := rowCounts(t, h.path)
		fn()
		grew := map[string]int{}
		for table, n := range rowCounts(t, h.path) {
			if n != before[table] {
				grew[table] = n - before[table]
			}
		}
		return grew
	}
	same := func(what string, got, want map[string]int) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s adds the rows %v, want %v", what, got, want)
		}
	}
	same("a message", grown(func() {
		h.postIn("task", facts.Post{Author: "a", Mentions: []readstate.MemberID{"crowd777"}})
	}), map[string]int{
		"scope_messages": 1, "scope_activity_events": 1, "outbox": 1, "message_targets": 3,
		"message_mentions": 1, "im_conversation_index": 1, "inboxes": 3, "inbox_positions": 3,
	})
	if n := h.counted(`SELECT count(*) FROM conversation_member_states WHERE targets_above_e <> 0`); n != 3 {
		t.Errorf("the message is counted in %d rows of members", n)
	}
	same("an activity", grown(func() { h.record("task", "task_due_changed") }), map[string]int{
		"scope_activity_events": 1, "outbox": 1, "activity_targets": 2,
	})
	for m, want := range map[readstate.MemberID]uint64{"b": 1, "d": 1, "crowd777": 1, "c": 0, "crowd5": 0} {
		if got := h.row(m, "task").Values.Unread; got != want {
			t.Errorf("%s has %d, want %d", m, got, want)
		}
	}
}
