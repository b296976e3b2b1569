package unread

import (
	"context"
	"errors"

	"github.com/tidemark-im/tidemark/readstate"
)

// State says how far an answer may be relied on. Only a servable state comes with numbers;
// unknown is never shown as zero.
type State string

const (
	Ready           State = "ready"            // exact
	SnapshotServing State = "snapshot_serving" // a trusted hint
	Hydrating       State = "hydrating"        // being loaded
	Stale           State = "stale"            // known to be behind, withheld
	Unavailable     State = "unavailable"      // nobody here can answer
)

// Servable reports that values of this state may be shown.
func (s State) Servable() bool { return s == Ready || s == SnapshotServing }

var (
	// ErrNotServable means that no value can be shown now; the answer's State says why.
	ErrNotServable = errors.New("unread state is not servable")
	// ErrNoRow means that the member has no row in the scope, or is not allowed to see it.
	ErrNoRow = errors.New("unknown or not visible")
	// ErrNoMember means that the source knows no such member.
	ErrNoMember = errors.New("no such member")
	// ErrNoWorkspace means that this runtime does not own the workspace.
	ErrNoWorkspace = errors.New("unknown workspace")
	// ErrInvariant reports a negative count: state that contradicts itself. The workspace's
	// memory is dropped and read again; the value is never clamped.
	ErrInvariant = errors.New("unread invariant broken")
	// ErrBudget means that a documented budget refuses for now.
	ErrBudget = errors.New("over budget")
)

// Source reads pages of durable facts: the port through which entries become ready. It answers
// ErrNoMember for a member it does not know.
type Source interface {
	Page(ctx context.Context, r PageRequest) (readstate.Page, error)
}

// PageRequest asks for one page of a member's rows. An empty Cursor asks for the rows of most
// recent activity. Only, where set, asks for just these scopes.
type PageRequest struct {
	Workspace readstate.WorkspaceID
	Member    readstate.MemberID
	Cursor    string
	Limit     int
	Only      []readstate.ScopeKey
}

// Row is one scope as one member sees it, evaluated at LSN.
type Row struct {
	Scope     readstate.ScopeInfo
	Ranks     readstate.ScopeRanks
	Row       readstate.Row
	Level     readstate.Level // in force now, inherited where the row says so
	Archived  bool            // the scope's or its parent's
	Values    readstate.Values
	Presented readstate.Presented
	State     State
	LSN       readstate.LSN
}

// Summary is what a member's totals are at LSN. Complete says that every page of the member is
// loaded; without it HasUnread true is final and everything else is a lower bound.
type Summary struct {
	HasUnread bool
	Badge     readstate.Badge
	Display   readstate.BadgeDisplay
	Complete  bool
	State     State
	LSN       readstate.LSN
}

// RowPage is one page of the bootstrap.
type RowPage struct {
	Summary
	Rows []Row
	Next string // empty after the last page
}

// Delta is one change of one member's scope, whole: the row as it is now, or Removed when the
// member left it or may no longer see it.
type Delta struct {
	Member  readstate.MemberID
	Scope   readstate.ScopeID
	Removed bool
	Row     Row
	Summary Summary
}

// Changes is what a resuming stream needs: either deltas, or Whole when only a snapshot will do.
type Changes struct {
	Deltas []Delta
	Whole  bool
	LSN    readstate.LSN
}

// Explanation says why a count is what it is.
type Explanation struct {
	Row       Row
	E         readstate.Revision // stored effective point
	Base      readstate.Revision // max(E, floor)
	Head      readstate.Revision
	Removed   uint64
	Everyone  uint64
	Own       uint64
	Blocked   uint64
	Direct    uint64
	BlockedBy []readstate.MemberKey // blocked members who wrote here
	MemberKey readstate.MemberKey
}
