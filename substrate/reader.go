package substrate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// ReaderOptions configures a reader. Store is required.
type ReaderOptions struct {
	Store  Store
	Limits Limits
}

// Reader shows dots of workspaces that are served elsewhere. It is safe for concurrent use.
type Reader struct {
	opts ReaderOptions
	anew chan struct{} // the store may have lost everything

	mu       sync.Mutex
	asked    map[Key]time.Time // when it was last said that a dot is wanted
	feeds    map[*Feed]struct{}
	followed int // keys of all feeds

	found, missing, failed, refused atomic.Uint64
}

// ReaderStats is what a reader has done since it was made, and what it holds now.
type ReaderStats struct {
	Found    uint64 // dots of lists that were known
	Missing  uint64 // and those that were not
	Failed   uint64 // exchanges with the store that failed
	Refused  uint64 // wishes beyond a limit
	Followed int    // dots that feeds follow now
}

// NewReader makes a reader that listens to nobody yet.
func NewReader(opts ReaderOptions) (*Reader, error) {
	if opts.Store == nil {
		return nil, errors.New("substrate: Store is required")
	}
	opts.Limits.defaults()
	return &Reader{
		opts: opts, anew: make(chan struct{}, 1), asked: map[Key]time.Time{}, feeds: map[*Feed]struct{}{},
	}, nil
}

// Stats returns the reader's figures.
func (r *Reader) Stats() ReaderStats {
	r.mu.Lock()
	followed := r.followed
	r.mu.Unlock()
	return ReaderStats{
		Found: r.found.Load(), Missing: r.missing.Load(), Failed: r.failed.Load(),
		Refused: r.refused.Load(), Followed: followed,
	}
}

// Run hears what is published until ctx ends, and renews what feeds want.
func (r *Reader) Run(ctx context.Context) {
	var listening sync.WaitGroup
	listening.Go(func() {
		ear := Ear{Begun: r.begun, Dots: r.hear}
		keepListening(ctx, r.opts.Store, r.opts.Limits.Every, ear, r.lost)
	})
	defer listening.Wait()
	ticker := time.NewTicker(min(r.opts.Limits.Keep/3, r.opts.Limits.Every))
	defer ticker.Stop()
	behind := false // what the store has was not read since it was found again
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.anew:
			behind = !r.again(ctx)
		case <-ticker.C:
			if behind {
				behind = !r.again(ctx)
			} else {
				r.renew(ctx)
			}
		}
	}
}

func (r *Reader) begun() {
	select {
	case r.anew <- struct{}{}:
	default:
	}
}

// Dots returns the dots of one member in some workspaces, those that are known. Where nobody wanted one
// of them lately it waits a moment for the owner. Every failure is a dot that is not known.
func (r *Reader) Dots(
	ctx context.Context, m readstate.MemberID, spaces []readstate.WorkspaceID,
) map[readstate.WorkspaceID]Dot {
	out := make(map[readstate.WorkspaceID]Dot, len(spaces))
	patience := time.Now().Add(r.opts.Limits.Patience) // for all of them together
	for len(spaces) > 0 {
		n := min(batch, len(spaces))
		keys := make([]Key, n)
		for i, w := range spaces[:n] {
			keys[i] = Key{w, m}
		}
		failed := r.failed.Load()
		r.dots(ctx, keys, patience, out)
		if spaces = spaces[n:]; r.failed.Load() > failed {
			r.missing.Add(uint64(len(spaces))) // the store would fail again
			break
		}
	}
	return out
}

func (r *Reader) dots(
	ctx context.Context, keys []Key, patience time.Time, out map[readstate.WorkspaceID]Dot,
) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Limits.Timeout)
	defer cancel()
	fresh := r.want(ctx, keys)
	missing := r.read(ctx, keys, out)
	if fresh && len(missing) > 0 {
		r.await(ctx, missing, patience, out)
		missing = r.read(ctx, missing, out)
	}
	r.found.Add(uint64(len(keys) - len(missing)))
	r.missing.Add(uint64(len(missing)))
}

// read fills in what is known and returns the rest.
func (r *Reader) read(
	ctx context.Context, keys []Key, out map[readstate.WorkspaceID]Dot,
) (missing []Key) {
	dots, err := r.opts.Store.Read(ctx, keys)
	if err != nil {
		r.failed.Add(1)
		return keys
	}
	for i := range dots {
		out[dots[i].Workspace] = dots[i]
	}
	for _, k := range keys {
		if _, known := out[k.Workspace]; !known {
			missing = append(missing, k)
		}
	}
	return missing
}

// await waits until dots that were asked for the first time have come, or until a time.
func (r *Reader) await(
	ctx context.Context, keys []Key, until time.Time, out map[readstate.WorkspaceID]Dot,
) {
	feed, err := r.follow(keys)
	if err != nil {
		return
	}
	defer feed.Close()
	patience := time.NewTimer(time.Until(until))
	defer patience.Stop()
	for left := len(keys); left > 0; {
		// It may have been written between the first read and the feed.
		if left = len(r.read(ctx, keys, out)); left == 0 {
			return
		}
		select {
		case <-feed.Ready():
		case <-patience.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// want says that dots are wanted, unless it was said lately. Fresh reports that it was said of one.
func (r *Reader) want(ctx context.Context, keys []Key) (fresh bool) {
	now := time.Now()
	var due []Key
	r.mu.Lock()
	if len(r.asked)+len(keys) > r.opts.Limits.Keys {
		r.forget(now)
	}
	for _, k := range keys {
		last, known := r.asked[k]
		switch {
		case known && now.Sub(last) < r.opts.Limits.Keep/3:
			continue
		case !known && len(r.asked) >= r.opts.Limits.Keys:
			r.refused.Add(1)
			continue
		}
		fresh = fresh || !known || now.Sub(last) >= r.opts.Limits.Keep
		r.asked[k] = now
		due = append(due, k)
	}
	r.mu.Unlock()
	if len(due) == 0 {
		return false
	}
	refused, err := r.opts.Store.Want(ctx, due, r.opts.Limits.Keep)
	r.refused.Add(uint64(refused))
	if err == nil {
		return fresh
	}
	r.failed.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range due {
		delete(r.asked, k) // nobody has heard it
	}
	return false
}

// forget drops what nobody has asked for lately. Under the lock.
func (r *Reader) forget(now time.Time) {
	for k, last := range r.asked {
		if now.Sub(last) >= r.opts.Limits.Keep {
			delete(r.asked, k)
		}
	}
}
