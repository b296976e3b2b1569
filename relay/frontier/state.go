package frontier

import (
	"errors"
	"fmt"
	"maps"
)

// Time is a whole second since 1970. As the value of a frontier it is inclusive: everything of the
// context up to that second has been read.
type Time uint32

// MaxTime is the latest second that a frontier can name.
const MaxTime = Time(1<<32 - 1)

// MaxKeys bounds a state, in keys on the wire: a register counts three.
const MaxKeys = 10_000

// Errors of states. A function that returns one has changed nothing.
var (
	ErrKey       = errors.New("no key of a context")
	ErrCapacity  = errors.New("too much read state; nothing of it is given up")
	ErrExhausted = errors.New("the context was marked too often")
	ErrBlob      = errors.New("not a blob of read state")
	ErrOverride  = errors.New("manual marks of other clients are not published")
)

// State is what is known to be read, and what was marked unread by clients that synchronise that. A
// missing frontier is not the same as one of zero: nothing is known then. The zero value is empty;
// the maps of a State are not shared, except as its methods say.
type State struct {
	Frontiers map[Key]Time
	Overrides map[Key]Register
}

// Join returns what two states know together: of every frontier and every part of a register the
// greater one. It is commutative, associative and idempotent, and lowers nothing. ErrCapacity says
// that both together are too large.
func Join(a, b State) (State, error) {
	joined := a.Clone()
	for k, t := range b.Frontiers {
		joined.raise(k, t)
	}
	for k, r := range b.Overrides {
		joined.Overrides[k] = joined.Overrides[k].join(r)
	}
	if n := joined.Keys(); n > MaxKeys {
		return State{}, fmt.Errorf("%w: %d keys, at most %d", ErrCapacity, n, MaxKeys)
	}
	return joined, nil
}

// Clone returns a copy that shares nothing.
func (s State) Clone() State {
	c := State{
		Frontiers: make(map[Key]Time, len(s.Frontiers)),
		Overrides: make(map[Key]Register, len(s.Overrides)),
	}
	maps.Copy(c.Frontiers, s.Frontiers)
	maps.Copy(c.Overrides, s.Overrides)
	return c
}

// Keys returns how many keys the state has on the wire, at most.
func (s State) Keys() int { return len(s.Frontiers) + 3*len(s.Overrides) }

// Equal compares two states; a missing frontier differs from one of zero.
func (s State) Equal(o State) bool {
	return maps.Equal(s.Frontiers, o.Frontiers) && maps.Equal(s.Overrides, o.Overrides)
}

// Covers tells whether the state knows everything that the other one does: joining them changes
// nothing.
func (s State) Covers(o State) bool {
	for k, t := range o.Frontiers {
		if mine, ok := s.Frontiers[k]; !ok || mine < t {
			return false
		}
	}
	for k, r := range o.Overrides {
		if mine, ok := s.Overrides[k]; !ok || mine.join(r) != mine {
			return false
		}
	}
	return true
}

// Advance raises a frontier and tells whether that changed anything.
func (s *State) Advance(k Key, t Time) (bool, error) {
	if err := k.Check(); err != nil {
		return false, err
	}
	if old, ok := s.Frontiers[k]; ok && old >= t {
		return false, nil
	}
	if _, ok := s.Frontiers[k]; !ok && s.Keys() >= MaxKeys {
		return false, fmt.Errorf("%w: %d keys", ErrCapacity, MaxKeys)
	}
	if s.Frontiers == nil {
		s.Frontiers = make(map[Key]Time)
	}
	s.raise(k, t)
	return true, nil
}

// raise sets a frontier unless it is there and as high.
func (s *State) raise(k Key, t Time) {
	if old, ok := s.Frontiers[k]; !ok || old < t {
		s.Frontiers[k] = t
	}
}

// Home says where a context belongs, as far as signed messages have shown it. It is never read from a
// blob, and never written to one.
type Home struct {
	Channel string // "" when it is not known
	Root    string // of a message in a thread; "" when it is not known or there is none
}

// Effective returns the frontier that is in force for a context: its own, and those of what it
// belongs to. It is unknown when none of them is known. Catch-up keys have no part in it.
func (s State) Effective(k Key, home Home) (t Time, known bool) {
	take := func(k Key) {
		if f, ok := s.Frontiers[k]; ok {
			t, known = max(t, f), true
		}
	}
	take(k)
	if k.Event() == "" || k.Scope() == CatchUp {
		return t, known
	}
	if home.Channel != "" {
		take(ChannelKey(home.Channel))
	}
	if home.Root != "" && k.IsMessage() {
		take(ThreadKey(home.Root))
	}
	return t, known
}
