package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/tidemark-im/tidemark/facts"
)

// session is one connection with its prepared statements. It belongs to one goroutine at a
// time. After a failure within a transaction it refuses everything until the next one: the
// database may have rolled back by itself, and a statement would commit on its own.
type session struct {
	conn   *sql.Conn
	d      *dialect
	args   []any
	record record
	broken error
	// whole keeps a statement from being interrupted half way by the end of its context: the
	// statements of a writer are short, and between them the context is looked at.
	whole bool
	ended bool

	mu    sync.Mutex // the store closes under whoever holds the session
	stmts map[shape]*sql.Stmt
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
	return &session{conn: conn, d: d, stmts: make(map[shape]*sql.Stmt), whole: whole}
}

// close ends the connection, waiting for an answer that is being read. Statements go after it:
// while one is running it may not be freed.
func (s *session) close() error { return errors.Join(s.conn.Close(), s.closeStmts()) }

// closeStmts frees the statements, which otherwise keep the database open.
func (s *session) closeStmts() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, p := range s.stmts {
		err = errors.Join(err, p.Close())
	}
	clear(s.stmts)
	return err
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

func (s *session) prepared(ctx context.Context, st *statement, n int) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := shape{st, n}
	if p, ok := s.stmts[key]; ok {
		return p, nil
	}
	p, err := s.conn.PrepareContext(ctx, st.text(s.d, n)) //nolint:sqlclosecheck // closeStmts closes it
	if err != nil {
		return nil, err
	}
	s.stmts[key] = p
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
func (s *session) exec(ctx context.Context, st *statement, n int, args ...any) (int64, error) {
	ctx, err := s.enter(ctx, st)
	if err != nil {
		return 0, err
	}
	p, err := s.prepared(ctx, st, n) //nolint:sqlclosecheck // closeStmts closes it
	if err != nil {
		return 0, s.fail(st, err)
	}
	res, err := p.ExecContext(ctx, args...)
	if err != nil {
		return 0, s.fail(st, err)
	}
	changed, err := res.RowsAffected()
	if err != nil {
		return 0, s.fail(st, err)
	}
	return changed, nil
}

// each runs a select of size n and hands every row to f. The record is valid within f only.
func (s *session) each(
	ctx context.Context, st *statement, n int, args []any, f func(r *record) error,
) error {
	ctx, err := s.enter(ctx, st)
	if err != nil {
		return err
	}
	p, err := s.prepared(ctx, st, n) //nolint:sqlclosecheck // closeStmts closes it
	if err != nil {
		return s.fail(st, err)
	}
	rows, err := p.QueryContext(ctx, args...)
	if err != nil {
		return s.fail(st, err)
	}
	defer rows.Close()
	r := &s.record
	if err := r.size(rows); err != nil {
		return s.fail(st, err)
	}
	for rows.Next() {
		if err := rows.Scan(r.targets...); err != nil {
			return s.fail(st, err)
		}
		r.next = 0
		if err := f(r); err != nil {
			return s.fail(st, err)
		}
		if r.err != nil {
			return s.fail(st, r.err)
		}
	}
	if err := rows.Err(); err != nil {
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
