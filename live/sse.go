package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// SSE serves the stream as server-sent events until it ends. The error says why; it is nil when
// the server or the client ended the stream in order.
func (s *Stream) SSE(w http.ResponseWriter, r *http.Request) error {
	hub := s.hub
	defer s.Close()
	to := beginEvents(w, r, hub.opts.WriteTimeout)
	err := s.serve(r.Context(), to, nil)
	// The connection may carry other requests after this one.
	_ = to.rc.SetWriteDeadline(time.Time{})
	return hub.verdict(err, r.Context().Err() != nil)
}

// beginEvents answers with the header of an event stream.
func beginEvents(w http.ResponseWriter, r *http.Request, timeout time.Duration) *eventWriter {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must hand every event on at once
	w.WriteHeader(http.StatusOK)
	return &eventWriter{
		w: w, rc: http.NewResponseController(w), timeout: timeout, shared: r.ProtoMajor > 1,
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
		errors.Is(err, errExpired):
		return nil
	}
	return err
}

// eventWriter writes frames as server-sent events.
type eventWriter struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	timeout  time.Duration
	shared   bool      // the connection is, with other requests
	deadline time.Time // of the connection; zero for none
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
	if err := e.extend(time.Now()); err != nil {
		return err
	}
	if _, err := e.w.Write(b); err != nil {
		return lost(err)
	}
	if err := e.rc.Flush(); err != nil {
		return lost(err)
	}
	if !e.shared {
		return nil
	}
	// HTTP/2 resets a stream whose deadline passes, also when nothing is being written.
	e.deadline = time.Time{}
	return e.setDeadline()
}

// extend gives what is written next its time. On a connection of its own a deadline that passes
// while nothing is written does no harm: it stands, and is moved before it could cut a write short.
func (e *eventWriter) extend(now time.Time) error {
	if e.deadline.Sub(now) >= e.timeout {
		return nil
	}
	e.deadline = now.Add(e.timeout + e.timeout/8)
	return e.setDeadline()
}

// setDeadline leaves a connection without deadlines alone: it is one of a test, or of an
// embedder's own making.
func (e *eventWriter) setDeadline() error {
	err := e.rc.SetWriteDeadline(e.deadline)
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return lost(fmt.Errorf("set write deadline: %w", err))
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
