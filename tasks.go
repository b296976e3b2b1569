package tidemark

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Task returns the facts of a task; facts.ErrInvalid for a scope of another type.
func (w *Workspace) Task(
	ctx context.Context, s readstate.ScopeID,
) (task facts.Task, err error) {
	err = w.read(ctx, "task", func(v facts.View, key facts.WorkspaceKey) error {
		scope, err := findScope(ctx, v, key, s)
		if err != nil {
			return err
		}
		if scope.Info.Type != readstate.Task {
			return fmt.Errorf("%w: %q is a %s, not a task", facts.ErrInvalid, s, scope.Info.Type)
		}
		task = facts.Task{Scope: s}
		rows, err := v.Tasks(ctx, []readstate.ScopeKey{scope.Info.Key})
		if err != nil || len(rows) == 0 {
			return err
		}
		ids, err := v.MemberIDs(ctx, []readstate.MemberKey{rows[0].Assignee})
		task.Assignee = ids[rows[0].Assignee]
		task.Status, task.Title = rows[0].Status, rows[0].Title
		return err
	})
	return task, err
}

// ActivityFilter asks for activities with After < seq, or seq < Before; both zero asks for the
// newest. Timeline leaves out all but the typed events of a task.
type ActivityFilter struct {
	Scope    readstate.ScopeID
	After    readstate.Seq
	Before   readstate.Seq
	Timeline bool
	Limit    int
}

// ActivityPage is a run of activities, ascending by seq.
type ActivityPage struct {
	Activities []facts.Activity
	HasMore    bool // further ones lie beyond the page, in the direction asked for
	// Latest is the newest activity of the scope: where a cursor has read everything.
	Latest readstate.Seq
}

// Activities returns a page of a scope's activities.
func (w *Workspace) Activities(
	ctx context.Context, f ActivityFilter,
) (page ActivityPage, err error) {
	err = w.read(ctx, "list activities", func(v facts.View, key facts.WorkspaceKey) error {
		scope, err := findScope(ctx, v, key, f.Scope)
		if err != nil {
			return err
		}
		page.Latest = scope.Ranks.LatestActivity
		rows, err := v.Activities(ctx, facts.ActivityQuery{
			Scope: scope.Info.Key, After: f.After, Before: f.Before, Timeline: f.Timeline,
			Limit: f.Limit + 1,
		})
		if err != nil {
			return err
		}
		if page.HasMore = len(rows) > f.Limit; page.HasMore && f.After > 0 {
			rows = rows[:f.Limit]
		} else if page.HasMore {
			rows = rows[1:]
		}
		var keys []readstate.MemberKey
		for i := range rows {
			keys = append(keys, rows[i].Actor, rows[i].Subject)
			keys = append(keys, facts.Listed(rows[i].Recipients)...)
		}
		ids, err := v.MemberIDs(ctx, keys)
		if err != nil {
			return err
		}
		name := func(k readstate.MemberKey) readstate.MemberID { return ids[k] }
		for i := range rows {
			page.Activities = append(page.Activities, facts.NameActivity(&rows[i], name))
		}
		return nil
	})
	return page, err
}

// ConversationFilter asks for a member's tasks and dms below Before, which is the mark of the last
// row of the page before; the zero mark starts. A zero Kind asks for both.
type ConversationFilter struct {
	Member readstate.MemberID
	Kind   readstate.ScopeType
	Before facts.ConversationMark
	Limit  int
}

// Conversations returns a member's tasks and dms that are in the conversation index, the most
// recently touched first: tasks once something was delivered to the member or marked unread, dms
// of at most facts.MaxIndexedDM members once somebody wrote. Other scopes are sorted by their own
// heads.
func (w *Workspace) Conversations(
	ctx context.Context, f ConversationFilter,
) (out []facts.Conversation, err error) {
	err = w.read(ctx, "list conversations", func(v facts.View, key facts.WorkspaceKey) error {
		if f.Kind != 0 && f.Kind != readstate.Task && f.Kind != readstate.DM {
			return fmt.Errorf("%w: a %s is not in the index", facts.ErrInvalid, f.Kind)
		}
		m, err := findMember(ctx, v, key, f.Member)
		if err != nil {
			return err
		}
		out, err = v.ConversationPage(ctx, facts.ConversationQuery{
			Member: m.Key, Kind: f.Kind, Before: f.Before, Limit: f.Limit,
		})
		return err
	})
	return out, err
}
