package factstest

import (
	"context"
	"errors"
	"sync"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// faulty is a real store whose transactions fail on demand. Every fault is armed for one
// transaction; the store below stays what it is.
type faulty struct {
	facts.Store

	mu       sync.Mutex
	onCommit func(facts.Tx) error // replaces the next commit
	onEach   func(facts.Tx) error // replaces every commit
	onWrite  func(*facts.Changes) error
	onLoad   func() error // before a message is looked for by its local id
	onFences func() error // before fences are read back
	advanced map[*faultyTx][]facts.WorkspaceKey
	refused  map[facts.WorkspaceKey]bool // workspaces whose fence somebody else has raised
	begun    int
	commits  int
}

var errLost = errors.New("connection lost")

func (f *faulty) Begin(ctx context.Context) (facts.Tx, error) {
	tx, err := f.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	return &faultyTx{Tx: tx, owner: f}, nil
}

// nextCommit arms a fault for the next commit.
func (f *faulty) nextCommit(fault func(facts.Tx) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onCommit = fault
}

// everyCommit replaces every commit until it is set to nil.
func (f *faulty) everyCommit(fault func(facts.Tx) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onEach = fault
}

// everyWrite inspects every write until it is set to nil.
func (f *faulty) everyWrite(fault func(*facts.Changes) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onWrite = fault
}

// everyLoad is asked before a message is looked for by its local id until it is set to nil.
func (f *faulty) everyLoad(fault func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onLoad = fault
}

// everyReadBack is asked before fences are read back until it is set to nil.
func (f *faulty) everyReadBack(fault func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onFences = fault
}

// refuse makes a workspace somebody else's: its fence holds for nobody here.
func (f *faulty) refuse(key facts.WorkspaceKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = map[facts.WorkspaceKey]bool{key: true}
}

// fences returns the keys that each transaction fenced, in their order.
func (f *faulty) fences() (all [][]facts.WorkspaceKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, keys := range f.advanced {
		all = append(all, keys)
	}
	return all
}

// Fences implements facts.Store.
func (f *faulty) Fences(
	ctx context.Context, keys []facts.WorkspaceKey,
) (map[facts.WorkspaceKey]facts.Fence, error) {
	f.mu.Lock()
	fault := f.onFences
	f.mu.Unlock()
	if fault != nil {
		if err := fault(); err != nil {
			return nil, err
		}
	}
	return f.Store.Fences(ctx, keys)
}

func (f *faulty) counted() (begun, commits int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun, f.commits
}

type faultyTx struct {
	facts.Tx
	owner *faulty
}

func (t *faultyTx) Write(ctx context.Context, c *facts.Changes) error {
	t.owner.mu.Lock()
	fault := t.owner.onWrite
	t.owner.mu.Unlock()
	if fault != nil {
		if err := fault(c); err != nil {
			return err
		}
	}
	return t.Tx.Write(ctx, c)
}

func (t *faultyTx) Advance(
	ctx context.Context, key facts.WorkspaceKey, from facts.Fence,
) (bool, error) {
	t.owner.mu.Lock()
	refused := t.owner.refused[key]
	if t.owner.advanced == nil {
		t.owner.advanced = map[*faultyTx][]facts.WorkspaceKey{}
	}
	t.owner.advanced[t] = append(t.owner.advanced[t], key)
	t.owner.mu.Unlock()
	if refused {
		return false, nil
	}
	return t.Tx.Advance(ctx, key, from)
}

func (t *faultyTx) MessagesByLocalID(
	ctx context.Context, scope readstate.ScopeKey, ids []string,
) ([]facts.MessageRow, error) {
	t.owner.mu.Lock()
	fault := t.owner.onLoad
	t.owner.mu.Unlock()
	if fault != nil {
		if err := fault(); err != nil {
			return nil, err
		}
	}
	return t.Tx.MessagesByLocalID(ctx, scope, ids)
}

func (t *faultyTx) Commit(ctx context.Context) error {
	t.owner.mu.Lock()
	fault := t.owner.onCommit
	if fault == nil {
		fault = t.owner.onEach
	}
	t.owner.onCommit = nil
	t.owner.commits++
	t.owner.mu.Unlock()
	if fault != nil {
		return fault(t.Tx)
	}
	return t.Tx.Commit(ctx)
}
