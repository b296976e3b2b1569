package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/httpapi"
)

// taskWorld has a task with an assignee, a watcher, an agent that watches, and somebody who only
// sees it.
func taskWorld(h *harness) {
	h.world("A", "B")
	service := h.service()
	h.want(200, "PUT", "W/members/bot", service, object{"kind": "agent"})
	h.want(200, "PUT", "W/scopes/t", service, object{"type": "task", "name": "Fix it"})
	for _, m := range []string{"A", "B", "C", "S", "bot"} {
		h.want(200, "PUT", "W/scopes/t/members/"+m+"?create=members", service, object{})
	}
	for _, m := range []string{"B", "bot"} {
		h.want(200, "PUT", "W/scopes/t/follow?member="+m, service, object{"following": true})
	}
	h.want(200, "PUT", "W/tasks/t?member=A", service, object{"assignee": "S", "status": "open"})
}

// counts reads unread and activity of a member in a scope.
func (h *harness) counts(scope, member string) (unread, activity any) {
	h.t.Helper()
	r := h.want(200, "GET", "W/scopes/"+scope+"/read-state", h.member(member), nil)
	return r.at("counts", "unread"), r.at("counts", "activity")
}

// A change of a task is one typed activity for those who watch it and the assignee that it has
// then; its actor learns nothing new, nor does somebody who only sees it or had it before.
// covers: RT-159 RT-162 RT-172 RT-181
func TestTaskChangesAreActivities(t *testing.T) {
	h := newHarness(t)
	taskWorld(h)
	service := h.service()
	r := h.want(200, "PUT", "W/tasks/t?member=A", service,
		object{"assignee": "C", "status": "done", "title": "Fixed"})
	r.is(t, "applied", "status")
	r.is(t, "C", "task", "assignee")
	if got := fmt.Sprint(r.at("changed")); got != "[task_assigned task_status_changed task_title_changed]" {
		t.Errorf("changed %s", got)
	}
	again := h.want(200, "PUT", "W/tasks/t?member=A", service, object{"status": "done"})
	again.is(t, "unchanged", "status")
	again.is(t, nil, "changed", 0)
	// B: assigned and status at first, then both again. S: both at first. C: as the new assignee.
	// The title counts for nobody.
	for member, want := range map[string]string{"A": "0", "B": "4", "S": "2", "C": "2"} {
		if _, got := h.counts("t", member); fmt.Sprint(got) != want {
			t.Errorf("activity of %s is %v, want %s", member, got, want)
		}
	}
	seen := h.want(200, "GET", "W/tasks/t", h.member("B"), nil)
	seen.is(t, "Fixed", "title")
	seen.is(t, "t", "scope")
	list := h.want(200, "GET", "W/scopes/t/activities?kind=timeline&limit=2", h.member("B"), nil)
	list.is(t, "task_status_changed", "activities", 0, "type")
	list.is(t, "task_title_changed", "activities", 1, "type")
	list.is(t, false, "activities", 1, "highSignal")
	list.is(t, true, "hasMore")
	list.is(t, "5", "latestActivitySeq")

	h.want(200, "PUT", "W/members/far", service, object{"kind": "human"})
	h.unchanged(func() {
		h.refused(httpapi.CodeInvalidRequest, "PUT", "W/tasks/c?member=A", service, object{"status": "x"})
		h.refused(httpapi.CodeNotFound, "PUT", "W/tasks/none?member=A", service, object{"status": "x"})
		h.refused(httpapi.CodeNotFound, "PUT", "W/tasks/t?member=A", service, object{"assignee": "nobody"})
		h.refused(httpapi.CodeInvalidRequest, "PUT", "W/tasks/t", service, object{"status": "x"})
		h.refused(httpapi.CodeForbidden, "PUT", "W/tasks/t?member=A", service, object{"assignee": "far"})
		h.refused(httpapi.CodeNotFound, "GET", "W/tasks/t", h.member("far"), nil)
		h.refused(httpapi.CodeNotFound, "GET", "W/scopes/t/activities", h.member("far"), nil)
		h.refused(httpapi.CodeForbidden, "PUT", "W/tasks/t", h.member("A"), object{"status": "x"})
	})
}

// A message of a task counts for its watchers, its assignee and whom it names, but its author;
// one read advances both cursors.
// covers: RT-147 RT-177 RT-178 RT-200
func TestTaskMessagesReachTheirRecipients(t *testing.T) {
	h := newHarness(t)
	taskWorld(h)
	h.post("t", "B", object{"messageId": "q", "mentions": []string{"C"}})
	for member, want := range map[string]string{"A": "0", "B": "0", "S": "1", "C": "1", "bot": "0"} {
		if got, _ := h.counts("t", member); fmt.Sprint(got) != want {
			t.Errorf("unread of %s is %v, want %s", member, got, want)
		}
	}
	if _, activity := h.counts("t", "S"); fmt.Sprint(activity) != "2" {
		t.Errorf("activity of S is %v", activity)
	}
	read := h.want(200, "PUT", "W/scopes/t/read-state", h.member("S"),
		object{"type": "read", "throughMessage": "q", "expectedVersion": 0})
	read.is(t, "applied", "status")
	read.is(t, "0", "counts", "unread")
	read.is(t, "0", "counts", "activity")
	read.is(t, false, "counts", "shown")
}

// Activities outside tasks: high-signal ones are a dot for everybody but the actor, all others
// for nobody, and telemetry is none.
// covers: RT-155 RT-156 RT-157 RT-158 RT-171
func TestActivities(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	service := h.service()
	body := object{"opId": "o1", "actor": "A", "type": "file_shared", "refType": "file",
		"ref": "f1"}
	first := h.want(201, "POST", "W/scopes/c/activities", service, body)
	first.is(t, true, "highSignal")
	first.is(t, "1", "activitySeq")
	again := h.want(200, "POST", "W/scopes/c/activities", service, body)
	again.is(t, true, "duplicate")
	again.is(t, fmt.Sprint(first.at("activityId")), "activityId")
	body["type"] = "poll_opened"
	h.unchanged(func() {
		h.refused(httpapi.CodeOperationMismatch, "POST", "W/scopes/c/activities", service, body)
		for _, kind := range []string{"presence", "agent_runtime", "Typing", "", "a b"} {
			h.refused(httpapi.CodeInvalidRequest, "POST", "W/scopes/c/activities", service,
				object{"opId": "o2", "actor": "A", "type": kind})
		}
		h.refused(httpapi.CodeNotFound, "POST", "W/scopes/c/activities", service,
			object{"opId": "o2", "actor": "nobody", "type": "file_shared"})
		h.refused(httpapi.CodeForbidden, "POST", "W/scopes/c/activities", h.member("A"),
			object{"opId": "o2", "actor": "A", "type": "file_shared"})
	})
	h.want(201, "POST", "W/scopes/c/activities", service,
		object{"opId": "o3", "actor": "A", "type": "reaction"}).is(t, false, "highSignal")
	for member, want := range map[string]string{"A": "0 0", "B": "0 1"} {
		unread, activity := h.counts("c", member)
		if got := fmt.Sprint(unread, " ", activity); got != want {
			t.Errorf("%s has %s, want %s", member, got, want)
		}
	}
	h.want(200, "GET", "W/unread", h.member("B"), nil).is(t, true, "hasUnread")
	h.want(200, "PUT", "W/scopes/c/read-state", h.member("B"), object{
		"type": "read", "activityReadSeq": 2, "expectedVersion": 0,
	}).is(t, "0", "counts", "activity")
	h.want(200, "GET", "W/unread", h.member("B"), nil).is(t, false, "hasUnread")
	list := h.want(200, "GET", "W/scopes/c/activities?after=1", h.member("B"), nil)
	list.is(t, "reaction", "activities", 0, "type")
	list.is(t, nil, "activities", 1)
}

// Conversations are those in which something happened, the newest first, each once, whatever the
// size of a page; a task comes with its first delivery.
// covers: RT-188 RT-189 RT-190
func TestConversations(t *testing.T) {
	h := newHarness(t)
	taskWorld(h)
	service := h.service()
	h.want(200, "PUT", "W/scopes/d", service, object{"type": "dm"})
	for _, m := range []string{"A", "B"} {
		h.want(200, "PUT", "W/scopes/d/members/"+m, service, object{})
	}
	names := func(member, query string) (out []string) {
		t.Helper()
		for next := ""; ; {
			page := h.want(200, "GET", "W/conversations?"+query+"&pageToken="+next, h.member(member), nil)
			for i := range page.at("conversations").([]any) {
				out = append(out, fmt.Sprint(page.at("conversations", i, "scope")))
			}
			if page.at("next") == nil {
				return out
			}
			next = fmt.Sprint(page.at("next"))
		}
	}
	is := func(member, query, want string) {
		t.Helper()
		if got := fmt.Sprint(names(member, query)); got != want {
			t.Errorf("%s?%s: %s, want %s", member, query, got, want)
		}
	}
	is("C", "limit=1", "[]") // sees the task, and nothing was delivered
	is("B", "limit=5", "[t]")
	h.post("c", "A", nil)
	h.post("d", "A", nil)
	h.post("t", "A", object{"mentions": []string{"C"}})
	for _, limit := range []string{"limit=1", "limit=2", "limit=9"} {
		is("B", limit, "[t d c]")
	}
	is("C", "limit=9", "[t]")
	is("B", "kind=dm&limit=1", "[d]")
	is("B", "kind=task&limit=1", "[t]")
	h.want(200, "PUT", "W/scopes/d/read-state", h.member("B"),
		object{"type": "read", "readRevision": 1, "expectedVersion": 0})
	is("B", "unread=true&limit=1", "[t c]")
	h.refused(httpapi.CodeInvalidRequest, "GET", "W/conversations?pageToken=AAAA", h.member("B"), nil)
	h.refused(httpapi.CodeForbidden, "GET", "W/conversations?member=A", h.member("B"), nil)
}
