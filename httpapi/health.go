package httpapi

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"time"
)

// pingTimeout is how long readyz waits for the store: less than load balancers wait for it.
const pingTimeout = 2 * time.Second

// Health says that the process answers.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

type noParams struct{}

// addOperations registers health and the document.
func (s *Server) addOperations() {
	add(s, route{
		method: http.MethodGet, path: "/healthz", id: "healthz", tag: "operations", public: true,
		about: "Whether the process answers.",
	}, func(*call, *noParams, *none) (Health, error) {
		return Health{Status: "ok"}, nil
	})
	add(s, route{
		method: http.MethodGet, path: "/readyz", id: "readyz", tag: "operations", public: true,
		about: "Whether requests should be sent here: the store answers, a lease is held where one is " +
			"needed, nothing drains.",
	}, func(c *call, _ *noParams, _ *none) (Health, error) {
		if s.draining.Load() {
			return Health{}, refuse(CodeUnavailable, "draining")
		}
		ctx, cancel := context.WithTimeout(c.ctx(), pingTimeout)
		defer cancel()
		if s.cluster != nil && s.cluster.Serving != nil && !s.cluster.Serving() {
			return Health{}, refuse(CodeUnavailable, "this node has no lease")
		}
		if err := s.ping(ctx); err != nil {
			s.log.WarnContext(ctx, "the facts store does not answer", "error", err)
			return Health{}, refuse(CodeUnavailable, "the facts store does not answer")
		}
		return Health{Status: "ok"}, nil
	})
	s.router.add(endpoint{
		route{method: http.MethodGet, path: "/openapi.json", public: true},
		func(c *call) error {
			c.w.Header().Set("Content-Type", "application/json")
			_, _ = c.w.Write(s.document.text()) // the client may have left
			return nil
		},
	})
	if s.app == nil {
		s.router.add(endpoint{route{method: http.MethodGet, path: "/", public: true}, s.welcome})
	}
	s.router.add(endpoint{
		route{method: http.MethodGet, path: "/docs", public: true},
		func(c *call) error {
			h := c.w.Header()
			h.Set("Content-Type", "text/html; charset=utf-8")
			h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
			_, _ = c.w.Write(s.docs)
			return nil
		},
	})
}

// welcome points whoever opens the server's address in a browser to what there is to read.
func (s *Server) welcome(c *call) error {
	c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(c.w, "<!doctype html><title>Tidemark</title>\n"+
		"<p>Tidemark answers here. <a href=\"%[1]s/docs\">%[1]s/docs</a> explains the API, "+
		"<a href=\"%[1]s/openapi.json\">%[1]s/openapi.json</a> describes it to machines.</p>\n",
		html.EscapeString(s.prefix)) // the client may have left
	return nil
}
