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
	inbox func([]facts.InboxChange)
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
	err := e.observe(ctx, func(f *effects) { f.told = committed })
	if err != nil {
		return Effects{}, fmt.Errorf("effects: %w", err)
	}
	return Effects{Store: store, Terms: e.effects.term, Applied: e.runtime.Applied}, nil
}

// Inboxes is what package inbox needs of an engine.
type Inboxes struct {
	Store facts.InboxStore
	// Terms says which workspaces this process owns, from memory.
	Terms facts.TermOf
	// Changed tells streams that a badge may have changed other than by a commit of the engine.
	Changed func(w readstate.WorkspaceID, m readstate.MemberID)
}

// Inboxes prepares the engine for an inbox. Committed is called for every commit that changed
// inboxes, once it is applied and before its callers are answered: it must not wait. It is
// facts.ErrUnavailable where the engine keeps no facts.
func (e *Engine) Inboxes(
	ctx context.Context, committed func([]facts.InboxChange),
) (Inboxes, error) {
	store, ok := e.store.(facts.InboxStore)
	if !ok {
		return Inboxes{}, fmt.Errorf("inboxes: this store has none: %w", facts.ErrUnavailable)
	}
	if err := e.observe(ctx, func(f *effects) { f.inbox = committed }); err != nil {
		return Inboxes{}, fmt.Errorf("inboxes: %w", err)
	}
	changed := func(w readstate.WorkspaceID, m readstate.MemberID) {
		e.inboxFeeds.publish(w, []facts.InboxChange{{ID: m}})
	}
	return Inboxes{Store: store, Terms: e.effects.term, Changed: changed}, nil
}

// observe lets somebody know of commits, and learns the terms of all workspaces.
func (e *Engine) observe(ctx context.Context, set func(*effects)) error {
	all, err := e.Workspaces(ctx)
	if err != nil {
		return err
	}
	e.effects.mu.Lock()
	defer e.effects.mu.Unlock()
	set(&e.effects)
	for _, w := range all {
		if e.Serves(w.ID) == nil {
			e.effects.own(w.Key, w.Term)
		}
	}
	return nil
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
	told, inbox, term := f.told, f.inbox, f.terms[c.Key]
	f.mu.RUnlock()
	if told == nil && inbox == nil {
		return
	}
	if term != c.Term {
		f.mu.Lock()
		f.own(c.Key, c.Term)
		f.mu.Unlock()
	}
	if c.Effects > 0 && told != nil {
		told(c.Key)
	}
	if len(c.Inboxes) > 0 && inbox != nil {
		inbox(c.Inboxes)
	}
}
