package outbox

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// town is a network in which each host has a way to answer, in the bubble's time.
type town struct {
	mu      sync.Mutex
	hosts   map[string]func(ctx context.Context) (int, error)
	taken   map[string][]string // by agent, the messages that were accepted
	last    map[string]time.Time
	running map[string]int
	most    map[string]int // requests at once
}

func newTown() *town {
	return &town{
		hosts: map[string]func(context.Context) (int, error){}, taken: map[string][]string{},
		last: map[string]time.Time{}, running: map[string]int{}, most: map[string]int{},
	}
}

func (n *town) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	n.mu.Lock()
	answer := n.hosts[host]
	n.running[host]++
	n.most[host] = max(n.most[host], n.running[host])
	n.mu.Unlock()
	status, err := answer(r.Context())
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running[host]--
	if err != nil {
		return nil, err
	}
	if status < 300 {
		agent := strings.TrimPrefix(r.URL.Path, "/")
		n.taken[agent] = append(n.taken[agent], r.Header.Get("webhook-id"))
		n.last[agent] = time.Now()
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
}

// set changes how a host answers.
func (n *town) set(host string, answer func(ctx context.Context) (int, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = answer
}

// got returns what an agent has accepted, and when the last of it.
func (n *town) got(agent string) ([]string, time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.taken[agent]), n.last[agent]
}

// atOnce is the highest number of requests that a host had at once.
func (n *town) atOnce(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most[host]
}

func well(context.Context) (int, error) { return 200, nil }

func after(d time.Duration, status int) func(ctx context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		select {
		case <-time.After(d):
			return status, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// However many agents a bad host has, and in whatever way it is bad, those of other hosts get
// their wakes as if it were not there, but for the time of its first answers.
func TestBadReceiversHoldUpNobody(t *testing.T) {
	const bad, good, posts = 70, 5, 3
	for name, answer := range map[string]func(ctx context.Context) (int, error){
		"silent":  after(time.Hour, 200),
		"failing": after(0, 500),
		"slow":    after(9*time.Second, 200),
		"closed":  func(context.Context) (int, error) { return 0, errInjected },
	} {
		t.Run(name, func(t *testing.T) {
			n := newTown()
			n.hosts["bad"], n.hosts["good"] = answer, well
			bubble(t, nil, func(w *world, b *Outbox) {
				b.client.Transport = n
				var agents []readstate.MemberID
				for i := range bad + good {
					agent := readstate.MemberID(fmt.Sprintf("a9%d", i))
					w.member(string(agent))
					host := "bad"
					if i >= bad {
						host = "good"
					}
					w.endpoint(b, agent, "http://"+host+"/"+string(agent))
					agents = append(agents, agent)
				}
				w.task("crowd", append([]readstate.MemberID{"author"}, agents...)...)
				began := time.Now()
				for range posts {
					w.post("crowd")
				}
				b.Poke(1)
				pass(30 * time.Second)
				for _, agent := range agents[bad:] {
					got, last := n.got(string(agent))
					if took := last.Sub(began); len(got) != posts || took > b.Limits.WakeTimeout+2*time.Second {
						t.Errorf("%s: %d wakes after %v", agent, len(got), took)
					}
				}
				if most := n.atOnce("bad"); most > b.Limits.PerHost+b.Limits.PerHost/4 {
					t.Errorf("%d requests at once", most)
				}
				// From now on it is known: nobody waits for it at all.
				began = time.Now()
				w.post("crowd")
				b.Poke(1)
				pass(5 * time.Second)
				for _, agent := range agents[bad:] {
					got, last := n.got(string(agent))
					if took := last.Sub(began); len(got) != posts+1 || took > 100*time.Millisecond {
						t.Errorf("%s: %d wakes after %v", agent, len(got), took)
					}
				}
			})
		})
	}
}

// A host that gets well is quick again, and everything arrives, in order.
func TestRecovery(t *testing.T) {
	n := newTown()
	n.hosts["host"] = after(0, 503)
	bubble(t, nil, func(w *world, b *Outbox) {
		b.client.Transport = n
		for _, a := range []readstate.MemberID{"a0", "a1", "a2"} {
			w.endpoint(b, a, "http://host/"+string(a))
		}
		var want []string
		for range 20 {
			w.post("t")
		}
		b.Poke(1)
		pass(time.Minute)
		synctest.Wait()
		n.set("host", well)
		pass(2 * time.Minute)
		synctest.Wait()
		for _, r := range w.query(`SELECT event FROM outbox ORDER BY event`) {
			want = append(want, fmt.Sprint(r[0]))
		}
		for _, a := range []readstate.MemberID{"a0", "a1", "a2"} {
			got, _ := n.got(string(a))
			if len(got) != len(want) {
				t.Fatalf("%s: %d of %d", a, len(got), len(want))
			}
			for i := range want {
				if got[i] != fmt.Sprintf("wake_1_%s_%d", want[i], uint32(w.key(a))) {
					t.Errorf("%s: %d is %s", a, i, got[i])
				}
			}
		}
		if rows := w.query(`SELECT 1 FROM wake_endpoints WHERE slow <> 0 OR streak <> 0`); len(rows) != 0 {
			t.Errorf("%d queues are still slow", len(rows))
		}
	})
}

// The senders go no further than their next wake when the outbox is closed, and what was accepted
// by then is recorded.
func TestCloseWhileSending(t *testing.T) {
	n := newTown()
	n.hosts["host"] = after(time.Second, 200)
	bubble(t, nil, func(w *world, b *Outbox) {
		b.client.Transport = n
		w.endpoint(b, "a0", "http://host/a0")
		for range 10 {
			w.post("t")
		}
		b.Poke(1)
		pass(3500 * time.Millisecond)
		began := time.Now()
		b.Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("closing took %v", took)
		}
		got, _ := n.got("a0")
		if left := len(w.waiting("a0")); len(got) != 4 || left != 6 {
			t.Errorf("%d accepted, %d left", len(got), left)
		}
	})
}

// A request that never ends is broken off in the end, and costs no attempt.
func TestCloseBreaksOff(t *testing.T) {
	n := newTown()
	n.hosts["host"] = after(time.Hour, 200)
	bubble(t, nil, func(w *world, b *Outbox) {
		b.client.Transport = n
		w.endpoint(b, "a0", "http://host/a0")
		w.post("t")
		b.Poke(1)
		pass(time.Second)
		began := time.Now()
		b.Close()
		if took := time.Since(began); took != b.Limits.Drain {
			t.Errorf("closing took %v", took)
		}
		rows := w.query(`SELECT attempts, lease FROM wake_endpoints WHERE url IS NOT NULL`)
		if rows[0][0] != int64(0) || rows[0][1] != int64(0) {
			t.Errorf("attempts, lease: %v", rows[0])
		}
	})
}

// lingering is a store that takes its time with what was delivered: whoever looks for queues
// meanwhile finds them leased.
type lingering struct{ facts.OutboxStore }

func (l lingering) SettleWakes(
	ctx context.Context, s facts.WakeSettlement,
) (facts.WakesSettled, error) {
	pass(100 * time.Millisecond)
	return l.OutboxStore.SettleWakes(ctx, s)
}

// What was refused is tried again when its pause is over, and not later.
func TestRetryInTime(t *testing.T) {
	n := newTown()
	var mu sync.Mutex
	var at []time.Duration
	var began time.Time
	n.hosts["host"] = func(context.Context) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Since(began).Round(time.Millisecond))
		if len(at) <= 4 {
			return 500, nil
		}
		return 200, nil
	}
	bubble(t, func(o *Options) { o.Store = lingering{o.Store} }, func(w *world, b *Outbox) {
		b.client.Transport = n
		w.endpoint(b, "a0", "http://host/a0")
		mu.Lock()
		began = time.Now()
		mu.Unlock()
		w.post("t")
		b.Poke(1)
		pass(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("attempts at %v, want %v", at, want)
		}
	})
}

// Many agents of one host are all woken soon, also when there are more than may wait for it; those
// of a host that is silent come again the more seldom the more there are.
func TestManyAgentsOfAHost(t *testing.T) {
	for name, answer := range map[string]func(ctx context.Context) (int, error){
		"quick": after(10*time.Millisecond, 200), "silent": after(time.Hour, 200),
	} {
		t.Run(name, func(t *testing.T) {
			n := newTown()
			n.hosts["hub"] = answer
			bubble(t, func(o *Options) { o.Limits.PerHost = 2 }, func(w *world, b *Outbox) {
				b.client.Transport = n
				const agents = 80
				members := []readstate.MemberID{"author"}
				for i := range agents {
					agent := readstate.MemberID(fmt.Sprintf("a9%d", i))
					w.member(string(agent))
					w.endpoint(b, agent, "http://hub/"+string(agent))
					members = append(members, agent)
				}
				w.task("hub", members...)
				w.post("hub")
				b.Poke(1)
				pass(5 * time.Second)
				if name == "quick" {
					for _, agent := range members[1:] {
						if got, _ := n.got(string(agent)); len(got) != 1 {
							t.Errorf("%s was woken by %v", agent, got)
						}
					}
					return
				}
				pass(2 * time.Minute)
				stats, err := b.Stats(w.t.Context())
				w.ok(err)
				before := stats.Bounced
				pass(time.Minute)
				stats, err = b.Stats(w.t.Context())
				w.ok(err)
				// Each of them comes again about once.
				if bounces := stats.Bounced - before; bounces > 2*agents {
					t.Errorf("%d queues were put back in a minute", bounces)
				}
			})
		})
	}
}

// Hosts that are silent are known after a while as a whole: then those of their agents who were
// not asked yet take no time from others either. When they answer again, all is as before.
func TestSilentHostsAreKnown(t *testing.T) {
	n := newTown()
	n.hosts["good"] = well
	bubble(t, func(o *Options) {
		o.Limits.Senders, o.Limits.SlowSenders, o.Limits.PerHost = 6, 2, 2
	}, func(w *world, b *Outbox) {
		b.client.Transport = n
		members := []readstate.MemberID{"author"}
		for i := range 40 {
			agent, host := readstate.MemberID(fmt.Sprintf("a9%d", i)), fmt.Sprintf("bad%d", i%4)
			n.set(host, after(time.Hour, 200))
			w.member(string(agent))
			w.endpoint(b, agent, "http://"+host+"/"+string(agent))
			members = append(members, agent)
		}
		w.task("bad", members...)
		w.endpoint(b, "a0", "http://good/a0")
		w.post("bad")
		b.Poke(1)
		pass(25 * time.Second)
		began := time.Now()
		w.post("t")
		b.Poke(1)
		pass(5 * time.Second)
		if got, last := n.got("a0"); len(got) != 1 || last.Sub(began) > 100*time.Millisecond {
			t.Errorf("a0 was woken by %v after %v", got, last.Sub(began))
		}
		for i := range 4 {
			n.set(fmt.Sprint("bad", i), well)
		}
		pass(10 * time.Minute)
		for _, agent := range members[1:] {
			if got, _ := n.got(string(agent)); len(got) != 1 {
				t.Errorf("%s was woken by %v", agent, got)
			}
		}
		before, err := b.Stats(w.t.Context())
		w.ok(err)
		w.post("bad")
		b.Poke(1)
		pass(5 * time.Second)
		now, err := b.Stats(w.t.Context())
		w.ok(err)
		if now.Moved != before.Moved || now.Sent != before.Sent+40 {
			t.Errorf("%d moved, %d sent", now.Moved-before.Moved, now.Sent-before.Sent)
		}
	})
}

// What was accepted is recorded although the store fails for a moment, and not sent again.
func TestSettlingIsTriedAgain(t *testing.T) {
	n := newTown()
	n.hosts["host"] = well
	var store *lossy
	bubble(t, func(o *Options) {
		store = &lossy{OutboxStore: o.Store}
		o.Store = store
	}, func(w *world, b *Outbox) {
		b.client.Transport = n
		w.endpoint(b, "a0", "http://host/a0")
		w.post("t")
		w.rows(b)
		store.lose(2, false)
		b.sends.set()
		pass(2 * b.Limits.LeaseFor)
		if got, _ := n.got("a0"); len(got) != 1 || len(w.waiting("a0")) != 0 {
			t.Errorf("woken by %v, %v is left", got, w.waiting("a0"))
		}
	})
}
