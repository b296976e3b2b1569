package readstate

import (
	"errors"
	"fmt"
)

// ErrNegative reports a count below zero, or a counter that was taken below it: a broken
// invariant of the caller's state, never a value to clamp.
var ErrNegative = errors.New("negative count")

// Terms are the ranks and counters from which one member's values in one scope follow. All
// intervals start above the base, max(Point.E, Floor), and end with Head.
type Terms struct {
	Type        ScopeType
	Head, Floor Revision
	Removed     uint64 // removed revisions of the interval
	Everyone    uint64 // live revisions of the interval that mention everyone
	SignalHead  uint64
	Point       Point
	Activity    ActivityPoint
	Writer      Writer
	Blocked     []Pair // one for each blocked member, not oneself, who wrote or acted here
}

// Pair holds what one blocked member X contributes to the values of the member who blocks X.
// Its counters cover the same interval as those of the blocker's Point.
type Pair struct {
	AuthorHead uint64 // entries X ever wrote here
	AuthorAt   uint64 // those at or below the base
	Removed    uint64 // removed ones above the base
	Overlap    uint64 // live ones above the base on behalf of the blocker; 0 in sessions
	Direct     uint64 // live ones above the base that name the blocker and not everyone
	Targets    uint64 // live deliveries by X to the blocker above the base
	Everyone   uint64 // live everyone mentions of X above the base, not on the blocker's behalf
	ActorHead  uint64 // high-signal activities of X
	ActorAt    uint64 // those at or below the activity cursor
	// ActivityTargets counts the activities of X delivered to the blocker above the cursor.
	ActivityTargets uint64
}

// Values are one member's raw counts in one scope, before any level or filter.
type Values struct {
	Unread    uint64
	Attention uint64
	Activity  uint64
}

// Values evaluates the formulas. It fails with ErrNegative, naming the term, when the state it
// was given contradicts itself.
func (t *Terms) Values() (Values, error) {
	var v Values
	unread, err := t.Unread()
	if err != nil {
		return v, err
	}
	attention := unread
	if t.Type != DM {
		if attention, err = t.attention(); err != nil {
			return v, err
		}
	}
	activity, err := t.activity()
	if err != nil {
		return v, err
	}
	return Values{Unread: unread, Attention: attention, Activity: activity}, nil
}

// Own returns the live neutral entries above the base.
func (t *Terms) Own() (uint64, error) {
	if !t.Type.NeutralWriters() {
		return 0, nil
	}
	w, p := &t.Writer, &t.Point
	return difference("own", w.AuthorHead+w.PrincipalHead,
		p.AuthorRank+p.PrincipalRank+p.OwnRemoved)
}

// BlockedUnread returns how many entries above the base count for nobody but their blocked
// authors' other readers.
func (t *Terms) BlockedUnread() (uint64, error) {
	var sum uint64
	for i := range t.Blocked {
		b := &t.Blocked[i]
		if err := whole("pair", b.Removed, b.Overlap, b.Direct, b.Targets, b.Everyone); err != nil {
			return 0, err
		}
		if t.Type.Targeted() {
			sum += b.Targets
			continue
		}
		n, err := difference("blocked", b.AuthorHead, b.AuthorAt+b.Removed+b.Overlap)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// Unread returns the one count of Values that needs no more than its own terms.
func (t *Terms) Unread() (uint64, error) {
	p := &t.Point
	if err := whole("point", p.OwnRemoved, p.OwnEveryone, p.Direct, p.Targets); err != nil {
		return 0, err
	}
	blocked, err := t.BlockedUnread()
	if err != nil {
		return 0, err
	}
	if t.Type.Targeted() {
		return difference("unread", t.Point.Targets, blocked)
	}
	own, err := t.Own()
	if err != nil {
		return 0, err
	}
	base := p.Base(t.Floor)
	return difference("unread", uint64(t.Head), uint64(base)+t.Removed+own+blocked)
}

func (t *Terms) attention() (uint64, error) {
	less := t.Point.OwnEveryone
	for i := range t.Blocked {
		less += t.Blocked[i].Direct + t.Blocked[i].Everyone
	}
	return difference("attention", t.Point.Direct+t.Everyone, less)
}

func (t *Terms) activity() (uint64, error) {
	if t.Type.Targeted() {
		var less uint64
		for i := range t.Blocked {
			less += t.Blocked[i].ActivityTargets
		}
		return difference("activity", t.Activity.Targets, less)
	}
	less := t.Activity.SignalAt + t.Writer.ActorHead
	for i := range t.Blocked {
		n, err := difference("blocked activity", t.Blocked[i].ActorHead, t.Blocked[i].ActorAt)
		if err != nil {
			return 0, err
		}
		less += n
	}
	return difference("activity", t.SignalHead+t.Activity.ActorAt, less)
}

func difference(term string, from, less uint64) (uint64, error) {
	if less > from {
		return 0, fmt.Errorf("%w: %s = %d - %d", ErrNegative, term, from, less)
	}
	return from - less, nil
}

// whole refuses counters that somebody took below zero: they have become numbers that no scope
// can hold, and sums of them may look sound.
func whole(of string, counters ...uint64) error {
	for i, n := range counters {
		if n > MaxCounter {
			return fmt.Errorf("%w: counter %d of the %s is %d", ErrNegative, i, of, int64(n))
		}
	}
	return nil
}

// Standing is what decides, when a value is read, whether and how a scope takes part.
type Standing struct {
	Joined, Visible, Archived bool
	Level                     Level // in force now: never LevelInherit
	Manual                    bool
	// Busy is a session whose run is active and thinking: it contributes nothing for now.
	Busy bool
}

// Presented is what a scope adds to a member's totals.
type Presented struct {
	Counts    bool   // joined, visible and not archived
	Shown     bool   // the dot
	Unread    uint64 // the number beside it
	Attention uint64 // what it adds to the attention total
}

// Counts reports that a scope takes part at all. For a thread the parent's standing must hold
// too, and sameEpoch says that the row belongs to the parent row's present epoch; parent is nil
// for every other scope.
func (s Standing) Counts(parent *Standing, sameEpoch bool) bool {
	if !s.Joined || !s.Visible || s.Archived {
		return false
	}
	return parent == nil || (sameEpoch && parent.Joined && parent.Visible && !parent.Archived)
}

// Present applies a level to raw values.
func (s Standing) Present(counts bool, v Values) Presented {
	if !counts {
		return Presented{}
	}
	p := Presented{Counts: true}
	switch s.Level {
	case LevelNone:
		return p
	case LevelMentions:
		p.Unread = v.Attention
	default:
		p.Unread = v.Unread
		p.Shown = v.Activity > 0
	}
	if s.Busy {
		p.Unread = 0
	}
	p.Shown = p.Shown || s.Manual || p.Unread > 0
	if p.Shown {
		p.Attention = v.Attention
	}
	return p
}

// Badge folds what scopes add. The zero value is the badge of a member with nothing unread.
type Badge struct {
	Messages      uint64
	Conversations uint64
	Attention     uint64
}

// Add folds one scope in.
func (b *Badge) Add(p Presented) {
	if !p.Shown {
		return
	}
	b.Messages += p.Unread
	b.Conversations++
	b.Attention += p.Attention
}

// Remove is the inverse of Add for the same value.
func (b *Badge) Remove(p Presented) {
	if !p.Shown {
		return
	}
	b.Messages -= p.Unread
	b.Conversations--
	b.Attention -= p.Attention
}
