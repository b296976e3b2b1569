package sqlstore

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var (
	selectTasks = query("load tasks", 1,
		`SELECT t.scope, t.assignee, t.status, t.title, t.task_lsn
  FROM {keys} k CROSS JOIN tasks t WHERE t.scope = k.k1`)
	upsertTasks = insert("write tasks", insertion{
		table: "tasks", columns: list("scope assignee status title task_lsn"), keys: 1,
		update: list("assignee status title task_lsn"),
	})

	selectWatchers = query("load watchers", 1, `SELECT n.scope, n.member
  FROM {keys} k CROSS JOIN scope_notification_settings n
    {index scope_notification_settings_followed}
  WHERE n.scope = k.k1 AND n.followed = 1 ORDER BY n.scope, n.member`)
	// The bound is found first, so that of a scope with a million members only as many are read.
	selectJoined = query("load joined members", 1, `SELECT j.scope, j.member
  FROM {keys} k CROSS JOIN scope_memberships j
  WHERE j.scope = k.k1 AND j.joined = 1 AND j.member < coalesce(
    (SELECT m.member FROM scope_memberships m
      WHERE m.scope = k.k1 AND m.member > 0 AND m.joined = 1
      ORDER BY m.member LIMIT 1 OFFSET ?), 9223372036854775807)
  ORDER BY j.scope, j.member`)

	conversationColumns = `c.member, c.scope, c.kind, c.sort_at, c.message_seq, c.activity_seq,
  c.updated_lsn`
	selectConversations = query("list conversations", 0,
		`SELECT `+conversationColumns+`, `+scopeColumns+`
  FROM im_conversation_index c {index im_conversation_index_by_time}
  CROSS JOIN scope_memberships j CROSS JOIN scopes s
  LEFT JOIN scopes p ON p.scope = s.parent
  WHERE c.member = ? AND c.kind = ? AND (c.sort_at, c.scope) < (?, ?)
    AND j.scope = c.scope AND j.member = c.member AND j.joined = 1 AND j.visible = 1
    AND s.scope = c.scope
  ORDER BY c.sort_at DESC, c.scope DESC LIMIT ?`)
	upsertConversations = insert("write conversations", insertion{
		table: "im_conversation_index",
		columns: list("member scope kind sort_at message_seq activity_seq " +
			"updated_lsn"),
		keys:   2,
		update: list("sort_at message_seq activity_seq updated_lsn"),
	})
	removeConversations = remove("remove conversations", "im_conversation_index", "scope", "member")

	insertOutbox = insert("insert outbox", insertion{
		table: "outbox",
		columns: list("workspace event version kind scope seq id actor humans agents " +
			"created_at"),
	})
)

func bindTask(args []any, t *facts.TaskRow) []any {
	return append(args, number(t.Scope), number(t.Assignee), t.Status, t.Title, number(t.TaskLSN))
}

func bindConversation(args []any, c *facts.ConversationRow) []any {
	return append(args, number(c.Member), number(c.Scope), c.Kind.String(), number(c.SortAt),
		number(c.MessageSeq), number(c.ActivitySeq), number(c.UpdatedLSN))
}

func bindOutbox(args []any, o *facts.OutboxRow) []any {
	return append(args, number(o.Workspace), number(o.Key), number(o.Version), number(o.Kind),
		number(o.Scope), number(o.Seq), id(o.ID), number(o.Actor), packMembers(o.Scope, o.Humans),
		packMembers(o.Scope, o.Agents), number(o.CreatedAt))
}

// writeTasks writes what only tasks, dms and activities have.
func (s *session) writeTasks(ctx context.Context, c *facts.Changes) error {
	if err := execRows(ctx, s, upsertTasks, c.Tasks, bindTask); err != nil {
		return err
	}
	if err := execRows(ctx, s, insertActivities, c.Activities, bindActivity); err != nil {
		return err
	}
	err := execRows(ctx, s, insertActivityTargets, c.ActivityTargets, bindActivityTarget)
	if err != nil {
		return err
	}
	if err := execRows(ctx, s, clearActivities, c.ClearedActivities, bindCleared); err != nil {
		return err
	}
	if err := execRows(ctx, s, upsertConversations, c.Conversations, bindConversation); err != nil {
		return err
	}
	return execRows(ctx, s, insertOutbox, c.Outbox, bindOutbox)
}

// Tasks implements facts.Tx and facts.View.
func (s *session) Tasks(
	ctx context.Context, scopes []readstate.ScopeKey,
) ([]facts.TaskRow, error) {
	var out []facts.TaskRow
	err := eachKey(ctx, s, selectTasks, scopes, bindNumber, func(r *record) error {
		out = append(out, facts.TaskRow{
			Scope: readstate.ScopeKey(r.uint()), Assignee: readstate.MemberKey(r.uint()),
			Status: r.string(), Title: r.string(), TaskLSN: readstate.LSN(r.uint()),
		})
		return nil
	})
	return out, err
}

// Watchers implements facts.Tx.
func (s *session) Watchers(
	ctx context.Context, scopes []readstate.ScopeKey,
) ([]facts.RowKey, error) {
	var out []facts.RowKey
	err := eachKey(ctx, s, selectWatchers, scopes, bindNumber, func(r *record) error {
		out = append(out, readRowKey(r))
		return nil
	})
	return out, err
}

// Joined implements facts.Tx.
func (s *session) Joined(
	ctx context.Context, scopes []readstate.ScopeKey, limit int,
) ([]facts.RowKey, error) {
	var out []facts.RowKey
	err := eachKey(ctx, s, selectJoined, scopes, bindNumber, func(r *record) error {
		out = append(out, readRowKey(r))
		return nil
	}, bounded(limit))
	return out, err
}

// ConversationPage implements facts.View. Both kinds are asked for one after the other, so that
// each is read in the order of its index.
func (s *session) ConversationPage(
	ctx context.Context, q facts.ConversationQuery,
) ([]facts.Conversation, error) {
	q.Limit = max(q.Limit, 0)
	if q.Kind != 0 {
		return s.conversations(ctx, q, q.Kind)
	}
	tasks, err := s.conversations(ctx, q, readstate.Task)
	if err != nil {
		return nil, err
	}
	dms, err := s.conversations(ctx, q, readstate.DM)
	if err != nil {
		return nil, err
	}
	out := make([]facts.Conversation, 0, min(q.Limit, len(tasks)+len(dms)))
	for len(out) < q.Limit && len(tasks)+len(dms) > 0 {
		from := &tasks
		if len(tasks) == 0 || len(dms) > 0 && later(&dms[0], &tasks[0]) {
			from = &dms
		}
		out, *from = append(out, (*from)[0]), (*from)[1:]
	}
	return out, nil
}

func later(a, b *facts.Conversation) bool {
	if a.SortAt != b.SortAt {
		return a.SortAt > b.SortAt
	}
	return a.Scope > b.Scope
}

func (s *session) conversations(
	ctx context.Context, q facts.ConversationQuery, kind readstate.ScopeType,
) ([]facts.Conversation, error) {
	if q.Before == (facts.ConversationMark{}) {
		q.Before.SortAt = readstate.MaxCounter + 1
	}
	var out []facts.Conversation
	args := []any{
		number(q.Member), kind.String(), number(q.Before.SortAt), number(q.Before.Scope),
		bounded(q.Limit),
	}
	err := s.each(ctx, selectConversations, 0, args, func(r *record) (err error) {
		var c facts.Conversation
		c.Member, c.Scope = readstate.MemberKey(r.uint()), readstate.ScopeKey(r.uint())
		name := r.string()
		kind, known := readstate.ParseScopeType(name)
		if !known {
			return fmt.Errorf("conversation of kind %q", name)
		}
		c.Kind = kind
		c.SortAt = r.int()
		c.MessageSeq, c.ActivitySeq = readstate.Seq(r.uint()), readstate.Seq(r.uint())
		c.UpdatedLSN = readstate.LSN(r.uint())
		c.ScopeRow, err = readScope(r)
		out = append(out, c)
		return err
	})
	return out, err
}
