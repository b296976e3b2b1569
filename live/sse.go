package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// SSE serves the stream as server-sent events. Ended is called once, when the stream has ended,
// with why; nil when the server or the client ended it in order.
//
// A connection that carries nothing else is taken over from the HTTP server, as that of a socket
// is: an event then goes from the encoder to the connection, and not through two more buffers that
// each of thousands of connections would have. SSE then returns when the stream has begun, which
// goes on in goroutines of its own, so that nothing is kept of the request. Only Drain ends such a
// stream, no Close of the server. Every other connection is served until SSE returns.
func (s *Stream) SSE(w http.ResponseWriter, r *http.Request, ended func(error)) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must hand every event on at once
	if conn := takeOver(w, r); conn != nil {
		s.ownSSE(conn, header, r.ProtoMinor, ended)
		return
	}
	w.WriteHeader(http.StatusOK)
	to := &eventWriter{
		rest: &answer{w, http.NewResponseController(w)}, timeout: s.hub.opts.WriteTimeout,
	}
	err := s.guard(func() error { return s.serve(r.Context(), to, nil) })
	_ = to.rest.rc.SetWriteDeadline(time.Time{}) // what the server writes after this is its own
	s.end(err, r.Context().Err() != nil, ended)
}

// end tells why the stream is over, and releases it.
func (s *Stream) end(err error, gone bool, ended func(error)) {
	ended(s.hub.verdict(err, gone))
	s.Close()
}

// takeOver returns the connection of a request; nil where it carries others, too, or something in
// between does not let go of it.
func takeOver(w http.ResponseWriter, r *http.Request) net.Conn {
	if r.ProtoMajor != 1 {
		return nil
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	return conn
}

// ownSSE begins the stream on a connection of its own and leaves it to a goroutine. The header and
// what is owed at first are written here, by a goroutine whose stack is large already and goes with
// the request: the one that waits afterwards stays small.
func (s *Stream) ownSSE(conn net.Conn, header http.Header, minor int, ended func(error)) {
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		awaitEnd(conn)
		cancel()
	}()
	to := &eventWriter{conn: conn, timeout: s.hub.opts.WriteTimeout}
	err := s.guard(func() error {
		if err := to.begin(header, minor); err != nil {
			return err
		}
		if err := s.begin(ctx, to); err != nil {
			return err
		}
		return s.turn(ctx, nil)
	})
	go func() {
		if err == nil {
			err = s.guard(func() error { return s.attend(ctx, nil) })
		}
		s.stop()
		gone := ctx.Err() != nil
		cancel()
		_ = conn.Close() // ends the reader
		<-left
		s.end(err, gone, ended)
	}()
}

// guard makes an error of a panic: nobody else would keep it from ending the process, or release the
// stream.
func (s *Stream) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// awaitEnd returns when the client has left. What it sends meanwhile is nothing that an event
// stream has a use for.
func awaitEnd(conn net.Conn) {
	var unused [64]byte
	for {
		if _, err := conn.Read(unused[:]); err != nil {
			return
		}
	}
}

// verdict tells ends in order from failures. Gone says that the client left; a write that took
// too long looks like that, too, but is told apart.
func (h *Hub) verdict(err error, gone bool) error {
	switch {
	case errors.Is(err, errSlow):
		h.counts.slow.Add(1)
		return err
	case errors.Is(err, errOverrun) && !gone:
		h.counts.lost.Add(1)
		return err
	case err == nil, gone, errors.Is(err, errGone), errors.Is(err, ErrDraining),
		errors.Is(err, errExpired), errors.Is(err, errMoved):
		return nil
	}
	return err
}

// eventWriter writes frames as server-sent events, to a connection of its own or to an answer.
type eventWriter struct {
	conn     net.Conn // nil: rest
	timeout  time.Duration
	deadline time.Time // of conn; zero before the first write
	rest     *answer
}

// answer is the way of a connection that carries others, too, or belongs to somebody else.
type answer struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// begin answers with the header. The end of the connection is the end of the stream: the
// specification of event streams advises against chunks.
func (e *eventWriter) begin(header http.Header, minor int) error {
	header.Set("Connection", "close")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.%d 200 OK\r\n", minor)
	_ = header.Write(&b) // a buffer takes everything
	b.WriteString("\r\n")
	return e.flush(b.Bytes())
}

// texts are what frames are written into on their way, which no connection needs to keep.
var texts = sync.Pool{New: func() any { return new([]byte) }}

// keptText bounds what an unused text holds.
const keptText = 64 << 10

func (e *eventWriter) write(_ context.Context, f Frame) error {
	text := texts.Get().(*[]byte)
	b := append(append((*text)[:0], "event: "...), f.Event...)
	if f.ID != "" {
		b = append(append(b, "\nid: "...), f.ID...)
	}
	b, err := Append(append(b, "\ndata: "...), f.Data) // JSON of one line
	if err != nil {
		return fmt.Errorf("encode %s: %w", f.Event, err)
	}
	b = append(b, "\n\n"...)
	err = e.flush(b)
	if cap(b) <= keptText {
		*text = b
		texts.Put(text)
	}
	return err
}

// heartbeat is a comment line, which clients skip.
var heartbeat = []byte(":\n\n")

func (e *eventWriter) beat(context.Context) error { return e.flush(heartbeat) }

func (e *eventWriter) flush(b []byte) error {
	if e.conn == nil {
		return lost(e.rest.flush(b, time.Now().Add(e.timeout)))
	}
	// A deadline that passes while nothing is written does no harm: it stands, and is moved before
	// it could cut a write short.
	if now := time.Now(); e.deadline.Sub(now) < e.timeout {
		e.deadline = now.Add(e.timeout + e.timeout/8)
		if err := e.conn.SetWriteDeadline(e.deadline); err != nil {
			return lost(fmt.Errorf("set write deadline: %w", err))
		}
	}
	_, err := e.conn.Write(b)
	return lost(err)
}

// flush sends on what is written. HTTP/2 resets a stream whose deadline passes, also when nothing
// is being written, so that there is one only meanwhile.
func (a *answer) flush(b []byte, deadline time.Time) error {
	if err := a.until(deadline); err != nil {
		return err
	}
	if _, err := a.w.Write(b); err != nil {
		return err
	}
	if err := a.rc.Flush(); err != nil {
		return err
	}
	return a.until(time.Time{})
}

// until leaves a connection without deadlines alone: it is one of a test, or of an embedder's own
// making.
func (a *answer) until(deadline time.Time) error {
	err := a.rc.SetWriteDeadline(deadline)
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("set write deadline: %w", err)
	}
	return nil
}

// lost says why a frame could not be written: the time was over, or nobody is there any more.
func lost(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	return fmt.Errorf("%w: %w", errGone, err)
}
