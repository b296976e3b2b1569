package journal

import (
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

// world is a relay with one viewer, and a clock that the test moves.
type world struct {
	t    *testing.T
	srv  *relaytest.Server
	key  *nostrx.Key
	path string

	mu   sync.Mutex
	now  time.Time
	sent []nostrx.EventID // publications that reached the relay, in order
	gate func(relaytest.Occasion) relaytest.Fault
}

const start = 1_800_000_000

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, key: keyOf(t, 1), path: filepath.Join(t.TempDir(), "journal.db"), now: time.Unix(start, 0)}
	srv, err := relaytest.Listen(t.Context(), "127.0.0.1:0", relaytest.Options{
		Self: keyOf(t, 99), Members: []nostrx.PubKey{w.key.Public()}, Now: w.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	w.srv = srv
	srv.Intercept(func(o relaytest.Occasion) relaytest.Fault {
		w.mu.Lock()
		if o.Point == relaytest.AtEvent {
			w.sent = append(w.sent, o.Event.ID)
		}
		gate := w.gate
		w.mu.Unlock()
		if gate != nil {
			return gate(o)
		}
		return relaytest.None
	})
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// guard has a function decide what goes wrong.
func (w *world) guard(gate func(relaytest.Occasion) relaytest.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = gate
}

// failing lets publications fail in one way.
func (w *world) failing(at relaytest.Point, f relaytest.Fault) {
	w.guard(func(o relaytest.Occasion) relaytest.Fault {
		if o.Point == at {
			return f
		}
		return relaytest.None
	})
}

func (w *world) publications() []nostrx.EventID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// device is a process with the journal open.
func (w *world) device(path string) *Publisher {
	w.t.Helper()
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	web, err := nostrx.NewWeb(w.srv.URL, w.key, &http.Client{Transport: transport}, w.clock)
	if err != nil {
		w.t.Fatal(err)
	}
	b := openAt(w.t, path, nil).Book(Partition{Scope: w.srv.URL, Viewer: w.key.Public()})
	return &Publisher{Book: b, Relay: OverWeb(web), Key: w.key, Now: w.clock}
}

// flush publishes and expects an error, nil for none.
func (w *world) flush(p *Publisher, want error) {
	w.t.Helper()
	if err := p.Flush(w.t.Context()); !errors.Is(err, want) || want == nil && err != nil {
		w.t.Fatalf("flush: %v, want %v", err, want)
	}
}

// held is what the relay holds of the viewer's state, all slots joined, with the times of its events.
func (w *world) held() (map[Key]Time, []int64) {
	w.t.Helper()
	events := w.srv.Stored(nostrx.Filter{Authors: []nostrx.PubKey{w.key.Public()}, Kinds: []int{nostrx.KindAppData}})
	seen, err := Decode(w.key, events)
	if err != nil {
		w.t.Fatal(err)
	}
	all := make(map[Key]Time)
	var times []int64
	for _, o := range seen {
		times = append(times, o.CreatedAt)
		for k, t := range o.Blob.State.Frontiers {
			all[k] = max(all[k], t)
		}
	}
	return all, times
}

func (w *world) load(p *Publisher) Record {
	w.t.Helper()
	r, err := p.Book.Load(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func secs(n int) int { return start - 100 + n }
