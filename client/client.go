package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// Token returns the token to send. It is called before every request, and should answer from
// memory while its token is good. It must not call the client.
type Token func(ctx context.Context) (string, error)

// Options are what most callers leave alone; the zero value of each field is its default.
type Options struct {
	// HTTP sends the requests. Redirects are not followed. Default: a client of its own.
	HTTP *http.Client
	// RequestTimeout bounds every request but the stream. Default: 30 s.
	RequestTimeout time.Duration
	// OnEvent is told what happens. Default: nobody is.
	OnEvent func(Event)
	// Log takes what is worth knowing when something does not work. Default: nothing does.
	Log *slog.Logger
	// Clock is time; default: the system's. Random is from 0 up to 1, for delays; default:
	// math/rand. NewID names operations; default: random UUIDs.
	Clock  Clock
	Random func() float64
	NewID  func() string

	onStep func(step string) // tests stop the process in between
	noSync bool              // tests end the process and never the machine
	own    bool              // nobody else uses the connections of HTTP
}

// Client keeps one member's sessions on one server. Its methods are safe for concurrent use.
type Client struct {
	opts   Options
	base   string // of all addresses, without a slash at the end
	token  Token
	store  *store
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	auth   identity

	// turns go to the one goroutine that changes the outbox, so that the file and the memory take
	// the same changes in the same order.
	turns   chan *turn
	closing sync.Once

	mu       sync.Mutex
	closed   bool
	outbox   readsync.Outbox
	restored bool
	sessions map[string]*session
	// early is what answers to operations of an earlier run say of sessions that were not listed yet:
	// what was read then must not be shown as unread by a list that is older than the answer.
	early      map[string]readsync.State
	tick       uint64 // counts events of the stream
	listed     bool
	gaps       uint64 // how often something may have been missed that the list has
	filled     uint64 // how many of them the last loading of the list has filled
	departures departures
	// unresolved are sessions of which the server has to say what became of them.
	unresolved []string
	windows    map[*Window]struct{}
	holds      holds
	status     Status

	hub   hub
	inbox readsync.Inbox

	sendWake   chan struct{}
	listWake   chan struct{}
	streamWake chan struct{}
	scopesWake chan struct{}
	events     events
}

var (
	// ErrClosed means that the client was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrNotReady means that the server has not told the namespace yet.
	ErrNotReady = errors.New("the server has not been reached yet")
	// ErrNamespace means that a token is of another namespace than the client.
	ErrNamespace = errors.New("the token is of another namespace")
	// ErrInUse means that another Client, of this process or another, uses the file.
	ErrInUse = errors.New("the file is in use")
	// ErrUnknownSession means that the server has not told of the session.
	ErrUnknownSession = errors.New("unknown session")
)

// Open returns a client of the server at an address, with the outbox in the SQLite file at a path,
// which is made where there is none. It does not wait for the server: operations of an earlier run
// are sent once the server has told whose they are. Its errors are those of the address and of the
// file. The context ends with Open.
func Open(ctx context.Context, baseURL string, token Token, storePath string) (*Client, error) {
	return OpenWith(ctx, baseURL, token, storePath, Options{})
}

// OpenWith is Open with options.
func OpenWith(
	ctx context.Context, baseURL string, token Token, storePath string, o Options,
) (*Client, error) {
	base, err := normalize(baseURL)
	if err != nil {
		return nil, err
	}
	o.fill()
	store, err := openStore(ctx, storePath, base, &o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", storePath, err)
	}
	c := &Client{
		opts: o, base: base, token: token, store: store, auth: newIdentity(),
		sessions: map[string]*session{}, early: map[string]readsync.State{}, windows: map[*Window]struct{}{},
		turns:    make(chan *turn),
		sendWake: make(chan struct{}, 1), listWake: make(chan struct{}, 1),
		streamWake: make(chan struct{}, 1), scopesWake: make(chan struct{}, 1),
		events: newEvents(),
		hub:    hub{scopes: map[string]*scope{}, gone: map[string]uint64{}},
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.work.Go(func() { c.runTurns(c.ctx) })
	c.work.Go(func() { c.deliver(c.ctx) })
	c.work.Go(func() { c.runSender(c.ctx) })
	c.work.Go(func() { c.runList(c.ctx) })
	c.work.Go(func() { c.runStream(c.ctx) })
	return c, nil
}

func (o *Options) fill() {
	if o.HTTP == nil {
		o.HTTP = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
		o.own = true
	}
	own := *o.HTTP
	own.Timeout = 0 // the stream has none
	own.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // another server is another client
	}
	o.HTTP = &own
	if o.RequestTimeout == 0 {
		o.RequestTimeout = 30 * time.Second
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.onStep == nil {
		o.onStep = func(string) {}
	}
}

// normalize makes one text of all that address the same server: it is part of what the file's rows
// are found by.
func normalize(baseURL string) (string, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "", fmt.Errorf("address of the server: %w", err)
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname())
	if scheme != "http" && scheme != "https" || host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("address of the server: %q is not of the form https://host[:port][/path]",
			u.Redacted())
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	usual := map[string]string{"http": "80", "https": "443"}
	if port := u.Port(); port != "" && port != usual[scheme] {
		host += ":" + port
	}
	return scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/"), nil
}

// Close ends everything and returns once what was begun is in the file. Operations that the server
// has not decided on stay there. A second Close does nothing.
func (c *Client) Close() (err error) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.closing.Do(func() {
		c.work.Wait() // also for the turn that is being written
		if c.opts.own {
			c.opts.HTTP.CloseIdleConnections()
		}
		err = c.store.close()
	})
	return err
}

// Foreground says that the app came to the front: everything that waits for a later attempt is
// attempted now.
func (c *Client) Foreground() { c.retryNow() }

// Renewed says that the Token function has another token to give.
func (c *Client) Renewed() { c.retryNow() }

func (c *Client) retryNow() {
	c.mu.Lock()
	c.holds.lift()
	for w := range c.windows {
		wake(w.wake)
	}
	c.mu.Unlock()
	for _, sleeping := range []chan struct{}{c.sendWake, c.listWake, c.streamWake, c.scopesWake} {
		wake(sleeping)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits for a time, a wake or the end of the context, whatever comes first.
func (c *Client) pause(ctx context.Context, d time.Duration, woken <-chan struct{}) {
	rings, stop := c.opts.Clock.NewTimer(d)
	defer stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-rings:
	}
}

// delay is how long to wait after a number of failures in a row.
func (c *Client) delay(failures int) time.Duration {
	return time.Duration(readsync.Delay(failures, c.opts.Random())) * time.Millisecond
}

func (c *Client) now() time.Time { return c.opts.Clock.Now() }

func (c *Client) millis() int64 { return c.now().UnixMilli() }
