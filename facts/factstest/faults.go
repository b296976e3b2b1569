package factstest

import (
	"context"
	"errors"
	"sync"

	"github.com/tidemark-im/tidemark/facts"
)

// faulty is a real store whose transactions fail on demand. Every fault is armed for one
// transaction; the store below stays what it is.
type faulty struct {
	facts.Store

	mu       sync.Mutex
	onCommit func(facts.Tx) error // replaces the next commit
	onWrite  func(*facts.Changes) error
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

// everyWrite inspects every write until it is set to nil.
func (f *faulty) everyWrite(fault func(*facts.Changes) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onWrite = fault
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

func (t *faultyTx) Commit(ctx context.Context) error {
	t.owner.mu.Lock()
	fault := t.owner.onCommit
	t.owner.onCommit = nil
	t.owner.commits++
	t.owner.mu.Unlock()
	if fault != nil {
		return fault(t.Tx)
	}
	return t.Tx.Commit(ctx)
}
