package httpapi_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/apicheck"
)

// covers: RT-001 RT-024 RT-364 RT-370 RT-374 RT-388 RT-450 RT-485
func TestWarmReadsRunNoStatements(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B", "C")
	for i := range 5 {
		h.channel(fmt.Sprint("d", i), "A", "B")
	}
	h.post("c", "A", object{"mentions": []string{"B"}})
	h.post("d3", "A", nil)
	b := h.member("B")
	warm := h.sse(b, "", "")
	_, id := warm.snapshot()
	h.want(200, "GET", "W/unread", h.member("C"), nil)
	for what, read := range map[string]func(){
		"refresh":       func() { h.want(200, "GET", "W/unread", b, nil).is(t, 2, "badge", "messages") },
		"second page":   func() { h.want(200, "GET", "W/unread?limit=1", b, nil) },
		"read state":    func() { h.want(200, "GET", "W/scopes/c/read-state", b, nil).is(t, 1, "counts", "unread") },
		"totals":        func() { h.want(200, "GET", "W/unread/totals?groupBy=type", b, nil) },
		"for a service": func() { h.want(200, "GET", "W/unread?member=B", h.service(), nil) },
		"many members": func() {
			h.want(200, "POST", "W/unread:query", h.service(), object{"members": []string{"B", "C"}})
		},
		"stream":        func() { h.sse(b, "", "").snapshot() },
		"socket":        func() { h.ws(b, "").snapshot() },
		"resume":        func() { h.sse(b, "", id).next("hello").data.is(t, true, "resumed") },
		"socket resume": func() { h.ws(b, "?resume="+id).next("hello").data.is(t, true, "resumed") },
		"many in a stream": func() {
			s := h.sse(h.service(), "?members=B,C", "")
			s.snapshot()
			s.snapshot()
		},
	} {
		if ran := h.probe(read); len(ran) > 0 {
			t.Errorf("%s ran %v", what, ran)
		}
	}
	h.canary("B")
}

// aboutNames matches what the list of workspaces asks the store: names are no unread state.
var aboutNames = regexp.MustCompile(`(?i)^(begin|rollback)|\bfrom workspaces\b`)

// covers: RT-018 RT-363 RT-402
func TestWorkspaceListAsksMemory(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	h.post("c", "A", nil)
	h.want(200, "GET", "W/unread", h.member("B"), nil)
	ran := h.probe(func() {
		h.want(200, "GET", "/api/v1/workspaces", h.member("B"), nil).is(t, true, "workspaces", 0, "hasUnread")
	})
	for _, s := range ran {
		if s.by != "http" || !aboutNames.MatchString(s.query) {
			t.Errorf("the list of workspaces ran %v", s)
		}
	}
	h.canary("B")
}

// Rows that were found read are not looked at again: a dot and a reconnect cost what is unread.
//
// covers: RT-371 RT-389
func TestDotsAndReconnectsAreCheap(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	const scopes, unread, asked = 30, 5, 10
	for i := range scopes {
		h.channel(fmt.Sprint("s", i), "A", "B")
	}
	for i := range unread {
		h.post(fmt.Sprint("s", i), "A", nil)
	}
	b := h.member("B")
	h.want(200, "GET", "W/unread", b, nil)
	s := h.sse(b, "", "")
	_, id := s.snapshot()
	looks := func(fn func()) uint64 {
		before := h.engine.Stats().CandidateChecks
		for range asked {
			fn()
		}
		return h.engine.Stats().CandidateChecks - before
	}
	if n := looks(func() { h.want(200, "GET", "/api/v1/workspaces", b, nil) }); n > 2*asked {
		t.Errorf("%d rows were looked at for %d dots", n, asked)
	}
	reconnect := func() { h.sse(b, "", id).next("hello").data.is(t, true, "resumed") }
	var n uint64
	ran := h.probe(func() { n = looks(reconnect) })
	if len(ran) > 0 || n > 3*asked*unread {
		t.Errorf("%d rows were looked at for %d reconnects, which ran %v", n, asked, ran)
	}
	h.canary("B")
}

// messageTables are what a message tail could be read from.
var messageTables = regexp.MustCompile(`(?i)\b(scope_messages|message_mentions|message_targets|` +
	`scope_everyone|scope_activity_events|activity_targets)\b`)

// covers: RT-398 RT-399
func TestMarkingReadsNoMessages(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	const scopes = 4
	for i := range scopes {
		h.channel(fmt.Sprint("s", i), "A", "B")
		for range 5 {
			h.post(fmt.Sprint("s", i), "A", object{"mentions": []string{"B"}})
		}
	}
	b := h.member("B")
	h.want(200, "GET", "W/unread", b, nil)
	cursors := func(ran []statement) int {
		writes := 0
		for _, s := range ran {
			if messageTables.MatchString(s.query) {
				t.Errorf("a read to the head ran %v", s)
			}
			if regexp.MustCompile(`(?i)^\s*(insert|update|replace).*conversation_member_states`).
				MatchString(strings.ReplaceAll(s.query, "\n", " ")) {
				writes++
			}
		}
		return writes
	}
	one := h.probe(func() {
		h.want(200, "PUT", "W/scopes/s0/read-state", b,
			object{"type": "read", "readRevision": 5, "expectedVersion": 0}).is(t, 0, "counts", "unread")
	})
	if n := cursors(one); n != 1 {
		t.Errorf("one read wrote %d cursors: %v", n, one)
	}
	all := h.probe(func() {
		items := []object{}
		for i := range scopes {
			items = append(items, object{"scope": fmt.Sprint("s", i), "readRevision": 5, "expectedVersion": 0})
		}
		h.want(200, "POST", "W/read-all", b, object{"scopes": items})
	})
	if n := cursors(all); n != 1 { // one statement for all of them
		t.Errorf("reading %d scopes took %d cursor statements: %v", scopes, n, all)
	}
	h.canary("B")
}

// covers: RT-391
func TestPostingReadsNoUnreadState(t *testing.T) {
	counted := map[int]int{}
	for _, members := range []int{5, 50} {
		h := newHarness(t)
		names := []string{"A"}
		for i := range members {
			names = append(names, fmt.Sprint("m", i))
		}
		h.world(names...)
		for _, m := range names[1:] {
			h.want(200, "GET", "W/unread", h.member(m), nil)
		}
		h.post("c", "A", nil)
		ran := h.probe(func() { h.post("c", "A", nil) })
		for _, s := range ran {
			if s.by != "lane" || strings.Contains(s.query, "runtime_snapshots") {
				t.Errorf("a post ran %v", s)
			}
		}
		counted[members] = len(ran)
		h.want(200, "GET", "W/unread", h.member("m1"), nil).is(t, 2, "scopes", "c", "unread")
	}
	if counted[5] != counted[50] {
		t.Errorf("statements by members of the scope: %v", counted)
	}
}

// sums matches what adds up rows.
var sums = regexp.MustCompile(`(?i)\b(count|sum|total)\s*\(|\bgroup by\b`)

// No route about unread state adds anything up in the store.
//
// covers: RT-380
func TestNoRouteAggregates(t *testing.T) {
	h := newHarness(t)
	settled(h)
	b := h.member("B")
	h.operations(func(op apicheck.Operation, path string) {
		if op.Method != "GET" || isStream(op) {
			return
		}
		ran := h.probe(func() { h.call(op.Method, path, b, nil) })
		for _, s := range ran {
			if s.by == "http" && sums.MatchString(s.query) {
				t.Errorf("%s ran %s", op.ID, s.query)
			}
		}
	})
	h.canary("B")
}

// hold makes pages of members wait until release is called.
func (h *harness) hold() (release func()) {
	return h.block(func(s statement) bool { return s.by == "hydrate" })
}

// block makes statements wait until release is called.
func (h *harness) block(which func(statement) bool) (release func()) {
	gate := make(chan struct{})
	h.mu.Lock()
	h.gate = func(s statement) {
		if which(s) {
			<-gate
		}
	}
	h.mu.Unlock()
	return sync.OnceFunc(func() {
		h.mu.Lock()
		h.gate = nil
		h.mu.Unlock()
		close(gate)
	})
}

// covers: RT-015 RT-346 RT-367 RT-368 RT-374 RT-376 RT-377 RT-378 RT-401
func TestWhatCannotBeShownIsWithheld(t *testing.T) {
	clock := newHandClock()
	h := newHarness(t, func(o *tidemark.Options, c *httpapi.Config) {
		o.Runtime.HydrateWait = time.Millisecond
		c.Live.Clock = clock
	})
	h.world("A", "B")
	h.post("c", "A", nil)
	release := h.hold()
	t.Cleanup(release)
	b := h.member("B")
	const exactly = `{"hasUnread":false,"counts":{},"state":"hydrating"}`
	ran := h.probe(func() {
		for _, path := range []string{"W/unread", "W/unread/totals?groupBy=tag", "W/scopes/c/read-state"} {
			if r := h.call("GET", path, b, nil); r.status != 200 || strings.TrimSpace(string(r.body)) != exactly {
				t.Errorf("%s: %d %s", path, r.status, r.body)
			}
		}
		list := h.want(200, "GET", "/api/v1/workspaces", b, nil)
		list.is(t, false, "workspaces", 0, "hasUnread")
		list.is(t, "hydrating", "workspaces", 0, "state")
		many := h.want(200, "POST", "W/unread:query", h.service(), object{"members": []string{"B"}})
		many.is(t, "hydrating", "members", 0, "state")
		many.is(t, "map[]", "members", 0, "counts")
		for _, path := range []string{"W/scopes/c/unread/first", "W/scopes/c/unread/explain"} {
			h.refused(httpapi.CodeUnavailable, "GET", path, b, nil)
		}
	})
	for _, s := range ran {
		if s.by == "http" && !aboutNames.MatchString(s.query) {
			t.Errorf("a withheld answer fell back to %v", s)
		}
	}
	// A mark is durable although its consequence cannot be shown yet.
	mark := h.want(200, "PUT", "W/scopes/c/read-state", b, object{"type": "unread", "expectedVersion": 0})
	mark.is(t, "applied", "status")
	mark.is(t, true, "readState", "manualUnread")
	mark.is(t, "map[]", "counts")
	mark.is(t, "hydrating", "state")

	s := h.sse(b, "", "")
	withheld := s.next("snapshot")
	withheld.data.is(t, "hydrating", "state")
	withheld.data.is(t, nil, "badge")
	release()
	for ready := false; !ready; {
		select {
		case <-clock.set: // the stream waits again
			clock.advance(time.Second)
		case e := <-s.events:
			if ready = e.name == "snapshot" && e.data["complete"] == true; ready {
				e.data.is(t, 1, "scopes", "c", "unread")
				e.data.is(t, true, "scopes", "c", "manualUnread")
			}
		}
	}
	h.post("c", "A", nil)
	s.unread("c").data.is(t, 2, "row", "unread")
}
