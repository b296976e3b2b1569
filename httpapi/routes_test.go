package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/httpapi"
)

func TestWorkspaces(t *testing.T) {
	h := newHarness(t)
	w := h.want(200, "PUT", "W", h.admin(), object{"name": "One"})
	w.is(t, "One", "name")
	h.want(200, "PUT", "V", h.admin(), object{"name": "Other"})
	h.want(200, "PATCH", "W", h.token("W", "root", httpapi.RoleAdmin), object{"name": "Two"})
	h.refused(httpapi.CodeNotFound, "PATCH", "X", h.admin(), object{"name": "Two"})
	h.channel("c", "A", "B")
	h.post("c", "A", nil)

	h.want(200, "GET", "W/unread", h.member("B"), nil)
	mine := h.want(200, "GET", "/api/v1/workspaces", h.member("B"), nil)
	mine.is(t, "W", "workspaces", 0, "id")
	mine.is(t, "Two", "workspaces", 0, "name")
	mine.is(t, true, "workspaces", 0, "hasUnread")
	mine.is(t, "ready", "workspaces", 0, "state")
	mine.is(t, nil, "workspaces", 1)

	all := h.want(200, "GET", "/api/v1/workspaces", h.admin(), nil)
	all.is(t, "V", "workspaces", 0, "id")
	all.is(t, nil, "workspaces", 1, "hasUnread")
	asked := h.want(200, "GET", "/api/v1/workspaces?member=B", h.admin(), nil)
	asked.is(t, true, "workspaces", 1, "hasUnread")
	asked.is(t, false, "workspaces", 0, "hasUnread")
}

func TestMembersSettingsAndBlocks(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	service := h.service()
	m := h.want(200, "PUT", "W/members/A", service, object{
		"kind": "agent", "displayName": "Ada", "avatar": "a.png", "active": false,
	})
	m.is(t, "agent", "kind")
	m.is(t, "Ada", "displayName")
	m.is(t, false, "active")
	m.is(t, "applied", "status")
	again := h.want(200, "PUT", "W/members/A", service, object{"kind": "agent"})
	again.is(t, "unchanged", "status")
	again.is(t, "Ada", "displayName")

	batch := h.want(200, "POST", "W/members:batch", service, object{"members": []object{
		{"id": "C", "kind": "human"}, {"id": "D/1", "kind": "human", "displayName": "Dee"},
	}})
	batch.is(t, "applied", "results", 1, "status")
	var names []string
	for next := ""; ; {
		page := h.want(200, "GET", "W/members?limit=2&pageToken="+next, h.member("B"), nil)
		for i := range page.at("members").([]any) {
			names = append(names, fmt.Sprint(page.at("members", i, "id")))
		}
		if page.at("next") == nil {
			break
		}
		next = fmt.Sprint(page.at("next"))
	}
	if want := []string{"A", "B", "C", "D/1"}; !slices.Equal(names, want) {
		t.Errorf("members are %v, want %v", names, want)
	}
	h.refused(httpapi.CodeInvalidRequest, "GET", "W/members?pageToken=AAAA", h.member("B"), nil)
	scopes := h.want(200, "GET", "W/members?limit=1", h.member("B"), nil)
	h.refused(httpapi.CodeInvalidRequest, "GET",
		"W/scopes?pageToken="+fmt.Sprint(scopes.at("next")), h.member("B"), nil)

	h.want(200, "GET", "W/members/B/settings", h.member("B"), nil).is(t, "messages", "badge")
	set := h.want(200, "PUT", "W/members/B/settings", h.member("B"),
		object{"badge": "conversations", "receipts": "private"})
	set.is(t, "conversations", "badge")
	set.is(t, "private", "receipts")
	set.is(t, "applied", "status")

	h.want(200, "PUT", "W/members/B/blocks/D%2F1", h.member("B"), nil).is(t, "applied", "status")
	h.want(200, "PUT", "W/members/B/blocks/D%2F1", h.member("B"), object{}).is(t, "unchanged", "status")
	h.want(200, "GET", "W/members/B/blocks", service, nil)
	h.want(200, "GET", "W/members/B/blocks", h.member("B"), nil).is(t, "D/1", "blocks", 0)
	h.want(200, "DELETE", "W/members/B/blocks/D%2F1", h.member("B"), nil)
	h.want(200, "GET", "W/members/B/blocks", h.member("B"), nil).is(t, "[]", "blocks")

	h.want(200, "DELETE", "W/members/A", service, nil).is(t, "applied", "status")
	if text := fmt.Sprint(h.want(200, "GET", "W/members", service, nil)); strings.Contains(text, "Ada") {
		t.Errorf("an erased name is still listed: %s", text)
	}
}

func TestScopesAndMemberships(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	service := h.service()
	s := h.want(200, "PUT", "W/scopes/d%20%2F%C3%A9", service, object{
		"type": "channel", "name": "Dé", "tags": []string{"work"}, "history": "shared",
	})
	s.is(t, "d /é", "id")
	s.is(t, "[work]", "tags")
	s.is(t, "shared", "history")
	h.want(200, "GET", "W/scopes/d%20%2F%C3%A9", service, nil).is(t, "Dé", "name")
	h.refused(httpapi.CodeNotFound, "GET", "W/scopes/d%20%2F%C3%A9", h.member("A"), nil)
	h.refused(httpapi.CodeOperationMismatch, "PUT", "W/scopes/c", service, object{"type": "dm"})
	h.want(200, "POST", "W/scopes:batch", service, object{"scopes": []object{
		{"id": "e", "type": "channel"}, {"id": "c", "type": "dm"}, {"id": "f", "type": "dm"},
	}}).is(t, "operation_mismatch", "results", 1, "error", "code")
	h.want(200, "GET", "W/scopes?type=channel&limit=2", service, nil).is(t, "d /é", "scopes", 1, "id")
	mine := h.want(200, "GET", "W/scopes", h.member("A"), nil)
	mine.is(t, "c", "scopes", 0, "id")
	mine.is(t, nil, "scopes", 1)

	h.post("c", "A", object{"messageId": "root"})
	h.thread("t", "c", "root")
	h.want(200, "GET", "W/scopes/t", h.member("B"), nil).is(t, "c", "parent")
	h.want(200, "PUT", "W/scopes/t/follow", h.member("B"), object{"following": true}).is(t, "applied", "status")
	h.want(200, "GET", "W/scopes?parent=c", h.member("B"), nil).is(t, "t", "scopes", 0, "id")

	h.want(200, "PUT", "W/scopes/c/members/B", h.member("B"),
		object{"notification": "mentions", "until": "2099-01-01T00:00:00Z"})
	roster := h.want(200, "GET", "W/scopes/c/members", h.member("B"), nil)
	roster.is(t, "A", "members", 0, "id")
	roster.is(t, nil, "members", 0, "notification")
	roster.is(t, "mentions", "members", 1, "notification")
	roster.is(t, "2099-01-01T00:00:00Z", "members", 1, "until")
	page := h.want(200, "GET", "W/scopes/c/members?limit=1", service, nil)
	h.want(200, "GET", "W/scopes/c/members?limit=1&pageToken="+fmt.Sprint(page.at("next")), service, nil).
		is(t, "B", "members", 0, "id")
	h.refused(httpapi.CodeInvalidRequest, "GET",
		"W/scopes/e/members?pageToken="+fmt.Sprint(page.at("next")), service, nil)

	h.refused(httpapi.CodeNotFound, "PUT", "W/scopes/e/members/new", service, object{})
	h.want(200, "PUT", "W/scopes/e/members/new?create=members", service, object{})
	h.want(200, "POST", "W/scopes/e/members:batch?create=members", service, object{"members": []object{
		{"id": "A", "readRevision": 0}, {"id": "fresh"}, {"id": "B", "effectiveFrom": 9},
	}}).is(t, "revision_in_future", "results", 2, "error", "code")
	h.want(200, "DELETE", "W/scopes/e/members/A", service, nil).is(t, "applied", "status")
	h.want(200, "DELETE", "W/scopes/e/members/A", service, nil).is(t, "unchanged", "status")
}

func TestMessages(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	service := h.service()
	body := object{
		"opId": "one", "messageId": "m/1", "payload": object{"text": "hi"}, "mentions": []string{"B"},
		"localId": "l1", "expiresAt": "2099-01-01T00:00:00Z",
	}
	first := h.want(201, "POST", "W/scopes/c/messages", h.member("A"), body)
	first.is(t, "m/1", "messageId")
	first.is(t, 1, "contentRevision")
	first.is(t, false, "duplicate")
	again := h.want(200, "POST", "W/scopes/c/messages", h.member("A"), body)
	again.is(t, true, "duplicate")
	again.is(t, 1, "seq")
	body["silent"] = true
	h.refused(httpapi.CodeOperationMismatch, "POST", "W/scopes/c/messages", h.member("A"), body)

	batch := h.want(200, "POST", "W/messages:batch?create=members", service, object{"messages": []object{
		{"scope": "c", "opId": "b1", "author": "A", "baseline": true},
		{"scope": "none", "opId": "b2", "author": "A"},
		{"scope": "c", "opId": "b3", "author": "bot", "notifyPrincipal": "B", "mentionsEveryone": true},
		{"scope": "c", "opId": "b3", "author": "bot", "notifyPrincipal": "B", "mentionsEveryone": true},
	}})
	batch.is(t, 2, "results", 0, "seq")
	batch.is(t, nil, "results", 0, "contentRevision")
	batch.is(t, "not_found", "results", 1, "error", "code")
	batch.is(t, 2, "results", 2, "contentRevision")
	batch.is(t, true, "results", 3, "duplicate")

	page := h.want(200, "GET", "W/scopes/c/messages?limit=2", h.member("B"), nil)
	page.is(t, true, "page", "hasMore")
	page.is(t, 2, "page", "readThroughRevision")
	page.is(t, 1, "page", "unreadBefore")
	page.is(t, "bot", "messages", 1, "author")
	h.want(200, "GET", "W/scopes/c/messages?limit=2&member=B", service, nil).is(t, 1, "page", "unreadBefore")
	h.want(200, "GET", "W/scopes/c/messages?limit=2", service, nil).is(t, nil, "page", "unreadBefore")
	older := h.want(200, "GET", "W/scopes/c/messages?before=2", h.member("B"), nil)
	older.is(t, "m/1", "messages", 0, "id")
	older.is(t, "hi", "messages", 0, "payload", "text")
	older.is(t, "[B]", "messages", 0, "mentions")
	older.is(t, nil, "page", "readThroughRevision")
	h.want(200, "GET", "W/scopes/c/messages?after=2", h.member("B"), nil).is(t, 3, "messages", 0, "seq")
	h.refused(httpapi.CodeInvalidRequest, "GET", "W/scopes/c/messages?after=2&before=3", h.member("B"), nil)

	h.want(200, "PATCH", "W/scopes/c/messages/m%2F1", h.member("A"), object{
		"opId": "edit", "mentions": []string{}, "payload": object{"text": "hi!"},
	}).is(t, false, "duplicate")
	h.want(200, "GET", "W/scopes/c/messages?before=2", h.member("B"), nil).is(t, "[]", "messages", 0, "mentions")
	h.channel("d", "A", "B")
	h.want(200, "POST", "W/scopes/c/messages:move", service, object{
		"opId": "move", "messages": []string{"m/1"}, "to": "d", "countMoved": true,
	})
	h.want(200, "GET", "W/scopes/d/messages", h.member("B"), nil).is(t, 1, "messages", 0, "contentRevision")
	h.want(200, "DELETE", "W/scopes/d/messages/m%2F1", h.member("A"), object{"opId": "del"})
	h.want(200, "GET", "W/scopes/d/messages", h.member("B"), nil).is(t, "[]", "messages")
	h.want(200, "POST", "W/scopes/c/trim", service, object{"opId": "trim", "throughSeq": 2})
	h.want(200, "POST", "W/scopes/c/rewind", service, object{"opId": "rewind", "throughSeq": 2})
	h.want(200, "GET", "W/scopes/c/messages", h.member("B"), nil).is(t, "[]", "messages")
}

func TestBroadcastReplyNamesBothPlaces(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	h.post("c", "A", object{"messageId": "root"})
	h.thread("t", "c", "root")
	r := h.post("t", "B", object{"broadcast": true, "replyTo": "root"})
	r.is(t, 1, "contentRevision")
	r.is(t, 2, "channel", "contentRevision")
}

func TestReadState(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	for range 3 {
		h.post("c", "A", nil)
	}
	const path = "W/scopes/c/read-state"
	b := h.member("B")
	now := h.want(200, "GET", path, b, nil)
	now.is(t, 3, "contentRevision")
	now.is(t, 3, "counts", "unread")
	now.is(t, 0, "readState", "readRevision")

	read := h.want(200, "PUT", path, b, object{"type": "read", "readRevision": 2, "expectedVersion": 0})
	read.is(t, "applied", "status")
	read.is(t, 1, "counts", "shownUnread")
	h.want(200, "PUT", path, b, object{"type": "read", "readRevision": 1, "expectedVersion": 0}).
		is(t, "unchanged", "status")
	h.refused(httpapi.CodeRevisionInFuture, "PUT", path, b,
		object{"type": "read", "readRevision": 4, "expectedVersion": 0})
	h.refused(httpapi.CodeInvalidRequest, "PUT", path, b, object{"type": "read", "readRevision": 3})
	h.want(200, "PUT", path+"?member=B", h.service(), object{"type": "read", "readRevision": 3}).
		is(t, 0, "counts", "unread")

	mark := h.want(200, "PUT", path, b, object{"type": "unread", "fromRevision": 2, "expectedVersion": 0})
	mark.is(t, true, "readState", "manualUnread")
	mark.is(t, 2, "readState", "fromRevision")
	mark.is(t, 1, "readState", "version")
	mark.is(t, 2, "counts", "unread")
	conflict := h.want(409, "PUT", path, b, object{"type": "unread", "expectedVersion": 0})
	conflict.is(t, "conflict", "status")
	conflict.is(t, "version_conflict", "code")
	conflict.is(t, 1, "readState", "version")
	conflict.is(t, 2, "counts", "unread")

	for _, wrong := range []object{
		{"type": "read", "expectedVersion": 1},
		{"type": "read", "expectedVersion": 1, "readRevision": 1, "throughMessage": "m"},
		{"type": "read", "expectedVersion": 1, "readRevision": 1, "fromRevision": 1},
		{"type": "unread", "expectedVersion": 1, "fromRevision": 1, "fromMessage": "m"},
		{"type": "unread", "expectedVersion": 1, "readRevision": 1},
		{"type": "unread", "expectedVersion": 1, "fromRevision": 0},
		{"type": "ack", "expectedVersion": 1},
	} {
		h.refused(httpapi.CodeInvalidRequest, "PUT", path, b, wrong)
	}
	h.refused(httpapi.CodeNotFound, "PUT", path, b,
		object{"type": "read", "throughMessage": "nothing", "expectedVersion": 1})
}

func TestReadAll(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	h.channel("d", "A", "B")
	h.post("c", "A", nil)
	h.post("d", "A", nil)
	r := h.want(200, "POST", "W/read-all", h.member("B"), object{"scopes": []object{
		{"scope": "c", "readRevision": 1, "expectedVersion": 0},
		{"scope": "none", "readRevision": 1, "expectedVersion": 0},
		{"scope": "d", "readRevision": 1, "expectedVersion": 0},
	}})
	r.is(t, "applied", "results", 0, "status")
	r.is(t, 0, "results", 0, "counts", "unread")
	r.is(t, "not_found", "results", 1, "error", "code")
	r.is(t, "d", "results", 2, "scope")
	h.refused(httpapi.CodeInvalidRequest, "POST", "W/read-all", h.member("B"), object{"scopes": []object{
		{"scope": "c", "readRevision": 1},
	}})
	h.want(200, "POST", "W/read-all?member=B", h.service(), object{"scopes": []object{
		{"scope": "c", "readRevision": 1},
	}}).is(t, "unchanged", "results", 0, "status")
}

func TestUnread(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	h.want(200, "PUT", "W/scopes/d", h.service(), object{"type": "dm", "tags": []string{"work"}})
	for _, m := range []string{"A", "B"} {
		h.want(200, "PUT", "W/scopes/d/members/"+m, h.service(), object{})
	}
	h.channel("e", "B")
	h.post("c", "A", object{"mentions": []string{"B"}, "messageId": "m1"})
	h.post("c", "A", object{"messageId": "m2"})
	h.post("d", "A", object{"messageId": "m3"})

	page := h.want(200, "GET", "W/unread", h.member("B"), nil)
	page.is(t, true, "hasUnread")
	page.is(t, "ready", "state")
	page.is(t, 3, "badge", "messages")
	page.is(t, 3, "badge", "display")
	page.is(t, 2, "badge", "conversations")
	page.is(t, 2, "badge", "attention")
	page.is(t, true, "complete")
	page.is(t, 2, "scopes", "c", "unread")
	page.is(t, "m2", "scopes", "c", "latestMessage", "id")
	page.is(t, "all", "scopes", "e", "notification")
	h.want(200, "GET", "W/unread?member=B", h.service(), nil).is(t, 3, "badge", "messages")

	seen := map[string]bool{}
	for next := ""; ; {
		p := h.want(200, "GET", "W/unread?limit=1&pageToken="+next, h.member("B"), nil)
		for name := range p.at("scopes").(map[string]any) {
			seen[name] = true
		}
		p.is(t, p.at("next") == nil, "complete")
		if p.at("next") == nil {
			break
		}
		next = fmt.Sprint(p.at("next"))
	}
	if len(seen) != 3 {
		t.Errorf("paged through %v", seen)
	}
	h.refused(httpapi.CodeInvalidRequest, "GET", "W/unread?pageToken=x", h.member("B"), nil)

	byTag := h.want(200, "GET", "W/unread/totals?groupBy=tag", h.member("B"), nil)
	byTag.is(t, 1, "groups", "work", "messages")
	h.want(200, "GET", "W/unread/totals?groupBy=type", h.member("B"), nil).is(t, 2, "groups", "channel", "messages")
	h.want(200, "GET", "W/unread/totals?groupBy=parent", h.member("B"), nil).is(t, 1, "groups", "c", "attention")
	h.refused(httpapi.CodeInvalidRequest, "GET", "W/unread/totals", h.member("B"), nil)

	many := h.want(200, "POST", "W/unread:query", h.service(), object{"members": []string{"B", "A", "nobody"}})
	many.is(t, "B", "members", 0, "member")
	many.is(t, 2, "members", 0, "scopes", "c", "unread")
	many.is(t, false, "members", 1, "hasUnread")
	many.is(t, "not_found", "members", 2, "error", "code")
	some := h.want(200, "POST", "W/unread:query", h.service(), object{
		"members": []string{"B", "A"}, "scopes": []string{"d", "e"},
	})
	some.is(t, 1, "members", 0, "scopes", "d", "unread")
	some.is(t, nil, "members", 0, "scopes", "c")
	some.is(t, nil, "members", 1, "scopes", "e")

	first := h.want(200, "GET", "W/scopes/c/unread/first", h.member("B"), nil)
	first.is(t, "m1", "firstUnread", "messageId")
	first.is(t, "m1", "firstAttention", "messageId")
	h.want(200, "GET", "W/scopes/e/unread/first", h.member("B"), nil).is(t, nil, "firstUnread")

	why := h.want(200, "GET", "W/scopes/c/unread/explain", h.member("B"), nil)
	why.is(t, 2, "head")
	why.is(t, "[m1 m2]", "messages")
	why.is(t, 1, "direct")
	why.is(t, "all", "level")
}

func TestReceiptsRespectPrivacy(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B", "C", "D")
	h.post("c", "A", nil)
	for _, m := range []string{"B", "C"} {
		h.want(200, "PUT", "W/scopes/c/read-state", h.member(m),
			object{"type": "read", "readRevision": 1, "expectedVersion": 0})
	}
	h.want(200, "PUT", "W/members/C/settings", h.member("C"), object{"receipts": "private"})
	seen := h.want(200, "GET", "W/scopes/c/receipts?revision=1", h.member("A"), nil)
	seen.is(t, "B", "receipts", 0, "member")
	seen.is(t, nil, "receipts", 1)
	h.want(200, "GET", "W/scopes/c/receipts?revision=1", h.member("C"), nil).is(t, "C", "receipts", 1, "member")
	h.refused(httpapi.CodeRevisionInFuture, "GET", "W/scopes/c/receipts?revision=2", h.member("A"), nil)
}

func TestHealthDocumentAndDocs(t *testing.T) {
	h := newHarness(t)
	h.want(200, "GET", "/healthz", "", nil).is(t, "ok", "status")
	h.want(200, "GET", "/readyz", "", nil).is(t, "ok", "status")
	docs := h.call("GET", "/docs", "", nil)
	if docs.status != 200 || !strings.Contains(string(docs.body), "putReadState") {
		t.Errorf("docs: %d", docs.status)
	}
	for _, outside := range []string{"src=", "http://", "https://", "@import"} {
		if strings.Contains(string(docs.body), outside) {
			t.Errorf("the page of the documentation asks elsewhere: %s", outside)
		}
	}
	h.refused(httpapi.CodeNotFound, "GET", "/nothing", "", nil)
	h.refused(httpapi.CodeNotFound, "GET", "/api/v1/workspaces/", h.admin(), nil)
	r := h.call("DELETE", "W/unread", h.member("A"), nil)
	if r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != "GET, OPTIONS" {
		t.Errorf("got %d, Allow %q", r.status, r.header.Get("Allow"))
	}
}
