package client

import (
	"slices"
	"time"

	"github.com/tidemark-im/tidemark/client/readsync"
	"github.com/tidemark-im/tidemark/readstate"
)

// wireState is what every answer and event says of a read state. A server that says nothing of it
// is not asked for anything else: there is no falling back to times.
type wireState struct {
	ContentRevision *readsync.Revision `json:"contentRevision"`
	ReadState       *struct {
		ReadRevision readsync.Revision `json:"readRevision"`
		ManualUnread bool              `json:"manualUnread"`
		Version      readsync.Version  `json:"version"`
		FromRevision readsync.Revision `json:"fromRevision"`
	} `json:"readState"`
}

// state is what is told of the read state, if that is something a server may say: one number beyond
// those would outdo all that come later, since numbers never fall.
func (w *wireState) state() (s readsync.State, told bool) {
	r := w.ReadState
	if w.ContentRevision == nil || r == nil || r.Version > readstate.MaxCounter ||
		max(*w.ContentRevision, r.ReadRevision, r.FromRevision) > readstate.MaxCounter {
		return s, false
	}
	return readsync.State{
		ContentRevision: *w.ContentRevision, ReadRevision: r.ReadRevision,
		ManualUnread: r.ManualUnread, Version: r.Version, FromRevision: r.FromRevision,
	}, true
}

// wireSession is a session in an answer, or in an event, which says no times.
type wireSession struct {
	ID                string    `json:"id"`
	Removed           bool      `json:"removed"`
	Title             string    `json:"title"`
	Active            bool      `json:"active"`
	Thinking          bool      `json:"thinking"`
	PendingInput      bool      `json:"pendingInput"`
	PendingPermission bool      `json:"pendingPermission"`
	UpdatedAt         time.Time `json:"updatedAt"`
	CreatedAt         time.Time `json:"createdAt"`
	wireState

	asked string // the id that was asked for, where it was asked for by one
}

func (w *wireSession) whole() bool { return w.ID != "" && w.ID == w.asked }

type wireSessions struct {
	Sessions []wireSession `json:"sessions"`
	Next     string        `json:"next"`
}

func (w *wireSessions) whole() bool {
	nameless := func(s wireSession) bool { return s.ID == "" }
	return w.Sessions != nil && !slices.ContainsFunc(w.Sessions, nameless)
}

type wirePage struct {
	Messages []readsync.Message `json:"messages"`
	Page     struct {
		HasMore             bool              `json:"hasMore"`
		ReadThroughRevision readsync.Revision `json:"readThroughRevision"`
	} `json:"page"`
}

func (w *wirePage) whole() bool {
	last := readsync.Seq(0)
	for i := range w.Messages {
		m := &w.Messages[i]
		if !possible(m) || m.Seq <= last {
			return false
		}
		last = m.Seq
	}
	return w.Messages != nil && w.Page.ReadThroughRevision <= readstate.MaxCounter
}

// possible tells whether a message is where one can be: from an impossible place on, everything that
// comes later would be taken for known.
func possible(m *readsync.Message) bool {
	return m.Seq > 0 && max(uint64(m.Seq), uint64(m.ContentRevision)) <= readstate.MaxCounter
}

func (w *wirePage) page() readsync.Page {
	return readsync.Page{
		Messages: w.Messages, HasMore: w.Page.HasMore,
		ReadThroughRevision: w.Page.ReadThroughRevision,
	}
}

type wireMessage struct {
	Op      string           `json:"op"`
	Session string           `json:"session"`
	Message readsync.Message `json:"message"`
}

type wireHello struct {
	HeartbeatSeconds int  `json:"heartbeatSeconds"`
	Resumed          bool `json:"resumed"`
}

// wireRead and wireUnread are the bodies of the two operations.
type wireRead struct {
	Type            readsync.Kind     `json:"type"`
	ReadRevision    readsync.Revision `json:"readRevision"`
	ExpectedVersion readsync.Version  `json:"expectedVersion"`
}

type wireUnread struct {
	Type            readsync.Kind    `json:"type"`
	ExpectedVersion readsync.Version `json:"expectedVersion"`
}

func newBody(op *readsync.Operation) any {
	if op.Kind == readsync.Read {
		return wireRead{op.Kind, op.Revision, op.ExpectedVersion}
	}
	return wireUnread{op.Kind, op.ExpectedVersion}
}
