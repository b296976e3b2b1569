package tidemark_test

import (
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the control speaks to the database directly

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/replay"
	"github.com/tidemark-im/tidemark/internal/trace"
	"github.com/tidemark-im/tidemark/readstate"
)

const (
	benchWriters  = 64
	benchMessages = 6400
	benchRounds   = 9
	bareRows      = 2000 // rows a transaction of the large control
)

// BenchmarkGroupCommit measures, in rounds of one run, how fast 64 concurrent writers get
// messages in through the library; how fast the same writers do with a transaction each; and
// how fast the rows they left go in as bare multi-row transactions, once in as many
// transactions as the library made, once in large ones. It prints rates, ratios and the latency
// of fsync beside them.
func BenchmarkGroupCommit(b *testing.B) {
	for b.Loop() {
		var group, single, bare, large []float64
		for range benchRounds {
			path := filepath.Join(b.TempDir(), "group.db")
			rate, commits := writeThrough(b, path, benchMessages, facts.LaneConfig{})
			group = append(group, rate)
			rate, _ = writeThrough(b, filepath.Join(b.TempDir(), "single.db"), benchMessages/4,
				facts.LaneConfig{GroupRows: 1})
			single = append(single, rate) // right beside: what the disk takes changes by the second
			bare = append(bare, benchMessages/bareInsert(b, path, commits).Seconds())
			large = append(large, benchMessages/bareInsert(b, path, 0).Seconds())
		}
		b.Logf("fsync of 4 KiB:                %s", fsyncLatency(b))
		b.Logf("64 writers, group commit:      %s messages/s", spread(group))
		b.Logf("one transaction a message:     %s messages/s", spread(single))
		b.Logf("bare, as many transactions:    %s messages/s", spread(bare))
		b.Logf("bare, %d rows a transaction: %s messages/s", bareRows, spread(large))
		b.ReportMetric(median(ratios(group, single)), "x-single")
		b.ReportMetric(median(ratios(group, bare)), "x-bare")
		b.ReportMetric(median(ratios(group, large)), "x-bare-large")
	}
}

// BenchmarkReplay measures how fast a trace is loaded, memberships and follows included, against
// the rate at which the rows that it leaves go in as bare transactions. TIDEMARK_TRACE names
// another trace than the generated one.
func BenchmarkReplay(b *testing.B) {
	ctx := context.Background()
	for b.Loop() {
		var load, bare []float64
		for range 3 {
			path := filepath.Join(b.TempDir(), "replay.db")
			engine, err := tidemark.Open(ctx, tidemark.Options{Facts: "sqlite:" + path})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := engine.CreateWorkspace(ctx, "w", ""); err != nil {
				b.Fatal(err)
			}
			rows := openTrace(b)
			start := time.Now()
			loaded, err := replay.Load(ctx, engine.Workspace("w"), rows, nil)
			if err != nil {
				b.Fatal(err)
			}
			n := float64(loaded.Messages)
			load = append(load, n/time.Since(start).Seconds())
			closeAll(b, engine)
			bare = append(bare, n/bareInsert(b, path, 0).Seconds())
		}
		b.Logf("fsync of 4 KiB:                %s", fsyncLatency(b))
		b.Logf("replay:                        %s messages/s", spread(load))
		b.Logf("bare, %d rows a transaction: %s messages/s", bareRows, spread(bare))
		b.ReportMetric(median(ratios(load, bare)), "x-bare")
	}
}

func openTrace(b *testing.B) *trace.Reader {
	b.Helper()
	path := "testdata/trace.csv.gz"
	if dir := os.Getenv("TIDEMARK_TRACE"); dir != "" {
		path = filepath.Join(dir, "chat-trace.csv.gz")
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeAll(b, f) })
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	rows, err := trace.NewReader(z)
	if err != nil {
		b.Fatal(err)
	}
	return rows
}

// writeThrough posts from 64 writers at once, each waiting for its answer, and returns the rate
// and how many commits it took.
func writeThrough(b *testing.B, path string, messages int, lane facts.LaneConfig) (float64, int) {
	b.Helper()
	ctx := context.Background()
	engine, err := tidemark.Open(ctx, tidemark.Options{Facts: "sqlite:" + path, Lane: lane})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			b.Error(err)
		}
	}()
	if _, err := engine.CreateWorkspace(ctx, "w", ""); err != nil {
		b.Fatal(err)
	}
	ws := engine.Workspace("w")
	setup := ws.Batch()
	for s := range 16 {
		scope := readstate.ScopeID(fmt.Sprint("c", s))
		setup.PutScope(facts.PutScope{ID: scope, Type: readstate.Channel})
		for w := range benchWriters {
			setup.PutMembership(facts.PutMembership{
				Scope: scope, Member: readstate.MemberID(fmt.Sprint("u", w)), CreateMember: true,
			})
		}
	}
	if _, err := setup.Run(ctx); err != nil {
		b.Fatal(err)
	}
	before := lsn(b, engine)
	start := time.Now()
	var wg sync.WaitGroup
	for w := range benchWriters {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range messages / benchWriters {
				if _, err := ws.Post(ctx, benchPost(w, i)); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	took := time.Since(start)
	return float64(messages) / took.Seconds(), int(lsn(b, engine) - before)
}

// benchPost is one message; one in ten names somebody.
func benchPost(w, i int) facts.Post {
	post := facts.Post{
		Scope: readstate.ScopeID(fmt.Sprint("c", (w+i)%16)), OpID: fmt.Sprintf("%d-%d", w, i),
		Author:  readstate.MemberID(fmt.Sprint("u", w)),
		Payload: []byte(`{"text":"a message of about the usual length, give or take"}`),
		By:      facts.Actor{Trusted: true},
	}
	if i%10 == 0 {
		post.Mentions = []readstate.MemberID{readstate.MemberID(fmt.Sprint("u", (w+1)%benchWriters))}
	}
	return post
}

func lsn(b *testing.B, e *tidemark.Engine) readstate.LSN {
	b.Helper()
	row, err := e.Workspace("w").Info(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return row.LSN
}

// bareInsert copies every row of a database into an empty one of the same schema with multi-row
// statements and the same durability, in the given number of transactions, or in transactions
// of bareRows rows. It returns how long the inserts took.
func bareInsert(b *testing.B, path string, transactions int) time.Duration {
	b.Helper()
	ctx := context.Background()
	source := openBare(b, path)
	defer closeAll(b, source)
	target := filepath.Join(b.TempDir(), fmt.Sprintf("bare-%d.db", time.Now().UnixNano()))
	empty, err := sqlstore.OpenSQLite(ctx, target, sqlstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	closeAll(b, empty)
	into := openBare(b, target)
	defer closeAll(b, into)
	tables := map[string][][]any{}
	var order []string
	total := 0
	for _, name := range tableNames(b, source) {
		rows := allRows(b, source, name)
		if len(rows) > 0 {
			tables[name] = rows
			order = append(order, name)
			total += len(rows)
		}
	}
	if transactions == 0 {
		transactions = (total + bareRows - 1) / bareRows
	}
	start := time.Now()
	for t := range transactions {
		tx, err := into.BeginTx(ctx, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range order {
			rows := tables[name]
			low, high := len(rows)*t/transactions, len(rows)*(t+1)/transactions
			insertRows(b, tx, name, rows[low:high])
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

func openBare(b *testing.B, path string) *sql.DB {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(WAL)"+
		"&_pragma=synchronous(FULL)&_pragma=cache_size(-65536)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

func closeAll(b *testing.B, c interface{ Close() error }) {
	b.Helper()
	if err := c.Close(); err != nil {
		b.Error(err)
	}
}

func tableNames(b *testing.B, db *sql.DB) []string {
	b.Helper()
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'table'
		AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'goose%' ORDER BY name`)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			b.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return names
}

func allRows(b *testing.B, db *sql.DB, table string) [][]any {
	b.Helper()
	rows, err := db.Query("SELECT * FROM " + table)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		b.Fatal(err)
	}
	var out [][]any
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			b.Fatal(err)
		}
		out = append(out, values)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return out
}

// insertRows inserts rows in statements of at most 500.
func insertRows(b *testing.B, tx *sql.Tx, table string, rows [][]any) {
	b.Helper()
	for part := range slices.Chunk(rows, 500) {
		one := "(" + strings.TrimSuffix(strings.Repeat("?,", len(part[0])), ",") + ")"
		query := "INSERT INTO " + table + " VALUES " +
			strings.TrimSuffix(strings.Repeat(one+",", len(part)), ",")
		args := make([]any, 0, len(part)*len(part[0]))
		for _, r := range part {
			args = append(args, r...)
		}
		if _, err := tx.Exec(query, args...); err != nil {
			b.Fatal(err)
		}
	}
}

// fsyncLatency is the median time that the disk takes to make 4 KiB durable.
func fsyncLatency(b *testing.B) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "fsync"))
	if err != nil {
		b.Fatal(err)
	}
	defer closeAll(b, f)
	var took []float64
	block := make([]byte, 4096)
	for range 200 {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(start)))
	}
	return time.Duration(median(took))
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func ratios(a, of []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / of[i]
	}
	return out
}

func spread(v []float64) string {
	return fmt.Sprintf("%8.0f (%.0f to %.0f)", median(v), slices.Min(v), slices.Max(v))
}

// BenchmarkWriters is the library's side of BenchmarkGroupCommit alone, for profiles.
func BenchmarkWriters(b *testing.B) {
	for b.Loop() {
		rate, commits := writeThrough(b, filepath.Join(b.TempDir(), "group.db"), benchMessages,
			facts.LaneConfig{})
		b.ReportMetric(rate, "messages/s")
		b.ReportMetric(benchMessages/float64(commits), "messages/commit")
	}
}
