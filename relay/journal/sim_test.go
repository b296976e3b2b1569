package journal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

// simulations says how many seeds are played: TIDEMARK_SEEDS is the number in percent of the default.
func simulations(t *testing.T) uint64 {
	t.Helper()
	n := 40
	switch {
	case os.Getenv("TIDEMARK_SOAK") != "":
		n = 5000
	case raceDetector:
		n = 1
	}
	if text := os.Getenv("TIDEMARK_SEEDS"); text != "" {
		percent, err := strconv.Atoi(text)
		if err != nil || percent < 1 {
			t.Fatalf("TIDEMARK_SEEDS=%q is not a positive number", text)
		}
		n = max(n*percent/100, 1)
	}
	return uint64(n)
}

// direct carries requests to a handler without a network between.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() {
		if recover() != nil {
			resp, err = nil, errors.New("the connection ended")
		}
	}()
	in := req.Clone(req.Context())
	in.Host = req.URL.Host
	rec := httptest.NewRecorder()
	d.handler.ServeHTTP(rec, in)
	return rec.Result(), nil
}

// sim is three installations of one viewer, and a relay that fails in every way that it can.
type sim struct {
	t       *testing.T
	rng     *rand.Rand
	relay   *relaytest.Relay
	key     *nostrx.Key
	now     time.Time
	devices []*Publisher
	said    []map[Key]Time // what each installation has saved
	held    map[Key]Time   // the most that the relay ever held
	sent    atomic.Int64   // publications that came to the relay
	fault   relaytest.Fault
	at      relaytest.Point
}

func newSim(t *testing.T, j *Journal, seed uint64) *sim {
	t.Helper()
	s := &sim{t: t, rng: rand.New(rand.NewPCG(seed, 7)), key: keyOf(t, 1), now: time.Unix(start, 0), held: map[Key]Time{}}
	clock := func() time.Time { return s.now }
	s.relay = relaytest.New(relaytest.Options{Self: keyOf(t, 99), Now: clock})
	s.relay.Intercept(func(o relaytest.Occasion) relaytest.Fault {
		if o.Point == relaytest.AtEvent {
			s.sent.Add(1)
		}
		if o.Point == s.at {
			return s.fault
		}
		return relaytest.None
	})
	web, err := nostrx.NewWeb("http://relay.test", s.key, &http.Client{Transport: direct{s.relay}}, clock)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p := Partition{Scope: fmt.Sprintf("%d of %d", i, seed), Viewer: s.key.Public()}
		s.devices = append(s.devices, &Publisher{Book: j.Book(p), Relay: OverWeb(web), Key: s.key, Now: clock})
		s.said = append(s.said, make(map[Key]Time))
	}
	return s
}

// step does one thing on one installation, while something may be wrong with the relay.
func (s *sim) step() {
	n := s.rng.IntN(len(s.devices))
	p := s.devices[n]
	s.now = s.now.Add(time.Duration(s.rng.IntN(400)) * time.Second)
	s.fault, s.at = relaytest.None, relaytest.AtEvent
	if s.rng.IntN(2) == 0 {
		faults := []relaytest.Fault{relaytest.Refuse, relaytest.RefuseTime, relaytest.Cut, relaytest.Fail}
		s.fault = faults[s.rng.IntN(len(faults))]
		s.at = []relaytest.Point{relaytest.AtEvent, relaytest.AtReceipt, relaytest.AtRequest}[s.rng.IntN(3)]
	}
	s.relay.Switch(relaytest.LoseEvents, s.rng.IntN(6) == 0)
	s.relay.Switch(relaytest.EarlyEnd, s.rng.IntN(6) == 0)
	switch s.rng.IntN(4) {
	case 0, 1:
		k := Key([]string{"a", "b", string(frontier.ThreadKey(id(1))), string(MessageKey(2)), "activity:z"}[s.rng.IntN(5)])
		at := Time(s.now.Unix() - int64(s.rng.IntN(3600)))
		act(s.t, p.Book, k, int(at))
		s.said[n][k] = max(s.said[n][k], at)
	case 2:
		_ = p.Flush(s.t.Context()) // it may fail, and what it leaves behind is looked at
	case 3:
		_ = s.observe(p)
	}
	s.check()
}

// observe takes all that the relay shows.
func (s *sim) observe(p *Publisher) error {
	events, _, err := p.Relay.(overWeb).web.Query(s.t.Context(), nostrx.Filter{
		Kinds: []int{nostrx.KindAppData}, Authors: []nostrx.PubKey{s.key.Public()},
	})
	return errors.Join(err, s.take(p, events))
}

func (s *sim) take(p *Publisher, events []nostrx.Event) error {
	seen, err := Decode(s.key, events)
	if err != nil {
		return err
	}
	_, err = p.Book.Observe(s.t.Context(), Time(s.now.Unix()), seen, nil, Evidence{})
	return err
}

// check holds what must be true at every moment: the relay's frontiers only rise, and whatever was
// saved is known.
func (s *sim) check() {
	s.t.Helper()
	seen, err := Decode(s.key, s.relay.Stored(nostrx.Filter{Kinds: []int{nostrx.KindAppData}}))
	if err != nil {
		s.t.Fatal(err)
	}
	now := make(map[Key]Time)
	for _, o := range seen {
		for k, t := range o.Blob.State.Frontiers {
			now[k] = max(now[k], t)
		}
	}
	for k, t := range s.held {
		if now[k] < t {
			s.t.Fatalf("%q fell from %d to %d on the relay", k, t, now[k])
		}
	}
	s.held = now
	for i, p := range s.devices {
		r, err := p.Book.Load(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for k, t := range s.said[i] {
			if r.Known().Frontiers[k] < t {
				s.t.Fatalf("installation %d has lost %q: %v", i, k, r.Known().Frontiers)
			}
		}
	}
}

// heal takes the faults away and lets everybody finish; then nothing is left to do.
func (s *sim) heal() {
	s.t.Helper()
	s.fault = relaytest.None
	s.relay.Switch(relaytest.LoseEvents, false)
	s.relay.Switch(relaytest.EarlyEnd, false)
	s.now = s.now.Add(time.Hour)
	for i, p := range s.devices {
		if err := p.Flush(s.t.Context()); err != nil {
			s.t.Fatalf("installation %d, after healing: %v", i, err)
		}
	}
	before := s.sent.Load()
	var first map[Key]Time
	for i, p := range s.devices {
		if err := s.observe(p); err != nil {
			s.t.Fatal(err)
		}
		if err := p.Flush(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		r, err := p.Book.Load(s.t.Context())
		if err != nil || r.Waiting() {
			s.t.Fatalf("installation %d is still waiting: %v, %+v", i, err, r)
		}
		shared := r.Known().Frontiers
		maps.DeleteFunc(shared, func(k Key, _ Time) bool { return k.IsMessage() })
		if i == 0 {
			first = shared
		} else if !maps.Equal(shared, first) {
			s.t.Fatalf("installation %d knows %v, the first %v", i, shared, first)
		}
	}
	if s.sent.Load() != before {
		s.t.Fatalf("%d publications of nothing", s.sent.Load()-before)
	}
	s.check()
}

// Three installations of one viewer and a relay that loses, refuses and cuts: nothing that was saved is
// lost, no frontier falls, and once the relay is well all know the same and nobody has anything to do.
func TestSimulatedInstallations(t *testing.T) {
	j := open(t)
	for seed := range simulations(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSim(t, j, seed)
			defer s.relay.Close()
			for range 10 + s.rng.IntN(20) {
				s.step()
			}
			s.heal()
		})
	}
}
