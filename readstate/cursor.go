package readstate

import (
	"errors"
	"fmt"
)

// ErrFuture reports a revision or activity seq above what the scope holds.
var ErrFuture = errors.New("revision is in the future")

// ErrConflict reports a manual unread that names another version than the current one.
var ErrConflict = errors.New("version conflict")

// Outcome says what a command did to the stored facts.
type Outcome uint8

const (
	// Unchanged means that every stored fact stays as it was.
	Unchanged Outcome = iota
	// Applied means that at least one stored fact changed.
	Applied
)

// String returns the wire name.
func (o Outcome) String() string {
	if o == Applied {
		return "applied"
	}
	return "unchanged"
}

// ReadCommand advances a cursor to what somebody has seen.
type ReadCommand struct {
	Revision Revision // observed, inclusive
	// Version is the manual version the reader knew; nil names none.
	Version *uint64
	// Trusted lets a command without a version clear a mark that it covers.
	Trusted bool
}

// MarkRead advances the cursor and, where the command is entitled to, clears the manual mark.
// A stale revision is no error: it changes nothing. The caller moves Point to EffectivePoint
// afterwards. ErrFuture leaves the row as it was.
func (r *Row) MarkRead(head Revision, c ReadCommand) (Outcome, error) {
	if c.Revision > head {
		return Unchanged, fmt.Errorf("%w: %d is above %d", ErrFuture, c.Revision, head)
	}
	out := Unchanged
	if c.Revision > r.Read {
		r.Read, out = c.Revision, Applied
	}
	if r.clears(c) && r.Manual.change(false, 0) {
		out = Applied
	}
	return out, nil
}

// clears reports that a read takes the manual mark away: it names the current version, or none
// and is trusted, and it covers the mark's start.
func (r *Row) clears(c ReadCommand) bool {
	if !r.Manual.Set || c.Revision < r.Manual.From {
		return false
	}
	if c.Version == nil {
		return c.Trusted
	}
	return *c.Version == r.Manual.Version
}

// UnreadCommand sets the sticky manual mark.
type UnreadCommand struct {
	From    Revision // first revision to show again, zero for the mark alone
	Version *uint64  // expected version, nil when the caller need not name one
}

// MarkUnread sets the mark by compare-and-set. It never touches the cursor. ErrConflict and
// ErrFuture leave the row as it was.
func (r *Row) MarkUnread(head Revision, c UnreadCommand) (Outcome, error) {
	if c.From > head {
		return Unchanged, fmt.Errorf("%w: %d is above %d", ErrFuture, c.From, head)
	}
	if c.Version != nil && *c.Version != r.Manual.Version {
		return Unchanged, fmt.Errorf("%w: expected %d, is %d",
			ErrConflict, *c.Version, r.Manual.Version)
	}
	if r.Manual.change(true, c.From) {
		return Applied, nil
	}
	return Unchanged, nil
}

// Settle is the rule of session scopes: when an operation leaves nothing unread, the cursor
// goes to the head, since clients compare the two. It reports that the caller must move Point.
func (r *Row) Settle(t ScopeType, head Revision, unread uint64) bool {
	if t != Session || unread != 0 || r.Read >= head {
		return false
	}
	r.Read = head
	return true
}

// ActivityCrossed is what an advance of the activity cursor crosses or lands on.
type ActivityCrossed struct {
	Signal  uint64 // signal rank at the new cursor
	Actor   uint64 // the member's own actor rank there
	Targets uint64 // deliveries to the member that the cursor crosses
}

// MarkActivityRead advances the activity cursor to q, which must not exceed latest.
func (r *Row) MarkActivityRead(q, latest Seq, c ActivityCrossed) (Outcome, error) {
	if q > latest {
		return Unchanged, fmt.Errorf("%w: activity %d is above %d", ErrFuture, q, latest)
	}
	if q <= r.Activity.Read {
		return Unchanged, nil
	}
	if c.Targets > r.Activity.Targets {
		return Unchanged, fmt.Errorf("%w: %d activity deliveries of %d",
			ErrSpan, c.Targets, r.Activity.Targets)
	}
	r.Activity = ActivityPoint{
		Read: q, SignalAt: c.Signal, ActorAt: c.Actor, Targets: r.Activity.Targets - c.Targets,
	}
	return Applied, nil
}

// PostActivity counts a new activity for one member. Only a targeted scope keeps a number per
// member; elsewhere the signal and actor ranks of the scope say it.
func (a *ActivityPoint) PostActivity(t ScopeType, highSignal, recipient, actor bool) {
	a.Targets += one(t.Targeted() && highSignal && recipient && !actor)
}
