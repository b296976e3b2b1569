package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/client"
)

// What other devices do is shown, whatever comes first: the list, the stream, or the own answer.
//
// covers: SE-039 SE-041
func TestTheListFollowsTheServer(t *testing.T) {
	w := newWorld(t)
	w.session("s", 3)
	late, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodGet && r.URL.Path == "/api/sessions" {
			held := false
			once.Do(func() { held = true })
			if held { // the answer is made now, and arrives late
				answer := httptest.NewRecorder()
				next.ServeHTTP(answer, r)
				close(late)
				<-proceed
				for k, v := range answer.Header() {
					rw.Header()[k] = v
				}
				_, _ = rw.Write(answer.Body.Bytes())
				return
			}
		}
		next.ServeHTTP(rw, r)
	})
	d := w.open()
	<-late
	w.read("s", 2, 0)
	w.mark("s", 0)
	w.answers("s", 1)
	w.want(200, "PATCH", "/api/sessions/s", w.token("A"), object{"title": "Now", "active": true})
	d.shows("s", 4, 2, true, 1)
	w.await("the title", func() bool { return d.see("s").Title == "Now" })
	close(proceed)
	d.ready(1)
	d.shows("s", 4, 2, true, 1)
	if s := d.see("s"); s.Title != "Now" || !s.Active || s.UpdatedAt.IsZero() {
		t.Errorf("the older answer won: %+v", s)
	}
	w.want(201, "POST", "/api/sessions", w.token("A"), object{"id": "t"})
	d.ready(2)
}

// A stream that breaks goes on where it was; windows load what came meanwhile.
func TestStreamsGoOn(t *testing.T) {
	w := newWorld(t)
	w.session("s", 1)
	d := w.open().ready(1)
	window := d.look("s", 1)
	w.want(200, "PATCH", "/api/sessions/s", w.token("A"), object{"title": "First"})
	w.await("the title", func() bool { return d.see("s").Title == "First" })
	var mu sync.Mutex
	cut, resumed := true, []string(nil)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/api/events" {
			mu.Lock()
			refused := cut
			if !cut {
				resumed = append(resumed, r.Header.Get("Last-Event-ID"))
			}
			mu.Unlock()
			if refused {
				rw.WriteHeader(http.StatusBadGateway)
				return
			}
		}
		next.ServeHTTP(rw, r)
	})
	d.silence()
	w.answers("s", 2)
	w.want(200, "PATCH", "/api/sessions/s", w.token("A"), object{"title": "Second"})
	mu.Lock()
	cut = false
	mu.Unlock()
	w.await("another stream", func() bool { d.Foreground(); return d.Status().Live })
	d.reaches(window, 3)
	w.await("the title", func() bool { return d.see("s").Title == "Second" })
	mu.Lock()
	defer mu.Unlock()
	if len(resumed) != 1 || resumed[0] == "" {
		t.Errorf("it went on after %q", resumed)
	}
}

// silence moves time on until the stream was silent for too long. Heartbeats come by the clock on
// the wall, which is slower.
func (d *device) silence() {
	d.w.t.Helper()
	d.w.await("the stream to be given up", func() bool {
		d.clock.advance(20 * time.Second)
		return !d.Status().Live
	})
}

// A server that sends neither events nor heartbeats is left and asked again.
func TestSilentStreamsAreGivenUp(t *testing.T) {
	w := newWorld(t)
	w.session("s", 1)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path != "/api/events" {
			next.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "event: hello\ndata: {\"heartbeatSeconds\":10,\"resumed\":false}\n\n")
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	d := w.open().ready(1)
	d.clock.advance(24 * time.Second)
	if !d.Status().Live {
		t.Error("given up before two and a half heartbeats")
	}
	d.silence()
	w.guard(nil)
	d.Foreground()
	d.ready(1)
}

// A stream whose token expires is opened again with another one.
func TestStreamsOutliveTokens(t *testing.T) {
	w := newWorld(t)
	w.session("s", 1)
	var mu sync.Mutex
	token := w.token("A")
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/api/events" && strings.HasSuffix(r.Header.Get("Authorization"), token) {
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(rw, "event: hello\ndata: {\"heartbeatSeconds\":10}\n\nevent: expired\ndata: {}\n\n")
			return
		}
		next.ServeHTTP(rw, r)
	})
	current := token
	d := w.open(func(o *deviceOptions) {
		o.token = func(context.Context) (string, error) { mu.Lock(); defer mu.Unlock(); return current, nil }
	})
	w.await("two streams", func() bool {
		d.clock.advance(time.Second)
		return len(w.requests("/api/events")) > 1
	})
	mu.Lock()
	current = w.sign("W", "A", 0, 3*time.Hour)
	mu.Unlock()
	w.await("a stream that stays", func() bool {
		d.clock.advance(time.Second)
		return len(w.requests("/api/events")) > 2 && d.Status().Live
	})
	d.ready(1)
	w.answers("s", 1)
	d.shows("s", 2, 0, false, 0)
}

// A server that tells no revisions is not asked for times instead.
//
// covers: SE-117
func TestNoUnreadWithoutRevisions(t *testing.T) {
	moves := make(chan struct{}, 1)
	old := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/whoami":
			fmt.Fprint(rw, `{"workspace":"W","member":"A","role":"member"}`)
		case "/api/events":
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(rw, "event: hello\ndata: {\"heartbeatSeconds\":10}\n\n")
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(rw, `{"sessions":[{"id":"s","title":"Old","updatedAt":"2031-01-02T03:04:05Z"}]}`)
		}
	}))
	defer old.Close()
	c, err := client.OpenWith(context.Background(), old.URL,
		func(context.Context) (string, error) { return "token", nil }, t.TempDir()+"/client.db",
		client.Options{OnEvent: func(client.Event) {
			select {
			case moves <- struct{}{}:
			default:
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := &world{t: t, moves: moves}
	w.await("the list", func() bool { _, complete := c.Sessions(); return complete })
	list, _ := c.Sessions()
	if len(list) != 1 || list[0].Unread || list[0].UpdatedAt.Year() != 2031 {
		t.Errorf("the list is %+v", list)
	}
	if err := c.MarkAllRead(list); err != nil || c.Status().Pending != 0 {
		t.Errorf("%v, %d pending", err, c.Status().Pending)
	}
}

// Where no stream gets through, the list and the windows are asked for all the same.
func TestWithoutStreams(t *testing.T) {
	w := newWorld(t)
	w.session("s", 1)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/api/events" {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		next.ServeHTTP(rw, r)
	})
	d := w.open()
	w.await("the list", func() bool { _, complete := d.Sessions(); return complete })
	window := d.look("s", 1)
	w.answers("s", 1)
	w.await("what came", func() bool {
		d.clock.advance(time.Minute)
		return d.state("s") == "2 0 false 0" && window.Snapshot().Through == 2
	})
	d.observe(looking(window), window)
	d.drained()
	if said := w.said("s"); said != "2 2 false 0" {
		t.Errorf("the server has %s", said)
	}
}
