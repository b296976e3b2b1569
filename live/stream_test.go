package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is an engine with members A and B in a channel c.
type bench struct {
	t      *testing.T
	engine *tidemark.Engine
	ws     *tidemark.Workspace
	ops    int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	ctx := t.Context()
	engine, err := tidemark.Open(ctx, tidemark.Options{
		Facts: "sqlite:" + filepath.Join(t.TempDir(), "facts.db"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{t: t, engine: engine, ws: engine.Workspace("W")}
	if _, err := engine.CreateWorkspace(ctx, "W", "W"); err != nil {
		t.Fatal(err)
	}
	for _, m := range []readstate.MemberID{"A", "B"} {
		if _, err := b.ws.PutMember(ctx, facts.PutMember{ID: m}); err != nil {
			t.Fatal(err)
		}
	}
	b.channel("c")
	return b
}

func (b *bench) channel(id readstate.ScopeID) {
	b.t.Helper()
	ctx := b.t.Context()
	if _, err := b.ws.PutScope(ctx, facts.PutScope{ID: id, Type: readstate.Channel}); err != nil {
		b.t.Fatal(err)
	}
	for _, m := range []readstate.MemberID{"A", "B"} {
		if _, err := b.ws.PutMembership(ctx, facts.PutMembership{Scope: id, Member: m}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// post posts n messages in few commits.
func (b *bench) post(scope readstate.ScopeID, n int) {
	b.t.Helper()
	batch := b.ws.Batch()
	for range n {
		b.ops++
		batch.Post(facts.Post{Scope: scope, OpID: fmt.Sprint("op", b.ops), Author: "A"})
	}
	results, err := batch.Run(b.t.Context())
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// pipeListener accepts connections without any buffer: what the client does not read, the
// server cannot write.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// client reads a stream as slowly as the test wants.
type client struct {
	conn  net.Conn
	lines *bufio.Reader
}

// serve opens B's stream on a connection without buffers, and reads up to the snapshot.
func (b *bench) serve(hub *Hub, scopes ...readstate.ScopeID) (*client, chan error) {
	b.t.Helper()
	ended := make(chan error, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := hub.Open(r.Context(), Subscription{
			Workspace: b.ws, Members: []readstate.MemberID{"B"}, Scopes: scopes,
		})
		if err != nil {
			ended <- err
			return
		}
		s.SSE(w, r, func(err error) { ended <- err })
	})}
	listener := newPipeListener()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	near, far := net.Pipe()
	listener.conns <- far
	b.t.Cleanup(func() {
		near.Close()
		server.Close()
		<-served
	})
	if err := near.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		b.t.Fatal(err)
	}
	if _, err := fmt.Fprint(near, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		b.t.Fatal(err)
	}
	c := &client{near, bufio.NewReader(near)}
	for name := ""; name != "snapshot"; {
		name, _ = c.event(b.t)
	}
	return c, ended
}

// event reads one event.
func (c *client) event(t *testing.T) (name string, data map[string]any) {
	t.Helper()
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "event: "); ok {
			name = text
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(text), &data); err != nil {
				t.Fatal(err)
			}
		}
		if line == "" && name != "" {
			return name, data
		}
	}
}

func TestSlowClientsSkipValues(t *testing.T) {
	b := newBench(t)
	b.channel("d")
	hub := NewHub(Options{})
	c, _ := b.serve(hub)
	for range 50 {
		b.post("c", 10)
		b.post("d", 10)
	}
	frames := map[any]int{}
	newest := map[any]float64{}
	for newest["c"] < 500 || newest["d"] < 500 {
		name, data := c.event(t)
		if name != "unread" {
			continue
		}
		scope, unread := data["scope"], data["row"].(map[string]any)["unread"].(float64)
		if unread < newest[scope] {
			t.Errorf("%v went from %v back to %v", scope, newest[scope], unread)
		}
		newest[scope] = unread
		frames[scope]++
		badge := data["badge"].(map[string]any)["messages"].(float64)
		if badge < unread {
			t.Errorf("the badge says %v beside a row of %v", badge, unread)
		}
	}
	// One that was taken before the client fell behind, one that waited in the connection, and
	// the newest.
	if frames["c"] > 3 || frames["d"] > 3 {
		t.Errorf("a client that read nothing for 100 commits got %v frames", frames)
	}
	drain(t, hub)
}

func drain(t *testing.T, hub *Hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := hub.Drain(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestClientsThatDoNotReadAreLeft(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{WriteTimeout: 20 * time.Millisecond})
	_, ended := b.serve(hub)
	b.post("c", 1)
	if err := <-ended; !errors.Is(err, errSlow) {
		t.Errorf("ended with %v", err)
	}
	drain(t, hub) // a stream is left after its end was told
	if s := hub.Stats(); s.Slow != 1 || s.Streams != 0 {
		t.Errorf("stats are %+v", s)
	}
	b.post("c", 1) // nobody waits for the one who has left
}

func TestOverrunOfMessagesEndsTheStream(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{})
	c, ended := b.serve(hub, "c")
	b.post("c", 1000)
	go func() { // reads on, whatever comes
		for {
			if _, err := c.lines.ReadString('\n'); err != nil {
				return
			}
		}
	}()
	if err := <-ended; !errors.Is(err, errOverrun) {
		t.Errorf("ended with %v", err)
	}
}

func TestDrainWaitsNoLongerThanAsked(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{WriteTimeout: 20 * time.Second})
	c, ended := b.serve(hub)
	b.post("c", 1) // now the stream hangs in a write
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := hub.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("drain: %v", err)
	}
	if _, err := hub.Open(context.Background(), Subscription{Workspace: b.ws}); !errors.Is(err, ErrDraining) {
		t.Errorf("open: %v", err)
	}
	c.conn.Close()
	if err := <-ended; err != nil {
		t.Errorf("a client that left is a failure: %v", err)
	}
	drain(t, hub)
}

// recorder is a connection that keeps what is written, as clients would decode it.
type recorder struct{ frames []Frame }

func (r *recorder) write(_ context.Context, f Frame) error {
	data, err := Encode(f.Data)
	if err != nil {
		return err
	}
	switch f.Data.(type) {
	case json.RawMessage:
		var page Page
		err = json.Unmarshal(data, &page)
		f.Data = page
	case *change:
		var d Delta
		err = json.Unmarshal(data, &d)
		f.Data = d
	}
	r.frames = append(r.frames, f)
	return err
}

func (r *recorder) beat(context.Context) error { return nil }

// After memory went, the stream has a new watch and tells everything anew.
func TestStreamStartsAnewAfterMemoryWent(t *testing.T) {
	b := newBench(t)
	b.channel("d")
	b.post("c", 2)
	hub := NewHub(Options{PageRows: 1})
	ctx := t.Context()
	s, err := hub.Open(ctx, Subscription{Workspace: b.ws, Members: []readstate.MemberID{"B"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := &recorder{}
	s.sink = to
	old := s.watch
	if err := s.again(); err != nil {
		t.Fatal(err)
	}
	if err := s.pay(ctx); err != nil {
		t.Fatal(err)
	}
	if s.watch == old || len(to.frames) != 2 {
		t.Fatalf("%d frames", len(to.frames))
	}
	last := to.frames[1]
	if page, ok := last.Data.(Page); !ok || !page.Complete || last.ID == "" {
		t.Errorf("the last frame is %+v", last)
	}
	to.frames = nil
	b.post("d", 1)
	<-s.watch.Ready()
	if err := s.deltas(ctx); err != nil {
		t.Fatal(err)
	}
	if d, ok := to.frames[0].Data.(Delta); !ok || d.Scope != "d" || to.frames[0].ID == "" {
		t.Errorf("got %+v", to.frames)
	}
}

// meddler posts while a snapshot is being written.
type meddler struct {
	recorder
	between func()
}

func (m *meddler) write(ctx context.Context, f Frame) error {
	if len(m.frames) == 0 {
		m.between()
	}
	return m.recorder.write(ctx, f)
}

// The position after a snapshot of several pages is that of the first page: what changed while
// the others were read is told again after a resume.
func TestPositionOfASnapshotIsItsFirstPage(t *testing.T) {
	b := newBench(t)
	b.channel("d")
	hub := NewHub(Options{PageRows: 1})
	ctx := t.Context()
	s, err := hub.Open(ctx, Subscription{Workspace: b.ws, Members: []readstate.MemberID{"B"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := &meddler{between: func() { b.post("c", 1) }}
	s.sink = to
	if err := s.pay(ctx); err != nil {
		t.Fatal(err)
	}
	first, last := to.frames[0].Data.(Page), to.frames[len(to.frames)-1]
	if last.ID != fmt.Sprint(first.LSN) || last.Data.(Page).LSN == first.LSN {
		t.Errorf("first page at %d, id %q", first.LSN, last.ID)
	}
}

// A position names a commit through which everything was sent, so it stands on the last delta of
// a round only: who lost the connection in between gets the rest after a resume.
func TestOnlyTheLastDeltaIsAPosition(t *testing.T) {
	b := newBench(t)
	b.channel("d")
	hub := NewHub(Options{})
	ctx := t.Context()
	s, err := hub.Open(ctx, Subscription{Workspace: b.ws, Members: []readstate.MemberID{"B"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := &recorder{}
	s.sink = to
	if err := s.pay(ctx); err != nil {
		t.Fatal(err)
	}
	to.frames = nil
	b.post("c", 1)
	b.post("d", 1)
	if err := s.deltas(ctx); err != nil {
		t.Fatal(err)
	}
	if len(to.frames) != 2 || to.frames[0].ID != "" || to.frames[1].ID == "" {
		t.Errorf("got %+v", to.frames)
	}
}

// While a member still waits for its first snapshot, no position may be given out: resuming
// there would leave the member's rows out.
func TestNoPositionWhileAMemberWaits(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{})
	ctx := t.Context()
	s, err := hub.Open(ctx, Subscription{
		Workspace: b.ws, Members: []readstate.MemberID{"A", "B"}, Many: true, Trusted: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := &recorder{}
	s.sink, s.waiting = to, []readstate.MemberID{"A"}
	s.debts = []debt{{member: "B"}}
	if err := s.pay(ctx); err != nil {
		t.Fatal(err)
	}
	b.post("c", 1)
	<-s.watch.Ready()
	if err := s.deltas(ctx); err != nil {
		t.Fatal(err)
	}
	for _, f := range to.frames {
		if f.ID != "" {
			t.Errorf("a position was given out with %+v", f)
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{})
	ctx := t.Context()
	_, err := hub.Open(ctx, Subscription{Workspace: b.ws, Members: make([]readstate.MemberID, MaxMembers+1), Many: true})
	if !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("too many members: %v", err)
	}
	_, err = hub.Open(ctx, Subscription{Workspace: b.ws, Members: []readstate.MemberID{"B"}, Scopes: make([]readstate.ScopeID, MaxScopes+1)})
	if !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("too many scopes: %v", err)
	}
	s, err := hub.Open(ctx, Subscription{Workspace: b.ws, Members: []readstate.MemberID{"B"}, Many: true, Trusted: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := &recorder{}
	s.sink = to
	ids := make([]string, MaxMembers)
	for i := range ids {
		ids[i] = fmt.Sprint("m", i)
	}
	if err := s.obey(ctx, command{Watch: ids}); err != nil {
		t.Fatal(err)
	}
	if r, ok := to.frames[0].Data.(Refused); !ok || r.Code != "over_budget" || len(s.members) != 1 {
		t.Errorf("got %+v", to.frames)
	}
	if n := hub.Stats().Streams; n != 1 {
		t.Errorf("%d streams are counted", n)
	}
}

// HTTP/2 resets a stream whose write deadline passes, even while nothing is written: an idle
// stream must have none.
func TestIdleStreamsLastOverHTTP2(t *testing.T) {
	b := newBench(t)
	hub := NewHub(Options{WriteTimeout: 100 * time.Millisecond, Heartbeat: 150 * time.Millisecond})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := hub.Open(r.Context(), Subscription{
			Workspace: b.ws, Members: []readstate.MemberID{"B"},
		})
		if err != nil {
			t.Error(err)
			return
		}
		s.SSE(w, r, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatal("not HTTP/2")
	}
	lines := bufio.NewScanner(resp.Body)
	for beats := 0; beats < 3; {
		if !lines.Scan() {
			t.Fatalf("ended after %d heartbeats: %v", beats, lines.Err())
		}
		if lines.Text() == ":" {
			beats++
		}
	}
}
