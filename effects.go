package tidemark

import (
	"context"
	"fmt"
	"sync"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Effects is what an outbox needs of an engine to carry out what facts cause: see package
// outbox.
type Effects struct {
	Store facts.OutboxStore
	// Terms says which workspaces this process owns, from memory.
	Terms facts.TermOf
	// Applied says how far memory of a workspace is; false where nothing of it is loaded.
	Applied func(w readstate.WorkspaceID) (applied readstate.LSN, loaded bool)
}

// effects keeps what the outbox asks for.
type effects struct {
	mu    sync.RWMutex
	terms map[facts.WorkspaceKey]uint64
	told  func(facts.WorkspaceKey)
}

// Effects prepares the engine for an outbox. Committed is called for every commit that wrote
// outbox rows, once it is applied and before its callers are answered: it must not wait. It is
// facts.ErrUnavailable where the engine keeps no facts.
func (e *Engine) Effects(
	ctx context.Context, committed func(facts.WorkspaceKey),
) (Effects, error) {
	store, ok := e.store.(facts.OutboxStore)
	if !ok {
		return Effects{}, fmt.Errorf("effects: this store has no outbox: %w", facts.ErrUnavailable)
	}
	all, err := e.Workspaces(ctx)
	if err != nil {
		return Effects{}, fmt.Errorf("effects: %w", err)
	}
	e.effects.mu.Lock()
	defer e.effects.mu.Unlock()
	e.effects.told = committed
	for _, w := range all {
		if e.Serves(w.ID) == nil {
			e.effects.own(w.Key, w.Term)
		}
	}
	return Effects{Store: store, Terms: e.effects.term, Applied: e.runtime.Applied}, nil
}

// own notes a term; a higher one stays.
func (f *effects) own(w facts.WorkspaceKey, term uint64) {
	if f.terms == nil {
		f.terms = map[facts.WorkspaceKey]uint64{}
	}
	f.terms[w] = max(f.terms[w], term)
}

// disown forgets a term, unless there is a higher one by now.
func (f *effects) disown(w facts.WorkspaceKey, term uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.terms[w] <= term {
		delete(f.terms, w)
	}
}

func (f *effects) term(w facts.WorkspaceKey) (uint64, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	term, owned := f.terms[w]
	return term, owned
}

// commit takes note of a commit that was applied.
func (f *effects) commit(c *facts.Commit) {
	f.mu.RLock()
	told, term := f.told, f.terms[c.Key]
	f.mu.RUnlock()
	if told == nil {
		return
	}
	if term != c.Term {
		f.mu.Lock()
		f.own(c.Key, c.Term)
		f.mu.Unlock()
	}
	if c.Effects > 0 {
		told(c.Key)
	}
}
