package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// Position is the acceptance number of an item in the inbox of one member, from 1, dense. Positions
// of different members have nothing to do with each other.
type Position uint64

// InboxRow is one row of inboxes. A member who was never sent anything has none, which is the zero
// row. The lane writes Accepted and Retractions; the other columns belong to package inbox.
type InboxRow struct {
	Member       readstate.MemberKey
	Accepted     Position // the highest one given out
	Acknowledged Position // the highest one that an acknowledged overview showed; never falls
	// Retractions rises whenever an item changes between live and retracted: whatever was derived
	// from the items before may be wrong now.
	Retractions uint64
	// Floor is where retained history begins: items at or below it are gone, except those that
	// vouch for a sender, see InboxTx.TrimItems.
	Floor Position
}

// InboxItem is one row of inbox_positions: something that was addressed to a member. There is at
// most one for each member and message. It stays where it is when it is retracted.
type InboxItem struct {
	Member   readstate.MemberKey
	Position Position
	// Message is the entry that was addressed to the member; of a broadcast reply it is the one in
	// the thread. The zero Place is a text that was sent to the inbox itself.
	Message   Place
	Sender    readstate.MemberKey
	Named     bool // there is no other ground than that the message names the member
	Live      bool
	CreatedAt int64 // milliseconds, for display and retention
}

// InboxText is one row of inbox_messages: what was sent to an inbox itself.
type InboxText struct {
	Member   readstate.MemberKey
	Position Position
	ID       string
	Text     string // empty once the item is retracted
}

// SenderPosition is a position of one sender in one inbox.
type SenderPosition struct {
	Sender   readstate.MemberKey
	Position Position
}

// SenderMaximum is what the projection says of one sender, beside what the items say.
type SenderMaximum struct {
	SenderPosition
	// Retained says that the item at the position is there; Vouched, that it is also live and of
	// the sender.
	Retained, Vouched bool
}

// InboxTail is the part of an inbox above a position.
type InboxTail struct {
	Rows    int              // items, retracted ones included
	Senders []SenderPosition // each sender's newest live item, in no order
}

// InboxSnapshot is one row of inbox_snapshots: one opening of an inbox, and what it showed.
type InboxSnapshot struct {
	ID        string // not to be guessed
	Member    readstate.MemberKey
	Boundary  Position // everything up to here was shown
	CreatedAt int64
}

// InboxAck is one row of inbox_acks: the receipt of one acknowledgement.
type InboxAck struct {
	Member       readstate.MemberKey
	OpID         string
	Snapshot     string
	Acknowledged Position // as the operation left it
	CreatedAt    int64
}

// InboxStore keeps what becomes of inboxes once items are committed: what was shown and
// acknowledged, and the projection, which is derived from the items and may be thrown away.
// Package inbox drives it. It fails as Store does.
type InboxStore interface {
	// InboxView starts a read transaction: one snapshot.
	InboxView(ctx context.Context) (InboxView, error)
	// InboxTx runs f in a writing transaction of its own, beside no other that writes to the same
	// inboxes, and commits it if f returns nil. It raises no LSN; with another term than the given
	// one it is ErrNotOwner and f is not run.
	InboxTx(ctx context.Context, w WorkspaceKey, term uint64, f func(t InboxTx) error) error
	// InboxesAfter returns members above the given one who have an inbox, ascending, with how far
	// the projection is behind.
	InboxesAfter(
		ctx context.Context, after readstate.MemberKey, limit int,
	) ([]InboxLag, error)
}

// InboxLag is how far the projection of one inbox is behind.
type InboxLag struct {
	Member readstate.MemberKey
	Behind uint64 // positions
}

// InboxReader answers questions about inboxes.
type InboxReader interface {
	MembersByID(ctx context.Context, w WorkspaceKey, ids []readstate.MemberID) ([]readstate.MemberInfo, error)
	Members(ctx context.Context, keys []readstate.MemberKey) ([]readstate.MemberInfo, error)
	BlockedBy(ctx context.Context, members []readstate.MemberKey) ([]BlockedPair, error)
	// Inboxes returns the rows of members; who has none is left out. In a writing transaction the
	// rows are locked until its end, against the lane, too.
	Inboxes(ctx context.Context, members []readstate.MemberKey) ([]InboxRow, error)
	// Projected says up to where the projection of an inbox is complete; zero where there is none.
	Projected(ctx context.Context, member readstate.MemberKey) (Position, error)
	// Tail sums up the items with after < position <= through.
	Tail(ctx context.Context, member readstate.MemberKey, after, through Position) (InboxTail, error)
	// MaximaAbove returns what the projection says of senders above a position.
	MaximaAbove(
		ctx context.Context, member readstate.MemberKey, above Position,
	) ([]SenderMaximum, error)
	// Vouched returns each sender's newest live item at or below the floor: what is known of
	// history that is gone.
	Vouched(ctx context.Context, member readstate.MemberKey, floor Position) ([]SenderPosition, error)
	// Latest returns a sender's newest live item at or below a position, zero for none.
	Latest(ctx context.Context, member, sender readstate.MemberKey, through Position) (Position, error)
	// Items returns items above a position, ascending, retracted ones included.
	Items(
		ctx context.Context, member readstate.MemberKey, after Position, limit int,
	) ([]InboxItem, error)
	// NewestItems returns live items above a position whose senders are active and not blocked by
	// the member, the newest first.
	NewestItems(
		ctx context.Context, member readstate.MemberKey, above Position, limit int,
	) ([]InboxItem, error)
	// Texts returns what was sent at the positions, in no order.
	Texts(ctx context.Context, member readstate.MemberKey, at []Position) ([]InboxText, error)
	MessagesAt(ctx context.Context, places []Place) ([]MessageRow, error)
	Scopes(ctx context.Context, keys []readstate.ScopeKey) ([]ScopeRow, error)
	States(ctx context.Context, keys []RowKey) ([]StateRow, error)
	// Snapshot finds an issued snapshot.
	Snapshot(ctx context.Context, id string) (InboxSnapshot, bool, error)
	// Ack finds the receipt of an acknowledgement.
	Ack(ctx context.Context, member readstate.MemberKey, opID string) (InboxAck, bool, error)
}

// InboxView is a read transaction. It belongs to one goroutine and is closed within one page.
type InboxView interface {
	InboxReader
	Workspace(ctx context.Context, id readstate.WorkspaceID) (WorkspaceRow, bool, error)
	Close() error
}

// InboxTx is a writing transaction over inboxes of one workspace.
type InboxTx interface {
	InboxReader
	AddSnapshot(ctx context.Context, s InboxSnapshot) error
	AddAck(ctx context.Context, a InboxAck) error
	// Acknowledge raises what is acknowledged.
	Acknowledge(ctx context.Context, member readstate.MemberKey, through Position) error
	// Maxima returns the positions of senders in the projection; one it does not know is left out.
	Maxima(
		ctx context.Context, member readstate.MemberKey, senders []readstate.MemberKey,
	) ([]SenderPosition, error)
	// Project sets positions of senders and up to where the projection is complete.
	Project(
		ctx context.Context, member readstate.MemberKey, senders []SenderPosition, through Position,
	) error
	// DropProjection forgets a projection as a whole, with what it is complete up to.
	DropProjection(ctx context.Context, member readstate.MemberKey) error
	// TrimItems deletes items with their texts and sets the floor. Those that stay at or below it
	// vouch for their senders.
	TrimItems(ctx context.Context, member readstate.MemberKey, gone []Position, floor Position) error
	// ForgetSnapshots drops snapshots made before a time, at most so many, and says how many.
	ForgetSnapshots(ctx context.Context, w WorkspaceKey, before int64, limit int) (int, error)
	// ForgetAcks does the same with receipts.
	ForgetAcks(ctx context.Context, w WorkspaceKey, before int64, limit int) (int, error)
}
