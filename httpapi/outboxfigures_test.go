package httpapi_test

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
)

func sample(t *testing.T, h *harness, name string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(metric(t, h, name), 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// What the outbox does, holds and may do is on the page of the metrics; a server without one says
// nothing of it.
func TestOutboxFigures(t *testing.T) {
	network := local()
	h := makeHarness(t, &network, metered)
	taskWorld(h)
	url, got := receiver(t, func() int { return 204 })
	h.want(200, "PUT", "W/members/bot/wake", h.service(), object{"url": url, "secret": wakeSecret})
	h.post("t", "A", object{"messageId": "q"})
	for m := h.next(got); m.MessageID != "q"; m = h.next(got) {
	}
	awaitFigure(t, h, "tidemark_wakes_waiting", 0)
	// Two changes of the task and a message, of which each wakes the one agent.
	for name, want := range map[string]float64{
		"tidemark_outbox_delivered_rows_total": 3, "tidemark_wakes_queued_total": 3,
		"tidemark_wakes_sent_total": 3, "tidemark_wakes_done_total": 3,
		"tidemark_outbox_failures_total": 0, "tidemark_wakes_refused_total": 0,
		"tidemark_wake_endpoints": 1, "tidemark_outbox_fresh_rows": 0,
		"tidemark_outbox_dead_letters": 0, "tidemark_outbox_oldest_row_seconds": 0,
		"tidemark_wake_attempts_limit":  1, // as the harness has it
		"tidemark_outbox_lease_seconds": 60, "tidemark_wake_queue_limit": 10_000,
	} {
		if n := sample(t, h, name); n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
	if n := sample(t, h, "tidemark_wake_attempt_seconds_total"); n <= 0 {
		t.Errorf("attempts took %v", n)
	}
	admin := h.token("W", "root", httpapi.RoleAdmin)
	h.want(200, "PUT", "W/webhooks/w1", admin, object{
		"url": url, "secret": wakeSecret, "on": []string{"unread.threshold"},
		"members": []string{"B"}, "threshold": 300,
	})
	awaitFigure(t, h, "tidemark_webhooks", 1)

	without := newHarness(t, metered)
	if text := metrics(t, without); strings.Contains(text, "tidemark_outbox_") ||
		strings.Contains(text, "tidemark_wake") {
		t.Error("a server without an outbox has figures of one")
	}
}

func metered(_ *tidemark.Options, c *httpapi.Config) { c.Metrics = prometheus.NewRegistry() }

func awaitFigure(t *testing.T, h *harness, name string, want float64) {
	t.Helper()
	for patience := time.Now().Add(30 * time.Second); sample(t, h, name) != want; {
		if time.Now().After(patience) {
			t.Fatalf("%s does not become %v", name, want)
		}
	}
}

const readersOfAStore = 4

// A store that does not answer leaves its figures out instead of making some up; those of the
// process stay, and the page comes in time.
func TestOutboxFiguresOfASilentStore(t *testing.T) {
	network := local()
	h := makeHarness(t, &network, metered)
	taskWorld(h)
	awaitFigure(t, h, "tidemark_outbox_delivered_rows_total", 2)
	// Requests hold every reader of the store, and give none back.
	var held atomic.Int64
	release := h.block(func(s statement) bool {
		if s.by != "http" {
			return false
		}
		held.Add(1)
		return true
	})
	t.Cleanup(release)
	var requests sync.WaitGroup
	for range readersOfAStore {
		requests.Go(func() { h.call("GET", "W/members", h.service(), nil) })
	}
	for patience := time.Now().Add(30 * time.Second); held.Load() < readersOfAStore; {
		if time.Now().After(patience) {
			t.Fatal("the readers are not held")
		}
	}
	if text := metrics(t, h); strings.Contains(text, "\ntidemark_outbox_fresh_rows ") ||
		!strings.Contains(text, "\ntidemark_outbox_delivered_rows_total 2\n") ||
		!strings.Contains(text, "\ntidemark_wake_senders_limit ") {
		t.Errorf("with a silent store:\n%s", text)
	}
	release()
	requests.Wait()
	if n := sample(t, h, "tidemark_outbox_fresh_rows"); n != 0 {
		t.Errorf("%v fresh rows", n)
	}
}
