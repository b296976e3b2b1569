package client

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	sqlite "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// store is the file with the outboxes of all servers and namespaces.
type store struct {
	db     *sql.DB
	origin string
	onStep func(string)
}

// applicationID marks the file as a client's ("tmrc"), schemaVersion is what this code writes.
const (
	applicationID = 0x746d7263
	schemaVersion = 2
)

// Operations are found by the server and the namespace that they belong to, in the order in which
// they were made.
const schema = `
CREATE TABLE operations (
	n                INTEGER PRIMARY KEY AUTOINCREMENT,
	origin           TEXT NOT NULL,
	workspace        TEXT NOT NULL,
	member           TEXT NOT NULL,
	id               TEXT NOT NULL,
	session          TEXT NOT NULL,
	kind             TEXT NOT NULL,
	revision         INTEGER NOT NULL,
	expected_version INTEGER NOT NULL,
	after            TEXT NOT NULL,
	flips            INTEGER NOT NULL,
	attempts         INTEGER NOT NULL,
	created_at       INTEGER NOT NULL,
	UNIQUE (origin, workspace, member, id)
);
CREATE INDEX operations_in_order ON operations (origin, workspace, member, n)`

// openStore opens the file, or makes it, and keeps everybody else out until it is closed or the
// process dies.
func openStore(ctx context.Context, path, origin string, o *Options) (*store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// With the exclusive lock the log of changes needs no memory shared with other processes.
	synchronous := "synchronous(FULL)"
	if o.noSync {
		synchronous = "synchronous(OFF)"
	}
	dsn := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: url.Values{"_pragma": {
		"locking_mode(EXCLUSIVE)", "journal_mode(WAL)", synchronous,
	}}.Encode()}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s := &store{db: db, origin: origin, onStep: o.onStep}
	if err := s.prepare(ctx); err != nil {
		_ = db.Close() // the first error is the one that matters
		return nil, err
	}
	return s, nil
}

// prepare takes the lock and makes the schema where there is none.
func (s *store) prepare(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return inUse(err)
	}
	defer tx.Rollback()
	var app, version, objects int
	for pragma, to := range map[string]*int{
		"PRAGMA application_id": &app, "PRAGMA user_version": &version,
		"SELECT count(*) FROM sqlite_schema": &objects,
	} {
		if err := tx.QueryRowContext(ctx, pragma).Scan(to); err != nil {
			return inUse(err)
		}
	}
	var steps []string
	switch {
	case app == 0 && version == 0 && objects == 0:
		steps = []string{schema, lossesSchema}
	case app != applicationID:
		return errors.New("the file is not a client's")
	case version > schemaVersion:
		return fmt.Errorf("a newer client wrote the file (version %d)", version)
	case version == 1:
		steps = []string{lossesSchema}
	}
	for _, step := range steps {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return inUse(err)
		}
	}
	// A write, so that the lock is that of the only writer.
	_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d",
		applicationID, schemaVersion))
	if err != nil {
		return inUse(err)
	}
	return inUse(tx.Commit())
}

func inUse(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == sqlitelib.SQLITE_BUSY {
		return fmt.Errorf("%w: %w", ErrInUse, err)
	}
	return err
}

// load returns the operations of a namespace, oldest first.
func (s *store) load(ctx context.Context, ns Namespace) ([]readsync.Operation, error) {
	rows, err := s.db.QueryContext(ctx, `
		SELECT id, session, kind, revision, expected_version, after, flips, attempts, created_at
		FROM operations WHERE origin = ? AND workspace = ? AND member = ? ORDER BY n`,
		s.origin, ns.Workspace, ns.Member)
	if err != nil {
		return nil, fmt.Errorf("load operations: %w", err)
	}
	defer rows.Close()
	var ops []readsync.Operation
	for rows.Next() {
		var op readsync.Operation
		err := rows.Scan(&op.ID, &op.Session, &op.Kind, &op.Revision, &op.ExpectedVersion,
			&op.After, &op.Flips, &op.Attempts, &op.CreatedAt)
		if err != nil {
			return nil, fmt.Errorf("load operations: %w", err)
		}
		ops = append(ops, op)
	}
	return ops, rows.Err()
}

// write makes a change durable, all of it or nothing. It is not given up halfway: who asked for it
// would not know what is in the file.
func (s *store) write(ns Namespace, change readsync.Change) error {
	ctx := context.Background()
	s.onStep("write")
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("write operations: %w", err)
	}
	defer tx.Rollback()
	for _, id := range change.Remove {
		_, err := tx.ExecContext(ctx, `DELETE FROM operations
			WHERE origin = ? AND workspace = ? AND member = ? AND id = ?`,
			s.origin, ns.Workspace, ns.Member, id)
		if err != nil {
			return fmt.Errorf("remove operation %s: %w", id, err)
		}
	}
	for _, op := range change.Put {
		_, err := tx.ExecContext(ctx, `INSERT INTO operations (origin, workspace, member, id,
				session, kind, revision, expected_version, after, flips, attempts, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (origin, workspace, member, id) DO UPDATE SET
				revision = excluded.revision, expected_version = excluded.expected_version,
				after = excluded.after, flips = excluded.flips, attempts = excluded.attempts,
				created_at = excluded.created_at`,
			s.origin, ns.Workspace, ns.Member, op.ID, op.Session, op.Kind, op.Revision,
			op.ExpectedVersion, op.After, op.Flips, op.Attempts, op.CreatedAt)
		if err != nil {
			return fmt.Errorf("write operation %s: %w", op.ID, err)
		}
	}
	if err := s.lost(ctx, tx, ns, change.Lost); err != nil {
		return err
	}
	s.onStep("commit")
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("write operations: %w", err)
	}
	s.onStep("written")
	return nil
}

func (s *store) close() error { return s.db.Close() }
