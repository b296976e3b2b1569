package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// onServers runs a test on an empty database of each kind of server.
func onServers(t *testing.T, run func(t *testing.T, db dbtest.Database)) {
	t.Helper()
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) { run(t, k.New(t)) })
	}
}

// A database has one owner at a time, who need not say goodbye.
func TestServerOwned(t *testing.T) {
	onServers(t, func(t *testing.T, db dbtest.Database) {
		ctx, o := t.Context(), sqlstore.Options{BusyTimeout: time.Second}
		first, err := sqlstore.Open(ctx, db.Facts, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sqlstore.Open(ctx, db.Facts, o); !errors.Is(err, facts.ErrNotOwner) {
			t.Errorf("a second owner: %v", err)
		}
		o.Shared = true
		if _, err := sqlstore.Open(ctx, db.Facts, o); !errors.Is(err, facts.ErrNotOwner) {
			t.Errorf("a migration beside an owner: %v", err)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		// Those who share own nothing.
		for range 2 {
			shared, err := sqlstore.Open(ctx, db.Facts, o)
			if err != nil {
				t.Fatal(err)
			}
			defer shared.Close()
		}
		o.Shared = false
		second, err := sqlstore.Open(ctx, db.Facts, o)
		if err != nil {
			t.Fatal(err)
		}
		// An owner who lost the session, and the database with it, writes nothing.
		db.Cut(t)
		third, err := sqlstore.Open(ctx, db.Facts, o)
		if err != nil {
			t.Fatal(err)
		}
		if tx, err := second.Begin(ctx); !errors.Is(err, facts.ErrNotOwner) {
			t.Errorf("a transaction of who was the owner: %v, %v", tx, err)
		}
		if err := errors.Join(second.Close(), third.Close()); err != nil {
			t.Error(err)
		}
	})
}

// What is not ours, or of a newer program, is left as it is.
func TestServerForeign(t *testing.T) {
	onServers(t, func(t *testing.T, db dbtest.Database) {
		ctx := t.Context()
		does(t, db.DB, "CREATE TABLE somebodys (n BIGINT)")
		if _, err := sqlstore.Open(ctx, db.Facts, sqlstore.Options{}); !errors.Is(err, sqlstore.ErrCorrupt) {
			t.Errorf("a database with other tables: %v", err)
		}
		if s, err := sqlstore.SchemaOf(ctx, db.Facts); err != nil || s.Version != 0 {
			t.Errorf("schema %+v, %v", s, err)
		}
		does(t, db.DB, "DROP TABLE somebodys")
		st, err := sqlstore.Open(ctx, db.Facts, sqlstore.Options{})
		if err != nil || st.Close() != nil {
			t.Fatal(err)
		}
		if s, err := sqlstore.SchemaOf(ctx, db.Facts); err != nil || s.Version != s.Newest {
			t.Errorf("schema %+v, %v", s, err)
		}
		does(t, db.DB, "UPDATE tidemark_migrations SET version_id = 99 WHERE version_id = 5")
		if _, err := sqlstore.Open(ctx, db.Facts, sqlstore.Options{}); !errors.Is(err, sqlstore.ErrNewer) {
			t.Errorf("a newer schema: %v", err)
		}
	})
}

func does(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

var space = facts.WorkspaceRow{Key: 1, ID: "w", Term: 1, LSN: 1}

// withSpace opens a store with one workspace in it.
func withSpace(t *testing.T, db dbtest.Database, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	st, err := sqlstore.Open(t.Context(), db.Facts, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	tx, err := st.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	err = tx.Write(t.Context(), &facts.Changes{NewWorkspaces: []facts.WorkspaceRow{
		space, {Key: 2, ID: "v", Term: 1, LSN: 1},
	}})
	if err := errors.Join(err, tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	return st
}

func fenceOf(t *testing.T, st *sqlstore.Store) facts.Fence {
	t.Helper()
	fences, err := st.Fences(t.Context(), []facts.WorkspaceKey{space.Key})
	if err != nil {
		t.Fatal(err)
	}
	return fences[space.Key]
}

// A server that starts anew ends all sessions. Those that nobody used are replaced unseen; what was
// under way fails, and tells no lie about a commit.
func TestServerCut(t *testing.T) {
	onServers(t, func(t *testing.T, db dbtest.Database) {
		ctx := t.Context()
		st := withSpace(t, db, sqlstore.Options{Readers: 3})
		was := facts.Fence{Term: 1, LSN: 1}
		var views []facts.View
		for range 3 {
			v, err := st.View(ctx)
			if err != nil {
				t.Fatal(err)
			}
			views = append(views, v)
		}
		for _, v := range views {
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
		}
		db.Cut(t)
		for range 4 {
			v, err := st.View(ctx)
			if err != nil {
				t.Fatalf("a view after a restart: %v", err)
			}
			if _, ok, err := v.Workspace(ctx, "w"); !ok || err != nil {
				t.Errorf("workspace: %t, %v", ok, err)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		}
		tx, err := st.Begin(ctx)
		if err != nil {
			t.Fatalf("a transaction after a restart: %v", err)
		}
		if ok, err := tx.Advance(ctx, space.Key, was); !ok || err != nil {
			t.Fatalf("advance: %t, %v", ok, err)
		}
		db.Cut(t)
		err = tx.Commit(ctx)
		if !errors.Is(err, facts.ErrUnavailable) || errors.Is(err, facts.ErrAborted) {
			t.Errorf("a commit without a session: %v", err)
		}
		if got := fenceOf(t, st); got != was {
			t.Errorf("fence %+v", got)
		}
		tx, err = st.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := tx.Advance(ctx, space.Key, was); !ok || err != nil {
			t.Errorf("advance after all: %t, %v", ok, err)
		}
		if err := tx.Commit(ctx); err != nil {
			t.Error(err)
		}
		if got := fenceOf(t, st); got.LSN != 2 {
			t.Errorf("fence %+v", got)
		}
	})
}

// Whoever is rolled back to end a deadlock is told that it may be tried again.
func TestServerDeadlock(t *testing.T) {
	onServers(t, func(t *testing.T, db dbtest.Database) {
		ctx := t.Context()
		st := withSpace(t, db, sqlstore.Options{BusyTimeout: time.Minute})
		other, err := db.DB.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Rollback()
		if strings.HasPrefix(db.Facts, "postgres") {
			// Who waits and finds the circle ends itself: it must not be the other one.
			if _, err := other.ExecContext(ctx, "SET LOCAL deadlock_timeout = '60s'"); err != nil {
				t.Fatal(err)
			}
		}
		// The one that has written more goes on.
		for n := range 50 {
			_, err := other.ExecContext(ctx, fmt.Sprintf("INSERT INTO member_blocks VALUES (%d, 1)", n))
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := other.ExecContext(ctx, "UPDATE workspaces SET term = 9 WHERE workspace = 2"); err != nil {
			t.Fatal(err)
		}
		tx, err := st.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if ok, err := tx.Advance(ctx, space.Key, facts.Fence{Term: 1, LSN: 1}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		waited := make(chan error)
		go func() {
			_, err := other.ExecContext(ctx, "UPDATE workspaces SET term = 9 WHERE workspace = 1")
			waited <- err
		}()
		_, err = tx.Advance(ctx, 2, facts.Fence{Term: 1, LSN: 1})
		if !errors.Is(err, facts.ErrAborted) || !errors.Is(err, facts.ErrUnavailable) {
			t.Errorf("in a deadlock: %v", err)
		}
		if err := tx.Commit(ctx); !errors.Is(err, facts.ErrAborted) {
			t.Errorf("commit after it: %v", err)
		}
		if err := <-waited; err != nil {
			t.Errorf("the other one: %v", err)
		}
	})
}

// No part of a name that is shown is a secret.
func TestShown(t *testing.T) {
	for name, want := range map[string]string{
		"sqlite:a.db":                    "sqlite:a.db",
		"postgres://u:pw@h/d?sslmode=on": "postgres://u:xxxxx@h/d?sslmode=on",
		"mysql://u:p%40w@h:1/d":          "mysql://u:xxxxx@h:1/d",
		"postgres://h/d?password=pw":     "postgres://h/d?password=xxxxx",
		"postgres://u:pw@h:port/d":       "a database whose name is not understood",
	} {
		if got := sqlstore.Shown(name); got != want || strings.Contains(got, "pw") {
			t.Errorf("%s is shown as %s", name, got)
		}
	}
	for _, name := range []string{
		"", "sqlite:", "x", "redis://h/1", "mysql://h", "mysql://h/", "mysql://h/a/b",
		"postgres://h:x/d", "postgres://h/d?search_path=a,b", "postgres://h/d?search_path=", "mysql://h/d?nonsense=1&readTimeout=x",
	} {
		if err := sqlstore.Check(name); !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
