package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// ErrClosed means that the outbox does not work any more.
var ErrClosed = errors.New("outbox closed")

// Outbox works off what facts have to cause. It is safe for concurrent use. New starts nothing:
// Run does the work, in one call at a time, and Close ends it.
type Outbox struct {
	Options
	client  *http.Client
	streams streams
	fresh   freshSet
	rows    signal // rows may be due
	sends   signal // queues may be due
	senders *senders
	readers readers
	settler *settler
	hooks   *hookSet
	metrics metrics

	mu     sync.Mutex
	closed chan struct{} // closed by Close
	ended  chan struct{} // closed when Run has ended; nil before it
}

// New checks the options and makes an outbox.
func New(o Options) (*Outbox, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Outbox{
		Options: o, rows: newSignal(), sends: newSignal(), closed: make(chan struct{}),
	}
	b.client = newClient(o.Network, o.Limits)
	b.senders = newSenders(b)
	b.readers.init(o.Limits.Readers)
	b.settler = newSettler(b)
	b.hooks = newHookSet(b)
	return b, nil
}

// Run works until ctx ends or Close is called, and returns once every goroutine has ended. It
// lets requests under way finish, for a while. Work that is not finished is taken up by the next
// Run, in this process or another.
func (b *Outbox) Run(ctx context.Context) error {
	b.mu.Lock()
	select {
	case <-b.closed:
		b.mu.Unlock()
		return ErrClosed
	default:
	}
	if b.ended != nil {
		b.mu.Unlock()
		return errors.New("outbox: Run was called before")
	}
	ended := make(chan struct{})
	b.ended = ended
	b.mu.Unlock()
	defer close(ended)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	release := context.AfterFunc(ctx, func() { b.readers.close() })
	defer release()
	var work, last sync.WaitGroup
	work.Go(func() {
		select {
		case <-b.closed:
			stop()
		case <-ctx.Done():
		}
	})
	// What is settled last is what the others leave behind.
	settle, settled := context.WithCancel(context.WithoutCancel(ctx))
	last.Go(func() { b.settler.run(settle) })
	work.Go(func() { b.rowLoop(ctx) })
	work.Go(func() { b.sendLoop(ctx) })
	work.Go(func() { b.hooks.run(ctx) })
	work.Go(func() { b.upkeepLoop(ctx) })
	work.Wait()
	settled()
	last.Wait()
	b.client.CloseIdleConnections()
	return nil
}

// Close ends Run and waits for its end. What was asked of the outbox before may still fail with
// ErrClosed. It is safe to call twice.
func (b *Outbox) Close() {
	b.mu.Lock()
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	ended := b.ended
	b.mu.Unlock()
	b.readers.close()
	if ended != nil {
		<-ended
	}
}

// Poke says that a workspace has new rows. Call it after the commit that wrote them has been
// applied. It costs next to nothing, and one that is forgotten is made up for within a while.
func (b *Outbox) Poke(w facts.WorkspaceKey) {
	b.fresh.add(w)
	b.rows.set()
}

// now is the present in milliseconds.
func (b *Outbox) now() int64 { return b.Now().UnixMilli() }

// lease makes a lease that begins now.
func (b *Outbox) lease() facts.Lease {
	return facts.Lease{
		Owner: b.Owner, Token: rand.Uint64()>>1 | 1, Until: b.now() + b.Limits.LeaseFor.Milliseconds(),
	}
}

// signal is a flag that can be waited for.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) set() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// freshSet is the set of workspaces that may have rows nobody has looked at, in the order in which
// they came.
type freshSet struct {
	mu    sync.Mutex
	in    map[facts.WorkspaceKey]struct{}
	order []facts.WorkspaceKey
}

func (f *freshSet) add(all ...facts.WorkspaceKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range all {
		if _, ok := f.in[w]; ok {
			continue
		}
		if f.in == nil {
			f.in = map[facts.WorkspaceKey]struct{}{}
		}
		f.in[w] = struct{}{}
		f.order = append(f.order, w)
	}
}

// take removes up to n workspaces, those first that came first.
func (f *freshSet) take(n int) []facts.WorkspaceKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = min(n, len(f.order))
	out := append([]facts.WorkspaceKey(nil), f.order[:n]...)
	f.order = f.order[n:]
	if len(f.order) == 0 {
		f.order = nil
	}
	for _, w := range out {
		delete(f.in, w)
	}
	return out
}

// until returns a timer that rings when the clock of the outbox reaches at, at most after most.
func (b *Outbox) until(at int64, most time.Duration) *time.Timer {
	wait := most
	if at > 0 {
		wait = min(most, max(0, time.Duration(at-b.now())*time.Millisecond))
	}
	return time.NewTimer(wait)
}
