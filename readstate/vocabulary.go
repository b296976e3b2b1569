package readstate

import "fmt"

// Revision is the rank of a readable entry among the readable entries of its scope, from 1,
// never reused. Zero stands before the first one.
type Revision uint64

// Seq is the position of an entry in one scope, dense, from 1.
type Seq uint64

// MemberID names a human or agent principal of a workspace.
type MemberID string

// ScopeID names anything with its own log and cursors.
type ScopeID string

// MaxCounter is the largest revision, seq or version: clients hold them in IEEE doubles.
const MaxCounter = 1<<53 - 1

// ScopeType decides which of the counting rules apply to a scope.
type ScopeType uint8

const (
	Channel ScopeType = iota + 1
	DM
	Thread
	Task
	Session
)

var scopeTypeNames = [...]string{
	Channel: "channel", DM: "dm", Thread: "thread", Task: "task", Session: "session",
}

// String returns the wire name.
func (t ScopeType) String() string {
	if t >= Channel && int(t) < len(scopeTypeNames) {
		return scopeTypeNames[t]
	}
	return fmt.Sprintf("ScopeType(%d)", uint8(t))
}

// ParseScopeType is the inverse of String; false for any other word.
func ParseScopeType(s string) (ScopeType, bool) {
	for t := Channel; int(t) < len(scopeTypeNames); t++ {
		if scopeTypeNames[t] == s {
			return t, true
		}
	}
	return 0, false
}

// Targeted reports that a message counts only for the recipients frozen with it.
func (t ScopeType) Targeted() bool { return t == Task }

// NeutralWriters reports that a message counts for neither its author nor its notify principal.
// In a session nobody is neutral: there the kind of an entry decides whether it is readable.
func (t ScopeType) NeutralWriters() bool { return t != Session }

// Level is a member's notification level in one scope. The zero value inherits the level of
// the parent scope, and is LevelAll where there is no parent.
type Level uint8

const (
	LevelInherit Level = iota
	LevelAll
	LevelMentions
	LevelNone
)

var levelNames = [...]string{
	LevelInherit: "inherit", LevelAll: "all", LevelMentions: "mentions", LevelNone: "none",
}

// String returns the wire name.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevel is the inverse of String; false for any other word.
func ParseLevel(s string) (Level, bool) {
	for l, name := range levelNames {
		if name == s {
			return Level(l), true
		}
	}
	return 0, false
}

// Notification is a level that may end. Until is in milliseconds since the Unix epoch; zero
// means that the level has no end. From Until on the level is LevelAll.
type Notification struct {
	Level Level
	Until int64
}

// At returns the level in force at now (milliseconds), LevelInherit included.
func (n Notification) At(now int64) Level {
	if n.Until != 0 && now >= n.Until {
		return LevelAll
	}
	return n.Level
}

// LevelAt resolves own against the parent's setting; parent is nil where a scope has none.
func LevelAt(now int64, own Notification, parent *Notification) Level {
	level := own.At(now)
	if level != LevelInherit {
		return level
	}
	if parent != nil {
		if level = parent.At(now); level != LevelInherit {
			return level
		}
	}
	return LevelAll
}

// History says from where a member who joins again goes on.
type History uint8

const (
	// HistoryJoined starts a new epoch at every join.
	HistoryJoined History = iota
	// HistoryShared lets a returning member keep epoch, cursor and counts.
	HistoryShared
)

// String returns the wire name.
func (h History) String() string {
	if h == HistoryShared {
		return "shared"
	}
	return "joined"
}

// Follow says how a member came to follow a thread, and whether automatic follows may act.
type Follow uint8

const (
	// FollowAutomatic is the zero value: a message made the row, or nothing did.
	FollowAutomatic Follow = iota
	// FollowExplicit was chosen by the member.
	FollowExplicit
	// FollowStopped was chosen by the member: no message makes them follow again.
	FollowStopped
)
