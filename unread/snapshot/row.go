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

	// TaskFormat is the version of the row's Task columns, nil where there are none. No write
	// of this package touches those columns.
	TaskFormat *int64

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
	Roster       int64
	Message      int64
	Activity     int64
	Membership   int64
	Notification int64
	Manual       int64
	Rewind       int64
}

// Ranks are the columns from which counts follow.
type Ranks struct {
	E, AuthorAt, PrincipalAt  int64
	OwnRemoved, OwnEveryone   int64
	Direct, Targets           int64
	SignalAt, ActorAt         int64
	ActivityTargets           int64
	Head, Floor, SignalHead   int64 // of the scope; in a member's row as of the flush
	AuthorHead, PrincipalHead int64
	ActorHead                 int64
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
	// Upsert writes rows, all or none. It replaces every column but those of Task rows.
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
