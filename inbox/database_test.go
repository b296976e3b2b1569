package inbox

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // tests look at the file with a handle of their own
)

func (w *world) handle() *sql.DB {
	w.t.Helper()
	if db, ok := serverOf(w.t); ok {
		return db.Open(w.t.(*testing.T))
	}
	db, err := sql.Open("sqlite", "file:"+w.path+"?_pragma=busy_timeout(5000)")
	w.ok(err)
	return db
}

// spelled numbers the parameters of a text where the database wants that.
func (w *world) spelled(text string) string {
	if !strings.HasPrefix(w.facts, "postgres") {
		return text
	}
	for n := 1; strings.Contains(text, "?"); n++ {
		text = strings.Replace(text, "?", fmt.Sprint("$", n), 1)
	}
	return text
}

// query asks the database itself, beside the store.
func (w *world) query(text string, args ...any) [][]any {
	w.t.Helper()
	db := w.handle()
	defer db.Close()
	rows, err := db.QueryContext(w.t.Context(), w.spelled(text), args...)
	w.ok(err)
	defer rows.Close()
	columns, err := rows.Columns()
	w.ok(err)
	var out [][]any
	for rows.Next() {
		row, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			at[i] = &row[i]
		}
		w.ok(rows.Scan(at...))
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b) // ids are bytes
			}
		}
		out = append(out, row)
	}
	w.ok(rows.Err())
	return out
}

// exec changes the database beside the store.
func (w *world) exec(text string, args ...any) {
	w.t.Helper()
	db := w.handle()
	defer db.Close()
	_, err := db.ExecContext(w.t.Context(), w.spelled(text), args...)
	w.ok(err)
}
