package chaos

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// membership starts an act on a member's row in a scope.
func (c *client) membership(k kind, method, scope string) *act {
	m := pick(c.rng, c.members)
	a := c.act(k, method, address(c.world.name, "scopes", scope, "members", m))
	a.Member, a.Scope = m, scope
	return a
}

func (c *client) join() *act {
	a := c.membership(join, http.MethodPut, pick(c.rng, c.world.channels))
	body := map[string]any{}
	if c.chance(25) { // a service carries a history over
		if h := c.world.head(a.Scope).revision; h > 0 {
			a.Revision = 1 + c.rng.Uint64N(h)
			body["effectiveFrom"] = a.Revision
		}
	}
	a.Body = encode(body)
	return a
}

func (c *client) leave() *act {
	return c.membership(leave, http.MethodDelete, pick(c.rng, c.world.channels))
}

func (c *client) level() *act {
	a := c.membership(level, http.MethodPut, pick(c.rng, c.world.scopes()))
	a.Level = pick(c.rng, []string{"all", "mentions", "none", "inherit"})
	body := map[string]any{"notification": a.Level}
	if a.Level != "inherit" && c.chance(30) {
		until := time.Now().Add(240 * time.Hour) // no level ends while anybody counts
		if c.chance(50) {
			until = time.Now().Add(-time.Hour)
		}
		body["until"] = until.UTC().Format(time.RFC3339)
	}
	a.Body = encode(body)
	return a
}

func (c *client) visible() *act {
	a := c.membership(visible, http.MethodPut, pick(c.rng, c.world.channels))
	a.On = c.chance(70)
	a.Body = encode(map[string]any{"visible": a.On})
	return a
}

func (c *client) follow() *act {
	scope := pick(c.rng, c.world.scopes())
	if c.world.parent(scope) == "" {
		return nil
	}
	m := pick(c.rng, c.members)
	a := c.act(follow, http.MethodPut, address(c.world.name, "scopes", scope, "follow?member="+m))
	a.Member, a.Scope, a.On = m, scope, c.chance(60)
	a.Body = encode(map[string]any{"following": a.On})
	return a
}

func (c *client) block() *act {
	m, other := pick(c.rng, c.members), pick(c.rng, c.world.members)
	if m == other {
		return nil
	}
	method, on := http.MethodPut, c.chance(50)
	if !on {
		method = http.MethodDelete
	}
	a := c.act(block, method, address(c.world.name, "members", m, "blocks", other))
	a.Member, a.Other, a.On = m, other, on
	return a
}

func (c *client) archive() *act {
	s := pick(c.rng, c.owned)
	a := c.act(archive, http.MethodPut, address(c.world.name, "scopes", s))
	a.Scope, a.On = s, c.chance(30)
	a.Body = encode(map[string]any{"type": typeOf(s), "archived": a.On})
	return a
}

func (c *client) display() *act {
	m := pick(c.rng, c.members)
	a := c.act(display, http.MethodPut, address(c.world.name, "members", m, "settings"))
	a.Member, a.Level = m, pick(c.rng, []string{"messages", "conversations", "attention"})
	a.Body = encode(map[string]any{"badge": a.Level})
	return a
}

// readState starts an act on a member's read state. Half of them come from the member's own
// device, which names the version that it knows; a service may name none.
func (c *client) readState(k kind, scope string) (*act, map[string]any) {
	m := pick(c.rng, c.members)
	a := c.act(k, http.MethodPut, address(c.world.name, "scopes", scope, "read-state?member="+m))
	a.Member, a.Scope = m, scope
	body := map[string]any{}
	device := c.chance(50)
	if device || c.chance(50) {
		version := c.states[placeOf{m, scope}].Version
		if c.chance(10) {
			version++ // a device that is behind, or ahead
		}
		a.Version = &version
		body["expectedVersion"] = version
	}
	if device {
		a.Token = c.world.tokens[m]
	}
	return a, body
}

func (c *client) read() *act {
	a, body := c.readState(read, pick(c.rng, c.world.scopes()))
	body["type"] = "read"
	a.Revision = c.revision(a.Scope)
	at := slices.IndexFunc(c.mine, func(m known) bool { return m.scope == a.Scope })
	if at >= 0 && c.chance(15) {
		a.Messages = []string{c.mine[at].id}
		body["throughMessage"] = c.mine[at].id
	} else {
		body["readRevision"] = a.Revision
	}
	if below := c.below(a.Scope); below != "" && c.chance(20) {
		t := c.act(read, "", "")
		t.Member, t.Scope, t.Revision = a.Member, below, c.revision(below)
		a.Threads = append(a.Threads, t)
		body["threads"] = []map[string]any{{
			"scope": below, "readRevision": t.Revision,
			"expectedVersion": c.states[placeOf{t.Member, below}].Version,
		}}
	}
	a.Body = encode(body)
	return a
}

// below draws a thread of a channel, empty for none.
func (c *client) below(channel string) string {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	for _, i := range c.rng.Perm(len(c.world.threads)) {
		if t := c.world.threads[i]; t.parent == channel {
			return t.id
		}
	}
	return ""
}

func (c *client) readAll() *act {
	m := pick(c.rng, c.members)
	a := c.act(readAll, http.MethodPost, address(c.world.name, "read-all?member="+m))
	a.Member = m
	var scopes []map[string]any
	for _, s := range c.world.scopes() {
		if c.chance(50) {
			continue
		}
		item := c.act(read, "", "")
		item.Member, item.Scope, item.Revision = m, s, c.revision(s)
		a.Items = append(a.Items, item)
		scopes = append(scopes, map[string]any{"scope": s, "readRevision": item.Revision})
	}
	if len(scopes) == 0 {
		return nil
	}
	a.Body = encode(map[string]any{"scopes": scopes})
	return a
}

func (c *client) markUnread() *act {
	a, body := c.readState(markUnread, pick(c.rng, c.world.scopes()))
	body["type"] = "unread"
	if h := c.world.head(a.Scope).revision; h > 0 && c.chance(60) {
		a.Revision = max(1, h-min(h, c.rng.Uint64N(20)))
		body["fromRevision"] = a.Revision
	}
	a.Body = encode(body)
	return a
}

// found makes the acts that a workspace begins with. Most members join most scopes.
func (c *client) found(admin string) []*act {
	w := c.world
	first := c.act(makeWorkspace, http.MethodPut, address(w.name))
	first.Token, first.Body = admin, encode(map[string]string{"name": w.name})
	acts := []*act{first}
	var members []map[string]any
	for _, m := range w.members {
		members = append(members, map[string]any{"id": m, "kind": "human"})
	}
	all := c.act(makeMembers, http.MethodPost, address(w.name, "members:batch"))
	all.Body = encode(map[string]any{"members": members})
	acts = append(acts, all)
	for i, s := range w.channels {
		a := c.act(makeScope, http.MethodPut, address(w.name, "scopes", s))
		a.Scope = s
		body := map[string]any{"type": typeOf(s), "name": fmt.Sprint("scope ", i)}
		if i == 1 {
			body["history"] = "shared"
		}
		a.Body = encode(body)
		acts = append(acts, a)
	}
	return acts
}

// settle makes the joins of a client's members: most of them, everywhere.
func (c *client) settle() []*act {
	var acts []*act
	for _, s := range c.world.channels {
		for _, m := range c.members {
			if c.chance(15) {
				continue
			}
			a := c.act(join, http.MethodPut, address(c.world.name, "scopes", s, "members", m))
			a.Member, a.Scope, a.Body = m, s, encode(map[string]any{})
			acts = append(acts, a)
		}
	}
	return acts
}

// typeOf tells channels and dms by their names.
func typeOf(scope string) string {
	if scope[0] == 'd' {
		return "dm"
	}
	return "channel"
}
