package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"regexp"
	"strconv"
)

// numbered is a parameter mark that says which parameter it stands for, so that one may stand in
// several places.
var numbered = regexp.MustCompile(`\?(\d+)`)

// sent is a statement that is not prepared: its text goes to the database each time, with the
// parameters within it.
type sent struct {
	conn  any
	text  string
	order []int // which parameter stands at each mark, nil for their own order
	args  []driver.NamedValue
}

func newSent(conn any, text string) *sent {
	s := &sent{conn: conn}
	s.text = numbered.ReplaceAllStringFunc(text, func(mark string) string {
		n, err := strconv.Atoi(mark[1:])
		if err != nil {
			panic(err) // the expression lets digits through, and a text has few parameters
		}
		s.order = append(s.order, n-1)
		return "?"
	})
	return s
}

// inOrder puts the parameters where their marks are.
func (s *sent) inOrder(args []driver.NamedValue) []driver.NamedValue {
	if s.order == nil {
		return args
	}
	s.args = s.args[:0]
	for i, n := range s.order {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: args[n].Value})
	}
	return s.args
}

// ExecContext implements driver.StmtExecContext.
func (s *sent) ExecContext(
	ctx context.Context, args []driver.NamedValue,
) (driver.Result, error) {
	args = s.inOrder(args)
	res, err := s.conn.(driver.ExecerContext).ExecContext(ctx, s.text, args)
	if !errors.Is(err, driver.ErrSkip) {
		return res, err
	}
	// What is too long for one packet is prepared after all: the parameters travel by themselves.
	st, err := s.conn.(driver.ConnPrepareContext).PrepareContext(ctx, s.text)
	if err != nil {
		return nil, err
	}
	res, err = st.(driver.StmtExecContext).ExecContext(ctx, args)
	return res, errors.Join(err, st.Close())
}

// QueryContext implements driver.StmtQueryContext.
func (s *sent) QueryContext(
	ctx context.Context, args []driver.NamedValue,
) (driver.Rows, error) {
	return s.conn.(driver.QueryerContext).QueryContext(ctx, s.text, s.inOrder(args))
}

// Close implements driver.Stmt. There is nothing to free.
func (s *sent) Close() error { return nil }

// NumInput implements driver.Stmt.
func (s *sent) NumInput() int { return -1 }

// Exec implements driver.Stmt.
func (s *sent) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }

// Query implements driver.Stmt.
func (s *sent) Query([]driver.Value) (driver.Rows, error) { return nil, driver.ErrSkip }
