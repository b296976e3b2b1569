package sqlstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"
	sqlite "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// sqliteDialect speaks to SQLite. A transaction that writes takes the write lock at once, so
// that it never has to give up half way.
var sqliteDialect = &dialect{
	name:       "sqlite",
	version:    goose.DialectSQLite3,
	table:      goose.DefaultTablename,
	begin:      "BEGIN IMMEDIATE",
	beginRead:  "BEGIN",
	commit:     "COMMIT",
	rollback:   "ROLLBACK",
	keys:       sqliteKeys,
	index:      func(name string) string { return "INDEXED BY " + name },
	lock:       func(string) string { return "" },
	now:        "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
	spell:      func(text string) string { return text },
	insert:     sqliteInsert,
	update:     sqliteUpdate,
	remove:     sqliteRemove,
	frees:      true,
	parameters: 32_766,
	classify:   sqliteClassify,
}

// sqliteKeys names the columns k1, k2 and so on.
func sqliteKeys(n int, columns []string) string {
	return "(SELECT " + keyColumns(len(columns), "column%d AS k%d") + " FROM (VALUES " +
		tuples(n, len(columns)) + "))"
}

func keyColumns(width int, format string) string {
	var b strings.Builder
	for i := 1; i <= width; i++ {
		if i > 1 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, format, i, i)
	}
	return b.String()
}

// sqliteInsert lets a violated constraint roll the whole transaction back: nothing goes on after
// one anyway, and it spares the copy of every page that taking back one statement would need.
func sqliteInsert(in insertion, n int) string { return onConflict("INSERT OR ROLLBACK", in, n) }

func sqliteUpdate(ch change, n int) string {
	return updateFrom("UPDATE OR ROLLBACK", ch, sqliteKeys(n, ch.columns))
}

func sqliteRemove(table string, columns []string, n int) string {
	return "DELETE FROM " + table + " WHERE (" + strings.Join(columns, ", ") + ") IN (VALUES " +
		tuples(n, len(columns)) + ")"
}

// sqliteClassify looks at the primary code; extended codes only refine it.
func sqliteClassify(err error) failure {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return failureOther
	}
	if e.Code() == sqlitelib.SQLITE_IOERR_WRITE {
		return failureWrite
	}
	switch e.Code() {
	case sqlitelib.SQLITE_CONSTRAINT_UNIQUE, sqlitelib.SQLITE_CONSTRAINT_PRIMARYKEY:
		return failureTaken
	}
	switch e.Code() & 0xff {
	case sqlitelib.SQLITE_FULL:
		return failureFull
	case sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED:
		return failureBusy
	case sqlitelib.SQLITE_CORRUPT, sqlitelib.SQLITE_NOTADB:
		return failureCorrupt
	case sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_PERM:
		return failureReadOnly
	}
	return failureOther
}
