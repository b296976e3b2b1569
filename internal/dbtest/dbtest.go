package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver called pgx
)

// Kind is a kind of server.
type Kind struct {
	Name     string
	variable string
	make     func(t testing.TB, server, name string) Database
}

// Kinds are the servers that facts can be kept on.
var Kinds = []Kind{
	{"postgres", "TIDEMARK_TEST_POSTGRES", postgres}, {"mysql", "TIDEMARK_TEST_MYSQL", mySQL},
}

// Database is a place for one test's facts.
type Database struct {
	// Facts is its name as the product takes it.
	Facts string
	// DB is a handle for the test's own statements, which sees the tables without a prefix.
	DB *sql.DB
	// Open opens another such handle, which the caller closes.
	Open func(t *testing.T) *sql.DB
	// Cut ends all sessions of the product on the server, as a restart of the server would, and waits
	// for their end.
	Cut func(t *testing.T)
	// list names all tables.
	list string
}

// New makes an empty database that the test drops. It skips the test where there is no server.
func (k Kind) New(t testing.TB) Database {
	t.Helper()
	server := os.Getenv(k.variable)
	if server == "" && os.Getenv("CI") == "true" {
		t.Fatalf("$%s is not set; scripts/services starts a server", k.variable)
	}
	if server == "" {
		t.Skipf("$%s is not set; scripts/services starts a server", k.variable)
	}
	var name [8]byte
	if _, err := rand.Read(name[:]); err != nil {
		t.Fatal(err)
	}
	return k.make(t, server, "tidemark_test_"+hex.EncodeToString(name[:]))
}

// Clear deletes every row but those of the migrations, so that one database serves many tests, one
// after the other.
func (d Database) Clear(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // a bubble of synctest has no say in it
	rows, err := d.DB.QueryContext(ctx, d.list)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "migrations") {
			tables = append(tables, name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	tx, err := d.DB.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, name := range tables {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// postgres makes a schema within the server's database.
func postgres(t testing.TB, server, name string) Database {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	own := *u
	q.Set("synchronous_commit", "off")
	own.RawQuery = q.Encode()
	q.Del("synchronous_commit")
	open := opener("pgx", own.String())
	q.Set("application_name", name) // of the product's sessions, and of no others
	u.RawQuery = q.Encode()
	db := kept(t, open)
	run(t, db, "CREATE SCHEMA "+name)
	atEnd(t, db, "DROP SCHEMA "+name+" CASCADE")
	return Database{
		Facts: u.String(), DB: db, Open: func(t *testing.T) *sql.DB { return open(t) },
		Cut: func(t *testing.T) {
			t.Helper()
			run(t, db, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "+
				"WHERE application_name = '"+name+"'")
		},
		list: "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
	}
}

// mySQL makes a database. The server is named as its driver does.
func mySQL(t testing.TB, server, name string) Database {
	t.Helper()
	cfg, err := mysql.ParseDSN(server)
	if err != nil {
		t.Fatal(err)
	}
	admin := kept(t, opener("mysql", server))
	run(t, admin, "CREATE DATABASE "+name)
	atEnd(t, admin, "DROP DATABASE "+name)
	cfg.DBName = name
	open := opener("mysql", cfg.FormatDSN())
	own := kept(t, open)
	u := url.URL{
		Scheme: "mysql", User: url.UserPassword(cfg.User, cfg.Passwd), Host: cfg.Addr, Path: name,
	}
	return Database{
		Facts: u.String(), DB: own, Open: func(t *testing.T) *sql.DB { return open(t) },
		Cut: func(t *testing.T) {
			t.Helper()
			cutMySQL(t, admin, name)
		},
		list: "SELECT table_name FROM information_schema.tables WHERE table_schema = database()",
	}
}

// cutMySQL kills every session of a database that there is now. Its own statements are of another
// database.
func cutMySQL(t *testing.T, admin *sql.DB, name string) {
	t.Helper()
	there := func() []int64 {
		rows, err := admin.QueryContext(t.Context(),
			"SELECT id FROM information_schema.processlist WHERE db = ?", name)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var ids []int64
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	ids := there()
	for _, id := range ids {
		_, _ = admin.ExecContext(t.Context(), fmt.Sprint("KILL ", id)) // it may be gone by now
	}
	for slices.ContainsFunc(there(), func(id int64) bool { return slices.Contains(ids, id) }) {
		runtime.Gosched()
	}
}

func opener(driver, dsn string) func(t testing.TB) *sql.DB {
	return func(t testing.TB) *sql.DB {
		t.Helper()
		db, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(2)
		return db
	}
}

// kept is closed with the test.
func kept(t testing.TB, open func(t testing.TB) *sql.DB) *sql.DB {
	t.Helper()
	db := open(t)
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func run(t testing.TB, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// atEnd runs a statement when the test is over, and its context with it.
func atEnd(t testing.TB, db *sql.DB, text string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), text); err != nil {
			t.Error(fmt.Errorf("%s: %w", text, err))
		}
	})
}

// Reused returns what opens a database for a test and for those after it, emptied in between: making
// all tables anew takes longer than most tests. A test closes what it opened before it ends.
func Reused[S any](
	t *testing.T, k Kind, open func(t *testing.T, facts string) S,
) func(t *testing.T) S {
	t.Helper()
	free := []Database{k.New(t)}
	return func(one *testing.T) S {
		one.Helper()
		if len(free) == 0 {
			free = append(free, k.New(t)) // of the test around them all
		}
		db := free[len(free)-1]
		db.Clear(one)
		free = free[:len(free)-1]
		one.Cleanup(func() { free = append(free, db) })
		return open(one, db.Facts)
	}
}
