package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	sse "github.com/tmaxmax/go-sse"
)

// maxSubscribed is how many scopes a stream tells messages of. It tells the counts of all, so that
// further windows load what they lack when a count says that there is something.
const maxSubscribed = 100

// mostIdlePages is how many pages of the list may bring it no further before it is begun anew.
const mostIdlePages = 10

var errResubscribe = errors.New("another set of windows")

// followScopes begins to keep the scopes up to date, if that has not begun. c.mu is held.
func (c *Client) followScopes() {
	if c.hub.started || c.closed {
		return
	}
	c.hub.started = true
	c.work.Go(func() { c.runScopes(c.ctx) })
}

// runScopes keeps the hub's stream open until the context ends.
func (c *Client) runScopes(ctx context.Context) {
	last, failures := "", 0
	for ctx.Err() == nil {
		began := c.now()
		hello, err := c.followHub(ctx, &last)
		if errors.Is(err, errResubscribe) && ctx.Err() == nil {
			continue
		}
		c.scopesEnded(err)
		if ctx.Err() != nil {
			return
		}
		if !hello && !errors.Is(err, errUnsent) {
			c.loadScopes(ctx) // where there are no streams, the rest is asked for at their pace
		}
		if hello && c.now().Sub(began) >= steadyAfter {
			failures = 0
		}
		failures++
		c.opts.Log.Debug("the stream of scopes ended", "error", err)
		c.pause(ctx, c.delay(failures), c.scopesWake)
	}
}

func (c *Client) scopesEnded(err error) {
	c.mu.Lock()
	c.hub.live, c.hub.err, c.hub.pages = false, err, nil
	c.mu.Unlock()
	c.events.add()
}

// resubscribe opens the stream anew, which tells messages of the scopes that have windows now.
func (c *Client) resubscribe() {
	c.mu.Lock()
	reopen := c.hub.reopen
	c.mu.Unlock()
	if reopen != nil {
		reopen()
	}
}

// followHub opens the hub's stream after the last event and takes in what comes until it ends.
func (c *Client) followHub(ctx context.Context, last *string) (hello bool, err error) {
	if _, err := c.authorize(ctx); err != nil {
		return false, fmt.Errorf("%w: %w", errUnsent, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	c.hub.reopen = func() { cancel(errResubscribe) }
	path := c.hubPath()
	c.mu.Unlock()
	hello, err = c.follow(ctx, path, last, c.hubEvent)
	if errors.Is(context.Cause(ctx), errResubscribe) {
		return hello, errResubscribe
	}
	return hello, err
}

// hubPath is the stream's, with the scopes whose messages it is to tell. c.mu is held.
func (c *Client) hubPath() string {
	ns, _ := c.auth.namespace()
	path := workspacePath(ns, "/events")
	var open []string
	for w := range c.windows {
		if scope, ok := strings.CutPrefix(w.state.Session(), scopeMark); ok {
			open = append(open, scope)
		}
	}
	slices.Sort(open)
	open = slices.Compact(open)
	open = open[:min(len(open), maxSubscribed)]
	c.hub.subscribed = make(map[string]struct{}, len(open))
	for i, scope := range open {
		c.hub.subscribed[scope] = struct{}{}
		open[i] = url.QueryEscape(scope)
	}
	if len(open) > 0 {
		path += "?messages=" + strings.Join(open, ",")
	}
	return path
}

// lookAfter has the windows of a scope look for messages, if the stream tells of none. c.mu is held.
func (c *Client) lookAfter(id string) {
	if _, told := c.hub.subscribed[id]; told {
		return
	}
	for w := range c.windows {
		if w.state.Session() == scopeTarget(id) {
			w.state.Interrupted()
			wake(w.wake)
		}
	}
}

// hubEvent takes in one event of the hub's stream.
func (c *Client) hubEvent(e *sse.Event, g *guard, last *string) error {
	data := []byte(e.Data)
	var err error
	switch e.Type {
	case "hello":
		var h wireHello
		if err = json.Unmarshal(data, &h); err == nil {
			g.expect(h.HeartbeatSeconds)
			c.hubGreeted(&h, last)
		}
	case "snapshot":
		var p wireScopes
		if err = json.Unmarshal(data, &p); err == nil {
			c.tellScopes(func(h *hub) { h.page(&p, false) })
		}
	case "unread":
		var d wireDelta
		if err = json.Unmarshal(data, &d); err == nil {
			c.tellScopes(func(h *hub) {
				if d.Row == nil {
					h.remove(d.Scope, d.LSN)
				} else {
					h.put(d.Scope, d.Row, d.LSN)
					c.lookAfter(d.Scope)
				}
			})
		}
	case "message":
		var m wireScopeMessage
		if err = json.Unmarshal(data, &m); err == nil {
			c.message(&wireMessage{Op: m.Op, Session: scopeTarget(m.Scope), Message: m.Message})
		}
	case "expired":
		return errExpired
	}
	if err != nil {
		return fmt.Errorf("event %s: %w", e.Type, err)
	}
	return nil // what is unknown is of a newer server
}

// hubGreeted begins a stream: messages are never told of again, so that all windows have to look.
func (c *Client) hubGreeted(h *wireHello, last *string) {
	c.mu.Lock()
	for w := range c.windows {
		if strings.HasPrefix(w.state.Session(), scopeMark) {
			w.state.Interrupted()
			wake(w.wake)
		}
	}
	if !h.Resumed && *last != "" {
		c.hub.forget()
		*last = ""
	}
	c.hub.live, c.hub.err, c.hub.pages = true, nil, nil
	c.mu.Unlock()
	c.events.add()
}

func (c *Client) tellScopes(tell func(*hub)) {
	c.mu.Lock()
	tell(&c.hub)
	c.mu.Unlock()
	c.events.add()
}

// loadScopes asks for the list in pages. What goes wrong is tried again when the stream is.
func (c *Client) loadScopes(ctx context.Context) {
	ns, known := c.auth.namespace()
	if !known {
		return
	}
	asked, idle := make(map[string]struct{}), 0
	for token, first := "", true; ; first = false {
		var p wireScopes
		path := workspacePath(ns, "/unread?limit=100")
		if token != "" {
			path += "&pageToken=" + url.QueryEscape(token)
		}
		if err := c.get(ctx, path, &p); err != nil {
			c.opts.Log.Debug("the scopes were not loaded", "error", err)
			return
		}
		c.tellScopes(func(h *hub) { h.page(&p, first) })
		asked[token] = struct{}{}
		if token = p.Next; token == "" {
			return
		}
		// A server that is loading the member has pages that begin again or have nothing. It is given
		// time, and one that goes on like that is no server.
		if _, again := asked[token]; again || len(p.Scopes) == 0 {
			if idle++; idle > mostIdlePages {
				return
			}
			c.pause(ctx, c.delay(idle), c.scopesWake)
		}
	}
}

// HubStatus is how a client is doing with scopes. The zero value is that of one that has not asked
// for them.
type HubStatus struct {
	// Live tells whether the stream is open.
	Live bool
	// Err is why it is not: ErrCredentials, ErrNamespace, or what the last attempt failed of.
	Err error
	// Withheld says that the server cannot vouch for numbers for now: no scope is Exact.
	Withheld bool
}

// HubStatus returns how the client is doing with scopes.
func (c *Client) HubStatus() HubStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return HubStatus{c.hub.live, c.hub.err, c.hub.withheld}
}
