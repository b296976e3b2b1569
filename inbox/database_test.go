package inbox

import (
	"database/sql"

	_ "modernc.org/sqlite" // tests look at the file with a handle of their own
)

func (w *world) handle() *sql.DB {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.path+"?_pragma=busy_timeout(5000)")
	w.ok(err)
	return db
}

// query asks the file itself, beside the store.
func (w *world) query(text string, args ...any) [][]any {
	w.t.Helper()
	db := w.handle()
	defer db.Close()
	rows, err := db.QueryContext(w.t.Context(), text, args...)
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
		out = append(out, row)
	}
	w.ok(rows.Err())
	return out
}

// exec changes the file beside the store.
func (w *world) exec(text string, args ...any) {
	w.t.Helper()
	db := w.handle()
	defer db.Close()
	_, err := db.ExecContext(w.t.Context(), text, args...)
	w.ok(err)
}
