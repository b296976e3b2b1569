package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
)

func TestStreamOfManyMembers(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B", "C", "D,1")
	h.post("c", "A", nil)
	s := h.ws(h.service(), "?members=B,nobody,"+url.QueryEscape("D,1"))
	s.next("hello").data.is(t, false, "resumed")
	got := map[any]string{}
	for len(got) < 3 {
		e := <-s.events
		switch e.name {
		case "snapshot":
			if e.data["complete"] != true {
				continue
			}
			got[e.data["member"]] = fmt.Sprint(e.data.at("scopes", "c", "unread"))
		case "refused":
			e.data.is(t, "not_found", "code")
			got[e.data.at("members", 0)] = "refused"
		}
	}
	if fmt.Sprint(got) != "map[B:1 D,1:1 nobody:refused]" {
		t.Errorf("got %v", got)
	}
	s.send(object{"watch": []string{"C", "B"}})
	s.page().data.is(t, "C", "member")
	h.post("c", "A", nil)
	heard := map[any]bool{}
	for len(heard) < 3 {
		e := s.unread("c")
		e.data.is(t, 2, "row", "unread")
		heard[e.data["member"]] = true
	}
	s.send(object{"unwatch": []string{"B", "D,1"}})
	s.send(object{"watch": []string{"nobody"}}) // comes back when the frame before it was obeyed
	s.next("refused")
	h.post("c", "A", nil)
	s.unread("c").data.is(t, "C", "member")
	h.channel("fence", "A", "C")
	s.unread("fence")
	h.refused(httpapi.CodeForbidden, "GET", "W/events?members=B", h.member("B"), nil)
	h.refused(httpapi.CodeInvalidRequest, "GET", "W/events?members=B&member=C", h.service(), nil)
}

func TestManyMembersResume(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B", "C")
	s := h.sse(h.service(), "?members=B,C", "")
	s.page()
	id := s.page().id
	if id == "" {
		t.Fatal("the last page carries no id")
	}
	s.close()
	h.post("c", "A", nil)
	again := h.sse(h.service(), "?members=B,C", id)
	again.next("hello").data.is(t, true, "resumed")
	first, second := again.unread("c"), again.unread("c")
	if first.id != "" || second.id == "" {
		t.Errorf("ids %q and %q: only the last one may be resumed at", first.id, second.id)
	}
	if fmt.Sprint(first.data["member"], second.data["member"]) != "BC" {
		t.Errorf("got %v and %v", first.data["member"], second.data["member"])
	}
}

func TestMessageEvents(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	h.channel("d", "A", "B")
	h.channel("secret", "A")
	h.refused(httpapi.CodeNotFound, "GET", "W/events?messages=secret", h.member("B"), nil)
	s := h.ws(h.member("B"), "?messages=c")
	s.snapshot()
	s.send(object{"subscribe": []string{"d", "secret"}})
	refused := s.next("refused")
	refused.data.is(t, "not_found", "code")
	refused.data.is(t, "[secret]", "scopes")

	h.post("c", "A", object{"messageId": "m", "payload": object{"text": "x"}})
	added := s.next("message")
	added.data.is(t, "added", "op")
	added.data.is(t, "x", "message", "payload", "text")
	h.want(200, "PATCH", "W/scopes/c/messages/m", h.member("A"), object{"opId": "e", "payload": object{"text": "y"}})
	s.next("message").data.is(t, "edited", "op")
	h.want(200, "DELETE", "W/scopes/c/messages/m", h.member("A"), object{"opId": "r"})
	removed := s.next("message")
	removed.data.is(t, "removed", "op")
	removed.data.is(t, "m", "message", "id")
	removed.data.is(t, nil, "message", "payload")
	h.post("secret", "A", nil)
	h.post("d", "A", object{"messageId": "in d"})
	s.next("message").data.is(t, "in d", "message", "id")

	s.send(object{"unsubscribe": []string{"d"}})
	s.send(object{"subscribe": []string{"secret"}})
	s.next("refused")
	h.post("d", "A", nil)
	h.post("c", "A", object{"messageId": "after"})
	s.next("message").data.is(t, "after", "message", "id")
}

// A member who is removed while the stream is open gets nothing of the scope any more.
func TestMessageEventsStopWithVisibility(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	h.channel("d", "A", "B")
	h.post("c", "A", object{"messageId": "root"})
	h.thread("t", "c", "root")
	s := h.sse(h.member("B"), "?messages=c,d,t", "")
	s.snapshot()
	h.post("t", "A", object{"messageId": "in thread"})
	s.next("message").data.is(t, "in thread", "message", "id")
	h.want(200, "PUT", "W/scopes/c/members/B", h.service(), object{"visible": false})
	h.post("c", "A", object{"messageId": "hidden"})
	h.post("t", "A", object{"messageId": "hidden too"})
	h.post("d", "A", object{"messageId": "seen"})
	s.next("message").data.is(t, "seen", "message", "id")
	h.want(200, "PUT", "W/scopes/c/members/B", h.service(), object{"visible": true})
	h.post("c", "A", object{"messageId": "again"})
	s.next("message").data.is(t, "again", "message", "id")

	all := h.sse(h.service(), "?members=B&messages=c", "")
	all.snapshot()
	h.want(200, "PUT", "W/scopes/c/members/B", h.service(), object{"visible": false})
	h.post("c", "A", object{"messageId": "for the backend"})
	all.next("message").data.is(t, "for the backend", "message", "id")
}

func TestSocketFramesAreTakenLiterally(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	for frame, code := range map[string]websocket.StatusCode{
		`{"subscribe":["c"],"subscribe":["c"]}`: websocket.StatusPolicyViolation,
		`{"follow":["c"]}`:                      websocket.StatusPolicyViolation,
		`{"subscribe":["\ud800"]}`:              websocket.StatusPolicyViolation,
		`{"subscribe":[".."]}`:                  websocket.StatusPolicyViolation,
		`{"watch":["A"]}`:                       websocket.StatusPolicyViolation,
		`{"subscribe":["c"]} {}`:                websocket.StatusPolicyViolation,
		`nonsense`:                              websocket.StatusPolicyViolation,
	} {
		s := h.ws(h.member("B"), "")
		s.snapshot()
		s.send(frame)
		s.over()
		if err := <-s.ended; websocket.CloseStatus(err) != code {
			t.Errorf("%s: ended with %v, want %d", frame, err, code)
		}
	}
	many, items := make([]string, 101), make([]object, 101)
	for i := range many {
		many[i] = fmt.Sprint("s", i)
		items[i] = object{"id": many[i], "type": "channel"}
	}
	h.want(200, "POST", "W/scopes:batch", h.service(), object{"scopes": items})
	s := h.ws(h.service(), "?members=B") // a service sees every scope
	s.snapshot()
	s.send(object{"subscribe": many})
	e := s.next("refused")
	e.data.is(t, "over_budget", "code")
	e.data.is(t, "[s100]", "scopes")
}

func TestFramesCostWhatRequestsCost(t *testing.T) {
	clock := newHandClock()
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) {
		c.Now = clock.Now
		c.Limits = httpapi.Limits{MemberBurst: 4}
	})
	h.world("A", "B")
	s := h.ws(h.member("B"), "")
	s.snapshot()
	s.send(object{"subscribe": []string{"c", "x", "y"}})
	s.next("refused").data.is(t, "over_budget", "code")
	s.send(object{"subscribe": []string{"c"}})    // two of the three that are left
	s.send(object{"subscribe": []string{"nope"}}) // answered when the frame before it was obeyed
	s.next("refused").data.is(t, "over_budget", "code")
	h.post("c", "A", object{"messageId": "m"})
	s.next("message").data.is(t, "m", "message", "id")
}

func TestHandshakesThatMakeNoSense(t *testing.T) {
	h := newHarness(t)
	h.world("B")
	h.refused(httpapi.CodeInvalidRequest, "GET", "W/socket", h.member("B"), nil)
	upgrade := func(change func(http.Header)) *http.Request {
		req := h.request("GET", "W/socket", h.member("B"), nil)
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
		} {
			req.Header.Set(name, value)
		}
		change(req.Header)
		return req
	}
	h.refusedBy(httpapi.CodeInvalidRequest, upgrade(func(h http.Header) { h.Set("Sec-WebSocket-Version", "8") }))
	h.refusedBy(httpapi.CodeInvalidRequest, upgrade(func(h http.Header) { h.Del("Sec-WebSocket-Key") }))
	h.refusedBy(httpapi.CodeForbidden, upgrade(func(h http.Header) { h.Set("Origin", "https://evil.example") }))
}

func TestStreamsPerTokenAreBounded(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) { c.Limits.Streams = 2 })
	h.world("B")
	token := h.member("B")
	first := h.sse(token, "", "")
	first.snapshot()
	h.ws(token, "").snapshot()
	h.refused(httpapi.CodeOverBudget, "GET", "W/events", token, nil)
	h.sse(h.tokenUntil("W", "B", httpapi.RoleMember, time.Now().Add(2*time.Hour)), "", "").snapshot()
	first.close()
	ctx, cancel := h.streamContext()
	defer cancel()
	for { // the server learns of the end a moment later
		req := h.request("GET", "W/events", token, nil).WithContext(ctx)
		resp, err := h.http.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			break
		}
	}
}

// covers: RT-369 RT-390 RT-451
func TestHeartbeatIsNothingButLife(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) { c.Live.Heartbeat = time.Millisecond })
	h.world("A", "B")
	w := h.ws(h.member("B"), "")
	w.snapshot()
	ctx, cancel := h.streamContext()
	defer cancel()
	resp, err := h.http.Client().Do(h.request("GET", "W/events", h.member("B"), nil).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ping := w.next("ping")
	if len(ping.data) > 0 || ping.id != "" {
		t.Errorf("a heartbeat carries %v", ping)
	}
	before := h.engine.Stats()
	statements := h.probe(func() {
		buf := make([]byte, 1)
		for beats, line := 0, ""; beats < 20; {
			if _, err := resp.Body.Read(buf); err != nil {
				t.Fatal(err)
			}
			if line += string(buf); buf[0] != '\n' {
				continue
			}
			if line == ":\n" {
				beats++
			}
			line = ""
		}
		for range 20 {
			w.next("ping")
		}
	})
	after := h.engine.Stats()
	if len(statements) > 0 {
		t.Errorf("heartbeats ran %v", statements)
	}
	if before.CandidateChecks != after.CandidateChecks || before.Deltas != after.Deltas {
		t.Errorf("heartbeats read unread state: %+v, then %+v", before, after)
	}
	h.canary("B")
}

func TestDrainEndsStreams(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	s, w := h.sse(h.member("B"), "", ""), h.ws(h.member("B"), "")
	s.snapshot()
	w.snapshot()
	ctx, cancel := h.streamContext()
	defer cancel()
	if err := h.api.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	s.over()
	if err := <-s.ended; err != nil {
		t.Errorf("the stream was cut off: %v", err)
	}
	w.over()
	if err := <-w.ended; websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the socket ended with %v", err)
	}
	h.refused(httpapi.CodeUnavailable, "GET", "/readyz", "", nil)
	h.refused(httpapi.CodeUnavailable, "GET", "W/events", h.member("B"), nil)
	h.want(200, "GET", "W/unread", h.member("B"), nil)
	if n := h.api.Streams().Streams; n != 0 {
		t.Errorf("%d streams are left", n)
	}
}
