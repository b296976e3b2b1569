package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
)

// Script is the server of a network case: it holds every request until a step answers it. It is an
// http.RoundTripper, so that nothing is lost or late that the case does not lose or delay.
type Script struct {
	mu      sync.Mutex
	held    []*heldRequest
	streams []*io.PipeWriter
}

type heldRequest struct {
	WireRequest
	ctx    context.Context
	answer chan scripted // takes one
}

type scripted struct {
	resp *http.Response
	err  error
}

var (
	errLost   = errors.New("the connection broke")
	errUnsent = errors.New("there is no network")
)

// RoundTrip implements http.RoundTripper.
func (s *Script) RoundTrip(req *http.Request) (*http.Response, error) {
	h := &heldRequest{ctx: req.Context(), answer: make(chan scripted, 1), WireRequest: WireRequest{
		Method: req.Method, Path: req.URL.EscapedPath(),
		After: req.URL.Query().Get("after"), Before: req.URL.Query().Get("before"),
		Token: strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "),
	}}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		err = errors.Join(err, req.Body.Close())
		if err != nil {
			return nil, fmt.Errorf("read a request: %w", err)
		}
		h.Body = body
	}
	s.mu.Lock()
	s.held = append(s.held, h)
	s.mu.Unlock()
	select {
	case a := <-h.answer:
		trace := httptrace.ContextClientTrace(req.Context())
		if trace != nil && trace.WroteHeaders != nil && !errors.Is(a.err, errUnsent) {
			trace.WroteHeaders()
		}
		return a.resp, a.err
	case <-req.Context().Done():
		s.take(func(other *heldRequest) bool { return other == h })
		return nil, req.Context().Err()
	}
}

// take removes the first request that fits, and returns it.
func (s *Script) take(fits func(*heldRequest) bool) *heldRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, h := range s.held {
		if fits(h) {
			s.held = append(s.held[:i], s.held[i+1:]...)
			return h
		}
	}
	return nil
}

// waiting are the requests that nobody has answered, in an order of their own.
func (s *Script) waiting() []WireRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []WireRequest{}
	for _, h := range s.held {
		out = append(out, h.WireRequest)
	}
	return sortRequests(out)
}

// answer answers a request that waits.
func (s *Script) answer(step *NetworkStep) string {
	want := step.Request
	h := s.take(func(h *heldRequest) bool {
		return h.Method == want.Method && h.Path == want.Path && h.After == want.After &&
			h.Before == want.Before && (want.Token == "" || h.Token == want.Token)
	})
	if h == nil {
		return fmt.Sprintf("nobody asked %s %s", want.Method, want.Path)
	}
	if len(want.Body) > 0 {
		if d := sameBody(want.Body, h.Body); d != "" {
			return d
		}
	}
	switch {
	case step.Lost:
		h.answer <- scripted{err: errLost}
	case step.Unsent:
		h.answer <- scripted{err: errUnsent}
	default:
		h.answer <- s.response(h, step)
	}
	return ""
}

func sameBody(want, got []byte) string {
	w, err := decode(want)
	if err != nil {
		return err.Error()
	}
	g, err := decode(got)
	if err != nil {
		return err.Error()
	}
	return differs("body of the request", w, g)
}

// response is an answer of HTTP. A body that is a text of JSON is that text, as of a proxy.
func (s *Script) response(h *heldRequest, step *NetworkStep) scripted {
	resp := &http.Response{StatusCode: step.Status, Header: http.Header{}, ProtoMajor: 1, ProtoMinor: 1}
	if step.Stream {
		r, w := io.Pipe()
		s.mu.Lock()
		s.streams = append(s.streams, w)
		s.mu.Unlock()
		context.AfterFunc(h.ctx, func() { _ = w.CloseWithError(h.ctx.Err()) }) // never fails
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.Body = r
		return scripted{resp: resp}
	}
	body := []byte(step.Body)
	resp.Header.Set("Content-Type", "application/json")
	if v, err := decode(body); err == nil {
		if plain, ok := v.(string); ok {
			body = []byte(plain)
			resp.Header.Set("Content-Type", "text/html")
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return scripted{resp: resp}
}

// event tells all open streams of something.
func (s *Script) event(step *NetworkStep) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := 0
	for _, w := range s.streams {
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", step.Event, step.Data); err == nil {
			heard++
		}
	}
	if heard == 0 {
		return "nobody listens"
	}
	return ""
}

// cut ends all streams.
func (s *Script) cut() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.streams {
		_ = w.CloseWithError(errLost) // never fails
	}
	s.streams = nil
	return ""
}
