package factstest

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const testWorkspace = readstate.WorkspaceID("w")

// laneDoer runs operations on a lane.
type laneDoer struct {
	lane  *facts.Lane
	store facts.Store
}

func (d laneDoer) PutMember(ctx context.Context, op facts.PutMember) (facts.Setting, error) {
	return d.lane.PutMember(ctx, testWorkspace, op)
}

func (d laneDoer) SetBlock(ctx context.Context, op facts.SetBlock) (facts.Setting, error) {
	return d.lane.SetBlock(ctx, testWorkspace, op)
}

func (d laneDoer) PutScope(ctx context.Context, op facts.PutScope) (facts.Setting, error) {
	return d.lane.PutScope(ctx, testWorkspace, op)
}

func (d laneDoer) PutMembership(
	ctx context.Context, op facts.PutMembership,
) (facts.Setting, error) {
	return d.lane.PutMembership(ctx, testWorkspace, op)
}

func (d laneDoer) Leave(ctx context.Context, op facts.Leave) (facts.Setting, error) {
	return d.lane.Leave(ctx, testWorkspace, op)
}

func (d laneDoer) SetFollow(ctx context.Context, op facts.SetFollow) (facts.Setting, error) {
	return d.lane.SetFollow(ctx, testWorkspace, op)
}

func (d laneDoer) Post(ctx context.Context, op facts.Post) (facts.Receipt, error) {
	return d.lane.Post(ctx, testWorkspace, op)
}

func (d laneDoer) Edit(ctx context.Context, op facts.Edit) (facts.Receipt, error) {
	return d.lane.Edit(ctx, testWorkspace, op)
}

func (d laneDoer) Remove(ctx context.Context, op facts.Remove) (facts.Receipt, error) {
	return d.lane.Remove(ctx, testWorkspace, op)
}

func (d laneDoer) Rewind(ctx context.Context, op facts.Rewind) (facts.Receipt, error) {
	return d.lane.Rewind(ctx, testWorkspace, op)
}

func (d laneDoer) Trim(ctx context.Context, op facts.TrimScope) (facts.Receipt, error) {
	return d.lane.Trim(ctx, testWorkspace, op)
}

func (d laneDoer) Move(ctx context.Context, op facts.Move) (facts.Receipt, error) {
	return d.lane.Move(ctx, testWorkspace, op)
}

func (d laneDoer) RecordActivity(
	ctx context.Context, op facts.RecordActivity,
) (facts.ActivityReceipt, error) {
	return d.lane.RecordActivity(ctx, testWorkspace, op)
}

func (d laneDoer) PutTask(ctx context.Context, op facts.PutTask) (facts.TaskReceipt, error) {
	return d.lane.PutTask(ctx, testWorkspace, op)
}

func (d laneDoer) PutSession(
	ctx context.Context, op facts.PutSession,
) (facts.SessionReceipt, error) {
	return d.lane.PutSession(ctx, testWorkspace, op)
}

func (d laneDoer) ForkSession(
	ctx context.Context, op facts.ForkSession,
) (facts.SessionReceipt, error) {
	return d.lane.ForkSession(ctx, testWorkspace, op)
}

func (d laneDoer) MergeSession(
	ctx context.Context, op facts.MergeSession,
) (facts.SessionReceipt, error) {
	return d.lane.MergeSession(ctx, testWorkspace, op)
}

func (d laneDoer) Newest(
	ctx context.Context, s readstate.ScopeID, limit int,
) ([]facts.Message, error) {
	view, err := d.store.View(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = view.Close() }()
	w, _, err := view.Workspace(ctx, testWorkspace)
	if err != nil {
		return nil, err
	}
	scope, _, err := view.Scope(ctx, w.Key, s)
	if err != nil {
		return nil, err
	}
	rows, err := view.Messages(ctx, facts.MessageQuery{Scope: scope.Info.Key, Limit: limit})
	out := make([]facts.Message, len(rows))
	for i, r := range rows {
		out[i] = facts.Message{ID: r.ID, Seq: r.Seq}
	}
	return out, err
}

func (d laneDoer) Read(ctx context.Context, op facts.MarkRead) error {
	_, err := d.lane.MarkRead(ctx, testWorkspace, op)
	return err
}

func (d laneDoer) Unread(ctx context.Context, op facts.MarkUnread) error {
	_, err := d.lane.MarkUnread(ctx, testWorkspace, op)
	return err
}

func (d laneDoer) Expire(ctx context.Context) error {
	for {
		n, err := d.lane.Expire(ctx, testWorkspace)
		if err != nil || n == 0 {
			return err
		}
	}
}
