package intake

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
	"github.com/tidemark-im/tidemark/unread/snapshot/sqlsnap"
)

// older is a program of before the Task columns and the ranks, as the rules describe it: it reads and
// writes the regular columns of the table, and knows of no others. It shares no code with the
// program that it is held against.
type older struct {
	count, activity, manual             int64
	read, activityRead, effective       int64
	accounted, activityAccounted        int64
	notification, visibility            string
	roster, messages, activities        int64
	membership, notified, marked, wound int64
	updated                             int64
}

// row is a sound row of an older program.
func olderRow() older {
	return older{effective: 1, notification: "all", visibility: "visible", updated: 7}
}

const olderColumns = `message_unread_count, activity_unread_count, manual_unread,
 last_message_read_seq, last_activity_read_seq, effective_from_seq,
 latest_message_accounted_seq, latest_activity_accounted_seq,
 notification_state, membership_visibility,
 scope_roster_generation, scope_message_generation, scope_activity_generation,
 membership_generation, notification_generation, manual_unread_generation, rewind_generation,
 updated_at`

func (o *older) values() []any {
	return []any{
		o.count, o.activity, o.manual, o.read, o.activityRead, o.effective, o.accounted,
		o.activityAccounted, o.notification, o.visibility, o.roster, o.messages, o.activities,
		o.membership, o.notified, o.marked, o.wound, o.updated,
	}
}

// write upserts the row by the columns that the program knows.
func (o *older) write(t *testing.T, db *sql.DB, m readstate.MemberID, s readstate.ScopeID) {
	t.Helper()
	var set []string
	for _, c := range strings.Split(olderColumns, ",") {
		c = strings.TrimSpace(c)
		set = append(set, c+" = excluded."+c)
	}
	query := `INSERT INTO member_scope_unread_runtime_snapshots
 (workspace_id, member_id, scope_id, ` + olderColumns + `)
 VALUES (?, ?, ?` + strings.Repeat(", ?", 18) + `)
 ON CONFLICT (workspace_id, member_id, scope_id) DO UPDATE SET ` + strings.Join(set, ", ")
	args := append([]any{[]byte(space0), []byte(m), []byte(s)}, o.values()...)
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// readOlder is what an older program reads of a row.
func readOlder(t *testing.T, db *sql.DB, m readstate.MemberID, s readstate.ScopeID) (o older, ok bool) {
	t.Helper()
	err := db.QueryRowContext(t.Context(), `SELECT `+olderColumns+`
 FROM member_scope_unread_runtime_snapshots
 WHERE workspace_id = ? AND member_id = ? AND scope_id = ?`,
		[]byte(space0), []byte(m), []byte(s)).Scan(
		&o.count, &o.activity, &o.manual, &o.read, &o.activityRead, &o.effective, &o.accounted,
		&o.activityAccounted, &o.notification, &o.visibility, &o.roster, &o.messages,
		&o.activities, &o.membership, &o.notified, &o.marked, &o.wound, &o.updated)
	if err == sql.ErrNoRows {
		return o, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return o, true
}

// task is the Task columns of a row as they are.
type task struct {
	format sql.NullInt64
	text   sql.NullString
}

func taskOf(t *testing.T, db *sql.DB, m readstate.MemberID, s readstate.ScopeID) (c task) {
	t.Helper()
	err := db.QueryRowContext(t.Context(), `SELECT task_snapshot_format_version, task_snapshot_json
 FROM member_scope_unread_runtime_snapshots
 WHERE workspace_id = ? AND member_id = ? AND scope_id = ?`,
		[]byte(space0), []byte(m), []byte(s)).Scan(&c.format, &c.text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// table hands the file to somebody else while the intake keeps its memory: another program may write
// at any time, and the file's lock is not what this is about.
func (b *bench) table(use func(db *sql.DB)) {
	b.t.Helper()
	if err := b.store.Close(); err != nil {
		b.t.Fatal(err)
	}
	db, err := sql.Open("sqlite", b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	use(db)
	if err := db.Close(); err != nil {
		b.t.Fatal(err)
	}
	store, err := sqlsnap.OpenSQLite(b.t.Context(), b.path, sqlsnap.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.store.mu.Lock()
	b.store.Store = store
	b.store.mu.Unlock()
}

// oldWrites has an older program write one row.
func (b *bench) oldWrites(m readstate.MemberID, s readstate.ScopeID, o older) {
	b.t.Helper()
	b.table(func(db *sql.DB) { o.write(b.t, db, m, s) })
}

// oldReads is what an older program sees.
func (b *bench) oldReads(m readstate.MemberID, s readstate.ScopeID) (o older) {
	b.t.Helper()
	b.table(func(db *sql.DB) { o, _ = readOlder(b.t, db, m, s) })
	return o
}

func (b *bench) task(m readstate.MemberID, s readstate.ScopeID) (c task) {
	b.t.Helper()
	b.table(func(db *sql.DB) { c = taskOf(b.t, db, m, s) })
	return c
}

// execute runs a statement on the table.
func (b *bench) execute(query string, args ...any) {
	b.t.Helper()
	b.table(func(db *sql.DB) {
		if _, err := db.ExecContext(b.t.Context(), query, args...); err != nil {
			b.t.Fatal(err)
		}
	})
}

// fold brings the file back for older programs, with nobody at work.
func (b *bench) fold(check bool) (sqlsnap.Folding, error) {
	b.t.Helper()
	if check {
		return b.store.Folding(b.t.Context())
	}
	return b.store.Fold(b.t.Context())
}

// file is where the bench keeps its rows.
func file(t *testing.T) string { return filepath.Join(t.TempDir(), "snap.db") }

// halves is a store that dies in the middle of a barrier: some of the columns are written, the
// others are not.
type halves struct {
	*faulty
	regular bool // the regular columns come first
	die     bool
}

func (s *halves) Upsert(ctx context.Context, rows []snapshot.Row) error {
	if !s.die || len(rows) == 0 || !rows[len(rows)-1].Protect {
		return s.faulty.Upsert(ctx, rows)
	}
	half := append([]snapshot.Row{}, rows...)
	for i := range half {
		r := &half[i]
		if s.regular {
			r.Protect = false
			continue
		}
		old, err := s.Store.Load(ctx, snapshot.Query{
			Workspace: r.Workspace, Member: r.Member, Only: []readstate.ScopeID{r.Scope}, Limit: 1,
		})
		if err != nil {
			return err
		}
		if len(old) > 0 && r.Protect {
			format, text, was := r.TaskFormat, r.TaskText, r.Was
			*r = old[0]
			r.TaskFormat, r.TaskText, r.Was, r.Protect = format, text, was, true
		}
	}
	if err := s.Store.Upsert(ctx, half); err != nil {
		return err
	}
	return errFire
}
