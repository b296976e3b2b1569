package framing_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/httpapi/framing"
)

// script is a connection whose client says its parts, one a read at most, and leaves.
type script struct {
	mu    sync.Mutex
	parts [][]byte
	out   bytes.Buffer
}

func (s *script) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.parts[0])
	if s.parts[0] = s.parts[0][n:]; len(s.parts[0]) == 0 {
		s.parts = s.parts[1:]
	}
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "script", Net: "unix"} }
func (s *script) RemoteAddr() net.Addr             { return s.LocalAddr() }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// one is a listener of one connection.
type one struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func listenTo(c net.Conn) *one {
	l := &one{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conns <- c
	return l
}

func (l *one) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *one) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *one) Addr() net.Addr { return (&script{}).LocalAddr() }

// cut divides a text at random, or at each byte.
func cut(text string, random *rand.Rand) [][]byte {
	var parts [][]byte
	for at := 0; at < len(text); {
		n := 1
		if random != nil {
			n = min(1+random.IntN(40), len(text)-at)
		}
		parts = append(parts, []byte(text[at:at+n]))
		at += n
	}
	return parts
}

// through returns what a reader that takes some bytes at a time gets of the parts.
func through(t *testing.T, g *framing.Gate, parts [][]byte, size int) string {
	t.Helper()
	l := g.Listener(listenTo(&script{parts: parts}))
	defer l.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if _, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{c}, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	return got.String()
}

// courses are what clients say on a connection.
func courses() map[string]string {
	const chunks = "POST /elsewhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	all := map[string]string{
		"nothing":         "",
		"half a line":     "POST /boxes/a/let",
		"half a head":     "POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nContent-Le",
		"no line":         "POST /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n1\r\na\r",
		"half a body":     "POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
		"many":            letter("1") + "GET /x HTTP/1.1\r\nHost: x\r\n\r\n" + letter("2") + letter(strings.Repeat("x", maxBody)),
		"blank lines":     letter("1") + "\r\n\r\n" + letter("2") + "\n" + letter("3"),
		"chunks":          chunks + "5\r\nhello\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\n\r\n" + letter("1"),
		"trailers":        chunks + "1\r\na\r\n0\r\nX: y\r\nZ: \r\n\r\n" + letter("1"),
		"no chunk":        chunks + "0\r\n\r\n" + letter("1"),
		"a bad size":      chunks + "x\r\n" + letter("1"),
		"no size":         chunks + "\r\n" + letter("1"),
		"a huge size":     chunks + "fffffffffffffffff\r\n" + letter("1"),
		"a signed size":   chunks + "-1\r\n" + letter("1"),
		"a space behind":  chunks + "0 \r\n\r\n" + letter("1"),
		"a line feed":     chunks + "0\n\r\n" + letter("1"),
		"another":         chunks + "0\r\n\n" + letter("1"),
		"in a trailer":    chunks + "0\r\nX: y\n\n" + letter("1") + "\r\n\r\n",
		"a short chunk":   chunks + "5\r\nhell\r\n0\r\n\r\n" + letter("1"),
		"a long chunk":    chunks + "1\r\nhello\r\n0\r\n\r\n" + letter("1"),
		"in an extension": chunks + "1;\n0\r\n\r\na\r\n0\r\n\r\n" + letter("1"),
		"both elsewhere": "POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
			letter("1"),
		"equal lengths":    "POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}" + letter("1"),
		"a fold elsewhere": "GET /elsewhere HTTP/1.1\r\nHost: x\r\nX: y\r\n Content-Length: 3\r\n\r\n" + letter("1"),
		"line feeds only":  "GET /elsewhere HTTP/1.1\nHost: x\n\n" + letter("1"),
		"an old version":   "GET /elsewhere HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + letter("1"),
		"old chunks":       "POST /elsewhere HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + letter("1"),
		"a tunnel":         "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n" + letter("1"),
		"HTTP/2":           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + letter("1"),
		"nearly HTTP/2":    "PRI * HTTP/2.0\r\nHost: x\r\n\r\n" + letter("1"),
		"expectations":     "POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}" + letter("1"),
		"a head for a body": "POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n" +
			"POST /boxes/a/letters " + letter("1"),
		"an upgrade that is none": "GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + letter("1"),
	}
	for what, b := range breaches {
		all["breach: "+what] = "GET /x HTTP/1.1\r\nHost: x\r\n\r\nPOST /boxes/a/letters HTTP/1.1\r\n" + b.head + "\r\n{}" + letter("1")
		all["elsewhere: "+what] = "POST /elsewhere HTTP/1.1\r\n" + b.head + "\r\n{}" + letter("1")
	}
	return all
}

// What comes through does not depend on how the network has cut it, or on how it is taken.
func TestPacketsDoNotMatter(t *testing.T) {
	g := newGate(t)
	random := rand.New(rand.NewPCG(1, 2))
	for what, text := range courses() {
		whole := through(t, g, [][]byte{[]byte(text)}, 4<<10)
		for size := range map[int]bool{1: true, 7: true, 4 << 10: true} {
			if got := through(t, g, cut(text, nil), size); got != whole {
				t.Errorf("%s, byte by byte, taken by %d:\n%q\ninstead of\n%q", what, size, got, whole)
			}
			for range 5 {
				if got := through(t, g, cut(text, random), size); got != whole {
					t.Errorf("%s, in parts, taken by %d:\n%q\ninstead of\n%q", what, size, got, whole)
				}
			}
		}
		if before := strings.TrimSuffix(text, letter("1")); strings.HasPrefix(what, "elsewhere: ") && !strings.HasPrefix(whole, before) {
			t.Errorf("%s: what the rules do not hold for was changed: %q", what, whole)
		}
	}
}

// served is what a server makes of a connection.
type served struct {
	got     []string // what its handler accepted
	refused bool     // the handler refused something
	answers string
}

// tally accepts everything that its gate, if it has one, does not refuse.
type tally struct {
	t    *testing.T
	gate *framing.Gate
	served
}

func (h *tally) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.gate != nil {
		if err := h.gate.Check(r); err != nil {
			h.refused = true
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	lengths := r.Header["Content-Length"]
	body, err := io.ReadAll(r.Body)
	text := fmt.Sprintf("%s %s %q %v", r.Method, r.RequestURI, body, err)
	h.got = append(h.got, text)
	if held := r.Method == "POST" && r.URL.EscapedPath() == "/boxes/a/letters"; held && h.gate != nil && (len(r.TransferEncoding) > 0 ||
		len(lengths) != 1 || r.ContentLength > maxBody || err == nil && lengths[0] != fmt.Sprint(len(body))) {
		h.t.Errorf("%s came through with %v, %q", text, r.TransferEncoding, lengths)
	}
	_, _ = io.WriteString(w, text)
}

func serveScript(t *testing.T, parts [][]byte, g *framing.Gate) served {
	h := &tally{t: t, gate: g}
	conn := &script{parts: parts}
	var l net.Listener = listenTo(conn)
	if g != nil {
		l = g.Listener(l)
	}
	closed := make(chan struct{})
	s := &http.Server{Handler: h, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	<-closed
	s.Close()
	<-ended
	h.answers = regexp.MustCompile("Date: [^\r]*").ReplaceAllString(conn.out.String(), "")
	return h.served
}

// checkTransparent holds a server behind a gate against one that has none. What it accepts is what
// the other one accepted, in the same order, up to a refusal; without one nothing differs at all.
func checkTransparent(t *testing.T, text string, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		plain := serveScript(t, cut(text, random), nil)
		gated := serveScript(t, cut(text, random), newGate(t))
		if len(gated.got) > len(plain.got) || !slices.Equal(gated.got, plain.got[:len(gated.got)]) {
			t.Errorf("%q\nbehind a gate: %q\nwithout: %q", text, gated.got, plain.got)
		}
		if !gated.refused && gated.answers != plain.answers {
			t.Errorf("%q\nbehind a gate: %s\nwithout: %s", text, gated.answers, plain.answers)
		}
	})
}

func TestTransparent(t *testing.T) {
	for what, text := range courses() {
		t.Run(what, func(t *testing.T) {
			for seed := range uint64(3) {
				checkTransparent(t, text, seed)
			}
		})
	}
}

// A connection on which something came that two parsers may read in two ways is of no more use to
// the routes that are held to the rules; one that was followed is.
func TestWhatIsFollowed(t *testing.T) {
	followed := []string{
		"many", "blank lines", "chunks", "trailers", "no chunk", "an old version", "expectations", "a head for a body",
		"an upgrade that is none", "elsewhere: no length", "elsewhere: a length above the bound",
	}
	ambiguous := []string{
		"both elsewhere", "equal lengths", "a fold elsewhere", "line feeds only", "a tunnel", "a space behind",
		"elsewhere: two equal lengths", "elsewhere: zeros before it", "elsewhere: a bare line feed",
	}
	all := courses()
	synctest.Test(t, func(t *testing.T) {
		for _, what := range slices.Concat(followed, ambiguous) {
			text := all[what]
			if what == "elsewhere: no length" || what == "an upgrade that is none" {
				text = strings.Replace(text, "\r\n\r\n{}", "\r\n\r\n", 1)
			}
			if what == "elsewhere: a length above the bound" {
				text = strings.Replace(text, "\r\n\r\n{}", "\r\n\r\n"+strings.Repeat("x", maxBody+1), 1)
			}
			s := serveScript(t, [][]byte{[]byte(text)}, newGate(t))
			if want := slices.Contains(ambiguous, what); s.refused != want || len(s.got) == 0 {
				t.Errorf("%s: refused %t, after %.100q", what, s.refused, s.got)
			}
			if s.refused && !strings.Contains(s.answers, "it is not certain where this request begins") {
				t.Errorf("%s: %s", what, s.answers)
			}
		}
	})
}

func FuzzTransparent(f *testing.F) {
	for _, text := range courses() {
		f.Add([]byte(text), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		if len(text) < 8<<10 {
			checkTransparent(t, string(text), seed)
		}
	})
}
