package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// Two devices of one member with channels, on a network that loses requests and answers, cuts
// streams and refuses, while somebody writes: at the end both show what the server counts, nothing
// waits, no read is lost and nothing was posted twice.
func TestHostileNetworkOfScopes(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { hostileScopes(t, seed) })
	}
}

func hostileScopes(t *testing.T, seed uint64) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
	scopes := []string{"a", "b", "c"}
	for _, s := range scopes {
		w.channel(s, 3)
	}
	devices := []*device{w.open().hubReady(3), w.open().hubReady(3)}
	windows := map[*device]map[string]*client.Window{}
	for _, d := range devices {
		windows[d] = map[string]*client.Window{}
		for _, s := range scopes {
			windows[d][s] = d.lookAtScope(s, 3)
		}
	}
	w.guard(unreliable(roll))
	read, posted := map[string]readsync.Revision{}, 0
	for i := range 120 {
		d, s := devices[roll(2)], scopes[roll(3)]
		seen := d.seeScope(s)
		var err error
		switch roll(9) {
		case 0:
			w.says("B", s, 1, "A")
		case 1:
			_, err = d.MarkScopeUnread(seen)
		case 2:
			if _, err = d.MarkScopeRead(seen); err == nil {
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
			windows[d][s], err = d.OpenScope(s)
		case 6:
			m := client.NewMessage{ID: fmt.Sprint("own-", i), Payload: []byte(`"mine"`)}
			for posted++; d.PostToScope(context.Background(), s, m) != nil; {
			}
		case 7:
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
			return d.Status().Pending == 0 && d.HubStatus().Live
		})
		for _, l := range d.Status().Lost {
			if l.Operation.Kind == readsync.Read {
				t.Errorf("seed %d: lost %+v", seed, l)
			}
		}
	}
	own := 0
	for _, s := range scopes {
		own += w.agree(seed, s, read[s], devices, windows)
	}
	if own != posted {
		t.Errorf("seed %d: %d messages came of %d", seed, own, posted)
	}
}

// agree holds what devices show of a scope against what the server says, and counts A's messages.
func (w *world) agree(
	seed uint64, scope string, read readsync.Revision, devices []*device,
	windows map[*device]map[string]*client.Window,
) (own int) {
	w.t.Helper()
	state := w.want(200, "GET", hubPath+"/scopes/"+scope+"/read-state", w.token("A"), nil)
	rs, counts := state["readState"].(map[string]any), state["counts"].(map[string]any)
	if got := readsync.Revision(rs["readRevision"].(float64)); got < read {
		w.t.Errorf("seed %d: %s is read through %d, and %d was taken in", seed, scope, got, read)
	}
	page := w.want(200, "GET", hubPath+"/scopes/"+scope+"/messages?limit=500", w.token("A"), nil)
	messages := page["messages"].([]any)
	for _, m := range messages {
		if m.(map[string]any)["author"] == "A" {
			own++
		}
	}
	for _, d := range devices {
		d.showsScope(scope, counts["unread"], counts["attention"], rs["manualUnread"], counts["shown"], true)
		d.w.await("all messages of "+scope, func() bool {
			d.clock.advance(time.Minute)
			return len(windows[d][scope].Snapshot().Messages) == len(messages)
		})
		windows[d][scope].Close()
	}
	return own
}

// unreliable loses and refuses what clients send, and cuts streams off as they begin.
func unreliable(roll func(int) int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		stream := strings.HasSuffix(r.URL.Path, "/events")
		switch n := roll(6); {
		case r.Header.Get("Direct") != "" || stream && n > 0 || n > 2:
			next.ServeHTTP(rw, r)
		case n == 0: // the request is lost
			panic(http.ErrAbortHandler)
		case n == 1: // the answer is lost
			next.ServeHTTP(discard{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		default:
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	}
}
