package tidemark

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Shared is for an engine whose store other processes use, too. It owns no workspace at first: package
// ownership brings them and takes them away.
type Shared struct {
	// Serving says whether this process may answer and commit at this moment. Required. Where it says
	// no, reads of unread state and all writes fail with facts.ErrUnavailable.
	Serving func() bool
}

// owned are the workspaces of an engine whose store is shared.
type owned struct {
	mu   sync.RWMutex
	rows map[readstate.WorkspaceID]facts.WorkspaceRow // as of their adoption
}

func (o *owned) put(row facts.WorkspaceRow) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rows == nil {
		o.rows = map[readstate.WorkspaceID]facts.WorkspaceRow{}
	}
	o.rows[row.ID] = row
}

func (o *owned) take(id readstate.WorkspaceID) (facts.WorkspaceRow, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	row, ok := o.rows[id]
	delete(o.rows, id)
	return row, ok
}

func (o *owned) has(id readstate.WorkspaceID) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	_, ok := o.rows[id]
	return ok
}

// Adopt begins to serve a workspace whose term the caller has just raised in the shared store.
func (e *Engine) Adopt(ctx context.Context, row facts.WorkspaceRow) error {
	if err := e.lane.Adopt(ctx, row); err != nil {
		return err
	}
	e.effects.mu.Lock()
	e.effects.own(row.Key, row.Term)
	e.effects.mu.Unlock()
	e.owned.put(row) // last: now everything is there
	return nil
}

// Release ends the ownership of a workspace. When it returns, nothing of it is answered or written any
// more; streams of it have lost their watch.
func (e *Engine) Release(ctx context.Context, id readstate.WorkspaceID) error {
	return e.lane.Release(ctx, id)
}

// released is called by the lane, also where another owner turned out to have the workspace.
func (e *Engine) released(id readstate.WorkspaceID) {
	row, ok := e.owned.take(id)
	if ok {
		e.effects.disown(row.Key, row.Term)
	}
	e.runtime.Drop(id)
}

// Serves tells why this process does not answer for a workspace now: facts.ErrNotOwner where it does
// not own it, facts.ErrUnavailable where its lease is over; nil where it does. Whether the workspace
// exists is another question.
func (e *Engine) Serves(id readstate.WorkspaceID) error {
	shared := e.opts.Shared
	switch {
	case shared == nil:
		return nil
	case !shared.Serving():
		return fmt.Errorf("workspace %q: the lease is over: %w", id, facts.ErrUnavailable)
	case !e.owned.has(id):
		return fmt.Errorf("workspace %q: %w", id, facts.ErrNotOwner)
	}
	return nil
}

// ours leaves out the workspaces of other owners.
func (e *Engine) ours(ids []readstate.WorkspaceID) []readstate.WorkspaceID {
	var out []readstate.WorkspaceID
	for _, id := range ids {
		if e.Serves(id) == nil {
			out = append(out, id)
		}
	}
	return out
}

// away reports an error that says no more than that another process is at work on the workspace.
func (e *Engine) away(err error) bool {
	return e.opts.Shared != nil && errors.Is(err, facts.ErrNotOwner)
}
