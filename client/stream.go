package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	sse "github.com/tmaxmax/go-sse"
)

const (
	// firstSilence is how long a stream may be silent before it has said how often it is not.
	firstSilence = time.Minute
	// maxEvent bounds an event: a message of 64 KiB, with what escaping makes of it.
	maxEvent = 1 << 20
	// steadyAfter is how long a stream has to last for the next one to be opened soon after its end.
	steadyAfter = 10 * time.Second
	// mostSilence is the longest time between heartbeats that is believed, in seconds.
	mostSilence = 3600
)

var (
	errSilent  = errors.New("the stream is silent")
	errExpired = errors.New("the stream's token expired")
)

// runStream keeps a stream open until the context ends.
func (c *Client) runStream(ctx context.Context) {
	last, failures := "", 0
	for ctx.Err() == nil {
		began := c.now()
		hello, err := c.followSessions(ctx, &last)
		c.setLive(false)
		if ctx.Err() != nil {
			return
		}
		if !hello {
			c.missed(true) // where there are no streams, the rest is asked for at their pace
		}
		if hello && c.now().Sub(began) >= steadyAfter {
			failures = 0
		}
		failures++
		c.opts.Log.Debug("the stream ended", "error", err)
		c.pause(ctx, c.delay(failures), c.streamWake)
	}
}

func (c *Client) setLive(live bool) {
	c.mu.Lock()
	changed := c.status.Live != live
	c.status.Live = live
	c.mu.Unlock()
	if changed {
		c.events.add()
	}
}

// followSessions is what may bring back sessions that have gone since it began.
func (c *Client) followSessions(ctx context.Context, last *string) (hello bool, err error) {
	defer c.asking(true)()
	return c.follow(ctx, "/api/events", last, c.event)
}

// follow opens a stream after the last event and takes in what comes until it ends.
func (c *Client) follow(
	ctx context.Context, path string, last *string, take func(*sse.Event, *guard, *string) error,
) (hello bool, err error) {
	token, err := c.authorize(ctx)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := c.newRequest(ctx, token, http.MethodGet, path, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	guard := c.newGuard(cancel)
	defer guard.stop()
	resp, err := c.opts.HTTP.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
		r := reply{status: resp.StatusCode, body: data}
		if err == nil && r.refusesToken() {
			c.auth.refuse(token)
			return false, ErrCredentials
		}
		return false, r.refusal()
	}
	for e, err := range sse.Read(guard.watch(resp.Body), &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			if errors.Is(err, bufio.ErrTooLong) {
				*last = "" // it would be told again
			}
			return hello, errors.Join(err, context.Cause(ctx))
		}
		if e.Type == "hello" {
			hello = true
		}
		if err := take(&e, guard, last); err != nil {
			if !errors.Is(err, errExpired) {
				*last = "" // it would be told again
			}
			return hello, err
		}
		if e.LastEventID != "" && sendable(e.LastEventID) {
			*last = e.LastEventID
		}
	}
	return hello, io.EOF
}

// sendable tells whether a header can hold an event's id: no stream could be opened with another.
func sendable(id string) bool {
	return !strings.ContainsFunc(id, unicode.IsControl)
}

// event takes in one event.
func (c *Client) event(e *sse.Event, g *guard, last *string) error {
	data := []byte(e.Data)
	switch e.Type {
	case "hello":
		var h wireHello
		if err := json.Unmarshal(data, &h); err != nil {
			return fmt.Errorf("event hello: %w", err)
		}
		g.expect(h.HeartbeatSeconds)
		// Messages are never told of again; sessions are, where the server could go on.
		c.missed(!h.Resumed)
		c.setLive(true)
		if !h.Resumed {
			*last = ""
		}
	case "session-updated":
		var w wireSession
		if err := json.Unmarshal(data, &w); err != nil {
			return fmt.Errorf("event session-updated: %w", err)
		}
		c.tell(&w)
	case "message":
		var m wireMessage
		if err := json.Unmarshal(data, &m); err != nil {
			return fmt.Errorf("event message: %w", err)
		}
		c.message(&m)
	case "expired":
		return errExpired
	}
	return nil // what is unknown is of a newer server
}

// missed notes that nobody told of messages for a while, so that all windows have to look, and
// perhaps of sessions.
func (c *Client) missed(sessions bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.windows {
		w.state.Interrupted()
		wake(w.wake)
	}
	if sessions {
		c.gaps++
		wake(c.listWake)
	}
}

// message takes in a message event for all windows of its session.
func (c *Client) message(m *wireMessage) {
	if m.Op != "removed" && !possible(&m.Message) {
		return
	}
	c.mu.Lock()
	for w := range c.windows {
		if w.state.Session() != m.Session {
			continue
		}
		switch m.Op {
		case "added":
			w.state.Added(m.Message)
		case "edited":
			w.state.Edited(m.Message)
		case "removed":
			w.state.Removed(m.Message.ID)
		}
		wake(w.wake)
	}
	c.mu.Unlock()
	c.events.add()
}

// guard ends a stream that is silent for too long. A heartbeat counts, though it is no event.
type guard struct {
	c       *Client
	cancel  context.CancelCauseFunc
	silence atomic.Int64 // nanoseconds
	heard   chan struct{}
	done    chan struct{}
	ended   chan struct{}
}

func (c *Client) newGuard(cancel context.CancelCauseFunc) *guard {
	g := &guard{
		c: c, cancel: cancel, heard: make(chan struct{}, 1),
		done: make(chan struct{}), ended: make(chan struct{}),
	}
	g.silence.Store(int64(firstSilence))
	go g.run()
	return g
}

func (g *guard) run() {
	defer close(g.ended)
	for {
		rings, stop := g.c.opts.Clock.NewTimer(time.Duration(g.silence.Load()))
		select {
		case <-g.done:
			stop()
			return
		case <-g.heard:
			stop()
		case <-rings:
			g.cancel(errSilent)
			<-g.done
			return
		}
	}
}

// expect sets how often something is heard: two heartbeats may be missed, and half a third.
func (g *guard) expect(seconds int) {
	if seconds > 0 {
		every := time.Duration(min(seconds, mostSilence)) * time.Second
		g.silence.Store(int64(every) * 5 / 2)
		wake(g.heard)
	}
}

func (g *guard) stop() {
	close(g.done)
	<-g.ended
}

// watch passes on what is read, and hears it.
func (g *guard) watch(r io.Reader) io.Reader { return &heard{r, g} }

type heard struct {
	io.Reader
	g *guard
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if n > 0 {
		wake(h.g.heard)
	}
	return n, err
}
