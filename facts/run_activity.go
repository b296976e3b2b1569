package facts

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

type recordActivity struct {
	RecordActivity
	refused error
	sum     Digest
}

// prepare implements preparer.
func (o *recordActivity) prepare() {
	if o.refused = o.check(); o.refused == nil {
		o.sum = digest(o.RecordActivity)
	}
}

func (o *recordActivity) name() string { return "record activity" }
func (o *recordActivity) rows() int    { return 4 }

func (o *recordActivity) gather(w *workspace, n *needs) {
	n.member(w, o.Actor)
	n.scope(w, o.Scope)
}

func (o *recordActivity) resolve(g *group, w *workspace, n *needs) {
	actor, known, _ := g.memberKeys.get(memberName{w.Key, o.Actor})
	if known {
		n.receipts = append(n.receipts, OpKey{w.Key, actor, o.OpID})
	}
	scope, ok, _ := g.scopeKeys.get(scopeName{w.Key, o.Scope})
	if !ok {
		return
	}
	row, _, _ := g.scopes.get(scope)
	if row.Info.Type == readstate.Task {
		n.tasks = append(n.tasks, scope)
	}
	n.row(scope, actor)
	n.row(row.Info.Parent, actor)
}

func (o *recordActivity) check() error {
	if err := CheckID("opId", o.OpID); err != nil {
		return err
	}
	if err := checkActivityType(o.Type); err != nil {
		return err
	}
	if o.RefType != "" {
		if err := checkWord("ref type", o.RefType); err != nil {
			return err
		}
	}
	if o.RefID != "" {
		if err := CheckID("ref id", o.RefID); err != nil {
			return err
		}
	}
	if len(o.Payload) == 0 {
		o.Payload = nil // empty is none; the digest could not encode it
	}
	return checkPayload(o.Payload)
}

func (o *recordActivity) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if o.refused != nil {
		return nil, o.refused
	}
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	actor, err := g.ensureMember(ctx, w, o.Actor, o.CreateMembers)
	if err != nil {
		return nil, err
	}
	op := OpKey{w.Key, actor.Key, o.OpID}
	if r, found, err := g.repeatedActivity(ctx, op, o.sum, w); found || err != nil {
		return r, err
	}
	if err := g.mayAct(ctx, scope, actor.Key, o.By); err != nil {
		return nil, err
	}
	g.touch(w)
	row := ActivityRow{
		Type: o.Type, HighSignal: HighSignal(o.Type), Actor: actor.Key, RefType: o.RefType,
		RefID: o.RefID, Op: op, OpDigest: o.sum, Payload: o.Payload,
	}
	if row.RefType == "" && scope.Info.Type == readstate.Task {
		row.RefType = RefTaskEvent // whatever happens to a task is part of its timeline (RT-180)
	}
	stored, err := g.happen(ctx, w, scope, row)
	if err != nil {
		return nil, err
	}
	return ActivityReceipt{
		ActivityID: stored.ID, Seq: stored.Seq, HighSignal: stored.HighSignal, LSN: w.LSN,
	}, nil
}

// mayAct refuses a member who acts in a scope that they do not see.
func (g *group) mayAct(
	ctx context.Context, s ScopeRow, actor readstate.MemberKey, by Actor,
) error {
	if by.Trusted || by.Member == "" {
		return nil
	}
	ok, err := g.sees(ctx, s, actor)
	if err == nil && !ok {
		err = notFound("scope", string(s.Info.ID))
	}
	return err
}

// happen appends an activity and, if it is one of a task that has to be seen, delivers it: to the
// watchers and the assignee, but for its actor (RT-162). Mentions are no part of it (RT-181).
func (g *group) happen(
	ctx context.Context, w *workspace, s ScopeRow, row ActivityRow,
) (*ActivityRow, error) {
	if !row.HighSignal || s.Info.Type != readstate.Task {
		return g.appendActivity(ctx, w, s, row, audience{})
	}
	task, err := g.task(ctx, s.Info.Key)
	if err != nil {
		return nil, err
	}
	to, err := g.plan(ctx, s, []readstate.MemberKey{task.Assignee}, row.Actor)
	if err != nil {
		return nil, err
	}
	stored, err := g.appendActivity(ctx, w, s, row, to)
	if err != nil {
		return nil, err
	}
	g.talk(w, stored.Scope, readstate.Task, s.Ranks.LatestSeq, stored.Seq, to.humans)
	return stored, g.stageEffect(w, OutboxRow{
		Kind: TaskActivity, Scope: stored.Scope, Seq: stored.Seq, ID: stored.ID,
		Actor: stored.Actor, Humans: to.humans, Agents: to.agents,
	})
}

// appendActivity gives an activity its place at the end of a scope's activities, its ranks, and
// counts it for those whom it is delivered to. It returns the stored row.
func (g *group) appendActivity(
	ctx context.Context, w *workspace, s ScopeRow, row ActivityRow, to audience,
) (*ActivityRow, error) {
	s.Ranks.LatestActivity++
	row.ActivityPlace = ActivityPlace{s.Info.Key, s.Ranks.LatestActivity}
	row.ID, row.CreatedAt, row.Recipients = g.newID(), g.clock, to.humans
	if row.HighSignal {
		actor, err := g.writer(ctx, RowKey{row.Scope, row.Actor})
		if err != nil {
			return nil, err
		}
		// A task's values do not follow from these ranks, but whoever has one is known to those who
		// block them.
		s.Ranks.SignalHead++
		actor.Writer.ActorHead++
		row.SignalRank, row.ActorRank = s.Ranks.SignalHead, actor.Writer.ActorHead
		g.writers.put(actor.RowKey, actor)
	}
	s.Ranks.LastLSN = w.LSN
	s.Ranks.LastActivityAt = max(s.Ranks.LastActivityAt, row.CreatedAt)
	g.scopes.put(s.Info.Key, s)
	for _, m := range to.humans {
		if err := g.countActivity(ctx, s, row, m); err != nil {
			return nil, err
		}
	}
	g.changes.Activities = append(g.changes.Activities, row)
	if row.Op.Actor != 0 {
		g.activities[row.Op] = &row
		g.receiptOf(row.Op.Actor, func(r *Receipted) { r.Activities = true })
	}
	w.emit(readstate.ActivityEvent{
		Scope: row.Scope, Seq: row.Seq, At: row.CreatedAt, HighSignal: row.HighSignal,
		SignalRank: row.SignalRank, Actor: row.Actor, ActorRank: row.ActorRank,
		Recipients: slices.Clone(row.Recipients),
	})
	return &row, nil
}

// countActivity stages an activity's delivery to one member, whose cursor lies below it.
func (g *group) countActivity(
	ctx context.Context, s ScopeRow, row ActivityRow, m readstate.MemberKey,
) error {
	key := RowKey{row.Scope, m}
	g.changes.ActivityTargets = append(g.changes.ActivityTargets, ActivityTargetRow{
		RowKey: key, Seq: row.Seq, Actor: row.Actor,
	})
	state, _, err := g.state(ctx, key)
	if err != nil {
		return err
	}
	state.Row.Activity.PostActivity(s.Info.Type, row.HighSignal, true, m == row.Actor)
	g.states.put(key, state)
	return nil
}

// repeatedActivity is repeated for an activity: its id lives on its row, for ever.
func (g *group) repeatedActivity(
	ctx context.Context, key OpKey, d Digest, w *workspace,
) (any, bool, error) {
	used, err := g.receipt(ctx, key, true)
	if err != nil || used == (usedFor{}) {
		return nil, false, err
	}
	a := used.activity
	if a == nil || a.OpDigest != d {
		return nil, true, fmt.Errorf("operation %q: %w", key.ID, ErrMismatch)
	}
	return ActivityReceipt{
		ActivityID: a.ID, Seq: a.Seq, HighSignal: a.HighSignal, LSN: w.LSN, Duplicate: true,
	}, true, nil
}
