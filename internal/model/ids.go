package model

import (
	"fmt"
	"strconv"
)

// MemberID names a member of the world, from 1. Zero means nobody.
type MemberID int

// ScopeID names a scope of the world, from 1. Zero means none.
type ScopeID int

// Seq is the position of an entry in its scope's log, dense, from 1.
type Seq int64

// Revision is the rank of a readable entry among the readable entries of its scope,
// dense, from 1, never used twice. Zero means none.
type Revision int64

// ActivitySeq is the position of an activity in its scope, dense, from 1.
type ActivitySeq int64

// Version is the compare-and-set number of a row's manual mark, from 0.
type Version int64

// NoVersion in an [Op] means that the caller named no version.
const NoVersion Version = -1

// Word stands for a short text: only whether two are the same matters. Zero is the empty one.
type Word int

// Seconds is a moment of the world's clock. Zero, as an end, means never.
type Seconds int64

// ScopeKind says which rules a scope follows.
type ScopeKind uint8

// The kinds of scopes. A task is targeted: its entries count for their recipients only.
const (
	Channel ScopeKind = iota + 1
	DM
	Thread
	Task
	Session
)

// Level is a row's notification level.
type Level uint8

// The levels. Inherit, the zero value, takes the parent channel's in a thread and
// means All elsewhere.
const (
	Inherit Level = iota
	All
	Mentions
	None
)

// Follow is why, or why not, a member follows a thread.
type Follow uint8

// The follow facts. Unfollowed is an explicit choice and stops automatic follows.
const (
	NotFollowing Follow = iota
	Automatic
	Explicit
	Unfollowed
)

var (
	scopeKindNames = []string{"", "channel", "dm", "thread", "task", "session"}
	levelNames     = []string{"inherit", "all", "mentions", "none"}
	followNames    = []string{"not-following", "automatic", "explicit", "unfollowed"}
)

// String returns the kind's word, as [ParseOp] reads it.
func (k ScopeKind) String() string { return nameOf(scopeKindNames, int(k)) }

// String returns the level's word, as [ParseOp] reads it.
func (l Level) String() string { return nameOf(levelNames, int(l)) }

// String returns a word for the follow fact.
func (f Follow) String() string { return nameOf(followNames, int(f)) }

// String returns A to Z for the first 26 members and m27, m28 and so on after them.
func (m MemberID) String() string {
	if m >= 1 && m <= 26 {
		return string(rune('A' + int(m) - 1))
	}
	return "m" + strconv.Itoa(int(m))
}

// String returns s1, s2 and so on.
func (s ScopeID) String() string { return "s" + strconv.Itoa(int(s)) }

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "?" + strconv.Itoa(i)
}

// maxNumber keeps parsed numbers far from overflow in sums.
const maxNumber = 1 << 53

func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxNumber || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%q is not a plain number", text)
	}
	return n, nil
}

func parseMember(text string) (MemberID, error) {
	if len(text) == 1 && text[0] >= 'A' && text[0] <= 'Z' {
		return MemberID(text[0]-'A') + 1, nil
	}
	if len(text) > 1 && text[0] == 'm' {
		n, err := parseNumber(text[1:])
		if err == nil && n > 26 {
			return MemberID(n), nil
		}
	}
	return 0, fmt.Errorf("%q is not a member", text)
}

func parseScope(text string) (ScopeID, error) {
	if len(text) > 1 && text[0] == 's' {
		n, err := parseNumber(text[1:])
		if err == nil && n > 0 {
			return ScopeID(n), nil
		}
	}
	return 0, fmt.Errorf("%q is not a scope", text)
}
