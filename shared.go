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

// owned are the workspaces of an engine whose store is shared, as of their adoption. They come and go
// by what the lane tells, in its order.
type owned struct {
	mu     sync.RWMutex
	coming map[readstate.WorkspaceID]facts.WorkspaceRow
	here   map[readstate.WorkspaceID]facts.WorkspaceRow
}

// expect notes a workspace that the lane is about to adopt.
func (o *owned) expect(row facts.WorkspaceRow) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.coming == nil {
		o.coming = map[readstate.WorkspaceID]facts.WorkspaceRow{}
		o.here = map[readstate.WorkspaceID]facts.WorkspaceRow{}
	}
	o.coming[row.ID] = row
}

// arrive has a workspace that was expected served.
func (o *owned) arrive(id readstate.WorkspaceID) (row facts.WorkspaceRow, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if row, ok = o.coming[id]; ok {
		delete(o.coming, id)
		o.here[id] = row
	}
	return row, ok
}

func (o *owned) take(id readstate.WorkspaceID) (row facts.WorkspaceRow, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	row, ok = o.here[id]
	delete(o.here, id)
	return row, ok
}

func (o *owned) has(id readstate.WorkspaceID) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	_, ok := o.here[id]
	return ok
}

// Adopt begins to serve a workspace whose term the caller has just raised in the shared store.
func (e *Engine) Adopt(ctx context.Context, row facts.WorkspaceRow) error {
	e.owned.expect(row)
	return e.lane.Adopt(ctx, row)
}

// adopted is called when memory of a workspace was opened.
func (e *Engine) adopted(id readstate.WorkspaceID) {
	if row, ok := e.owned.arrive(id); ok {
		e.effects.mu.Lock()
		e.effects.own(row.Key, row.Term)
		e.effects.mu.Unlock()
	}
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

// Term returns the term in which this process serves a workspace. It asks the store where nobody else
// has it.
func (e *Engine) Term(ctx context.Context, id readstate.WorkspaceID) (uint64, error) {
	if err := e.Serves(id); err != nil {
		return 0, err
	}
	if e.opts.Shared == nil {
		row, err := e.Workspace(id).Info(ctx)
		return row.Term, err
	}
	e.owned.mu.RLock()
	defer e.owned.mu.RUnlock()
	row, ok := e.owned.here[id]
	if !ok {
		return 0, fmt.Errorf("workspace %q: %w", id, facts.ErrNotOwner)
	}
	return row.Term, nil
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

// putShared creates or renames a workspace in the registry: nobody need own it.
func (e *Engine) putShared(ctx context.Context, op facts.PutWorkspace) (facts.Setting, error) {
	store, ok := e.store.(facts.RegistryStore)
	if !ok {
		return facts.Setting{}, fmt.Errorf("workspace %q: this store has no registry: %w", op.ID,
			facts.ErrUnavailable)
	}
	row, _, err := store.Registry().PutWorkspace(ctx, op)
	return facts.Setting{Outcome: readstate.Applied, LSN: row.LSN}, err
}
