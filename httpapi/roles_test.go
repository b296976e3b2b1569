package httpapi_test

import (
	"encoding/json"
	"testing"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/apicheck"
)

// leastRoles is the table of roles, written down a second time.
var leastRoles = map[string]httpapi.Role{
	"listWorkspaces": httpapi.RoleMember,
	"putWorkspace":   httpapi.RoleAdmin,
	"patchWorkspace": httpapi.RoleAdmin,

	"listMembers": httpapi.RoleMember,
	"putMember":   httpapi.RoleService,
	"putMembers":  httpapi.RoleService,
	"eraseMember": httpapi.RoleService,
	"getSettings": httpapi.RoleMember,
	"putSettings": httpapi.RoleMember,
	"listBlocks":  httpapi.RoleMember,
	"block":       httpapi.RoleMember,
	"unblock":     httpapi.RoleMember,

	"listScopes":       httpapi.RoleMember,
	"getScope":         httpapi.RoleMember,
	"putScope":         httpapi.RoleService,
	"putScopes":        httpapi.RoleService,
	"listScopeMembers": httpapi.RoleMember,
	"putMembership":    httpapi.RoleMember,
	"putMemberships":   httpapi.RoleService,
	"leaveScope":       httpapi.RoleService,
	"follow":           httpapi.RoleMember,

	"postMessage":   httpapi.RoleMember,
	"postMessages":  httpapi.RoleService,
	"listMessages":  httpapi.RoleMember,
	"editMessage":   httpapi.RoleMember,
	"removeMessage": httpapi.RoleMember,
	"rewindScope":   httpapi.RoleService,
	"trimScope":     httpapi.RoleService,
	"moveMessages":  httpapi.RoleService,

	"postActivity":      httpapi.RoleService,
	"listActivities":    httpapi.RoleMember,
	"putTask":           httpapi.RoleService,
	"getTask":           httpapi.RoleMember,
	"listConversations": httpapi.RoleMember,

	"whoami":  httpapi.RoleMember,
	"cluster": httpapi.RoleAdmin,

	"postSession":         httpapi.RoleMember,
	"listSessions":        httpapi.RoleMember,
	"getSession":          httpapi.RoleMember,
	"patchSession":        httpapi.RoleMember,
	"forkSession":         httpapi.RoleMember,
	"mergeSession":        httpapi.RoleMember,
	"rewindSession":       httpapi.RoleMember,
	"importSession":       httpapi.RoleMember,
	"postSessionMessage":  httpapi.RoleMember,
	"listSessionMessages": httpapi.RoleMember,
	"getSessionReadState": httpapi.RoleMember,
	"putSessionReadState": httpapi.RoleMember,
	"sessionEvents":       httpapi.RoleMember,

	"putWakeEndpoint":    httpapi.RoleService,
	"getWakeEndpoint":    httpapi.RoleService,
	"removeWakeEndpoint": httpapi.RoleService,
	"listWakes":          httpapi.RoleMember,
	"listWebhooks":       httpapi.RoleAdmin,
	"putWebhook":         httpapi.RoleAdmin,
	"removeWebhook":      httpapi.RoleAdmin,
	"listDeadLetters":    httpapi.RoleAdmin,
	"requeueDeadLetter":  httpapi.RoleAdmin,

	"sendToInbox":      httpapi.RoleMember,
	"openInbox":        httpapi.RoleMember,
	"acknowledgeInbox": httpapi.RoleMember,
	"inboxBadge":       httpapi.RoleMember,

	"getReadState":  httpapi.RoleMember,
	"putReadState":  httpapi.RoleMember,
	"readAll":       httpapi.RoleMember,
	"listUnread":    httpapi.RoleMember,
	"unreadTotals":  httpapi.RoleMember,
	"queryUnread":   httpapi.RoleService,
	"firstUnread":   httpapi.RoleMember,
	"explainUnread": httpapi.RoleMember,
	"listReceipts":  httpapi.RoleMember,
	"events":        httpapi.RoleMember,
	"socket":        httpapi.RoleMember,
}

func TestEveryRouteHasItsRole(t *testing.T) {
	h := newHarness(t)
	settled(h)
	h.unchanged(func() {
		h.operations(func(op apicheck.Operation, path string) {
			least, listed := leastRoles[op.ID]
			if !listed {
				t.Errorf("%s is in no row of the table of roles", op.ID)
			}
			for role := httpapi.RoleMember; role <= httpapi.RoleAdmin; role++ {
				if role < least {
					h.refused(httpapi.CodeForbidden, op.Method, path, h.token("W", "A", role), object{})
					continue
				}
				// The parameter is refused after access is settled and before anything happens.
				r := h.call(op.Method, path+"?surprise=1", h.token("W", "A", role), object{})
				var p httpapi.Problem
				if err := json.Unmarshal(r.body, &p); err != nil {
					t.Errorf("%s: %d %s", op.ID, r.status, r.body)
				}
				if p.Code != httpapi.CodeInvalidRequest {
					t.Errorf("%s as %s: got %s", op.ID, role, p.Code)
				}
			}
		})
	})
}

// A member acts as itself only; a service as anybody.
func TestMembersActAsThemselves(t *testing.T) {
	h := newHarness(t)
	settled(h)
	h.channel("secret", "A")
	h.post("secret", "A", object{"messageId": "s1"})
	b, service := h.member("B"), h.service()
	read := object{"type": "read", "readRevision": 2, "expectedVersion": 0}
	type request struct {
		code         httpapi.Code
		method, path string
		body         any
	}
	h.unchanged(func() {
		for _, c := range []request{
			{httpapi.CodeForbidden, "GET", "W/members/A/settings", nil},
			{httpapi.CodeForbidden, "PUT", "W/members/A/settings", object{"badge": "messages"}},
			{httpapi.CodeForbidden, "GET", "W/members/A/blocks", nil},
			{httpapi.CodeForbidden, "PUT", "W/members/A/blocks/B", nil},
			{httpapi.CodeForbidden, "DELETE", "W/members/A/blocks/B", nil},
			{httpapi.CodeForbidden, "PUT", "W/scopes/c/members/A", object{"notification": "none"}},
			{httpapi.CodeForbidden, "PUT", "W/scopes/c/members/B", object{"visible": false}},
			{httpapi.CodeForbidden, "PUT", "W/scopes/c/members/B", object{"effectiveFrom": 1}},
			{httpapi.CodeForbidden, "PUT", "W/scopes/c/members/B", object{"readRevision": 0}},
			{httpapi.CodeForbidden, "PUT", "W/scopes/c/members/B?create=members", object{}},
			{httpapi.CodeForbidden, "PUT", "W/scopes/c/read-state?member=A", read},
			{httpapi.CodeForbidden, "GET", "W/scopes/c/read-state?member=A", nil},
			{httpapi.CodeForbidden, "POST", "W/read-all?member=A", object{"scopes": []object{}}},
			{httpapi.CodeForbidden, "GET", "W/unread?member=A", nil},
			{httpapi.CodeForbidden, "GET", "W/unread/totals?groupBy=tag&member=A", nil},
			{httpapi.CodeForbidden, "GET", "W/scopes/c/unread/first?member=A", nil},
			{httpapi.CodeForbidden, "GET", "W/scopes/c/unread/explain?member=A", nil},
			{httpapi.CodeForbidden, "GET", "W/events?member=A", nil},
			{httpapi.CodeForbidden, "GET", "W/scopes?member=A", nil},
			{httpapi.CodeForbidden, "GET", "/api/v1/workspaces?member=A", nil},
			{httpapi.CodeForbidden, "POST", "W/scopes/c/messages", object{"opId": "x", "author": "A"}},
			{httpapi.CodeForbidden, "POST", "W/scopes/c/messages", object{"opId": "x", "notifyPrincipal": "A"}},
			{httpapi.CodeForbidden, "POST", "W/scopes/c/messages", object{"opId": "x", "baseline": true}},
			{httpapi.CodeForbidden, "POST", "W/scopes/c/messages?create=members", object{"opId": "x"}},
			{httpapi.CodeForbidden, "PATCH", "W/scopes/c/messages/m1", object{"opId": "x", "payload": 1}},
			{httpapi.CodeForbidden, "DELETE", "W/scopes/c/messages/m1", object{"opId": "x"}},

			// What a member does not see does not exist for them.
			{httpapi.CodeNotFound, "GET", "W/scopes/secret", nil},
			{httpapi.CodeNotFound, "GET", "W/scopes/secret/members", nil},
			{httpapi.CodeNotFound, "GET", "W/scopes/secret/messages", nil},
			{httpapi.CodeNotFound, "GET", "W/scopes/secret/receipts?revision=1", nil},
			{httpapi.CodeNotFound, "GET", "W/scopes/secret/read-state", nil},
			{httpapi.CodeNotFound, "GET", "W/scopes/secret/unread/first", nil},
			{httpapi.CodeNotFound, "GET", "W/scopes/secret/unread/explain", nil},
			{httpapi.CodeNotFound, "PUT", "W/scopes/secret/read-state", object{"type": "read", "readRevision": 1, "expectedVersion": 0}},
			{httpapi.CodeNotFound, "PUT", "W/scopes/secret/members/B", object{"notification": "all"}},
			{httpapi.CodeNotFound, "POST", "W/scopes/secret/messages", object{"opId": "x"}},
			{httpapi.CodeNotFound, "GET", "W/events?messages=secret", nil},
			{httpapi.CodeNotFound, "GET", "W/scopes/unknown/messages", nil},
		} {
			h.refused(c.code, c.method, c.path, b, c.body)
		}
		// Whoever is no member of the workspace sees nothing of it.
		for _, path := range []string{
			"W/unread", "W/members", "W/scopes", "W/scopes/c", "W/scopes/c/messages", "W/scopes/c/read-state",
			"W/members/stranger/settings", "W/unread/totals?groupBy=tag", "W/events",
		} {
			h.refused(httpapi.CodeNotFound, "GET", path, h.member("stranger"), nil)
		}
	})
	for _, c := range []request{
		{"", "GET", "W/members/A/settings", nil},
		{"", "PUT", "W/members/A/blocks/B", nil},
		{"", "PUT", "W/scopes/c/read-state?member=A", read},
		{"", "GET", "W/unread?member=A", nil},
		{"", "GET", "W/scopes/secret/messages", nil},
		{"", "GET", "W/scopes/secret/unread/explain?member=A", nil},
		{"", "PATCH", "W/scopes/c/messages/m1", object{"opId": "x", "payload": 1}},
		{"", "PUT", "W/scopes/c/members/B", object{"visible": false}},
		{"", "DELETE", "W/scopes/c/messages/m2", object{"opId": "y"}},
	} {
		h.want(200, c.method, c.path, service, c.body)
	}
	// B was hidden from c a moment ago.
	for _, path := range []string{"W/scopes/c", "W/scopes/c/messages", "W/scopes/c/read-state"} {
		h.refused(httpapi.CodeNotFound, "GET", path, b, nil)
	}
	h.refused(httpapi.CodeInvalidRequest, "POST", "W/scopes/c/messages", service, object{"opId": "x"})
	h.refused(httpapi.CodeNotFound, "GET", "W/scopes/secret/messages?member=B", service, nil)
}

// Threads are open to whoever sees their channel.
func TestThreadsOfAChannelOneSees(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B", "C")
	h.post("c", "A", object{"messageId": "root"})
	h.thread("t", "c", "root")
	h.post("t", "B", object{"messageId": "reply"})
	h.want(200, "GET", "W/scopes/t/messages", h.member("C"), nil).is(t, "reply", "messages", 0, "id")
	h.want(200, "DELETE", "W/scopes/c/members/C", h.service(), nil)
	h.refused(httpapi.CodeNotFound, "GET", "W/scopes/t/messages", h.member("C"), nil)
	h.refused(httpapi.CodeNotFound, "POST", "W/scopes/t/messages", h.member("C"), object{"opId": "x"})
	h.refused(httpapi.CodeNotFound, "PUT", "W/scopes/t/follow", h.member("C"), object{"following": true})
}
