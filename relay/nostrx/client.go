package nostrx

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Limits of what a client does for its callers.
const (
	// MaxStored and MaxStoredBytes bound what one query collects.
	MaxStored      = 8192
	MaxStoredBytes = 8 << 20

	// Timeout bounds a query, a publication and a handshake, the time without a connection included.
	Timeout = 10 * time.Second

	firstDelay = time.Second
	maxDelay   = time.Minute
	steady     = 30 * time.Second // a connection that lived so long starts the delays anew

	maxSubscriptions = 32
)

// Errors of a client. Queries and publications end by them, or by a context's error.
var (
	ErrLost    = errors.New("the connection ended before the answer came")
	ErrClosed  = errors.New("the client is closed")
	ErrRefused = errors.New("the relay refused")
	ErrTooMuch = errors.New("the relay sends more than is taken")
)

// Receipt is a relay's word on a publication. Accepted is a receipt only: the event may have been
// replaced by then.
type Receipt struct {
	Accepted bool
	Reason   string // the relay's words
}

// Options are those of a Client. All but URL may be zero.
type Options struct {
	URL string // ws or wss, as the relay knows itself: it is part of the answer to a challenge
	Key *Key   // answers challenges; nil answers none

	HTTP *http.Client     // makes connections; a fresh one by default
	Now  func() time.Time // for events that are signed here; the system's clock by default
	// Backoff says how long to wait before the next connection, after so many that failed or ended
	// in a row; the delays of the package by default.
	Backoff func(failures int) time.Duration
	// OnConnect is called with nil after each handshake and with the error after each connection's
	// end, by one goroutine; it returns at once.
	OnConnect func(err error)
}

// Client holds one WebSocket connection to a relay, and makes it anew when it ends: after a second,
// and after twice as long each time, up to a minute, with jitter. It is safe for concurrent use.
type Client struct {
	options Options
	cancel  context.CancelFunc
	done    chan struct{}
	refused atomic.Int64
	next    atomic.Int64 // number of the next request

	mu      sync.Mutex
	conn    *conn         // nil while there is none
	changed chan struct{} // closed when conn changes
	live    map[string]*Subscription
	closed  bool
}

// Open starts a client. It lives until the context ends or Close is called, and makes its first
// connection in the background.
func Open(ctx context.Context, o Options) (*Client, error) {
	address, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("relay address: %w", err)
	}
	if address.Scheme != "ws" && address.Scheme != "wss" || address.Host == "" || address.User != nil {
		return nil, fmt.Errorf("relay address: want ws:// or wss:// and a host, got scheme %q", address.Scheme)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnConnect == nil {
		o.OnConnect = func(error) {}
	}
	if o.Backoff == nil {
		o.Backoff = backoff
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &Client{
		options: o, cancel: cancel, done: make(chan struct{}),
		changed: make(chan struct{}), live: make(map[string]*Subscription),
	}
	go c.run(ctx)
	return c, nil
}

// Close ends the connection and everything that waits, and returns when nothing runs any more.
func (c *Client) Close() {
	c.cancel()
	<-c.done
}

// Refused returns how many frames and events were dropped: malformed, forged, too large, or not
// asked for.
func (c *Client) Refused() int64 { return c.refused.Load() }

// run makes one connection after the other.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	defer c.finish()
	for failures := 0; ctx.Err() == nil; {
		begun := time.Now()
		err := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		c.options.OnConnect(err)
		if time.Since(begun) >= steady {
			failures = 0
		}
		timer := time.NewTimer(c.options.Backoff(failures))
		failures++
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// backoff returns how long to wait after so many failures in a row: between half and all of a time
// that doubles, so that clients of a relay that restarts do not come all at once.
func backoff(failures int) time.Duration {
	full := maxDelay
	if failures < 6 {
		full = min(firstDelay<<failures, maxDelay)
	}
	return full/2 + rand.N(full/2+1)
}

// connect makes a connection, opens what is live on it, and serves it to its end.
func (c *Client) connect(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, Timeout)
	ws, _, err := websocket.Dial(limited, c.options.URL, &websocket.DialOptions{ //nolint:bodyclose // Dial's own
		HTTPClient: c.options.HTTP,
	})
	cancel()
	if err != nil {
		return err
	}
	conn := newConn(c, ws)
	served := make(chan error, 1)
	var reader sync.WaitGroup
	reader.Go(func() { served <- conn.serve(ctx) })
	c.options.OnConnect(nil)
	for _, s := range c.install(conn) {
		if conn.listen(ctx, s.id, s) != nil {
			break // the reader has noticed
		}
	}
	err = <-served
	reader.Wait()
	c.install(nil)
	return err
}

// install makes a connection the current one and returns the subscriptions to open on it.
func (c *Client) install(conn *conn) []*Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	close(c.changed)
	c.changed = make(chan struct{})
	var subs []*Subscription
	for _, s := range c.live {
		subs = append(subs, s)
	}
	return subs
}

// finish ends everything that still waits for a connection.
func (c *Client) finish() {
	c.mu.Lock()
	c.closed = true
	live := c.live
	c.live = nil
	close(c.changed)
	c.mu.Unlock()
	for _, s := range live {
		s.end(ErrEnded)
	}
}

// current waits for a connection.
func (c *Client) current(ctx context.Context) (*conn, error) {
	for {
		c.mu.Lock()
		conn, changed, closed := c.conn, c.changed, c.closed
		c.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case conn != nil && !conn.isLost():
			return conn, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Client) waitingForAuth() []*Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	var waiting []*Subscription
	for _, s := range c.live {
		if s.isWaiting() {
			waiting = append(waiting, s)
		}
	}
	return waiting
}

func (c *Client) requestID() string { return "t" + strconv.FormatInt(c.next.Add(1), 10) }

// Subscribe opens a subscription that lasts until it is closed. It need not wait for a connection.
func (c *Client) Subscribe(ctx context.Context, filters ...Filter) (*Subscription, error) {
	s := &Subscription{client: c, id: c.requestID(), filters: filters, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	if len(c.live) >= maxSubscriptions {
		c.mu.Unlock()
		return nil, fmt.Errorf("%w: %d subscriptions are open", ErrTooMuch, maxSubscriptions)
	}
	c.live[s.id] = s
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		// What fails here has ended the connection, and the next one opens it.
		_ = conn.listen(ctx, s.id, s)
	}
	return s, nil
}

// drop closes a subscription.
func (c *Client) drop(s *Subscription) {
	c.mu.Lock()
	_, known := c.live[s.id]
	delete(c.live, s.id)
	conn := c.conn
	c.mu.Unlock()
	s.end(ErrEnded)
	if known && conn != nil {
		conn.forget(context.Background(), s.id)
	}
}
