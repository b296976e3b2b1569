package client

import (
	"time"

	"github.com/tidemark-im/tidemark/client/readsync"
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

func (w *wireState) state() (s readsync.State, told bool) {
	if w.ContentRevision == nil || w.ReadState == nil {
		return s, false
	}
	return readsync.State{
		ContentRevision: *w.ContentRevision, ReadRevision: w.ReadState.ReadRevision,
		ManualUnread: w.ReadState.ManualUnread, Version: w.ReadState.Version,
		FromRevision: w.ReadState.FromRevision,
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
}

type wireSessions struct {
	Sessions []wireSession `json:"sessions"`
	Next     string        `json:"next"`
}

type wirePage struct {
	Messages []readsync.Message `json:"messages"`
	Page     struct {
		HasMore             bool              `json:"hasMore"`
		ReadThroughRevision readsync.Revision `json:"readThroughRevision"`
	} `json:"page"`
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
