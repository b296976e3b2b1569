package readstate

import "fmt"

// LSN is a workspace's durable commit number. Values, deltas and stream positions carry it.
type LSN uint64

// WorkspaceID names a namespace. Nothing of one workspace is ever seen in another.
type WorkspaceID string

// MemberKey is the interned number of a member, unique in a store and never reused. Zero is
// nobody.
type MemberKey uint64

// ScopeKey is the interned number of a scope, unique in a store and never reused. Zero is none.
type ScopeKey uint64

// Event is one committed fact. The events of a commit are applied in their order, and commits
// in the order of their LSN; applying a commit at or below the applied LSN changes nothing.
// An event never carries a lone count: a member event has the complete row, the others have
// the facts from which every count follows.
type Event interface{ event() }

// MessageEvent is a new entry. Revision is zero for one that is not readable, which raises the
// scope's seq and nothing else. The ranks are those of this entry, so a writer's heads after it.
type MessageEvent struct {
	Scope         ScopeKey
	Seq           Seq
	Revision      Revision
	ID            string
	At            int64 // acceptance, milliseconds since the Unix epoch
	Author        MemberKey
	AuthorRank    uint64
	Principal     MemberKey // zero when the author acts for themself
	PrincipalRank uint64
	Named         []MemberKey // mentioned, each once; neutral ones included
	Recipients    []MemberKey // targeted scopes: frozen deliveries
	Everyone      bool
}

// RemovalEvent takes a live entry back; it names whom the entry had touched.
type RemovalEvent struct {
	Scope      ScopeKey
	Seq        Seq
	Revision   Revision
	Author     MemberKey
	Principal  MemberKey
	Named      []MemberKey
	Recipients []MemberKey
	Everyone   bool
	Latest     Latest // the scope's newest live message after the removal
	Replies    uint64 // the scope's live readable entries after it
}

// EditEvent changes the mentions of a live entry.
type EditEvent struct {
	Scope          ScopeKey
	Seq            Seq
	Revision       Revision
	Author         MemberKey
	Principal      MemberKey
	Recipients     []MemberKey
	NamedBefore    []MemberKey
	NamedAfter     []MemberKey
	EveryoneBefore bool
	EveryoneAfter  bool
}

// FloorEvent raises a scope's floor. Writers holds the floor ranks of everyone who wrote what
// was trimmed; their rows and those of the members named follow as member events.
type FloorEvent struct {
	Scope   ScopeKey
	Floor   Revision
	Removed BlockBits // of the new floor's block
	// Everyone is the everyone set's block of the new floor.
	Everyone BlockBits
	Writers  []FloorWriter
	Latest   Latest // the scope's newest live message after the trim
	Replies  uint64 // the scope's live readable entries after it
}

// FloorWriter is one writer's ranks at a new floor.
type FloorWriter struct {
	Member           MemberKey
	AuthorAtFloor    uint64
	PrincipalAtFloor uint64
}

// ScopeInfo is a scope's identity and everything about it that no entry changes.
type ScopeInfo struct {
	Key         ScopeKey
	ID          ScopeID
	Type        ScopeType
	Name        string
	Parent      ScopeKey
	ParentID    ScopeID
	RootMessage string
	History     History
	Archived    bool
	Tags        []string
	Active      bool // sessions: a run is going on
	Thinking    bool // sessions: the run is thinking
	// PendingInput and PendingPermission say what a session waits for its owner for. They are no
	// part of what is unread.
	PendingInput      bool
	PendingPermission bool
}

// ScopeEvent is a new scope or a changed one: archive, name, tags, the run of a session.
type ScopeEvent struct{ Info ScopeInfo }

// MemberEvent is the complete row of a member in a scope, at its own place in the order; it
// replaces what is held of that row.
type MemberEvent struct{ MemberRow }

// MemberRow is a row with all that a reader needs beside it.
type MemberRow struct {
	Scope    ScopeKey
	Member   MemberKey
	MemberID MemberID
	Row      Row
	Writer   Writer
	// Removed and Everyone are the scope's blocks that hold the row's base.
	Removed  BlockBits
	Everyone BlockBits
	Pairs    []PairRow // the members the row's owner blocks who wrote or acted here
	StateLSN LSN       // the commit that last changed the row
}

// PairRow is the part of a Pair that belongs to the row, with the member it is about.
type PairRow struct {
	Blocked  MemberKey
	AuthorAt uint64
	Overlap  uint64
	Direct   uint64
	Targets  uint64
	ActorAt  uint64
	// ActivityTargets counts the blocked member's activities delivered above the cursor.
	ActivityTargets uint64
	// Other is what the scope knows of the blocked writer, kept once per scope and writer.
	Other BlockedWriter
}

// Pair evaluates the record for its owner, who blocks, and a base: the one the row's counters
// belong to.
func (p *PairRow) Pair(t ScopeType, owner MemberKey, base Revision) Pair {
	out := Pair{
		AuthorHead: p.Other.AuthorHead, AuthorAt: p.AuthorAt, Overlap: p.Overlap,
		Direct: p.Direct, Targets: p.Targets, ActorHead: p.Other.ActorHead, ActorAt: p.ActorAt,
		ActivityTargets: p.ActivityTargets,
	}
	for _, r := range p.Other.Removed {
		out.Removed += one(r > base)
	}
	for _, e := range p.Other.Everyone {
		out.Everyone += one(e.Revision > base && (!t.NeutralWriters() || e.Principal != owner))
	}
	return out
}

// BlockedWriter is what a scope keeps of a writer whom some loaded member blocks.
type BlockedWriter struct {
	Member     MemberKey
	AuthorHead uint64
	ActorHead  uint64
	Removed    []Revision         // removed entries of the writer above the floor, ascending
	Everyone   []EveryoneRevision // live everyone mentions of the writer above the floor
	// Low is the author and actor rank of rows that have no pair: those above whose points the
	// writer has written or done nothing but what is numbered above it.
	Low uint64
}

// EveryoneRevision is one live entry that mentions everyone.
type EveryoneRevision struct {
	Revision  Revision
	Principal MemberKey
}

// BlockBits is one block of a revision set with its number; Bits is nil for an empty block.
type BlockBits struct {
	Block uint64
	Bits  *Bitmap
}

// BlockCount is the size of one block of a revision set.
type BlockCount struct {
	Block uint64
	Count uint64
}

// BlockEvent says that a member blocks or unblocks another. It carries no rows: whoever holds the
// member's rows reads them again, with the pairs that belong to them now.
type BlockEvent struct {
	Member    MemberKey
	Other     MemberKey
	Blocked   bool
	MemberLSN LSN
}

// ActivityEvent is a durable activity. SignalRank and ActorRank are zero for a low-signal one.
type ActivityEvent struct {
	Scope      ScopeKey
	Seq        Seq
	At         int64
	HighSignal bool
	SignalRank uint64
	Actor      MemberKey
	ActorRank  uint64
	Recipients []MemberKey
}

// PrincipalEvent is a member's own facts: identity, display and settings. Gone marks an erased
// member, whose rows follow as RowGoneEvent.
type PrincipalEvent struct{ Info MemberInfo }

// MemberInfo is what is known of a member apart from any scope.
type MemberInfo struct {
	Key         MemberKey
	ID          MemberID
	Agent       bool
	Active      bool
	DisplayName string
	Avatar      string
	Badge       BadgeDisplay
	Private     bool // read receipts are not shown to others
	MemberLSN   LSN  // the commit that last changed blocks or settings, or took a session away
	Erased      bool
}

// BadgeDisplay chooses the number that a badge displays.
type BadgeDisplay uint8

const (
	DisplayMessages BadgeDisplay = iota
	DisplayConversations
	DisplayAttention
)

var displayNames = [...]string{"messages", "conversations", "attention"}

// String returns the wire name.
func (d BadgeDisplay) String() string {
	if int(d) < len(displayNames) {
		return displayNames[d]
	}
	return fmt.Sprintf("BadgeDisplay(%d)", uint8(d))
}

// ParseBadgeDisplay is the inverse of String; false for any other word.
func ParseBadgeDisplay(s string) (BadgeDisplay, bool) {
	for d, name := range displayNames {
		if name == s {
			return BadgeDisplay(d), true
		}
	}
	return 0, false
}

// RowGoneEvent forgets a row: its member was erased or its session retired.
type RowGoneEvent struct {
	Scope  ScopeKey
	Member MemberKey
}

// GapEvent says that a scope missed events. Entries above the head known so far, up to Head, are
// there and count for nobody; what happened at or below Doubt may be unknown. It comes only from
// those who have no facts to read again.
type GapEvent struct {
	Scope ScopeKey
	Head  Revision // at or above the head known so far
	Doubt Revision
}

// RowFoundEvent says that a member has a row of which memory may know nothing: a page brings it.
// It comes only from those who have no facts to read again.
type RowFoundEvent struct {
	Scope  ScopeKey
	Member MemberKey
}

// WriterEvent says what a scope keeps of a writer whom somebody blocks, where it kept nothing or
// less before. It comes only from those who have no facts to read again.
type WriterEvent struct {
	Scope ScopeKey
	Other BlockedWriter
}

func (WriterEvent) event()    {}
func (GapEvent) event()       {}
func (RowFoundEvent) event()  {}
func (MessageEvent) event()   {}
func (RemovalEvent) event()   {}
func (EditEvent) event()      {}
func (FloorEvent) event()     {}
func (ScopeEvent) event()     {}
func (MemberEvent) event()    {}
func (BlockEvent) event()     {}
func (ActivityEvent) event()  {}
func (PrincipalEvent) event() {}
func (RowGoneEvent) event()   {}
