package tidemark

import (
	"sync"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// maxFeedBacklog bounds the message changes that wait for one slow reader. Beyond it the feed
// says that it has lost some, and the reader lists messages again.
const maxFeedBacklog = 256

// feeds hands committed message changes to those who watch a scope's messages.
type feeds struct {
	mu  sync.Mutex
	all map[readstate.WorkspaceID]map[*Feed]struct{}
}

func newFeeds() *feeds {
	return &feeds{all: map[readstate.WorkspaceID]map[*Feed]struct{}{}}
}

// Feed delivers the message changes of some scopes, in commit order. It is safe for concurrent
// use; Close it when done.
type Feed struct {
	feeds *feeds
	w     readstate.WorkspaceID
	ready chan struct{}

	mu      sync.Mutex
	scopes  map[readstate.ScopeID]struct{}
	owner   readstate.MemberID // whose sessions are watched, all of them; empty for none
	backlog []facts.MessageChange
	lost    bool
}

func (f *feeds) open(w readstate.WorkspaceID) *Feed {
	feed := &Feed{
		feeds: f, w: w, ready: make(chan struct{}, 1), scopes: map[readstate.ScopeID]struct{}{},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[w] == nil {
		f.all[w] = map[*Feed]struct{}{}
	}
	f.all[w][feed] = struct{}{}
	return feed
}

func (f *feeds) publish(w readstate.WorkspaceID, changes []facts.MessageChange) {
	if len(changes) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for feed := range f.all[w] {
		feed.offer(changes)
	}
}

func (f *feeds) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.all)
}

func (f *Feed) offer(changes []facts.MessageChange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news := false
	for _, c := range changes {
		if !f.watches(c.ScopeID) {
			continue
		}
		news = true
		if len(f.backlog) == maxFeedBacklog {
			f.backlog, f.lost = f.backlog[:0], true
		}
		f.backlog = append(f.backlog, c)
	}
	if news {
		select {
		case f.ready <- struct{}{}:
		default:
		}
	}
}

// watches reports that the feed has the changes of a scope. Under the lock.
func (f *Feed) watches(s readstate.ScopeID) bool {
	if _, ok := f.scopes[s]; ok || f.owner == "" {
		return ok
	}
	owner, _, ok := facts.SessionOf(s)
	return ok && owner == f.owner
}

// SubscribeSessions adds all sessions of a member, those to come included.
func (f *Feed) SubscribeSessions(owner readstate.MemberID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owner = owner
}

// Subscribe adds scopes to the feed. Whether the reader may see them is the caller's to check,
// when subscribing and again when delivering.
func (f *Feed) Subscribe(scopes ...readstate.ScopeID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range scopes {
		f.scopes[s] = struct{}{}
	}
}

// Unsubscribe takes scopes out of the feed.
func (f *Feed) Unsubscribe(scopes ...readstate.ScopeID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range scopes {
		delete(f.scopes, s)
	}
}

// Len returns how many scopes the feed watches.
func (f *Feed) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.scopes)
}

// Ready receives when Next has something to give.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Next returns what has come since the last call. Lost says that older changes were dropped.
func (f *Feed) Next() (changes []facts.MessageChange, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes, lost = f.backlog, f.lost
	f.backlog, f.lost = nil, false
	return changes, lost
}

// Close ends the feed.
func (f *Feed) Close() {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	delete(f.feeds.all[f.w], f)
	if len(f.feeds.all[f.w]) == 0 {
		delete(f.feeds.all, f.w)
	}
}
