package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// Every method below runs one operation through the lane and returns after it is durable and
// applied. A refusal is one of the package's errors and has changed nothing. When ctx ends
// first, ctx's error is returned and the operation may still happen.

// PutWorkspace creates or renames a workspace.
func (l *Lane) PutWorkspace(ctx context.Context, op PutWorkspace) (Setting, error) {
	return do[Setting](ctx, l, op.ID, &putWorkspace{PutWorkspace: op})
}

// PutMember creates or changes a member.
func (l *Lane) PutMember(ctx context.Context, w readstate.WorkspaceID, op PutMember) (Setting, error) {
	return do[Setting](ctx, l, w, &putMember{PutMember: op})
}

// PutSettings changes a member's settings.
func (l *Lane) PutSettings(ctx context.Context, w readstate.WorkspaceID, op PutSettings) (Setting, error) {
	return do[Setting](ctx, l, w, &putSettings{PutSettings: op})
}

// SetBlock blocks or unblocks.
func (l *Lane) SetBlock(ctx context.Context, w readstate.WorkspaceID, op SetBlock) (Setting, error) {
	return do[Setting](ctx, l, w, &setBlock{SetBlock: op})
}

// EraseMember erases a member's identity, memberships and payloads.
func (l *Lane) EraseMember(ctx context.Context, w readstate.WorkspaceID, op EraseMember) (Setting, error) {
	return do[Setting](ctx, l, w, &eraseMember{EraseMember: op})
}

// FinishErasure goes on with an erasure that was broken off after its first commit.
func (l *Lane) FinishErasure(ctx context.Context, m ErasedMember) error {
	_, err := do[Setting](ctx, l, m.Workspace, &eraseMember{key: m.Key, pending: m.Key})
	return err
}

// PutScope creates or changes a scope.
func (l *Lane) PutScope(ctx context.Context, w readstate.WorkspaceID, op PutScope) (Setting, error) {
	return do[Setting](ctx, l, w, &putScope{PutScope: op})
}

// PutMembership joins a member or changes a membership.
func (l *Lane) PutMembership(
	ctx context.Context, w readstate.WorkspaceID, op PutMembership,
) (Setting, error) {
	return do[Setting](ctx, l, w, &putMembership{PutMembership: op})
}

// Leave ends a membership.
func (l *Lane) Leave(ctx context.Context, w readstate.WorkspaceID, op Leave) (Setting, error) {
	return do[Setting](ctx, l, w, &leave{Leave: op})
}

// SetFollow follows a thread or watches a task, or stops.
func (l *Lane) SetFollow(ctx context.Context, w readstate.WorkspaceID, op SetFollow) (Setting, error) {
	return do[Setting](ctx, l, w, &setFollow{SetFollow: op})
}

// Post appends an entry.
func (l *Lane) Post(ctx context.Context, w readstate.WorkspaceID, op Post) (Receipt, error) {
	return do[Receipt](ctx, l, w, &post{Post: op})
}

// Edit changes a live message.
func (l *Lane) Edit(ctx context.Context, w readstate.WorkspaceID, op Edit) (Receipt, error) {
	return do[Receipt](ctx, l, w, &edit{Edit: op})
}

// Remove deletes a message.
func (l *Lane) Remove(ctx context.Context, w readstate.WorkspaceID, op Remove) (Receipt, error) {
	return do[Receipt](ctx, l, w, &remove{Remove: op})
}

// Rewind removes a scope's newest entries, in batches.
func (l *Lane) Rewind(ctx context.Context, w readstate.WorkspaceID, op Rewind) (Receipt, error) {
	return do[Receipt](ctx, l, w, &rewind{Rewind: op})
}

// Trim raises a scope's floor, in batches.
func (l *Lane) Trim(ctx context.Context, w readstate.WorkspaceID, op TrimScope) (Receipt, error) {
	return do[Receipt](ctx, l, w, &trim{TrimScope: op})
}

// Move moves messages to another scope.
func (l *Lane) Move(ctx context.Context, w readstate.WorkspaceID, op Move) (Receipt, error) {
	return do[Receipt](ctx, l, w, &move{Move: op})
}

// SendInbox sends to an inbox. The receipt's Seq is the position there.
func (l *Lane) SendInbox(
	ctx context.Context, w readstate.WorkspaceID, op SendInbox,
) (Receipt, error) {
	return do[Receipt](ctx, l, w, &sendInbox{SendInbox: op})
}

// RecordActivity appends an activity.
func (l *Lane) RecordActivity(
	ctx context.Context, w readstate.WorkspaceID, op RecordActivity,
) (ActivityReceipt, error) {
	return do[ActivityReceipt](ctx, l, w, &recordActivity{RecordActivity: op})
}

// PutSession changes or makes a session.
func (l *Lane) PutSession(
	ctx context.Context, w readstate.WorkspaceID, op PutSession,
) (SessionReceipt, error) {
	return do[SessionReceipt](ctx, l, w, &putSession{PutSession: op})
}

// ForkSession copies a session.
func (l *Lane) ForkSession(
	ctx context.Context, w readstate.WorkspaceID, op ForkSession,
) (SessionReceipt, error) {
	return do[SessionReceipt](ctx, l, w, &forkSession{ForkSession: op})
}

// MergeSession appends a session to another and retires it.
func (l *Lane) MergeSession(
	ctx context.Context, w readstate.WorkspaceID, op MergeSession,
) (SessionReceipt, error) {
	return do[SessionReceipt](ctx, l, w, &mergeSession{MergeSession: op})
}

// PutTask changes the facts of a task.
func (l *Lane) PutTask(ctx context.Context, w readstate.WorkspaceID, op PutTask) (TaskReceipt, error) {
	return do[TaskReceipt](ctx, l, w, &putTask{PutTask: op})
}

// MarkRead advances a cursor.
func (l *Lane) MarkRead(ctx context.Context, w readstate.WorkspaceID, op MarkRead) (ReadResult, error) {
	return do[ReadResult](ctx, l, w, &markRead{MarkRead: op})
}

// MarkUnread sets the manual mark. With ErrConflict comes the state that is in force.
func (l *Lane) MarkUnread(ctx context.Context, w readstate.WorkspaceID, op MarkUnread) (ReadResult, error) {
	return do[ReadResult](ctx, l, w, &markUnread{MarkUnread: op})
}

// Expire removes up to a batch of messages whose time has passed, and says how many.
func (l *Lane) Expire(ctx context.Context, w readstate.WorkspaceID) (int, error) {
	return do[int](ctx, l, w, &expire{})
}

// Forget drops receipts of operations older than the horizon.
func (l *Lane) Forget(ctx context.Context, w readstate.WorkspaceID) error {
	_, err := do[Setting](ctx, l, w, &forget{})
	return err
}

// Batch is several operations of one workspace that are run in order, each atomic by itself.
// Neighbours share commits as far as a group reaches.
type Batch struct {
	lane *Lane
	w    readstate.WorkspaceID
	ops  []operation

	chained bool
}

// NewBatch starts an empty batch.
func (l *Lane) NewBatch(w readstate.WorkspaceID) *Batch { return &Batch{lane: l, w: w} }

// Post adds an append.
func (b *Batch) Post(op Post) { b.ops = append(b.ops, &post{Post: op}) }

// PutMembership adds a join.
func (b *Batch) PutMembership(op PutMembership) {
	b.ops = append(b.ops, &putMembership{PutMembership: op})
}

// PutMember adds a member.
func (b *Batch) PutMember(op PutMember) { b.ops = append(b.ops, &putMember{PutMember: op}) }

// PutScope adds a scope.
func (b *Batch) PutScope(op PutScope) { b.ops = append(b.ops, &putScope{PutScope: op}) }

// RecordActivity adds an activity.
func (b *Batch) RecordActivity(op RecordActivity) {
	b.ops = append(b.ops, &recordActivity{RecordActivity: op})
}

// PutTask adds a change of a task.
func (b *Batch) PutTask(op PutTask) { b.ops = append(b.ops, &putTask{PutTask: op}) }

// MarkRead adds a read.
func (b *Batch) MarkRead(op MarkRead) { b.ops = append(b.ops, &markRead{MarkRead: op}) }

// Chain makes each operation depend on the one before it: after one that failed, the rest of the
// batch is not run and answers ErrSkipped. So what has happened is always a beginning of the
// batch.
func (b *Batch) Chain() { b.chained = true }

// Len returns the number of operations added.
func (b *Batch) Len() int { return len(b.ops) }

// BatchResult is the answer of one operation of a batch, in the field for what the operation's own
// method returns, or an error.
type BatchResult struct {
	Receipt  Receipt
	Setting  Setting
	Read     ReadResult
	Activity ActivityReceipt
	Task     TaskReceipt
	Err      error
}

// Run runs the batch and returns a result for each operation, in their order. Its own error
// says that the batch was not taken, or that ctx ended before all were answered.
func (b *Batch) Run(ctx context.Context) ([]BatchResult, error) {
	requests, err := b.lane.submit(ctx, b.w, b.chained, b.ops...)
	if err != nil {
		return nil, err
	}
	out := make([]BatchResult, len(requests))
	for i, r := range requests {
		out[i].Err = r.err
		switch v := r.result.(type) {
		case Receipt:
			out[i].Receipt = v
		case Setting:
			out[i].Setting = v
		case ReadResult:
			out[i].Read = v
		case ActivityReceipt:
			out[i].Activity = v
		case TaskReceipt:
			out[i].Task = v
		}
	}
	return out, nil
}
