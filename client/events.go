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
	// EventLost: an operation will never be done; what was shown of it is taken back. It is told until
	// OnEvent has returned from it once, also by a later process: at least once, and after a crash
	// perhaps twice, with the same operation id.
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

func lostEvents(losses []readsync.Loss) []Event {
	events := make([]Event, len(losses))
	for i := range losses {
		events[i] = lostEvent(&losses[i])
	}
	return events
}

// rememberLosses adds losses to the status; c.mu is held.
func (c *Client) rememberLosses(losses []readsync.Loss) {
	c.status.Lost = append(c.status.Lost, losses...)
	if n := len(c.status.Lost) - keptLosses; n > 0 {
		c.status.Lost = c.status.Lost[n:]
	}
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
	// Lost are the last operations that will never be done, at most 100, oldest first; those of earlier
	// runs, too, once the server has told the namespace.
	Lost []readsync.Loss
	// Live tells whether the stream is open.
	Live bool
	// Waiting is why nothing is sent now: ErrNamespace, ErrCredentials, or what the last attempt
	// failed of. Nil when nothing waits.
	Waiting error
}

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
			c.noteTold(&e)
		}
	}
}

// noteTold has a loss not told again. Where the file does not take that, a later process tells it once
// more.
func (c *Client) noteTold(e *Event) {
	if e.Loss == nil {
		return
	}
	c.opts.onStep("told")
	ns, _ := c.auth.namespace()
	if err := c.store.told(ns, e.Loss.Operation.ID); err != nil {
		c.opts.Log.Warn("a loss will be told again", "error", err)
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
