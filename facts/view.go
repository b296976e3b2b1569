package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// View is a read transaction: everything it answers is of one moment. It belongs to one
// goroutine, and its owner closes it within one page.
type View interface {
	Close() error

	// Expiring returns the workspaces with a live message whose expiry is at or before now.
	Expiring(ctx context.Context, now int64) ([]readstate.WorkspaceID, error)
	// HalfErased returns members whose erasure has begun and is not in Changes.Erased yet.
	HalfErased(ctx context.Context) ([]ErasedMember, error)
	Workspaces(ctx context.Context) ([]WorkspaceRow, error)
	Workspace(ctx context.Context, id readstate.WorkspaceID) (WorkspaceRow, bool, error)
	Member(ctx context.Context, w WorkspaceKey, id readstate.MemberID) (readstate.MemberInfo, bool, error)
	Scope(ctx context.Context, w WorkspaceKey, id readstate.ScopeID) (ScopeRow, bool, error)
	Scopes(ctx context.Context, keys []readstate.ScopeKey) ([]ScopeRow, error)
	State(ctx context.Context, key RowKey) (StateRow, bool, error)
	States(ctx context.Context, keys []RowKey) ([]StateRow, error)
	Writer(ctx context.Context, key RowKey) (WriterRow, bool, error)
	// RemovedBetween counts removed revisions in (low, high] from the blocks of the set.
	RemovedBetween(ctx context.Context, scope readstate.ScopeKey, low, high readstate.Revision) (uint64, error)
	// BlockedKeys returns whom a member blocks.
	BlockedKeys(ctx context.Context, member readstate.MemberKey) ([]readstate.MemberKey, error)

	// Page reads one member's rows for the runtime: a number of statements that does not grow
	// with the page, none of them over messages.
	Page(ctx context.Context, q PageQuery) (readstate.Page, error)

	// ListMembers returns members by ascending id, those after the given one.
	ListMembers(
		ctx context.Context, w WorkspaceKey, after readstate.MemberID, limit int,
	) ([]readstate.MemberInfo, error)
	// ListScopes returns scopes by ascending id. With a member, only those the member has
	// joined and sees, a thread only with its parent. Sessions are left out.
	ListScopes(ctx context.Context, q ScopeQuery) ([]ScopeRow, error)
	// ListRoster returns the rows of joined members of a scope by ascending member key.
	ListRoster(
		ctx context.Context, scope readstate.ScopeKey, after readstate.MemberKey, limit int,
	) ([]RosterRow, error)
	// ListBlocks returns the ids of those whom a member blocks, ascending.
	ListBlocks(ctx context.Context, member readstate.MemberKey) ([]readstate.MemberID, error)

	// Messages returns live entries of a scope, ascending by seq.
	Messages(ctx context.Context, q MessageQuery) ([]MessageRow, error)
	// Message finds an entry by its id, tombstones included.
	Message(ctx context.Context, scope readstate.ScopeKey, id string) (MessageRow, bool, error)
	// Counted returns the first live entries above base that count for a member, ascending by
	// revision: not neutral to them, by no blocked author. In a targeted scope only deliveries.
	Counted(ctx context.Context, q CountedQuery) ([]MessageRow, error)
	// Tasks returns the rows of tasks; one without a row is left out.
	Tasks(ctx context.Context, scopes []readstate.ScopeKey) ([]TaskRow, error)
	Sessions(ctx context.Context, scopes []readstate.ScopeKey) ([]SessionRow, error)
	// SessionPage returns an owner's sessions, the most recently touched first, without those that
	// were replaced.
	SessionPage(ctx context.Context, q SessionQuery) ([]SessionEntry, error)
	// Activities returns activities of a scope, ascending by seq.
	Activities(ctx context.Context, q ActivityQuery) ([]ActivityRow, error)
	// ConversationPage returns a member's tasks and dms, the most recently touched first. It leaves
	// out what the member has left or does not see.
	ConversationPage(ctx context.Context, q ConversationQuery) ([]Conversation, error)

	// MemberIDs resolves keys; erased members resolve to their pseudonym.
	MemberIDs(
		ctx context.Context, keys []readstate.MemberKey,
	) (map[readstate.MemberKey]readstate.MemberID, error)

	Seeker
}

// ErasedMember names a member whose identity is gone.
type ErasedMember struct {
	Workspace readstate.WorkspaceID
	Key       readstate.MemberKey
}

// PageQuery asks for one page of a member's rows. An empty Cursor starts with the rows of the
// scopes of most recent activity; every later page goes by scope key, and names a row again
// where the first page had it. Only, where set, asks for just these scopes and their parents.
type PageQuery struct {
	Workspace WorkspaceKey
	Member    readstate.MemberKey
	Cursor    string
	Limit     int
	Only      []readstate.ScopeKey
}

// ScopeQuery pages through scopes. Zero values leave a condition out.
type ScopeQuery struct {
	Workspace WorkspaceKey
	Member    readstate.MemberKey
	Type      readstate.ScopeType
	Parent    readstate.ScopeKey
	After     readstate.ScopeID
	Limit     int
}

// RosterRow is one member of a scope.
type RosterRow struct {
	StateRow
	Info readstate.MemberInfo
}

// MessageQuery asks for live entries with After < seq, or seq < Before with the newest first
// chosen; both zero means the newest.
type MessageQuery struct {
	Scope  readstate.ScopeKey
	After  readstate.Seq
	Before readstate.Seq
	Limit  int
}

// CountedQuery asks for the entries behind a count.
type CountedQuery struct {
	Scope     readstate.ScopeKey
	Type      readstate.ScopeType
	Member    readstate.MemberKey
	Base      readstate.Revision
	Blocked   []readstate.MemberKey
	Attention bool // only entries that name the member or everyone
	Limit     int
}

// ActivityQuery asks for activities with After < seq, or seq < Before with the newest first
// chosen; both zero means the newest. Timeline leaves out all but the typed events of a task.
type ActivityQuery struct {
	Scope    readstate.ScopeKey
	After    readstate.Seq
	Before   readstate.Seq
	Timeline bool
	Limit    int
}

// ConversationQuery pages through a member's tasks and dms: those sorted after Before, which is
// the last row of the page before, the zero value to start. A zero Kind asks for both.
type ConversationQuery struct {
	Member readstate.MemberKey
	Kind   readstate.ScopeType
	Before ConversationMark
	Limit  int
}

// SessionQuery pages through the sessions of an owner: those below Before, the zero value to
// start.
type SessionQuery struct {
	Owner  readstate.MemberKey
	Before ConversationMark
	Limit  int
}

// SessionEntry is a session with its scope.
type SessionEntry struct {
	SessionRow
	ScopeRow
}

// ConversationMark is a place in a member's list of conversations.
type ConversationMark struct {
	SortAt int64
	Scope  readstate.ScopeKey
}

// Conversation is one row of a member's list with its scope.
type Conversation struct {
	ConversationRow
	ScopeRow
}

// Mark returns the row's place, from which the next page goes on.
func (r *ConversationRow) Mark() ConversationMark {
	return ConversationMark{SortAt: r.SortAt, Scope: r.Scope}
}
