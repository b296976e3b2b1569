package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// agentHost takes wakes of two agents, refuses some of them, and kills the server now and then
// while it is waiting for an answer.
type agentHost struct {
	t      *testing.T
	mu     sync.Mutex
	rng    *rand.Rand
	first  map[string][]uint64 // by agent, the events as they were first accepted
	seen   map[string]bool     // ids that were accepted
	again  int
	blow   int           // requests until the server is killed; zero for never
	struck chan struct{} // closed then
	server atomic.Pointer[program]
	counts func(url string) (uint64, bool) // what the human has now
}

func (a *agentHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m struct {
		Agent, Event string
		Seq          uint64
	}
	if err != nil || json.Unmarshal(body, &m) != nil {
		return // broken off with its server
	}
	var space int
	var event uint64
	if _, err := fmt.Sscanf(m.Event, "evt_%d_%d", &space, &event); err != nil {
		a.t.Errorf("woken with %s", body)
	}
	if n, ok := a.counts(a.server.Load().url); ok && n < m.Seq {
		a.t.Errorf("woken for message %d while %d are counted", m.Seq, n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.blow > 0 {
		a.blow--
		struck := a.server.Load() // the next one is not to be killed in its place, however late this is
		if a.blow == 0 {
			close(a.struck)
		}
		if a.blow == 0 && a.rng.IntN(2) == 0 {
			_ = struck.cmd.Process.Kill() // before it is taken
			// No answer, either: it may come from the next server, which wakes before it is known here.
			panic(http.ErrAbortHandler)
		} else if a.blow == 0 {
			defer func() { _ = struck.cmd.Process.Kill() }() // taken, and nobody knows
		}
	}
	if a.rng.IntN(4) == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if id := r.Header.Get("webhook-id"); a.seen[id] {
		a.again++
	} else {
		a.seen[id] = true
		a.first[m.Agent] = append(a.first[m.Agent], event)
	}
}

// A server that is killed again and again while it wakes agents loses no wake, sends none before
// its message is counted, keeps each agent's order, and counts every message once.
//
// covers: RT-211 RT-214 RT-216 RT-218
func TestWakesOfKilledServers(t *testing.T) {
	lives, posts := 6, 12
	if os.Getenv("TIDEMARK_SOAK") != "" {
		lives, posts = 100, 40
	}
	db, _ := database(t)
	s := newTaskServer(t)
	human := sign(t, s.secret, "--ws", "w", "--sub", "ben")
	a := &agentHost{
		t: t, rng: rand.New(rand.NewPCG(1, 2)), first: map[string][]uint64{}, seen: map[string]bool{},
	}
	a.counts = func(url string) (uint64, bool) { return unreadIn(t, url, human) }
	host := httptest.NewServer(a)
	defer host.Close()
	env := []string{
		"TIDEMARK_WAKE_ALLOW=private", "TIDEMARK_WAKE_ALLOW_HTTP=true",
		"TIDEMARK_OUTBOX_RETRY_FIRST=10ms", "TIDEMARK_OUTBOX_RETRY_MOST=1s",
	}
	begin := func() {
		p := startProgram(t, env, db, "--jwt-secret-file", s.secret)
		a.server.Store(p)
		s.served = &served{url: p.url}
	}
	begin()
	s.found()
	s.do("service", "PUT", "/members/olga", `{"kind":"agent"}`)
	s.do("service", "PUT", "/scopes/t/members/olga", `{}`)
	s.do("service", "PUT", "/scopes/t/follow?member=olga", `{"following":true}`)
	for _, agent := range []string{"otto", "olga"} {
		s.do("service", "PUT", "/members/"+agent+"/wake",
			`{"url":"`+host.URL+`/`+agent+`","secret":"`+strings.Repeat("YWJj", 8)+`"}`)
	}
	token, op, kills := s.as("service"), 0, 0
	for life := range lives {
		struck := make(chan struct{})
		a.mu.Lock()
		a.blow, a.struck = 1+a.rng.IntN(2*posts), struck
		a.mu.Unlock()
		for op < (life+1)*posts {
			body := fmt.Sprintf(`{"opId":"op%d","author":"ada"}`, op)
			if tell(t, s.url+"/api/v1/workspaces/w/scopes/t/messages", token, body) {
				op++
				continue
			}
			kills++ // or it is about to come
			_ = a.server.Load().cmd.Process.Kill()
			_ = a.server.Load().cmd.Wait()
			begin()
		}
		select { // there are as many wakes to come as it takes
		case <-struck:
		case <-time.After(time.Minute):
			t.Fatal("the wakes do not come")
		}
	}
	_ = a.server.Load().cmd.Process.Kill() // as the last blow did, or is about to
	_ = a.server.Load().cmd.Wait()
	begin()
	if n, ok := unreadIn(t, s.url, human); !ok || n != uint64(op) {
		t.Errorf("%d of %d messages are counted", n, op)
	}
	if kills < lives/2 {
		t.Errorf("%d kills in %d lives", kills, lives)
	}
	a.complete(op)
	if n, ok := unreadIn(t, s.url, human); !ok || n != uint64(op) {
		t.Errorf("%d of %d messages are counted at the end", n, op)
	}
}

// complete waits for what is left and judges what came.
func (a *agentHost) complete(posts int) {
	a.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for patience := time.Now().Add(2 * time.Minute); ; <-ticker.C {
		a.mu.Lock()
		done := len(a.seen) >= 2*posts
		a.mu.Unlock()
		if done {
			break
		}
		if time.Now().After(patience) {
			_, there := a.counts(a.server.Load().url)
			a.t.Fatalf("%d of %d wakes came; the server answers: %t", len(a.seen), 2*posts, there)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for agent, events := range a.first {
		if len(events) != posts {
			a.t.Errorf("%s was woken for %d of %d messages", agent, len(events), posts)
		}
		for i := 1; i < len(events); i++ {
			if events[i] <= events[i-1] {
				a.t.Errorf("%s was woken for %d after %d", agent, events[i], events[i-1])
			}
		}
	}
	a.t.Logf("%d wakes, %d of them again", len(a.seen), a.again)
}

// tell posts a message and reports whether it is known to be stored.
func tell(t *testing.T, url, token, body string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return false
	}
	return res.StatusCode < 300
}

// unreadIn is what a member has not read of the task; false while nobody answers.
func unreadIn(t *testing.T, url, token string) (uint64, bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET",
		url+"/api/v1/workspaces/w/scopes/t/read-state", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false
	}
	defer res.Body.Close()
	var state struct{ Counts struct{ Unread *uint64 } }
	if json.NewDecoder(res.Body).Decode(&state) != nil || state.Counts.Unread == nil {
		return 0, false
	}
	return *state.Counts.Unread, true
}
