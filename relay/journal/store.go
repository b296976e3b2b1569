package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Partition names whose read state it is, and of which community.
type Partition struct {
	Scope  string // the relay's address and its community
	Viewer nostrx.PubKey
}

// Options are those of a Journal. All may be zero.
type Options struct {
	// OnStep is called at each step that a process could be killed at, by name.
	OnStep func(step string)
	// NoSync leaves writes to the operating system: for tests that end with their files.
	NoSync bool
}

// Journal is the file with the read state of all partitions. Any number of processes may have it open.
// It is safe for concurrent use.
type Journal struct {
	db     *sql.DB
	path   string
	onStep func(string)
}

// applicationID marks the file as a relay agent's ("tmrj"), schemaVersion is what this code writes.
const (
	applicationID = 0x746d726a
	schemaVersion = 1
)

const schema = `
CREATE TABLE read_state (
	scope  TEXT NOT NULL,
	viewer TEXT NOT NULL,
	record BLOB NOT NULL,
	PRIMARY KEY (scope, viewer)
) WITHOUT ROWID;
CREATE TABLE choices (
	scope  TEXT NOT NULL,
	viewer TEXT NOT NULL,
	kind   TEXT NOT NULL,
	name   TEXT NOT NULL,
	value  TEXT NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (scope, viewer, kind, name)
) WITHOUT ROWID`

// ErrStorage says that the file could not be read or written. Nothing was changed then.
var ErrStorage = errors.New("the journal's file")

// Open opens the file, or makes it, readable by its owner alone.
func Open(ctx context.Context, path string, o Options) (*Journal, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	synchronous := "synchronous(FULL)"
	if o.NoSync {
		synchronous = "synchronous(OFF)"
	}
	// Every transaction takes the write lock when it begins, so that what it read is what it changes.
	dsn := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: url.Values{
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", synchronous},
		"_txlock": {"immediate"},
	}.Encode()}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	db.SetMaxOpenConns(1)
	if o.OnStep == nil {
		o.OnStep = func(string) {}
	}
	j := &Journal{db: db, path: path, onStep: o.OnStep}
	if err := j.prepare(ctx); err != nil {
		_ = db.Close() // the first error is the one that matters
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return j, nil
}

func (j *Journal) prepare(ctx context.Context) error {
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var app, version, objects int
	for pragma, to := range map[string]*int{
		"PRAGMA application_id": &app, "PRAGMA user_version": &version,
		"SELECT count(*) FROM sqlite_schema": &objects,
	} {
		if err := tx.QueryRowContext(ctx, pragma).Scan(to); err != nil {
			return err
		}
	}
	switch {
	case app == applicationID && version == schemaVersion:
		return nil
	case app == applicationID:
		return fmt.Errorf("a newer agent wrote the file (version %d)", version)
	case app != 0 || version != 0 || objects != 0:
		return errors.New("the file is not a relay agent's")
	}
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d",
		applicationID, schemaVersion))
	if err != nil {
		return err
	}
	return tx.Commit()
}

// Close closes the file.
func (j *Journal) Close() error { return j.db.Close() }

// Leave forgets a partition, its choices included, and nothing else.
func (j *Journal) Leave(ctx context.Context, p Partition) error {
	err := j.atOnce(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, table := range []string{"read_state", "choices"} {
			_, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE scope = ? AND viewer = ?`,
				p.Scope, string(p.Viewer))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("leave %s: %w", p.Scope, err)
	}
	return nil
}

// atOnce does something in one transaction.
func (j *Journal) atOnce(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	defer tx.Rollback()
	if err := do(ctx, tx); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}

// read returns what is stored of a partition; false when there is nothing.
func read(ctx context.Context, tx *sql.Tx, p Partition) (Record, bool, error) {
	var data []byte
	err := tx.QueryRowContext(ctx, `SELECT record FROM read_state WHERE scope = ? AND viewer = ?`,
		p.Scope, string(p.Viewer)).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	r, err := decode(data, p.Viewer)
	return r, true, err
}

// update changes the record that is stored at this moment, in one transaction: others who do the same
// wait, and nobody's change is lost. A change that returns an error changes nothing; one that returns
// false found nothing to change. The transaction is not given up halfway, since who asked for it would
// not know what is in the file.
func (j *Journal) update(
	ctx context.Context, p Partition, change func(*Record) (bool, error),
) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	ctx = context.WithoutCancel(ctx)
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	defer tx.Rollback()
	r, found, err := read(ctx, tx, p)
	if err != nil {
		return Record{}, err
	}
	if !found {
		r = newRecord()
	}
	changed, err := change(&r)
	if err != nil || !changed && found {
		return r, err
	}
	if err := r.check(p.Viewer); err != nil {
		return Record{}, fmt.Errorf("a change that breaks the journal: %w", err)
	}
	data, err := r.encode()
	if err != nil {
		return Record{}, err
	}
	j.onStep("write")
	_, err = tx.ExecContext(ctx, `INSERT INTO read_state (scope, viewer, record) VALUES (?, ?, ?)
		ON CONFLICT (scope, viewer) DO UPDATE SET record = excluded.record`, p.Scope, string(p.Viewer), data)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	j.onStep("commit")
	if err := tx.Commit(); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	j.onStep("committed")
	return r, nil
}
