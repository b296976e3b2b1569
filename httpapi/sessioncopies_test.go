package httpapi_test

import (
	"testing"

	"github.com/tidemark-im/tidemark/httpapi"
)

// covers: SE-026 SE-118 SE-119 SE-010
func TestForksAndImportsAreHistory(t *testing.T) {
	d := newDesk(t)
	for range 3 {
		d.answer("s", nil)
	}
	copied := d.want(201, "POST", sessionsPath+"/s/fork", d.token, object{"opId": "f", "id": "copy"})
	copied.is(t, "copy", "id")
	copied.is(t, "Work", "title")
	d.holds("copy", 0, 0, false, 0, false)
	d.holds("s", 3, 0, false, 0, true)
	log := d.want(200, "GET", sessionsPath+"/copy/messages", d.token, nil)
	log.is(t, "an answer", "messages", 2, "payload")
	log.is(t, nil, "messages", 2, "contentRevision")
	d.want(200, "POST", sessionsPath+"/s/fork", d.token, object{"opId": "f", "id": "copy"}).
		is(t, true, "duplicate")
	d.refused(httpapi.CodeOperationMismatch, "POST", sessionsPath+"/s/fork", d.token,
		object{"opId": "f", "id": "another"})
	d.refused(httpapi.CodeOperationMismatch, "POST", sessionsPath+"/s/fork", d.token,
		object{"opId": "g", "id": "copy"})
	d.refused(httpapi.CodeInvalidRequest, "POST", sessionsPath+"/s/fork", d.token,
		object{"opId": "h", "id": "a\u0007bell"})
	d.answer("copy", nil).is(t, 1, "contentRevision")

	d.want(201, "POST", sessionsPath, d.token, object{"id": "old"})
	history := make([]object, 50)
	for i := range history {
		history[i] = object{"payload": "an old answer"}
	}
	for _, duplicate := range []bool{false, true} {
		r := d.want(200, "POST", sessionsPath+"/old/import", d.token,
			object{"opId": "i", "messages": history})
		r.is(t, duplicate, "results", 49, "duplicate")
		r.is(t, 50, "results", 49, "seq")
	}
	d.holds("old", 0, 0, false, 0, false)
	d.want(200, "GET", sessionsPath+"/old/messages", d.token, nil).is(t, 50, "messages", 49, "seq")
	d.holds("s", 3, 0, false, 0, true) // reading and copying acknowledge nothing
}

// covers: SE-054 SE-055 SE-120 SE-121 SE-122 SE-123 SE-124
func TestMergeMovesWhatIsUnread(t *testing.T) {
	d := newDesk(t)
	d.want(201, "POST", sessionsPath, d.token, object{"id": "to"})
	for range 10 {
		d.answer("to", nil)
	}
	for range 5 {
		d.answer("s", nil)
	}
	d.read("to", 7, 0)
	d.read("s", 2, 0)
	d.markUnread("s", 0)
	events := d.events(d.token, "/api/events", "")
	for range 2 {
		events.next("session-updated")
	}
	merged := d.want(200, "POST", sessionsPath+"/s/merge", d.token, object{"opId": "m", "into": "to"})
	merged.is(t, "to", "id")
	merged.is(t, 13, "contentRevision")
	d.holds("to", 13, 7, true, 2, true)
	log := d.want(200, "GET", sessionsPath+"/to/messages", d.token, nil)
	for i, revision := range []any{10, nil, nil, 11, 12, 13} {
		log.is(t, revision, "messages", 9+i, "contentRevision")
	}
	told := map[string]object{}
	for len(told) < 2 {
		e := events.next("session-updated")
		told[e.data["id"].(string)] = e.data
	}
	told["s"].is(t, true, "removed")
	before := d.digest("A", "B")
	for _, r := range []struct {
		method, path string
		body         any
	}{
		{"GET", "", nil}, {"PATCH", "", object{"title": "x"}}, {"GET", "/messages", nil},
		{"POST", "/messages", object{"opId": "x", "payload": "x"}},
		{"POST", "/import", object{"opId": "x", "messages": []object{{"payload": "x"}}}},
		{"POST", "/rewind", object{"opId": "x", "throughSeq": 0}},
		{"POST", "/fork", object{"opId": "x"}}, {"POST", "/merge", object{"opId": "x", "into": "to"}},
		{"PUT", "/read-state", object{"type": "read", "readRevision": 5, "expectedVersion": 1}},
		{"PUT", "/read-state", object{"type": "unread", "expectedVersion": 2}},
	} {
		got := d.want(409, r.method, sessionsPath+"/s"+r.path, d.token, r.body)
		got.is(t, "scope_replaced", "code")
		got.is(t, "to", "replacedBy")
	}
	d.refused(httpapi.CodeScopeReplaced, "POST", sessionsPath, d.token, object{"id": "s"})
	d.refused(httpapi.CodeInvalidRequest, "POST", sessionsPath+"/to/merge", d.token,
		object{"opId": "y", "into": "to"})
	d.refused(httpapi.CodeNotFound, "POST", sessionsPath+"/to/merge", d.token,
		object{"opId": "y", "into": "nowhere"})
	if after := d.digest("A", "B"); after != before {
		t.Errorf("refused requests changed\n%s\ninto\n%s", before, after)
	}
	d.want(200, "POST", sessionsPath+"/s/merge", d.token, object{"opId": "m", "into": "to"}).
		is(t, true, "duplicate")
	if list := d.want(200, "GET", sessionsPath, d.token, nil); len(list["sessions"].([]any)) != 1 {
		t.Errorf("sessions are %v", list)
	}
	// One that was merged on leads to the last.
	d.want(201, "POST", sessionsPath, d.token, object{"id": "last"})
	d.want(200, "POST", sessionsPath+"/to/merge", d.token, object{"opId": "n", "into": "last"})
	d.want(409, "GET", sessionsPath+"/s", d.token, nil).is(t, "last", "replacedBy")
	d.holds("last", 6, 0, true, 3, true)
}

// covers: SE-127 SE-128 SE-129 SE-130
func TestRewindOfASession(t *testing.T) {
	d := newDesk(t)
	for range 4 {
		d.answer("s", nil)
	}
	rewind := func(op string, through int) {
		t.Helper()
		d.want(200, "POST", sessionsPath+"/s/rewind", d.token,
			object{"opId": op, "throughSeq": through})
	}
	d.read("s", 2, 0)
	rewind("a", 3)
	d.holds("s", 4, 2, false, 0, true) // one of the two unread ones is left
	rewind("b", 2)
	d.holds("s", 4, 4, false, 0, false)
	d.answer("s", nil).is(t, 5, "contentRevision")
	d.markUnread("s", 0)
	rewind("c", 0)
	d.holds("s", 5, 5, true, 1, true)
}

// A session that its owner's erasure took is nobody's any more, under no name of theirs.
func TestErasedOwnersHaveNoSessions(t *testing.T) {
	d := newDesk(t)
	d.answer("s", nil)
	d.want(200, "DELETE", "W/members/A", d.service(), nil)
	d.refused(httpapi.CodeNotFound, "GET", sessionsPath+"/s", d.token, nil)
	d.want(200, "PUT", "W/members/A", d.service(), object{"kind": "human"})
	d.refused(httpapi.CodeNotFound, "GET", sessionsPath+"/s", d.token, nil)
	if list := d.want(200, "GET", sessionsPath, d.token, nil); len(list["sessions"].([]any)) != 0 {
		t.Errorf("sessions are %v", list)
	}
	d.want(201, "POST", sessionsPath, d.token, object{"id": "s"})
	d.holds("s", 0, 0, false, 0, false)
}

func TestSessionsAreMadeOnce(t *testing.T) {
	d := newDesk(t)
	d.want(200, "POST", sessionsPath, d.token, object{"id": "s"}).is(t, "unchanged", "status")
	d.want(200, "POST", sessionsPath, d.token, object{"id": "s", "title": "Work"})
	d.refused(httpapi.CodeOperationMismatch, "POST", sessionsPath, d.token,
		object{"id": "s", "title": "Play"})
	made := d.want(201, "POST", sessionsPath, d.token, object{})
	if id, _ := made["id"].(string); id == "" {
		t.Errorf("made %v", made)
	}
	d.refused(httpapi.CodeNotFound, "PATCH", sessionsPath+"/unknown", d.token, object{"active": true})
	d.refused(httpapi.CodeNotFound, "POST", sessionsPath, d.harness.token("W", "Z", httpapi.RoleMember),
		object{"id": "s"})
	d.want(201, "POST", sessionsPath+"?member=Z&create=members", d.service(), object{"id": "s"})
	for i := range 7 {
		d.want(201, "POST", sessionsPath, d.token, object{"id": string(rune('a' + i))})
	}
	seen, next := 0, ""
	for {
		page := d.want(200, "GET", sessionsPath+"?limit=2&pageToken="+next, d.token, nil)
		seen += len(page["sessions"].([]any))
		if next, _ = page["next"].(string); next == "" {
			break
		}
	}
	if seen != 9 {
		t.Errorf("pages have %d sessions", seen)
	}
}
