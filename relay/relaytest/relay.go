package relaytest

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Options are those of a Relay. Self is required, everything else may be zero.
type Options struct {
	Self      *nostrx.Key // signs the roster
	Community uuid.UUID   // of the snapshot descriptor; without it there is no such query
	Name      string

	Members    []nostrx.PubKey // of the community; nil lets everybody in
	Moderators []nostrx.PubKey // may remove events of others, as the relay itself may

	// PageLimit bounds a page of stored events, 500 by default; MaxEvents what is kept, 100,000.
	PageLimit, MaxEvents int
	// SnapshotEvents and SnapshotBytes bound a snapshot: 4,096 and 8 MiB by default, and at most.
	SnapshotEvents, SnapshotBytes int

	Now     func() time.Time // the system's clock by default
	Control bool             // serve /faults
}

// Bounds that the relay keeps.
const (
	clockLeeway  = 900 * time.Second
	maxChannelsQ = 128 // values of #h in one filter
	maxFilters   = 16  // in one request
	maxSubs      = 64  // of one connection
	maxBody      = 1 << 20
	authMemory   = 2 * time.Minute // how long an authorisation is known to be used up
)

// Relay is a relay. It is an http.Handler and safe for concurrent use.
type Relay struct {
	options Options
	faults  faults

	stop    context.Context // ends with Close
	cancel  context.CancelFunc
	serving sync.WaitGroup // connections

	mu       sync.Mutex
	store    store
	channels map[string]Channel
	members  map[nostrx.PubKey]bool // nil: everybody
	sessions map[*session]bool
	used     map[nostrx.EventID]time.Time // authorisations that were seen, and when
	connects int
	closed   bool
}

// New returns an empty relay.
func New(o Options) *Relay {
	if o.PageLimit == 0 {
		o.PageLimit = 500
	}
	if o.MaxEvents == 0 {
		o.MaxEvents = 100_000
	}
	if o.SnapshotEvents == 0 {
		o.SnapshotEvents = nostrx.MaxSnapshotEvents
	}
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = nostrx.MaxSnapshotBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Relay{
		options: o, store: newStore(), channels: make(map[string]Channel),
		sessions: make(map[*session]bool), used: make(map[nostrx.EventID]time.Time),
	}
	r.stop, r.cancel = context.WithCancel(context.Background())
	if o.Members != nil {
		r.members = make(map[nostrx.PubKey]bool)
		for _, m := range o.Members {
			r.members[m] = true
		}
	}
	return r
}

// Close ends all connections and returns when they are gone.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.serving.Wait()
}

// Cut ends all connections; clients may come again at once.
func (r *Relay) Cut() {
	r.mu.Lock()
	sessions := make([]*session, 0, len(r.sessions))
	for s := range r.sessions {
		sessions = append(sessions, s)
	}
	r.mu.Unlock()
	for _, s := range sessions {
		s.cut()
	}
}

// Connects returns how many connections were ever made.
func (r *Relay) Connects() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.connects
}

// Keep puts events into the store that need not be acceptable: old ones, large ones. They must be
// genuine. Nobody is pushed anything.
func (r *Relay) Keep(events ...nostrx.Event) error {
	for _, e := range events {
		if err := e.Verify(); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		r.store.put(e)
	}
	return nil
}

// Stored returns the live events that match, the newest first, whoever may see them.
func (r *Relay) Stored(f nostrx.Filter) []nostrx.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store.find(f.Matches)
}

// isMember tells whether somebody belongs to the community. The lock is held.
func (r *Relay) isMember(who nostrx.PubKey) bool {
	return who != "" && (r.members == nil || r.members[who])
}

func (r *Relay) isModerator(who nostrx.PubKey) bool {
	return who == r.options.Self.Public() || slices.Contains(r.options.Moderators, who)
}

// maySee tells whether a member may see an event. The lock is held.
func (r *Relay) maySee(who nostrx.PubKey, e nostrx.Event) bool {
	if e.Kind == nostrx.KindAppData {
		return e.PubKey == who
	}
	channels := r.store.channelsOf(e)
	if len(channels) == 0 && isRoster(e.Kind) {
		channels = []string{e.Value("d")}
	}
	for _, id := range channels {
		if !slices.Contains(r.channels[id].Members, who) {
			return false
		}
	}
	return true
}

// ServeHTTP serves the document, sockets and the POST routes.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.URL.Path == "/query" && req.Method == http.MethodPost:
		r.serveQuery(w, req)
	case req.URL.Path == "/events" && req.Method == http.MethodPost:
		r.serveEvents(w, req)
	case req.URL.Path == "/faults" && req.Method == http.MethodPost && r.options.Control:
		r.serveFaults(w, req)
	case req.URL.Path != "/" && req.URL.Path != "/info" || req.Method != http.MethodGet:
		http.NotFound(w, req)
	case req.Header.Get("Upgrade") != "":
		r.serveSocket(w, req)
	default:
		r.serveInfo(w)
	}
}
