package readstate

import (
	"errors"
	"fmt"
)

// ErrSpan reports that the rows handed to a move do not fit the point it starts from.
var ErrSpan = errors.New("rows crossed exceed the counters at the effective point")

// Span is what a move has to know about the entries it crosses: the half-open interval
// (Low, High]. Up says that E rises. AtHead says that E reaches the head, which needs no
// rows at all: nothing is above it.
type Span struct {
	Low, High Revision
	Up        bool
	AtHead    bool
}

// Empty reports a move that goes nowhere.
func (s Span) Empty() bool { return s.Low == s.High }

// PlanMove says what a move of E to the given point has to read first. A move below head is
// never AtHead, and neither is one that goes nowhere.
func (p *Point) PlanMove(to, head Revision) Span {
	if to < p.E {
		return Span{Low: to, High: p.E}
	}
	return Span{Low: p.E, High: to, Up: true, AtHead: to >= head && to != p.E}
}

// Crossed counts the member's own rows within a Span.
type Crossed struct {
	OwnRemoved  uint64 // removed neutral entries
	OwnEveryone uint64 // live neutral entries that mention everyone
	Direct      uint64 // live mention rows that count
	Targets     uint64 // live delivery rows
}

// Add counts one entry of the span for a member's role in it.
func (c *Crossed) Add(t ScopeType, m Message, r Role, live bool) {
	neutral := r.Neutral(t)
	if !live {
		c.OwnRemoved += one(neutral)
		return
	}
	c.OwnEveryone += one(neutral && m.Everyone)
	c.Direct += one(direct(t, r, m.Everyone))
	c.Targets += one(target(t, r))
}

// Ranks are a member's author and principal rank at one revision.
type Ranks struct {
	Author    uint64
	Principal uint64
}

// MoveToHead puts E on the head: nothing is above it, and the ranks are the writer's heads.
func (p *Point) MoveToHead(head Revision, w Writer) {
	*p = Point{E: head, AuthorRank: w.AuthorHead, PrincipalRank: w.PrincipalHead}
}

// Move puts E on another revision, given the rows between and the ranks there. It fails with
// ErrSpan, changing nothing, when the rows contradict the counters.
func (p *Point) Move(span Span, c Crossed, at Ranks) error {
	next := *p
	next.AuthorRank, next.PrincipalRank = at.Author, at.Principal
	if !span.Up {
		next.E = span.Low
		next.OwnRemoved += c.OwnRemoved
		next.OwnEveryone += c.OwnEveryone
		next.Direct += c.Direct
		next.Targets += c.Targets
		*p = next
		return nil
	}
	if c.OwnRemoved > p.OwnRemoved || c.OwnEveryone > p.OwnEveryone ||
		c.Direct > p.Direct || c.Targets > p.Targets {
		return fmt.Errorf("%w: (%d, %d] holds %+v, point has %+v",
			ErrSpan, span.Low, span.High, c, *p)
	}
	next.E = span.High
	next.OwnRemoved -= c.OwnRemoved
	next.OwnEveryone -= c.OwnEveryone
	next.Direct -= c.Direct
	next.Targets -= c.Targets
	*p = next
	return nil
}

// MergeMap carries a source session's revisions into a destination: what is unread arrives
// above the destination's head in the same order, everything else arrives without a revision.
type MergeMap struct {
	SourceE         Revision
	DestinationHead Revision
}

// Revision maps r; false for an entry at or below the source's effective point.
func (m MergeMap) Revision(r Revision) (Revision, bool) {
	if r <= m.SourceE {
		return 0, false
	}
	return m.DestinationHead + (r - m.SourceE), true
}

// From maps the start of a manual mark; zero stays zero.
func (m MergeMap) From(x Revision) Revision {
	if x == 0 {
		return 0
	}
	above := Revision(1)
	if x > m.SourceE+1 {
		above = x - m.SourceE
	}
	return m.DestinationHead + above
}

// MergeManual joins two manual marks: the flag is the OR, the start the lower one, a mark
// without a start giving way to one that has it; the version is above both.
func MergeManual(source, destination Manual, m MergeMap) Manual {
	out := Manual{
		Set:     source.Set || destination.Set,
		Version: max(source.Version, destination.Version) + 1,
	}
	if source.Set {
		out.From = m.From(source.From)
	}
	if destination.Set && destination.From > 0 && (out.From == 0 || destination.From < out.From) {
		out.From = destination.From
	}
	return out
}
