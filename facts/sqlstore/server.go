package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
)

// server is a database on a server, with a way to each kind of session there.
//
// Whoever has a writing session owns the database: the server keeps a lock for it, and gives it up
// with the session. So a new session cannot be had before the one before it has come to its end, and
// with it whatever it was committing.
type server struct {
	d     *dialect
	shown string // its name without secrets
	// dial returns what opens sessions of a role.
	dial func(r role) driver.Connector
	// settle makes what the migrations need and refuses what is not ours.
	settle func(ctx context.Context, db *sql.DB) error
	// found reports whether there is a table of migrations.
	found func(ctx context.Context, db *sql.DB) (bool, error)
}

// role is what a session is for.
type role uint8

const (
	roleOwning  role = iota // owns the database
	roleWriting             // writes, too, and owns nothing
	roleReading
	roleKeeping // migrates, or looks at things
)

func (sv *server) handle(r role, hook onStatement) *sql.DB {
	return sql.OpenDB(probed(sv.dial(r), hook))
}

func (sv *server) open(ctx context.Context, o Options) (*Store, error) {
	own := newPool(sv.handle(roleOwning, o.OnStatement), sv.d, 1, true)
	s, err := own.take(ctx)
	if err != nil {
		return nil, errors.Join(err, own.close())
	}
	own.give(s)
	if err := sv.prepare(ctx, o.OnStatement); err != nil {
		return nil, errors.Join(err, own.close())
	}
	if o.Shared {
		if err := own.close(); err != nil {
			return nil, err
		}
		own = newPool(sv.handle(roleWriting, o.OnStatement), sv.d, 1, true)
	}
	n := o.Readers
	if n <= 0 {
		n = defaultReaders
	}
	return &Store{
		d: sv.d, writer: own, owner: nothing{},
		readers:   newPool(sv.handle(roleReading, o.OnStatement), sv.d, n, false),
		registrar: newPool(sv.handle(roleWriting, o.OnStatement), sv.d, 1, true),
	}, nil
}

// nothing is owned beside the sessions.
type nothing struct{}

func (nothing) Close() error { return nil }

// prepare migrates the database.
func (sv *server) prepare(ctx context.Context, hook onStatement) error {
	db := sv.handle(roleKeeping, hook)
	err := sv.settle(ctx, db)
	if err == nil {
		err = migrate(ctx, sv.d, db)
	}
	return errors.Join(err, db.Close())
}

func (sv *server) schema(ctx context.Context) (Schema, error) {
	s := Schema{Newest: newest(sv.d)}
	db := sv.handle(roleKeeping, nil)
	defer db.Close() //nolint:errcheck // it was only read
	found, err := sv.found(ctx, db)
	if err != nil || !found {
		return s, err
	}
	// A downgrade leaves its row: what was applied last counts.
	err = db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM "+sv.d.table+
		" WHERE is_applied").Scan(&s.Version)
	return s, err
}

// setupConnector makes each new connection of a driver ready for its role.
type setupConnector struct {
	driver.Connector
	setup func(ctx context.Context, c fullConn) error
}

// Connect implements driver.Connector.
func (c setupConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.setup(ctx, conn.(fullConn)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// run carries out a statement without parameters.
func run(ctx context.Context, c fullConn, text string) error {
	_, err := c.ExecContext(ctx, text, nil)
	return err
}

// ask returns the one row of an answer.
func ask(ctx context.Context, c fullConn, text string) ([]driver.Value, error) {
	rows, err := c.QueryContext(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	values := make([]driver.Value, len(rows.Columns()))
	return values, errors.Join(rows.Next(values), rows.Close())
}

func errOwned() error {
	return fmt.Errorf("%w: database is owned by another process", facts.ErrNotOwner)
}
