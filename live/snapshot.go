package live

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// paymentWait bounds how long one of many members may keep the others waiting while its rows are
// being loaded; it is tried again later.
const paymentWait = 250 * time.Millisecond

// owe puts members behind those who are owed something already.
func (s *Stream) owe(since readstate.LSN, members ...readstate.MemberID) {
	for _, m := range members {
		s.debts = append(s.debts, debt{m, since})
	}
}

// even reports that nobody is owed anything: only then may a position be given out, since a
// client that resumed there would miss what is owed.
func (s *Stream) even() bool { return len(s.debts) == 0 && len(s.waiting) == 0 }

// pay serves the first debt. A member whose values cannot be shown is told so and kept for later.
func (s *Stream) pay(ctx context.Context) error {
	d := s.debts[0]
	s.debts = s.debts[1:]
	err := s.payOne(ctx, d)
	switch {
	case err == nil:
		delete(s.told, d.member)
		s.whole = s.whole && !s.even()
	case errors.Is(err, unread.ErrNotServable):
		return s.withhold(ctx, d.member)
	case s.sub.Many && isUnknown(err):
		s.watch.Remove(d.member)
		delete(s.members, d.member)
		return s.refuse(ctx, Refused{
			Code: codeNotFound, Detail: "unknown member", Members: []string{string(d.member)},
		})
	}
	return err
}

func (s *Stream) payOne(ctx context.Context, d debt) error {
	if d.since > 0 {
		reading, cancel := s.patience(ctx)
		defer cancel()
		c, err := s.sub.Workspace.Changed(reading, d.member, d.since)
		if err != nil {
			return err
		}
		if !c.Whole {
			return s.sendDeltas(ctx, c.Deltas)
		}
	}
	if s.sub.Sessions {
		return s.allSessions(ctx, d.member)
	}
	return s.snapshot(ctx, d.member)
}

// patience is how long a read may wait for rows that are being loaded.
func (s *Stream) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if !s.sub.Many {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, paymentWait)
}

// snapshot writes the pages of one member. When everybody's state is sent anew and this member is
// the last, the last page carries the id to resume at: the commit of the very first page, after
// which nothing has been left out.
func (s *Stream) snapshot(ctx context.Context, m readstate.MemberID) error {
	for cursor := ""; ; {
		page, err := s.page(ctx, m, cursor)
		if err != nil {
			return err
		}
		if s.whole && s.from == 0 {
			s.from = page.lsn
		}
		cursor = page.next
		f := Frame{Event: EventSnapshot, Data: page.data}
		if s.whole && s.even() && cursor == "" {
			f.ID = strconv.FormatUint(uint64(s.from), 10)
		}
		if err := s.write(ctx, f); err != nil {
			return err
		}
		s.hub.counts.snapshots.Add(1)
		if cursor == "" {
			return nil
		}
	}
}

// page is a Page that is encoded already, so that a slow client holds nothing else up.
type page struct {
	data json.RawMessage
	lsn  readstate.LSN
	next string
}

func (s *Stream) page(ctx context.Context, m readstate.MemberID, cursor string) (page, error) {
	reading, cancel := s.patience(ctx)
	defer cancel()
	named := ""
	if s.sub.Many {
		named = string(m)
	}
	var out page
	rows := s.hub.opts.PageRows
	_, err := s.sub.Workspace.UnreadLines(reading, m, cursor, rows, func(p *unread.LinePage) {
		if !p.State.Servable() {
			return
		}
		out = page{AppendPage(nil, p, named), p.LSN, p.Next}
	})
	if err == nil && out.data == nil {
		err = unread.ErrNotServable
	}
	return out, err
}

// withhold tells once that a member's values cannot be shown, and keeps the member for later.
func (s *Stream) withhold(ctx context.Context, m readstate.MemberID) error {
	if !slices.Contains(s.waiting, m) {
		s.waiting = append(s.waiting, m)
	}
	_, state := s.sub.Workspace.HasUnread(m)
	if s.told[m] == state && state != "" {
		return nil
	}
	s.told[m] = state
	if s.sub.Sessions {
		return nil // they come when they are there
	}
	body := NewWithheld(state)
	if s.sub.Many {
		body.Member = string(m)
	}
	return s.write(ctx, Frame{Event: EventSnapshot, Data: body})
}
