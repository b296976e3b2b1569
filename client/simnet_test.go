package client_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing/synctest"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// parcel is something under way: a request to the server, or the answer to one.
type parcel struct {
	of     *life
	serial int // in the order in which parcels set out
	due    int // the step before which it is held back

	method, path string // the path with its query
	last         string // Last-Event-ID
	body         []byte
	op           readsync.Operation // that a request carries out; without an id for any other
	waiter       *waiter            // the client's; nil for a copy, whose answer is nobody's

	answer *reply  // nil for a request
	stream *stream // that begins with the answer; nil for any other
}

type reply struct {
	resp *http.Response
	err  error
}

// waiter is where a client waits for an answer until it gives up.
type waiter struct {
	reply chan reply
	left  chan struct{}
}

// give hands an answer over, and reports whether somebody took it.
func (w *waiter) give(r reply) bool {
	select {
	case w.reply <- r:
		return true
	case <-w.left:
		return false
	}
}

func (p *parcel) String() string {
	s := p.of.String() + " " + p.method + " " + p.path
	if p.op.ID != "" {
		s += " (" + p.op.ID + ")"
	}
	if p.answer != nil {
		s = "the answer to " + s
	}
	return s
}

var (
	errCut     = errors.New("connection reset by peer")
	errRefused = errors.New("connection refused")
	errDead    = errors.New("the process is dead")
)

// gone tells whether the client has given up.
func (w *waiter) gone() bool {
	select {
	case <-w.left:
		return true
	default:
		return false
	}
}

// simNet is what is between the devices and the server. Nothing moves in it by itself: requests
// wait until the history takes them on, and so do answers and the events of streams.
type simNet struct {
	mu      sync.Mutex
	arrived []*parcel // since the history looked, in no order that means anything
	flying  []*parcel
	streams []*stream
	serial  int
}

// collect takes over what set out since the last look, in an order that does not depend on which
// goroutine was the first.
func (n *simNet) collect() {
	n.mu.Lock()
	arrived := n.arrived
	n.arrived = nil
	n.mu.Unlock()
	slices.SortStableFunc(arrived, func(a, b *parcel) int {
		return cmp.Or(cmp.Compare(a.of.String(), b.of.String()), cmp.Compare(a.method, b.method),
			cmp.Compare(a.path, b.path), bytes.Compare(a.body, b.body))
	})
	for _, p := range arrived {
		n.send(p)
	}
}

func (n *simNet) send(p *parcel) {
	n.serial++
	p.serial = n.serial
	n.flying = append(n.flying, p)
}

// take takes a parcel out.
func (n *simNet) take(p *parcel) {
	n.flying = slices.DeleteFunc(n.flying, func(x *parcel) bool { return x == p })
}

// forget takes everything out that picks.
func (n *simNet) forget(picks func(*parcel) bool) {
	n.flying = slices.DeleteFunc(n.flying, func(p *parcel) bool {
		if !picks(p) {
			return false
		}
		p.fail(errCut)
		return true
	})
}

// fail tells the client that nothing will come of its request.
func (p *parcel) fail(err error) {
	if p.stream != nil {
		p.stream.cut()
	}
	if p.waiter != nil {
		p.waiter.give(reply{err: err})
	}
}

// transport is the network as a client sees it.
type transport struct{ of *life }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	if t.of.dead.Load() {
		return nil, errDead
	}
	if t.of.offline.Load() {
		return nil, errRefused // before a byte left
	}
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	w := &waiter{reply: make(chan reply), left: make(chan struct{})}
	defer close(w.left)
	p := &parcel{
		of: t.of, method: req.Method, path: req.URL.RequestURI(), body: body, waiter: w,
		last: req.Header.Get("Last-Event-ID"),
	}
	if session, is := strings.CutSuffix(strings.TrimPrefix(p.path, "/api/sessions/"), "/read-state"); is {
		p.op = t.of.first(session)
	}
	net := t.of.device.run.net
	net.mu.Lock()
	net.arrived = append(net.arrived, p)
	net.mu.Unlock()
	select {
	case r := <-w.reply:
		if r.resp != nil {
			if s, is := r.resp.Body.(*streamBody); is {
				context.AfterFunc(req.Context(), s.stream.cut)
			}
		}
		return r.resp, r.err
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// stream is the answer to GET /api/events, from the handler that writes it to the client that reads.
type stream struct {
	of     *life
	cancel context.CancelFunc // the handler's
	ended  chan struct{}      // the handler returned
	due    int                // the step before which its events are held back
	open   bool               // the client has the answer
	out    *io.PipeWriter     // to the client

	mu     sync.Mutex
	header http.Header
	status int
	buffer bytes.Buffer
	broken bool
}

// streamBody is what the client reads.
type streamBody struct {
	*io.PipeReader
	stream *stream
}

// Close implements io.Closer.
func (b *streamBody) Close() error {
	b.stream.cut()
	return b.PipeReader.Close()
}

// Header, WriteHeader, Write and Flush implement http.ResponseWriter and http.Flusher.
func (s *stream) Header() http.Header { return s.header }

func (s *stream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == 0 {
		s.status = http.StatusOK
	}
	return s.buffer.Write(b)
}

func (*stream) Flush() {}

// frames takes out at most so many whole events that wait.
func (s *stream) frames(most int) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; most > 0; most-- {
		end := bytes.Index(s.buffer.Bytes(), []byte("\n\n"))
		if end < 0 {
			return out
		}
		out = append(out, string(s.buffer.Next(end+2)))
	}
	return out
}

// waits tells whether there is an event to deliver, or the end.
func (s *stream) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.Len() > 0 || s.over()
}

func (s *stream) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// cut breaks the connection, for both ends.
func (s *stream) cut() {
	s.mu.Lock()
	s.broken = true
	s.mu.Unlock()
	s.cancel()
	_ = s.out.CloseWithError(errCut)
}

func (s *stream) isBroken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// request makes the parcel what a server gets.
func (p *parcel) request(ctx context.Context, token string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, p.method, "http://server"+p.path, bytes.NewReader(p.body))
	if err != nil {
		panic(err) // the client made it before
	}
	req.RequestURI = p.path
	req.Header.Set("Authorization", "Bearer "+token)
	if len(p.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if p.last != "" {
		req.Header.Set("Last-Event-ID", p.last)
	}
	return req
}

// begin has a handler answer with a stream, and returns once the handler waits.
func (n *simNet) begin(p *parcel, handler http.Handler, token string) *parcel {
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	s := &stream{
		of: p.of, cancel: cancel, ended: make(chan struct{}), out: out, header: http.Header{},
	}
	go func() {
		defer close(s.ended)
		handler.ServeHTTP(s, p.request(ctx, token))
	}()
	synctest.Wait()
	s.mu.Lock()
	resp := &http.Response{
		StatusCode: s.status, Header: s.header, Body: &streamBody{in, s}, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1,
	}
	s.mu.Unlock()
	n.streams = append(n.streams, s)
	return &parcel{
		of: p.of, method: p.method, path: p.path, waiter: p.waiter, stream: s,
		answer: &reply{resp: resp},
	}
}
