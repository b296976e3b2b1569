package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// SSE serves the stream as server-sent events until it ends. The error says why; it is nil when
// the server or the client ended the stream in order.
func (s *Stream) SSE(w http.ResponseWriter, r *http.Request) error {
	hub := s.hub
	defer s.Close()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must hand every event on at once
	w.WriteHeader(http.StatusOK)
	to := &eventWriter{w: w, rc: http.NewResponseController(w), timeout: hub.opts.WriteTimeout}
	err := s.serve(r.Context(), to, nil)
	// The connection may carry other requests after this one.
	_ = to.rc.SetWriteDeadline(time.Time{})
	return hub.verdict(err, r.Context().Err() != nil)
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
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	buf     bytes.Buffer
}

func (e *eventWriter) write(_ context.Context, f Frame) error {
	data, err := Encode(f.Data)
	if err != nil {
		return fmt.Errorf("encode %s: %w", f.Event, err)
	}
	e.buf.Reset()
	fmt.Fprintf(&e.buf, "event: %s\n", f.Event)
	if f.ID != "" {
		fmt.Fprintf(&e.buf, "id: %s\n", f.ID)
	}
	e.buf.WriteString("data: ")
	e.buf.Write(data) // JSON of one line
	e.buf.WriteString("\n\n")
	return e.flush()
}

// beat writes a comment line, which clients skip.
func (e *eventWriter) beat(context.Context) error {
	e.buf.Reset()
	e.buf.WriteString(":\n\n")
	return e.flush()
}

func (e *eventWriter) flush() error {
	// A connection without deadlines is one of a test or of an embedder's own making.
	err := e.rc.SetWriteDeadline(time.Now().Add(e.timeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return lost(fmt.Errorf("set write deadline: %w", err))
	}
	if _, err := e.w.Write(e.buf.Bytes()); err != nil {
		return lost(err)
	}
	if err := e.rc.Flush(); err != nil {
		return lost(err)
	}
	// HTTP/2 resets a stream whose deadline passes, also when nothing is being written.
	err = e.rc.SetWriteDeadline(time.Time{})
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return lost(fmt.Errorf("clear write deadline: %w", err))
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
