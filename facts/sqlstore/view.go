package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// view is a read transaction on a session of the readers' pool. Its snapshot is taken by its
// first answer.
type view struct {
	*session
	store *Store
}

// View implements facts.Store. It waits for a reader.
func (st *Store) View(ctx context.Context) (facts.View, error) {
	s, err := st.readers.enter(ctx, beginView)
	if err != nil {
		return nil, err
	}
	return &view{session: s, store: st}, nil
}

// Close implements facts.View. Closing twice is harmless.
func (v *view) Close() error {
	s := v.session
	if s.ended {
		return nil
	}
	v.session = over(s.d)
	s.broken = nil
	if _, err := s.exec(context.Background(), rollbackTx, 0); err != nil {
		v.store.readers.drop(s)
		return err
	}
	v.store.readers.give(s)
	return nil
}

func (v *view) Member(
	ctx context.Context, w facts.WorkspaceKey, m readstate.MemberID,
) (readstate.MemberInfo, bool, error) {
	rows, err := v.MembersByID(ctx, w, []readstate.MemberID{m})
	return first(rows, err)
}

func (v *view) Scope(
	ctx context.Context, w facts.WorkspaceKey, scope readstate.ScopeID,
) (facts.ScopeRow, bool, error) {
	rows, err := v.ScopesByID(ctx, w, []readstate.ScopeID{scope})
	return first(rows, err)
}

func (v *view) State(ctx context.Context, key facts.RowKey) (facts.StateRow, bool, error) {
	rows, err := v.States(ctx, []facts.RowKey{key})
	return first(rows, err)
}

func (v *view) Writer(ctx context.Context, key facts.RowKey) (facts.WriterRow, bool, error) {
	rows, err := v.Writers(ctx, []facts.RowKey{key})
	return first(rows, err)
}

func (v *view) BlockedKeys(
	ctx context.Context, member readstate.MemberKey,
) ([]readstate.MemberKey, error) {
	pairs, err := v.BlockedBy(ctx, []readstate.MemberKey{member})
	var out []readstate.MemberKey
	for _, p := range pairs {
		out = append(out, p.Other)
	}
	return out, err
}

func (v *view) Message(
	ctx context.Context, scope readstate.ScopeKey, message string,
) (facts.MessageRow, bool, error) {
	rows, err := v.messagesByName(ctx, selectMessagesByID, scope, []string{message})
	return first(rows, err)
}

func first[T any](rows []T, err error) (row T, ok bool, _ error) {
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}
