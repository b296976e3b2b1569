package readsync

import (
	"math/rand/v2"
	"testing"
)

// The boundary never falls, in whatever order answers and receipts come, and a receipt of the past
// does not make newer things old.
//
// covers: IN-033 IN-163
func TestInboxBoundary(t *testing.T) {
	var i Inbox
	i.Receipt(4)
	if i.Receipt(3); i.Boundary() != 4 {
		t.Errorf("a receipt of 3 made it %d", i.Boundary())
	}
	i.Answered(InboxBadge{Accepted: 4, Acknowledged: 3, Senders: []string{"Dee"}})
	if _, state := i.Badge(); i.Boundary() != 4 || state != InboxUnavailable {
		t.Errorf("an old badge made it %d, state %d", i.Boundary(), state)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var i Inbox
		highest := uint64(0)
		for range 30 {
			n := rng.Uint64N(20)
			if rng.IntN(2) == 0 {
				i.Receipt(n)
			} else {
				i.Answered(InboxBadge{Accepted: n + rng.Uint64N(5), Acknowledged: n})
			}
			if i.Boundary() < highest {
				t.Fatalf("it fell from %d to %d", highest, i.Boundary())
			}
			highest = i.Boundary()
		}
	}
}

// What is not known is unavailable or stale, and never zero.
//
// covers: IN-162
func TestInboxIsNeverInvented(t *testing.T) {
	var i Inbox
	i.Failed()
	if b, state := i.Badge(); state != InboxUnavailable || b.Senders != nil {
		t.Errorf("%+v, %d", b, state)
	}
	i.Answered(InboxBadge{Accepted: 2, Senders: []string{"Bo"}})
	i.Failed()
	if b, state := i.Badge(); state != InboxStale || len(b.Senders) != 1 {
		t.Errorf("%+v, %d", b, state)
	}
	i.Answered(InboxBadge{Accepted: 2, Acknowledged: 2})
	if b, state := i.Badge(); state != InboxExact || len(b.Senders) != 0 {
		t.Errorf("%+v, %d", b, state)
	}
	i.Receipt(3)
	if _, state := i.Badge(); state != InboxStale {
		t.Errorf("after a receipt: %d", state)
	}
}
