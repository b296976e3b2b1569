package agent

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

// simulations says how many seeds are played: TIDEMARK_SEEDS is the number in percent of the default.
func simulations(t *testing.T) uint64 {
	t.Helper()
	n := 200
	switch {
	case os.Getenv("TIDEMARK_SOAK") != "":
		n = 5000
	case raceDetector:
		n = 5
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

// Three devices of one viewer and a relay with which everything goes wrong that can: once it is healed
// they agree, nothing that was read is unread again, and nothing waits.
func TestSimulation(t *testing.T) {
	path := journalPath(t)
	for seed := range simulations(t) {
		synctest.Test(t, func(t *testing.T) {
			s := &sim{t: t, rng: rand.New(rand.NewPCG(seed, 11)), seed: seed, n: newNetwork(t, path, seed%2 == 0)}
			s.play()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type sim struct {
	t       *testing.T
	rng     *rand.Rand
	seed    uint64
	n       *network
	devices []*device
	// What each device had read at some time: it stays so.
	read  []map[string]bool
	broad map[frontier.Key]frontier.Time // the most that was saved by anybody for everybody
	sent  atomic.Int64                   // publications of read state that came to the relay
}

func (s *sim) play() {
	for _, c := range []string{"a", "b", "us"} {
		kind := "stream"
		if c == "us" {
			kind = "dm"
		}
		s.n.channel(c, kind)
	}
	s.n.relay.Intercept(func(o relaytest.Occasion) relaytest.Fault {
		if o.Point == relaytest.AtEvent && o.Event.Kind == nostrx.KindAppData {
			s.sent.Add(1)
		}
		return relaytest.None
	})
	s.broad = make(map[frontier.Key]frontier.Time)
	for i := range 3 {
		s.devices = append(s.devices, s.n.device(fmt.Sprintf("%d of %d", i, s.seed)))
		s.read = append(s.read, make(map[string]bool))
	}
	for range 24 {
		s.step()
		s.look()
	}
	s.heal()
	s.agree()
	s.quiet()
}

// step lets something happen.
func (s *sim) step() {
	d := s.devices[s.rng.IntN(3)]
	switch s.rng.IntN(9) {
	case 0, 1, 2:
		s.write()
	case 3, 4, 5:
		s.act(d)
	case 6:
		f := relaytest.Faults[s.rng.IntN(len(relaytest.Faults))]
		s.n.relay.Switch(f, s.rng.IntN(3) > 0)
	case 7:
		switch s.rng.IntN(3) {
		case 0:
			s.n.relay.Cut()
		case 1:
			d.cable.pull(s.rng.IntN(2) == 0)
		case 2:
			d.stop()
			d.start()
		}
	case 8:
		for _, f := range relaytest.Faults {
			s.n.relay.Switch(f, false)
		}
	}
	pass(time.Duration(s.rng.IntN(9000)) * time.Millisecond)
}

func (s *sim) write() {
	channel := []string{"a", "b", "us"}[s.rng.IntN(3)]
	tags := []nostrx.Tag{{"h", channel}}
	if n := len(s.n.posted); n > 0 && s.rng.IntN(2) == 0 {
		if e := s.n.posted[s.rng.IntN(n)]; e.Value("h") == channel {
			tags = append(tags, nostrx.Tag{"e", string(e.ID), "", "reply"})
		}
	}
	if s.rng.IntN(3) == 0 {
		tags = append(tags, nostrx.Tag{"p", string(s.n.viewer.Public())})
	}
	if s.rng.IntN(5) == 0 {
		tags = append(tags, nostrx.Tag{"broadcast", "1"})
	}
	s.n.post(s.n.other, nostrx.KindChat, tags...)
}

// act reads on one device, in one of the ways that there are. It may be refused.
func (s *sim) act(d *device) {
	channel := []string{"a", "b", "us"}[s.rng.IntN(3)]
	d.mu.Lock()
	messages, _ := d.core.window.Messages(channel)
	d.mu.Unlock()
	ctx := s.t.Context()
	switch s.rng.IntN(4) {
	case 0:
		_ = d.MarkChannelRead(ctx, channel)
	case 1:
		if len(messages) > 0 {
			_ = d.MarkThrough(ctx, channelTarget(channel), messages[s.rng.IntN(len(messages))].ID)
		}
	default:
		root := ""
		if len(messages) > 0 && s.rng.IntN(2) == 0 {
			root = messages[s.rng.IntN(len(messages))].Root
		}
		lease, err := d.Reading(channel, root)
		if err != nil {
			return
		}
		var ids []string
		for _, m := range messages {
			if root == "" && m.TopLevel() || m.Root == root {
				ids = append(ids, m.ID)
			}
		}
		_ = d.Observe(ctx, lease, ids, s.rng.IntN(2) == 0)
		d.Dispose(lease)
	}
}

// look sees to it that nothing that was read is unread again, and notes what is.
func (s *sim) look() {
	for i, d := range s.devices {
		r := d.record()
		v := r.View(frontier.Time(time.Now().Unix()))
		for k, t := range r.Own {
			s.broad[k] = max(s.broad[k], t)
		}
		d.mu.Lock()
		for _, e := range s.n.posted {
			id := string(e.ID)
			m, here := d.core.window.Message(id)
			if !here {
				continue
			}
			covered := v.Covered(m)
			if s.read[i][id] && !covered {
				s.t.Errorf("seed %d: %s was read on device %d and is not", s.seed, id, i)
			}
			if covered {
				s.read[i][id] = true
			}
		}
		d.mu.Unlock()
	}
}

// heal ends everything that is wrong and gives time to recover.
func (s *sim) heal() {
	for _, f := range relaytest.Faults {
		s.n.relay.Switch(f, false)
	}
	for _, d := range s.devices {
		d.cable.pull(false)
	}
	pass(3 * time.Minute) // the longest wait between connections, and all deadlines
	for range 2 {
		for i, d := range s.devices {
			if err := d.Refresh(s.t.Context()); err != nil {
				s.t.Errorf("seed %d: device %d: %v", s.seed, i, err)
			}
			if err := d.RetrySync(s.t.Context()); err != nil {
				s.t.Errorf("seed %d: device %d: %v", s.seed, i, err)
			}
		}
		pass(20 * time.Second)
	}
	s.look()
}

// agree compares what the devices say of every message that the relay has.
func (s *sim) agree() {
	stored := s.n.relay.Stored(nostrx.Filter{Kinds: []int{nostrx.KindChat}})
	for i, d := range s.devices {
		r := d.record()
		if r.Waiting() || r.Pending != nil {
			s.t.Errorf("seed %d: device %d waits: %d of %d", s.seed, i, r.Accepted, r.Revision)
		}
		for k, t := range s.broad {
			if known, _ := r.Known().Effective(k, frontier.Home{Channel: k.ChannelOf()}); known < t && !covers(r.Known(), k, t) {
				s.t.Errorf("seed %d: device %d knows %d of %s, %d was saved", s.seed, i, known, k, t)
			}
		}
		d.mu.Lock()
		if n := len(d.core.asks.open); n > 0 {
			s.t.Errorf("seed %d: device %d still asks %d questions", s.seed, i, n)
		}
		for _, e := range stored {
			m, here := d.core.window.Message(string(e.ID))
			if !here {
				s.t.Errorf("seed %d: device %d does not have %s", s.seed, i, e.ID)
				continue
			}
			want, _ := s.devices[0].core.window.Message(string(e.ID))
			if got, want := shared(r.Known(), m), shared(s.devices[0].record().Known(), want); got != want {
				s.t.Errorf("seed %d: device %d says %+v of %s, the first %+v", s.seed, i, got, e.ID, want)
			}
		}
		d.mu.Unlock()
	}
}

// covers tells whether a frontier that was given up is covered by a broader one of the same channel: any
// bare key as high, since a thread's channel is not part of its key.
func covers(s frontier.State, k frontier.Key, t frontier.Time) bool {
	for other, at := range s.Frontiers {
		if at >= t && other.Scope() < k.Scope() {
			return true
		}
	}
	return false
}

// shared is the verdict on a message by what devices share: all but the marks of single messages.
func shared(s frontier.State, m frontier.Message) frontier.Verdict {
	common := frontier.State{Frontiers: make(map[frontier.Key]frontier.Time)}
	for k, t := range s.Frontiers {
		if !k.IsMessage() {
			common.Frontiers[k] = t
		}
	}
	return frontier.View{State: common, Now: frontier.Time(time.Now().Unix())}.Verdict(m)
}

// quiet reads a lot in a row on one device, and counts what comes of it.
func (s *sim) quiet() {
	for range 5 {
		pass(time.Second)
		s.n.post(s.n.other, nostrx.KindChat, nostrx.Tag{"h", "a"})
	}
	pass(20 * time.Second)
	before := s.sent.Load()
	for range 5 {
		pass(time.Second)
		if err := s.devices[0].MarkChannelRead(s.t.Context(), "a"); err != nil {
			s.t.Error(err)
		}
	}
	pass(30 * time.Second)
	if n := s.sent.Load() - before; n != 1 {
		s.t.Errorf("seed %d: %d publications of one quiet period", s.seed, n)
	}
	for i, d := range s.devices {
		if got := d.see(channelTarget("a")).Observed; got != (Count{0, true}) {
			s.t.Errorf("seed %d: device %d counts %+v of a channel that was read", s.seed, i, got)
		}
	}
}
