package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var (
	sessionColumns = `x.scope, x.owner, x.updated_at, x.replaced_by`

	selectSessions = query("load sessions", 1,
		`SELECT `+sessionColumns+` FROM {keys} k CROSS JOIN sessions x WHERE x.scope = k.k1`)
	selectSessionPage = query("list sessions", 0,
		`SELECT `+sessionColumns+`, `+scopeColumns+`
  FROM sessions x {index sessions_by_time} CROSS JOIN scopes s
  LEFT JOIN scopes p ON p.scope = s.parent
  WHERE x.owner = ? AND x.replaced_by = 0 AND (x.updated_at, x.scope) < (?, ?)
    AND s.scope = x.scope
  ORDER BY x.updated_at DESC, x.scope DESC LIMIT ?`)
	upsertSessions = insert("write sessions", insertion{
		table: "sessions", columns: list("scope owner updated_at replaced_by"), keys: 1,
		update: list("updated_at replaced_by"),
	})
)

func bindSession(args []any, x *facts.SessionRow) []any {
	return append(args, number(x.Scope), number(x.Owner), number(x.UpdatedAt), number(x.ReplacedBy))
}

func readSession(r *record) facts.SessionRow {
	return facts.SessionRow{
		Scope: readstate.ScopeKey(r.uint()), Owner: readstate.MemberKey(r.uint()),
		UpdatedAt: r.int(), ReplacedBy: readstate.ScopeKey(r.uint()),
	}
}

func bindScopeName(args []any, n *facts.ScopeName) []any {
	return append(args, number(n.Scope), id(n.ID))
}

func (s *session) writeSessions(ctx context.Context, c *facts.Changes) error {
	if err := execRows(ctx, s, renameScopes, c.Renamed, bindScopeName); err != nil {
		return err
	}
	return execRows(ctx, s, upsertSessions, c.Sessions, bindSession)
}

// Sessions implements facts.Tx and facts.View.
func (s *session) Sessions(
	ctx context.Context, scopes []readstate.ScopeKey,
) ([]facts.SessionRow, error) {
	var out []facts.SessionRow
	err := eachKey(ctx, s, selectSessions, scopes, bindNumber, func(r *record) error {
		out = append(out, readSession(r))
		return nil
	})
	return out, err
}

// SessionPage implements facts.View.
func (s *session) SessionPage(
	ctx context.Context, q facts.SessionQuery,
) ([]facts.SessionEntry, error) {
	if q.Before == (facts.ConversationMark{}) {
		q.Before.SortAt = readstate.MaxCounter + 1
	}
	args := []any{
		number(q.Owner), number(q.Before.SortAt), number(q.Before.Scope), bounded(q.Limit),
	}
	var out []facts.SessionEntry
	err := s.each(ctx, selectSessionPage, 0, args, func(r *record) (err error) {
		var e facts.SessionEntry
		e.SessionRow = readSession(r)
		e.ScopeRow, err = readScope(r)
		out = append(out, e)
		return err
	})
	return out, err
}
