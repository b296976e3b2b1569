package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

func TestSizes(t *testing.T) {
	for n := 1; n <= 3*maxKeys; n++ {
		statements, sum := 0, 0
		for left := n; left > 0; statements++ {
			take, size := keySize(left)
			if take > size || size > maxKeys || size&(size-1) != 0 || (size > 1 && take <= size/2) {
				t.Fatalf("%d keys left: %d in a statement of %d", left, take, size)
			}
			left -= take
			sum += take
		}
		if sum != n || statements != (n+maxKeys-1)/maxKeys {
			t.Fatalf("%d keys: %d in %d statements", n, sum, statements)
		}
		for left := n; left > 0; {
			size := rowSize(left)
			if size < 1 || size > left || size > maxRows || (size > exactRows && size&(size-1) != 0) {
				t.Fatalf("%d rows left: statement of %d", left, size)
			}
			left -= size
		}
	}
}

func TestPackMembers(t *testing.T) {
	scope := facts.ScopeKeyOf(1<<31-1, 5)
	members := []readstate.MemberKey{}
	for _, local := range []uint32{1, 127, 128, 1<<32 - 1, 2} {
		members = append(members, facts.MemberKeyOf(1<<31-1, local))
	}
	packed := packMembers(scope, members).([]byte)
	got, err := unpackMembers(scope, packed)
	if err != nil || !cmp.Equal(got, members) {
		t.Errorf("%v became %v, %v", members, got, err)
	}
	if packMembers(scope, nil) != nil {
		t.Error("an empty list is not NULL")
	}
	foreign := packMembers(scope, []readstate.MemberKey{facts.MemberKeyOf(1, 1)}).([]byte)
	for _, bad := range [][]byte{foreign, packed[:len(packed)-2], {0x80}, {0x80, 0x80, 0x80, 0x80, 0x10}} {
		if got, err := unpackMembers(scope, bad); err == nil {
			t.Errorf("%x became %v", bad, got)
		}
	}
}

// A value of the wrong type is a damaged database, not a panic and not a zero.
func TestDamagedRow(t *testing.T) {
	st := openStore(t)
	tx, err := st.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, text := range []string{
		`INSERT INTO members VALUES (1, 0, x'61', 'yes', 1, '', '', 0, 0, 0, 0, 0)`,
		`INSERT INTO scope_removed_blocks VALUES (1, 0, 1, x'00')`,
		`INSERT INTO operations VALUES (1, 1, x'61', x'00', x'', 0)`,
	} {
		if _, err := tx.conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	for name, load := range map[string]func() error{
		"members": func() error { _, err := tx.Members(ctx, []readstate.MemberKey{1}); return err },
		"blocks":  func() error { _, err := tx.Blocks(ctx, []facts.BlockKey{{Scope: 1}}); return err },
		"operations": func() error {
			_, err := tx.Operations(ctx, []facts.OpKey{{Workspace: 1, Actor: 1, ID: "a"}})
			return err
		},
	} {
		tx.broken = nil
		if err := load(); !errors.Is(err, facts.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A failed statement ends its transaction: nothing after it may commit on its own.
func TestBrokenTransaction(t *testing.T) {
	st := openStore(t)
	ctx := t.Context()
	member := func(key readstate.MemberKey, name readstate.MemberID) *facts.Changes {
		return &facts.Changes{Members: []facts.MemberChange{{
			MemberInfo: readstate.MemberInfo{Key: key, ID: name},
		}}}
	}
	tx, err := st.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Write(ctx, member(1, "a")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Write(ctx, member(2, "a")); !errors.Is(err, facts.ErrUnavailable) {
		t.Fatalf("two members of one id: %v", err)
	}
	if err := tx.Write(ctx, member(3, "c")); !errors.Is(err, facts.ErrUnavailable) {
		t.Fatalf("write after a failure: %v", err)
	}
	if err := tx.Commit(ctx); !errors.Is(err, facts.ErrAborted) {
		t.Fatalf("commit after a failure: %v", err)
	}
	tx, err = st.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	got, err := tx.Members(ctx, []readstate.MemberKey{1, 2, 3})
	if err != nil || len(got) != 0 {
		t.Errorf("members of a transaction that failed: %v, %v", got, err)
	}
}

// Activities count into pairs.
func TestPairActivities(t *testing.T) {
	st := openStore(t)
	const task, me, actor, silent = 1, 1, 2, 3
	ctx := t.Context()
	tx, err := st.begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	insert := func(text string, args ...any) {
		t.Helper()
		if _, err := tx.conn.ExecContext(ctx, text, args...); err != nil {
			t.Fatal(err)
		}
	}
	insert(`INSERT INTO scope_writer_totals VALUES (?, ?, 0, 0, 3, 0, 0), (?, ?, 0, 9, 0, 0, 0)`,
		task, actor, task, silent)
	for seq := 1; seq <= 4; seq++ {
		var rank any
		if seq != 3 {
			rank = min(seq, 3)
		}
		insert(`INSERT INTO scope_activity_events (scope, seq, id, kind, high_signal, actor, actor_rank,
  created_at) VALUES (?, ?, ?, 'x', 1, ?, ?, 0)`, task, seq, []byte{byte(seq)}, actor, rank)
		insert(`INSERT INTO activity_targets VALUES (?, ?, ?, ?)`, task, me, seq, actor)
	}
	for read, want := range map[readstate.Seq][2]uint64{
		0: {0, 4}, 1: {1, 3}, 2: {2, 2}, 3: {2, 1}, 4: {3, 0}, 9: {3, 0},
	} {
		for _, scopeType := range []readstate.ScopeType{readstate.Task, readstate.Channel} {
			pairs, err := tx.Pairs(ctx, facts.RowKey{Scope: task, Member: me}, scopeType, 0, 0, read,
				[]readstate.MemberKey{me, actor, silent})
			if err != nil {
				t.Fatal(err)
			}
			pair := readstate.PairRow{
				Blocked: actor, ActorAt: want[0],
				Other: readstate.BlockedWriter{Member: actor, ActorHead: 3},
			}
			if scopeType.Targeted() {
				pair.ActivityTargets = want[1]
			}
			if diff := cmp.Diff([]readstate.PairRow{pair}, pairs); diff != "" {
				t.Errorf("%v, read to %d:\n%s", scopeType, read, diff)
			}
		}
	}
}

func columns(t *testing.T, db *sql.DB, table string) map[string]string {
	t.Helper()
	rows, err := db.QueryContext(context.Background(),
		`SELECT name, type || CASE "notnull" WHEN 1 THEN ' NOT NULL' ELSE '' END ||
  CASE WHEN pk > 0 THEN ' PK' || pk ELSE '' END FROM pragma_table_info(?)`, table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			t.Fatal(err)
		}
		out[name] = kind
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// covers: RT-254 RT-260 RT-262
func TestSnapshotTable(t *testing.T) {
	db := openStore(t).writer.db
	db.SetMaxOpenConns(2)
	got := columns(t, db, "member_scope_unread_runtime_snapshots")
	for name, want := range map[string]string{
		"workspace_id": "BLOB NOT NULL PK1", "member_id": "BLOB NOT NULL PK2",
		"scope_id": "BLOB NOT NULL PK3", "message_unread_count": "INTEGER NOT NULL",
		"activity_unread_count": "INTEGER NOT NULL", "manual_unread": "INTEGER NOT NULL",
		"last_message_read_seq": "INTEGER NOT NULL", "last_activity_read_seq": "INTEGER NOT NULL",
		"effective_from_seq":            "INTEGER NOT NULL",
		"latest_message_accounted_seq":  "INTEGER NOT NULL",
		"latest_activity_accounted_seq": "INTEGER NOT NULL",
		"notification_state":            "TEXT NOT NULL", "membership_visibility": "TEXT NOT NULL",
		"scope_roster_generation":   "INTEGER NOT NULL",
		"scope_message_generation":  "INTEGER NOT NULL",
		"scope_activity_generation": "INTEGER NOT NULL",
		"membership_generation":     "INTEGER NOT NULL", "notification_generation": "INTEGER NOT NULL",
		"manual_unread_generation": "INTEGER NOT NULL", "rewind_generation": "INTEGER NOT NULL",
		"task_snapshot_format_version": "INTEGER", "task_snapshot_json": "TEXT",
		"updated_at": "INTEGER NOT NULL",
		// Ranks that a row of an older version lacks.
		"e": "INTEGER", "author_at_e": "INTEGER", "head_revision": "INTEGER",
	} {
		if got[name] != want {
			t.Errorf("column %s is %q, want %q", name, got[name], want)
		}
	}
	for _, table := range []string{"workspaces", "member_scope_unread_runtime_snapshots"} {
		for name := range columns(t, db, table) {
			if name == "has_unread" || name == "hasUnread" || name == "unread_count" {
				t.Errorf("%s has a column %s", table, name)
			}
		}
	}
}

// retired are columns and tables of another design, in which a task's counts were kept beside what
// they follow from. They come back neither in a fresh database nor in one of an older version.
//
// covers: RT-112 RT-149 RT-170 RT-175 RT-191 RT-192
func TestRetiredColumns(t *testing.T) {
	retired := []string{
		"task_message_unread_count", "task_activity_unread_count", "task_inbox_active",
		"task_inbox_sort_at",
	}
	for _, version := range []int64{0, 1, 2} {
		path := filepath.Join(t.TempDir(), "facts.db")
		if version > 0 {
			migrateTo(t, path, version)
		}
		st, err := OpenSQLite(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name := range columns(t, st.readers.db, "outbox") {
			if strings.Contains(name, "unread") || strings.Contains(name, "count") {
				t.Errorf("an outbox row has a column %s", name)
			}
		}
		rows, err := st.readers.db.QueryContext(t.Context(),
			`SELECT name, coalesce(sql, '') FROM sqlite_schema`)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for rows.Next() {
			var name, text string
			if err := rows.Scan(&name, &text); err != nil {
				t.Fatal(err)
			}
			seen++
			for _, word := range retired {
				if strings.Contains(text, word) {
					t.Errorf("from version %d: %s has %s", version, name, word)
				}
			}
		}
		err = errors.Join(rows.Err(), rows.Close(), st.Close()) //nolint:sqlclosecheck // in this order
		if err != nil || seen < 20 {
			t.Errorf("%d tables and indexes, %v", seen, err)
		}
	}
	for _, st := range statements {
		for _, word := range retired {
			if strings.Contains(st.text(sqliteDialect, 1), word) {
				t.Errorf("%s uses %s", st.name, word)
			}
		}
	}
}

// migrateTo makes a database of an older version.
func migrateTo(t *testing.T, path string, version int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), fmt.Sprintf("PRAGMA application_id = %d", sqliteApplicationID))
	files, err2 := fs.Sub(migrations, "migrations/sqlite")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}

func TestReadersWait(t *testing.T) {
	st, err := OpenSQLite(t.Context(), t.TempDir()+"/facts.db", Options{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	v, err := st.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		second, err := st.View(context.Background())
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := st.View(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("view with an ended context: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}
