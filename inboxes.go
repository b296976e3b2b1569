package tidemark

import (
	"context"
	"sync"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// SendInbox sends a text to a member's inbox. The receipt's Seq is the position there.
func (w *Workspace) SendInbox(ctx context.Context, op facts.SendInbox) (facts.Receipt, error) {
	return w.engine.lane.SendInbox(ctx, w.id, op)
}

// inboxFeeds hands news of inboxes to those who watch them.
type inboxFeeds struct {
	mu  sync.Mutex
	all map[readstate.WorkspaceID]map[readstate.MemberID]map[*InboxFeed]struct{}
}

// InboxFeed tells that inboxes of some members have changed: a hint to read their badges again, and
// nothing that could be counted. It is safe for concurrent use; Close it when done.
type InboxFeed struct {
	feeds *inboxFeeds
	w     readstate.WorkspaceID
	ready chan struct{}

	mu      sync.Mutex
	members map[readstate.MemberID]struct{}
	changed map[readstate.MemberID]struct{}
}

// InboxFeed begins to watch inboxes. It costs no statement and checks nothing.
func (w *Workspace) InboxFeed(members ...readstate.MemberID) *InboxFeed {
	f := &InboxFeed{
		feeds: &w.engine.inboxFeeds, w: w.id, ready: make(chan struct{}, 1),
		members: map[readstate.MemberID]struct{}{}, changed: map[readstate.MemberID]struct{}{},
	}
	f.Watch(members...)
	return f
}

func (f *inboxFeeds) publish(w readstate.WorkspaceID, changes []facts.InboxChange) {
	if len(changes) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	watched := f.all[w]
	if len(watched) == 0 {
		return
	}
	for _, c := range changes {
		for feed := range watched[c.ID] {
			feed.offer(c.ID)
		}
	}
}

func (f *inboxFeeds) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.all)
}

func (f *InboxFeed) offer(m readstate.MemberID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed[m] = struct{}{}
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// Watch adds members.
func (f *InboxFeed) Watch(members ...readstate.MemberID) {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	if f.feeds.all == nil {
		f.feeds.all = map[readstate.WorkspaceID]map[readstate.MemberID]map[*InboxFeed]struct{}{}
	}
	if f.feeds.all[f.w] == nil {
		f.feeds.all[f.w] = map[readstate.MemberID]map[*InboxFeed]struct{}{}
	}
	watched := f.feeds.all[f.w]
	for _, m := range members {
		if watched[m] == nil {
			watched[m] = map[*InboxFeed]struct{}{}
		}
		watched[m][f] = struct{}{}
		f.mu.Lock()
		f.members[m] = struct{}{}
		f.mu.Unlock()
	}
}

// Unwatch takes members out.
func (f *InboxFeed) Unwatch(members ...readstate.MemberID) {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range members {
		f.drop(m)
	}
}

// drop takes a member out, under both locks.
func (f *InboxFeed) drop(m readstate.MemberID) {
	delete(f.members, m)
	delete(f.changed, m)
	watched := f.feeds.all[f.w]
	delete(watched[m], f)
	if len(watched[m]) == 0 {
		delete(watched, m)
	}
	if len(watched) == 0 {
		delete(f.feeds.all, f.w)
	}
}

// Ready receives when Next has something to give.
func (f *InboxFeed) Ready() <-chan struct{} { return f.ready }

// Next returns the members whose inboxes have changed since the last call, in no order.
func (f *InboxFeed) Next() []readstate.MemberID {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]readstate.MemberID, 0, len(f.changed))
	for m := range f.changed {
		out = append(out, m)
	}
	clear(f.changed)
	return out
}

// Close ends the feed.
func (f *InboxFeed) Close() {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for m := range f.members {
		f.drop(m)
	}
}
