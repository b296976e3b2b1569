package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// Store keeps the facts. A store passes the suite of package factstest.
//
// Every method returns ErrUnavailable, wrapped, when the store itself fails, with ErrTaken beside
// it when a unique key was taken; no other error of this package comes from a store.
type Store interface {
	// Begin starts the one writing transaction a store has at a time.
	Begin(ctx context.Context) (Tx, error)
	// View starts a read transaction: one snapshot, to be closed within one page.
	View(ctx context.Context) (View, error)
	// TakeOver raises the term of every workspace by one in a transaction of its own, and
	// returns all workspaces. The caller holds the store's ownership.
	TakeOver(ctx context.Context) ([]WorkspaceRow, error)
	// Fences reads (term, lsn) back under lock, so that a commit still in flight is waited for.
	Fences(ctx context.Context, keys []WorkspaceKey) (map[WorkspaceKey]Fence, error)
	// Close releases the store. Open transactions are rolled back.
	Close() error
}

// Fence is what a commit checks and raises.
type Fence struct {
	Term uint64
	LSN  readstate.LSN
}

// Tx is the writing transaction of one group. Every load takes many keys and runs a number of
// statements that does not grow with them; what does not exist is left out of the answer.
// Loads see what Write wrote before them.
type Tx interface {
	// Advance comes once for each workspace that a group changes, before anything of it is
	// written: it raises the LSN by one if term and LSN are still those given. False means that
	// they are not.
	Advance(ctx context.Context, key WorkspaceKey, from Fence) (bool, error)

	MembersByID(ctx context.Context, w WorkspaceKey, ids []readstate.MemberID) ([]readstate.MemberInfo, error)
	Members(ctx context.Context, keys []readstate.MemberKey) ([]readstate.MemberInfo, error)
	ScopesByID(ctx context.Context, w WorkspaceKey, ids []readstate.ScopeID) ([]ScopeRow, error)
	Scopes(ctx context.Context, keys []readstate.ScopeKey) ([]ScopeRow, error)
	States(ctx context.Context, keys []RowKey) ([]StateRow, error)
	// StatesOf returns a page of a member's rows by ascending scope key, from after on.
	StatesOf(
		ctx context.Context, member readstate.MemberKey, after readstate.ScopeKey, limit int,
	) ([]StateRow, error)
	Writers(ctx context.Context, keys []RowKey) ([]WriterRow, error)
	MessagesByID(ctx context.Context, scope readstate.ScopeKey, ids []string) ([]MessageRow, error)
	MessagesByOp(ctx context.Context, keys []OpKey) ([]MessageRow, error)
	MessagesByLocalID(ctx context.Context, scope readstate.ScopeKey, ids []string) ([]MessageRow, error)
	// MessagesAt loads entries by position, tombstones included.
	MessagesAt(ctx context.Context, places []Place) ([]MessageRow, error)
	// MessagesBetween returns entries with low < seq <= high, tombstones included, ascending or
	// descending by seq, at most limit.
	MessagesBetween(
		ctx context.Context, scope readstate.ScopeKey, low, high readstate.Seq,
		descending bool, limit int,
	) ([]MessageRow, error)
	// Expired returns live messages of the workspace whose expiry is at or before now.
	Expired(ctx context.Context, w WorkspaceKey, now int64, limit int) ([]MessageRow, error)
	// AuthoredPayloads returns messages that a member wrote and whose payload is not yet cleared:
	// first those with a revision above after, ascending by scope and revision, then those
	// without one.
	AuthoredPayloads(
		ctx context.Context, author readstate.MemberKey, after Mark, limit int,
	) ([]MessageRow, error)
	Operations(ctx context.Context, keys []OpKey) ([]OperationRow, error)
	ActivitiesByOp(ctx context.Context, keys []OpKey) ([]ActivityRow, error)
	// WithReceipts returns those of the actors who have any row of operations, or any activity with
	// an operation id.
	WithReceipts(ctx context.Context, actors []readstate.MemberKey) ([]Receipted, error)
	// ActivityPayloads returns activities of an actor whose payload is not yet cleared.
	ActivityPayloads(
		ctx context.Context, actor readstate.MemberKey, limit int,
	) ([]ActivityPlace, error)
	Tasks(ctx context.Context, scopes []readstate.ScopeKey) ([]TaskRow, error)
	Sessions(ctx context.Context, scopes []readstate.ScopeKey) ([]SessionRow, error)
	// RemovedBetween counts removed revisions in (low, high] from the blocks of the set.
	RemovedBetween(ctx context.Context, scope readstate.ScopeKey, low, high readstate.Revision) (uint64, error)
	// Watchers returns the rows whose owners chose to watch or follow the scopes, those who have
	// left included.
	Watchers(ctx context.Context, scopes []readstate.ScopeKey) ([]RowKey, error)
	// Joined returns the joined rows of the scopes by ascending member, of each scope the first
	// ones, at most limit.
	Joined(ctx context.Context, scopes []readstate.ScopeKey, limit int) ([]RowKey, error)
	Blocks(ctx context.Context, keys []BlockKey) ([]BlockRow, error)
	BlockedBy(ctx context.Context, members []readstate.MemberKey) ([]BlockedPair, error)
	Inboxes(ctx context.Context, members []readstate.MemberKey) ([]InboxRow, error)
	// InboxItems returns the items of messages, retracted ones included.
	InboxItems(ctx context.Context, messages []Place) ([]InboxItem, error)
	// InboxItemsBy returns live items that a member sent.
	InboxItemsBy(ctx context.Context, sender readstate.MemberKey, limit int) ([]InboxItem, error)
	// Items returns items of an inbox above a position, ascending.
	Items(
		ctx context.Context, member readstate.MemberKey, after Position, limit int,
	) ([]InboxItem, error)

	Seeker

	// Write carries out everything in one multi-row statement per table and kind of change
	// (more where the number of parameters is limited).
	Write(ctx context.Context, c *Changes) error
	// Commit makes the group durable. An error other than ErrAborted means that nobody knows.
	Commit(ctx context.Context) error
	// Rollback drops the group. It is a no-op after Commit or Rollback.
	Rollback() error
}

// Seeker answers from an index, at a cost that grows with the member's own rows in the interval
// and with nothing else.
type Seeker interface {
	// RanksAt returns the member's ranks at revision q: those of their last retained entry at
	// or below q, else their floor ranks.
	RanksAt(ctx context.Context, key RowKey, q readstate.Revision) (readstate.Ranks, error)
	// Crossed counts the member's own rows in (low, high]. In a targeted scope it counts
	// deliveries too.
	Crossed(ctx context.Context, key RowKey, low, high readstate.Revision) (readstate.Crossed, error)
	// RevisionThrough returns the highest revision at or below seq, zero for none retained.
	RevisionThrough(ctx context.Context, scope readstate.ScopeKey, seq readstate.Seq) (readstate.Revision, error)
	// ActivityAt says what an advance of the activity cursor from low to high crosses: the ranks
	// at high, and in a targeted scope the activities delivered in (low, high].
	ActivityAt(
		ctx context.Context, key RowKey, low, high readstate.Seq,
	) (readstate.ActivityCrossed, error)
	// PairedActivity returns the activity that goes with the newest message of a task at or below
	// a revision, trimmed messages included; zero for none.
	PairedActivity(
		ctx context.Context, scope readstate.ScopeKey, revision readstate.Revision,
	) (readstate.Seq, error)
	// Newest returns the newest live message of a scope, readable or not.
	Newest(ctx context.Context, scope readstate.ScopeKey) (readstate.Latest, error)
	// Pairs computes the side records of a row whose owner blocks the given members, leaving
	// out those who neither wrote nor acted in the scope. Intervals start above base.
	Pairs(
		ctx context.Context, key RowKey, t readstate.ScopeType, base, floor readstate.Revision,
		activity readstate.Seq, blocked []readstate.MemberKey,
	) ([]readstate.PairRow, error)
}
