package nostrx

import (
	"errors"
	"testing"
)

// What a query collects is bounded, in events and in bytes, whatever the relay sends.
func TestCollectorBounds(t *testing.T) {
	for name, c := range map[string]struct {
		size, fit int
	}{
		"events": {1, MaxStored}, "bytes": {MaxEventIn, MaxStoredBytes / MaxEventIn},
	} {
		for more, want := range map[int]error{0: nil, 1: ErrTooMuch} {
			q := &collector{done: make(chan collected, 1)}
			for range c.fit + more {
				q.onEvent(Event{}, c.size)
			}
			q.onStored()
			q.onLost(errors.New("later"))
			if got := <-q.done; !errors.Is(got.err, want) || want == nil && len(got.events) != c.fit {
				t.Errorf("%s+%d: %d events, %v", name, more, len(got.events), got.err)
			}
		}
	}
}

// What waits for a reader who is too slow is bounded as well: the reader has a gap, and what comes
// after it.
func TestSubscriptionBounds(t *testing.T) {
	for name, c := range map[string]struct {
		size, fit int
	}{
		"events": {1, maxQueued}, "bytes": {MaxEventIn, maxQueuedBytes / MaxEventIn},
	} {
		s := &Subscription{wake: make(chan struct{}, 1)}
		for i := range c.fit {
			s.onEvent(Event{CreatedAt: int64(i)}, c.size)
		}
		if got, err := s.Next(t.Context()); err != nil || got.Kind != SignalEvent || got.Event.CreatedAt != 0 {
			t.Errorf("%s: first %+v, %v", name, got, err)
		}
		s.onEvent(Event{}, c.size)
		s.onEvent(Event{}, c.size)
		s.onEvent(Event{CreatedAt: 77}, c.size)
		s.onStored()
		if got, err := s.Next(t.Context()); err != nil || got.Kind != SignalGap {
			t.Errorf("%s: then %+v, %v", name, got, err)
		}
		var last Signal
		for last.Kind != SignalCaughtUp {
			next, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if next.Kind == SignalCaughtUp && last.Event.CreatedAt != 77 {
				t.Errorf("%s: the last was %+v", name, last)
			}
			last = next
		}
	}
	s := &Subscription{wake: make(chan struct{}, 1)}
	s.onLost(nil)
	s.onLost(nil)
	s.onStored()
	if got, err := s.Next(t.Context()); err != nil || got.Kind != SignalGap {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Next(t.Context()); err != nil || got.Kind != SignalCaughtUp {
		t.Errorf("two gaps are one: %+v, %v", got, err)
	}
}
