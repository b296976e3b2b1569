package sqlstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
)

// mysqlDialect speaks to TiDB, MariaDB and MySQL, in what all three understand. The writer reads
// what is committed, and the fence tells whether anybody else has written; a view has one snapshot.
// Tables are joined in the order in which a statement names them.
var mysqlDialect = &dialect{
	name:       "mysql",
	version:    goose.DialectMySQL,
	table:      "tidemark_migrations",
	begin:      "START TRANSACTION",
	beginRead:  "START TRANSACTION WITH CONSISTENT SNAPSHOT",
	commit:     "COMMIT",
	rollback:   "ROLLBACK",
	keys:       mysqlKeys,
	index:      func(name string) string { return "FORCE INDEX (" + name + ")" },
	lock:       func(string) string { return "FOR UPDATE" },
	now:        "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)",
	texts:      mysqlTexts,
	spell:      mysqlSpell,
	insert:     mysqlInsert,
	update:     mysqlUpdate,
	remove:     mysqlRemove,
	direct:     true,
	bytes:      true,
	remote:     true,
	parameters: 65_535,
	classify:   mysqlClassify,
}

func mysqlSpell(text string) string {
	return strings.ReplaceAll(text, "CROSS JOIN", "STRAIGHT_JOIN")
}

func mysqlKeys(n int, columns []string) string {
	width := len(columns)
	var b strings.Builder
	b.WriteString("(SELECT " + keyColumns(width, "? AS k%[1]d"))
	row := strings.TrimSuffix(strings.Repeat("?, ", width), ", ")
	b.WriteString(strings.Repeat(" UNION ALL SELECT "+row, n-1))
	b.WriteString(")")
	return b.String()
}

// otherKeys are the tables with a unique key besides the one that an upsert goes by, which would
// write to the row that has it.
var otherKeys = map[string]bool{"members": true, "scopes": true, "webhooks": true}

func mysqlInsert(in insertion, n int) string {
	var b strings.Builder
	// A name of ours is a word of TiDB's where it stands alone.
	b.WriteString("INSERT INTO " + in.table + " (`" + strings.Join(in.columns, "`, `") + "`) VALUES ")
	b.WriteString(tuples(n, len(in.columns)))
	if in.ignore {
		// IGNORE would let more pass than that.
		fmt.Fprintf(&b, " ON DUPLICATE KEY UPDATE %[1]s = %[2]s.%[1]s", in.columns[0], in.table)
	}
	if len(in.update) == 0 {
		return b.String()
	}
	b.WriteString(" ON DUPLICATE KEY UPDATE ")
	if key := in.columns[0]; otherKeys[in.table] {
		// A key cannot be NULL, so that another row's fails.
		fmt.Fprintf(&b, "%[1]s = IF(%[2]s.%[1]s = VALUES(%[1]s), %[2]s.%[1]s, NULL), ", key, in.table)
	}
	for i, c := range in.update {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + c + "` = VALUES(`" + c + "`)")
	}
	return b.String()
}

func mysqlUpdate(ch change, n int) string {
	return "UPDATE " + mysqlKeys(n, ch.columns) + " AS k CROSS JOIN " + ch.table + " AS t ON " +
		matches(ch.columns[:ch.keys]) + " SET " + assignments(ch, "t.")
}

func mysqlRemove(table string, columns []string, n int) string {
	return "DELETE t FROM " + mysqlKeys(n, columns) + " AS k CROSS JOIN " + table + " AS t ON " +
		matches(columns)
}

// Numbers of errors, those from 8000 on TiDB's.
const (
	mysqlDiskFull      = 1021
	mysqlNotNull       = 1048 // what mysqlInsert makes of another row's key
	mysqlDuplicate     = 1062
	mysqlTableFull     = 1114
	mysqlLockTimeout   = 1205
	mysqlDeadlock      = 1213
	mysqlReadOnly      = 1290
	mysqlReadOnlyTx    = 1792
	mysqlReadOnlyMode  = 1836
	mysqlNoDatabase    = 1044
	mysqlNoUser        = 1045
	mysqlNoCommand     = 1142
	mysqlCrashed       = 1194
	tidbRetryable      = 8022
	tidbSchemaChanged  = 8028
	tidbWriteConflict  = 9007
	tidbResolveTimeout = 9004
)

func mysqlClassify(err error) failure {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return failureOther
	}
	switch e.Number {
	case mysqlDuplicate, mysqlNotNull:
		return failureTaken
	case mysqlDiskFull, mysqlTableFull:
		return failureFull
	case mysqlDeadlock, tidbRetryable, tidbSchemaChanged, tidbWriteConflict, tidbResolveTimeout:
		return failureAborted
	case mysqlLockTimeout:
		return failureBusy
	case mysqlReadOnly, mysqlReadOnlyTx, mysqlReadOnlyMode, mysqlNoDatabase, mysqlNoUser,
		mysqlNoCommand:
		return failureReadOnly
	case mysqlCrashed:
		return failureCorrupt
	}
	return failureOther
}
