package framing_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/httpapi/framing"
)

// secured returns a configuration of a server that speaks both versions, and one of its clients.
func secured(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil) // it brings a certificate
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}},
		&tls.Config{RootCAs: roots, ServerName: "example.com"}
}

// withTLS refuses requests that do not know that they came over TLS.
type withTLS struct{ *handler }

func (h withTLS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil || !r.TLS.HandshakeComplete {
		http.Error(w, "no TLS", http.StatusInternalServerError)
		return
	}
	h.handler.ServeHTTP(w, r)
}

// The rules hold over TLS as well.
//
// covers: IN-116 IN-117 IN-118 IN-119
func TestOverTLS(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	server, config := secured(t)
	address := start(t, g, withTLS{h}, server)
	for _, protocols := range [][]string{nil, {"http/1.1"}} {
		config := config.Clone()
		config.NextProtos = protocols
		open := func() *client {
			c, err := tls.Dial("tcp", address, config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return wrap(t, c)
		}
		c := open()
		c.say(letter("1") + "GET /x HTTP/1.1\r\nHost: x\r\n\r\n" + letter("2"))
		c.answers(200, `"1"`)
		c.answers(200, "GET /x")
		c.answers(200, `"2"`)
		for what, b := range breaches {
			c := open()
			c.say("POST /boxes/a/letters HTTP/1.1\r\n" + b.head + "\r\n{}" + letter("behind"))
			if status, body, closes := c.answer(); status != 400 || !closes || !strings.Contains(body, b.says) {
				t.Errorf("%s: %d %s, closes %t", what, status, body, closes)
			}
			if b.says == "folded" { // closing is the same for all, and takes a moment
				c.ends()
			}
		}
	}
	for _, got := range h.seen() {
		if strings.Contains(got, "behind") {
			t.Errorf("what should not have arrived: %s", got)
		}
	}
}

// HTTP/2 has frames for the end of a body; a length is asked for all the same, and must be true.
//
// covers: IN-116 IN-120
func TestOverHTTP2(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	server, config := secured(t)
	address := start(t, g, withTLS{h}, server)
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	checkHTTP2(t, transport, "https://"+address)
}

func checkHTTP2(t *testing.T, transport *http.Transport, base string) {
	t.Helper()
	for _, c := range []struct {
		path, body string
		length     int64
		status     int
		says       string
	}{
		{"/boxes/a/letters", "{}", 2, 200, `"{}"`},
		{"/boxes/a/letters", "{}", -1, 400, "missing"},
		{"/boxes/a/letters", strings.Repeat("x", maxBody+1), maxBody + 1, 400, "above 1024 bytes"},
		{"/boxes/a/letters", "", 1 << 40, 400, "above 1024 bytes"},
		{"/elsewhere", "{}", -1, 200, `"{}"`},
		{"/boxes/a/letters", "{}", 2, 200, `"{}"`}, // the connection is still good
	} {
		body := io.NopCloser(strings.NewReader(c.body))
		if c.body == "" { // the rest never comes
			hold, more := io.Pipe()
			defer more.Close()
			body = hold
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", base+c.path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = c.length
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.StatusCode != c.status || !bytes.Contains(text, []byte(c.says)) {
			t.Errorf("%s with a length of %d: %s %s %s", c.path, c.length, resp.Proto, resp.Status, text)
		}
	}
}

// Who does not speak TLS, or says nothing, keeps nobody else waiting, and ends.
func TestHandshakes(t *testing.T) {
	g, err := framing.New(framing.Config{Routes: []string{letters}, MaxBody: maxBody, HandshakeTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	server, config := secured(t)
	address := start(t, g, withTLS{&handler{gate: g}}, server)
	silent := dial(t, address)
	plain := dial(t, address)
	plain.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	plain.answers(400, "HTTP request to an HTTPS server")
	c, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	spoken := wrap(t, c)
	spoken.say(letter("1"))
	spoken.answers(200, `"1"`)
	if n, err := silent.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("%d bytes, %v", n, err)
	} else if limit := (net.Error)(nil); errors.As(err, &limit) && limit.Timeout() {
		t.Error("a client that says nothing is waited for")
	}
}

// A listener ends all that it has begun, whether anybody took it or not.
func TestListenersEnd(t *testing.T) {
	g := newGate(t)
	server, _ := secured(t)
	for _, accepts := range []bool{true, false} {
		below, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l := g.Listener(tls.NewListener(below, server))
		accepted := make(chan error, 1)
		if accepts {
			go func() {
				_, err := l.Accept()
				accepted <- err
			}()
		}
		dial(t, below.Addr().String()) // says nothing
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if accepts {
			if err := <-accepted; !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
}
