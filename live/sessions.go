package live

import (
	"context"
	"strconv"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// SessionUpdate is a session of the stream's member as it is now. Clients keep the higher of the
// revisions they know, and of two read states the one of the higher version. When it was touched
// last is not said: reading is no change of a session.
type SessionUpdate struct {
	ID                string    `json:"id"`
	Title             string    `json:"title"`
	Active            bool      `json:"active"`
	Thinking          bool      `json:"thinking"`
	PendingInput      bool      `json:"pendingInput"`
	PendingPermission bool      `json:"pendingPermission"`
	ContentRevision   uint64    `json:"contentRevision"`
	ReadState         ReadState `json:"readState"`
	Unread            bool      `json:"unread"`
}

// SessionGone says that a session was merged into another one.
type SessionGone struct {
	ID      string `json:"id"`
	Removed bool   `json:"removed"`
}

// SessionMessage is one change of a message in a session of the stream's member.
type SessionMessage struct {
	Op      string  `json:"op" enum:"added,edited,removed"`
	Session string  `json:"session"`
	Message Message `json:"message"`
}

func newSession(r *unread.Row) SessionUpdate {
	x := facts.Session{
		Active: r.Scope.Active, Thinking: r.Scope.Thinking, Head: r.Ranks.Head, Row: r.Row,
	}
	_, id, _ := facts.SessionOf(r.Scope.ID)
	return SessionUpdate{
		ID: id, Title: r.Scope.Name, Active: x.Active, Thinking: x.Thinking,
		PendingInput: r.Scope.PendingInput, PendingPermission: r.Scope.PendingPermission,
		ContentRevision: uint64(x.Head), ReadState: NewReadState(&x.Row), Unread: x.Unread(),
	}
}

func newSessionMessage(c *facts.MessageChange) SessionMessage {
	m := newMessageEvent(c)
	_, id, _ := facts.SessionOf(c.ScopeID)
	return SessionMessage{Op: m.Op, Session: id, Message: m.Message}
}

// sendSessions writes those of the deltas that are of sessions. An id to resume at is given as in
// sendDeltas; one that would belong to something else is not given at all.
func (s *Stream) sendSessions(ctx context.Context, deltas []unread.Delta) error {
	_, settled := s.watch.Settled()
	for i := range deltas {
		d := &deltas[i]
		_, id, ok := facts.SessionOf(d.Scope)
		if !ok {
			continue
		}
		f := Frame{Event: EventSession, Data: SessionGone{ID: id, Removed: true}}
		if !d.Removed {
			f.Data = newSession(&d.Row)
		}
		if settled && s.even() && i == len(deltas)-1 {
			f.ID = strconv.FormatUint(uint64(d.Summary.LSN), 10)
		}
		if err := s.write(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// allSessions writes every session of the member, from as many pages of rows as it takes.
func (s *Stream) allSessions(ctx context.Context, m readstate.MemberID) error {
	for cursor := ""; ; {
		page, err := s.sub.Workspace.Unread(ctx, m, cursor, s.hub.opts.PageRows)
		if err != nil {
			return err
		}
		for i := range page.Rows {
			r := &page.Rows[i]
			if r.Scope.Type != readstate.Session {
				continue
			}
			if err := s.write(ctx, Frame{Event: EventSession, Data: newSession(r)}); err != nil {
				return err
			}
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}
