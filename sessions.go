package tidemark

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// PutSession changes a session of a member, or makes it.
func (w *Workspace) PutSession(
	ctx context.Context, op facts.PutSession,
) (facts.SessionReceipt, error) {
	return w.engine.lane.PutSession(ctx, w.id, op)
}

// ForkSession copies a session of a member as history.
func (w *Workspace) ForkSession(
	ctx context.Context, op facts.ForkSession,
) (facts.SessionReceipt, error) {
	return w.engine.lane.ForkSession(ctx, w.id, op)
}

// MergeSession appends a session of a member to another one and retires it.
func (w *Workspace) MergeSession(
	ctx context.Context, op facts.MergeSession,
) (facts.SessionReceipt, error) {
	return w.engine.lane.MergeSession(ctx, w.id, op)
}

// Session returns one session of a member; facts.ErrReplaced for one that was merged away.
func (w *Workspace) Session(
	ctx context.Context, owner readstate.MemberID, id string,
) (out facts.Session, err error) {
	err = w.read(ctx, "session", func(v facts.View, key facts.WorkspaceKey) error {
		scope, err := findScope(ctx, v, key, facts.SessionScope(owner, id))
		if err != nil {
			return err
		}
		rows, err := v.Sessions(ctx, []readstate.ScopeKey{scope.Info.Key})
		if err == nil && len(rows) == 0 {
			err = fmt.Errorf("session %q: %w", id, facts.ErrNotFound)
		}
		if err != nil {
			return err
		}
		state, _, err := v.State(ctx, facts.RowKey{Scope: scope.Info.Key, Member: scope.Owner})
		out = facts.NewSession(&scope, &rows[0], &state.Row)
		return err
	})
	return out, err
}

// SessionFilter asks for a member's sessions below Before, which is Next of the page before; the
// zero mark starts.
type SessionFilter struct {
	Owner  readstate.MemberID
	Before facts.ConversationMark
	Limit  int
}

// SessionPage is a page of a member's sessions, the most recently touched first.
type SessionPage struct {
	Sessions []facts.Session
	Next     facts.ConversationMark
	More     bool
}

// Sessions returns a page of a member's sessions.
func (w *Workspace) Sessions(ctx context.Context, f SessionFilter) (page SessionPage, err error) {
	err = w.read(ctx, "list sessions", func(v facts.View, key facts.WorkspaceKey) error {
		m, err := findMember(ctx, v, key, f.Owner)
		if err != nil {
			return err
		}
		rows, err := v.SessionPage(ctx, facts.SessionQuery{
			Owner: m.Key, Before: f.Before, Limit: f.Limit + 1,
		})
		if err != nil {
			return err
		}
		if page.More = len(rows) > f.Limit; page.More {
			rows = rows[:f.Limit]
		}
		keys := make([]facts.RowKey, len(rows))
		for i := range rows {
			keys[i] = facts.RowKey{Scope: rows[i].Scope, Member: m.Key}
		}
		states, err := v.States(ctx, keys)
		if err != nil {
			return err
		}
		read := make(map[readstate.ScopeKey]*readstate.Row, len(states))
		for i := range states {
			read[states[i].Scope] = &states[i].Row
		}
		for i := range rows {
			r := &rows[i]
			row := read[r.Scope]
			if row == nil {
				row = new(readstate.Row)
			}
			page.Sessions = append(page.Sessions, facts.NewSession(&r.ScopeRow, &r.SessionRow, row))
			page.Next = facts.ConversationMark{SortAt: r.UpdatedAt, Scope: r.Scope}
		}
		return nil
	})
	return page, err
}
