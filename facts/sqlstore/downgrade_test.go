package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// alter writes to a database that nobody has open.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range statements {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// schemaText is everything that a database is made of, in one order.
func schemaText(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []string
	rows, err := db.QueryContext(t.Context(), `SELECT type, name FROM sqlite_schema
  WHERE name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var kind, name string
		if err := rows.Scan(&kind, &name); err != nil {
			t.Fatal(err)
		}
		all = append(all, kind+" "+name)
		if kind == "table" {
			tables = append(tables, name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for name, kind := range columns(t, db, table) {
			all = append(all, table+"."+name+" "+kind)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func freshAt(t *testing.T, version int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "facts.db")
	migrateTo(t, path, version)
	return path
}

const (
	outboxRow = `INSERT INTO outbox (workspace, event, version, kind, scope, seq, id, actor, created_at)
  VALUES (1, %d, 2, 1, 1, 1, x'61', 1, 1)`
	outboxDone = `INSERT INTO outbox_state (workspace, event, state, lease, term, owner, failures,
  deferrals, error, created_at, settled_at) VALUES (1, %d, %d, 0, 0, '', 0, 0, '', 1, %s)`
)

func endpointOf(recipient int, url string) string {
	return fmt.Sprintf(`INSERT INTO wake_endpoints
  VALUES (%d, %s, x'61', 0, 0, 0, 0, 0, 0, NULL, 0, 0, '', '')`, recipient, url)
}

func state(event int, s facts.EffectState, settled string) string {
	return fmt.Sprintf(outboxDone, event, s, settled)
}

// Each kind of rows that an older program could do nothing right with is named, with its number
// and from which schema on; what is delivered stops nobody.
//
// covers: RT-307 RT-314
func TestObstacles(t *testing.T) {
	type line struct {
		schema, rows int64
		what         string
	}
	for name, c := range map[string]struct {
		rows []string
		to   int64
		want []line
	}{
		"nothing": {to: 2},
		"rows nobody looked at, leased, deferred, failed and behind": {
			rows: []string{
				fmt.Sprintf(outboxRow, 1), fmt.Sprintf(outboxRow, 2), fmt.Sprintf(outboxRow, 3),
				fmt.Sprintf(outboxRow, 4), fmt.Sprintf(outboxRow, 5), fmt.Sprintf(outboxRow, 6),
				state(2, facts.EffectLeased, "NULL"), state(3, facts.EffectDeferred, "NULL"),
				state(4, facts.EffectFailed, "NULL"), state(5, facts.EffectBehind, "NULL"),
				state(6, facts.EffectDelivered, "7"),
			},
			to: 3, want: []line{{4, 5, "not delivered"}},
		},
		"a delivered row": {
			rows: []string{fmt.Sprintf(outboxRow, 1), state(1, facts.EffectDelivered, "7")}, to: 2,
		},
		"wakes": {
			rows: []string{`INSERT INTO wakes VALUES (1, 1, 1, 1, 1, 1, NULL, 1, 0, 1, 1)`},
			to:   3, want: []line{{4, 1, "wait to be sent"}},
		},
		"dead letters": {
			rows: []string{`INSERT INTO dead_letters VALUES (1, 1, 1, 1, 1, 1, 1, 1, NULL, 1, 0, 1, 0, 1, '', 1)`},
			to:   2, want: []line{{4, 1, "given up"}},
		},
		"an address": {
			rows: []string{
				endpointOf(1, `'https://a/'`), endpointOf(2, "NULL"),
			},
			to: 3, want: []line{{4, 1, "an address"}},
		},
		"a webhook": {
			rows: []string{
				`INSERT INTO webhooks VALUES (1, 1, x'61', 1, 0, 1)`,
				endpointOf(-1, `'https://a/'`),
			},
			to: 3, want: []line{{4, 1, "webhooks"}},
		},
		"a task": {
			rows: []string{taskScope}, to: 2, want: []line{{3, 1, "tasks"}},
		},
		"a task, to a schema that knows it": {rows: []string{taskScope}, to: 3},
		"a text in an inbox, and one that was taken back": {
			rows: []string{
				`INSERT INTO inbox_messages VALUES (1, 1, x'61', x'62')`,
				`INSERT INTO inbox_messages VALUES (1, 2, x'63', NULL)`,
			},
			to: 5, want: []line{{6, 1, "inboxes"}},
		},
		"a session": {
			rows: []string{`INSERT INTO sessions VALUES (1, 1, 1, 0)`},
			to:   4, want: []line{{5, 1, "sessions"}},
		},
		"snapshot rows with Task columns": {
			rows: []string{taskSnapshot(1), taskSnapshot(2), taskSnapshot(0)},
			to:   4, want: []line{{5, 2, "Task columns"}},
		},
		"an activity": {
			rows: []string{anActivity}, to: 2, want: []line{{3, 1, "activities"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := freshAt(t, newestSQLite())
			alter(t, path, c.rows...)
			found, err := ObstaclesSQLite(t.Context(), path, c.to)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range found {
				if i >= len(c.want) || o.Schema != c.want[i].schema || o.Rows != c.want[i].rows ||
					!strings.Contains(o.What, c.want[i].what) || o.Instead == "" {
					t.Errorf("%+v, want %+v", found, c.want)
				}
			}
			if len(found) != len(c.want) {
				t.Errorf("%+v, want %+v", found, c.want)
			}
			before := schemaText(t, path)
			err = DowngradeSQLite(t.Context(), path, c.to)
			if stopped := len(c.want) > 0; errors.Is(err, ErrObstacles) != stopped ||
				err != nil && !stopped {
				t.Errorf("going back: %v", err)
			} else if stopped && schemaText(t, path) != before {
				t.Error("a way back that was stopped changed something")
			}
		})
	}
}

var taskScope = fmt.Sprintf(`INSERT INTO scopes VALUES (1, 1, x'61', %d, '', 0, NULL, 0, 0, NULL,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0, 0)`, readstate.Task)

// taskSnapshot is a row of the snapshot table with Task columns of a format.
func taskSnapshot(format int) string {
	return fmt.Sprintf(`INSERT INTO member_scope_unread_runtime_snapshots
  (workspace_id, member_id, scope_id, message_unread_count, activity_unread_count, manual_unread,
   last_message_read_seq, last_activity_read_seq, effective_from_seq, latest_message_accounted_seq,
   latest_activity_accounted_seq, notification_state, membership_visibility,
   scope_roster_generation, scope_message_generation, scope_activity_generation,
   membership_generation, notification_generation, manual_unread_generation, rewind_generation,
   task_snapshot_format_version, task_snapshot_json, updated_at)
  VALUES (x'77', x'6%d', x'74', 0, 0, 0, 0, 0, 1, 0, 0, 'all', 'visible', 0, 0, 0, 0, 0, 0, 0, %d, '{}', 1)`,
		format+1, format)
}

const anActivity = `INSERT INTO scope_activity_events
  (scope, seq, id, kind, high_signal, actor, created_at) VALUES (1, 1, x'61', 'reaction', 0, 1, 1)`

// The way back leaves the schema that a program of that version makes itself, and the way forth
// finds nothing to deliver a second time.
//
// covers: RT-307
func TestDowngrade(t *testing.T) {
	newest := newestSQLite()
	for to := int64(OldestSQLite); to < newest; to++ {
		path := freshAt(t, newest)
		alter(t, path, fmt.Sprintf(outboxRow, 1), state(1, facts.EffectDelivered, "7"))
		if err := DowngradeSQLite(t.Context(), path, to); err != nil {
			t.Fatal(err)
		}
		if got, want := schemaText(t, path), schemaText(t, freshAt(t, to)); got != want {
			t.Errorf("back to %d it is\n%s\nwant\n%s", to, got, want)
		}
		st, err := OpenSQLite(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := st.FreshEffects(t.Context())
		if err != nil || len(fresh) != 0 {
			t.Errorf("forth from %d: %v, %v", to, fresh, err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		if got, want := schemaText(t, path), schemaText(t, freshAt(t, newest)); got != want {
			t.Errorf("forth from %d it is\n%s\nwant\n%s", to, got, want)
		}
	}
}

// Nobody goes back while somebody else may write, nor to where there is no way.
//
// covers: RT-307
func TestDowngradeIsRefused(t *testing.T) {
	path := freshAt(t, newestSQLite())
	st, err := OpenSQLite(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := schemaText(t, path)
	if err := DowngradeSQLite(t.Context(), path, 3); !errors.Is(err, facts.ErrNotOwner) {
		t.Errorf("while it is open: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, to := range []int64{-1, 0, OldestSQLite - 1, newestSQLite(), newestSQLite() + 1} {
		if err := DowngradeSQLite(t.Context(), path, to); !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("to %d: %v", to, err)
		}
	}
	if schemaText(t, path) != before {
		t.Error("what was refused changed something")
	}
}
