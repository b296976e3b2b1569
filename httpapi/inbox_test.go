package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
)

const inboxOf = "W/members/A/inbox"

// inboxWorld has the members A, B and C, of whom B has sent to A twice and C once.
func inboxWorld(t *testing.T) (*harness, string) {
	t.Helper()
	var path string
	h := newHarness(t, func(o *tidemark.Options, _ *httpapi.Config) {
		path = strings.TrimPrefix(o.Facts, "sqlite:")
	})
	h.world("A", "B", "C")
	for _, who := range []string{"B", "B", "C"} {
		h.want(201, "POST", inboxOf+"/messages", h.member(who), object{"opId": h.op(), "text": "hello"})
	}
	return h, path
}

// The badge has its keys and no other; an opened inbox says what it showed; an acknowledgement is of
// what was shown.
//
// covers: IN-011 IN-028 IN-049 IN-090 IN-091 IN-173
func TestInboxRoutes(t *testing.T) {
	h, _ := inboxWorld(t)
	a := h.member("A")
	r := h.call("GET", inboxOf+"/badge", a, nil)
	want := `{"accepted_through":3,"acknowledged_through":0,"count":2,"projected_through":0,` +
		`"senders":["B","C"],"tail_rows":3}`
	if got := strings.TrimSpace(string(r.body)); got != want {
		t.Errorf("the badge is %s", got)
	}
	first := object{"opId": "same", "text": "x"}
	sent := h.want(201, "POST", inboxOf+"/messages", h.member("C"), first)
	sent.is(t, 4, "position")
	again := h.want(200, "POST", inboxOf+"/messages", h.member("C"), first)
	again.is(t, 4, "position")
	again.is(t, true, "duplicate")
	again.is(t, sent.at("messageId"), "messageId")
	h.refused(httpapi.CodeOperationMismatch, "POST", inboxOf+"/messages", h.member("C"),
		object{"opId": "same", "text": "y"})
	opened := h.want(200, "POST", inboxOf+":open", a, object{})
	opened.is(t, 4, "observedThrough")
	opened.is(t, "[B C]", "senders")
	opened.is(t, "hello", "messages", 0, "text")
	opened.is(t, "C", "messages", 3, "sender")
	// A position of one's own is no acknowledgement.
	h.refused(httpapi.CodeInvalidRequest, "POST", inboxOf+"/acks", a, object{"opId": "p", "position": 4})
	h.refused(httpapi.CodeInvalidRequest, "POST", inboxOf+"/acks", a,
		object{"opId": "p", "snapshotId": opened.at("snapshotId"), "position": 4})
	ack := object{"opId": "k", "snapshotId": opened.at("snapshotId")}
	h.want(200, "POST", inboxOf+"/acks", a, ack).is(t, 4, "acknowledgedThrough")
	h.want(200, "POST", inboxOf+"/acks", a, ack).is(t, true, "duplicate")
	h.want(200, "GET", inboxOf+"/badge", a, nil).is(t, 0, "count")
	methods := map[string]string{}
	for _, op := range h.check.Operations() {
		if strings.Contains(op.Path, "/inbox") {
			methods[op.ID] = op.Method
		}
	}
	if fmt.Sprint(methods) != "map[acknowledgeInbox:POST inboxBadge:GET openInbox:POST sendToInbox:POST]" {
		t.Errorf("the routes are %v", methods)
	}
}

// An inbox is its member's alone. A service acts on it as the member only, and sends as whoever it
// names.
//
// covers: IN-016 IN-017
func TestInboxIsItsMembers(t *testing.T) {
	h, path := inboxWorld(t)
	snapshot := h.want(200, "POST", inboxOf+":open", h.member("A"), nil).at("snapshotId")
	ack := object{"opId": "x", "snapshotId": snapshot}
	type request struct {
		method, path string
		body         any
	}
	all := []request{
		{"GET", inboxOf + "/badge", nil}, {"POST", inboxOf + ":open", object{}}, {"POST", inboxOf + "/acks", ack},
	}
	h.nothingStored(path, func() {
		for _, r := range all {
			h.refused(httpapi.CodeForbidden, r.method, r.path, h.member("B"), r.body)
			h.refused(httpapi.CodeForbidden, r.method, r.path, h.service(), r.body)
			h.refused(httpapi.CodeForbidden, r.method, r.path+"?member=B", h.service(), r.body)
			h.refused(httpapi.CodeForbidden, r.method, r.path+"?member=A", h.member("B"), r.body)
			h.refused(httpapi.CodeNotFound, r.method, r.path, h.token("V", "A", httpapi.RoleMember), r.body)
		}
		h.refused(httpapi.CodeForbidden, "POST", "W/members/B/inbox/acks", h.member("B"), ack)
		h.refused(httpapi.CodeNotFound, "POST", inboxOf+"/acks", h.member("A"),
			object{"opId": "x", "snapshotId": "nobody-was-given-this"})
		h.refused(httpapi.CodeForbidden, "POST", inboxOf+"/messages?member=C", h.member("B"),
			object{"opId": "x", "text": "as C"})
	})
	for _, r := range all {
		h.want(200, r.method, r.path+"?member=A", h.service(), r.body)
	}
	h.want(201, "POST", inboxOf+"/messages?member=C", h.service(), object{"opId": "x", "text": "as C"})
	h.want(200, "GET", inboxOf+"/badge", h.member("A"), nil).is(t, "[C]", "senders")
}

// What is refused changes nothing at all, whatever it is refused for.
//
// covers: IN-026 IN-048 IN-095 IN-096 IN-121 IN-123 IN-125 IN-172
func TestInboxRefusalsChangeNothing(t *testing.T) {
	h, path := inboxWorld(t)
	a, b := h.member("A"), h.member("B")
	snapshot := h.want(200, "POST", inboxOf+":open", a, nil).at("snapshotId")
	h.want(200, "POST", inboxOf+"/acks", a, object{"opId": "used", "snapshotId": snapshot})
	other := h.want(200, "POST", inboxOf+":open", a, nil).at("snapshotId")
	h.nothingStored(path, func() {
		for _, c := range []struct {
			code        httpapi.Code
			path, token string
			body        any
		}{
			{httpapi.CodeInvalidRequest, "/messages", b, object{"text": "x"}},
			{httpapi.CodeInvalidRequest, "/messages", b, object{"opId": "x", "text": ""}},
			{httpapi.CodeInvalidRequest, "/messages", b, object{"opId": "x"}},
			{httpapi.CodeInvalidRequest, "/messages", b, `{"opId": "x", "text": "\ud800"}`},
			{httpapi.CodeInvalidRequest, "/messages", b, "{\"opId\": \"x\", \"text\": \"\xff\"}"},
			{httpapi.CodeInvalidRequest, "/messages", b, `{"opId": "x", "text": "x"`},
			{httpapi.CodeInvalidRequest, "/messages", b, // beyond the bound
				`{"opId": "x", "text": "` + strings.Repeat("x", httpapi.MaxBody) + `"}`},
			{httpapi.CodeInvalidRequest, "/messages", a, object{"opId": "x", "text": "to myself"}},
			{httpapi.CodeInvalidRequest, "/acks", a, `{"opId": "\ud800", "snapshotId": "x"}`},
			{httpapi.CodeInvalidRequest, "/acks", a, object{"snapshotId": snapshot}},
			{httpapi.CodeOperationMismatch, "/acks", a, object{"opId": "used", "snapshotId": other}},
			{httpapi.CodeInvalidRequest, ":open?page=2", a, object{}},
			{httpapi.CodeInvalidRequest, ":open?pageToken=x", a, object{}},
			{httpapi.CodeInvalidRequest, ":open", a, object{"limit": 10}},
			{httpapi.CodeNotFound, "/messages", h.member("stranger"), object{"opId": "x", "text": "x"}},
		} {
			h.refused(c.code, "POST", inboxOf+c.path, c.token, c.body)
		}
		h.refused(httpapi.CodeNotFound, "POST", "W/members/nobody/inbox/messages", b,
			object{"opId": "x", "text": "x"})
	})
	h.want(201, "POST", inboxOf+"/messages", b, object{"opId": "x", "text": "after all that"})
}

// A change of an inbox is a hint on the member's streams, with the badge; whoever misses it reads the
// same badge.
//
// covers: IN-159 IN-160
func TestInboxHints(t *testing.T) {
	h, _ := inboxWorld(t)
	a := h.member("A")
	offline := h.want(200, "GET", inboxOf+"/badge", a, nil)
	offline.is(t, 3, "accepted_through")
	s := h.sse(a, "", "")
	defer s.close()
	s.next("snapshot")
	h.want(201, "POST", inboxOf+"/messages", h.member("C"), object{"opId": "1", "text": "x"})
	hint := s.next("inbox").data
	hint.is(t, 4, "badge", "accepted_through")
	hint.is(t, 2, "badge", "count")
	opened := h.want(200, "POST", inboxOf+":open", a, nil)
	h.want(200, "POST", inboxOf+"/acks", a, object{"opId": "1", "snapshotId": opened.at("snapshotId")})
	for {
		if e := s.next("inbox").data; fmt.Sprint(e.at("badge", "acknowledged_through")) == "4" {
			break // every change is one hint, or several are one
		}
	}
	many := h.sse(h.service(), "?members=A,B", "")
	defer many.close()
	many.next("snapshot")
	many.next("snapshot")
	h.want(201, "POST", inboxOf+"/messages", h.member("C"), object{"opId": "2", "text": "x"})
	many.next("inbox").data.is(t, "A", "member")
}

// What the badge cannot answer exactly is a refusal without a number.
func TestInboxIsNeverGuessed(t *testing.T) {
	h, path := inboxWorld(t)
	a := h.member("A")
	ask(t, path, `DELETE FROM inbox_positions WHERE position = 2`)
	h.refused(httpapi.CodeSourceGap, "GET", inboxOf+"/badge", a, nil)
	h.refused(httpapi.CodeSourceGap, "POST", inboxOf+":open", a, nil)
	if r := h.call("GET", inboxOf+"/badge", a, nil); strings.Contains(string(r.body), "count") {
		t.Errorf("%s", r.body)
	}
}
