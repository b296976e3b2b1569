package client_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// Two devices of one member on a network that loses requests and answers, cuts streams and refuses,
// while answers come in: at the end both show what the server says, nothing waits, no read is lost.
func TestHostileNetwork(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { hostile(t, seed) })
	}
}

func hostile(t *testing.T, seed uint64) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
	sessions := []string{"a", "b", "c"}
	for _, s := range sessions {
		w.session(s, 3)
	}
	devices := []*device{w.open().ready(3), w.open().ready(3)}
	windows := map[*device]map[string]*client.Window{}
	for _, d := range devices {
		windows[d] = map[string]*client.Window{}
		for _, s := range sessions {
			windows[d][s] = d.look(s, 3)
		}
	}
	w.guard(unreliable(roll))
	read := map[string]readsync.Revision{}
	for range 120 {
		d, s := devices[roll(2)], sessions[roll(3)]
		seen := d.see(s)
		var err error
		switch roll(8) {
		case 0:
			w.answers(s, 1)
		case 1:
			_, err = d.MarkUnread(seen)
		case 2:
			if _, err = d.MarkRead(seen); err == nil {
				read[s] = max(read[s], seen.ContentRevision)
			}
		case 3, 4:
			o := looking(windows[d][s])
			var op string
			if op, err = windows[d][s].Observe(o); op != "" {
				read[s] = max(read[s], o.Snapshot.Through)
			}
		case 5:
			windows[d][s].Close()
			windows[d][s], err = d.OpenWindow(s)
		case 6:
			d.Foreground()
		default:
			d.clock.advance(time.Duration(roll(30)) * time.Second)
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	w.guard(nil)
	for _, d := range devices {
		w.await("the end", func() bool {
			d.clock.advance(time.Minute)
			d.Foreground()
			return d.Status().Pending == 0 && d.Status().Live
		})
		for _, l := range d.Status().Lost {
			if l.Operation.Kind == readsync.Read {
				t.Errorf("seed %d: lost %+v", seed, l)
			}
		}
		for _, window := range windows[d] {
			window.Close()
		}
	}
	for _, s := range sessions {
		said := w.want(200, "GET", "/api/sessions/"+s, w.token("A"), nil)
		state := said["readState"].(map[string]any)
		if got := readsync.Revision(state["readRevision"].(float64)); got < read[s] {
			t.Errorf("seed %d: %s is read through %d, and %d was taken in", seed, s, got, read[s])
		}
		for _, d := range devices {
			d.shows(s, w.said(s))
			if d.see(s).Unread != said["unread"].(bool) {
				t.Errorf("seed %d: %s: the server says unread: %v", seed, s, said["unread"])
			}
		}
	}
}

// discard is where answers go that nobody gets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
