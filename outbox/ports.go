package outbox

import (
	"context"
	"errors"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// ErrPending is what a port answers when the time for a row has not come yet. Nothing has failed:
// the row is deferred.
var ErrPending = errors.New("pending")

// Projection is told of a row first: those who look at the task see it before anybody is woken.
// It must bear to be told of a row again. ErrPending defers the row; any other error is a
// failure of the row. Where memory is brought up to date before the writer is answered, nothing
// is left to be told, and there is no Projection.
type Projection interface {
	Project(ctx context.Context, w readstate.WorkspaceID, row *facts.OutboxRow) error
}

// Accounting says whether the recipients of a commit are counted: nil, or a reason why not yet
// (ErrPending), which defers the row like any other error. It never waits. Humans are the row's
// own; nobody else may be looked at.
type Accounting interface {
	Accounted(
		ctx context.Context, w readstate.WorkspaceID, lsn readstate.LSN,
		scope readstate.ScopeKey, humans []readstate.MemberKey,
	) error
}

// Applied is the Accounting of a process whose memory is kept from facts: the commit is counted
// if memory has applied it, and also where nothing of the workspace is loaded, since whoever loads
// it reads the commit. The function answers from memory.
type Applied func(w readstate.WorkspaceID) (applied readstate.LSN, loaded bool)

// Accounted implements Accounting.
func (a Applied) Accounted(
	_ context.Context, w readstate.WorkspaceID, lsn readstate.LSN, _ readstate.ScopeKey,
	_ []readstate.MemberKey,
) error {
	if applied, loaded := a(w); loaded && applied < lsn {
		return ErrPending
	}
	return nil
}

// Barrier makes the counts of a row's humans durable where they are not facts: it writes the
// complete present rows of exactly these members in the row's scope, nothing else of what is
// dirty, and returns once they are durable. Any error defers the row. Writing them again changes
// nothing.
type Barrier interface {
	Upsert(ctx context.Context, w readstate.WorkspaceID, row *facts.OutboxRow) error
}

// Badges tells what the badges of members are, for webhooks.
type Badges interface {
	// Follow begins to tell. The first news of each member is the present badge. A member who is
	// unknown or not servable is left out until that changes.
	Follow(
		ctx context.Context, w readstate.WorkspaceID, members []readstate.MemberID,
	) (BadgeFeed, error)
}

// BadgeFeed hands badges on. It belongs to one goroutine.
type BadgeFeed interface {
	// Next waits for news and returns the newest badge of each member who has any. After an
	// error the feed is of no use any more.
	Next(ctx context.Context) ([]Badge, error)
	Close()
}

// Badge is a member's badge at LSN.
type Badge struct {
	Member   readstate.MemberID
	Messages uint64 // as the badge's total counts
	Unread   bool   // anything is shown as unread
	Read     bool   // the member has read something since the news before
	LSN      readstate.LSN
}

// Stage is a step of a row's way, in order.
type Stage uint8

const (
	StageProjection Stage = iota + 1
	StageAccount
	StageUpsert
	StageWake // wakes and mark are one transaction
	StageDelivered
)

var stageNames = [...]string{
	StageProjection: "projection", StageAccount: "account", StageUpsert: "upsert",
	StageWake: "wake", StageDelivered: "delivered",
}

// String returns the stage's name.
func (s Stage) String() string { return stageNames[s] }

// Step is the moment before or after a stage of a row.
type Step struct {
	Stage Stage
	Done  bool // after the stage
	Row   *facts.OutboxRow
}
