package sqlstore_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
)

const ownerEnv = "TIDEMARK_TEST_OWNER"

// runOwner is the child process: it owns the database and commits until it is killed, saying
// each LSN once it is durable.
func runOwner(path string) error {
	st, err := sqlstore.OpenSQLite(context.Background(), path, sqlstore.Options{})
	if err != nil {
		return err
	}
	for lsn := uint64(0); ; lsn++ {
		if err := advance(context.Background(), st, facts.Fence{Term: 1, LSN: readstate.LSN(lsn)}); err != nil {
			return err
		}
		fmt.Println(lsn + 1)
	}
}

func advance(ctx context.Context, st facts.Store, from facts.Fence) error {
	tx, err := st.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if from.LSN == 0 {
		err := tx.Write(ctx, &facts.Changes{NewWorkspaces: []facts.WorkspaceRow{{
			Key: 1, ID: "w", Term: from.Term,
		}}})
		if err != nil {
			return err
		}
	}
	ok, err := tx.Advance(ctx, 1, from)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("fence refused %+v", from)
	}
	err = tx.Write(ctx, &facts.Changes{NewMessages: []facts.MessageRow{{
		Place: facts.Place{Scope: 1, Seq: readstate.Seq(from.LSN + 1)}, ID: fmt.Sprint(from.LSN),
		Author: 1, Live: true, Payload: []byte(strings.Repeat("x", 1000)),
	}}})
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// startOwner runs a child that owns the database, and returns when it has committed n times.
func startOwner(t *testing.T, path string, n int) (child *exec.Cmd, said *bufio.Scanner) {
	t.Helper()
	child = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), ownerEnv+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill() // may have been killed
		_ = child.Wait()
	})
	said = bufio.NewScanner(out)
	for range n {
		if !said.Scan() {
			t.Fatal("the owner ended by itself")
		}
	}
	return child, said
}

func fence(t *testing.T, st facts.Store) facts.Fence {
	t.Helper()
	f, err := st.Fences(t.Context(), []facts.WorkspaceKey{1})
	if err != nil {
		t.Fatal(err)
	}
	return f[1]
}

func notOwner(t *testing.T, path string) {
	t.Helper()
	st, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err == nil {
		_ = st.Close()
	}
	if !errors.Is(err, facts.ErrNotOwner) || errors.Is(err, facts.ErrUnavailable) {
		t.Errorf("second owner: %v", err)
	}
	oneLine(t, err)
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("not an error of one line: %v", err)
	}
}

func TestOwnership(t *testing.T) {
	st, path := open(t, sqlstore.Options{})
	notOwner(t, path)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	notOwner(t, link)
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Symlink(filepath.Dir(path), dir); err != nil {
		t.Fatal(err)
	}
	notOwner(t, filepath.Join(dir, filepath.Base(path)))
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// Another process owns the database until it is killed, and all it acknowledged is there.
func TestOwnerKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "facts.db")
	child, said := startOwner(t, path, 20)
	notOwner(t, path)
	_, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if says := fmt.Sprintf("owned by process %d", child.Process.Pid); !strings.HasSuffix(err.Error(), says) {
		t.Errorf("%v does not say %q", err, says)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	last := "20"
	for said.Scan() {
		last = said.Text()
	}
	_ = child.Wait() // it was killed
	st, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var acknowledged readstate.LSN
	if _, err := fmt.Sscan(last, &acknowledged); err != nil {
		t.Fatal(err)
	}
	got := fence(t, st)
	if got.LSN < acknowledged || got.LSN > acknowledged+1 {
		t.Errorf("fence %+v after %d acknowledged commits", got, acknowledged)
	}
	rows, err := st.TakeOver(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Term != 2 {
		t.Errorf("take over: %v, %v", rows, err)
	}
	tx, err := st.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	messages, err := tx.MessagesBetween(t.Context(), 1, 0, 1<<40, false, 1<<20)
	if err != nil || len(messages) != int(got.LSN) {
		t.Errorf("%d messages, %v; want %d", len(messages), err, got.LSN)
	}
}

// A backup is a consistent state of a database that its owner goes on writing.
func TestBackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "facts.db")
	_, said := startOwner(t, path, 5)
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := sqlstore.BackupSQLite(t.Context(), path, to); err != nil {
		t.Fatal(err)
	}
	if err := sqlstore.CheckSQLite(t.Context(), path); err != nil {
		t.Errorf("check of a database in use: %v", err)
	}
	for range 5 {
		if !said.Scan() {
			t.Fatal("the owner ended after the backup")
		}
	}
	if err := sqlstore.CheckSQLite(t.Context(), to); err != nil {
		t.Error(err)
	}
	st, err := sqlstore.OpenSQLite(t.Context(), to, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	at := fence(t, st)
	if at.LSN < 5 {
		t.Errorf("backup is of LSN %d", at.LSN)
	}
	tx, err := st.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	messages, err := tx.MessagesBetween(t.Context(), 1, 0, 1<<40, false, 1<<20)
	if err != nil || len(messages) != int(at.LSN) {
		t.Errorf("%d messages, %v; want %d", len(messages), err, at.LSN)
	}
	err = sqlstore.BackupSQLite(t.Context(), path, to)
	if !errors.Is(err, os.ErrExist) || errors.Is(err, facts.ErrUnavailable) {
		t.Errorf("backup onto an existing file: %v", err)
	}
	left, err := filepath.Glob(to + ".*partial*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	err = sqlstore.BackupSQLite(t.Context(), path+".none", to+"2")
	oneLine(t, err)
}

func TestUnusable(t *testing.T) {
	garbage := strings.Repeat("this is no database\n", 1000)
	cases := map[string]struct {
		prepare func(t *testing.T, path string)
		cause   error
	}{
		"no database": {func(t *testing.T, path string) { put(t, path, garbage) }, sqlstore.ErrCorrupt},
		"directory": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, sqlstore.ErrReadOnly},
		"foreign": {func(t *testing.T, path string) {
			raw(t, path, "CREATE TABLE members (x)")
		}, sqlstore.ErrCorrupt},
		"newer": {func(t *testing.T, path string) {
			make1(t, path)
			raw(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)")
		}, sqlstore.ErrNewer},
		"damaged header": {func(t *testing.T, path string) {
			make1(t, path)
			overwrite(t, path, 16, 400)
		}, sqlstore.ErrCorrupt},
		"damaged schema": {func(t *testing.T, path string) {
			make1(t, path)
			overwrite(t, path, 100, 3000)
		}, sqlstore.ErrCorrupt},
		"no such directory": {func(t *testing.T, path string) {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
		}, os.ErrNotExist},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x", "facts.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			c.prepare(t, path)
			_ = os.Remove(path + ".lock") // of an owner before
			before := contents(t, filepath.Dir(path))
			for range 2 { // a failed open leaves nothing behind
				st, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
				if err == nil {
					_ = st.Close()
				}
				if !errors.Is(err, facts.ErrUnavailable) || !errors.Is(err, c.cause) {
					t.Errorf("opened: %v", err)
				}
				oneLine(t, err)
			}
			if diff := cmp.Diff(before, contents(t, filepath.Dir(path))); diff != "" {
				t.Errorf("a failed open changed files: %s", diff)
			}
		})
	}
}

// contents returns the size and checksum of each file in a directory, nil where there is none.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name())) // of a directory: none
		out[e.Name()] = fmt.Sprintf("%d bytes, %x", len(text), sha256.Sum256(text))
	}
	return out
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func make1(t *testing.T, path string) {
	t.Helper()
	st, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func raw(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, at int64, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(strings.Repeat("\x5a", n)), at); err != nil {
		t.Fatal(err)
	}
}

// A page that goes bad under a running store is an error, never an answer.
func TestDamagedPages(t *testing.T) {
	st, path := open(t, sqlstore.Options{})
	for lsn := range readstate.LSN(300) {
		if err := advance(t.Context(), st, facts.Fence{Term: 1, LSN: lsn}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a closed store leaves its log behind: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := info.Size() / 2 / 4096 * 4096; at < info.Size(); at += 4096 {
		overwrite(t, path, at, 64)
	}
	if err := sqlstore.CheckSQLite(t.Context(), path); !errors.Is(err, sqlstore.ErrCorrupt) {
		t.Errorf("check: %v", err)
	}
	st, err = sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	v, err := st.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	_, err = v.Messages(t.Context(), facts.MessageQuery{Scope: 1, After: 1, Limit: 1000})
	if !errors.Is(err, facts.ErrUnavailable) || !errors.Is(err, sqlstore.ErrCorrupt) {
		t.Errorf("messages: %v", err)
	}
	oneLine(t, err)
}

// A lock held by somebody who is not an owner is waited for, and then reported.
func TestBusy(t *testing.T) {
	st, path := open(t, sqlstore.Options{BusyTimeout: time.Millisecond})
	defer st.Close()
	db, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Begin(t.Context())
	if !errors.Is(err, facts.ErrUnavailable) || !errors.Is(err, sqlstore.ErrBusy) {
		t.Errorf("begin: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := advance(t.Context(), st, facts.Fence{Term: 1}); err != nil {
		t.Error(err)
	}
}

// When the room is used up a group fails whole, everything before it stays, and the store goes
// on as soon as there is room.
func TestFull(t *testing.T) {
	st, path := open(t, sqlstore.Options{MaxBytes: 1 << 20})
	lsn := readstate.LSN(0)
	var err error
	for ; lsn < 10_000; lsn++ {
		if err = advance(t.Context(), st, facts.Fence{Term: 1, LSN: lsn}); err != nil {
			break
		}
	}
	if !errors.Is(err, facts.ErrUnavailable) || !errors.Is(err, sqlstore.ErrFull) {
		t.Fatalf("after %d commits: %v", lsn, err)
	}
	oneLine(t, err)
	full(t, st, lsn)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st, err = sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := advance(t.Context(), st, facts.Fence{Term: 1, LSN: lsn}); err != nil {
		t.Errorf("with more room: %v", err)
	}
}

// full checks a store that has no room for the commit after lsn.
func full(t *testing.T, st facts.Store, lsn readstate.LSN) {
	t.Helper()
	if got := fence(t, st); got.LSN != lsn {
		t.Errorf("fence %+v, want LSN %d", got, lsn)
	}
	v, err := st.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	messages, err := v.Messages(t.Context(), facts.MessageQuery{Scope: 1, Before: 1 << 40, Limit: 1 << 20})
	if err != nil || len(messages) != int(lsn) {
		t.Errorf("%d messages, %v; want %d", len(messages), err, lsn)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// The hook sees what runs in transactions and in views, and a page costs the same number of
// statements whatever it holds.
func TestProbe(t *testing.T) {
	var seen []string
	st, _ := open(t, sqlstore.Options{OnStatement: func(_ context.Context, query string) {
		seen = append(seen, query)
	}})
	defer st.Close()
	count := func(f func()) int {
		seen = nil
		f()
		return len(seen)
	}
	const member = readstate.MemberKey(1<<32 + 1)
	rows := func(from, n int) *facts.Changes {
		c := &facts.Changes{}
		for i := from; i < from+n; i++ {
			scope := facts.ScopeKeyOf(1, uint32(i+1))
			c.Scopes = append(c.Scopes, facts.ScopeRow{Info: readstate.ScopeInfo{
				Key: scope, ID: readstate.ScopeID(fmt.Sprint(i)), Type: readstate.Channel,
			}})
			c.States = append(c.States, facts.StateRow{
				RowKey: facts.RowKey{Scope: scope, Member: member},
				Row:    readstate.Row{Joined: true, Visible: true},
			})
		}
		return c
	}
	commit := func(c *facts.Changes) {
		tx, err := st.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Write(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	page := func(limit int) {
		v, err := st.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		q := facts.PageQuery{Workspace: 1, Member: member, Limit: limit}
		got, err := v.Page(t.Context(), q)
		if err != nil || len(got.Rows) != limit {
			t.Fatal(len(got.Rows), err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	one := count(func() { commit(rows(0, 1)) })
	if want := 6; one != want { // begin, commit, scopes, states, memberships, settings
		t.Errorf("a commit of one row took %d statements:\n%s", one, strings.Join(seen, "\n"))
	}
	if n := count(func() { commit(rows(1, 16)) }); n != one {
		t.Errorf("a commit of 16 rows took %d statements, of one %d", n, one)
	}
	if n := count(func() { commit(rows(17, 383)) }); n > 8*one {
		t.Errorf("a commit of 383 rows took %d statements, of one %d", n, one)
	}
	small, big := count(func() { page(1) }), count(func() { page(400) })
	if small != big || small > 16 {
		t.Errorf("pages of 1 and 400 rows took %d and %d statements:\n%s", small, big,
			strings.Join(seen, "\n"))
	}
}

// A migrated database is opened again without a change of its schema.
func TestOpenTwice(t *testing.T) {
	st, path := open(t, sqlstore.Options{})
	if err := advance(t.Context(), st, facts.Fence{Term: 1}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if got := fence(t, st); got != (facts.Fence{Term: 1, LSN: 1}) {
		t.Errorf("fence %+v", got)
	}
}

// Names of files that are special to a URI.
func TestPaths(t *testing.T) {
	for _, name := range []string{"a b.db", "a?b=c.db", "a#b.db", "a%20b.db", "ä🦭.db", "a'b\"c.db"} {
		path := filepath.Join(t.TempDir(), name)
		st, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		if err := sqlstore.CheckSQLite(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
}
