package chaos

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the judge reads the file with its own statements

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// store is where server processes keep their facts, one after the other, and how the judge reads
// them.
type store struct {
	facts    string // its name, as the product takes it
	open     func(t *testing.T) *sql.DB
	snapshot *sql.TxOptions
	check    func(t *testing.T) // looks for damage
	cut      func(t *testing.T) // on a server: ends all sessions of processes
}

// inFile is a SQLite file, which is not there yet.
func inFile(t *testing.T) store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "facts.db")
	in := store{
		facts: "sqlite:" + path,
		open: func(t *testing.T) *sql.DB {
			t.Helper()
			db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+
				"?mode=ro&_pragma=busy_timeout(10000)")
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			return db
		},
	}
	// SQLite looks at every page of the file.
	in.check = func(t *testing.T) {
		t.Helper()
		db := in.open(t)
		defer db.Close()
		var verdict string
		err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check(1)").Scan(&verdict)
		if err != nil || verdict != "ok" {
			t.Fatalf("the file is damaged: %s %v", verdict, err)
		}
	}
	return in
}

// onServer is an empty database on a server, which goes on while processes are killed.
func onServer(t *testing.T, k dbtest.Kind) store {
	t.Helper()
	database := k.New(t)
	return store{
		facts: database.Facts, open: database.Open, check: func(*testing.T) {},
		cut:      database.Cut,
		snapshot: &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
	}
}
