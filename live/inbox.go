package live

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// hints tells which inboxes have changed since the last time, however often. A hint is all it is:
// whoever misses one reads the same badge.
func (s *Stream) hints(ctx context.Context) error {
	changed := s.inbox.Next()
	for _, m := range changed {
		var hint InboxHint
		if s.sub.Many {
			if _, still := s.members[m]; !still {
				continue
			}
			hint.Member = string(m)
		}
		if len(changed) <= deltasAtOnce { // more would keep the stream from everything else
			hint.Badge = s.sub.Inbox(ctx, m)
		}
		if err := s.write(ctx, Frame{Event: EventInbox, Data: hint}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stream) inboxReady() <-chan struct{} {
	if s.inbox == nil {
		return nil
	}
	return s.inbox.Ready()
}

// followInbox begins to listen for members.
func (s *Stream) followInbox(members ...readstate.MemberID) {
	if s.inbox != nil {
		s.inbox.Watch(members...)
	}
}
