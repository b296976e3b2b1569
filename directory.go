package tidemark

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// The reads of this file ask the facts store, within one short read transaction each. They are
// about directories and history; no badge is ever answered by them.

// read runs fn in a read transaction of the workspace.
func (w *Workspace) read(
	ctx context.Context, what string, fn func(facts.View, facts.WorkspaceKey) error,
) error {
	view, err := w.engine.store.View(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { _ = view.Close() }() // read only: nothing to lose
	key, err := w.key(ctx, view)
	if err == nil {
		err = fn(view, key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// key resolves the workspace's id; a workspace never changes its key.
func (w *Workspace) key(ctx context.Context, view facts.View) (facts.WorkspaceKey, error) {
	if key, ok := w.engine.keys.Load(w.id); ok {
		return key.(facts.WorkspaceKey), nil
	}
	row, ok, err := view.Workspace(ctx, w.id)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("workspace %q: %w", w.id, facts.ErrNotFound)
	}
	w.engine.keys.Store(w.id, row.Key)
	return row.Key, nil
}

func findMember(
	ctx context.Context, view facts.View, w facts.WorkspaceKey, id readstate.MemberID,
) (readstate.MemberInfo, error) {
	m, ok, err := view.Member(ctx, w, id)
	if err == nil && !ok {
		err = fmt.Errorf("member %q: %w", id, facts.ErrNotFound)
	}
	return m, err
}

func findScope(
	ctx context.Context, view facts.View, w facts.WorkspaceKey, id readstate.ScopeID,
) (facts.ScopeRow, error) {
	s, ok, err := view.Scope(ctx, w, id)
	if err == nil && !ok {
		err = facts.UnknownScope(id)
	}
	if err == nil && s.Info.Type == readstate.Session {
		err = facts.Replaced(ctx, view, &s)
	}
	return s, err
}

// Info returns the workspace's own row.
func (w *Workspace) Info(ctx context.Context) (row facts.WorkspaceRow, err error) {
	err = w.read(ctx, "workspace", func(v facts.View, _ facts.WorkspaceKey) error {
		var ok bool
		row, ok, err = v.Workspace(ctx, w.id)
		if err == nil && !ok {
			err = fmt.Errorf("workspace %q: %w", w.id, facts.ErrNotFound)
		}
		return err
	})
	return row, err
}

// Member returns a member with their settings.
func (w *Workspace) Member(
	ctx context.Context, id readstate.MemberID,
) (m readstate.MemberInfo, err error) {
	err = w.read(ctx, "member", func(v facts.View, key facts.WorkspaceKey) error {
		m, err = findMember(ctx, v, key, id)
		return err
	})
	return m, err
}

// Members returns members by ascending id, those after the given one, at most limit.
func (w *Workspace) Members(
	ctx context.Context, after readstate.MemberID, limit int,
) (out []readstate.MemberInfo, err error) {
	err = w.read(ctx, "list members", func(v facts.View, key facts.WorkspaceKey) error {
		out, err = v.ListMembers(ctx, key, after, limit)
		return err
	})
	return out, err
}

// Blocks returns whom a member blocks.
func (w *Workspace) Blocks(
	ctx context.Context, id readstate.MemberID,
) (out []readstate.MemberID, err error) {
	err = w.read(ctx, "list blocks", func(v facts.View, key facts.WorkspaceKey) error {
		m, err := findMember(ctx, v, key, id)
		if err != nil {
			return err
		}
		out, err = v.ListBlocks(ctx, m.Key)
		return err
	})
	return out, err
}

// Scope returns a scope.
func (w *Workspace) Scope(
	ctx context.Context, id readstate.ScopeID,
) (s facts.ScopeRow, err error) {
	err = w.read(ctx, "scope", func(v facts.View, key facts.WorkspaceKey) error {
		s, err = findScope(ctx, v, key, id)
		return err
	})
	return s, err
}

// ScopeFilter chooses scopes to list. Zero values leave a condition out.
type ScopeFilter struct {
	SeenBy readstate.MemberID // only what this member has joined and sees
	Type   readstate.ScopeType
	Parent readstate.ScopeID
	After  readstate.ScopeID
	Limit  int
}

// Scopes returns scopes by ascending id.
func (w *Workspace) Scopes(
	ctx context.Context, f ScopeFilter,
) (out []facts.ScopeRow, err error) {
	err = w.read(ctx, "list scopes", func(v facts.View, key facts.WorkspaceKey) error {
		q := facts.ScopeQuery{Workspace: key, Type: f.Type, After: f.After, Limit: f.Limit}
		if f.SeenBy != "" {
			m, err := findMember(ctx, v, key, f.SeenBy)
			if err != nil {
				return err
			}
			q.Member = m.Key
		}
		if f.Parent != "" {
			p, err := findScope(ctx, v, key, f.Parent)
			if err != nil {
				return err
			}
			q.Parent = p.Info.Key
		}
		out, err = v.ListScopes(ctx, q)
		return err
	})
	return out, err
}

// Roster returns the joined members of a scope, in an order of its own; after is the last key
// of the page before, zero to start.
func (w *Workspace) Roster(
	ctx context.Context, s readstate.ScopeID, after readstate.MemberKey, limit int,
) (out []facts.RosterRow, err error) {
	err = w.read(ctx, "list scope members", func(v facts.View, key facts.WorkspaceKey) error {
		scope, err := findScope(ctx, v, key, s)
		if err != nil {
			return err
		}
		out, err = v.ListRoster(ctx, scope.Info.Key, after, limit)
		return err
	})
	return out, err
}

// Membership returns a member's stored row in a scope; false when they have none.
func (w *Workspace) Membership(
	ctx context.Context, m readstate.MemberID, s readstate.ScopeID,
) (row facts.StateRow, ok bool, err error) {
	err = w.read(ctx, "membership", func(v facts.View, key facts.WorkspaceKey) error {
		scope, err := findScope(ctx, v, key, s)
		if err != nil {
			return err
		}
		member, err := findMember(ctx, v, key, m)
		if err != nil {
			return err
		}
		row, ok, err = v.State(ctx, facts.RowKey{Scope: scope.Info.Key, Member: member.Key})
		return err
	})
	return row, ok, err
}
