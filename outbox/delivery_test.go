package outbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

func soaking() bool { return os.Getenv("TIDEMARK_SOAK") != "" }

// herd is a task with many agents of whom each has a way to answer.
type herd struct {
	*world
	b        *Outbox
	receiver *process
	log      string
	agents   []readstate.MemberID
	modes    map[readstate.MemberID]string
}

var modes = []string{"well", "fails", "slow", "late", "twice", "busy", "silent"}

// newHerd has n agents; every seventh is of one mode, the silent ones among them.
func newHerd(t *testing.T, n int) *herd {
	h := &herd{world: newWorld(t), modes: map[readstate.MemberID]string{}}
	h.log = filepath.Join(t.TempDir(), "receiver.log")
	h.receiver = launch(t, "receiver", receiverSettings{Log: h.log})
	line, ok := h.receiver.line(t)
	if !ok {
		t.Fatalf("the receiver did not start:\n%s", h.receiver.errors)
	}
	ordinary, twice, _ := strings.Cut(line, " ")
	h.b = h.outbox(func(o *Options) {
		o.Now, o.Rand = time.Now, nil
		l := &o.Limits
		l.WakeTimeout, l.LeaseFor, l.StageTimeout = 400*time.Millisecond, 5*time.Second, time.Second
		l.RetryFirst, l.RetryMost = 20*time.Millisecond, 2*time.Second
		l.SlowAfter, l.WakeAttempts = 200*time.Millisecond, 1<<20
		l.Queue = 1 << 20
	})
	batch := h.lane.NewBatch(space)
	yes := true
	for i := range n {
		agent := readstate.MemberID(fmt.Sprintf("a9%d", i))
		batch.PutMember(facts.PutMember{ID: agent, Agent: &yes})
		h.agents = append(h.agents, agent)
	}
	_, err := batch.Run(t.Context())
	h.ok(err)
	h.task("herd", append([]readstate.MemberID{"author", "h0"}, h.agents...)...)
	for i, agent := range h.agents {
		mode := modes[i%len(modes)]
		h.modes[agent] = mode
		at := ordinary
		if mode == "twice" {
			at = twice
		}
		h.endpoint(h.b, agent, "http://"+at+"/"+mode+"/"+string(agent))
	}
	return h
}

// want is the ids that every agent has to be woken with, in order.
func (h *herd) want(agent readstate.MemberID) []string {
	h.t.Helper()
	var out []string
	for _, r := range h.query(`SELECT event FROM outbox ORDER BY event`) {
		out = append(out, fmt.Sprintf("wake_1_%d_%d", r[0], uint32(h.key(agent))))
	}
	return out
}

// left counts the wakes that wait for agents, by mode.
func (h *herd) left() map[string]int {
	out := map[string]int{}
	for _, r := range h.query(`SELECT m.id, e.waiting FROM wake_endpoints e
    JOIN members m ON m.member = e.recipient WHERE e.waiting > 0 AND e.url IS NOT NULL`) {
		out[h.modes[readstate.MemberID(r[0].([]byte))]] += int(r[1].(int64))
	}
	return out
}

// until waits for a condition, which is looked at now and then.
func until(t *testing.T, what string, most time.Duration, done func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		if time.Since(began) > most {
			t.Fatalf("%s: not within %v", what, most)
		}
		<-ticker.C
	}
	return time.Since(began)
}

// memory watches the highest size of the heap, and of what the system has given the process,
// until stop is called.
func memory() (stop func() (heap, resident uint64)) {
	var most, given atomic.Uint64
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapAlloc))
			given.Store(max(given.Load(), resident()))
			select {
			case <-end:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() (heap, resident uint64) {
		close(end)
		<-ended
		return most.Load(), given.Load()
	}
}

// resident is what the system has given this process; 0 where it does not say.
func resident() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// A real receiver that fails, is slow, late, busy and silent, and answers twice, is judged by its
// own log: nothing is lost, each agent's order holds, whoever is bad holds up nobody else, and
// memory does not grow with what waits.
func TestDeliveries(t *testing.T) {
	agents, posts := 21, 40
	if soaking() {
		agents, posts = 210, 500
	}
	h := newHerd(t, agents)
	batch := h.lane.NewBatch(space)
	for range posts {
		batch.Post(facts.Post{
			Scope: "herd", OpID: h.id(), Author: "author", By: facts.Actor{Trusted: true},
		})
	}
	_, err := batch.Run(t.Context())
	h.ok(err)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	given := resident()
	stop := memory()
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- h.b.Run(t.Context()) }()
	h.b.Poke(1)
	total := agents * posts
	until(t, "queueing", patience, func() bool {
		s, err := h.b.Stats(t.Context())
		return err == nil && s.Wakes == uint64(total)
	})
	queued := time.Since(began)
	// Those who answer well are done long before the others, and the silent keep nobody.
	until(t, "the good", 10*patience, func() bool {
		left := h.left()
		return left["well"]+left["twice"] == 0
	})
	good := time.Since(began)
	if left := h.left(); left["silent"] != total/len(modes) {
		t.Errorf("when the good are done, this is left: %v", left)
	}
	until(t, "the others", 10*patience, func() bool {
		left := h.left()
		return len(left) == 1 && left["silent"] > 0
	})
	others := time.Since(began)
	fmt.Fprintln(h.receiver.orders, "silent well")
	if line, _ := h.receiver.line(t); line != "done" {
		t.Fatalf("the receiver says %q", line)
	}
	until(t, "the silent", 10*patience, func() bool { return len(h.left()) == 0 })
	all := time.Since(began)
	highest, peak := stop()
	grown, more := int64(highest)-int64(before.HeapAlloc), int64(peak)-int64(given)
	stats, err := h.b.Stats(t.Context())
	h.ok(err)
	h.b.Close()
	h.ok(<-ended)
	first, repeats := logged(t, h.log)
	for _, agent := range h.agents {
		got, want := first[string(agent)], h.want(agent)
		if len(got) != len(want) {
			t.Errorf("%s (%s): %d of %d", agent, h.modes[agent], len(got), len(want))
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s (%s): %d is %s, want %s", agent, h.modes[agent], i, got[i], want[i])
				break
			}
		}
	}
	if rows := h.query(`SELECT 1 FROM dead_letters`); len(rows) != 0 {
		t.Errorf("%d dead letters", len(rows))
	}
	counted := h.query(`SELECT max(targets_above_e) FROM conversation_member_states WHERE member = ?`,
		int64(h.key("h0")))
	if len(counted) != 1 || counted[0][0] != int64(posts) {
		t.Errorf("%d messages are counted as %v", posts, counted)
	}
	const most = 64 << 20
	if grown > most {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if most := int64(256 << 20); more > most {
		t.Errorf("the process grew by %d MiB", more>>20)
	}
	t.Logf("%d wakes queued in %v; the good have theirs after %v, all but the silent after %v, all "+
		"after %v: %.0f/s; %d attempts, %d refused, %d asked to wait, %d repeated; heap +%d MiB, "+
		"resident %d to %d MiB", total,
		queued.Round(time.Millisecond), good.Round(time.Millisecond), others.Round(time.Millisecond), all.Round(time.Millisecond), float64(total)/all.Seconds(),
		stats.Sent+stats.Refused+stats.AskedToWait, stats.Refused, stats.AskedToWait, repeats, grown>>20, given>>20, peak>>20)
}
