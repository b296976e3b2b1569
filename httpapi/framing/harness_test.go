package framing_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/httpapi/framing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what happens at once when nothing is wrong.
const patience = 10 * time.Second

const maxBody = 1 << 10

// letters is the route of these tests that is held to the rules.
const letters = "POST /boxes/{id}/letters"

func newGate(t testing.TB) *framing.Gate {
	t.Helper()
	g, err := framing.New(framing.Config{Routes: []string{letters, "POST /boxes/{id}:open"}, MaxBody: maxBody})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// handler answers what passes with its method, address and body, and keeps that.
type handler struct {
	gate *framing.Gate
	mu   sync.Mutex
	got  []string
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.gate.Check(r); err != nil {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.Header().Set("Connection", "close")
		http.Error(w, "the body ends too early", http.StatusBadRequest)
		return
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Tidemark") && name != "Tidemark-Framing-Of-The-Client" {
			panic("a mark is still there")
		}
	}
	text := fmt.Sprintf("%s %s %q", r.Method, r.RequestURI, body)
	h.mu.Lock()
	h.got = append(h.got, text)
	h.mu.Unlock()
	_, _ = io.WriteString(w, text)
}

func (h *handler) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// start serves on a port of the system's choice, behind a gate.
func start(t testing.TB, g *framing.Gate, h http.Handler, secure *tls.Config) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	address = l.Addr().String()
	var open sync.WaitGroup // net/http keeps a refused connection for a moment
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: patience, IdleTimeout: time.Minute,
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Done()
			}
		},
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(g.Listener(l))
	}()
	t.Cleanup(func() { s.Close(); <-ended; open.Wait() })
	return address
}

// client is a connection on which a test says what it likes.
type client struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return wrap(t, c)
}

func wrap(t testing.TB, c net.Conn) *client {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads an answer to its end.
func (c *client) answer() (status int, body string, closes bool) {
	c.t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r.StatusCode, strings.TrimSpace(string(text)), r.Close
}

// answers expects an answer.
func (c *client) answers(status int, body string) {
	c.t.Helper()
	if got, text, _ := c.answer(); got != status || !strings.Contains(text, body) {
		c.t.Errorf("%d %s, want %d %s", got, text, status, body)
	}
}

// ends expects that the server closes the connection, and says nothing more.
func (c *client) ends() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.in); err != nil || len(rest) > 0 {
		c.t.Errorf("the connection does not end: %q, %v", rest, err)
	}
}

// letter is a request as it should be.
func letter(body string) string {
	return fmt.Sprintf("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}
