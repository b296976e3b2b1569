package httpapi_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
)

// A body that never comes holds nobody up for longer than its time, whoever sends it and
// whether anything wants it.
func TestBodiesThatDoNotArrive(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) {
		c.Limits.BodyTimeout = 100 * time.Millisecond
	})
	h.world("A")
	for what, c := range map[string]struct {
		line, token string
		status      int
	}{
		"without a token":      {"POST /api/v1/workspaces/W/unread:query", "", 401},
		"of the wrong role":    {"POST /api/v1/workspaces/W/unread:query", h.member("A"), 403},
		"admitted":             {"POST /api/v1/workspaces/W/scopes/c/messages", h.member("A"), 400},
		"at an unknown path":   {"POST /api/v1/nothing", "", 404},
		"outside the API":      {"POST /nothing", "", 404},
		"of the wrong method":  {"PATCH /api/v1/workspaces/W/unread:query", "", 405},
		"that asks beforehand": {"OPTIONS /api/v1/workspaces/W/unread:query", "", 204},
		"of a public route":    {"GET /healthz", "", 400},
		"of a page":            {"GET /docs", "", 200},
		"of a stream":          {"GET /api/v1/workspaces/W/events", h.member("A"), 400},
	} {
		for _, length := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
			text := c.line + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + c.token +
				"\r\nContent-Type: application/json\r\n" + length + "\r\n\r\n" +
				map[bool]string{true: "3e8\r\n{", false: "{"}[strings.HasPrefix(length, "T")]
			if status, body := h.raw(text, false); status != c.status {
				t.Errorf("a request %s, %s: %d %s, want %d", what, length, status, body, c.status)
			}
		}
	}
}

// The time that a body has ends no stream that had one.
func TestStreamsOutliveTheTimeOfBodies(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) {
		c.Limits.BodyTimeout = 200 * time.Millisecond
		c.Limits.WriteTimeout = 200 * time.Millisecond
		c.Live.Heartbeat = 100 * time.Millisecond
	})
	h.world("A")
	conn, err := net.Dial("tcp", h.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /api/v1/workspaces/W/events HTTP/1.1\r\nHost: x\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		h.member("A"))
	lines := bufio.NewScanner(conn)
	for beats := 0; beats < 5; {
		if !lines.Scan() {
			t.Fatalf("the stream ended after %d heartbeats: %v", beats, lines.Err())
		}
		if lines.Text() == ":" {
			beats++
		}
	}
}

// lone is a listener with one connection, a pipe: what its client does not read cannot be
// written.
type lone struct {
	conns chan net.Conn
	close func()
}

func (l lone) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l lone) Close() error { l.close(); return nil }
func (l lone) Addr() net.Addr {
	return &net.UnixAddr{Name: "pipe", Net: "pipe"}
}

// An answer that nobody reads is given up.
func TestAnswersThatNobodyReads(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) {
		c.Limits.WriteTimeout = 100 * time.Millisecond
	})
	h.world("A")
	for _, path := range []string{
		"/api/v1/workspaces/W/unread", "/openapi.json", "/docs", "/nothing",
	} {
		near, far := net.Pipe()
		conns := make(chan net.Conn, 1)
		conns <- far
		l := lone{conns, sync.OnceFunc(func() { close(conns) })}
		closed := make(chan struct{}, 1)
		server := &http.Server{Handler: h.api, ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				closed <- struct{}{}
			}
		}}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(l)
		}()
		_, err := fmt.Fprintf(near, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
			path, h.member("A"))
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-closed:
		case <-time.After(patience):
			t.Errorf("the answer of %s is held", path)
		}
		near.Close()
		server.Close()
		<-served
	}
}

// While the rows of a member are being read again, the messages of its scopes are told, and
// those of a scope that it has left are not.
func TestMessagesAreToldWhileRowsAreReadAgain(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B", "C")
	h.channel("d", "A", "B")
	b := h.member("B")
	s := h.sse(b, "?messages=c,d", "")
	s.snapshot()
	release := h.hold()
	t.Cleanup(release)
	h.want(200, "PUT", "W/members/B/blocks/C", b, nil)
	h.want(200, "DELETE", "W/scopes/d/members/B", h.service(), nil)
	h.post("d", "A", nil)
	want := h.post("c", "A", nil)
	s.next("message").data.is(t, want["messageId"], "message", "id")
	release()
	again := h.post("c", "A", nil)
	s.next("message").data.is(t, again["messageId"], "message", "id")
}
