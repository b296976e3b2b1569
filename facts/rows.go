package facts

import "github.com/tidemark-im/tidemark/readstate"

// WorkspaceKey is the interned number of a workspace, at most 2^31 - 1.
type WorkspaceKey uint32

// Member and scope keys carry their workspace in the upper half, so that a key alone names a
// row of the store: key = workspace<<32 | local, local from 1.

// MemberKeyOf builds a member key from its parts.
func MemberKeyOf(w WorkspaceKey, local uint32) readstate.MemberKey {
	return readstate.MemberKey(w)<<32 | readstate.MemberKey(local)
}

// ScopeKeyOf builds a scope key from its parts.
func ScopeKeyOf(w WorkspaceKey, local uint32) readstate.ScopeKey {
	return readstate.ScopeKey(w)<<32 | readstate.ScopeKey(local)
}

// WorkspaceRow is one row of workspaces. LastMember and LastScope are the highest local numbers
// given out; a store derives them, it does not write them.
type WorkspaceRow struct {
	Key        WorkspaceKey
	ID         readstate.WorkspaceID
	Name       string
	Term       uint64 // fencing number: raised by every take-over
	LSN        readstate.LSN
	LastMember uint32
	LastScope  uint32
}

// ScopeRow is one row of scopes.
type ScopeRow struct {
	Info             readstate.ScopeInfo
	Ranks            readstate.ScopeRanks
	FloorSeq         readstate.Seq       // entries at or below it are trimmed
	RosterGeneration uint64              // rises with every change of who is eligible
	Owner            readstate.MemberKey // of a session; of a thread, who wrote its root
	CreatedAt        int64
}

// RowKey names one member in one scope.
type RowKey struct {
	Scope  readstate.ScopeKey
	Member readstate.MemberKey
}

// StateRow is everything stored about one member in one scope: the rows of scope_memberships,
// scope_notification_settings and conversation_member_states together. Each LSN is that of the
// commit that last changed the part; it is the part's generation.
type StateRow struct {
	RowKey
	Row             readstate.Row
	MembershipLSN   readstate.LSN
	NotificationLSN readstate.LSN
	StateLSN        readstate.LSN
	// Parts says which of the tables a write concerns; it is not stored. Zero is all of them.
	Parts StateParts
}

// StateParts names tables of a StateRow.
type StateParts uint8

const (
	// MembershipPart is the row of scope_memberships.
	MembershipPart StateParts = 1 << iota
	// SettingsPart is the row of scope_notification_settings.
	SettingsPart
	// ReadPart is the row of conversation_member_states.
	ReadPart
)

// Writes reports that a write of the row concerns the given table.
func (r *StateRow) Writes(p StateParts) bool { return r.Parts == 0 || r.Parts&p != 0 }

// WriterRow is one row of scope_writer_totals.
type WriterRow struct {
	RowKey
	Writer readstate.Writer
}

// Place names an entry by its position.
type Place struct {
	Scope readstate.ScopeKey
	Seq   readstate.Seq
}

// Mark names a revision of the whole store; marks ascend by scope.
type Mark struct {
	Scope    readstate.ScopeKey
	Revision readstate.Revision
}

// OpKey names an operation for ever: who acted, and the id they chose.
type OpKey struct {
	Workspace WorkspaceKey
	Actor     readstate.MemberKey
	ID        string
}

// Digest identifies the body of an operation.
type Digest [16]byte

// MessageRow is one row of scope_messages. A removed message keeps its row as a tombstone, with
// Live false and no payload, until the floor passes it.
type MessageRow struct {
	Place
	Revision      readstate.Revision // zero when not readable or without a revision
	ID            string             // unique in its scope
	Kind          string
	Author        readstate.MemberKey
	Principal     readstate.MemberKey // zero when the author acts for themself
	AuthorRank    uint64              // zero without a revision
	PrincipalRank uint64              // zero without a principal
	Named         []readstate.MemberKey
	Recipients    []readstate.MemberKey
	Everyone      bool
	Live          bool
	Silent        bool
	ReplyTo       string
	Peer          Place // the other entry of a broadcast reply
	// PeerRevision is the revision that entry was given; it is known when the entry is trimmed.
	PeerRevision readstate.Revision
	Thread       readstate.ScopeKey // the thread that hangs on the message, zero for none
	Op           OpKey              // zero Actor on the channel copy of a broadcast reply and on moved rows
	OpDigest     Digest
	LocalID      string
	ExpiresAt    int64 // milliseconds, zero for never
	CreatedAt    int64
	EditedAt     int64
	Payload      []byte // JSON; nil for none
}

// MentionRow is one row of message_mentions. Neutral rows belong to the message's author or
// principal and never count.
type MentionRow struct {
	RowKey
	Revision readstate.Revision
	Author   readstate.MemberKey
	Neutral  bool
	Live     bool
	Everyone bool
}

// TargetRow is one row of message_targets: a delivery that counts in a targeted scope.
type TargetRow struct {
	RowKey
	Revision readstate.Revision
	Author   readstate.MemberKey
	Live     bool
}

// EveryoneRow is one row of scope_everyone: a live entry that mentions everyone.
type EveryoneRow struct {
	Scope     readstate.ScopeKey
	Revision  readstate.Revision
	Author    readstate.MemberKey
	Principal readstate.MemberKey
}

// BlockSet tells the two revision sets of a scope apart.
type BlockSet uint8

const (
	RemovedSet  BlockSet = iota // revisions of removed entries
	EveryoneSet                 // revisions of live entries that mention everyone
)

// BlockKey names one block of a revision set.
type BlockKey struct {
	Set   BlockSet
	Scope readstate.ScopeKey
	Block uint64
}

// BlockRow is one row of scope_removed_blocks or scope_everyone_blocks.
type BlockRow struct {
	BlockKey
	Count uint64
	Bits  readstate.Bitmap
}

// OperationRow is one row of operations: the receipt of an operation whose id lives on no
// message.
type OperationRow struct {
	OpKey
	Digest    Digest
	Result    []byte // JSON
	CreatedAt int64
}

// BlockedPair is one row of member_blocks.
type BlockedPair struct {
	Member, Other readstate.MemberKey
}
