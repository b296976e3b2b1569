package broker

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidemark-im/tidemark/relay/agent"
	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Bounds of what windows may ask for.
const (
	MaxBody    = 64 << 10
	MaxStreams = 64
	MaxTargets = 512 // of one stream
)

// Options are those of a Broker. Agent, Token and Host are required.
type Options struct {
	Agent   *agent.Agent
	Token   string   // that every request carries
	Host    string   // host:port that the broker listens on; localhost with the port is taken as well
	Origins []string // of pages, besides the broker's own
}

// Broker is an http.Handler. It is safe for concurrent use.
type Broker struct {
	o     Options
	token [sha256.Size]byte
	hosts []string
	mux   *http.ServeMux

	mu      sync.Mutex
	streams map[string]*stream
}

// New returns a broker.
func New(o Options) *Broker {
	b := &Broker{
		o: o, token: sha256.Sum256([]byte(o.Token)), mux: http.NewServeMux(),
		streams: make(map[string]*stream),
	}
	b.hosts = []string{o.Host}
	if _, port, ok := strings.Cut(o.Host, ":"); ok {
		b.hosts = append(b.hosts, "localhost:"+port)
	}
	b.routes()
	return b
}

// ServeHTTP checks who asks, and answers.
func (b *Broker) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if !slices.Contains(b.hosts, req.Host) {
		fail(w, http.StatusForbidden, "host", "this is not the broker's own name")
		return
	}
	if origin := req.Header.Get("Origin"); origin != "" {
		w.Header().Set("Vary", "Origin")
		if !b.allowed(origin) {
			fail(w, http.StatusForbidden, "origin", "pages of this origin are not served")
			return
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		if req.Method == http.MethodOptions {
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
			w.Header().Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if strings.HasPrefix(req.URL.Path, "/v1/") && !b.authorized(req) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		fail(w, http.StatusUnauthorized, "unauthorized", "the token is missing or wrong")
		return
	}
	req.Body = http.MaxBytesReader(w, req.Body, MaxBody)
	b.mux.ServeHTTP(w, req)
}

func (b *Broker) allowed(origin string) bool {
	host, own := strings.CutPrefix(origin, "http://")
	return own && slices.Contains(b.hosts, host) || slices.Contains(b.o.Origins, origin)
}

func (b *Broker) authorized(req *http.Request) bool {
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	sum := sha256.Sum256([]byte(token))
	return ok && subtle.ConstantTimeCompare(sum[:], b.token[:]) == 1
}

func (b *Broker) routes() {
	b.readingRoutes()
	b.markRoutes()
	b.otherRoutes()
}

func (b *Broker) readingRoutes() {
	a := b.o.Agent
	b.mux.HandleFunc("GET /{$}", servePage)
	b.mux.HandleFunc("GET /page.js", serveScript)
	b.mux.HandleFunc("GET /v1/unread/events", b.serveEvents)
	b.mux.HandleFunc("POST /v1/unread/subscribe", b.subscribe)
	b.post("reading", func(req *http.Request, q *query) (any, error) {
		id, err := a.Reading(q.ChannelID, q.RootID)
		return map[string]string{"lease": strconv.FormatUint(uint64(id), 10)}, err
	})
	b.post("reading/{lease}/observe", func(req *http.Request, q *query) (any, error) {
		id, err := leaseOf(req)
		if err != nil {
			return nil, err
		}
		return saved(nil), a.Observe(req.Context(), id, q.MessageIDs, q.Bottom)
	})
	b.mux.HandleFunc("DELETE /v1/unread/reading/{lease}", func(w http.ResponseWriter, req *http.Request) {
		id, err := leaseOf(req)
		if err != nil {
			refuse(w, err)
			return
		}
		a.Dispose(id)
		w.WriteHeader(http.StatusNoContent)
	})
}

func (b *Broker) markRoutes() {
	a := b.o.Agent
	b.post("mark-through", func(req *http.Request, q *query) (any, error) {
		return saved(&q.Target), a.MarkThrough(req.Context(), q.Target, q.MessageID)
	})
	b.post("mark-channel-read", func(req *http.Request, q *query) (any, error) {
		t := agent.Target{Kind: "channel", ChannelID: q.ChannelID}
		return saved(&t), a.MarkChannelRead(req.Context(), q.ChannelID)
	})
	b.post("mark-all-read", func(req *http.Request, _ *query) (any, error) {
		return saved(nil), a.MarkAllChannelsRead(req.Context())
	})
	b.post("mark-unread", func(req *http.Request, q *query) (any, error) {
		return saved(&q.Target), a.MarkUnread(req.Context(), q.Target)
	})
}

func (b *Broker) otherRoutes() {
	a := b.o.Agent
	b.post("follow", func(req *http.Request, q *query) (any, error) {
		return struct{}{}, a.Follow(req.Context(), q.ChannelID, q.RootID, q.Following)
	})
	b.post("level", func(req *http.Request, q *query) (any, error) {
		return struct{}{}, a.SetLevel(req.Context(), q.ChannelID, q.Level)
	})
	b.post("ensure", func(req *http.Request, _ *query) (any, error) {
		return struct{}{}, a.Ensure(req.Context())
	})
	b.post("refresh", func(req *http.Request, _ *query) (any, error) {
		return struct{}{}, a.Refresh(req.Context())
	})
	b.post("retry-sync", func(req *http.Request, _ *query) (any, error) {
		return struct{}{}, a.RetrySync(req.Context())
	})
	b.mux.HandleFunc("GET /v1/unread/following", func(w http.ResponseWriter, req *http.Request) {
		following, known := a.Following(req.FormValue("channelId"), req.FormValue("rootId"))
		word := "unknown"
		switch {
		case known && following:
			word = "following"
		case known:
			word = "not-following"
		}
		answer(w, map[string]string{"following": word})
	})
	b.mux.HandleFunc("GET /v1/unread/diagnostics", func(w http.ResponseWriter, req *http.Request) {
		answer(w, a.Diagnose(req.Context()))
	})
	b.mux.HandleFunc("GET /v1/channels", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"channels": append([]agent.Channel{}, a.Channels()...)})
	})
	b.mux.HandleFunc("GET /v1/channels/{id}/messages", b.serveMessages)
	b.mux.HandleFunc("POST /v1/channels/{id}/messages", b.write)
}

// query is the body of every POST; each route uses its own members.
type query struct {
	Stream     string         `json:"stream"`
	Targets    []agent.Target `json:"targets"`
	Target     agent.Target   `json:"target"`
	ChannelID  string         `json:"channelId"`
	RootID     string         `json:"rootId"`
	MessageID  string         `json:"messageId"`
	MessageIDs []string       `json:"messageIds"`
	Bottom     bool           `json:"bottom"`
	Following  bool           `json:"following"`
	Level      string         `json:"level"`
	Text       string         `json:"text"`
	ReplyTo    string         `json:"replyTo"`
}

var errBody = errors.New("not the object that is wanted here")

// read takes a body: one object without members that nobody knows, or nothing.
func read(req *http.Request) (*query, error) {
	var q query
	d := json.NewDecoder(req.Body)
	d.DisallowUnknownFields()
	switch err := d.Decode(&q); {
	case errors.Is(err, io.EOF):
		return &q, nil
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, err
	case err != nil:
		return nil, errBody
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errBody
	}
	return &q, nil
}

func (b *Broker) post(path string, do func(*http.Request, *query) (any, error)) {
	b.mux.HandleFunc("POST /v1/unread/"+path, func(w http.ResponseWriter, req *http.Request) {
		q, err := read(req)
		if err != nil {
			refuse(w, err)
			return
		}
		doc, err := do(req, q)
		if err != nil {
			refuse(w, err)
			return
		}
		answer(w, doc)
	})
}

// saved is the result of a reading: it is on the disk of this device.
func saved(t *agent.Target) any { return map[string]any{"durability": "saved", "target": t} }

func leaseOf(req *http.Request) (frontier.LeaseID, error) {
	n, err := strconv.ParseUint(req.PathValue("lease"), 10, 64)
	if err != nil {
		return 0, frontier.ErrExpired
	}
	return frontier.LeaseID(n), nil
}

func answer(w http.ResponseWriter, doc any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(doc) // who does not listen has gone
}

func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": code, "message": message}})
}

// refusals is the table of errors.
var refusals = []struct {
	err    error
	status int
	code   string
}{
	{errBody, http.StatusBadRequest, "malformed"},
	{agent.ErrTarget, http.StatusBadRequest, "target"},
	{errStream, http.StatusNotFound, "stream"},
	{agent.ErrDenied, http.StatusForbidden, "denied"},
	{frontier.ErrExpired, http.StatusConflict, "expired"},
	{agent.ErrMessage, http.StatusUnprocessableEntity, "message"},
	{agent.ErrText, http.StatusUnprocessableEntity, "text"},
	{frontier.ErrTarget, http.StatusUnprocessableEntity, "message"},
	{frontier.ErrTooMany, http.StatusUnprocessableEntity, "too-many"},
	{frontier.ErrLeases, http.StatusTooManyRequests, "leases"},
	{errStreams, http.StatusTooManyRequests, "streams"},
	{journal.ErrRefused, http.StatusBadGateway, "relay"},
	{journal.ErrUnobserved, http.StatusBadGateway, "relay"},
	{nostrx.ErrRefused, http.StatusBadGateway, "relay"},
	{nostrx.ErrLost, http.StatusBadGateway, "relay"},
}

func refuse(w http.ResponseWriter, err error) {
	if errors.As(err, new(*http.MaxBytesError)) {
		fail(w, http.StatusRequestEntityTooLarge, "too-large", "the body is too large")
		return
	}
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			fail(w, r.status, r.code, err.Error())
			return
		}
	}
	fail(w, http.StatusInternalServerError, "failed", err.Error())
}
