package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi/framing"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/outbox"
)

// Config wires a server. Engine and Auth are required, but for a central server, which has no engine;
// the zero value of every other field is its documented default.
type Config struct {
	Engine *tidemark.Engine
	Auth   Authenticator
	Limits Limits
	// Live configures the streams; its Log is the server's where it has none.
	Live live.Options
	// Outbox wakes agents and tells webhooks; its routes answer unavailable without one. The
	// caller runs and closes it.
	Outbox *outbox.Outbox
	// Inbox serves the newly-unread badge; its routes answer unavailable without one. The caller runs
	// and closes it.
	Inbox *inbox.Inbox
	// Dots has the red dots of workspaces that other processes serve, for lists; nil: they are withheld.
	Dots Dots
	// Cluster is set where other processes use the engine's store, too.
	Cluster *Cluster
	// Prefix is where an embedder mounts the server, as in "/unread": it begins with a slash
	// and does not end with one. The server takes it off by itself.
	Prefix string
	// Framed are routes, each as in "POST /api/v1/workspaces/{ws}/messages:batch" and below Prefix,
	// that take the length of a request in one form only, and no more than MaxBody; see Listener.
	// Those that write to inboxes always do.
	Framed []string
	// CORSOrigins are the origins whose pages may ask; "*" is any. None by default.
	CORSOrigins []string
	// App answers what no route does outside /api/. Nil: not_found. Its requests have the time
	// limits of all others, unless it sets deadlines with an http.ResponseController.
	App http.Handler
	// Metrics takes the server's metrics and is served by AdminHandler. Nil makes one.
	Metrics *prometheus.Registry
	// Log takes what operators should know; nil discards it.
	Log *slog.Logger
	// Now is the clock of rate limits; nil is time.Now.
	Now func() time.Time
	// Version names the build in the document.
	Version string
}

// Server is an http.Handler, safe for concurrent use.
type Server struct {
	engine   *tidemark.Engine
	outbox   *outbox.Outbox
	inbox    *inbox.Inbox
	dots     Dots
	auth     Authenticator
	limits   Limits
	prefix   string
	app      http.Handler
	log      *slog.Logger
	cors     cors
	gate     *framing.Gate
	registry *prometheus.Registry
	meters   *meters
	budgets  *budgets
	hub      *live.Hub
	router   *router
	document *document
	docs     []byte
	draining atomic.Bool

	cluster    *Cluster    // nil: this process owns everything
	forwarding *forwarding // of a central server
}

// New makes a server. It starts nothing.
func New(cfg Config) (*Server, error) {
	if cfg.Engine == nil && cfg.Cluster == nil || cfg.Auth == nil {
		return nil, errors.New("httpapi: Engine and Auth are required")
	}
	if cfg.Cluster != nil {
		if err := cfg.Cluster.check(cfg.Engine != nil); err != nil {
			return nil, err
		}
	}
	if cfg.Prefix != "" && (!strings.HasPrefix(cfg.Prefix, "/") || strings.HasSuffix(cfg.Prefix, "/")) {
		return nil, fmt.Errorf("httpapi: prefix %q must begin with a slash and not end with one",
			cfg.Prefix)
	}
	if err := cfg.Limits.defaults(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	if cfg.Live.Log == nil {
		cfg.Live.Log = cfg.Log
	}
	s := &Server{
		engine: cfg.Engine, outbox: cfg.Outbox, inbox: cfg.Inbox, dots: cfg.Dots, auth: cfg.Auth,
		limits: cfg.Limits, prefix: cfg.Prefix, app: cfg.App, log: cfg.Log,
		cors: cors{cfg.CORSOrigins}, registry: cfg.Metrics,
		budgets: newBudgets(cfg.Limits, cfg.Now), hub: live.NewHub(cfg.Live),
		router: &router{}, document: newDocument(cfg.Prefix, cfg.Version), cluster: cfg.Cluster,
	}
	if s.central() {
		s.forwarding = newForwarding(cfg.Cluster.Transport)
	}
	var err error
	if s.gate, err = newGate(&cfg); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	if s.meters, err = newMeters(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("httpapi: register metrics: %w", err)
	}
	if err := cfg.Metrics.Register(survey{s}); err != nil {
		return nil, fmt.Errorf("httpapi: register metrics: %w", err)
	}
	s.routes()
	if err := s.document.finish(); err != nil {
		return nil, err
	}
	if s.docs, err = renderDocs(s.document.api); err != nil {
		return nil, err
	}
	return s, nil
}

// routes registers everything.
func (s *Server) routes() {
	s.addOperations()
	s.addWorkspaces()
	s.addMembers()
	s.addScopes()
	s.addMemberships()
	s.addMessages()
	s.addReadState()
	s.addUnread()
	s.addStreams()
	s.addActivities()
	s.addTasks()
	s.addConversations()
	s.addIdentity()
	s.addSessions()
	s.addWakes()
	s.addWebhooks()
	s.addDeadLetters()
	s.addInbox()
	s.addCluster()
}

// Document returns the OpenAPI document as it is served.
func (s *Server) Document() []byte { return s.document.text() }

// Listener returns a listener for the http.Server around this one. It sees the heads of requests
// before net/http does, and so holds the routes of Config.Framed and those that write to inboxes to
// the rules of package framing: one plain Content-Length, no Transfer-Encoding. What breaks them is
// answered with invalid_request, and its connection is closed. It takes over l; where l is one of
// crypto/tls, it does the handshakes. Without it the same routes are held to as much of the rules
// as net/http lets a handler see. Once it was called, every HTTP/1 connection must come through it.
func (s *Server) Listener(l net.Listener) net.Listener { return s.gate.Listener(l) }

// Drain makes /readyz fail, refuses new streams, ends the open ones and waits for them until ctx
// ends. Other requests go on being answered: end them with http.Server.Shutdown afterwards.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	if s.forwarding != nil {
		s.forwarding.drain()
	}
	if err := s.hub.Drain(ctx); err != nil {
		return fmt.Errorf("drain streams: %w", err)
	}
	return nil
}

// Streams returns the figures of the server's streams.
func (s *Server) Streams() live.Stats { return s.hub.Stats() }

// AdminHandler serves /metrics and /debug/pprof/ to operators.
func (s *Server) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
