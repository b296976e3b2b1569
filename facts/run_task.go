package facts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

type putTask struct{ PutTask }

func (o *putTask) name() string { return "put task" }
func (o *putTask) rows() int    { return 12 }

func (o *putTask) gather(w *workspace, n *needs) {
	n.member(w, o.Actor)
	if o.Assignee != nil {
		n.member(w, *o.Assignee)
	}
	n.scope(w, o.Scope)
}

func (o *putTask) resolve(g *group, w *workspace, n *needs) {
	scope, ok, _ := g.scopeKeys.get(scopeName{w.Key, o.Scope})
	if !ok {
		return
	}
	n.tasks = append(n.tasks, scope)
	gatherRow(g, w, n, o.Scope, o.Actor)
	if o.Assignee != nil {
		gatherRow(g, w, n, o.Scope, *o.Assignee)
	}
}

// run changes what the operation names and differs. Every field that changes is one typed
// activity; equal values change nothing.
func (o *putTask) run(ctx context.Context, g *group, w *workspace) (any, error) {
	for what, text := range map[string]*string{"status": o.Status, "title": o.Title} {
		if text == nil {
			continue
		}
		if err := checkText(what, *text); err != nil {
			return nil, err
		}
	}
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	if scope.Info.Type != readstate.Task {
		return nil, fmt.Errorf("%w: %q is a %s, not a task", ErrInvalid, o.Scope, scope.Info.Type)
	}
	actor, err := g.member(ctx, w, o.Actor)
	if err != nil {
		return nil, err
	}
	if err := g.mayAct(ctx, scope, actor.Key, o.By); err != nil {
		return nil, err
	}
	was, err := g.task(ctx, scope.Info.Key)
	if err != nil {
		return nil, err
	}
	is := was
	set(&is.Status, o.Status)
	set(&is.Title, o.Title)
	if o.Assignee != nil {
		if is.Assignee, err = o.assignee(ctx, g, w, scope, was); err != nil {
			return nil, err
		}
	}
	var changed []string
	if is != was {
		g.touch(w)
		if changed, err = o.apply(ctx, g, w, actor.Key, was, is); err != nil {
			return nil, err
		}
	}
	view, err := g.taskView(ctx, scope, is)
	return TaskReceipt{Task: view, Changed: changed, LSN: w.LSN}, err
}

// assignee finds whom the operation names. A task is given only to somebody who sees it.
func (o *putTask) assignee(
	ctx context.Context, g *group, w *workspace, s ScopeRow, was TaskRow,
) (readstate.MemberKey, error) {
	if *o.Assignee == "" {
		return 0, nil
	}
	info, err := g.member(ctx, w, *o.Assignee)
	if err != nil || info.Key == was.Assignee {
		return info.Key, err
	}
	ok, err := g.sees(ctx, s, info.Key)
	if err == nil && !ok {
		err = forbidden("member", string(info.ID), "has not joined the task or does not see it")
	}
	return info.Key, err
}

// apply stages the changed row, then what it says to whom.
func (o *putTask) apply(
	ctx context.Context, g *group, w *workspace, actor readstate.MemberKey, was, is TaskRow,
) ([]string, error) {
	is.TaskLSN = w.LSN
	g.tasks.put(is.Scope, is)
	var changed []string
	for _, a := range changesOf(was, is) {
		a.Actor, a.RefType = actor, RefTaskEvent
		scope, err := g.scopeByKey(ctx, is.Scope)
		if err != nil {
			return nil, err
		}
		// The assignee is the one that the task has now: whoever lost it is told where they watch it,
		// and not otherwise (RT-181).
		if _, err := g.happen(ctx, w, scope, a); err != nil {
			return nil, err
		}
		changed = append(changed, a.Type)
	}
	return changed, nil
}

// changesOf returns the activities that say what differs between two rows of a task.
func changesOf(was, is TaskRow) []ActivityRow {
	var out []ActivityRow
	switch {
	case was.Assignee == is.Assignee:
	case is.Assignee == 0:
		out = append(out, ActivityRow{Type: TaskUnassigned, Subject: was.Assignee})
	default:
		out = append(out, ActivityRow{Type: TaskAssigned, Subject: is.Assignee})
	}
	if was.Status != is.Status {
		out = append(out, ActivityRow{
			Type: TaskStatusChanged, Payload: fromTo(was.Status, is.Status),
		})
	}
	if was.Title != is.Title {
		out = append(out, ActivityRow{Type: TaskTitleChanged, Payload: fromTo(was.Title, is.Title)})
	}
	for i := range out {
		out[i].HighSignal = HighSignal(out[i].Type)
	}
	return out
}

// fromTo is the payload of a change of a text.
func fromTo(from, to string) []byte {
	out, err := json.Marshal(map[string]string{"from": from, "to": to})
	if err != nil {
		panic(err) // two texts always have a JSON form
	}
	return out
}

func (g *group) taskView(ctx context.Context, s ScopeRow, row TaskRow) (Task, error) {
	out := Task{Scope: s.Info.ID, Status: row.Status, Title: row.Title}
	if row.Assignee == 0 {
		return out, nil
	}
	info, err := g.principal(ctx, row.Assignee)
	out.Assignee = info.ID
	return out, err
}

// watch records a member's own choice to be told of everything in a task, or not to be told for
// watching it: as an assignee or by name they are all the same (RT-177). It changes no level.
func (o *setFollow) watch(
	ctx context.Context, g *group, w *workspace, scope ScopeRow,
) (any, error) {
	member, err := g.member(ctx, w, o.Member)
	if err != nil {
		return nil, err
	}
	key := RowKey{scope.Info.Key, member.Key}
	row, exists, err := g.state(ctx, key)
	if err != nil {
		return nil, err
	}
	// Those who have left keep their place among the watchers, until somebody trusted ends it.
	reach := exists && (row.Row.Joined || o.Trusted && !o.Following)
	if !reach || (!row.Row.Visible && !o.Trusted) {
		return nil, fmt.Errorf("%q in scope %q: %w", o.Member, o.Scope, ErrNotFound)
	}
	watched := row.Row.Follow == readstate.FollowExplicit
	if row.Row.Watch(o.Following) == readstate.Unchanged {
		return Setting{LSN: w.LSN}, nil
	}
	watchers, err := g.watchersOf(ctx, scope.Info.Key)
	if err != nil {
		return nil, err
	}
	if o.Following && !watched && len(watchers) >= MaxWatchers {
		return nil, fmt.Errorf("%w: at most %d members watch a task", ErrInvalid, MaxWatchers)
	}
	g.touch(w)
	if err := g.setWatcher(ctx, key, o.Following); err != nil {
		return nil, err
	}
	row.NotificationLSN = w.LSN
	if err := g.storeRow(ctx, w, scope, row); err != nil {
		return nil, err
	}
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}
