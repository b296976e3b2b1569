package tidemark

import (
	"context"
	"slices"
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
	all map[readstate.WorkspaceID]map[readstate.MemberID][]*InboxFeed
}

// InboxFeed tells that inboxes of some members have changed: a hint to read their badges again, and
// nothing that could be counted. It is safe for concurrent use; Close it when done.
type InboxFeed struct {
	feeds *inboxFeeds
	w     readstate.WorkspaceID
	ready chan struct{}

	members []readstate.MemberID // under the lock of the feeds

	mu      sync.Mutex
	changed map[readstate.MemberID]struct{} // nil until something changes
}

// InboxFeed begins to watch inboxes. It costs no statement and checks nothing.
func (w *Workspace) InboxFeed(members ...readstate.MemberID) *InboxFeed {
	f := &InboxFeed{
		feeds: &w.engine.inboxFeeds, w: w.id, ready: make(chan struct{}, 1),
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
		for _, feed := range watched[c.ID] {
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
	if f.changed == nil {
		f.changed = map[readstate.MemberID]struct{}{}
	}
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
		f.feeds.all = map[readstate.WorkspaceID]map[readstate.MemberID][]*InboxFeed{}
	}
	if f.feeds.all[f.w] == nil {
		f.feeds.all[f.w] = map[readstate.MemberID][]*InboxFeed{}
	}
	watched := f.feeds.all[f.w]
	for _, m := range members {
		if !slices.Contains(watched[m], f) {
			watched[m] = append(watched[m], f)
			f.members = append(f.members, m)
		}
	}
}

// Unwatch takes members out.
func (f *InboxFeed) Unwatch(members ...readstate.MemberID) {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	f.members = slices.DeleteFunc(f.members, func(m readstate.MemberID) bool {
		return slices.Contains(members, m)
	})
	f.drop(members...)
}

// drop takes members out, under the lock of the feeds.
func (f *InboxFeed) drop(members ...readstate.MemberID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	watched := f.feeds.all[f.w]
	for _, m := range members {
		delete(f.changed, m)
		left := slices.DeleteFunc(watched[m], func(other *InboxFeed) bool { return other == f })
		if watched[m] = left; len(left) == 0 {
			delete(watched, m)
		}
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
	f.drop(f.members...)
	f.members = nil
}
