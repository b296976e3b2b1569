package readsync

import "slices"

// InboxState says what may be made of a badge.
type InboxState uint8

const (
	// InboxUnavailable means that nothing is known: no number is shown, and not zero either.
	InboxUnavailable InboxState = iota
	// InboxStale means that the last badge may be shown, as one that is no longer certain.
	InboxStale
	// InboxExact means that the badge is the server's latest answer.
	InboxExact
)

// InboxBadge is the badge of an inbox as the server told it.
type InboxBadge struct {
	Accepted     uint64
	Acknowledged uint64
	Senders      []string // the accounts with something new; their number is the badge
}

// Inbox is what a client knows of its member's inbox. Answers may come in any order. The zero value
// knows nothing.
type Inbox struct {
	last     InboxBadge
	boundary uint64
	state    InboxState
}

// Answered takes in a badge that the server told. One that is older than what is known says nothing.
func (i *Inbox) Answered(b InboxBadge) {
	if b.Accepted < i.last.Accepted || b.Acknowledged < i.boundary {
		return
	}
	i.boundary = b.Acknowledged
	b.Senders = slices.Clone(b.Senders)
	i.last, i.state = b, InboxExact
}

// Receipt takes in the answer to an acknowledgement. A receipt of the past lowers nothing. What is
// shown is no longer certain if the boundary has risen: the next badge tells.
func (i *Inbox) Receipt(through uint64) {
	if through <= i.boundary {
		return
	}
	i.boundary = through
	i.Failed()
}

// Failed says that the badge could not be read, or may have changed. What is shown is stale then; a
// number is never invented.
func (i *Inbox) Failed() {
	if i.state == InboxExact {
		i.state = InboxStale
	}
}

// Boundary is what is acknowledged as far as is known. It never falls.
func (i *Inbox) Boundary() uint64 { return i.boundary }

// Badge returns the last badge and what may be made of it.
func (i *Inbox) Badge() (InboxBadge, InboxState) {
	b := i.last
	b.Senders = slices.Clone(b.Senders)
	return b, i.state
}
