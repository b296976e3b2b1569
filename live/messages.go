package live

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Codes of refused parts, as in the error table.
const (
	codeNotFound   = "not_found"
	codeOverBudget = "over_budget"
)

// command is a frame of the client.
type command ClientFrame

// obey follows one frame. A part that cannot be followed is refused; a frame that makes no sense
// ends the stream.
func (s *Stream) obey(ctx context.Context, c command) error {
	if len(c.Watch)+len(c.Unwatch) > 0 && !s.sub.Many {
		return fmt.Errorf("%w: this stream is of one member", errProtocol)
	}
	for _, ids := range [][]string{c.Watch, c.Unwatch} {
		if err := checkIDs("member", ids); err != nil {
			return err
		}
	}
	for _, ids := range [][]string{c.Subscribe, c.Unsubscribe} {
		if err := checkIDs("scope", ids); err != nil {
			return err
		}
	}
	if s.sub.Spend != nil && !s.sub.Spend(1+len(c.Subscribe)) {
		return s.refuse(ctx, Refused{
			Code: codeOverBudget, Detail: "too many frames with this token",
			Members: append(c.Watch, c.Unwatch...), Scopes: append(c.Subscribe, c.Unsubscribe...),
		})
	}
	if len(c.Unwatch) > 0 {
		s.unwatch(c.Unwatch)
	}
	for _, id := range c.Unsubscribe {
		if s.feed != nil {
			s.feed.Unsubscribe(readstate.ScopeID(id))
		}
		delete(s.parents, readstate.ScopeID(id))
	}
	if len(c.Watch) > 0 {
		if err := s.watchMore(ctx, c.Watch); err != nil {
			return err
		}
	}
	return s.subscribeAll(ctx, c.Subscribe)
}

func checkIDs(kind string, ids []string) error {
	for _, id := range ids {
		if err := facts.CheckID(kind, id); err != nil {
			return fmt.Errorf("%w: %w", errProtocol, err)
		}
	}
	return nil
}

func (s *Stream) refuse(ctx context.Context, r Refused) error {
	return s.write(ctx, Frame{Event: EventRefused, Data: r})
}

// watchMore begins with members that the stream did not have yet.
func (s *Stream) watchMore(ctx context.Context, ids []string) error {
	var added []readstate.MemberID
	fresh := map[readstate.MemberID]struct{}{}
	for _, id := range ids {
		m := readstate.MemberID(id)
		_, had := s.members[m]
		if _, twice := fresh[m]; had || twice {
			continue
		}
		fresh[m] = struct{}{}
		added = append(added, m)
	}
	over := len(s.members)+len(added) > MaxMembers
	if !over {
		err := s.watch.Add(added...)
		if over = errors.Is(err, unread.ErrBudget); err != nil && !over {
			return fmt.Errorf("watch: %w", err)
		}
	}
	if over {
		return s.refuse(ctx, Refused{
			Code: codeOverBudget, Members: ids,
			Detail: fmt.Sprintf("a stream has at most %d members", MaxMembers),
		})
	}
	for _, m := range added {
		s.members[m] = struct{}{}
	}
	s.followInbox(added...)
	s.owe(0, added...)
	return nil
}

func (s *Stream) unwatch(ids []string) {
	for _, id := range ids {
		m := readstate.MemberID(id)
		if _, had := s.members[m]; had {
			s.watch.Remove(m)
			if s.inbox != nil {
				s.inbox.Unwatch(m)
			}
			delete(s.members, m)
			delete(s.told, m)
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(m readstate.MemberID) bool {
		_, still := s.members[m]
		return !still
	})
	s.debts = slices.DeleteFunc(s.debts, func(d debt) bool {
		_, still := s.members[d.member]
		return !still
	})
}

// subscribeAll begins to send message changes of scopes.
func (s *Stream) subscribeAll(ctx context.Context, ids []string) error {
	var over, unknown []string
	for _, id := range ids {
		scope := readstate.ScopeID(id)
		if _, had := s.parents[scope]; !had && len(s.parents) >= MaxScopes {
			over = append(over, id)
			continue
		}
		err := s.subscribe(ctx, scope)
		if isUnknown(err) {
			unknown = append(unknown, id)
		} else if err != nil {
			return err
		}
	}
	if len(unknown) > 0 {
		err := s.refuse(ctx, Refused{
			Code: codeNotFound, Scopes: unknown, Detail: "unknown, or not visible to the member",
		})
		if err != nil {
			return err
		}
	}
	if len(over) == 0 {
		return nil
	}
	return s.refuse(ctx, Refused{
		Code: codeOverBudget, Scopes: over,
		Detail: fmt.Sprintf("a stream carries the messages of at most %d scopes", MaxScopes),
	})
}

// subscribe adds one scope if the member may see it.
func (s *Stream) subscribe(ctx context.Context, id readstate.ScopeID) error {
	if _, had := s.parents[id]; had {
		return nil
	}
	var scope facts.ScopeRow
	var err error
	if s.sub.Trusted {
		scope, err = s.sub.Workspace.Scope(ctx, id)
	} else {
		scope, err = s.sub.Workspace.Seen(ctx, s.sub.Members[0], id)
	}
	if err != nil {
		return err
	}
	s.parents[id] = ""
	if scope.Info.Type == readstate.Thread {
		s.parents[id] = scope.Info.ParentID
	}
	if s.feed == nil {
		s.feed = s.sub.Workspace.Feed()
	}
	s.feed.Subscribe(id)
	return nil
}

// messages writes what happened to messages, as far as the member may see their scopes now.
func (s *Stream) messages(ctx context.Context) error {
	changes, lost := s.feed.Next()
	if lost {
		return errOverrun
	}
	stored := map[readstate.ScopeID]bool{}
	for i := range changes {
		c := &changes[i]
		visible, err := s.visible(ctx, c.ScopeID, stored)
		if err != nil {
			return err
		}
		if !visible {
			continue
		}
		f := Frame{Event: EventMessage, Data: newMessageEvent(c)}
		if s.sub.Sessions {
			f.Data = newSessionMessage(c)
		}
		if err := s.write(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// visible checks again at delivery: a member who was removed from a scope meanwhile gets nothing
// of it any more. A thread is seen by whoever sees its channel. While memory cannot say, as when
// the member's rows are being read again, the store is asked, once for each scope of a round:
// its answers are kept in stored. An error ends the stream, and the client lists messages again.
func (s *Stream) visible(
	ctx context.Context, id readstate.ScopeID, stored map[readstate.ScopeID]bool,
) (bool, error) {
	parent, subscribed := s.parents[id]
	switch {
	case s.sub.Sessions: // nobody else has a row there, and it is never taken away
		return true, nil
	case !subscribed:
		return false, nil
	case s.sub.Trusted:
		return true, nil
	case parent != "":
		id = parent
	}
	if visible, known := s.sub.Workspace.Visible(s.sub.Members[0], id); known {
		return visible, nil
	}
	if visible, asked := stored[id]; asked {
		return visible, nil
	}
	_, err := s.sub.Workspace.Seen(ctx, s.sub.Members[0], id)
	if err != nil && !isUnknown(err) {
		return false, fmt.Errorf("%w: %w", errOverrun, err)
	}
	stored[id] = err == nil
	return err == nil, nil
}
