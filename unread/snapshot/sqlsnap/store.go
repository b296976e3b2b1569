package sqlsnap

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	sqlite "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// ErrOwned means that another process has the file open.
var ErrOwned = errors.New("snapshots are owned by another process")

// ErrNoTable means that a file that should have snapshots has none.
var ErrNoTable = errors.New("file has no snapshot table")

//go:embed table.sql
var table string

const name = "member_scope_unread_runtime_snapshots"

// detail is the column that this package adds to a table that lacks it.
const detail = "rank_detail"

// Options tunes a store.
type Options struct {
	// Existing refuses to make a file or a table that is not there.
	Existing bool
	// OnStatement observes every statement, for probes in tests; nil costs nothing.
	OnStatement func(ctx context.Context, query string)
}

// Store is a SQLite file with snapshot rows. It is safe for concurrent use.
type Store struct {
	db     *sql.DB
	probe  func(ctx context.Context, query string)
	upsert *sql.Stmt
	first  *sql.Stmt
	both   *sql.Stmt // the Task columns, too
	one    *sql.Stmt
	page   *sql.Stmt
	begin  *sql.Stmt // the first page

	mu   sync.Mutex
	only map[int]*sql.Stmt // by the number of scopes asked for
}

// OpenSQLite opens the file at path, making it and the table where there are none, and owns it
// until Close.
func OpenSQLite(ctx context.Context, path string, o Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	if o.Existing {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("open snapshots: %w", err)
		}
	}
	q := url.Values{}
	// One connection holds the file's lock for good; a hint needs no sync per commit.
	for _, p := range []string{
		"busy_timeout(0)", "locking_mode(EXCLUSIVE)", "journal_mode(WAL)", "synchronous(NORMAL)",
		"temp_store(MEMORY)",
	} {
		q.Add("_pragma", p)
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q.Encode()}
	connector, err := sqlite.NewConnector(uri.String())
	if err != nil {
		return nil, fmt.Errorf("open snapshots %q: %w", path, err)
	}
	s := &Store{db: sql.OpenDB(connector), probe: o.OnStatement, only: map[int]*sql.Stmt{}}
	s.db.SetMaxOpenConns(1)
	s.db.SetMaxIdleConns(1)
	if err := s.prepare(ctx, o.Existing); err != nil {
		return nil, errors.Join(fmt.Errorf("open snapshots %q: %w", path, owned(err)), s.db.Close())
	}
	return s, nil
}

func owned(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		if c := e.Code() & 0xff; c == sqlitelib.SQLITE_BUSY || c == sqlitelib.SQLITE_LOCKED {
			return fmt.Errorf("%w: %w", ErrOwned, err)
		}
	}
	return err
}

func (s *Store) observe(ctx context.Context, query string) {
	if s.probe != nil {
		s.probe(ctx, query)
	}
}

func (s *Store) prepare(ctx context.Context, existing bool) error {
	if existing {
		var n int
		has := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '" + name + "'"
		s.observe(ctx, has)
		if err := s.db.QueryRowContext(ctx, has).Scan(&n); err != nil || n == 0 {
			return errors.Join(err, fmt.Errorf("%w: %s", ErrNoTable, name))
		}
	}
	// A write takes the lock that locking_mode keeps.
	for _, query := range []string{"BEGIN IMMEDIATE", table, "COMMIT"} {
		s.observe(ctx, query)
		if _, err := s.db.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	var n int
	has := "SELECT count(*) FROM pragma_table_info('" + name + "') WHERE name = '" + detail + "'"
	s.observe(ctx, has)
	if err := s.db.QueryRowContext(ctx, has).Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		add := "ALTER TABLE " + name + " ADD COLUMN " + detail + " TEXT"
		s.observe(ctx, add)
		if _, err := s.db.ExecContext(ctx, add); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		stmt  **sql.Stmt
		query string
	}{
		{&s.upsert, replace(columns)}, {&s.first, insert(columns) + " ON CONFLICT DO NOTHING"},
		{&s.both, replace(allColumns)}, {&s.one, selectWhere("scope_id = ?")},
		{&s.page, selectWhere(following)}, {&s.begin, selectWhere(beginning)},
	} {
		stmt, err := s.db.PrepareContext(ctx, p.query) //nolint:sqlclosecheck // Close closes it
		if err != nil {
			return err
		}
		*p.stmt = stmt
	}
	return nil
}

// Close releases the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.Join(s.upsert.Close(), s.first.Close(), s.both.Close(), s.one.Close(),
		s.page.Close(), s.begin.Close())
	for _, p := range s.only {
		err = errors.Join(err, p.Close())
	}
	return errors.Join(err, s.db.Close())
}

const keys = 3

// columns are those that rows have here, the key first; values lists them in the same order.
var columns = []string{
	"workspace_id", "member_id", "scope_id",
	"message_unread_count", "activity_unread_count", "manual_unread",
	"last_message_read_seq", "last_activity_read_seq", "effective_from_seq",
	"latest_message_accounted_seq", "latest_activity_accounted_seq",
	"notification_state", "membership_visibility",
	"scope_roster_generation", "scope_message_generation", "scope_activity_generation",
	"membership_generation", "notification_generation", "manual_unread_generation",
	"rewind_generation",
	"e", "author_at_e", "principal_at_e", "own_removed_above_e", "own_everyone_above_e",
	"direct_above_e", "targets_above_e", "signal_at", "actor_at", "activity_targets_above",
	"head_revision", "floor_revision", "signal_head", "author_head", "principal_head", "actor_head",
	detail, "updated_at",
}

// allColumns are those and the Task columns.
var allColumns = append(slices.Clone(columns), "task_snapshot_format_version", "task_snapshot_json")

func insert(columns []string) string {
	return "INSERT INTO " + name + " (" + strings.Join(columns, ", ") + ") VALUES (" +
		strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ") + ")"
}

// replace leaves the columns alone that are not named: those of a task, where no barrier writes.
func replace(columns []string) string {
	var set []string
	for _, c := range columns[keys:] {
		set = append(set, c+" = excluded."+c)
	}
	return insert(columns) + " ON CONFLICT (" + strings.Join(columns[:keys], ", ") + ") DO UPDATE SET " +
		strings.Join(set, ", ")
}

func id[T ~string](v T) []byte { return append(make([]byte, 0, len(v)), v...) }

// Upsert implements snapshot.Store.
func (s *Store) Upsert(ctx context.Context, rows []snapshot.Row) (err error) {
	if len(rows) == 0 {
		return nil
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("write snapshots: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if slices.ContainsFunc(rows, func(r snapshot.Row) bool { return r.Durable }) {
		durable, err := s.durably(ctx, conn)
		if err != nil {
			return fmt.Errorf("write snapshots: %w", err)
		}
		defer durable()
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("write snapshots: %w", err)
	}
	defer tx.Rollback()
	for i := range rows {
		if err := s.put(ctx, tx, &rows[i]); err != nil {
			return fmt.Errorf("write snapshot of %q in %q: %w", rows[i].Member, rows[i].Scope, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("write snapshots: %w", err)
	}
	return nil
}

// put writes one row.
func (s *Store) put(ctx context.Context, tx *sql.Tx, r *snapshot.Row) error {
	stmt, text, args := s.upsert, replace, columns
	switch {
	case r.Protect:
		if err := s.compare(ctx, tx, r); err != nil {
			return err
		}
		stmt, args = s.both, allColumns
	case r.IfAbsent:
		stmt, text = s.first, insert
	}
	if s.probe != nil {
		s.probe(ctx, text(args))
	}
	v := values(r)
	if r.Protect {
		var task any
		if r.TaskFormat != nil {
			task = r.TaskText
		}
		v = append(v, r.TaskFormat, task)
	}
	stmt = tx.StmtContext(ctx, stmt) //nolint:sqlclosecheck // the transaction closes it
	_, err := stmt.ExecContext(ctx, v...)
	return err
}

// compare holds the table's row, in the transaction that replaces it, against what the writer knows.
func (s *Store) compare(ctx context.Context, tx *sql.Tx, r *snapshot.Row) error {
	var found []snapshot.Row
	q := snapshot.Query{Workspace: r.Workspace, Member: r.Member}
	one := tx.StmtContext(ctx, s.one)
	s.observe(ctx, selectWhere("scope_id = ?"))
	if err := scanAll(ctx, one, &q, []any{id(r.Scope)}, &found); err != nil {
		return err
	}
	was := uint64(0)
	if len(found) > 0 {
		was = found[0].Fingerprint()
	}
	if was != r.Was {
		return snapshot.ErrConflict
	}
	return nil
}

// durably has the next commit reach the disk, and everything before it.
func (s *Store) durably(ctx context.Context, conn *sql.Conn) (end func(), err error) {
	set := func(ctx context.Context, mode string) error {
		query := "PRAGMA synchronous = " + mode
		s.observe(ctx, query)
		_, err := conn.ExecContext(ctx, query)
		return err
	}
	if err := set(ctx, "FULL"); err != nil {
		return nil, err
	}
	return func() {
		// What fails here leaves writes slower, and none less durable.
		_ = set(context.WithoutCancel(ctx), "NORMAL")
	}, nil
}

func values(r *snapshot.Row) []any {
	g := &r.Generations
	v := []any{
		id(r.Workspace), id(r.Member), id(r.Scope),
		r.MessageUnread, r.ActivityUnread, r.ManualUnread,
		r.MessageRead, r.ActivityRead, r.EffectiveFrom, r.MessageAccounted, r.ActivityAccounted,
		r.Notification, r.Visibility,
		g.Roster, g.Message, g.Activity, g.Membership, g.Notification, g.Manual, g.Rewind,
	}
	for _, p := range places(r.Ranks) {
		if r.Ranks == nil {
			v = append(v, nil)
		} else {
			v = append(v, *p)
		}
	}
	var text any
	if r.Detail != "" {
		text = r.Detail
	}
	return append(v, text, r.UpdatedAt)
}

// places are the rank columns in their order.
func places(k *snapshot.Ranks) []*int64 {
	if k == nil {
		k = new(snapshot.Ranks)
	}
	return []*int64{
		&k.E, &k.AuthorAt, &k.PrincipalAt, &k.OwnRemoved, &k.OwnEveryone, &k.Direct, &k.Targets,
		&k.SignalAt, &k.ActorAt, &k.ActivityTargets, &k.Head, &k.Floor, &k.SignalHead,
		&k.AuthorHead, &k.PrincipalHead, &k.ActorHead,
	}
}
