package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

var dialects = []*dialect{sqliteDialect, postgresDialect, mysqlDialect}

// No statement has more parameters than a database takes, in the largest size and with a tail.
func TestParameters(t *testing.T) {
	for _, d := range dialects {
		for _, st := range statements {
			n := maxRows
			if st.keys != nil && !d.arrays {
				n = maxKeys
			}
			if st.width == 0 {
				n = 0
			}
			text := st.text(d, n)
			if marks := max(strings.Count(text, "?"), strings.Count(text, "$")); marks > d.parameters {
				t.Errorf("%s on %s: %d parameters", st.name, d.name, marks)
			}
			for _, left := range []string{"{keys}", "{index", "{lock"} {
				if strings.Contains(text, left) {
					t.Errorf("%s on %s keeps its mark:\n%s", st.name, d.name, text)
				}
			}
		}
		for name := range d.texts {
			if !slices.ContainsFunc(statements, func(st *statement) bool { return st.name == name }) {
				t.Errorf("%s has words for %q, which is no statement", d.name, name)
			}
		}
	}
}

// openOn opens a store on a server and returns it with the database.
func openOn(t *testing.T, k dbtest.Kind) (*Store, dbtest.Database) {
	t.Helper()
	db := k.New(t)
	st, err := Open(t.Context(), db.Facts, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st, db
}

// A schema's number means the same tables and columns in every dialect, but for the columns that
// one computes for its indexes.
//
// covers: RT-253
func TestSameSchema(t *testing.T) {
	for _, d := range dialects {
		if newest(d) != newest(sqliteDialect) {
			t.Errorf("%s has migrations up to %d, SQLite up to %d", d.name, newest(d), newest(sqliteDialect))
		}
	}
	file := openStore(t).writer.db
	file.SetMaxOpenConns(2)
	want := shapeOf(t, file, `SELECT m.name, c.name, c."notnull" = 1 OR c.pk = 1, c.type <> 'INTEGER'
  FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`)
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			_, db := openOn(t, k)
			schema := "current_schema()"
			if k.Name == "mysql" {
				schema = "database()"
			}
			got := shapeOf(t, db.DB, `SELECT table_name, column_name, is_nullable = 'NO',
  data_type NOT IN ('bigint', 'smallint') FROM information_schema.columns
  WHERE table_schema = `+schema)
			for _, computed := range []string{
				"scope_messages.expiring", "scope_messages.paid", "scope_activity_events.signal_seq",
				"scope_activity_events.actor_seq", "scope_activity_events.paid",
			} {
				delete(got, computed)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-sqlite +%s:\n%s", k.Name, diff)
			}
			var key string
			err := db.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM
  information_schema.key_column_usage k JOIN information_schema.table_constraints c
  USING (table_schema, table_name, constraint_name)
  WHERE table_schema = `+schema+` AND table_name = 'member_scope_unread_runtime_snapshots'
    AND c.constraint_type = 'PRIMARY KEY' AND (k.ordinal_position = 1 AND k.column_name = 'workspace_id'
    OR k.ordinal_position = 2 AND k.column_name = 'member_id'
    OR k.ordinal_position = 3 AND k.column_name = 'scope_id')`).Scan(&key)
			if err != nil || key != "3" {
				t.Errorf("%s columns of the snapshot rows' key are where they should be: %v", key, err)
			}
		})
	}
}

// shapeOf says of every column whether it may be NULL and whether it holds bytes.
func shapeOf(t *testing.T, db *sql.DB, query string) map[string][2]bool {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string][2]bool{}
	for rows.Next() {
		var table, column string
		var is [2]bool
		if err := rows.Scan(&table, &column, &is[0], &is[1]); err != nil {
			t.Fatal(err)
		}
		if table != "goose_db_version" && table != "tidemark_migrations" && table != "sqlite_sequence" {
			out[table+"."+column] = is
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	postgresMark = regexp.MustCompile(`\$(\d+)`)
	// An index that is not entered by a condition is read from one end to the other.
	postgresScan = regexp.MustCompile(`Seq Scan on (\w+)|Index (?:Only )?Scan (?:Backward )?using (\w+)`)
)

// Every statement enters every table through an index, with a condition, whatever is in the tables
// and however old the plan is.
func TestPostgresPlans(t *testing.T) {
	kind := dbtest.Kinds[0]
	st, _ := openOn(t, kind)
	s, err := st.writer.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.writer.give(s)
	for n, x := range statements {
		if slices.Contains(framing, x) || x.keys == nil {
			continue // no plan, or one row put into a table
		}
		text := x.text(postgresDialect, 1)
		marks := 0
		for _, m := range postgresMark.FindAllStringSubmatch(text, -1) {
			var i int
			_, _ = fmt.Sscan(m[1], &i)
			marks = max(marks, i)
		}
		args := strings.TrimSuffix(strings.Repeat("NULL,", marks), ",")
		if args != "" {
			args = "(" + args + ")"
		}
		if _, err := s.conn.ExecContext(t.Context(), fmt.Sprintf("PREPARE p%d AS %s", n, text)); err != nil {
			t.Errorf("%s: %v\n%s", x.name, err, text)
			continue
		}
		plan := strings.Join(lines(t, s.conn, fmt.Sprintf("EXPLAIN (COSTS OFF) EXECUTE p%d%s", n, args)), "\n")
		checkPostgresPlan(t, x, plan)
	}
}

func checkPostgresPlan(t *testing.T, x *statement, plan string) {
	t.Helper()
	steps := strings.Split(plan, "\n")
	for i, step := range steps {
		m := postgresScan.FindStringSubmatch(step)
		if m == nil {
			continue
		}
		entered := m[1] == "" && i+1 < len(steps) && strings.Contains(steps[i+1], "Index Cond")
		// Those who are being erased are what there is in an index of their own.
		if !entered && !slices.Contains(wholeTable, x) && m[2] != "members_erased" {
			t.Errorf("%s scans:\n%s", x.name, plan)
			return
		}
	}
}

func lines(t *testing.T, conn *sql.Conn, query string) []string {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		out = append(out, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
