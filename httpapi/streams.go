package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/readstate"
)

type streamParams struct {
	memberedParams
	Members  []readstate.MemberID `query:"members" id:"member" max:"10000" doc:"Services: whose state to send"`
	Messages []readstate.ScopeID  `query:"messages" id:"scope" max:"100" doc:"Scopes of message events"`
	Resume   string               `query:"resume" doc:"The id of the last event seen"`
}

func (s *Server) addStreams() {
	addStream(s, route{
		method: http.MethodGet, path: "/api/v1/workspaces/{ws}/events", id: "events",
		tag: "realtime", about: "Unread state as it changes, as server-sent events.",
	}, func(c *call, p *streamParams) error {
		if id := c.r.Header.Get("Last-Event-ID"); id != "" {
			p.Resume = id
		}
		return c.stream(p, (*live.Stream).SSE)
	})
	addStream(s, route{
		method: http.MethodGet, path: "/api/v1/workspaces/{ws}/socket", id: "socket",
		tag: "realtime", about: "The same over a WebSocket, which also takes frames.",
	}, func(c *call, p *streamParams) error {
		if err := c.checkUpgrade(); err != nil {
			return err
		}
		return c.stream(p, socket)
	})
}

// runner serves a stream, as live.Stream.SSE does, and calls ended once when it is over.
type runner func(s *live.Stream, w http.ResponseWriter, r *http.Request, ended func(error))

// socket serves a stream as a WebSocket.
func socket(s *live.Stream, w http.ResponseWriter, r *http.Request, ended func(error)) {
	var err error
	defer func() { ended(err) }() // also of one that panics
	err = s.Socket(w, r)
}

// stream opens a stream and serves it. Once it has begun, its end is no answer any more.
func (c *call) stream(p *streamParams, run runner) error {
	sub, err := c.subscription(p)
	if err != nil {
		return err
	}
	return c.follow(sub, run)
}

// follow opens a stream and serves it. What waits for its end keeps nothing of the call.
func (c *call) follow(sub live.Subscription, run runner) error {
	stream, release, err := c.open(sub)
	if err != nil {
		return err
	}
	log, member := c.server.log, c.who.Member
	run(stream, c.w, c.r, func(err error) {
		release()
		if err != nil {
			log.Warn("a stream broke", "workspace", sub.Workspace.ID(), "member", member, "error", err)
		}
	})
	return nil
}

func (c *call) subscription(p *streamParams) (live.Subscription, error) {
	sub := live.Subscription{
		Workspace: c.ws, Scopes: p.Messages, Resume: p.Resume, Inbox: c.inboxHints(),
	}
	if p.Members != nil {
		if !c.trusted() {
			return sub, refuse(CodeForbidden, "streams of many members are for services")
		}
		if p.Member != "" {
			return sub, refuse(CodeInvalidRequest, "either member or members")
		}
		sub.Members, sub.Many, sub.Trusted = p.Members, true, true
		return sub, nil
	}
	m, err := c.subject(p.Member)
	sub.Members = []readstate.MemberID{m}
	return sub, err
}

func (c *call) open(sub live.Subscription) (stream *live.Stream, release func(), err error) {
	sub.Expires = c.who.Expires
	budgets, who := c.server.budgets, c.who
	sub.Spend = func(n int) bool {
		ok, _ := budgets.spend(&who, n)
		return ok
	}
	release, ok := c.server.budgets.openStream(&c.who)
	if !ok {
		return nil, nil, refuse(CodeOverBudget, "too many streams with this token")
	}
	if stream, err = c.server.hub.Open(c.ctx(), sub); err != nil {
		release()
		return nil, nil, err
	}
	return stream, release, nil
}

// checkUpgrade refuses what is no WebSocket handshake, or one of a page that may not ask.
func (c *call) checkUpgrade() error {
	h := c.r.Header
	switch {
	case c.r.ProtoMajor != 1 || !hasToken(h, "Connection", "upgrade") ||
		!hasToken(h, "Upgrade", "websocket"):
		return refuse(CodeInvalidRequest, "this is a WebSocket: an upgrade is needed")
	case h.Get("Sec-WebSocket-Version") != "13" || len(h.Values("Sec-WebSocket-Key")) != 1 ||
		len(h.Get("Sec-WebSocket-Key")) != 24:
		return refuse(CodeInvalidRequest, "the WebSocket handshake is not of version 13")
	}
	origin := h.Get("Origin")
	if origin == "" || c.server.cors.allows(origin) {
		return nil
	}
	if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Host, c.r.Host) {
		return nil
	}
	return refuse(CodeForbidden, "pages of this origin may not open sockets")
}

func hasToken(h http.Header, name, token string) bool {
	return slices.ContainsFunc(h.Values(name), func(line string) bool {
		return slices.ContainsFunc(strings.Split(line, ","), func(s string) bool {
			return strings.EqualFold(strings.TrimSpace(s), token)
		})
	})
}
