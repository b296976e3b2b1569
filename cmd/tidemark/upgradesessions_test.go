package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// sessionRow is what a list says of a session, as far as an upgrade might touch it.
type sessionRow struct {
	ContentRevision   int  `json:"contentRevision"`
	PendingInput      bool `json:"pendingInput"`
	PendingPermission bool `json:"pendingPermission"`
	Unread            bool `json:"unread"`
	ReadState         struct {
		ReadRevision int  `json:"readRevision"`
		ManualUnread bool `json:"manualUnread"`
		Version      int  `json:"version"`
	} `json:"readState"`
}

// A database of before sessions gets them by the next start, beginning at zero. History that comes in
// by an import is read already, and only then; attention that waits stays over upgrades and starts.
//
// covers: SE-111, SE-112, SE-113, SE-115, SE-116
func TestUpgradeToSessions(t *testing.T) {
	db, _ := database(t)
	s := newTaskServer(t)
	s.served = serve(t, db, "--jwt-secret-file", s.secret)
	s.do("admin", "PUT", "", `{"name":"W"}`)
	s.do("service", "PUT", "/members/ada", `{"kind":"human"}`)
	s.end(t)
	run(t, "migrate", db, "--back-to", "4").done(t)
	run(t, "migrate", db, "--check").fails(t, exitFailed, "run tidemark migrate")

	ada := sign(t, s.secret, "--ws", "w", "--sub", "ada", "--role", "member")
	do := func(method, path, body string) string {
		t.Helper()
		code, answer := ask(t, method, s.url+"/api/sessions"+path, ada, body)
		if code >= 300 {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
		return answer
	}
	row := func() (r sessionRow) {
		t.Helper()
		if err := json.Unmarshal([]byte(do("GET", "/old", "")), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	var want sessionRow
	start := func(when string) {
		t.Helper()
		s.served = serve(t, db, "--jwt-secret-file", s.secret)
		if got := row(); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}

	s.served = serve(t, db, "--jwt-secret-file", s.secret)
	do("POST", "", `{"id":"old"}`)
	if got := row(); got != want {
		t.Errorf("made: %+v", got)
	}
	history := strings.Repeat(`{"payload":"an old answer"},`, 20)
	do("POST", "/old/import", `{"opId":"i","messages":[`+strings.TrimSuffix(history, ",")+`]}`)
	do("PATCH", "/old", `{"pendingInput":true,"pendingPermission":true}`)
	want.PendingInput, want.PendingPermission = true, true
	if got := row(); got != want {
		t.Errorf("with its history: %+v", got)
	}
	s.end(t)
	start("started again")

	do("POST", "/old/messages", `{"opId":"new","payload":"a new answer"}`)
	want.ContentRevision, want.Unread = 1, true
	if got := row(); got != want {
		t.Errorf("with a new answer: %+v", got)
	}
	s.end(t)
	run(t, "migrate", db, "--back-to", "5").done(t)
	start("upgraded with what waits")
	s.end(t)
}
