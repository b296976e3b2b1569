package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tmaxmax/go-sse"
)

const (
	maxEvent       = 8 << 20 // a page of the list is far below it
	bufferedEvents = 1024    // then the stream is read no further, as by a slow device
)

// event is one decoded event of a stream. Exactly one of hello, snapshot and delta is set.
type event struct {
	hello    *hello
	snapshot *page
	delta    *delta
	id       string
}

type hello struct {
	Connection       string `json:"connection"`
	HeartbeatSeconds int    `json:"heartbeatSeconds"`
	Resumed          bool   `json:"resumed"`
}

// delta is the whole present state of one scope of the member.
type delta struct {
	Scope     string `json:"scope"`
	Row       *row   `json:"row"`
	Removed   bool   `json:"removed"`
	HasUnread bool   `json:"hasUnread"`
	Badge     badge  `json:"badge"`
	LSN       uint64 `json:"lsn"`
}

// stream is one open connection. Its goroutine decodes events into the channel until the
// connection ends or close is called.
type stream struct {
	events chan event
	cancel context.CancelFunc
	err    error // why it ended; read only after events is closed
}

// openStream connects and hands over when the server has accepted the stream.
func (w *world) openStream(ctx context.Context, token, after string) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := w.request(ctx, call{method: http.MethodGet,
		path: []string{"workspaces", w.ws, "events"}, token: token})
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := w.runner.opts.HTTP.Do(req)
	if err != nil {
		cancel()
		return nil, err
	}
	if hook := w.runner.opts.OnExchange; hook != nil {
		hook(req, resp, nil)
	}
	contentType := resp.Header.Get("Content-Type")
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(contentType, "text/event-stream") {
		cancel()
		return nil, errors.Join(fmt.Errorf("stream answered %d %s", resp.StatusCode, contentType),
			resp.Body.Close())
	}
	s := &stream{events: make(chan event, bufferedEvents), cancel: cancel}
	go s.read(ctx, resp, w.runner.opts.OnEvent)
	return s, nil
}

func (s *stream) read(ctx context.Context, resp *http.Response, hook func(string, []byte)) {
	defer close(s.events)
	defer func() { s.err = errors.Join(s.err, resp.Body.Close()) }()
	for raw, err := range sse.Read(resp.Body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			s.err = fmt.Errorf("stream broke: %w", err)
			return
		}
		if hook != nil {
			hook(raw.Type, []byte(raw.Data))
		}
		e, known, err := decodeEvent(raw)
		if err != nil {
			s.err = err
			return
		}
		if !known {
			continue
		}
		select {
		case s.events <- e:
		case <-ctx.Done():
			return
		}
	}
	s.err = errors.New("the server ended the stream")
}

// decodeEvent leaves out events that say nothing about unread.
func decodeEvent(raw sse.Event) (e event, known bool, err error) {
	e.id = raw.LastEventID
	var into any
	switch raw.Type {
	case "hello":
		e.hello = &hello{}
		into = e.hello
	case "snapshot":
		e.snapshot = &page{}
		into = e.snapshot
	case "unread":
		e.delta = &delta{}
		into = e.delta
	case "expired":
		return e, false, errors.New("the server says that the token expired")
	default:
		return e, false, nil
	}
	if err := json.Unmarshal([]byte(raw.Data), into); err != nil {
		return e, false, fmt.Errorf("event %s: %w: %s", raw.Type, err, raw.Data)
	}
	if d := e.delta; d != nil {
		switch {
		case !resumesBefore(e.id, d.LSN):
			return e, false, fmt.Errorf("event id %q, but its lsn is %d", e.id, d.LSN)
		case d.Removed == (d.Row != nil):
			return e, false, fmt.Errorf("a delta has either a row or removed: %s", raw.Data)
		case d.HasUnread != (d.Badge.Conversations > 0):
			return e, false, fmt.Errorf("hasUnread and badge disagree: %s", raw.Data)
		}
	}
	return e, true, nil
}

// resumesBefore checks the id in force at a delta. Only the last delta of a round carries one of
// its own, which is its position; before that the id of an earlier event is still in force.
func resumesBefore(id string, lsn uint64) bool {
	position, err := strconv.ParseUint(id, 10, 64)
	return id == "" || err == nil && position <= lsn
}

// close ends the connection and waits for the goroutine.
func (s *stream) close() {
	s.cancel()
	for range s.events { // the goroutine may wait to hand one over
	}
}
