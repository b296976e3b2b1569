package outbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Waiting is a wake as its reader gets it.
type Waiting struct {
	Key     facts.WakeKey // to be named by the next read
	ID      string        // as the header webhook-id
	Message Message
}

// Wakes returns the wakes that wait for an agent, those above after, at most limit (0 for
// MaxWakes). Naming a position acknowledges everything at or below it: it is gone for good. A
// position that was never given out is facts.ErrInvalid. Where there is nothing it waits, up to
// wait (at most MaxWait), and then answers with nothing. facts.ErrLimit means that too many
// readers wait.
//
// An agent with an endpoint may read, too, and acknowledges what need not be sent any more. An
// acknowledgement is recorded by Run.
func (b *Outbox) Wakes(
	ctx context.Context, w readstate.WorkspaceID, agent readstate.MemberID,
	after facts.WakeKey, wait time.Duration, limit int,
) ([]Waiting, error) {
	to, err := b.agent(ctx, w, agent)
	if err != nil {
		return nil, fmt.Errorf("wakes of %q: %w", agent, err)
	}
	if after > 0 {
		if err := b.acknowledge(ctx, to, after); err != nil {
			return nil, fmt.Errorf("acknowledge wakes of %q: %w", agent, err)
		}
	}
	if limit <= 0 || limit > MaxWakes {
		limit = MaxWakes
	}
	rings, err := b.readers.enter(to.recipient)
	if err != nil {
		return nil, fmt.Errorf("wakes of %q: %w", agent, err)
	}
	defer b.readers.leave(to.recipient, rings)
	patience := time.NewTimer(min(max(wait, 0), MaxWait))
	defer patience.Stop()
	for last := wait <= 0; ; {
		wakes, err := b.Store.Wakes(ctx, to.recipient, after, limit)
		if err != nil {
			return nil, fmt.Errorf("wakes of %q: %w", agent, err)
		}
		if len(wakes) > 0 || last {
			b.metrics.read.Add(uint64(len(wakes)))
			return waitingOf(wakes, agent), nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-patience.C:
			last = true // a last look: somebody else may have queued something
		case _, ok := <-rings:
			if !ok {
				return nil, ErrClosed
			}
		}
	}
}

func waitingOf(wakes []facts.Wake, agent readstate.MemberID) []Waiting {
	out := make([]Waiting, len(wakes))
	for i := range wakes {
		w := &wakes[i]
		out[i] = Waiting{Key: w.Key, ID: WakeID(&w.WakeRow), Message: message(w, string(agent))}
	}
	return out
}

// acknowledge drops what a reader has read.
func (b *Outbox) acknowledge(ctx context.Context, to addressee, after facts.WakeKey) error {
	row, _, err := b.Store.Endpoint(ctx, to.recipient)
	if err != nil {
		return err
	}
	if after > row.Last {
		return fmt.Errorf("%w: position %d was never given out", facts.ErrInvalid, after)
	}
	if row.Waiting == 0 {
		return nil
	}
	first, err := b.Store.Wakes(ctx, to.recipient, 0, 1)
	if err != nil || len(first) == 0 || first[0].Key > after {
		return err
	}
	return b.settler.ask(ctx, facts.WakeOutcome{Recipient: to.recipient, Through: after, Read: true})
}

// readers are those who wait for wakes.
type readers struct {
	mu     sync.Mutex
	most   int
	n      int
	all    map[facts.Recipient]map[chan struct{}]struct{}
	closed bool
}

func (r *readers) init(most int) {
	r.most, r.all = most, map[facts.Recipient]map[chan struct{}]struct{}{}
}

// enter adds a reader, whose channel receives when something was queued and is closed with the
// outbox.
func (r *readers) enter(to facts.Recipient) (chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, ErrClosed
	case r.n >= r.most:
		return nil, fmt.Errorf("%w: %d readers wait already", facts.ErrLimit, r.n)
	}
	rings := make(chan struct{}, 1)
	if r.all[to] == nil {
		r.all[to] = map[chan struct{}]struct{}{}
	}
	r.all[to][rings] = struct{}{}
	r.n++
	return rings, nil
}

func (r *readers) leave(to facts.Recipient, rings chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.all[to][rings]; !ok {
		return
	}
	delete(r.all[to], rings)
	if len(r.all[to]) == 0 {
		delete(r.all, to)
	}
	r.n--
}

// wake rings for recipients.
func (r *readers) wake(all []facts.Recipient) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, to := range all {
		for rings := range r.all[to] {
			select {
			case rings <- struct{}{}:
			default:
			}
		}
	}
}

func (r *readers) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	for _, list := range r.all {
		for rings := range list {
			close(rings)
		}
	}
	clear(r.all)
	r.n = 0
}

func (r *readers) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}
