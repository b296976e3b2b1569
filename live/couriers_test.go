package live

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// gauge is a connection that hands every frame to a test.
type gauge func(f Frame) error

func (g gauge) write(_ context.Context, f Frame) error { return g(f) }
func (g gauge) beat(context.Context) error             { return nil }

// run serves B's stream on a sink.
func (b *bench) run(hub *Hub, to sink) (*Stream, func() error) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	s, err := hub.Open(ctx, Subscription{Workspace: b.ws, Members: []readstate.MemberID{"B"}})
	if err != nil {
		b.t.Fatal(err)
	}
	ended, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		ended <- s.serve(ctx, to, nil)
	}()
	b.t.Cleanup(func() {
		cancel()
		<-over
		s.Close()
	})
	return s, func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Second):
			b.t.Fatal("the stream does not end")
			return nil
		}
	}
}

func (c *couriers) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.active) == 0 && len(c.queue) == 0
}

// eventually waits for what other goroutines do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: never", what)
		}
	}
}

// Clients who do not read hold up as many couriers as there are of them, and nobody else.
func TestClientsWhoDoNotReadHoldNobodyUp(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{WriteTimeout: time.Hour})
	var stuck []*client
	for range 3*runtime.GOMAXPROCS(0) + 3 {
		c, _ := b.serve(hub)
		stuck = append(stuck, c)
	}
	c, _ := b.serve(hub)
	for n := range 3 {
		b.post("c", 1)
		name, data := c.event(t)
		for name != "unread" {
			name, data = c.event(t)
		}
		if data["row"].(map[string]any)["unread"] != float64(n+1) {
			t.Fatalf("got %v", data)
		}
	}
	for _, c := range stuck {
		c.conn.Close()
	}
	drain(t, hub)
	eventually(t, "no courier is left", hub.couriers.idle)
}

// What a courier cannot write because the stream is at work is written by the stream.
func TestNothingIsMissedWhileAStreamIsAtWork(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{})
	told := make(chan struct{})
	var s *Stream
	opened := make(chan struct{})
	s, _ = b.run(hub, gauge(func(f Frame) error {
		switch f.Event {
		case EventSnapshot:
			<-opened
			b.post("c", 1)
			eventually(t, "a courier comes", s.news.Load)
		case EventUnread:
			close(told)
		}
		return nil
	}))
	close(opened)
	select {
	case <-told:
	case <-time.After(20 * time.Second):
		t.Error("not told")
	}
}

// A writer that panics ends its stream and nothing else: a courier is no handler, whose panics the
// HTTP server stops. Once a stream has ended, nothing is written to it any more.
func TestPanicsEndTheStream(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{})
	shown, frames := make(chan struct{}), 0
	s, end := b.run(hub, gauge(func(f Frame) error {
		frames++
		switch f.Event {
		case EventSnapshot:
			close(shown)
		case EventUnread:
			panic("a broken writer")
		}
		return nil
	}))
	<-shown
	b.post("c", 1)
	if err := end(); err == nil || !strings.Contains(err.Error(), "a broken writer") {
		t.Errorf("ended with %v", err)
	}
	written := frames
	b.post("c", 1)
	s.carry()
	if frames != written {
		t.Error("written to after its end")
	}
}

// A client who leaves while a courier writes ends the stream in order.
func TestFailuresOfCouriersEndTheStream(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{})
	shown := make(chan struct{})
	_, end := b.run(hub, gauge(func(f Frame) error {
		switch f.Event {
		case EventSnapshot:
			close(shown)
		case EventUnread:
			return lost(errors.New("reset"))
		}
		return nil
	}))
	<-shown
	b.post("c", 1)
	if err := end(); !errors.Is(err, errGone) {
		t.Errorf("ended with %v", err)
	}
}

// The queue does not grow with what went through it.
func TestQueueOfCouriersIsBounded(t *testing.T) {
	var c couriers
	c.init()
	c.wanted = 0 // nobody carries
	c.looks = true
	streams := make([]*Stream, 100)
	for i := range streams {
		streams[i] = &Stream{over: true}
		c.send(streams[i])
	}
	me := &courier{}
	c.active, c.wanted = []*courier{me}, 1
	for i := range 100_000 {
		s := c.next(me)
		if s != streams[i%len(streams)] {
			t.Fatalf("out of order at %d", i)
		}
		c.send(s)
	}
	if cap(c.queue) > 8*len(streams) {
		t.Errorf("room for %d", cap(c.queue))
	}
}
