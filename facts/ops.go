package facts

import (
	"encoding/json"

	"github.com/tidemark-im/tidemark/readstate"
)

// Actor is who asks for an operation. The zero value is the system itself. A trusted actor is a
// service or admin of the workspace; anyone else acts as themself only.
type Actor struct {
	Member  readstate.MemberID
	Trusted bool
}

// Optional fields are pointers; nil leaves the stored value as it is.

// PutWorkspace creates or renames a workspace.
type PutWorkspace struct {
	ID   readstate.WorkspaceID
	Name string
}

// PutMember creates or changes a member.
type PutMember struct {
	ID          readstate.MemberID
	Agent       *bool
	DisplayName *string
	Avatar      *string
	Active      *bool
}

// PutSettings changes a member's own settings.
type PutSettings struct {
	Member  readstate.MemberID
	Badge   *readstate.BadgeDisplay
	Private *bool
}

// EraseMember renames a member's identity to a stable pseudonym. Ranks keep pointing to it, so
// that no count changes; memberships go, payloads are cleared in batches after it.
type EraseMember struct{ Member readstate.MemberID }

// SetBlock blocks or unblocks another member; idempotent. At most MaxBlocks a member.
type SetBlock struct {
	Member  readstate.MemberID
	Other   readstate.MemberID
	Blocked bool
}

// PutScope creates or changes a scope. Type, Parent and RootMessage are fixed at creation:
// another value is ErrMismatch, the zero value names none. A thread's parent must be a channel
// or dm, and a message has one thread at most.
type PutScope struct {
	ID          readstate.ScopeID
	Type        readstate.ScopeType
	Name        *string
	Parent      readstate.ScopeID
	RootMessage string
	History     *readstate.History
	Archived    *bool
	Tags        *[]string
}

// PutMembership joins a member to a scope, or changes a membership.
type PutMembership struct {
	Scope  readstate.ScopeID
	Member readstate.MemberID
	// Level and Until set the notification together; Until in milliseconds, zero for no end.
	Level     *readstate.Level
	Until     int64
	Visible   *bool
	Effective *readstate.Revision
	Read      *readstate.Revision
	// CreateMember makes an unknown member instead of refusing it.
	CreateMember bool
	// MustBeJoined refuses with ErrNotFound instead of joining: a member may change a
	// membership of their own and not make one.
	MustBeJoined bool
	// Trusted callers may change what the member does not see.
	Trusted bool
}

// Leave ends a membership; idempotent.
type Leave struct {
	Scope  readstate.ScopeID
	Member readstate.MemberID
}

// SetFollow follows a thread or watches a task, or stops; idempotent. A task has at most
// MaxWatchers watchers.
type SetFollow struct {
	Scope     readstate.ScopeID
	Member    readstate.MemberID
	Following bool
	Trusted   bool // may act where the member sees nothing
}

// Post appends an entry. Its operation id is known as long as the entry is, tombstones included:
// once a trim has taken the entry, the same id appends anew. In a task the entry is delivered to
// those whom the package comment names, and may not mention everyone.
type Post struct {
	Scope         readstate.ScopeID
	OpID          string
	Author        readstate.MemberID
	Principal     readstate.MemberID // empty: the author
	MessageID     string             // empty: made by the store
	Kind          string             // empty: text
	Readable      *bool              // nil: the kind decides
	Mentions      []readstate.MemberID
	Everyone      bool
	Broadcast     bool // thread reply that is an entry of the channel too
	ReplyTo       string
	LocalID       string
	Baseline      bool // history: a seq and no revision
	Silent        bool
	AdvanceCursor *readstate.Revision // "send and read what I saw"
	Payload       json.RawMessage
	ExpiresAt     int64 // milliseconds, zero for never
	By            Actor
	CreateMembers bool // unknown author, principal and mentions are created
}

// Edit changes mentions or payload of a live message; nil leaves a part as it is.
type Edit struct {
	Scope    readstate.ScopeID
	Message  string
	OpID     string
	Mentions *[]readstate.MemberID
	Everyone *bool
	Payload  *json.RawMessage
	By       Actor
}

// Remove deletes a message; a broadcast reply goes from both logs.
type Remove struct {
	Scope   readstate.ScopeID
	Message string
	OpID    string
	By      Actor
}

// Rewind removes every entry with a seq above Through, from the newest down.
type Rewind struct {
	Scope   readstate.ScopeID
	OpID    string
	Through readstate.Seq
	By      Actor
}

// TrimScope raises the floor: entries with a seq at or below Through go for good. Activities stay.
type TrimScope struct {
	Scope   readstate.ScopeID
	OpID    string
	Through readstate.Seq
	By      Actor
}

// Move removes messages here and appends them to another scope in one commit. They get new
// revisions there only when Counted.
type Move struct {
	Scope    readstate.ScopeID
	OpID     string
	Messages []string
	To       readstate.ScopeID
	Counted  bool
	By       Actor
}

// MarkRead advances a cursor. Through names a message instead of a revision: the newest
// revision at or before it. At least one of Revision, Through and ActivitySeq is set. In a task
// both cursors move in one action: without an ActivitySeq the activity cursor goes to what was
// there when the message was posted.
type MarkRead struct {
	Scope       readstate.ScopeID
	Member      readstate.MemberID
	Revision    *readstate.Revision
	Through     string
	Version     *uint64
	ActivitySeq *readstate.Seq
	Threads     []ThreadRead
	Trusted     bool
}

// ThreadRead is what was observed of a thread together with a read of its channel.
type ThreadRead struct {
	Scope    readstate.ScopeID
	Revision readstate.Revision
	Version  *uint64
}

// MarkUnread sets the sticky manual mark. FromMessage names a message instead of a revision. A
// task comes to the top of the member's conversations.
type MarkUnread struct {
	Scope       readstate.ScopeID
	Member      readstate.MemberID
	From        readstate.Revision
	FromMessage string
	Version     *uint64
	Trusted     bool // may act where the member sees nothing
}

// RecordActivity appends a durable activity that is no message: what happened in a scope, for
// those who have to see it (see HighSignal) and for the record. In a task a high-signal one is
// delivered to its watchers and its assignee. The operation id is known as long as the scope is.
type RecordActivity struct {
	Scope         readstate.ScopeID
	OpID          string
	Actor         readstate.MemberID
	Type          string // small letters, digits and underscores; no telemetry
	RefType       string // empty: in a task RefTaskEvent, elsewhere none
	RefID         string
	Payload       json.RawMessage
	By            Actor
	CreateMembers bool // an unknown actor is created
}

// PutTask changes the facts of a task; idempotent by content. Each field that changes appends one
// activity of its type. The assignee must see the task; "" is nobody.
type PutTask struct {
	Scope    readstate.ScopeID
	Actor    readstate.MemberID
	Assignee *readstate.MemberID
	Status   *string
	Title    *string
	By       Actor
}

// ActivityReceipt answers RecordActivity.
type ActivityReceipt struct {
	ActivityID string
	Seq        readstate.Seq
	HighSignal bool
	LSN        readstate.LSN
	// Duplicate says that the operation had been accepted before; nothing changed now.
	Duplicate bool
}

// TaskReceipt answers PutTask with the task as it is now.
type TaskReceipt struct {
	Task    Task
	Changed []string // the types of the activities that were appended
	LSN     readstate.LSN
}

// Task is what readers see of a task beside its messages. Empty fields were never set.
type Task struct {
	Scope    readstate.ScopeID
	Assignee readstate.MemberID
	Status   string
	Title    string
}

// Receipt answers an append-like operation.
type Receipt struct {
	MessageID string             `json:"messageId,omitempty"`
	Seq       readstate.Seq      `json:"seq,omitempty"`
	Revision  readstate.Revision `json:"contentRevision,omitempty"`
	// Channel is the copy of a broadcast reply.
	Channel *ChannelCopy  `json:"channel,omitempty"`
	Session string        `json:"session,omitempty"` // that a fork or merge ended in
	LSN     readstate.LSN `json:"lsn"`
	// Duplicate says that the operation had been accepted before; nothing changed now.
	Duplicate bool `json:"-"`
}

// ChannelCopy is where a broadcast reply stands in the channel.
type ChannelCopy struct {
	Seq      readstate.Seq      `json:"seq"`
	Revision readstate.Revision `json:"contentRevision,omitempty"`
}

// Setting answers an operation that is idempotent by content.
type Setting struct {
	Outcome readstate.Outcome
	LSN     readstate.LSN
}

// ReadResult answers MarkRead and MarkUnread with the state that is in force now. A conflict
// is such an answer too: the operation then returns it together with ErrConflict.
type ReadResult struct {
	Outcome readstate.Outcome
	Head    readstate.Revision
	Row     readstate.Row
	LSN     readstate.LSN
}

// Commit is what a group did to one workspace, in the order in which it happened.
type Commit struct {
	Workspace readstate.WorkspaceID
	Key       WorkspaceKey
	Term      uint64
	LSN       readstate.LSN
	Events    []readstate.Event
	Messages  []MessageChange
	Effects   int // rows of the outbox that were written
	// Inboxes are the members whose inboxes have changed, ascending by key.
	Inboxes []InboxChange
}

// InboxChange names a member whose inbox has changed.
type InboxChange struct {
	Member readstate.MemberKey
	ID     readstate.MemberID
}

// MessageOp says what happened to a message.
type MessageOp uint8

const (
	MessageAdded MessageOp = iota + 1
	MessageEdited
	MessageRemoved
)

// MessageChange is the message behind an event, for those who watch a scope's messages.
type MessageChange struct {
	Op      MessageOp
	Scope   readstate.ScopeKey
	ScopeID readstate.ScopeID
	Message Message
}

// Message is a message with its members' ids, as readers see it.
type Message struct {
	ID        string
	Seq       readstate.Seq
	Revision  readstate.Revision
	Author    readstate.MemberID
	Principal readstate.MemberID
	Kind      string
	Mentions  []readstate.MemberID
	// Recipients are the humans whom a message of a task was delivered to, at most ListedRecipients
	// of them; Delivered is how many there were. Only lists tell them.
	Recipients []readstate.MemberID
	Delivered  int
	Everyone   bool
	Silent     bool
	ReplyTo    string
	LocalID    string
	ExpiresAt  int64
	CreatedAt  int64
	EditedAt   int64
	Payload    json.RawMessage
}

// Activity is an activity with its members' ids, as readers see it.
type Activity struct {
	ID         string
	Seq        readstate.Seq // among the activities of the scope
	Type       string
	HighSignal bool
	Actor      readstate.MemberID
	Subject    readstate.MemberID // whom an assignment is about
	// Recipients are the humans whom an activity of a task was delivered to, at most
	// ListedRecipients of them; Delivered is how many there were.
	Recipients []readstate.MemberID
	Delivered  int
	RefType    string
	RefID      string
	CreatedAt  int64 // milliseconds
	Payload    json.RawMessage
}
