package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	sqlite "modernc.org/sqlite"

	"github.com/tidemark-im/tidemark/facts"
)

const (
	defaultReaders     = 4
	defaultBusyTimeout = 5 * time.Second

	// sqliteApplicationID marks our files: "TIDE".
	sqliteApplicationID = 0x54494445
	sqlitePageBytes     = 4096
	// A checkpoint runs after a commit that leaves this many pages in the log. Fewer would put
	// one into nearly every big group, more would make readers search a longer log.
	sqliteCheckpointPages = 4000
	sqliteWriterCacheKiB  = 64 << 10
	sqliteReaderCacheKiB  = 16 << 10
)

// OpenSQLite opens the database file at path, making it where there is none, migrates it and
// owns it until Close. A file that is open already, here or elsewhere, is facts.ErrNotOwner;
// every other failure is facts.ErrUnavailable with its cause.
func OpenSQLite(ctx context.Context, path string, o Options) (*Store, error) {
	d := sqliteDialect
	op := fmt.Sprintf("open %q", path)
	path, err := resolve(path)
	if err != nil {
		return nil, d.fail(op, err)
	}
	owner, err := takeLock(path + ".lock")
	if err != nil {
		return nil, d.fail(op, err)
	}
	st, err := openOwned(ctx, d, path, o)
	if err != nil {
		return nil, d.fail(op, errors.Join(err, owner.discard()))
	}
	st.owner = owner
	return st, nil
}

// resolve follows links, so that one file has one lock whatever it is called.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

func openOwned(ctx context.Context, d *dialect, path string, o Options) (*Store, error) {
	if err := sqliteForeign(path); err != nil {
		return nil, err
	}
	writer, err := sqliteHandle(path, o, false)
	if err != nil {
		return nil, err
	}
	if err := sqlitePrepare(ctx, writer); err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	readers, err := sqliteHandle(path, o, true)
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	n := o.Readers
	if n <= 0 {
		n = defaultReaders
	}
	return &Store{
		d: d, writer: newPool(writer, d, 1, true), readers: newPool(readers, d, n, false),
	}, nil
}

// sqliteHandle returns a handle whose connections are set up alike.
func sqliteHandle(path string, o Options, readOnly bool) (*sql.DB, error) {
	busy := o.BusyTimeout
	if busy <= 0 {
		busy = defaultBusyTimeout
	}
	q := url.Values{}
	pragma := func(name string, value any) {
		q.Add("_pragma", fmt.Sprintf("%s(%v)", name, value))
	}
	pragma("busy_timeout", busy.Milliseconds())
	pragma("foreign_keys", 0)
	pragma("temp_store", "MEMORY")
	if readOnly {
		pragma("cache_size", -sqliteReaderCacheKiB)
		pragma("query_only", 1)
	} else {
		q.Set("_txlock", "immediate")
		pragma("cache_size", -sqliteWriterCacheKiB)
		pragma("journal_mode", "WAL")
		pragma("journal_size_limit", 4*sqliteCheckpointPages*sqlitePageBytes)
		pragma("wal_autocheckpoint", sqliteCheckpointPages)
		if o.Unsafe {
			pragma("synchronous", "OFF")
		} else {
			pragma("synchronous", "FULL")
		}
		if o.MaxBytes > 0 {
			pragma("max_page_count", max(1, o.MaxBytes/sqlitePageBytes))
		}
	}
	connector, err := sqlite.NewConnector(sqliteURI(path, q))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(probed(connector, o.OnStatement)), nil
}

func sqliteURI(path string, q url.Values) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// sqlitePrepare makes sure that the file is ours and migrates it.
func sqlitePrepare(ctx context.Context, db *sql.DB) error {
	var app, objects int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return err
	}
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&objects)
	if err != nil {
		return err
	}
	if app != sqliteApplicationID && objects > 0 {
		return foreign(app)
	}
	// The mark comes first: a file whose making was cut short is ours, too, and gets finished.
	if app != sqliteApplicationID {
		_, err = db.ExecContext(ctx, "PRAGMA application_id = "+strconv.Itoa(sqliteApplicationID))
		if err != nil {
			return err
		}
	}
	return migrate(ctx, sqliteDialect, db)
}

// BackupSQLite copies a consistent state of the database at path, which may be in use by its
// owner, to a new file. The owner goes on working meanwhile. A file that is there already is
// os.ErrExist and stays as it is.
func BackupSQLite(ctx context.Context, path, to string) error {
	d := sqliteDialect
	op := fmt.Sprintf("back up %q", path)
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s: %q: %w", op, to, os.ErrExist)
	}
	db, err := sqliteReadOnly(path)
	if err != nil {
		return d.fail(op, err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	partial := to + ".partial"
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
		return d.fail(op, err)
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", partial); err != nil {
		return d.fail(op, errors.Join(err, os.Remove(partial)))
	}
	if err := syncFile(partial); err != nil {
		return d.fail(op, err)
	}
	if err := os.Rename(partial, to); err != nil {
		return d.fail(op, err)
	}
	return d.fail(op, syncFile(filepath.Dir(to)))
}

// CheckSQLite reads the whole database at path, which may be in use by its owner, and fails with
// ErrCorrupt when its structure is damaged.
func CheckSQLite(ctx context.Context, path string) error {
	d := sqliteDialect
	op := fmt.Sprintf("check %q", path)
	db, err := sqliteReadOnly(path)
	if err != nil {
		return d.fail(op, err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	var app int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return d.fail(op, err)
	}
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return d.fail(op, err)
	}
	if app != sqliteApplicationID {
		verdict = fmt.Sprintf("application id %#x", app)
	}
	if verdict != "ok" {
		return d.fail(op, fmt.Errorf("%w: %w: %s", facts.ErrUnavailable, ErrCorrupt, verdict))
	}
	return nil
}

// sqliteReadOnly opens a file that somebody else may own.
func sqliteReadOnly(path string) (*sql.DB, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	if err := sqliteForeign(path); err != nil {
		return nil, err
	}
	q := url.Values{"mode": {"ro"}}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", defaultBusyTimeout.Milliseconds()))
	var connector driver.Connector
	if connector, err = sqlite.NewConnector(sqliteURI(path, q)); err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
