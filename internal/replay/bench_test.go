//go:build unix

package replay_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"

	tidemark "github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/replay"
	"github.com/tidemark-im/tidemark/internal/trace"
)

const (
	benchMessages = 100_000
	benchGroup    = 20_000 // rows of a transaction, in both
	bareStatement = 200    // rows of a statement
)

// BenchmarkReplay compares a replay with putting the rows that it leaves behind, memberships and
// follows included, into the same tables by plain statements of many rows. Beside the rates it
// prints how long a durable write took in the same run, and the ratio in processor time, which
// a busy machine does not stretch.
func BenchmarkReplay(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the command does
	path := filepath.Join(b.TempDir(), "trace.csv")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := trace.NewWriter(f)
	err = trace.Generate(trace.Settings{Messages: benchMessages, Seed: 1}, w.Write)
	if err != nil || w.Flush() != nil || f.Close() != nil {
		b.Fatal("the trace cannot be written:", err)
	}
	var loading, bare spent
	var syncs []time.Duration
	for b.Loop() {
		dir := b.TempDir()
		loading.add(loadOnce(b, path, filepath.Join(dir, "a.db")))
		bare.add(insertBare(b, filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")))
		syncs = append(syncs, syncOnce(b, dir))
	}
	slices.Sort(syncs)
	messages := float64(b.N) * benchMessages
	b.ReportMetric(messages/loading.wall.Seconds(), "messages/s")
	b.ReportMetric(messages/bare.wall.Seconds(), "bare-messages/s")
	b.ReportMetric(100*bare.wall.Seconds()/loading.wall.Seconds(), "%-of-bare")
	b.ReportMetric(100*bare.cpu.Seconds()/loading.cpu.Seconds(), "%-of-bare-cpu")
	b.ReportMetric(float64(syncs[len(syncs)/2].Microseconds()), "µs/fsync")
	b.ReportMetric(0, "ns/op")
}

// spent is what a piece of work took on the clock and of the processors.
type spent struct{ wall, cpu time.Duration }

func (s *spent) add(o spent) { s.wall, s.cpu = s.wall+o.wall, s.cpu+o.cpu }

// stopwatch starts now; the function it returns says what was spent since.
func stopwatch() func() spent {
	cpu := func() time.Duration {
		var u unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // a zero shows in the ratio
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	wall, used := time.Now(), cpu()
	return func() spent { return spent{time.Since(wall), cpu() - used} }
}

func loadOnce(b *testing.B, path, db string) spent {
	e, err := tidemark.Open(b.Context(), tidemark.Options{
		Facts: "sqlite:" + db,
		Lane:  facts.LaneConfig{GroupRows: benchGroup, GroupWait: time.Second},
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := e.CreateWorkspace(b.Context(), "trace", ""); err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	rows, err := trace.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	watch := stopwatch()
	if _, err := replay.Load(b.Context(), e.Workspace("trace"), rows, nil); err != nil {
		b.Fatal(err)
	}
	took := watch()
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	return took
}

// table is everything that one table holds.
type table struct {
	name    string
	columns int
	values  []any // row by row
}

// insertBare copies the tables of one database into another that has them empty. Only the
// writing counts.
func insertBare(b *testing.B, from, to string) spent {
	store, err := sqlstore.OpenSQLite(b.Context(), to, sqlstore.Options{}) // makes the tables
	if err != nil || store.Close() != nil {
		b.Fatal("the second database cannot be made:", err)
	}
	tables := readTables(b, from)
	db, err := sql.Open("sqlite", "file:"+to+"?_txlock=immediate&_pragma=journal_mode(WAL)"+
		"&_pragma=synchronous(FULL)&_pragma=cache_size(-65536)&_pragma=wal_autocheckpoint(4000)")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	watch := stopwatch()
	tx, err := db.BeginTx(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	written := 0
	for _, t := range tables {
		for len(t.values) > 0 {
			n := min(bareStatement, len(t.values)/t.columns)
			row := "(" + strings.TrimSuffix(strings.Repeat("?,", t.columns), ",") + "),"
			query := "INSERT INTO " + t.name + " VALUES " + strings.TrimSuffix(strings.Repeat(row, n), ",")
			if _, err := tx.ExecContext(b.Context(), query, t.values[:n*t.columns]...); err != nil {
				b.Fatal(err)
			}
			t.values = t.values[n*t.columns:]
			if written += n; written < benchGroup {
				continue
			}
			written = 0
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
			if tx, err = db.BeginTx(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
	return watch()
}

func readTables(b *testing.B, path string) []table {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var names []string
	each(b, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "+
		"AND name NOT LIKE 'goose_%' ORDER BY name", func(values []any) {
		names = append(names, fmt.Sprint(values[0]))
	})
	var out []table
	for _, name := range names {
		t := table{name: name}
		each(b, db, "SELECT * FROM "+name, func(values []any) {
			t.columns = len(values)
			t.values = append(t.values, values...)
		})
		if t.columns > 0 {
			out = append(out, t)
		}
	}
	return out
}

func each(b *testing.B, db *sql.DB, query string, row func([]any)) {
	rows, err := db.QueryContext(b.Context(), query)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		b.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			b.Fatal(err)
		}
		row(values)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
}

// syncOnce times a small durable write.
func syncOnce(b *testing.B, dir string) time.Duration {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	started := time.Now()
	if _, err := f.Write(make([]byte, 4096)); err != nil || f.Sync() != nil {
		b.Fatal("cannot write:", err)
	}
	return time.Since(started)
}
