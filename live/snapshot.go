package live

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// snapshots writes the whole present state of members, page by page. Those whose values cannot
// be shown are told so and kept for later. When these are all members of the stream, the last
// page carries the id to resume at: the commit of the first page, after which nothing has been
// left out.
func (s *Stream) snapshots(ctx context.Context, members []readstate.MemberID) error {
	var from readstate.LSN
	all := len(members) == len(s.members)
	for i, m := range members {
		last := all && i == len(members)-1 && len(s.waiting) == 0
		at, err := s.snapshot(ctx, m, from, last)
		if from == 0 {
			from = at
		}
		switch {
		case errors.Is(err, unread.ErrNotServable):
			err = s.withhold(ctx, m)
		case s.sub.Many && isUnknown(err):
			s.watch.Remove(m)
			delete(s.members, m)
			err = s.refuse(ctx, Refused{
				Code: codeNotFound, Detail: "unknown member", Members: []string{string(m)},
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshot writes the pages of one member and returns the commit of the first one. With last set
// the last page carries the id: from, or that commit where from is zero.
func (s *Stream) snapshot(
	ctx context.Context, m readstate.MemberID, from readstate.LSN, last bool,
) (readstate.LSN, error) {
	var at readstate.LSN
	for cursor := ""; ; {
		page, err := s.sub.Workspace.Unread(ctx, m, cursor, s.hub.opts.PageRows)
		if err != nil {
			return at, err
		}
		if !page.State.Servable() {
			return at, unread.ErrNotServable
		}
		if at == 0 {
			at = page.LSN
		}
		cursor = page.Next
		body := NewPage(&page)
		if s.sub.Many {
			body.Member = string(m)
		}
		f := Frame{Event: EventSnapshot, Data: body}
		if last && cursor == "" {
			if from == 0 {
				from = at
			}
			f.ID = strconv.FormatUint(uint64(from), 10)
		}
		if err := s.write(ctx, f); err != nil {
			return at, err
		}
		s.hub.counts.snapshots.Add(1)
		if cursor == "" {
			delete(s.told, m)
			return at, nil
		}
	}
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
	body := NewWithheld(state)
	if s.sub.Many {
		body.Member = string(m)
	}
	return s.write(ctx, Frame{Event: EventSnapshot, Data: body})
}
