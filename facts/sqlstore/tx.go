package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
)

// Statements that frame transactions.
var (
	beginTx    = frame("begin", func(d *dialect) string { return d.begin })
	beginView  = frame("begin view", func(d *dialect) string { return d.beginRead })
	commitTx   = frame("commit", func(d *dialect) string { return d.commit })
	rollbackTx = frame("roll back", func(d *dialect) string { return d.rollback })
)

func frame(name string, text func(d *dialect) string) *statement {
	return register(&statement{name: name, text: func(d *dialect, _ int) string { return text(d) }})
}

// tx is the writing transaction. It runs on the one writing session, which it holds until its
// end.
type tx struct {
	*session
	from *pool
}

// Begin implements facts.Store. It waits for the transaction before it to end.
func (st *Store) Begin(ctx context.Context) (facts.Tx, error) {
	t, err := st.begin(ctx)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (st *Store) begin(ctx context.Context) (*tx, error) {
	return beginOn(ctx, st.writer)
}

func beginOn(ctx context.Context, from *pool) (*tx, error) {
	s, err := from.enter(ctx, beginTx)
	if err != nil {
		return nil, err
	}
	return &tx{session: s, from: from}, nil
}

// Commit implements facts.Tx. A context that has ended by now commits nothing; from here on it
// is not looked at any more.
func (t *tx) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil && t.broken == nil {
		t.broken = err
	}
	if err := t.broken; err != nil {
		_ = t.Rollback() // nothing was committed either way
		return fmt.Errorf("commit: %w: %w", facts.ErrAborted, err)
	}
	_, err := t.exec(ctx, commitTx, 0)
	if err == nil {
		t.end(true)
		return nil
	}
	// A transaction that is still open did not happen, nor did one for which there was no room. Of
	// any other failure the store's next reader knows more, and of most that come from afar.
	t.broken = nil
	_, rollback := t.exec(context.Background(), rollbackTx, 0)
	open := rollback == nil
	t.end(open && !t.d.remote)
	if !t.d.remote && (open || errors.Is(err, ErrFull)) {
		return fmt.Errorf("%w: %w", facts.ErrAborted, err)
	}
	return err
}

// Rollback implements facts.Tx. After a failure the database may have rolled back by itself;
// then there is nothing to do, and the session is replaced all the same.
func (t *tx) Rollback() error {
	if t.ended {
		return nil
	}
	failed := t.broken != nil
	t.broken = nil
	_, err := t.exec(context.Background(), rollbackTx, 0)
	t.end(err == nil)
	if failed {
		return nil //nolint:nilerr // the database may have rolled back already
	}
	return err
}

// end gives the session back. One that did not end well is replaced.
func (t *tx) end(well bool) {
	s := t.session
	t.session = over(s.d)
	if well {
		t.from.give(s)
	} else {
		t.from.drop(s)
	}
}

// Advance implements facts.Tx.
func (s *session) Advance(
	ctx context.Context, key facts.WorkspaceKey, from facts.Fence,
) (bool, error) {
	args := []any{number(key), number(from.Term), number(from.LSN)}
	n, err := s.exec(ctx, advanceWorkspace, 0, args...)
	return n == 1, err
}
