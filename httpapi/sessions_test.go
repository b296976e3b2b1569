package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
)

// desk is a workspace in which A has a session, with short words for what tests do to it.
type desk struct {
	*harness
	token string
	turns int
}

func newDesk(t *testing.T) *desk {
	h := newHarness(t)
	h.world("A", "B")
	d := &desk{harness: h, token: h.member("A")}
	d.want(201, "POST", sessionsPath, d.token, object{"id": "s", "title": "Work"})
	return d
}

// answer appends an entry to a session.
func (d *desk) answer(session string, more object) object {
	d.t.Helper()
	d.turns++
	body := object{"localId": fmt.Sprint("turn-", d.turns), "payload": "an answer"}
	for k, v := range more {
		if body[k] = v; v == nil {
			delete(body, k)
		}
	}
	return d.want(201, "POST", sessionsPath+"/"+session+"/messages", d.token, body)
}

func (d *desk) session(id string) object {
	d.t.Helper()
	return d.want(200, "GET", sessionsPath+"/"+id, d.token, nil)
}

// read sends a read of a session.
func (d *desk) read(id string, revision, version int) object {
	d.t.Helper()
	return d.want(200, "PUT", sessionsPath+"/"+id+"/read-state", d.token,
		object{"type": "read", "readRevision": revision, "expectedVersion": version})
}

func (d *desk) markUnread(id string, version int) object {
	d.t.Helper()
	return d.want(200, "PUT", sessionsPath+"/"+id+"/read-state", d.token,
		object{"type": "unread", "expectedVersion": version})
}

// holds compares a session's revisions, its manual mark and version, and whether it is unread.
func (d *desk) holds(id string, content, read int, manual bool, version int, unread bool) {
	d.t.Helper()
	s := d.session(id)
	s.is(d.t, content, "contentRevision")
	s.is(d.t, read, "readState", "readRevision")
	s.is(d.t, manual, "readState", "manualUnread")
	s.is(d.t, version, "readState", "version")
	s.is(d.t, unread, "unread")
}

// covers: SE-001 SE-002 SE-003 SE-005 SE-007 SE-011 SE-012
func TestSessionsCarryTheirReadState(t *testing.T) {
	d := newDesk(t)
	d.holds("s", 0, 0, false, 0, false)
	d.answer("s", nil)
	d.answer("s", object{"kind": "prompt", "payload": "and now?"})
	d.answer("s", object{"kind": "tool"})
	d.holds("s", 1, 0, false, 0, true)
	list := d.want(200, "GET", sessionsPath, d.token, nil)
	list.is(t, 1, "sessions", 0, "contentRevision")
	list.is(t, 0, "sessions", 0, "readState", "readRevision")
	list.is(t, true, "sessions", 0, "unread")
	log := d.want(200, "GET", sessionsPath+"/s/messages", d.token, nil)
	log.is(t, 1, "messages", 0, "contentRevision")
	for _, unreadable := range []int{1, 2} {
		log.is(t, nil, "messages", unreadable, "contentRevision")
	}
	d.read("s", 1, 0)
	d.answer("s", object{"kind": "tool"}) // a later seq, and a later updatedAt
	d.holds("s", 1, 1, false, 0, false)
}

// Everybody sees their own sessions, under ids of their own.
//
// covers: SE-008 SE-009 SE-056 SE-057 SE-061
func TestSessionsAreWalls(t *testing.T) {
	d := newDesk(t)
	d.answer("s", nil)
	other := d.member("B")
	d.want(201, "POST", sessionsPath, other, object{"id": "s", "title": "Of B"})
	d.want(201, "POST", sessionsPath+"/s/messages", other,
		object{"opId": "1", "payload": "hidden"})
	d.want(200, "PUT", "V", d.admin(), object{"name": "Other"})
	d.want(200, "PUT", "V/members/A", d.token0("V", httpapi.RoleAdmin), object{"kind": "human"})
	elsewhere := d.harness.token("V", "A", httpapi.RoleMember)
	theirs := d.events(other, "/api/events", "")
	theirs.next("session-updated")
	before := d.digest("A", "B")
	for _, c := range []struct {
		token string
		code  httpapi.Code
		query string
	}{
		{elsewhere, httpapi.CodeNotFound, ""},
		{other, httpapi.CodeForbidden, "?member=A"},
		{d.harness.token("V", "A", httpapi.RoleAdmin), httpapi.CodeNotFound, "?member=A"},
		{d.admin(), httpapi.CodeForbidden, "?member=A"},
	} {
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{"GET", "", nil},
			{"PATCH", "", object{"title": "Mine now"}},
			{"GET", "/messages", nil},
			{"POST", "/messages", object{"opId": "x", "payload": "x"}},
			{"POST", "/import", object{"opId": "x", "messages": []object{{"payload": "x"}}}},
			{"POST", "/rewind", object{"opId": "x", "throughSeq": 0}},
			{"POST", "/fork", object{"opId": "x"}},
			{"POST", "/merge", object{"opId": "x", "into": "s"}},
			{"GET", "/read-state", nil},
			{"PUT", "/read-state", object{"type": "read", "readRevision": 1, "expectedVersion": 0}},
			{"PUT", "/read-state", object{"type": "unread", "expectedVersion": 0}},
		} {
			d.refused(c.code, r.method, sessionsPath+"/s"+r.path+c.query, c.token, r.body)
		}
	}
	for _, query := range []string{"", "/api/events"} {
		if query == "" {
			query = sessionsPath
		}
		d.refused(httpapi.CodeForbidden, "GET", query+"?member=A", other, nil)
	}
	if list := d.want(200, "GET", sessionsPath, elsewhere, nil); len(list["sessions"].([]any)) != 0 {
		t.Errorf("another workspace lists %v", list)
	}
	if after := d.digest("A", "B"); after != before {
		t.Errorf("refused requests changed\n%s\ninto\n%s", before, after)
	}
	// What A does is no news of B; a change of B's own comes first.
	d.answer("s", nil)
	d.read("s", 1, 0)
	d.want(200, "PATCH", sessionsPath+"/s", other, object{"title": "Still of B"})
	if e := theirs.next("session-updated"); e.data["title"] != "Still of B" {
		t.Errorf("B is told %v", e.data)
	}
	// The scope of a session has no name among the scopes.
	for _, name := range []string{"s", "session:s", "%1FA%1Fs"} {
		r := d.call("GET", "W/scopes/"+name+"/read-state", d.token, nil)
		if r.status != 404 && r.status != 400 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	d.refused(httpapi.CodeInvalidRequest, "PUT", "W/scopes/session:s", d.service(),
		object{"type": "channel"})
	scopes := d.want(200, "GET", "W/scopes", d.service(), nil)
	if text := fmt.Sprint(scopes); strings.Contains(text, "session") {
		t.Errorf("scopes are %v", scopes)
	}
}

// token0 is a token of A.
func (d *desk) token0(ws string, role httpapi.Role) string { return d.harness.token(ws, "A", role) }

// covers: SE-017 SE-018 SE-019 SE-020 SE-021 SE-022 SE-023 SE-024 SE-025 SE-030 SE-031
func TestWhatIsReadableInASession(t *testing.T) {
	d := newDesk(t)
	content := 0
	for _, c := range []struct {
		body     object
		readable bool
	}{
		{object{"payload": "text"}, true},
		{object{"kind": "text", "payload": object{"text": "text"}}, true},
		{object{"kind": "media", "payload": nil}, true},
		{object{"kind": "error", "payload": object{"code": 7}}, true},
		{object{"kind": "prompt"}, false},
		{object{"kind": "reasoning"}, false},
		{object{"kind": "tool"}, false},
		{object{"kind": "usage"}, false},
		{object{"kind": "metadata"}, false},
		{object{"kind": "system"}, false},
		{object{"readable": false}, false},
		{object{"kind": "tool", "readable": true}, false},
		{object{"payload": ""}, false},
		{object{"payload": " \n\t"}, false},
		{object{"payload": object{"text": "  "}}, false},
		{object{"payload": nil}, false},
		{object{"payload": object{"parts": []object{
			{"kind": "reasoning", "text": "hm"}, {"kind": "tool"}, {"kind": "text", "text": "so"},
		}}}, true},
		{object{"payload": object{"parts": []object{
			{"kind": "reasoning", "text": "hm"}, {"kind": "tool"}, {"text": " "},
		}}}, false},
		{object{"payload": object{"parts": []any{}}}, false},
		{object{"payload": object{"parts": []any{"so", "and so"}}}, true},
		{object{"payload": object{"parts": []object{{"kind": "media"}}}}, true},
		{object{"payload": 7}, true},
	} {
		got := d.answer("s", c.body)
		if !c.readable {
			got.is(t, nil, "contentRevision")
			continue
		}
		content++
		got.is(t, content, "contentRevision")
	}
	d.holds("s", content, 0, false, 0, true)
	d.want(200, "PATCH", sessionsPath+"/s", d.token, object{"active": true})
	d.holds("s", content, 0, false, 0, true)
}

// covers: SE-013 SE-032 SE-033 SE-034 SE-035 SE-036 SE-037
func TestUnreadTruthTable(t *testing.T) {
	d := newDesk(t)
	version := 0
	for bits := range 1 << 6 {
		active, thinking, newer := bits&1 > 0, bits&2 > 0, bits&4 > 0
		manual, input, permission := bits&8 > 0, bits&16 > 0, bits&32 > 0
		id := fmt.Sprint("t", bits)
		d.want(201, "POST", sessionsPath, d.token, object{"id": id})
		if newer {
			d.answer(id, nil)
		}
		if manual {
			d.markUnread(id, version)
		}
		d.want(200, "PATCH", sessionsPath+"/"+id, d.token, object{
			"active": active, "thinking": thinking, "pendingInput": input,
			"pendingPermission": permission,
		})
		want := manual || newer && (!active || !thinking)
		s := d.session(id)
		s.is(t, want, "unread")
		s.is(t, input, "pendingInput")
		s.is(t, permission, "pendingPermission")
		row := d.want(200, "GET", "W/unread?limit=500", d.token, nil)
		row.is(t, want, "scopes", "session:"+id, "shown")
		// When the run ends, what came meanwhile is there.
		ended := d.want(200, "PATCH", sessionsPath+"/"+id, d.token, object{"thinking": false})
		ended.is(t, manual || newer, "unread")
	}
}

// covers: SE-016 SE-027 SE-028 SE-029
func TestLocalIDsAreAnsweredOnce(t *testing.T) {
	d := newDesk(t)
	first := d.want(201, "POST", sessionsPath+"/s/messages", d.token,
		object{"localId": "x", "payload": "one"})
	first.is(t, 1, "contentRevision")
	d.answer("s", nil)
	for _, payload := range []string{"one", "another"} {
		again := d.want(200, "POST", sessionsPath+"/s/messages", d.token,
			object{"localId": "x", "payload": payload})
		again.is(t, true, "duplicate")
		again.is(t, 1, "contentRevision")
		again.is(t, first["messageId"], "messageId")
	}
	late := d.answer("s", object{"localId": "a-late-answer"})
	late.is(t, 3, "contentRevision")
	log := d.want(200, "GET", sessionsPath+"/s/messages", d.token, nil)
	log.is(t, "one", "messages", 0, "payload")
	log.is(t, nil, "messages", 3)
	d.refused(httpapi.CodeInvalidRequest, "POST", sessionsPath+"/s/messages", d.token,
		object{"payload": "unnamed"})
	d.refused(httpapi.CodeInvalidRequest, "POST", sessionsPath+"/s/messages", d.token,
		object{"localId": "y", "payload": strings.Repeat("x", 64<<10)})
	d.holds("s", 3, 0, false, 0, true)
}

// covers: SE-044 SE-045 SE-046 SE-047 SE-048 SE-049 SE-050 SE-051 SE-015
func TestSessionReadStateContract(t *testing.T) {
	d := newDesk(t)
	for range 12 {
		d.answer("s", nil)
	}
	path := sessionsPath + "/s/read-state"
	done := d.read("s", 12, 0)
	done.is(t, "applied", "status")
	done.is(t, 12, "contentRevision")
	done.is(t, 12, "readState", "readRevision")
	d.read("s", 12, 0).is(t, "unchanged", "status")
	d.markUnread("s", 0).is(t, "applied", "status")
	before := d.digest("A")
	for _, body := range []string{
		`{"type":"seen","readRevision":1,"expectedVersion":1}`, `{"readRevision":1,"expectedVersion":1}`,
		`{"type":"read","expectedVersion":1}`, `{"type":"read","readRevision":1}`, `{"type":"unread"}`,
		`{"type":"unread","expectedVersion":1,"readRevision":1}`,
		`{"type":"read","readRevision":"1","expectedVersion":1}`,
		`{"type":"read","readRevision":1.5,"expectedVersion":1}`,
		`{"type":"read","readRevision":null,"expectedVersion":1}`,
		`{"type":"read","readRevision":1,"expectedVersion":0.5}`,
		`{"type":"unread","expectedVersion":"0"}`,
	} {
		d.refused(httpapi.CodeInvalidRequest, "PUT", path, d.token, body)
	}
	for _, body := range []string{
		`{"type":"read","readRevision":-1,"expectedVersion":1}`,
		`{"type":"read","readRevision":13,"expectedVersion":1}`,
		`{"type":"read","readRevision":9007199254740992,"expectedVersion":1}`,
		`{"type":"read","readRevision":1,"expectedVersion":-1}`,
		`{"type":"unread","expectedVersion":9007199254740992}`,
	} {
		d.refused(httpapi.CodeRevisionInFuture, "PUT", path, d.token, body)
	}
	if after := d.digest("A"); after != before {
		t.Errorf("refused requests changed\n%s\ninto\n%s", before, after)
	}
}

// covers: SE-052 SE-053 SE-063 SE-064 SE-065 SE-066 SE-067 SE-068 SE-069 SE-070 SE-071 SE-072
func TestSessionReadsAndMarksKeepTheirOrder(t *testing.T) {
	d := newDesk(t)
	for range 12 {
		d.answer("s", nil)
	}
	d.read("s", 9, 0)
	d.read("s", 12, 0)
	d.read("s", 9, 0).is(t, "unchanged", "status")
	d.holds("s", 12, 12, false, 0, false)
	d.answer("s", nil)
	d.read("s", 12, 0)
	d.holds("s", 13, 12, false, 0, true) // 13 was not seen
	d.markUnread("s", 0)
	d.holds("s", 13, 12, true, 1, true)
	lost := d.want(409, "PUT", sessionsPath+"/s/read-state", d.token,
		object{"type": "unread", "expectedVersion": 0})
	lost.is(t, "conflict", "status")
	lost.is(t, "version_conflict", "code")
	lost.is(t, 13, "contentRevision")
	lost.is(t, 1, "readState", "version")
	late := d.read("s", 13, 0) // an older read: it moves the cursor, and not the mark
	late.is(t, "applied", "status")
	late.is(t, true, "readState", "manualUnread")
	d.holds("s", 13, 13, true, 1, true)
	d.read("s", 13, 1)
	d.holds("s", 13, 13, false, 2, false)
}

// covers: SE-004 SE-006 SE-014 SE-058 SE-059 SE-060 SE-062
func TestSessionStream(t *testing.T) {
	clock := newHandClock()
	h := newHarness(t, func(o *tidemark.Options, _ *httpapi.Config) { o.Now = clock.Now })
	h.world("A", "B")
	d := &desk{harness: h, token: h.member("A")}
	d.want(201, "POST", sessionsPath, d.token, object{"id": "s", "title": "Work"})
	phone, laptop := d.events(d.token, "/api/events", ""), d.events(d.token, "/api/events", "")
	updated := func(content, read int, unread bool) {
		t.Helper()
		for _, device := range []*stream{phone, laptop} {
			e := device.next("session-updated")
			e.data.is(t, "s", "id")
			e.data.is(t, "Work", "title")
			e.data.is(t, content, "contentRevision")
			e.data.is(t, read, "readState", "readRevision")
			e.data.is(t, unread, "unread")
		}
	}
	updated(0, 0, false)
	d.answer("s", object{"payload": "hello"})
	for _, device := range []*stream{phone, laptop} {
		seen := map[string]event{}
		for len(seen) < 2 {
			e := <-device.events
			seen[e.name] = e
		}
		seen["message"].data.is(t, "s", "session")
		seen["message"].data.is(t, "added", "op")
		seen["message"].data.is(t, 1, "message", "contentRevision")
		seen["session-updated"].data.is(t, 1, "contentRevision")
	}
	at := d.session("s")["updatedAt"]
	clock.advance(time.Minute)
	d.read("s", 1, 0)
	updated(1, 1, false)
	d.read("s", 1, 0) // changes nothing
	d.session("s").is(t, at, "updatedAt")
	d.want(200, "PATCH", sessionsPath+"/s", d.token, object{"pendingInput": true})
	for _, device := range []*stream{phone, laptop} {
		device.next("session-updated").data.is(t, true, "pendingInput")
	}
	d.post("c", "B", object{"mentions": []string{"A"}}) // no news of a session
	d.want(201, "POST", sessionsPath, d.token, object{"id": "later", "title": "Later"})
	last := phone.next("session-updated")
	last.data.is(t, "later", "id")
	resumed := d.events(d.token, "/api/events", last.id)
	resumed.next("hello").data.is(t, true, "resumed")
	d.want(200, "PATCH", sessionsPath+"/later", d.token, object{"title": "Now"})
	resumed.next("session-updated").data.is(t, "Now", "title")
}

// covers: SE-084 SE-085 SE-086 SE-087 SE-088
func TestSessionPageReceipts(t *testing.T) {
	d := newDesk(t)
	for range 4 {
		d.answer("s", nil)
	}
	d.answer("s", object{"kind": "tool"})
	page := func(query string) object {
		t.Helper()
		return d.want(200, "GET", sessionsPath+"/s/messages"+query, d.token, nil)
	}
	page("").is(t, 4, "page", "readThroughRevision")
	page("?limit=2").is(t, 4, "page", "readThroughRevision")
	page("?before=4").is(t, nil, "page", "readThroughRevision")
	page("?before=6").is(t, nil, "page", "readThroughRevision")
	page("?after=2").is(t, 4, "page", "readThroughRevision")
	page("?after=2&limit=2").is(t, nil, "page", "readThroughRevision") // cut by its limit
	d.answer("s", nil)
	page("?after=2&limit=3").is(t, nil, "page", "readThroughRevision") // the head has moved on
	page("?after=5&limit=3").is(t, 5, "page", "readThroughRevision")
}
