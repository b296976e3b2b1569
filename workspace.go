package tidemark

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Workspace is a handle on one workspace of an engine. Every write returns after it is durable
// and applied, so that the caller reads their own writes.
type Workspace struct {
	engine *Engine
	id     readstate.WorkspaceID
}

// ID returns the workspace's id.
func (w *Workspace) ID() readstate.WorkspaceID { return w.id }

// Serves tells why this process does not answer for the workspace now; see [Engine.Serves].
func (w *Workspace) Serves() error { return w.engine.Serves(w.id) }

// PutMember creates or changes a member.
func (w *Workspace) PutMember(ctx context.Context, op facts.PutMember) (facts.Setting, error) {
	return w.engine.lane.PutMember(ctx, w.id, op)
}

// PutSettings changes a member's own settings.
func (w *Workspace) PutSettings(ctx context.Context, op facts.PutSettings) (facts.Setting, error) {
	return w.engine.lane.PutSettings(ctx, w.id, op)
}

// EraseMember turns a member into a pseudonym.
func (w *Workspace) EraseMember(ctx context.Context, op facts.EraseMember) (facts.Setting, error) {
	return w.engine.lane.EraseMember(ctx, w.id, op)
}

// SetBlock blocks or unblocks a member for another.
func (w *Workspace) SetBlock(ctx context.Context, op facts.SetBlock) (facts.Setting, error) {
	return w.engine.lane.SetBlock(ctx, w.id, op)
}

// PutScope creates or changes a scope.
func (w *Workspace) PutScope(ctx context.Context, op facts.PutScope) (facts.Setting, error) {
	return w.engine.lane.PutScope(ctx, w.id, op)
}

// PutMembership joins a member to a scope, or changes the membership.
func (w *Workspace) PutMembership(
	ctx context.Context, op facts.PutMembership,
) (facts.Setting, error) {
	return w.engine.lane.PutMembership(ctx, w.id, op)
}

// Leave ends a membership.
func (w *Workspace) Leave(ctx context.Context, op facts.Leave) (facts.Setting, error) {
	return w.engine.lane.Leave(ctx, w.id, op)
}

// SetFollow follows a thread or watches a task, or stops.
func (w *Workspace) SetFollow(ctx context.Context, op facts.SetFollow) (facts.Setting, error) {
	return w.engine.lane.SetFollow(ctx, w.id, op)
}

// Post appends an entry to a scope.
func (w *Workspace) Post(ctx context.Context, op facts.Post) (facts.Receipt, error) {
	return w.engine.lane.Post(ctx, w.id, op)
}

// Edit changes mentions or payload of a message.
func (w *Workspace) Edit(ctx context.Context, op facts.Edit) (facts.Receipt, error) {
	return w.engine.lane.Edit(ctx, w.id, op)
}

// Remove deletes a message.
func (w *Workspace) Remove(ctx context.Context, op facts.Remove) (facts.Receipt, error) {
	return w.engine.lane.Remove(ctx, w.id, op)
}

// Rewind removes the newest entries of a scope.
func (w *Workspace) Rewind(ctx context.Context, op facts.Rewind) (facts.Receipt, error) {
	return w.engine.lane.Rewind(ctx, w.id, op)
}

// Trim drops the oldest entries of a scope for good.
func (w *Workspace) Trim(ctx context.Context, op facts.TrimScope) (facts.Receipt, error) {
	return w.engine.lane.Trim(ctx, w.id, op)
}

// Move moves messages to another scope.
func (w *Workspace) Move(ctx context.Context, op facts.Move) (facts.Receipt, error) {
	return w.engine.lane.Move(ctx, w.id, op)
}

// RecordActivity appends a durable activity to a scope.
func (w *Workspace) RecordActivity(
	ctx context.Context, op facts.RecordActivity,
) (facts.ActivityReceipt, error) {
	return w.engine.lane.RecordActivity(ctx, w.id, op)
}

// PutTask changes the facts of a task. Every change is an activity for those whom it concerns.
func (w *Workspace) PutTask(ctx context.Context, op facts.PutTask) (facts.TaskReceipt, error) {
	return w.engine.lane.PutTask(ctx, w.id, op)
}

// Batch collects operations that are run in order and share commits.
func (w *Workspace) Batch() *facts.Batch { return w.engine.lane.NewBatch(w.id) }

// ReadState is what a read or a manual mark answers with: the stored state and the values that
// follow from it. Known is false while the values are being loaded; then Row has no values.
type ReadState struct {
	Outcome readstate.Outcome
	Head    readstate.Revision
	Stored  readstate.Row
	Known   bool
	Row     unread.Row
	LSN     readstate.LSN
}

// MarkRead advances a member's cursor to what they have seen. A stale read is no error.
func (w *Workspace) MarkRead(ctx context.Context, op facts.MarkRead) (ReadState, error) {
	res, err := w.engine.lane.MarkRead(ctx, w.id, op)
	if err != nil {
		return ReadState{}, err
	}
	return w.readState(ctx, res, op.Member, op.Scope)
}

// MarkUnread sets a member's manual mark. With facts.ErrConflict comes the state in force.
func (w *Workspace) MarkUnread(ctx context.Context, op facts.MarkUnread) (ReadState, error) {
	res, err := w.engine.lane.MarkUnread(ctx, w.id, op)
	if err != nil && !errors.Is(err, facts.ErrConflict) {
		return ReadState{}, err
	}
	state, readErr := w.readState(ctx, res, op.Member, op.Scope)
	if readErr != nil {
		return ReadState{}, readErr
	}
	return state, err
}

// ReadState returns a member's read state in a scope, from memory.
func (w *Workspace) ReadState(
	ctx context.Context, m readstate.MemberID, s readstate.ScopeID,
) (ReadState, error) {
	row, err := w.Row(ctx, m, s)
	if err != nil {
		return ReadState{}, err
	}
	return ReadState{
		Head: row.Ranks.Head, Stored: row.Row, Known: true, Row: row, LSN: row.LSN,
	}, nil
}

func (w *Workspace) readState(
	ctx context.Context, res facts.ReadResult, m readstate.MemberID, s readstate.ScopeID,
) (ReadState, error) {
	out := ReadState{Outcome: res.Outcome, Head: res.Head, Stored: res.Row, LSN: res.LSN}
	row, err := w.Row(ctx, m, s)
	switch {
	case err == nil:
		out.Known, out.Row, out.LSN = true, row, row.LSN
		out.Head, out.Stored = row.Ranks.Head, row.Row
	case !w.withheld(err):
		return ReadState{}, fmt.Errorf("read state of %q in %q: %w", m, s, err)
	}
	return out, nil
}

// withheld reports an error that says no more than that a value cannot be shown now, also because
// this process does not answer for the workspace any more.
func (w *Workspace) withheld(err error) bool {
	return errors.Is(err, unread.ErrNotServable) || errors.Is(err, unread.ErrNoRow) ||
		w.engine.Serves(w.id) != nil
}

// Row returns one scope as a member sees it.
func (w *Workspace) Row(
	ctx context.Context, m readstate.MemberID, s readstate.ScopeID,
) (unread.Row, error) {
	if err := w.engine.Serves(w.id); err != nil {
		return unread.Row{}, err
	}
	return w.engine.runtime.Row(ctx, w.id, m, s)
}

// Unread returns a page of a member's scopes with the totals, those with unread or recent
// activity first. An empty cursor starts.
func (w *Workspace) Unread(
	ctx context.Context, m readstate.MemberID, cursor string, limit int,
) (unread.RowPage, error) {
	if err := w.engine.Serves(w.id); err != nil {
		return unread.RowPage{}, err
	}
	return w.engine.runtime.Rows(ctx, w.id, m, cursor, limit)
}

// UnreadLines hands such a page to read as it lies in memory: see [unread.Runtime.Lines].
func (w *Workspace) UnreadLines(
	ctx context.Context, m readstate.MemberID, cursor string, limit int,
	read func(*unread.LinePage),
) (unread.State, error) {
	if err := w.engine.Serves(w.id); err != nil {
		return unread.Unavailable, err
	}
	return w.engine.runtime.Lines(ctx, w.id, m, cursor, limit, read)
}

// Summary returns a member's totals.
func (w *Workspace) Summary(ctx context.Context, m readstate.MemberID) (unread.Summary, error) {
	if err := w.engine.Serves(w.id); err != nil {
		return unread.Summary{}, err
	}
	return w.engine.runtime.Summary(ctx, w.id, m)
}

// HasUnread answers the red dot at once, from what is loaded. State says how far it holds.
func (w *Workspace) HasUnread(m readstate.MemberID) (bool, unread.State) {
	if err := w.engine.Serves(w.id); err != nil {
		return false, unread.Unavailable
	}
	return w.engine.runtime.HasUnread(w.id, m)
}

// Totals returns a member's badge per group.
func (w *Workspace) Totals(
	ctx context.Context, m readstate.MemberID, by unread.Group,
) (map[string]readstate.Badge, error) {
	if err := w.engine.Serves(w.id); err != nil {
		return nil, err
	}
	return w.engine.runtime.Totals(ctx, w.id, m, by)
}

// Changed returns what a member's stream missed since the given commit.
func (w *Workspace) Changed(
	ctx context.Context, m readstate.MemberID, since readstate.LSN,
) (unread.Changes, error) {
	if err := w.engine.Serves(w.id); err != nil {
		return unread.Changes{}, err
	}
	return w.engine.runtime.Changed(ctx, w.id, m, since)
}

// Watch follows the unread state of members. Close the watch when done.
func (w *Workspace) Watch(members ...readstate.MemberID) (*unread.Watch, error) {
	if err := w.engine.Serves(w.id); err != nil {
		return nil, err
	}
	return w.engine.runtime.Watch(w.id, members)
}

// Feed follows message changes; it starts without scopes. Close it when done.
func (w *Workspace) Feed() *Feed { return w.engine.feeds.open(w.id) }

// Visible reports from memory whether a member may see a scope now. Known is false where memory
// cannot say, since the member is being loaded; Seen can.
func (w *Workspace) Visible(m readstate.MemberID, s readstate.ScopeID) (visible, known bool) {
	if err := w.engine.Serves(w.id); err != nil {
		return false, false
	}
	return w.engine.runtime.Visible(w.id, m, s)
}
