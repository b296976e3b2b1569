package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/readstate"
)

// routedHeader marks what a central server has sent on, so that an address which leads back to one does
// not make a circle.
const routedHeader = "Tidemark-Routed"

// forwarding sends requests on to owners.
type forwarding struct {
	transport http.RoundTripper
	drained   context.Context // ends the streams
	drain     context.CancelFunc
}

func newForwarding(transport http.RoundTripper) *forwarding {
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy = nil // owners are on the same network
		t.MaxIdleConnsPerHost = 128
		t.DisableCompression = true // bodies pass as they are
		transport = t
	}
	f := &forwarding{transport: transport}
	f.drained, f.drain = context.WithCancel(context.Background())
	return f
}

// errMoved stands for an owner's answer that it is none.
var errMoved = errors.New("the workspace has another owner")

// forward answers with what the owner of the workspace answers. An owner that says it is none is asked
// nothing more: the registry is, and the request goes once more to whoever owns the workspace by then.
func (s *Server) forward(c *call, rt *route) error {
	w := c.about(rt)
	if w == "" {
		return refuse(CodeForbidden, "a token of all workspaces has no sessions")
	}
	if c.r.Header.Get(routedHeader) != "" {
		s.log.WarnContext(c.ctx(), "the address of an owner leads to a central server", "workspace", w)
		return refuse(CodeUnavailable, "the address of the owner leads back here")
	}
	if rt.stream && s.draining.Load() {
		return live.ErrDraining
	}
	if rt.id == "socket" {
		if err := c.checkUpgrade(); err != nil {
			return err
		}
	}
	body, err := c.bodyToSend(rt)
	if err != nil {
		return err
	}
	err = s.forwardTo(c, rt, w, body, false)
	if errors.Is(err, errMoved) {
		err = s.forwardTo(c, rt, w, body, true)
	}
	if errors.Is(err, errMoved) {
		return refuse(CodeUnavailable, "the workspace is on its way from one owner to another")
	}
	return err
}

// bodyToSend reads a body, so that it can be sent twice. What it says is the owner's to judge.
func (c *call) bodyToSend(rt *route) ([]byte, error) {
	limit := rt.limit
	if limit == 0 {
		limit = MaxBody
	}
	if c.r.ContentLength > limit {
		c.w.Header().Set("Connection", "close") // nobody is going to read it
		return nil, refuse(CodeBodyTooLarge, "at most %d bytes", limit)
	}
	return slurp(c.w, c.r, limit)
}

// forwardTo sends a request to the owner by what is known, or with fresh by what the registry says now.
// It has answered nothing where it fails.
func (s *Server) forwardTo(
	c *call, rt *route, w readstate.WorkspaceID, body []byte, fresh bool,
) error {
	address, err := s.ownerOf(c.ctx(), w, fresh)
	if err != nil {
		return err
	}
	to, err := url.Parse(address)
	if err != nil || to.Host == "" {
		s.log.ErrorContext(c.ctx(), "the owner's address is none", "workspace", w, "address", address)
		return refuse(CodeUnavailable, "the owner cannot be reached")
	}
	ctx, cancel := s.forwardContext(c.ctx(), rt)
	defer cancel()
	out := c.r.Clone(ctx)
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		out.Body = http.NoBody
	}
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport: s.forwarding.transport,
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetXForwarded()
			p.Out.URL.Scheme, p.Out.URL.Host = to.Scheme, to.Host
			base := strings.TrimSuffix(to.EscapedPath(), "/")
			escaped := base + strings.TrimPrefix(p.In.URL.EscapedPath(), s.prefix)
			p.Out.URL.RawPath = escaped
			if p.Out.URL.Path, err = url.PathUnescape(escaped); err != nil {
				p.Out.URL.Path = escaped
			}
			p.Out.URL.RawQuery = p.In.URL.RawQuery // taken literally, by the owner
			p.Out.Host = to.Host
			p.Out.Header.Set(routedHeader, "1")
			p.Out.Header.Del("Origin") // judged here
			p.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusMisdirectedRequest {
				return errMoved
			}
			for name := range r.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					r.Header.Del(name)
				}
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	w2 := c.w
	if rt.stream {
		w2 = &pacedWriter{c.w, http.NewResponseController(c.w), s.limits.WriteTimeout}
	}
	proxy.ServeHTTP(w2, out)
	switch {
	case failed == nil, errors.Is(failed, errMoved):
		return failed
	case c.ctx().Err() != nil:
		return c.ctx().Err()
	}
	s.log.WarnContext(c.ctx(), "the owner of a workspace does not answer", "workspace", w,
		"owner", address, "error", failed)
	return &unreachable{failed}
}

// unreachable is an owner that does not answer: what it was asked to do may have happened.
type unreachable struct{ cause error }

func (e *unreachable) Error() string { return "the owner does not answer: " + e.cause.Error() }
func (e *unreachable) Unwrap() error { return facts.ErrUnavailable }

// forwardContext bounds a request as its owner does; a stream ends when the server drains.
func (s *Server) forwardContext(
	ctx context.Context, rt *route,
) (context.Context, context.CancelFunc) {
	if !rt.stream {
		return context.WithTimeout(ctx, s.limits.RequestTimeout)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.forwarding.drained, cancel)
	return ctx, func() { stop(); cancel() }
}

// pacedWriter gives a client a time to read each part of a stream.
type pacedWriter struct {
	http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
}

// Write implements http.ResponseWriter.
func (p *pacedWriter) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.timeout))
	return p.ResponseWriter.Write(b)
}

// Unwrap lets response controllers reach the connection.
func (p *pacedWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
