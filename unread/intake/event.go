package intake

import "github.com/tidemark-im/tidemark/readstate"

// Event is one fact that the program has made durable. Generations, where they are not zero,
// order the events of one fact: an older one never overwrites a newer one. They are at most
// 2^63 - 1, so that nanoseconds will do; revisions and seqs are at most 2^53 - 1. Ids and other texts
// are UTF-8 and otherwise anything. Tell refuses what is not.
type Event interface {
	place() readstate.ScopeID
}

// MessageStored is a new entry of a scope. A scope that nobody told of begins with it.
type MessageStored struct {
	Scope readstate.ScopeID
	Type  readstate.ScopeType // of a scope not told of before; zero is a channel
	Seq   readstate.Seq
	// Revision is the entry's rank among those that people see; zero for one they do not.
	Revision readstate.Revision
	ID       string
	At       int64 // milliseconds since the Unix epoch
	Author   readstate.MemberID
	// NotifyPrincipal is on whose behalf the author wrote; empty for the author themself.
	// Neither is counted.
	NotifyPrincipal readstate.MemberID
	Mentions        []readstate.MemberID
	Everyone        bool
	// Recipients are frozen with the message, in scopes that count deliveries.
	Recipients []readstate.MemberID
	Generation uint64
	// RosterGeneration is the scope's roster as the message's transaction saw it: nothing is
	// counted before that roster is known.
	RosterGeneration uint64
}

// MessageFacts says of an entry what was counted with it. Mentions and Everyone may be left out
// for an entry that this process was told of.
type MessageFacts struct {
	Seq             readstate.Seq
	Revision        readstate.Revision
	Author          readstate.MemberID
	NotifyPrincipal readstate.MemberID
	Mentions        []readstate.MemberID
	Everyone        bool
	Recipients      []readstate.MemberID
	Type            string // of the message, for logs
	At              int64
}

// MessageRewound takes entries back: a removal of one, or a rewind of many.
type MessageRewound struct {
	Scope      readstate.ScopeID
	Removed    []MessageFacts
	Generation uint64 // in one order with those of edits
}

// MessageEdited changes whom an entry mentions. Was says what it was.
type MessageEdited struct {
	Scope    readstate.ScopeID
	Was      MessageFacts
	Mentions []readstate.MemberID
	Everyone bool
	// Generation is in one order with those of rewinds. Without one, an edit that is told again
	// after a restart counts again.
	Generation uint64
}

// ScopeTrimmed drops the oldest entries for good. Trimmed holds every entry with a revision above
// the old floor, up to the new one, ascending. Where it does not, rows that are exact and reach below
// the floor are withheld until a cursor settles them.
type ScopeTrimmed struct {
	Scope   readstate.ScopeID
	Floor   readstate.Revision
	Trimmed []MessageFacts
}

// NonMessageActivityStored is a durable activity. One that is not HighSignal makes nothing
// unread. Telemetry, presence and session signals are no activities: they have no event.
type NonMessageActivityStored struct {
	Scope            readstate.ScopeID
	Type             readstate.ScopeType // as in MessageStored
	Seq              readstate.Seq
	At               int64
	Actor            readstate.MemberID
	HighSignal       bool
	Recipients       []readstate.MemberID
	ActivityType     string
	RosterGeneration uint64
}

// ReadCursorAdvanced moves a member's cursor to what they have seen, inclusive. It takes a manual
// mark that it covers away.
type ReadCursorAdvanced struct {
	Scope    readstate.ScopeID
	Member   readstate.MemberID
	Revision readstate.Revision
	// Head is the scope's last revision as the cursor's transaction saw it, zero if it did not
	// look. A cursor at the head makes the member's row exact, if that is known to be the head.
	Head readstate.Revision
}

// ActivityReadCursorAdvanced moves a member's activity cursor, inclusive.
type ActivityReadCursorAdvanced struct {
	Scope  readstate.ScopeID
	Member readstate.MemberID
	Seq    readstate.Seq
}

// ManualUnreadSet is a member's sticky mark. From is the first revision to show again, zero for
// the mark alone.
type ManualUnreadSet struct {
	Scope      readstate.ScopeID
	Member     readstate.MemberID
	From       readstate.Revision
	Generation uint64
}

// ManualUnreadCleared takes it away.
type ManualUnreadCleared struct {
	Scope      readstate.ScopeID
	Member     readstate.MemberID
	Generation uint64
}

// NotificationPolicyChanged sets a member's level in a scope. Unknown says that the program
// cannot tell what else it changed: the row is withheld until a cursor settles it.
type NotificationPolicyChanged struct {
	Scope      readstate.ScopeID
	Member     readstate.MemberID
	Level      readstate.Level
	Until      int64
	Unknown    bool
	Generation uint64
}

// MembershipChanged adds a member to a scope, removes them, or hides the scope from them.
type MembershipChanged struct {
	Scope  readstate.ScopeID
	Member readstate.MemberID
	Joined bool
	Hidden bool
	// EffectiveFrom is the first revision that may count, zero for the next one.
	EffectiveFrom readstate.Revision
	// Unknown is as in NotificationPolicyChanged.
	Unknown          bool
	Generation       uint64
	RosterGeneration uint64
}

// MessageVisibilityChanged shows a scope to a member who has joined it, or hides it from them.
type MessageVisibilityChanged struct {
	Scope      readstate.ScopeID
	Member     readstate.MemberID
	Visible    bool
	Generation uint64
}

// ScopeStateChanged makes a scope, renames, archives or restores it.
type ScopeStateChanged struct {
	Scope    readstate.ScopeID
	Type     readstate.ScopeType // zero keeps it; of a new scope, a channel
	Name     string
	Parent   readstate.ScopeID // of a thread; never changes
	Archived bool
	Shared   bool // members who come back go on where they left
	Active   bool // of a session: a run is going on,
	Thinking bool // and it is thinking: nothing is shown meanwhile
	// PendingInput and PendingPermission say what a session waits for its owner for.
	PendingInput      bool
	PendingPermission bool
	// Head is the scope's last revision, zero for an empty or unknown one.
	Head readstate.Revision
}

// MaxBlocks is how many members one member may block.
const MaxBlocks = 1_000

// BlocksChanged says whom a member blocks, all of them: what these write and do counts for nothing
// for the member, wherever it is. Whoever is not among them is blocked no longer, which is exact at
// once. A new block is exact where this process holds, or is told, what the blocked member wrote
// above the member's cursor; rows of which nobody knows that are withheld until a cursor settles
// them, unless they have nothing unread.
type BlocksChanged struct {
	Member readstate.MemberID
	Blocks []readstate.MemberID
	// Known says that Written is complete: it has everything that the newly blocked members wrote
	// above the cursor of the member, in every scope in which they wrote something there.
	Known      bool
	Written    []Written
	Generation uint64
}

// Written is what members wrote in a scope. Entries that were removed may be left out.
type Written struct {
	Scope      readstate.ScopeID
	Entries    []MessageFacts
	Activities []ActivityFacts
}

// ActivityFacts says of a high-signal activity what was counted with it.
type ActivityFacts struct {
	Seq        readstate.Seq
	Actor      readstate.MemberID
	Recipients []readstate.MemberID
}

// EventLost says that something happened in the scope of which the program cannot tell.
type EventLost struct{ Scope readstate.ScopeID }

func (e MessageStored) place() readstate.ScopeID              { return e.Scope }
func (e MessageRewound) place() readstate.ScopeID             { return e.Scope }
func (e MessageEdited) place() readstate.ScopeID              { return e.Scope }
func (e ScopeTrimmed) place() readstate.ScopeID               { return e.Scope }
func (e NonMessageActivityStored) place() readstate.ScopeID   { return e.Scope }
func (e ReadCursorAdvanced) place() readstate.ScopeID         { return e.Scope }
func (e ActivityReadCursorAdvanced) place() readstate.ScopeID { return e.Scope }
func (e ManualUnreadSet) place() readstate.ScopeID            { return e.Scope }
func (e ManualUnreadCleared) place() readstate.ScopeID        { return e.Scope }
func (e NotificationPolicyChanged) place() readstate.ScopeID  { return e.Scope }
func (e MembershipChanged) place() readstate.ScopeID          { return e.Scope }
func (e MessageVisibilityChanged) place() readstate.ScopeID   { return e.Scope }
func (e ScopeStateChanged) place() readstate.ScopeID          { return e.Scope }
func (e BlocksChanged) place() readstate.ScopeID              { return "" }
func (e EventLost) place() readstate.ScopeID                  { return e.Scope }
