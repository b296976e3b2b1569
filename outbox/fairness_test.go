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
	const bad, good, posts = 150, 10, 5
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
					got := n.taken[string(agent)]
					if took := n.last[string(agent)].Sub(began); len(got) != posts || took > b.Limits.WakeTimeout+bouncedFor {
						t.Errorf("%s: %d wakes after %v", agent, len(got), took)
					}
				}
				if n.most["bad"] > b.Limits.PerHost+b.Limits.PerHost/4 {
					t.Errorf("%d requests at once", n.most["bad"])
				}
				// From now on it is known: nobody waits for it at all.
				began = time.Now()
				w.post("crowd")
				b.Poke(1)
				pass(5 * time.Second)
				for _, agent := range agents[bad:] {
					got := n.taken[string(agent)]
					if took := n.last[string(agent)].Sub(began); len(got) != posts+1 || took > 100*time.Millisecond {
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
		n.mu.Lock()
		n.hosts["host"] = well
		n.mu.Unlock()
		pass(2 * time.Minute)
		synctest.Wait()
		for _, r := range w.query(`SELECT event FROM outbox ORDER BY event`) {
			want = append(want, fmt.Sprint(r[0]))
		}
		for _, a := range []readstate.MemberID{"a0", "a1", "a2"} {
			got := n.taken[string(a)]
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
		if got, left := len(n.taken["a0"]), len(w.waiting("a0")); got != 4 || left != 6 {
			t.Errorf("%d accepted, %d left", got, left)
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

// What was refused is tried again when its pause is over, and not later.
func TestRetryInTime(t *testing.T) {
	n := newTown()
	var at []time.Duration
	var began time.Time
	n.hosts["host"] = func(context.Context) (int, error) {
		at = append(at, time.Since(began).Round(time.Millisecond))
		if len(at) <= 4 {
			return 500, nil
		}
		return 200, nil
	}
	bubble(t, nil, func(w *world, b *Outbox) {
		b.client.Transport = n
		w.endpoint(b, "a0", "http://host/a0")
		began = time.Now()
		w.post("t")
		b.Poke(1)
		pass(time.Minute)
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("attempts at %v, want %v", at, want)
		}
	})
}
