package tidemark

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// RecentFilter asks for a member's conversations, the newest first.
type RecentFilter struct {
	Member readstate.MemberID
	Kind   readstate.ScopeType // channel, dm, thread or task; zero for all of them
	Shown  bool                // only those with a dot
	Before unread.RecentMark   // Next of the page before, the zero value to begin
	Limit  int
}

// RecentConversation is one conversation with what its list is sorted by.
type RecentConversation struct {
	unread.Row
	SortAt int64 // milliseconds
}

// RecentPage is a page of a member's conversations. More says that there is another one, also
// after a page that a filter left empty.
type RecentPage struct {
	Conversations []RecentConversation
	Next          unread.RecentMark
	More          bool
	State         unread.State
}

// recentTypes are sorted by what happened in the scope last. A task is sorted by what was last
// delivered to the member, which the conversation index keeps.
var recentTypes = []readstate.ScopeType{readstate.Channel, readstate.DM, readstate.Thread}

// Recent returns a member's conversations with their unread state from memory: channels, dms and
// threads in which something was written, and the tasks of the conversation index.
func (w *Workspace) Recent(ctx context.Context, f RecentFilter) (RecentPage, error) {
	q := unread.RecentQuery{
		Types: recentTypes, Shown: f.Shown, Before: f.Before, Limit: f.Limit,
	}
	if f.Kind != 0 {
		q.Types = slices.DeleteFunc(slices.Clone(q.Types), func(t readstate.ScopeType) bool {
			return t != f.Kind
		})
	}
	tasks, moreTasks, err := w.recentTasks(ctx, f)
	if err != nil {
		return RecentPage{}, err
	}
	for _, t := range tasks {
		q.Also = append(q.Also, t.Scope)
	}
	memory, err := w.engine.runtime.Recent(ctx, w.id, f.Member, q)
	page := RecentPage{State: memory.State}
	if err != nil {
		return page, err
	}
	page.merge(f, tasks, memory)
	page.More = page.More || moreTasks || memory.More
	return page, nil
}

// recentTasks returns the marks of the next tasks of the index.
func (w *Workspace) recentTasks(
	ctx context.Context, f RecentFilter,
) (marks []unread.RecentMark, more bool, err error) {
	if f.Kind != 0 && f.Kind != readstate.Task {
		return nil, false, nil
	}
	from := ConversationFilter{Member: f.Member, Kind: readstate.Task, Limit: f.Limit + 1}
	from.Before.SortAt, from.Before.Scope = f.Before.At, f.Before.Scope
	rows, err := w.Conversations(ctx, from)
	if err != nil {
		return nil, false, err
	}
	if more = len(rows) > f.Limit; more {
		rows = rows[:f.Limit]
	}
	for i := range rows {
		marks = append(marks, unread.RecentMark{At: rows[i].SortAt, Scope: rows[i].Info.Key})
	}
	return marks, more, nil
}

// merge fills the page from both lists, which are sorted alike.
func (p *RecentPage) merge(f RecentFilter, tasks []unread.RecentMark, memory unread.Recent) {
	rows := map[readstate.ScopeKey]*unread.Row{}
	for i := range memory.Also {
		rows[memory.Also[i].Scope.Key] = &memory.Also[i]
	}
	sorted := memory.Rows
	for len(p.Conversations) < f.Limit && len(sorted)+len(tasks) > 0 {
		next := unread.RecentMark{}
		var row *unread.Row
		if len(sorted) > 0 {
			next = unread.RecentMark{
				At: sorted[0].Ranks.LastActivityAt, Scope: sorted[0].Scope.Key,
			}
		}
		if len(sorted) == 0 || len(tasks) > 0 && tasks[0].Compare(next) < 0 {
			next, tasks = tasks[0], tasks[1:]
			row = rows[next.Scope] // nil for one that is filtered out
		} else {
			row, sorted = &sorted[0], sorted[1:]
		}
		p.Next = next
		if row != nil {
			p.Conversations = append(p.Conversations, RecentConversation{*row, next.At})
		}
	}
	p.More = len(sorted)+len(tasks) > 0
}
