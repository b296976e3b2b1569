package sqlstore

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// filledRows is how many rows each table gets: enough that reading all of them is worse than a look
// at an index.
const filledRows = 400

// fill puts rows of any content into every table. The first two columns tell them apart.
func fill(t *testing.T, db *sql.DB) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT table_name, column_name, data_type
  FROM information_schema.columns WHERE table_schema = database() AND extra NOT LIKE '%GENERATED%'
  AND table_name <> 'tidemark_migrations' ORDER BY table_name, ordinal_position`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, places := map[string][]string{}, map[string][]string{}
	for rows.Next() {
		var table, column, kind string
		if err := rows.Scan(&table, &column, &kind); err != nil {
			t.Fatal(err)
		}
		value := "n.i % 3"
		switch {
		case kind != "bigint" && kind != "smallint":
			value = "concat('" + column + "', n.i)"
		case len(columns[table]) < 3:
			value = "n.i"
		case kind == "bigint":
			value = "n.i + 7"
		}
		columns[table], places[table] = append(columns[table], column), append(places[table], value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for table, names := range columns {
		text := fmt.Sprintf(`INSERT INTO %s (%s) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL
  SELECT i + 1 FROM n WHERE i < %d) SELECT %s FROM n`, table, strings.Join(names, ", "), filledRows,
			strings.Join(places[table], ", "))
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if _, err := db.ExecContext(t.Context(), "ANALYZE TABLE "+table); err != nil {
			t.Fatal(err)
		}
	}
}

// namedByBytes is a comparison with an id, which a number would make one of numbers.
var namedByBytes = regexp.MustCompile(`((?:\.id|\bnode) [=>]) \?`)

// withBytes gives the columns of keys that hold bytes such a value.
func withBytes(x *statement, n int, text string) string {
	if x.width == 0 {
		return text
	}
	keys := mysqlKeys(n, x.keys)
	var b strings.Builder
	for i, part := range strings.SplitAfter(keys, "?") {
		if strings.HasSuffix(part, "?") && byteColumns[x.keys[i%x.width]] {
			part = strings.TrimSuffix(part, "?") + "_binary'5'"
		}
		b.WriteString(part)
	}
	return strings.Replace(text, keys, b.String(), 1)
}

// Every statement enters every table through an index that it names a value of.
func TestMySQLPlans(t *testing.T) {
	_, db := openOn(t, dbtest.Kinds[1])
	fill(t, db.DB)
	for _, x := range statements {
		if slices.Contains(framing, x) || x.keys == nil || slices.Contains(wholeTable, x) {
			continue
		}
		for _, n := range [...]int{1, 3} {
			if x.width == 0 && n > 1 {
				continue
			}
			text := withBytes(x, n, x.text(mysqlDialect, n))
			text = namedByBytes.ReplaceAllString(text, "$1 _binary'5'")
			text = numbered.ReplaceAllString(text, "5")
			text = strings.ReplaceAll(text, "OFFSET ?", "OFFSET 1")
			text = strings.ReplaceAll(text, "?", "5")
			for _, step := range explain(t, db.DB, text) {
				if step.read(filledRows) {
					t.Errorf("%s with %d keys reads %+v:\n%s", x.name, n, step, text)
				}
			}
		}
	}
}

// step is one line of a plan.
type step struct{ table, access, key, rows, extra string }

// read reports that most of a table is read.
func (s step) read(all int) bool {
	if s.table == "" || strings.HasPrefix(s.table, "<") || s.access != "ALL" && s.access != "index" {
		return false
	}
	var rows int
	_, _ = fmt.Sscan(s.rows, &rows)
	return rows > all/2
}

func explain(t *testing.T, db *sql.DB, text string) []step {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN "+text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []step
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		of := func(name string) string {
			return values[slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })].String
		}
		out = append(out, step{of("table"), of("type"), of("key"), of("rows"), of("Extra")})
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
