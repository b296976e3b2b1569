package sqlstore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// plan returns SQLite's plan of a statement in one size.
func plan(t *testing.T, st *Store, stmt *statement, n int) []string {
	t.Helper()
	tx, err := st.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	text := stmt.text(st.d, n)
	rows, err := tx.conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", stmt.name, err, text)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		out = append(out, detail)
	}
	return out
}

func open(t *testing.T) *Store {
	t.Helper()
	st, err := OpenSQLite(context.Background(), filepath.Join(t.TempDir(), "facts.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func TestPlans(t *testing.T) {
	st := open(t)
	for _, stmt := range statements {
		if strings.HasPrefix(stmt.text(st.d, 1), "BEGIN") || stmt == commitTx || stmt == rollbackTx {
			continue
		}
		fmt.Printf("== %s\n   %s\n", stmt.name, strings.Join(plan(t, st, stmt, 8), "\n   "))
	}
}
