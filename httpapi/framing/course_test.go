package framing_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tidemark-im/tidemark/httpapi/framing"
)

// A body that is shorter than its length is answered, and whatever the client sends afterwards is
// part of nothing.
//
// covers: IN-122
func TestShortBodies(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	address := start(t, g, h, nil)
	c := dial(t, address)
	c.say("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nshort")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.answers(400, "too early")
	c.ends()
	if got := h.seen(); len(got) > 0 {
		t.Errorf("what should not have arrived: %s", got)
	}
}

// A client that asks before it sends is told at once that it need not, or that it may.
func TestExpectations(t *testing.T) {
	g := newGate(t)
	c := dial(t, start(t, g, &handler{gate: g}, nil))
	c.say("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	if line, err := c.in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("%q, %v", line, err)
	}
	if line, err := c.in.ReadString('\n'); err != nil || line != "\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	c.say("{}")
	c.answers(200, `"{}"`)
	c.say("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2000\r\n\r\n")
	c.answers(400, "above 1024 bytes")
	c.ends()
}

// An answer arrives although its client goes on sending what nobody reads.
func TestRefusalsArrive(t *testing.T) {
	g := newGate(t)
	address := start(t, g, &handler{gate: g}, nil)
	for range 20 {
		c := dial(t, address)
		c.say("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000))
		c.answers(400, "above 1024 bytes")
	}
}

// The time that a head may take begins with its first byte, also behind another request, and
// whatever route it is for.
func TestHeadsThatDoNotArrive(t *testing.T) {
	g := newGate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: &handler{gate: g}, ReadHeaderTimeout: 100 * time.Millisecond, IdleTimeout: time.Hour}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(g.Listener(l)) }()
	defer func() { s.Close(); <-ended }()
	for _, before := range []string{"", "GET /before HTTP/1.1\r\nHost: x\r\n\r\n", letter("before")} {
		for _, head := range []string{"", "POST", "POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\n", "GET / HTTP/1.1\r\nHost"} {
			if head == "" && before != "" {
				continue // it may be idle for an hour
			}
			c := dial(t, l.Addr().String())
			c.say(before)
			if before != "" {
				c.answers(200, "before")
			}
			began := time.Now()
			go func() { // never a pause as long as the time
				for at := range len(head) {
					if _, err := c.Write([]byte{head[at]}); err != nil {
						return
					}
				}
			}()
			rest, err := io.ReadAll(c.in)
			if took := time.Since(began); err != nil || took > patience/2 {
				t.Errorf("behind %q, %q was waited for during %v: %v", before, head, took, err)
			}
			// net/http takes half a request line for a whole one that makes no sense.
			if len(rest) > 0 && (head != "POST" || !strings.HasPrefix(string(rest), "HTTP/1.1 400 ")) {
				t.Errorf("behind %q, %q was answered: %q", before, head, rest)
			}
		}
	}
}

// upgrades is a handler of web sockets beside others, and of streams in both directions.
type upgrades struct{ *handler }

func (u upgrades) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/socket":
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(1 << 20)
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	case "/stream":
		rc := http.NewResponseController(w)
		for i := range 1000 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = rc.Flush()
		}
	case "/taken":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
		_, _ = io.Copy(conn, io.LimitReader(conn, 100<<10))
	case "/until":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		u.handler.ServeHTTP(w, r)
	}
}

func TestSockets(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	address := start(t, g, upgrades{h}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, resp, err := websocket.Dial(ctx, "ws://"+address+"/socket", &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body != nil {
		defer resp.Body.Close()
	}
	defer c.CloseNow()
	c.SetReadLimit(1 << 20)
	for _, text := range []string{"hi", letter("within"), "\n", strings.Repeat("long ", 20_000), ""} {
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, back, err := c.Read(ctx); err != nil || string(back) != text {
			t.Fatalf("%.40q came back as %.40q, %v", text, back, err)
		}
	}
	if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	// An upgrade that was refused leaves a connection for anything else.
	refused := dial(t, address)
	for _, path := range []string{"/socket", "/x"} {
		refused.say("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		if status, body, closes := refused.answer(); status == 101 || closes {
			t.Errorf("%s: %d %s, closes %t", path, status, body, closes)
		}
		refused.say(letter("behind"))
		refused.answers(200, `"behind"`)
	}
	// What follows an upgrade in the same packet belongs to the other protocol.
	early := dial(t, address)
	early.say("GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x82\x00\x00\x00\x00hi")
	r, err := http.ReadResponse(early.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != 101 {
		t.Fatal(r.Status)
	}
	back := make([]byte, 4)
	if _, err := io.ReadFull(early.in, back); err != nil || string(back) != "\x81\x02hi" {
		t.Errorf("%q, %v", back, err)
	}
}

// An event stream comes through as it is written, ends when its client leaves, and leaves its
// connection for other requests when it ends by itself.
func TestStreams(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	address := start(t, g, upgrades{h}, nil)
	c := dial(t, address)
	c.say("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n" + letter("meanwhile"))
	status, body, _ := c.answer()
	if n := strings.Count(body, "data: "); status != 200 || n != 1000 {
		t.Errorf("%d, %d events", status, n)
	}
	c.answers(200, `"meanwhile"`)
	left := dial(t, address)
	left.say("GET /until HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := left.in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	left.Close() // start waits for the handler in the end
}

// A connection that a handler has taken over is its own, whatever comes.
func TestTakenConnections(t *testing.T) {
	g := newGate(t)
	address := start(t, g, upgrades{&handler{gate: g}}, nil)
	for _, text := range []string{
		strings.Repeat("a line without an end ", 5000)[:100<<10], strings.Repeat(letter("2"), 2000)[:100<<10],
		strings.Repeat("\n", 100<<10), strings.Repeat("X\n", 50<<10),
	} {
		c := dial(t, address)
		c.say("GET /taken HTTP/1.1\r\nHost: x\r\n\r\n")
		r, err := http.ReadResponse(c.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(c.Conn, text) }()
		if back, err := io.ReadAll(r.Body); err != nil || string(back) != text {
			t.Errorf("%d bytes came back, %v", len(back), err)
		}
		r.Body.Close()
	}
}

// A connection that waits holds nothing of what came before.
func TestIdleConnectionsAreSmall(t *testing.T) {
	g := newGate(t)
	address := start(t, g, &handler{gate: g}, nil)
	const n = 100
	big := "X: " + strings.Repeat("x", 200<<10) + "\r\n"
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	clients := make([]*client, n)
	for i := range clients {
		c := dial(t, address)
		c.say("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\n" + big + "Content-Length: 2\r\n\r\n{}")
		c.answers(200, `"{}"`)
		clients[i] = c
	}
	if each := (heap() - before) / n; each > 40<<10 {
		t.Errorf("each connection holds %d bytes", each)
	}
	for _, c := range clients {
		c.say(letter("still here"))
		c.answers(200, "still here")
	}
}

// Where nobody has called Listener the rules hold as far as net/http shows what it has read. Once
// somebody did, nothing comes in beside it, whatever mark it claims to have.
func TestBesideTheListener(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: patience}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	defer func() { s.Close(); <-ended }()
	ask := func(head string, status int, says string) {
		t.Helper()
		c := dial(t, l.Addr().String())
		c.say("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\n" + head + "\r\n{}")
		c.answers(status, says)
	}
	ask("Content-Length: 2\r\n", 200, `"{}"`)
	ask("Content-Length: 2\r\nContent-Length: 2\r\n", 200, `"{}"`) // net/http makes one of them
	ask("Transfer-Encoding: chunked\r\n", 400, "Transfer-Encoding")
	ask("Content-Length: 1025\r\n", 400, "above 1024 bytes")
	ask("", 400, "missing")
	if err := g.Listener(listenTo(&script{})).Close(); err != nil {
		t.Fatal(err)
	}
	ask("Content-Length: 2\r\n", 400, "not certain")
	ask("Content-Length: 2\r\nTidemark-Framing: \r\n", 400, "not certain")
	ask("Content-Length: 2\r\nTidemark-Framing: 00000000000000000000000000000000\r\n", 400, "not certain")
}

// What net/http shows of a request is enough where frames say how long its body is.
func TestWhatIsParsed(t *testing.T) {
	g := newGate(t)
	for want, lengths := range map[string][]string{
		"": {"2"}, "missing": nil, "more than one": {"2", "2"}, "decimal": {"02"}, "above 1024 bytes": {"1025"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "/boxes/a/letters", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.ProtoMajor, r.Header["Content-Length"] = 2, lengths
		if err := g.Check(r); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", lengths, err)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []framing.Config{
		{Routes: []string{"/x"}}, {Routes: []string{"POST x"}}, {Routes: []string{" /x"}}, {Routes: []string{"POST /{x"}},
		{MaxBody: -1}, {HeadBytes: -1}, {HandshakeTimeout: -1},
	} {
		if _, err := framing.New(c); err == nil {
			t.Errorf("%+v is no mistake", c)
		}
	}
	g, err := framing.New(framing.Config{Routes: []string{letters}, Prefix: "/mail", MaxBody: 2})
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{"/mail/boxes/a/letters": 400, "/boxes/a/letters": 200} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("POST " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Check(r); (err != nil) != (status == 400) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
