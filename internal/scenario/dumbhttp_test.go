package scenario

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// dumbCall is one request under way, with the lock held.
type dumbCall struct {
	*dumb
	req          *http.Request
	raw          []byte
	w            *dumbWorkspace
	member, role string
	status       int
	wsID         string
}

// serveDumb starts a dumb server and returns a runner on it.
func serveDumb(t *testing.T, fault string) *Runner {
	t.Helper()
	d := newDumb(fault)
	server := httptest.NewServer(d.routes())
	t.Cleanup(server.Close)
	r, err := New(Options{
		BaseURL: server.URL, HTTP: server.Client(),
		Token: func(ws, member, role string) (string, error) {
			return ws + "|" + member + "|" + role, nil
		},
		Restart: func(context.Context) (string, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			close(d.cut)
			d.cut = make(chan struct{})
			return server.URL, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (d *dumb) routes() http.Handler {
	mux := http.NewServeMux()
	on := func(pattern string, answer func(*dumbCall) any) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /api/v1/workspaces"+path, d.wrap(answer))
	}
	on("GET ", (*dumbCall).listWorkspaces)
	on("PUT /{ws}", (*dumbCall).putWorkspace)
	on("PUT /{ws}/members/{m}", (*dumbCall).putMember)
	on("DELETE /{ws}/members/{m}", (*dumbCall).erase)
	on("GET /{ws}/scopes/{s}/receipts", (*dumbCall).readers)
	on("PUT /{ws}/members/{m}/settings", (*dumbCall).putSettings)
	on("PUT /{ws}/members/{m}/blocks/{o}", (*dumbCall).block)
	on("DELETE /{ws}/members/{m}/blocks/{o}", (*dumbCall).block)
	on("PUT /{ws}/scopes/{s}", (*dumbCall).putScope)
	on("PUT /{ws}/scopes/{s}/members/{m}", (*dumbCall).putMembership)
	on("DELETE /{ws}/scopes/{s}/members/{m}", (*dumbCall).leave)
	on("PUT /{ws}/scopes/{s}/follow", (*dumbCall).follow)
	on("POST /{ws}/scopes/{s}/messages", (*dumbCall).post)
	on("POST /{ws}/messages:batch", (*dumbCall).batch)
	on("GET /{ws}/scopes/{s}/messages", (*dumbCall).messages)
	on("PATCH /{ws}/scopes/{s}/messages/{id}", (*dumbCall).edit)
	on("DELETE /{ws}/scopes/{s}/messages/{id}", (*dumbCall).edit)
	on("POST /{ws}/scopes/{s}/rewind", (*dumbCall).cutOff)
	on("POST /{ws}/scopes/{s}/trim", (*dumbCall).cutOff)
	on("POST /{ws}/scopes/{s}/messages:move", (*dumbCall).move)
	on("POST /{ws}/scopes/{s}/activities", (*dumbCall).record)
	on("GET /{ws}/scopes/{s}/read-state", (*dumbCall).getReadState)
	on("PUT /{ws}/scopes/{s}/read-state", (*dumbCall).putReadState)
	on("POST /{ws}/read-all", (*dumbCall).readAll)
	on("GET /{ws}/unread", (*dumbCall).unread)
	on("POST /{ws}/unread:query", (*dumbCall).query)
	on("GET /{ws}/unread/totals", (*dumbCall).totals)
	on("GET /{ws}/scopes/{s}/unread/first", (*dumbCall).first)
	on("GET /{ws}/scopes/{s}/unread/explain", (*dumbCall).explain)
	on("GET /{ws}/members/{m}/inbox/badge", (*dumbCall).inboxBadge)
	on("POST /{ws}/members/{m}/inbox:open", (*dumbCall).openInbox)
	on("POST /{ws}/members/{m}/inbox/acks", (*dumbCall).ackInbox)
	mux.HandleFunc("GET /api/v1/workspaces/{ws}/events", d.stream)
	return mux
}

var ok = map[string]any{}

func (c *dumbCall) path(name string) string { return c.req.PathValue(name) }

func (c *dumbCall) into(v any) {
	if len(c.raw) > 0 {
		if err := json.Unmarshal(c.raw, v); err != nil {
			panic(err)
		}
	}
}

func (c *dumbCall) problem(status int, code string) any {
	c.status = status
	return map[string]any{"status": status, "code": code}
}

func (c *dumbCall) scope() *dumbScope { return c.w.scopes[c.path("s")] }

// seen is the row of the caller, or nil with the status set.
func (c *dumbCall) seen(name string) *dumbRow {
	if c.w.scopes[name] == nil {
		return nil
	}
	if _, there := c.listedRow(c.w, name, c.member); !there {
		return nil
	}
	return c.w.scopes[name].rows[c.member]
}

func (d *dumb) begin(req *http.Request) *dumbCall {
	c := &dumbCall{dumb: d, req: req, status: http.StatusOK, wsID: req.PathValue("ws")}
	parts := strings.Split(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "), "|")
	c.member, c.role = parts[1], parts[2]
	if c.wsID == "" {
		c.wsID = parts[0]
	}
	if as := req.URL.Query().Get("member"); as != "" && c.role == "service" {
		c.member = as
	}
	c.w = d.workspaces[c.wsID]
	return c
}

func (d *dumb) wrap(answer func(*dumbCall) any) http.HandlerFunc {
	return func(rw http.ResponseWriter, req *http.Request) {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			panic(err)
		}
		d.mu.Lock()
		c := d.begin(req)
		c.raw = raw
		body := c.once(answer)
		if c.w != nil && req.Method != http.MethodGet {
			d.bump(c.w)
		}
		out, err := json.Marshal(body)
		d.mu.Unlock()
		if err != nil {
			panic(err)
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(c.status)
		_, _ = rw.Write(out)
	}
}

// once answers an operation id that was seen before with the stored receipt.
func (c *dumbCall) once(answer func(*dumbCall) any) any {
	var op struct {
		OpID string `json:"opId"`
	}
	c.into(&op)
	if op.OpID == "" {
		return answer(c)
	}
	if old, again := c.w.receipts[op.OpID]; again {
		if old.body != string(c.raw) {
			return c.problem(http.StatusConflict, "operation_mismatch")
		}
		repeated := maps.Clone(old.answer)
		repeated["duplicate"] = true
		return repeated
	}
	body := answer(c)
	if asMap, isMap := body.(map[string]any); isMap && c.status < 300 {
		c.w.receipts[op.OpID] = receipt{string(c.raw), asMap}
	}
	return body
}

func (c *dumbCall) listWorkspaces() any {
	return map[string]any{"workspaces": []any{map[string]any{"id": c.wsID,
		"hasUnread": c.page(c.w, c.member).HasUnread}}}
}

func (c *dumbCall) putWorkspace() any {
	c.workspaces[c.wsID] = newDumbWorkspace()
	return ok
}

func (c *dumbCall) putMember() any {
	c.w.members[c.path("m")] = true
	return ok
}

func (c *dumbCall) putSettings() any {
	var in struct{ Badge, Receipts string }
	c.into(&in)
	c.w.private[c.path("m")] = in.Receipts == "private"
	c.w.badges[c.path("m")] = in.Badge
	return ok
}

func (c *dumbCall) block() any {
	if c.w.blocks[c.path("m")] == nil {
		c.w.blocks[c.path("m")] = map[string]bool{}
	}
	c.w.blocks[c.path("m")][c.path("o")] = c.req.Method == http.MethodPut
	return ok
}

func (c *dumbCall) erase() any {
	for _, s := range c.w.scopes {
		delete(s.rows, c.path("m"))
		for _, p := range s.posts {
			if p.author == c.path("m") {
				p.author = "erased-1"
			}
		}
	}
	return ok
}

func (c *dumbCall) readers() any {
	through, _ := strconv.ParseUint(c.req.URL.Query().Get("revision"), 10, 64)
	out := []any{}
	for name, r := range c.scope().rows {
		if r.joined && r.read >= through && !c.w.private[name] {
			out = append(out, map[string]any{"member": name})
		}
	}
	return map[string]any{"receipts": out}
}

func (c *dumbCall) putScope() any {
	var in struct {
		Type, Parent, RootMessage, History string
		Tags                               []string
		Archived                           bool
	}
	c.into(&in)
	s := c.scope()
	if s == nil {
		s = &dumbScope{rows: map[string]*dumbRow{}}
		c.w.scopes[c.path("s")] = s
	}
	s.kind, s.parent, s.root, s.history = in.Type, in.Parent, in.RootMessage, in.History
	s.tags, s.archived = in.Tags, in.Archived
	return ok
}

func (c *dumbCall) putMembership() any {
	var in struct {
		Notification                string
		Visible                     *bool
		EffectiveFrom, ReadRevision *uint64
	}
	c.into(&in)
	r := c.scope().join(c.w, c.path("m"))
	if in.Notification != "" {
		r.level = in.Notification
	}
	if in.Visible != nil {
		r.visible = *in.Visible
	}
	if in.EffectiveFrom != nil {
		r.eff, r.read = *in.EffectiveFrom, 0
	}
	if in.ReadRevision != nil {
		r.read = *in.ReadRevision
	}
	return ok
}

func (c *dumbCall) leave() any {
	if c.fault != "leaving does nothing" {
		c.scope().rows[c.path("m")].joined = false
	}
	return ok
}

func (c *dumbCall) follow() any {
	var in struct{ Following bool }
	c.into(&in)
	r := c.scope().join(c.w, c.member)
	r.unfollowed = !in.Following
	r.level = map[bool]string{true: "all", false: "mentions"}[in.Following]
	return ok
}

type dumbPostIn struct {
	Scope, Author, MessageID, NotifyPrincipal string
	Mentions                                  []string
	MentionsEveryone, Broadcast               bool
	Readable                                  *bool
	Baseline                                  bool
	AdvanceCursor                             *struct{ ObservedRevision uint64 }
}

func (c *dumbCall) post() any {
	var in dumbPostIn
	c.into(&in)
	in.Scope = c.path("s")
	c.status = http.StatusCreated
	return c.append(in)
}

func (c *dumbCall) batch() any {
	var in struct{ Messages []dumbPostIn }
	c.into(&in)
	results := []any{}
	for _, m := range in.Messages {
		results = append(results, c.append(m))
	}
	return map[string]any{"results": results}
}

func (c *dumbCall) append(in dumbPostIn) map[string]any {
	s := c.w.scopes[in.Scope]
	if in.Author == "" {
		in.Author = c.member
	}
	p := &dumbPost{id: in.MessageID, author: in.Author, principal: in.NotifyPrincipal,
		mentions: in.Mentions, everyone: in.MentionsEveryone, seq: uint64(len(s.posts) + 1)}
	answer := map[string]any{"messageId": p.id, "seq": p.seq, "duplicate": false}
	if in.Readable == nil || *in.Readable {
		if s.kind == "thread" {
			for _, name := range append([]string{in.Author}, in.Mentions...) {
				s.draw(c.w, name)
			}
		}
		s.revisions++
		p.revision = s.revisions
		answer["contentRevision"] = p.revision
	}
	s.posts = append(s.posts, p)
	c.arrive(s, p)
	if in.Broadcast {
		up := *p
		channel := c.w.scopes[s.parent]
		channel.revisions++
		up.seq, up.revision = uint64(len(channel.posts)+1), channel.revisions
		channel.posts = append(channel.posts, &up)
		p.twin = &up
	}
	if in.AdvanceCursor != nil {
		r := s.rows[in.Author]
		r.read = max(r.read, in.AdvanceCursor.ObservedRevision)
	}
	return answer
}

func (c *dumbCall) edit() any {
	p := c.scope().find(c.path("id"))
	if c.req.Method == http.MethodDelete {
		p.deleted = true
		if p.twin != nil {
			p.twin.deleted = true
		}
		return map[string]any{}
	}
	var in struct {
		Mentions         *[]string
		MentionsEveryone *bool
	}
	c.into(&in)
	if in.Mentions != nil {
		if c.scope().kind == "thread" {
			before := c.scope().revisions
			c.scope().revisions = p.revision - 1
			for _, name := range *in.Mentions {
				c.scope().draw(c.w, name)
			}
			c.scope().revisions = before
		}
		p.mentions, p.everyone = *in.Mentions, *in.MentionsEveryone
		c.arrive(c.scope(), p)
	}
	return map[string]any{}
}

func (c *dumbCall) cutOff() any {
	var in struct{ ThroughSeq uint64 }
	c.into(&in)
	rewind := strings.HasSuffix(c.req.URL.Path, "rewind")
	for _, p := range c.scope().posts {
		p.deleted = p.deleted || (p.seq > in.ThroughSeq) == rewind
	}
	return map[string]any{}
}

func (c *dumbCall) move() any {
	var in struct {
		Messages   []string
		To         string
		CountMoved bool
	}
	c.into(&in)
	to := c.w.scopes[in.To]
	for _, id := range in.Messages {
		p := c.scope().find(id)
		moved := *p
		p.deleted = true
		moved.seq, moved.revision = uint64(len(to.posts)+1), 0
		if in.CountMoved {
			to.revisions++
			moved.revision = to.revisions
		}
		to.posts = append(to.posts, &moved)
	}
	return map[string]any{}
}

func (c *dumbCall) messages() any {
	posts := c.scope().posts
	limit, _ := strconv.Atoi(c.req.URL.Query().Get("limit"))
	before, _ := strconv.ParseUint(c.req.URL.Query().Get("before"), 10, 64)
	info := map[string]any{}
	if before > 0 {
		posts = posts[:before-1]
	} else {
		info["readThroughRevision"] = c.scope().revisions
	}
	cut := max(0, len(posts)-limit)
	items := []any{}
	for _, p := range posts[cut:] {
		items = append(items, map[string]any{"id": p.id})
	}
	earlier := 0
	for _, p := range c.unreadPosts(c.w, c.scope(), c.member) {
		if slices.Contains(posts[:cut], p) {
			earlier++
		}
	}
	info["hasMore"], info["unreadBefore"] = cut > 0, earlier
	return map[string]any{"messages": items, "page": info}
}

func (c *dumbCall) state(name, status string) any {
	r, there := c.listedRow(c.w, name, c.member)
	if !there {
		return c.problem(http.StatusNotFound, "not_found")
	}
	out := readAnswer{Status: status, ContentRevision: r.ContentRevision, ReadState: r.ReadState}
	if status == "conflict" {
		c.status, out.Code = http.StatusConflict, "version_conflict"
	}
	out.Counts.Unread, out.Counts.Attention = r.Unread, r.Attention
	out.Counts.Shown, out.Counts.ShownUnread = r.Shown, r.ShownUnread
	return out
}

func (c *dumbCall) getReadState() any { return c.state(c.path("s"), "") }

func (c *dumbCall) putReadState() any {
	var in readRequest
	c.into(&in)
	in.Scope = c.path("s")
	status, refusal := c.apply(in)
	if refusal != nil {
		return refusal
	}
	for _, thread := range in.Threads {
		thread.Type = "read"
		if _, refusal := c.apply(thread); refusal != nil {
			return refusal
		}
	}
	return c.state(in.Scope, status)
}

func (c *dumbCall) apply(in readRequest) (status string, refusal any) {
	r := c.seen(in.Scope)
	if r == nil {
		return "", c.problem(http.StatusNotFound, "not_found")
	}
	s := c.w.scopes[in.Scope]
	through := in.ReadRevision
	if in.ThroughMessage != "" {
		p := s.find(in.ThroughMessage)
		if p == nil {
			return "", c.problem(http.StatusNotFound, "not_found")
		}
		for _, before := range s.posts[:p.seq] {
			through = max(through, before.revision)
		}
	}
	if through > s.revisions || in.FromRevision != nil && *in.FromRevision > s.revisions {
		return "", c.problem(http.StatusBadRequest, "revision_in_future")
	}
	return c.mark(r, in, through), nil
}

func (c *dumbCall) readAll() any {
	var in struct{ Scopes []readRequest }
	c.into(&in)
	results := []any{}
	for _, item := range in.Scopes {
		item.Type = "read"
		status, _ := c.apply(item)
		results = append(results, map[string]any{"scope": item.Scope, "status": status})
	}
	if in := c.inbox(c.member); c.fault == "reading all acknowledges the inbox" {
		in.acknowledged = uint64(len(in.posts))
	}
	c.status = http.StatusOK
	return map[string]any{"results": results}
}

// unread withholds the list until a stream of the member was opened, where a fault says so.
func (c *dumbCall) unread() any {
	switch {
	case c.fault == "always cold", c.fault == "cold until streamed" && !c.w.streamed:
		return map[string]any{"hasUnread": false, "counts": ok, "state": "hydrating"}
	case c.fault == "cold with numbers":
		return map[string]any{"hasUnread": true, "state": "hydrating"}
	}
	return c.page(c.w, c.member)
}

func (c *dumbCall) query() any {
	var in struct{ Members []string }
	c.into(&in)
	pages := []any{}
	for _, member := range in.Members {
		p := c.page(c.w, member)
		for name, r := range p.Scopes {
			if c.fault == "the query is stale" {
				r.Unread++
				p.Scopes[name] = r
			}
		}
		pages = append(pages, p)
	}
	return map[string]any{"members": pages}
}

func (c *dumbCall) totals() any {
	groups := map[string]badge{}
	by := c.req.URL.Query().Get("groupBy")
	for name, r := range c.page(c.w, c.member).Scopes {
		keys := map[string][]string{"type": {r.Type}, "tag": r.Tags, "parent": {r.Parent}}[by]
		for _, key := range keys {
			g, one := groups[key], fold(map[string]row{name: r})
			groups[key] = badge{Messages: g.Messages + one.Messages,
				Conversations: g.Conversations + one.Conversations,
				Attention:     g.Attention + one.Attention}
		}
	}
	return map[string]any{"groups": groups}
}

func (c *dumbCall) first() any {
	answer := map[string]any{}
	s := c.scope()
	posts := c.unreadPosts(c.w, s, c.member)
	for i := len(posts) - 1; i >= 0; i-- {
		place := map[string]any{"messageId": posts[i].id, "seq": posts[i].seq}
		answer["firstUnread"] = place
		if s.attention(posts[i:i+1], c.member) > 0 {
			answer["firstAttention"] = place
		}
	}
	return answer
}

func (c *dumbCall) explain() any {
	ids := []string{}
	if c.seen(c.path("s")) != nil {
		for _, p := range c.unreadPosts(c.w, c.scope(), c.member) {
			ids = append(ids, p.id)
		}
	}
	return map[string]any{"messages": ids, "head": c.scope().revisions}
}

// record takes an activity, none of which counts: scenarios know only reactions.
func (c *dumbCall) record() any {
	c.status = http.StatusCreated
	return map[string]any{"highSignal": false}
}
