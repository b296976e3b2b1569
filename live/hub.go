package live

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Limits and intervals of streams, each the default of an option.
const (
	// DefaultHeartbeat is short enough for proxies that close connections after 30 s of silence.
	DefaultHeartbeat = 25 * time.Second
	// DefaultWriteTimeout is how long one frame may take to leave the process.
	DefaultWriteTimeout = 10 * time.Second
	// DefaultRetry is how long a stream waits before it asks again for values that could not be
	// shown.
	DefaultRetry = time.Second
	// DefaultPageRows is the number of scopes in one page of a snapshot.
	DefaultPageRows = 100
	// MaxMembers bounds the members of one stream.
	MaxMembers = 10_000
	// MaxScopes bounds the scopes whose messages one stream carries.
	MaxScopes = 100
	// deltasAtOnce bounds what is taken for writing: what is taken is not coalesced any more.
	deltasAtOnce = 16
)

// ErrDraining means that the process is about to end and opens no more streams.
var ErrDraining = errors.New("draining")

// Clock is time as streams see it.
type Clock interface {
	Now() time.Time
	// NewTimer returns a channel that receives once after d, and a function that stops it.
	NewTimer(d time.Duration) (<-chan time.Time, func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Options configures a hub. The zero value of each field is its documented default.
type Options struct {
	Heartbeat    time.Duration
	WriteTimeout time.Duration
	Retry        time.Duration
	PageRows     int
	Clock        Clock         // nil: the system's
	NewID        func() string // connection ids; nil: random
	Log          *slog.Logger  // nil: nothing is logged
}

func (o *Options) defaults() {
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = DefaultWriteTimeout
	}
	if o.Retry <= 0 {
		o.Retry = DefaultRetry
	}
	if o.PageRows <= 0 {
		o.PageRows = DefaultPageRows
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.NewID == nil {
		o.NewID = randomID
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func randomID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails; see crypto/rand
	return hex.EncodeToString(b[:])
}

// Hub knows the streams of the process. It is safe for concurrent use.
type Hub struct {
	opts Options

	mu       sync.Mutex
	draining chan struct{} // closed by Drain
	closed   bool
	open     sync.WaitGroup

	couriers couriers
	counts   counts
}

// counts is what Stats reports.
type counts struct {
	streams   atomic.Int64
	opened    atomic.Uint64
	resumed   atomic.Uint64
	frames    atomic.Uint64
	snapshots atomic.Uint64
	slow      atomic.Uint64
	lost      atomic.Uint64
	expired   atomic.Uint64
	moved     atomic.Uint64
}

// Stats is what a hub has done since it was made, and what it holds now.
type Stats struct {
	Streams   int64  // open now
	Opened    uint64 // streams
	Resumed   uint64 // streams that went on without a snapshot
	Frames    uint64 // written, heartbeats left out
	Snapshots uint64 // pages written
	Slow      uint64 // streams ended because the client did not read
	Lost      uint64 // streams ended because message changes had to be dropped
	Expired   uint64 // streams ended with their token
	Moved     uint64 // streams ended because their workspace is served elsewhere
}

// NewHub makes a hub without streams.
func NewHub(opts Options) *Hub {
	opts.defaults()
	h := &Hub{opts: opts, draining: make(chan struct{})}
	h.couriers.init()
	return h
}

// Options returns the options in force, with their defaults.
func (h *Hub) Options() Options { return h.opts }

// Stats returns the hub's figures.
func (h *Hub) Stats() Stats {
	c := &h.counts
	return Stats{
		Streams: c.streams.Load(), Opened: c.opened.Load(), Resumed: c.resumed.Load(),
		Frames: c.frames.Load(), Snapshots: c.snapshots.Load(), Slow: c.slow.Load(), Lost: c.lost.Load(),
		Expired: c.expired.Load(), Moved: c.moved.Load(),
	}
}

// enter registers a stream; ErrDraining once the hub drains.
func (h *Hub) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrDraining
	}
	h.open.Add(1)
	h.counts.streams.Add(1)
	h.counts.opened.Add(1)
	return nil
}

func (h *Hub) leave() {
	h.counts.streams.Add(-1)
	h.open.Done()
}

// Drain refuses new streams, tells every open one to end and waits for them. When ctx ends
// first it returns its error; the streams are on their way out all the same. Streams that have
// taken their connection over end by this alone, not by a Close or Shutdown of the HTTP server.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.draining)
	}
	h.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends with the last stream, each of which was told to end
		h.open.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
