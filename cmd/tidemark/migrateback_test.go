package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// taskServer is a server with a task that a human and an agent watch, and tokens for it.
type taskServer struct {
	*served
	t      *testing.T
	secret string
	tokens map[string]string // by role
	ops    int
}

func newTaskServer(t *testing.T) *taskServer {
	return &taskServer{t: t, secret: secretFile(t, testSecret), tokens: map[string]string{}}
}

func (s *taskServer) as(role string) string {
	if s.tokens[role] == "" {
		s.tokens[role] = sign(s.t, s.secret, "--ws", "w", "--sub", "backend", "--role", role)
	}
	return s.tokens[role]
}

// do asks and expects one of the codes that mean success.
func (s *taskServer) do(role, method, path, body string) string {
	s.t.Helper()
	code, answer := ask(s.t, method, s.url+"/api/v1/workspaces/w"+path, s.as(role), body)
	if code >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

func (s *taskServer) post() {
	s.t.Helper()
	s.ops++
	s.do("service", "POST", "/scopes/t/messages", fmt.Sprintf(`{"opId":"op%d","author":"ada"}`, s.ops))
}

// wakes waits for wakes of the agent above a position and returns how far they reach, and how many
// there were.
func (s *taskServer) wakes(after int) (last, n int) {
	s.t.Helper()
	var page struct{ Wakes []struct{ Position int } }
	answer := s.do("service", "GET",
		fmt.Sprintf("/members/otto/wakes?wait=5s&after=%d", after), "")
	if err := json.Unmarshal([]byte(answer), &page); err != nil {
		s.t.Fatal(err)
	}
	for _, w := range page.Wakes {
		last = max(last, w.Position)
	}
	return last, len(page.Wakes)
}

func (s *taskServer) found() {
	s.t.Helper()
	s.do("admin", "PUT", "", `{"name":"W"}`)
	for m, kind := range map[string]string{"ada": "human", "ben": "human", "otto": "agent"} {
		s.do("service", "PUT", "/members/"+m, `{"kind":"`+kind+`"}`)
	}
	s.do("service", "PUT", "/scopes/t", `{"type":"task"}`)
	for _, m := range []string{"ada", "ben", "otto"} {
		s.do("service", "PUT", "/scopes/t/members/"+m, `{}`)
		s.do("service", "PUT", "/scopes/t/follow?member="+m, `{"following":true}`)
	}
}

// The way back is named line by line by --check, refused while a server writes or something waits
// to be delivered, and open once everything has come to its end.
//
// covers: RT-307
func TestMigrateBack(t *testing.T) {
	db, _ := database(t)
	s := newTaskServer(t)
	s.served = serve(t, db, "--jwt-secret-file", s.secret)
	s.found()
	s.post()
	s.post()
	if _, n := s.wakes(0); n == 0 {
		t.Fatal("the agent was not woken")
	}
	run(t, "migrate", db, "--back-to", "3").fails(t, exitFailed, "cannot go back")
	s.end(t)

	o := run(t, "migrate", db, "--check").done(t)
	for _, want := range []string{
		"nothing to do", "below schema 4 not: 2 wakes wait to be sent or read",
		"below schema 3 not: 1 scopes are tasks",
	} {
		if !strings.Contains(o.out, want) {
			t.Errorf("no %q in\n%s", want, o.out)
		}
	}
	for _, args := range [][]string{{"--check", "--back-to", "3"}, {"--back-to", "3"}, {"--back-to=2"}} {
		o := run(t, append([]string{"migrate", db}, args...)...)
		o.fails(t, exitFailed, "something stops the way back")
		if !strings.Contains(o.out, "2 wakes wait") {
			t.Errorf("%v: %q", args, o.out)
		}
	}
	run(t, "migrate", db, "--back-to", "1").fails(t, exitUsage, "at least 2")
	run(t, "migrate", db, "--back-to", "9").fails(t, exitFailed, "not above 9")

	s.served = serve(t, db, "--jwt-secret-file", s.secret)
	last, _ := s.wakes(0)
	s.do("service", "GET", fmt.Sprintf("/members/otto/wakes?after=%d", last), "")
	// Nothing waits any more, but the server is there: it could write.
	if o := run(t, "migrate", db, "--check", "--back-to", "3").done(t); !strings.Contains(o.out, "nothing stops") {
		t.Errorf("%q", o.out)
	}
	run(t, "migrate", db, "--back-to", "3").fails(t, exitFailed, "is owned by")
	s.end(t)

	if o := run(t, "migrate", db, "--back-to", "3").done(t); !strings.Contains(o.out, " to 3\n") {
		t.Errorf("%q", o.out)
	}
	run(t, "migrate", db, "--back-to", "2").fails(t, exitFailed, "something stops the way back")
	run(t, "migrate", db, "--check").fails(t, exitFailed, "run tidemark migrate")

	// Forth again: everything is counted as before, and nothing is delivered a second time.
	s.served = serve(t, db, "--jwt-secret-file", s.secret)
	if row := s.do("service", "GET", "/scopes/t/read-state?member=ben", ""); !strings.Contains(row, `"unread":2`) {
		t.Errorf("ben: %s", row)
	}
	s.post()
	if _, n := s.wakes(0); n != 1 {
		t.Errorf("%d wakes after one message", n)
	}
	s.end(t)
}
