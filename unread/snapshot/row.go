package snapshot

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// Row is one row of the snapshot table, column by column. A row whose Member is empty is the
// scope's frontier, one whose Scope is empty is the member apart from any scope. Numbers are
// signed as the database has them, so that a damaged row can be told from a sound one.
type Row struct {
	Workspace readstate.WorkspaceID
	Member    readstate.MemberID
	Scope     readstate.ScopeID

	// The values as of the flush: what an older program, or a person, reads.
	MessageUnread  int64
	ActivityUnread int64
	ManualUnread   int64 // 0 or 1

	MessageRead       int64 // read cursor, a revision, inclusive
	ActivityRead      int64 // activity cursor, inclusive
	EffectiveFrom     int64 // first revision that may count
	MessageAccounted  int64 // the head that the row was brought up to
	ActivityAccounted int64

	Notification string // a level, and "until" with milliseconds where it ends
	Visibility   string // of a member's row: see visibilities; of a frontier: open or archived

	Generations Generations

	// TaskFormat is the version of the row's Task columns, nil where there are none, and TaskText
	// what they say. A write leaves them as they are unless the row is to be protected.
	TaskFormat *int64
	TaskText   string
	// Protect has a write replace the Task columns, too, if the table still has the row whose
	// Fingerprint is Was, zero for none. Only a barrier asks for that, and the way back.
	Protect bool
	Was     uint64

	// Ranks is nil where an older program wrote the row.
	Ranks *Ranks
	// Detail is what has no column of its own, as JSON; empty for none.
	Detail string
	// UpdatedAt is when the row was written, milliseconds since the Unix epoch.
	UpdatedAt int64
	// IfAbsent keeps a row that is there already as it is.
	IfAbsent bool
	// Durable asks that the write it is part of survives a crash of the machine, too.
	Durable bool
}

// Generations are the change numbers of the facts that the row was made from.
type Generations struct {
	Roster       int64 `json:"roster,omitempty"`
	Message      int64 `json:"message,omitempty"`
	Activity     int64 `json:"activity,omitempty"`
	Membership   int64 `json:"membership,omitempty"`
	Notification int64 `json:"notification,omitempty"`
	Manual       int64 `json:"manual,omitempty"`
	Rewind       int64 `json:"rewind,omitempty"`
}

// Ranks are the columns from which counts follow.
type Ranks struct {
	E               int64 `json:"e,omitempty"`
	AuthorAt        int64 `json:"authorAt,omitempty"`
	PrincipalAt     int64 `json:"principalAt,omitempty"`
	OwnRemoved      int64 `json:"ownRemoved,omitempty"`
	OwnEveryone     int64 `json:"ownEveryone,omitempty"`
	Direct          int64 `json:"direct,omitempty"`
	Targets         int64 `json:"targets,omitempty"`
	SignalAt        int64 `json:"signalAt,omitempty"`
	ActorAt         int64 `json:"actorAt,omitempty"`
	ActivityTargets int64 `json:"activityTargets,omitempty"`
	// Of the scope; in a member's row as of the flush.
	Head       int64 `json:"head,omitempty"`
	Floor      int64 `json:"floor,omitempty"`
	SignalHead int64 `json:"signalHead,omitempty"`

	AuthorHead    int64 `json:"authorHead,omitempty"`
	PrincipalHead int64 `json:"principalHead,omitempty"`
	ActorHead     int64 `json:"actorHead,omitempty"`
}

// Query asks for rows of one member, or with an empty Member for frontiers: those of Only, or a
// page of at most Limit rows whose scope ids follow After, ascending by bytes. First asks for a
// page from the beginning, with the member's row that has no scope, which does not count.
type Query struct {
	Workspace readstate.WorkspaceID
	Member    readstate.MemberID
	After     readstate.ScopeID
	Limit     int
	Only      []readstate.ScopeID
	First     bool
}

// Store keeps snapshot rows. The rest of the serving path has no other way to a database.
type Store interface {
	// Load answers a bounded page. Rows that are not there are left out.
	Load(ctx context.Context, q Query) ([]Row, error)
	// Upsert writes rows, all or none. It replaces every column but the Task columns of rows
	// that do not ask for it, and fails with ErrConflict, having written nothing, where one that
	// does is not the table's any more.
	Upsert(ctx context.Context, rows []Row) error
}

// Names turns the numbers of events into ids and back. It interns: an id that it never saw gets
// a number. It is safe for concurrent use.
type Names interface {
	Member(key readstate.MemberKey) readstate.MemberID
	MemberKey(id readstate.MemberID) readstate.MemberKey
	Scope(key readstate.ScopeKey) readstate.ScopeID
	ScopeKey(id readstate.ScopeID) readstate.ScopeKey
}
