package agent

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Errors that change nothing.
var (
	ErrTarget  = errors.New("not a target of the form of its kind")
	ErrDenied  = errors.New("no access to the channel")
	ErrMessage = errors.New("the message is not known, or not of the channel")
	ErrClosed  = errors.New("the agent is closed")
)

// Period is how often the relay is asked anew without a reason, for what it pushes to nobody.
const Period = 5 * time.Minute

// Options are those of an Agent. URL, Key and Book are required.
type Options struct {
	URL  string // ws or wss
	Key  *nostrx.Key
	Book *journal.Book // of the relay's address and the key

	Moderators []nostrx.PubKey  // whose removals count besides the relay's
	HTTP       *http.Client     // a fresh one by default
	Now        func() time.Time // the system's clock by default
	// Backoff says how long to wait before the next connection, as nostrx.Options does.
	Backoff func(failures int) time.Duration
}

// Agent is the reader of one relay for one viewer. It is safe for concurrent use.
type Agent struct {
	o      Options
	web    *nostrx.Web
	client *nostrx.Client
	sync   *journal.Sync
	end    context.CancelFunc
	done   <-chan struct{} // of everything that runs
	owned  sync.WaitGroup

	wake chan struct{} // has room for one

	mu       sync.Mutex // never held across input or output
	core     *core
	info     nostrx.Info
	hasInfo  bool
	homed    bool // receipts without a home were asked for in this session
	readings uint64
	room     journal.Room
	hasRoom  bool
	waiting  *job // that nobody has begun
	running  *job
	met      bool // there was a connection
	again    bool // the first one came while an observation ran that may have missed it
}

// job is one observation that callers wait for.
type job struct {
	full, retry bool
	done        chan struct{}
	err         error // set before done is closed
}

// Open starts an agent. It shows what the journal holds at once, reads the relay as soon as there is a
// connection, and lives until the context ends or Close is called.
func Open(ctx context.Context, o Options) (*Agent, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Agent{o: o, core: newCore(o.Key.Public()), wake: make(chan struct{}, 1)}
	if err := a.restore(ctx); err != nil {
		return nil, err
	}
	var err error
	if a.web, err = nostrx.NewWeb(o.URL, o.Key, o.HTTP, o.Now); err != nil {
		return nil, err
	}
	ctx, a.end = context.WithCancel(ctx)
	a.done = ctx.Done()
	a.client, err = nostrx.Open(ctx, nostrx.Options{
		URL: o.URL, Key: o.Key, HTTP: o.HTTP, Now: o.Now, Backoff: o.Backoff,
		OnConnect: func(err error) { a.connected(err) },
	})
	if err != nil {
		a.end()
		return nil, err
	}
	a.sync = journal.NewSync(o.Book, a.markers, &journal.Publisher{
		Book: o.Book, Relay: wire{a}, Key: o.Key, Now: o.Now, Room: a.roomLeft,
	})
	for _, run := range []func(context.Context){a.work, a.listen, a.sync.Run} {
		a.owned.Go(func() { run(ctx) })
	}
	return a, nil
}

// Close ends everything and returns when nothing runs any more. What is saved and not published stays
// in the journal.
func (a *Agent) Close() {
	a.end()
	a.client.Close()
	a.owned.Wait()
}

// restore takes record and choices from the journal.
func (a *Agent) restore(ctx context.Context) error {
	follows, err := a.o.Book.Choices(ctx, chooseFollow)
	if err != nil {
		return err
	}
	levels, err := a.o.Book.Choices(ctx, chooseLevel)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.core.setFollows(follows)
	a.core.levels = levels
	a.mu.Unlock()
	return a.reload(ctx)
}

// reload takes the record as it is in the journal. Of several that run at once the one that began last
// counts: it has read what all others have.
func (a *Agent) reload(ctx context.Context) error {
	a.mu.Lock()
	a.readings++
	number := a.readings
	a.mu.Unlock()
	r, err := a.o.Book.Load(ctx)
	if err != nil {
		return err
	}
	a.change(func(c *core) {
		if number < c.loaded {
			return
		}
		c.loaded, c.record = number, r
		c.view = r.View(a.seconds())
		// What was read in an earlier session decides until the relay answers.
		c.markers = c.markers || r.Revision > 0 || len(r.Carried) > 0
	})
	return nil
}

// change does something to the core, and tells those whom it concerns when all is in place.
func (a *Agent) change(do func(*core)) {
	a.mu.Lock()
	do(a.core)
	a.core.view.Now = a.seconds()
	tell := a.core.changes()
	_, asks := a.core.asks.wait(a.o.Now())
	a.mu.Unlock()
	for _, f := range tell {
		f()
	}
	if asks {
		a.stir()
	}
}

func (a *Agent) seconds() journal.Time { return journal.Time(max(a.o.Now().Unix(), 0)) }

func (a *Agent) stir() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// connected is told of every connection and its end.
func (a *Agent) connected(err error) {
	if err == nil {
		a.mu.Lock()
		first := !a.met && a.running != nil
		a.met, a.again = true, first
		a.mu.Unlock()
		if !first { // the observation that waits for the first connection is the one that it needs
			a.request(false, true)
		}
		return
	}
	a.mu.Lock()
	if a.core.freshness == Observed {
		a.core.freshness = Stale // told with the next change; the reconnection brings one
	}
	a.mu.Unlock()
}

// request queues an observation, and joins the one that is queued. One that runs is joined too, unless
// everything is to be read.
func (a *Agent) request(full, retry bool) *job {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j := a.running; j != nil && !full && !retry {
		return j
	}
	if a.waiting == nil {
		a.waiting = &job{done: make(chan struct{})}
	}
	a.waiting.full = a.waiting.full || full
	a.waiting.retry = a.waiting.retry || retry
	if full {
		a.core.repair.Forget() // what is under way sets no marks
	}
	a.stir()
	return a.waiting
}

func (a *Agent) wait(ctx context.Context, j *job) error {
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	case <-a.done:
		return ErrClosed
	}
}

// Ensure has everything observed once, and returns at once when that was done. Callers share one
// observation.
func (a *Agent) Ensure(ctx context.Context) error {
	a.mu.Lock()
	fresh := a.core.freshness == Observed
	a.mu.Unlock()
	if fresh {
		return nil
	}
	return a.wait(ctx, a.request(false, false))
}

// Refresh observes everything anew: markers and whole pages of messages.
func (a *Agent) Refresh(ctx context.Context) error { return a.wait(ctx, a.request(true, false)) }

// RetrySync reads the markers and publishes what waits. It reads no messages.
func (a *Agent) RetrySync(ctx context.Context) error { return a.sync.Retry(ctx) }

// Sync says how far the synchronisation has come.
func (a *Agent) Sync(ctx context.Context) (journal.SyncState, error) { return a.sync.State(ctx) }

// work observes and looks up, one thing after the other.
func (a *Agent) work(ctx context.Context) {
	period := time.NewTicker(Period)
	defer period.Stop()
	retry := time.NewTimer(Period)
	defer retry.Stop()
	for ctx.Err() == nil {
		if j := a.begin(); j != nil {
			a.finish(j, a.observe(ctx, j))
			continue
		}
		a.mu.Lock()
		in, ok := a.core.asks.next(a.o.Now())
		delay, waits := a.core.asks.wait(a.o.Now())
		a.mu.Unlock()
		if ok {
			a.lookUp(ctx, in)
			continue
		}
		if !waits {
			delay = Period
		}
		retry.Reset(delay)
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-retry.C:
		case <-period.C:
			a.request(false, false)
		}
	}
}

func (a *Agent) begin() *job {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running, a.waiting = a.waiting, nil
	return a.running
}

func (a *Agent) finish(j *job, err error) {
	a.mu.Lock()
	a.running = nil
	again := a.again && err != nil
	a.again = false
	a.mu.Unlock()
	if again {
		a.request(false, true)
	}
	j.err = err
	close(j.done)
}

// wire is what publication goes through: HTTP where the relay has snapshots, and so has that side, and
// the connection elsewhere.
type wire struct{ a *Agent }

func (w wire) overWeb() bool {
	w.a.mu.Lock()
	defer w.a.mu.Unlock()
	return w.a.hasInfo && w.a.info.Snapshot != nil
}

func (w wire) Publish(ctx context.Context, e nostrx.Event) (nostrx.Receipt, error) {
	if w.overWeb() {
		return w.a.web.Publish(ctx, e)
	}
	return w.a.client.Publish(ctx, e)
}

func (w wire) Coordinates(ctx context.Context, author nostrx.PubKey, slots []string) ([]nostrx.Event, error) {
	if w.overWeb() {
		return journal.OverWeb(w.a.web).Coordinates(ctx, author, slots)
	}
	return w.a.client.Query(ctx, journal.AtSlots(author, slots))
}

// Diagnostics is what there is to know when something looks wrong.
type Diagnostics struct {
	Relay     string    `json:"relay"`
	Viewer    string    `json:"viewer"`
	Channels  int       `json:"channels"`
	Covered   int       `json:"covered"` // channels that are observed
	Freshness string    `json:"freshness"`
	Events    int       `json:"events"`
	Bytes     int       `json:"bytes"`
	Lookups   int       `json:"lookups"` // that wait for an answer
	Refused   int64     `json:"refused"` // of what the relay sent
	Error     string    `json:"error,omitempty"`
	Sync      SyncState `json:"sync"`
	Slot      string    `json:"slot"`
	Revision  uint64    `json:"revision"`
	Accepted  uint64    `json:"accepted"`
}

// SyncState is a journal.SyncState on the wire.
type SyncState struct {
	Capability string  `json:"capability"`
	Status     string  `json:"status"`
	Error      *string `json:"error"`
}

// SyncDoc returns the synchronisation's state as windows see it.
func (a *Agent) SyncDoc(ctx context.Context) SyncState {
	s, err := a.sync.State(ctx)
	if err = cmp.Or(s.Err, err); err == nil {
		return SyncState{Capability: string(s.Capability), Status: string(s.Status)}
	}
	text := err.Error()
	return SyncState{
		Capability: cmp.Or(string(s.Capability), string(journal.FrontierSync)),
		Status:     cmp.Or(string(s.Status), string(journal.Failed)), Error: &text,
	}
}

// Diagnose returns diagnostics.
func (a *Agent) Diagnose(ctx context.Context) Diagnostics {
	state := a.SyncDoc(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.core
	d := Diagnostics{
		Relay: a.o.URL, Viewer: string(c.viewer), Channels: len(c.channels()), Freshness: c.freshness,
		Lookups: len(c.asks.open), Refused: a.client.Refused(), Sync: state,
		Slot: c.record.Slot, Revision: c.record.Revision, Accepted: c.record.Accepted,
	}
	for _, ch := range c.channels() {
		if c.snapshot(Target{Kind: "channel", ChannelID: ch.ID}).Coverage == Observed {
			d.Covered++
		}
	}
	d.Events, d.Bytes = c.window.Len()
	if c.failed != nil {
		d.Error = c.failed.Error()
	}
	return d
}

func (a *Agent) evidence() journal.Evidence {
	return journal.Evidence{Message: a.message, DM: a.dm}
}

func (a *Agent) dm(channel string) (dm, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.window.DM(channel)
}
