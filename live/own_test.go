package live

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// fuse is a clock that breaks.
type fuse struct {
	systemClock
	burnt atomic.Bool
}

func (f *fuse) Now() time.Time {
	if f.burnt.Load() {
		panic("the fuse is burnt")
	}
	return f.systemClock.Now()
}

// The request of a stream that has a connection of its own is over when the stream has begun.
// Whatever goes wrong afterwards ends the stream, not the process: nothing else stands above it.
func TestAStreamOutlivesItsRequest(t *testing.T) {
	b := newBench(t)
	clock := &fuse{}
	hub := NewHub(Options{Clock: clock})
	returned, ended := make(chan *Stream, 1), make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := hub.Open(r.Context(), Subscription{
			Workspace: b.ws, Members: []readstate.MemberID{"B"},
		})
		if err != nil {
			ended <- err
			return
		}
		s.SSE(w, r, func(err error) { ended <- err })
		returned <- s
	}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stream := <-returned
	if n := hub.Stats().Streams; n != 1 {
		t.Fatalf("%d streams are open", n)
	}
	clock.burnt.Store(true)
	stream.wake()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "panic: the fuse is burnt\n") {
		t.Errorf("ended with %v", err)
	}
	drain(t, hub)
}

// A stream that breaks where the server still has the request is released as well.
func TestAStreamThatBreaksIsReleased(t *testing.T) {
	b := newBench(t)
	clock := &fuse{}
	hub := NewHub(Options{Clock: clock, Heartbeat: 10 * time.Millisecond})
	server, ended := b.events(hub, func(w http.ResponseWriter) http.ResponseWriter {
		return &kept{w.(http.Flusher), w}
	})
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	clock.burnt.Store(true)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "panic: the fuse is burnt\n") {
		t.Errorf("ended with %v", err)
	}
	drain(t, hub)
}
