package facts

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// member finds a member who has not been erased.
func (g *group) member(
	ctx context.Context, w *workspace, id readstate.MemberID,
) (readstate.MemberInfo, error) {
	if err := CheckID("member", string(id)); err != nil {
		return readstate.MemberInfo{}, err
	}
	info, ok, err := g.findMember(ctx, w, id)
	if err == nil && !ok {
		err = fmt.Errorf("member %q: %w", id, ErrNotFound)
	}
	return info, err
}

func (g *group) findMember(
	ctx context.Context, w *workspace, id readstate.MemberID,
) (readstate.MemberInfo, bool, error) {
	name := memberName{w.Key, id}
	key, exists, known := g.memberKeys.get(name)
	if !known {
		if err := g.loadMembers(ctx, w.Key, []readstate.MemberID{id}); err != nil {
			return readstate.MemberInfo{}, false, err
		}
		key, exists, _ = g.memberKeys.get(name)
	}
	if !exists {
		return readstate.MemberInfo{}, false, nil
	}
	info, err := g.principal(ctx, key)
	return info, err == nil && !info.Erased, err
}

// principal finds a member by key, erased ones included.
func (g *group) principal(
	ctx context.Context, key readstate.MemberKey,
) (readstate.MemberInfo, error) {
	info, exists, known := g.principals.get(key)
	if !known {
		tx, err := g.open(ctx)
		if err != nil {
			return info, err
		}
		rows, err := tx.Members(ctx, []readstate.MemberKey{key})
		if err != nil {
			return info, broken("load members", err)
		}
		for _, r := range rows {
			g.principals.loaded(r.Key, r, true)
		}
		info, exists, _ = g.principals.get(key)
	}
	if !exists {
		return info, broken("load members", fmt.Errorf("member %d is referred to and missing", key))
	}
	return info, nil
}

// scope finds a scope by its id; a session that was replaced is ErrReplaced.
func (g *group) scope(ctx context.Context, w *workspace, id readstate.ScopeID) (ScopeRow, error) {
	if err := checkScopeID(id); err != nil {
		return ScopeRow{}, err
	}
	row, ok, err := g.findScope(ctx, w, id)
	if err == nil && !ok {
		err = UnknownScope(id)
	}
	if err == nil && row.Info.Type == readstate.Session {
		_, err = g.present(ctx, row)
	}
	return row, err
}

func (g *group) findScope(
	ctx context.Context, w *workspace, id readstate.ScopeID,
) (ScopeRow, bool, error) {
	name := scopeName{w.Key, id}
	key, exists, known := g.scopeKeys.get(name)
	if !known {
		if err := g.loadScopes(ctx, w.Key, []readstate.ScopeID{id}); err != nil {
			return ScopeRow{}, false, err
		}
		key, exists, _ = g.scopeKeys.get(name)
	}
	if !exists {
		return ScopeRow{}, false, nil
	}
	row, err := g.scopeByKey(ctx, key)
	return row, err == nil, err
}

func (g *group) scopeByKey(ctx context.Context, key readstate.ScopeKey) (ScopeRow, error) {
	row, exists, known := g.scopes.get(key)
	if !known {
		if err := g.loadScopeKeys(ctx, []readstate.ScopeKey{key}); err != nil {
			return row, err
		}
		row, exists, _ = g.scopes.get(key)
	}
	if !exists {
		return row, broken("load scopes", fmt.Errorf("scope %d is referred to and missing", key))
	}
	return row, nil
}

// state returns a member's row in a scope; false when there is none.
func (g *group) state(ctx context.Context, k RowKey) (StateRow, bool, error) {
	row, exists, known := g.states.get(k)
	if !known {
		if err := g.loadRows(ctx, []RowKey{k}); err != nil {
			return row, false, err
		}
		row, exists, _ = g.states.get(k)
	}
	row.RowKey = k
	return row, exists, nil
}

// writer returns a member's totals in a scope; zero when they never wrote there.
func (g *group) writer(ctx context.Context, k RowKey) (WriterRow, error) {
	row, _, known := g.writers.get(k)
	if !known {
		if err := g.loadWriters(ctx, []RowKey{k}); err != nil {
			return row, err
		}
		row, _, _ = g.writers.get(k)
	}
	row.RowKey = k
	return row, nil
}

// block returns one block of a revision set; empty when the store has none.
func (g *group) block(ctx context.Context, k BlockKey) (BlockRow, error) {
	row, _, known := g.blocks.get(k)
	if !known {
		if err := g.loadBlocks(ctx, []BlockKey{k}); err != nil {
			return row, err
		}
		row, _, _ = g.blocks.get(k)
	}
	row.BlockKey = k
	return row, nil
}

// blockers returns whom a member blocks.
func (g *group) blockedOf(
	ctx context.Context, m readstate.MemberKey,
) ([]readstate.MemberKey, error) {
	others, _, known := g.blockedBy.get(m)
	if !known {
		if err := g.loadBlockers(ctx, []readstate.MemberKey{m}); err != nil {
			return nil, err
		}
		others, _, _ = g.blockedBy.get(m)
	}
	return others, nil
}

// message finds a message by its id, tombstones included; nil when there is none.
func (g *group) message(
	ctx context.Context, s readstate.ScopeKey, id string,
) (*MessageRow, error) {
	name := messageName{s, id}
	if p, ok := g.messages.byID[name]; ok {
		return g.messages.rows[p], nil
	}
	if err := g.loadMessages(ctx, s, []string{id}); err != nil {
		return nil, err
	}
	if p, ok := g.messages.byID[name]; ok {
		return g.messages.rows[p], nil
	}
	return nil, nil
}

// messageAt finds an entry by its place, tombstones included; nil when it was trimmed.
func (g *group) messageAt(ctx context.Context, p Place) (*MessageRow, error) {
	if m, ok := g.messages.rows[p]; ok {
		return m, nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.MessagesAt(ctx, []Place{p})
	if err != nil {
		return nil, broken("load messages", err)
	}
	for _, r := range rows {
		return g.messages.loaded(r), nil
	}
	return nil, nil
}

// parent returns the scope above a thread, and the member's row there.
func (g *group) parent(
	ctx context.Context, s ScopeRow, m readstate.MemberKey,
) (ScopeRow, StateRow, bool, error) {
	if s.Info.Parent == 0 {
		return ScopeRow{}, StateRow{}, false, nil
	}
	up, err := g.scopeByKey(ctx, s.Info.Parent)
	if err != nil {
		return up, StateRow{}, false, err
	}
	row, ok, err := g.state(ctx, RowKey{s.Info.Parent, m})
	return up, row, ok, err
}

// sees reports that a member has joined a scope and is allowed to see it, its parent included.
func (g *group) sees(ctx context.Context, s ScopeRow, m readstate.MemberKey) (bool, error) {
	if s.Info.Type == readstate.Thread {
		_, up, ok, err := g.parent(ctx, s, m)
		return err == nil && ok && up.Row.Joined && up.Row.Visible, err
	}
	row, ok, err := g.state(ctx, RowKey{s.Info.Key, m})
	return err == nil && ok && row.Row.Joined && row.Row.Visible, err
}
