package tidemark

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Seen returns a scope if the member may see it: they have joined it and it is visible to them,
// or it is a thread of a scope for which this holds, whether they follow the thread or not. For
// anything else, unknown scopes and members included, it answers facts.ErrNotFound.
func (w *Workspace) Seen(
	ctx context.Context, m readstate.MemberID, s readstate.ScopeID,
) (scope facts.ScopeRow, err error) {
	err = w.read(ctx, "see scope", func(v facts.View, key facts.WorkspaceKey) error {
		if scope, err = findScope(ctx, v, key, s); err != nil {
			return err
		}
		member, err := findMember(ctx, v, key, m)
		if err != nil {
			return err
		}
		place := facts.RowKey{Scope: scope.Info.Key, Member: member.Key}
		if scope.Info.Type == readstate.Thread {
			place.Scope = scope.Info.Parent
		}
		row, ok, err := v.State(ctx, place)
		if err == nil && (!ok || !row.Row.Joined || !row.Row.Visible) {
			err = fmt.Errorf("scope %q: %w", s, facts.ErrNotFound)
		}
		return err
	})
	return scope, err
}
