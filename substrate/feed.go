package substrate

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Change is a dot that is another one now. Where it is not Known, the Dot has its Key alone.
type Change struct {
	Dot   Dot
	Known bool
}

// Feed follows some dots. A slow reader of it gets the newest dot of each key, so that what waits is
// bounded by its keys. Close it when done.
type Feed struct {
	reader *Reader
	ready  chan struct{}
	keys   []Key // each once; they never change

	mu    sync.Mutex
	last  map[Key]Change   // by key
	owed  map[Key]struct{} // keys that Next returns
	order []Key            // of owed
}

// Follow begins to follow dots. What is known of them comes first. It hears of changes for as long as
// Run runs. ErrBudget means that the process follows too many.
func (r *Reader) Follow(ctx context.Context, keys ...Key) (*Feed, error) {
	feed, err := r.follow(keys)
	if err != nil {
		return nil, err
	}
	r.refill(ctx, keys)
	return feed, nil
}

func (r *Reader) follow(keys []Key) (*Feed, error) {
	f := &Feed{
		reader: r, ready: make(chan struct{}, 1), last: map[Key]Change{}, owed: map[Key]struct{}{},
	}
	for _, k := range keys {
		if _, twice := f.last[k]; !twice {
			f.keys = append(f.keys, k)
		}
		f.last[k] = Change{Dot: Dot{Key: k}}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.followed+len(f.keys) > r.opts.Limits.Keys {
		r.refused.Add(uint64(len(f.keys)))
		return nil, fmt.Errorf("follow %d dots: %w", len(f.keys), ErrBudget)
	}
	r.followed += len(f.keys)
	r.feeds[f] = struct{}{}
	return f, nil
}

// Close ends the feed. It is safe to call twice.
func (f *Feed) Close() {
	r := f.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.feeds[f]; open {
		delete(r.feeds, f)
		r.followed -= len(f.keys)
	}
}

// Ready receives when Next has something to give.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Next returns what has changed since the last call, each dot once, as it is now.
func (f *Feed) Next() []Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Change, len(f.order))
	for i, k := range f.order {
		out[i] = f.last[k]
	}
	f.order = nil
	clear(f.owed)
	return out
}

func (f *Feed) offer(c Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, follows := f.last[c.Dot.Key]
	switch {
	case !follows, last == c, c.Known && last.Dot.Term > 0 && !c.Dot.Supersedes(&last.Dot):
		return
	case !c.Known: // the term stays, so that what was known before does not come back
		c.Dot.Term, c.Dot.LSN = last.Dot.Term, last.Dot.LSN
		if last == c {
			return
		}
	}
	f.last[c.Dot.Key] = c
	if _, waits := f.owed[c.Dot.Key]; !waits {
		f.owed[c.Dot.Key] = struct{}{}
		f.order = append(f.order, c.Dot.Key)
	}
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// open returns the feeds of this moment.
func (r *Reader) open() []*Feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*Feed, 0, len(r.feeds))
	for f := range r.feeds {
		out = append(out, f)
	}
	return out
}

// all returns the keys of all feeds.
func (r *Reader) all() []Key {
	seen := map[Key]struct{}{}
	var out []Key
	for _, f := range r.open() {
		for _, k := range f.keys {
			if _, twice := seen[k]; !twice {
				seen[k] = struct{}{}
				out = append(out, k)
			}
		}
	}
	return out
}

func (r *Reader) hear(dots []Dot) {
	for _, f := range r.open() {
		for i := range dots {
			f.offer(Change{Dot: dots[i], Known: true})
		}
	}
}

// lost tells all feeds that nothing is known any more.
func (r *Reader) lost() {
	for _, f := range r.open() {
		for _, k := range f.keys {
			f.offer(Change{Dot: Dot{Key: k}})
		}
	}
}

// again says everything again that was said to a store that may have lost it, and reads what it has. It
// reports that it could: what is published meanwhile is heard, and what was before is not said twice.
func (r *Reader) again(ctx context.Context) bool {
	r.mu.Lock()
	clear(r.asked)
	r.mu.Unlock()
	return r.refill(ctx, r.all())
}

func (r *Reader) renew(ctx context.Context) {
	for part := range slices.Chunk(r.all(), batch) {
		exchange, cancel := context.WithTimeout(ctx, r.opts.Limits.Timeout)
		r.want(exchange, part)
		cancel()
	}
}

// refill wants dots and tells the feeds of those that are there.
func (r *Reader) refill(ctx context.Context, keys []Key) bool {
	for part := range slices.Chunk(keys, batch) {
		exchange, cancel := context.WithTimeout(ctx, r.opts.Limits.Timeout)
		r.want(exchange, part)
		dots, err := r.opts.Store.Read(exchange, part)
		cancel()
		if err != nil {
			r.failed.Add(1)
			return false
		}
		r.hear(dots)
	}
	return true
}
