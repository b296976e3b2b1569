package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// hookSet runs a watcher for every webhook of this process.
type hookSet struct {
	b       *Outbox
	mu      sync.Mutex
	stale   map[facts.WebhookKey]struct{} // changed since they were looked at
	news    signal
	running map[facts.WebhookKey]*hookRun // owned by run, but for its size
	n       int
}

// hookRun is a watcher under way.
type hookRun struct {
	stop  context.CancelFunc
	ended chan struct{}
}

func newHookSet(b *Outbox) *hookSet {
	return &hookSet{
		b: b, news: newSignal(), stale: map[facts.WebhookKey]struct{}{},
		running: map[facts.WebhookKey]*hookRun{},
	}
}

// changed has a webhook looked at again.
func (s *hookSet) changed(key facts.WebhookKey) {
	s.mu.Lock()
	s.stale[key] = struct{}{}
	s.mu.Unlock()
	s.news.set()
}

func (s *hookSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// run keeps a watcher for every webhook until ctx ends, and then ends them.
func (s *hookSet) run(ctx context.Context) {
	if s.b.Badges == nil {
		return
	}
	defer func() {
		for key := range s.running {
			s.end(key)
		}
	}()
	for failed := 0; !s.all(ctx); failed++ {
		if !s.b.pause(ctx, backoff(s.b.Rand, storeRetryFirst, storeRetryMost, failed)) {
			return
		}
	}
	for failed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
		}
		if s.refresh(ctx) {
			failed = 0
			continue
		}
		failed++
		s.b.pause(ctx, backoff(s.b.Rand, storeRetryFirst, storeRetryMost, failed))
		s.news.set()
	}
}

// all begins with every webhook of the workspaces that this process owns.
func (s *hookSet) all(ctx context.Context) bool {
	const page = 16
	for after := facts.WebhookKey(0); ; {
		rows, err := s.b.Store.Webhooks(ctx, 0, after, page)
		if err != nil {
			s.b.complain(ctx, "loading webhooks failed", err)
			return false
		}
		for i := range rows {
			s.begin(ctx, rows[i])
		}
		if len(rows) < page {
			return true
		}
		after = rows[len(rows)-1].Key
	}
}

// refresh looks at the webhooks that have changed.
func (s *hookSet) refresh(ctx context.Context) bool {
	s.mu.Lock()
	stale := s.stale
	s.stale = map[facts.WebhookKey]struct{}{}
	s.mu.Unlock()
	well := true
	for key := range stale {
		s.end(key)
		rows, err := s.b.Store.Webhooks(ctx, key.Recipient().Workspace(), key-1, 1)
		if err != nil {
			s.b.complain(ctx, "loading a webhook failed", err)
			s.mu.Lock()
			s.stale[key] = struct{}{}
			s.mu.Unlock()
			well = false
			continue
		}
		if len(rows) == 1 && rows[0].Key == key {
			s.begin(ctx, rows[0])
		}
	}
	return well
}

// begin starts a watcher unless there is one, the webhook is disabled or somebody else's, or there
// are too many.
func (s *hookSet) begin(ctx context.Context, row facts.WebhookRow) {
	_, owned := s.b.Terms(row.Workspace)
	if s.running[row.Key] != nil || row.Endpoint.Disabled || !owned {
		return
	}
	if len(s.running) >= s.b.Limits.AllWebhooks {
		s.b.Log.Error("a webhook is not watched: there are too many", "webhook", row.ID,
			"most", s.b.Limits.AllWebhooks)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	r := &hookRun{stop: stop, ended: make(chan struct{})}
	s.running[row.Key] = r
	s.size()
	w := newWatcher(s.b, row)
	go func() {
		defer close(r.ended)
		w.run(ctx)
	}()
}

func (s *hookSet) size() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n = len(s.running)
}

// end stops a watcher and waits for it.
func (s *hookSet) end(key facts.WebhookKey) {
	r := s.running[key]
	if r == nil {
		return
	}
	r.stop()
	<-r.ended
	delete(s.running, key)
	s.size()
}

// pauseOf is how long a watcher waits for what is to come; a year for nothing.
func pauseOf(now, at int64) time.Duration {
	if at == 0 {
		return 365 * 24 * time.Hour
	}
	return max(0, time.Duration(at-now)*time.Millisecond)
}
