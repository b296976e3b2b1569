package client

import (
	"context"
	"sync"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// EventKind says what an Event is about.
type EventKind string

const (
	// EventChanged: the list, a window or the status is another. Several changes are one event.
	EventChanged EventKind = "changed"
	// EventLost: an operation will never be done; what was shown of it is taken back.
	EventLost EventKind = "lost"
	// EventReplaced: a session was merged into another one.
	EventReplaced EventKind = "replaced"
)

// Event is something that happened.
type Event struct {
	Kind    EventKind
	Session string         // of EventLost and EventReplaced
	Scope   string         // of EventLost, instead of a session
	Loss    *readsync.Loss // of EventLost
	By      string         // of EventReplaced: the session in its place
}

func lostEvent(l *readsync.Loss) Event {
	if scope, ok := ScopeOf(&l.Operation); ok {
		return Event{Kind: EventLost, Scope: scope, Loss: l}
	}
	return Event{Kind: EventLost, Session: l.Operation.Session, Loss: l}
}

// Namespace is whose sessions a client has. The server tells it.
type Namespace struct {
	Workspace string `json:"workspace"`
	Member    string `json:"member"`
}

func (n *Namespace) whole() bool { return n.Workspace != "" && n.Member != "" }

// Status is how a client is doing. The zero value is that of one that has not reached its server.
type Status struct {
	Namespace Namespace // empty until the server has told it
	// Pending are the operations that the server has not decided on.
	Pending int
	// Lost are the last operations that will never be done, at most 100, oldest first.
	Lost []readsync.Loss
	// Live tells whether the stream is open.
	Live bool
	// Waiting is why nothing is sent now: ErrNamespace, ErrCredentials, or what the last attempt
	// failed of. Nil when nothing waits.
	Waiting error
}

const keptLosses = 100

// Status returns how the client is doing now.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	s.Namespace, _ = c.auth.namespace()
	s.Pending = c.outbox.Len()
	s.Lost = append([]readsync.Loss(nil), s.Lost...)
	return s
}

// events are what OnEvent has not been told. Losses and replacements are as few as operations and
// sessions; changes are one.
type events struct {
	mu      sync.Mutex
	changed bool
	list    []Event
	bell    chan struct{}
}

func newEvents() events { return events{bell: make(chan struct{}, 1)} }

func (e *events) add(list ...Event) {
	e.mu.Lock()
	e.changed = true
	e.list = append(e.list, list...)
	e.mu.Unlock()
	wake(e.bell)
}

func (e *events) take() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	if e.changed {
		list = append(list, Event{Kind: EventChanged})
	}
	e.list, e.changed = nil, false
	return list
}

// deliver tells events until the context ends.
func (c *Client) deliver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.events.bell:
		}
		for _, e := range c.events.take() {
			c.opts.OnEvent(e)
		}
	}
}

// waiting notes why nothing is sent.
func (c *Client) waiting(err error) {
	c.mu.Lock()
	changed := (c.status.Waiting == nil) != (err == nil) ||
		err != nil && c.status.Waiting.Error() != err.Error()
	c.status.Waiting = err
	c.mu.Unlock()
	if changed {
		if err != nil {
			c.opts.Log.Warn("nothing is sent for now", "error", err)
		}
		c.events.add()
	}
}
