package tidemark

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// MessageFilter asks for messages with After < seq, or seq < Before; both zero asks for the
// newest. Viewer, where set, adds what the page means for that member.
type MessageFilter struct {
	Scope  readstate.ScopeID
	After  readstate.Seq
	Before readstate.Seq
	Limit  int
	Viewer readstate.MemberID
}

// maxPageBytes bounds the payloads of a page, unless its only message has more.
const maxPageBytes = 4 << 20

// MessagePage is a run of live messages, ascending by seq.
type MessagePage struct {
	Messages []facts.Message
	HasMore  bool // further messages lie beyond the page, in the direction asked for
	// ReadThrough is the revision that somebody who has seen the page has read through; zero
	// unless the page reaches the head.
	ReadThrough readstate.Revision
	// UnreadBefore counts the viewer's unread messages that lie before the page; nil without a
	// viewer who has a row here.
	UnreadBefore *uint64
}

// Messages returns a page of a scope's messages.
func (w *Workspace) Messages(ctx context.Context, f MessageFilter) (page MessagePage, err error) {
	err = w.read(ctx, "list messages", func(v facts.View, key facts.WorkspaceKey) error {
		scope, err := findScope(ctx, v, key, f.Scope)
		if err != nil {
			return err
		}
		rows, err := v.Messages(ctx, facts.MessageQuery{
			Scope: scope.Info.Key, After: f.After, Before: f.Before, Limit: f.Limit + 1,
		})
		if err != nil {
			return err
		}
		page.HasMore = len(rows) > f.Limit
		if page.HasMore && f.After > 0 {
			rows = rows[:f.Limit]
		} else if page.HasMore {
			rows = rows[1:]
		}
		if fit := fitting(rows, f.After > 0); len(fit) < len(rows) {
			rows, page.HasMore = fit, true
		}
		latest := f.Before == 0 && (f.After == 0 || !page.HasMore)
		if latest {
			page.ReadThrough = scope.Ranks.Head
		}
		if page.Messages, err = named(ctx, v, rows); err != nil {
			return err
		}
		if f.Viewer == "" {
			return nil
		}
		page.UnreadBefore, err = unreadBefore(ctx, v, key, scope, f.Viewer, rows)
		return err
	})
	return page, err
}

// fitting returns the first rows whose payloads fit a page, or the last ones; one at least.
func fitting(rows []facts.MessageRow, first bool) []facts.MessageRow {
	bytes := 0
	for n := range rows {
		i := n
		if !first {
			i = len(rows) - 1 - n
		}
		if bytes += len(rows[i].Payload); bytes <= maxPageBytes || n == 0 {
			continue
		}
		if first {
			return rows[:i]
		}
		return rows[i+1:]
	}
	return rows
}

// named resolves the member keys of rows.
func named(ctx context.Context, v facts.View, rows []facts.MessageRow) ([]facts.Message, error) {
	var keys []readstate.MemberKey
	for i := range rows {
		keys = append(keys, rows[i].Author, rows[i].Principal)
		keys = append(keys, rows[i].Named...)
		keys = append(keys, facts.Listed(rows[i].Recipients)...)
	}
	ids, err := v.MemberIDs(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := make([]facts.Message, len(rows))
	for i := range rows {
		out[i] = facts.NameMessage(&rows[i], func(k readstate.MemberKey) readstate.MemberID {
			return ids[k]
		})
		out[i].Delivered = len(rows[i].Recipients)
		for _, k := range facts.Listed(rows[i].Recipients) {
			out[i].Recipients = append(out[i].Recipients, ids[k])
		}
	}
	return out, nil
}

// unreadBefore is a difference of two counts: above the member's base, and above the last
// revision before the page.
func unreadBefore(
	ctx context.Context, v facts.View, w facts.WorkspaceKey, s facts.ScopeRow,
	id readstate.MemberID, rows []facts.MessageRow,
) (*uint64, error) {
	m, ok, err := v.Member(ctx, w, id)
	if err != nil || !ok || len(rows) == 0 {
		return nil, err
	}
	key := facts.RowKey{Scope: s.Info.Key, Member: m.Key}
	state, ok, err := v.State(ctx, key)
	if err != nil || !ok {
		return nil, err
	}
	before, err := v.RevisionThrough(ctx, s.Info.Key, rows[0].Seq-1)
	if err != nil {
		return nil, err
	}
	base := state.Row.Point.Base(s.Ranks.Floor)
	zero := uint64(0)
	if before <= base {
		return &zero, nil
	}
	all, err := unreadAbove(ctx, v, s, state, base)
	if err != nil {
		return nil, err
	}
	rest, err := unreadAbove(ctx, v, s, state, before)
	if err != nil {
		return nil, err
	}
	if rest > all {
		return nil, fmt.Errorf("unread before a page: %w", readstate.ErrNegative)
	}
	n := all - rest
	return &n, nil
}

// unreadAbove evaluates the formulas for a member whose base were at the given revision.
func unreadAbove(
	ctx context.Context, v facts.View, s facts.ScopeRow, row facts.StateRow,
	base readstate.Revision,
) (uint64, error) {
	ranks, err := v.RanksAt(ctx, row.RowKey, base)
	if err != nil {
		return 0, err
	}
	crossed, err := v.Crossed(ctx, row.RowKey, base, s.Ranks.Head)
	if err != nil {
		return 0, err
	}
	removed, err := v.RemovedBetween(ctx, s.Info.Key, base, s.Ranks.Head)
	if err != nil {
		return 0, err
	}
	writer, _, err := v.Writer(ctx, row.RowKey)
	if err != nil {
		return 0, err
	}
	blocked, err := v.BlockedKeys(ctx, row.Member)
	if err != nil {
		return 0, err
	}
	pairs, err := v.Pairs(ctx, row.RowKey, s.Info.Type, base, s.Ranks.Floor,
		row.Row.Activity.Read, blocked)
	if err != nil {
		return 0, err
	}
	terms := readstate.Terms{
		Type: s.Info.Type, Head: s.Ranks.Head, Floor: s.Ranks.Floor, Removed: removed,
		Writer: writer.Writer,
		Point: readstate.Point{
			E: base, AuthorRank: ranks.Author, PrincipalRank: ranks.Principal,
			OwnRemoved: crossed.OwnRemoved, Targets: crossed.Targets,
		},
	}
	for _, p := range pairs {
		terms.Blocked = append(terms.Blocked, p.Pair(s.Info.Type, row.Member, base))
	}
	return terms.Unread()
}

// First is where a member's unread starts. Nil means that there is nothing of the kind.
type First struct {
	Unread    *facts.Message
	Attention *facts.Message
}

// First returns the first unread message of a member and the first that is directed at them.
func (w *Workspace) First(
	ctx context.Context, m readstate.MemberID, s readstate.ScopeID,
) (out First, err error) {
	ex, err := w.engine.runtime.Explain(ctx, w.id, m, s)
	if err != nil {
		return out, err
	}
	err = w.read(ctx, "first unread", func(v facts.View, _ facts.WorkspaceKey) error {
		q := countedQuery(ex, 1)
		rows, err := v.Counted(ctx, q)
		if err != nil {
			return err
		}
		q.Attention = ex.Row.Scope.Type != readstate.DM
		direct, err := v.Counted(ctx, q)
		if err != nil {
			return err
		}
		all, err := named(ctx, v, append(rows, direct...))
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			out.Unread = &all[0]
		}
		if len(direct) > 0 {
			out.Attention = &all[len(rows)]
		}
		return nil
	})
	return out, err
}

func countedQuery(ex unread.Explanation, limit int) facts.CountedQuery {
	return facts.CountedQuery{
		Scope: ex.Row.Scope.Key, Type: ex.Row.Scope.Type, Member: ex.MemberKey, Base: ex.Base,
		Blocked: ex.BlockedBy, Limit: limit,
	}
}

// maxExplained bounds the messages that an explanation names.
const maxExplained = 100

// Explanation says why a count is what it is, down to the messages behind it.
type Explanation struct {
	unread.Explanation
	Messages []string // ids of the first messages counted, at most 100
}

// Explain derives a member's count in a scope term by term.
func (w *Workspace) Explain(
	ctx context.Context, m readstate.MemberID, s readstate.ScopeID,
) (out Explanation, err error) {
	if out.Explanation, err = w.engine.runtime.Explain(ctx, w.id, m, s); err != nil {
		return out, err
	}
	err = w.read(ctx, "explain", func(v facts.View, _ facts.WorkspaceKey) error {
		rows, err := v.Counted(ctx, countedQuery(out.Explanation, maxExplained))
		for i := range rows {
			out.Messages = append(out.Messages, rows[i].ID)
		}
		return err
	})
	return out, err
}
