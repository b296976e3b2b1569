package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
)

// newSpaceTries is how often a key or an id may turn out to be taken by somebody who was faster: each
// time somebody else has made a workspace.
const newSpaceTries = 32

// PutWorkspace implements facts.Registry. Two who make workspaces at once choose the same key, and one of
// them finds it taken and chooses again.
func (r registry) PutWorkspace(
	ctx context.Context, w facts.PutWorkspace,
) (row facts.WorkspaceRow, created bool, err error) {
	if err := w.Check(); err != nil {
		return row, false, err
	}
	for try := 1; ; try++ {
		row, created, err = r.putWorkspace(ctx, w)
		again := errors.Is(err, facts.ErrTaken) || errors.Is(err, facts.ErrAborted)
		if !again || try == newSpaceTries || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return facts.WorkspaceRow{}, false, fmt.Errorf("workspace %q: %w", w.ID, err)
	}
	return row, created, nil
}

func (r registry) putWorkspace(
	ctx context.Context, w facts.PutWorkspace,
) (row facts.WorkspaceRow, created bool, err error) {
	err = r.in(ctx, "put workspace", func(t *tx) error {
		var found bool
		if row, found, err = t.Workspace(ctx, w.ID); err != nil {
			return err
		}
		created = !found
		if found {
			if row.Name == w.Name {
				return nil
			}
			row.Name = w.Name
			_, err = t.exec(ctx, renameWorkspace, 0, w.Name, number(row.Key))
			return err
		}
		row = facts.WorkspaceRow{Key: 1, ID: w.ID, Name: w.Name, Term: 1, LSN: 1}
		err = t.each(ctx, selectLastWorkspace, 0, nil, func(last *record) error {
			row.Key = facts.WorkspaceKey(last.uint()) + 1
			return nil
		})
		if err != nil {
			return err
		}
		fresh := []facts.WorkspaceRow{row}
		return execRows(ctx, t.session, insertWorkspaces, fresh, bindNewWorkspace)
	})
	return row, created, err
}
