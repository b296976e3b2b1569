package nostrx

import (
	"context"
	"errors"
	"sync"
)

// SignalKind says what a Signal tells.
type SignalKind uint8

// What happens on a subscription.
const (
	SignalEvent    SignalKind = iota + 1 // a verified event that matches
	SignalCaughtUp                       // what was stored has been sent; it proves nothing to be complete
	SignalGap                            // what came lately may be missing: the connection or the queue broke
	SignalRefused                        // the relay ended the subscription; nothing follows
)

// Signal is one step of a subscription.
type Signal struct {
	Kind   SignalKind
	Event  Event  // of SignalEvent
	Reason string // of SignalRefused, the relay's words
}

// Bounds of what waits in a subscription for its reader.
const (
	maxQueued      = 1024
	maxQueuedBytes = 4 << 20
)

// ErrEnded says that a subscription was closed, or its client was.
var ErrEnded = errors.New("the subscription has ended")

// Subscription delivers events as they arrive, across connections. Its queue is bounded: a reader
// who is too slow loses what waits and is told so by SignalGap, and the connection never stands
// still for one reader. It is safe for concurrent use, with one reader.
type Subscription struct {
	client  *Client
	id      string
	filters []Filter

	mu      sync.Mutex
	queue   []Signal
	bytes   int
	ended   error
	waiting bool          // refused until the connection is authenticated
	wake    chan struct{} // has room for one
}

// Next waits for the next signal. It fails with the context's error, or with ErrEnded.
func (s *Subscription) Next(ctx context.Context) (Signal, error) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			next := s.queue[0]
			s.queue[0] = Signal{}
			s.queue = s.queue[1:]
			if len(s.queue) == 0 {
				s.queue, s.bytes = nil, 0
			}
			s.mu.Unlock()
			return next, nil
		}
		err := s.ended
		s.mu.Unlock()
		if err != nil {
			return Signal{}, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Signal{}, ctx.Err()
		}
	}
}

// Close ends the subscription. What waits may still be read.
func (s *Subscription) Close() { s.client.drop(s) }

func (s *Subscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = err
	}
	s.signal()
}

// push queues a signal. Queued bytes count until the queue has been emptied, which is an upper
// bound of what waits.
func (s *Subscription) push(next Signal, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return
	}
	if len(s.queue) >= maxQueued || s.bytes+size > maxQueuedBytes {
		s.queue, s.bytes = []Signal{{Kind: SignalGap}}, 0
	}
	// Gaps without anything between them are one gap.
	if last := len(s.queue) - 1; next.Kind == SignalGap && last >= 0 && s.queue[last].Kind == SignalGap {
		return
	}
	s.queue, s.bytes = append(s.queue, next), s.bytes+size
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// The subscription as a listener of a connection.

func (s *Subscription) wants() []Filter { return s.filters }

func (s *Subscription) onEvent(e Event, size int) { s.push(Signal{Kind: SignalEvent, Event: e}, size) }

func (s *Subscription) onStored() { s.push(Signal{Kind: SignalCaughtUp}, 0) }

func (s *Subscription) onClosed(reason string) {
	if needsAuth(reason) && s.client.options.Key != nil {
		s.mu.Lock()
		again := !s.waiting
		s.waiting = true
		s.mu.Unlock()
		if again {
			return // it is asked for again once the challenge is answered
		}
	}
	s.mu.Lock()
	s.waiting = false // it is over: nothing asks again, however often the relay refuses
	s.mu.Unlock()
	s.push(Signal{Kind: SignalRefused, Reason: reason}, 0)
	s.client.drop(s)
}

func (s *Subscription) onLost(error) {
	s.mu.Lock()
	s.waiting = false
	s.mu.Unlock()
	s.push(Signal{Kind: SignalGap}, 0)
}

func (s *Subscription) isWaiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}
