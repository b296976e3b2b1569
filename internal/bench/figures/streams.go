package figures

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/readstate"
)

// bareStreams is what a user of net/http would write: a handler that holds its connection open,
// and a loop that writes to all of them.
type bareStreams struct {
	http   *http.Server
	served chan error
	addr   string

	handlers sync.WaitGroup
	seated   chan struct{} // a value for each connection in open
	over     chan struct{} // closed when the loop has written its last

	mu   sync.Mutex
	open []*bareStream
}

type bareStream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func openBareStreams(ctx context.Context) (*bareStreams, error) {
	b := &bareStreams{
		served: make(chan error, 1), seated: make(chan struct{}), over: make(chan struct{}),
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b.addr = l.Addr().String()
	b.http = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	go func() { b.served <- b.http.Serve(l) }() // until close
	return b, nil
}

// ServeHTTP implements http.Handler: one event at once, then whatever the loop writes.
func (b *bareStreams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &bareStream{w, http.NewResponseController(w)}
	b.handlers.Add(1)
	defer b.handlers.Done()
	if _, err := w.Write([]byte("event: hello\ndata: {}\n\n")); err != nil {
		return
	}
	if s.rc.Flush() != nil {
		return
	}
	b.mu.Lock()
	b.open = append(b.open, s) // from now on the loop writes, and nobody else
	b.mu.Unlock()
	select {
	case b.seated <- struct{}{}:
		<-b.over // not when the client leaves: the loop may be writing
	case <-r.Context().Done():
	}
}

// await returns when n more handlers have handed their connections over to the loop.
func (b *bareStreams) await(ctx context.Context, n int) error {
	for range n {
		select {
		case <-b.seated:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// write writes an event to every connection, from as many goroutines as there are processors.
func (b *bareStreams) write(event []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := runtime.GOMAXPROCS(0)
	_, err := together(n, func(g int) error {
		for i := g; i < len(b.open); i += n {
			if _, err := b.open[i].w.Write(event); err != nil {
				return err
			}
			if err := b.open[i].rc.Flush(); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func (b *bareStreams) close() error {
	close(b.over)
	err := b.http.Close()
	if e := <-b.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	b.handlers.Wait()
	return err
}

// theatre is a shop whose channel has a member for each connection, and a bare server beside it.
type theatre struct {
	*shop
	connections int
	posted      int
}

const stage readstate.ScopeID = "stage"

// runStreams measures connections of server-sent events.
func runStreams(ctx context.Context, r *bench.Run) (err error) {
	want := bench.Pick(r.Scale, 100, 10_000, 10_000)
	files := allowFiles(uint64(2*want + 500))
	connections := min(want, (int(files)-400)/2)
	s, err := openShop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	t := &theatre{shop: s, connections: connections}
	if err := t.fillSeats(ctx, r); err != nil {
		return err
	}
	for _, name := range []string{sseMemory, sseDeliveries} {
		f := r.Figure(name)
		f.Note("%d connections, each of a member of its own in one channel, held as bare "+
			"descriptors by this process. Files allowed: %d.", connections, files)
	}
	r.Figure(sseMemory).Note("Counted is what the Go heap and stacks in use grow by from before the " +
		"first connection to after the last first event, each after a full collection; members' " +
		"rows were in memory before. The bare handler gets the same requests, tokens included.")
	messages := bench.Pick(r.Scale, 3, 20, 20)
	r.Figure(sseDeliveries).Note("%d messages a round, each posted, durable in SQLite, and awaited "+
		"on every connection. The bare loop writes as many bytes to each connection from %d "+
		"goroutines, and is awaited likewise, by a reader that begins with the first byte.",
		messages, runtime.GOMAXPROCS(0))
	// Once without being looked at: what a process keeps of goroutines that ended is kept of both,
	// and the length of a delivery is known.
	last, err := t.round(ctx, messages)
	if err != nil {
		return err
	}
	if _, err := t.bareRound(ctx, messages, last.frame); err != nil {
		return err
	}
	return r.Each(ctx, func(ctx context.Context, round int) error {
		var shows [3]show
		order := []int{0, 1, 2}
		if round%2 == 1 {
			order = []int{2, 1, 0}
		}
		for _, k := range order {
			var err error
			if k == 1 {
				shows[k], err = t.round(ctx, messages)
				last = shows[k]
			} else {
				shows[k], err = t.bareRound(ctx, messages, last.frame)
			}
			if err != nil {
				return err
			}
		}
		report(r, shows[1], shows[0], shows[2])
		return nil
	})
}

// show is what a round of streams gave.
type show struct {
	memory float64 // bytes a connection
	stacks float64 // of them
	rate   float64 // deliveries a second
	frame  int     // bytes of a delivery
}

// remember takes what each of n connections has added to what was in use before.
func (s *show) remember(before use, n int) {
	now := inUse()
	s.stacks = (now.stacks - before.stacks) / float64(n)
	s.memory = s.stacks + (now.heap-before.heap)/float64(n)
}

func report(r *bench.Run, ours, bare, again show) {
	m, d := r.Figure(sseMemory), r.Figure(sseDeliveries)
	m.Add("Tidemark, per connection", bench.Bytes, ours.memory)
	m.Add("bare handler, per connection", bench.Bytes, bare.memory)
	m.Add("Tidemark, stacks of goroutines in it", bench.Bytes, ours.stacks)
	m.Add("bare handler, stacks of goroutines in it", bench.Bytes, bare.stacks)
	m.Hold(ours.memory / bare.memory)
	m.HoldControl(again.memory / bare.memory)
	d.Add("Tidemark", bench.PerSecond, ours.rate)
	d.Add("bare writes", bench.PerSecond, bare.rate)
	d.Add("bytes of a delivery", bench.Bytes, float64(ours.frame))
	d.Hold(ours.rate / bare.rate)
	d.HoldControl(again.rate / bare.rate)
}

// fillSeats makes the channel and loads every member once.
func (t *theatre) fillSeats(ctx context.Context, r *bench.Run) error {
	bar := r.Bar("filling", "members", t.connections)
	defer bar.End()
	err := t.fill(ctx, t.connections+2, func(b *facts.Batch, i int) {
		if i == 0 {
			b.PutScope(facts.PutScope{ID: stage, Type: readstate.Channel})
			return
		}
		b.PutMembership(facts.PutMembership{
			Scope: stage, Member: officeMember(i - 1), CreateMember: true,
		})
	}, func(n int) { bar.Set(int64(n)) })
	if err != nil {
		return err
	}
	for i := range t.connections {
		if _, err := t.ws.Summary(ctx, officeMember(i)); err != nil {
			return err
		}
	}
	return nil
}

// author is the member who has no connection and posts.
func (t *theatre) author() readstate.MemberID { return officeMember(t.connections) }

// request is what the i-th connection sends, to either server.
func (t *theatre) request(i int) ([]byte, error) {
	return t.get(officeMember(i), "/api/v1/workspaces/"+string(space)+"/events")
}

func (t *theatre) round(ctx context.Context, messages int) (show, error) {
	before := inUse()
	a, err := seat(t.addr, t.connections, t.request)
	if err != nil {
		return show{}, err
	}
	defer t.leave(a)
	if err := a.await(2); err != nil { // hello and the snapshot
		return show{}, fmt.Errorf("open streams: %w", err)
	}
	var s show
	s.remember(before, t.connections)
	from := a.bytes
	start := time.Now()
	for range messages {
		t.posted++
		_, err := t.ws.Post(ctx, facts.Post{
			Scope: stage, OpID: "op-" + strconv.Itoa(t.posted), Author: t.author(),
			Payload: payload, By: facts.Actor{Trusted: true},
		})
		if err == nil {
			err = a.await(1)
		}
		if err != nil {
			return show{}, fmt.Errorf("deliver: %w", err)
		}
	}
	deliveries := float64(messages * t.connections)
	s.rate = deliveries / time.Since(start).Seconds()
	s.frame = int(float64(a.bytes-from) / deliveries)
	return s, nil
}

// patience is how long a figure of streams waits for one of them.
const patience = 30 * time.Second

// leave closes the connections and waits until the server has noticed.
func (t *theatre) leave(a *audience) {
	a.close()
	deadline := time.Now().Add(patience)
	for t.api.Streams().Streams > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
}

func (t *theatre) bareRound(ctx context.Context, messages, frame int) (s show, err error) {
	before := inUse()
	b, err := openBareStreams(ctx)
	if err != nil {
		return show{}, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	a, err := seat(b.addr, t.connections, t.request)
	if err != nil {
		return show{}, err
	}
	defer a.close()
	if err = a.await(1); err == nil {
		err = b.await(ctx, t.connections)
	}
	if err != nil {
		return show{}, fmt.Errorf("open bare streams: %w", err)
	}
	s.remember(before, t.connections)
	event := bareEvent(frame)
	start := time.Now()
	for range messages {
		_, err := together(2, func(g int) error {
			if g == 0 {
				return b.write(event)
			}
			return a.await(1)
		})
		if err != nil {
			return show{}, fmt.Errorf("bare deliveries: %w", err)
		}
	}
	s.rate = float64(messages*t.connections) / time.Since(start).Seconds()
	return s, nil
}

// bareEvent is an event that takes so many bytes on a connection, the frame of the chunk
// included.
func bareEvent(size int) []byte {
	chunk := len(fmt.Sprintf("%x\r\n\r\n", size))
	event := append([]byte("data: "), make([]byte, max(0, size-chunk-8))...)
	for i := 6; i < len(event); i++ {
		event[i] = 'x'
	}
	return append(event, "\n\n"...)
}

// use is how much memory is in use.
type use struct{ heap, stacks float64 }

// inUse is what the Go heap and the stacks hold after a full collection.
func inUse() use {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return use{float64(m.HeapAlloc), float64(m.StackInuse)}
}
