package sqlstore

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

// postgresDialect speaks to PostgreSQL 12 and later. The writer reads what is committed, and the
// fence tells whether anybody else has written; a view has one snapshot.
var postgresDialect = &dialect{
	name:       "postgres",
	version:    goose.DialectPostgres,
	table:      "tidemark_migrations",
	begin:      "BEGIN ISOLATION LEVEL READ COMMITTED",
	beginRead:  "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
	commit:     "COMMIT",
	rollback:   "ROLLBACK",
	keys:       postgresKeys,
	index:      func(string) string { return "" }, // see postgresPlans
	lock:       func(alias string) string { return "FOR UPDATE OF " + alias },
	now:        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
	texts:      postgresTexts,
	spell:      postgresSpell,
	insert:     postgresInsert,
	update:     postgresUpdate,
	remove:     postgresRemove,
	arrays:     true,
	bytes:      true,
	remote:     true,
	parameters: 65_535,
	classify:   postgresClassify,
}

// postgresTexts have a sum that is no decimal, and begin with the keys where a part of an index that
// is empty as yet looks like a better beginning.
var postgresTexts = map[string]string{
	"list removed entries of writers": `SELECT m.scope, m.author, m.revision
  FROM {keys} k CROSS JOIN LATERAL (SELECT x.scope, x.author, x.revision FROM scope_messages x
    WHERE x.scope = k.k1 AND x.author = k.k2 AND x.revision > k.k3 AND x.live = 0 OFFSET 0) m
  ORDER BY m.scope, m.author, m.revision`,
	"count pair overlap": `SELECT m.scope, m.author, count(*)
  FROM {keys} k CROSS JOIN LATERAL (SELECT x.scope, x.author FROM scope_messages x
    WHERE x.scope = k.k1 AND x.principal = k.k2 AND x.revision > k.k3 AND x.live = 1 OFFSET 0) m
  GROUP BY m.scope, m.author`,
	"wakes: survey queues": `SELECT coalesce(sum(waiting), 0)::bigint, ` + surveyedQueues,
}

// What PostgreSQL cannot guess of a parameter from what stands beside it, and a join that it takes
// no condition with.
var (
	postgresNumbers = strings.NewReplacer("(? = 0", "(?::bigint = 0", "THEN ? ELSE", "THEN ?::bigint ELSE")
	postgresJoins   = regexp.MustCompile(`CROSS (JOIN \w+ \w+\s+ON\b)`)
)

func postgresSpell(text string) string {
	text = postgresJoins.ReplaceAllString(postgresNumbers.Replace(text), "$1")
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		text = after
	}
}

// postgresKeys is the relation of all keys, one array a column, whose parameters are the first of
// their statement. The limit leaves nothing out. It has the planner expect a row or two, so that
// looking each of them up is always the best it can do, also in a table that is empty as yet.
func postgresKeys(_ int, columns []string) string {
	var b strings.Builder
	b.WriteString("(SELECT * FROM unnest(")
	for i, name := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		if byteColumns[name] {
			b.WriteString("?::bytea[]")
		} else {
			b.WriteString("?::bigint[]")
		}
	}
	return b.String() + ") AS u (" + keyNames(len(columns)) + ") LIMIT cardinality($1))"
}

func keyNames(width int) string {
	names := make([]string, width)
	for i := range names {
		names[i] = fmt.Sprintf("k%d", i+1)
	}
	return strings.Join(names, ", ")
}

func postgresInsert(in insertion, n int) string { return onConflict("INSERT", in, n) }

func postgresUpdate(ch change, _ int) string {
	return updateFrom("UPDATE", ch, postgresKeys(0, ch.columns))
}

func postgresRemove(table string, columns []string, _ int) string {
	return "DELETE FROM " + table + " AS t USING " + postgresKeys(0, columns) + " AS k WHERE " +
		matches(columns)
}

// Codes of PostgreSQL's errors, appendix A of its manual.
func postgresClassify(err error) failure {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return failureOther
	}
	switch e.Code {
	case "23505": // unique_violation
		return failureTaken
	case "53100": // disk_full
		return failureFull
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return failureAborted
	case "55P03": // lock_not_available
		return failureBusy
	case "25006", "42501", "28000", "28P01": // read only; no privilege, or none at all
		return failureReadOnly
	case "58030": // io_error
		return failureWrite
	case "XX001", "XX002": // data_corrupted, index_corrupted
		return failureCorrupt
	}
	return failureOther
}
