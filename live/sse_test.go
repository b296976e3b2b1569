package live

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// events serves B's stream over real connections, behind what wrap puts in between.
func (b *bench) events(
	hub *Hub, wrap func(http.ResponseWriter) http.ResponseWriter,
) (*httptest.Server, chan error) {
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Before", "kept")
		s, err := hub.Open(r.Context(), Subscription{
			Workspace: b.ws, Members: []readstate.MemberID{"B"},
		})
		if err != nil {
			ended <- err
			return
		}
		s.SSE(wrap(w), r, func(err error) { ended <- err })
	}))
	b.t.Cleanup(server.Close)
	return server, ended
}

func bare(w http.ResponseWriter) http.ResponseWriter { return w }

func (b *bench) over(ended chan error) {
	b.t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			b.t.Errorf("ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		b.t.Error("the stream does not end")
	}
}

// until reads up to an event of a kind.
func (c *client) until(t *testing.T, kind string) {
	t.Helper()
	for name := ""; name != kind; {
		name, _ = c.event(t)
	}
}

// A connection that carries one stream is the stream's own: it is answered as the HTTP server
// would, what the client sends on is of no interest, and its end is noticed.
func TestEventsOnAConnectionOfTheirOwn(t *testing.T) {
	b := newBench(t)
	for _, minor := range []int{0, 1} {
		server, ended := b.events(NewHub(Options{}), bare)
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET / HTTP/1.%d\r\nHost: x\r\n\r\nGET /more HTTP/1.1\r\nHost: x\r\n\r\n", minor)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != 200 || resp.ProtoMinor != minor || !resp.Close || len(resp.TransferEncoding) > 0 ||
			h.Get("Content-Type") != "text/event-stream" || h.Get("X-Before") != "kept" || h.Get("Date") == "" {
			t.Errorf("answered HTTP/1.%d with %+v", minor, resp)
		}
		c := &client{conn, bufio.NewReader(resp.Body)}
		c.until(t, "snapshot")
		fmt.Fprint(conn, "and even more")
		b.post("c", 1)
		c.until(t, "unread")
		conn.Close()
		b.over(ended)
	}
}

// A drain ends such a stream, as nothing else of the server does.
func TestDrainClosesAConnectionOfItsOwn(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{})
	server, ended := b.events(hub, bare)
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	drain(t, hub)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Errorf("the client reads on until %v", err)
	}
	b.over(ended)
}

// kept is what holds on to the connection, as a writer that compresses does.
type kept struct {
	http.Flusher
	w http.ResponseWriter
}

func (k *kept) Header() http.Header         { return k.w.Header() }
func (k *kept) WriteHeader(code int)        { k.w.WriteHeader(code) }
func (k *kept) Write(b []byte) (int, error) { return k.w.Write(b) }

// Where the connection cannot be had, events go through what is in between.
func TestEventsThroughAnotherWriter(t *testing.T) {
	b := newBench(t)
	server, ended := b.events(NewHub(Options{}), func(w http.ResponseWriter) http.ResponseWriter {
		return &kept{w.(http.Flusher), w}
	})
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if resp.TransferEncoding == nil || resp.Header.Get("X-Before") != "kept" {
		t.Errorf("answered with %+v", resp)
	}
	c := &client{nil, bufio.NewReader(resp.Body)}
	c.until(t, "snapshot")
	b.post("c", 1)
	c.until(t, "unread")
	resp.Body.Close()
	b.over(ended)
}
