package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
)

// session is one connection with its prepared statements. It belongs to one goroutine at a
// time. After a failure within a transaction it refuses everything until the next one: the
// database may have rolled back by itself, and a statement would commit on its own.
//
// Its statements are the driver's own: database/sql keeps the connection, and nothing stands
// between a group of hundreds of parameters and the database.
type session struct {
	conn   *sql.Conn
	d      *dialect
	args   []any
	named  []driver.NamedValue
	record record
	broken error
	// whole keeps a statement from being interrupted half way by the end of its context: the
	// statements of a writer are short, and between them the context is looked at.
	whole bool
	ended bool
	kept  bool               // it has been given back before, so that it may be long gone
	stmts map[shape]prepared // read and changed within conn.Raw only
}

// prepared is what the drivers used here offer of a statement.
type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// over returns what a transaction works on when it has ended: it refuses everything.
func over(d *dialect) *session {
	err := fmt.Errorf("%w: transaction is over", facts.ErrUnavailable)
	return &session{d: d, broken: err, ended: true}
}

// shape is a statement in one size.
type shape struct {
	st *statement
	n  int
}

func newSession(conn *sql.Conn, d *dialect, whole bool) *session {
	return &session{conn: conn, d: d, stmts: make(map[shape]prepared), whole: whole}
}

// close ends the connection, waiting for an answer that is being read. The store closes under
// whoever holds the session.
func (s *session) close() error { return errors.Join(s.closeStmts(), s.conn.Close()) }

// closeStmts frees the statements where they would keep the database open. None is running: one
// that is has the connection.
func (s *session) closeStmts() error {
	if !s.d.frees {
		return nil
	}
	return s.conn.Raw(func(any) error {
		var err error
		for _, p := range s.stmts {
			err = errors.Join(err, p.Close())
		}
		clear(s.stmts)
		return err
	})
}

// discard closes the connection for good instead of giving it back to the handle.
func (s *session) discard() error {
	_ = s.closeStmts() // what fails here fails below again
	err := s.conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) {
		err = nil
	}
	return errors.Join(err, s.conn.Close())
}

// run prepares a statement of size n where it is new and hands it to f with its parameters.
func (s *session) run(
	ctx context.Context, st *statement, n int, args []any,
	f func(p prepared, args []driver.NamedValue) error,
) error {
	if s.d.arrays && len(st.keys) > 0 {
		args, n = s.columns(st, n, args), 1
	}
	s.named = s.named[:0]
	for i, v := range args {
		if text, ok := v.(string); ok && s.d.bytes {
			v = []byte(text)
		}
		s.named = append(s.named, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s.conn.Raw(func(conn any) error {
		p, ok := s.stmts[shape{st, n}]
		if ok {
			return f(p, s.named)
		}
		p, err := s.prepare(ctx, conn, st, n)
		if err != nil {
			return err
		}
		return f(p, s.named)
	})
}

// prepare makes a statement ready that is not, and remembers it.
func (s *session) prepare(
	ctx context.Context, conn any, st *statement, n int,
) (p prepared, err error) {
	text := st.text(s.d, n)
	if s.d.direct {
		p = newSent(conn, text)
		if n > exactRows && n&(n-1) != 0 {
			return p, nil // it costs nothing but the text, and hardly comes again
		}
	} else {
		made, err := conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		p = made.(prepared)
	}
	s.stmts[shape{st, n}] = p
	return p, nil
}

// enter returns the context to run a statement with.
func (s *session) enter(ctx context.Context, st *statement) (context.Context, error) {
	if s.broken != nil {
		return ctx, s.broken
	}
	if err := ctx.Err(); err != nil {
		return ctx, s.fail(st, err)
	}
	if s.whole {
		ctx = context.WithoutCancel(ctx)
	}
	return ctx, nil
}

func (s *session) fail(st *statement, err error) error {
	err = s.d.fail(st.name, err)
	if s.broken == nil {
		s.broken = err
	}
	return err
}

// exec runs a statement of size n and returns the number of rows it changed.
func (s *session) exec(
	ctx context.Context, st *statement, n int, args ...any,
) (changed int64, err error) {
	ctx, err = s.enter(ctx, st)
	if err != nil {
		return 0, err
	}
	err = s.run(ctx, st, n, args, func(p prepared, args []driver.NamedValue) error {
		res, err := p.ExecContext(ctx, args)
		if err != nil {
			return err
		}
		changed, err = res.RowsAffected()
		return err
	})
	if err != nil {
		return 0, s.fail(st, err)
	}
	return changed, nil
}

// each runs a select of size n and hands every row to f. The record is valid within f only, and
// f must not run another statement.
func (s *session) each(
	ctx context.Context, st *statement, n int, args []any, f func(r *record) error,
) error {
	ctx, err := s.enter(ctx, st)
	if err != nil {
		return err
	}
	err = s.run(ctx, st, n, args, func(p prepared, args []driver.NamedValue) error {
		rows, err := p.QueryContext(ctx, args)
		if err != nil {
			return err
		}
		return errors.Join(s.record.all(ctx, rows, f), rows.Close())
	})
	if err != nil {
		return s.fail(st, err)
	}
	return nil
}

// eachKey runs a select over many keys. bind appends the columns of one key; tail follows the
// keys in every statement. f must not run another statement.
func eachKey[K any](
	ctx context.Context, s *session, st *statement, keys []K,
	bind func(args []any, key K) []any, f func(r *record) error, tail ...any,
) error {
	for len(keys) > 0 {
		take, size := keySize(len(keys))
		if s.d.arrays || s.d.direct {
			size = take // nothing is prepared for a size
		}
		args := s.args[:0]
		for _, k := range keys[:take] {
			args = bind(args, k)
		}
		if len(args) != take*st.width {
			return s.fail(st, fmt.Errorf("%d parameters for %d keys", len(args), take))
		}
		for range (size - take) * st.width {
			args = append(args, nil)
		}
		args = append(args, tail...)
		s.args = args
		if err := s.each(ctx, st, size, args, f); err != nil {
			return err
		}
		keys = keys[take:]
	}
	return nil
}

// execRows runs a writing statement over many rows.
func execRows[R any](
	ctx context.Context, s *session, st *statement, rows []R,
	bind func(args []any, row *R) []any,
) error {
	for len(rows) > 0 {
		n := rowSize(len(rows))
		args := s.args[:0]
		for i := range rows[:n] {
			args = bind(args, &rows[i])
		}
		s.args = args
		if len(args) != n*st.width {
			return s.fail(st, fmt.Errorf("%d parameters for %d rows", len(args), n))
		}
		if _, err := s.exec(ctx, st, n, args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}
