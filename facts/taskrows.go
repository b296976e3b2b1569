package facts

import "github.com/tidemark-im/tidemark/readstate"

// TaskRow is one row of tasks: the facts of a task that are no message. A task without a row has
// the zero values.
type TaskRow struct {
	Scope    readstate.ScopeKey
	Assignee readstate.MemberKey // zero for nobody
	Status   string
	Title    string
	TaskLSN  readstate.LSN // the commit that last changed the row
}

// ActivityPlace names an activity by its position among the activities of its scope, which is
// another sequence than that of the entries.
type ActivityPlace struct {
	Scope readstate.ScopeKey
	Seq   readstate.Seq
}

// ActivityRow is one row of scope_activity_events. It is written once; only an erasure takes its
// payload away.
type ActivityRow struct {
	ActivityPlace
	ID         string // unique in its scope
	Type       string
	HighSignal bool
	SignalRank uint64 // of the scope, with this activity; zero for a low-signal one
	ActorRank  uint64 // of the actor, likewise
	Actor      readstate.MemberKey
	// Recipients are the humans whom a high-signal activity of a task was delivered to, ascending.
	Recipients []readstate.MemberKey
	RefType    string
	RefID      string
	Subject    readstate.MemberKey // whom an assignment is about, zero for nobody
	// Revision is that of the message which the activity goes with, zero for none.
	Revision  readstate.Revision
	Op        OpKey // zero Actor where no operation id belongs to the activity
	OpDigest  Digest
	CreatedAt int64 // milliseconds
	Payload   []byte
}

// ActivityTargetRow is one row of activity_targets: an activity that counts for a member of a
// task.
type ActivityTargetRow struct {
	RowKey
	Seq   readstate.Seq
	Actor readstate.MemberKey
}

// ConversationRow is one row of im_conversation_index: a task or dm in a member's list, one row
// however often anything happens there.
type ConversationRow struct {
	RowKey
	Kind        readstate.ScopeType // Task or DM
	SortAt      int64               // milliseconds, for display
	MessageSeq  readstate.Seq       // the scope's newest entry when the row was touched,
	ActivitySeq readstate.Seq       // and its newest activity
	UpdatedLSN  readstate.LSN
}

// Receipted says which receipts an actor has at all.
type Receipted struct {
	Actor      readstate.MemberKey
	Operations bool // rows of operations
	Activities bool // activities with an operation id
}
