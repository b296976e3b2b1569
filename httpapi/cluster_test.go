package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/apicheck"
	"github.com/tidemark-im/tidemark/ownership"
)

// pair is a node and a central server over one store, whose ownership the test moves by hand.
type pair struct {
	*harness // of the node
	central  *httptest.Server
	registry facts.Registry
	seat     facts.Seat
	serving  atomic.Bool
	queries  atomic.Int64 // statements about members and messages since the last look
}

const leaseOfTests = time.Hour

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{harness: &harness{t: t}}
	store, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "facts.db"), sqlstore.Options{
		Unsafe: true, OnStatement: func(_ context.Context, query string) {
			if strings.Contains(query, "member_states") || strings.Contains(query, "scope_messages") ||
				strings.Contains(query, "members m") {
				p.queries.Add(1)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.registry = store.Registry()
	p.engine, err = tidemark.OpenStore(t.Context(), store, tidemark.Options{
		Shared: &tidemark.Shared{Serving: p.serving.Load}, SweepEvery: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	p.serving.Store(true)
	p.http = p.serve(httpapi.Config{Engine: p.engine, Cluster: &httpapi.Cluster{
		Registry: p.registry, Owners: ownership.NewLookup(p.registry, leaseOfTests), Node: "n1", Serving: p.serving.Load,
	}})
	p.central = p.serve(httpapi.Config{Cluster: &httpapi.Cluster{
		Registry: p.registry, Owners: ownership.NewLookup(p.registry, leaseOfTests), Central: store,
	}})
	p.seat = p.enroll("n1", p.http.URL)
	return p
}

func (p *pair) serve(cfg httpapi.Config) *httptest.Server {
	p.t.Helper()
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}})
	if err != nil {
		p.t.Fatal(err)
	}
	cfg.Auth = auth
	cfg.Limits = httpapi.Limits{MemberRate: 1e6, MemberBurst: 1e6, ServiceRate: 1e6, ServiceBurst: 1e6}
	if cfg.Cluster.Central != nil {
		transport := &http.Transport{DisableKeepAlives: true}
		p.t.Cleanup(transport.CloseIdleConnections)
		cfg.Cluster.Transport = transport
	}
	api, err := httpapi.New(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.check == nil {
		if p.check, err = apicheck.New(api.Document()); err != nil {
			p.t.Fatal(err)
		}
	}
	server := httptest.NewServer(api)
	p.t.Cleanup(func() {
		if err := api.Drain(context.Background()); err != nil {
			p.t.Error(err)
		}
		server.Close()
		auth.Close()
	})
	return server
}

func (p *pair) enroll(node, address string) facts.Seat {
	p.t.Helper()
	epoch, err := p.registry.Enroll(p.t.Context(), facts.NodeInfo{Node: node, Address: address}, leaseOfTests)
	if err != nil {
		p.t.Fatal(err)
	}
	return facts.Seat{Node: node, Epoch: epoch}
}

// claim has a node own what nobody does; what the first one gets its engine adopts.
func (p *pair) claim(seat facts.Seat) {
	p.t.Helper()
	s, err := p.registry.Survey(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	var claims []facts.Claim
	for _, w := range s.Workspaces {
		claims = append(claims, facts.Claim{Key: w.Key, Term: w.Term})
	}
	rows, err := p.registry.Claim(p.t.Context(), seat, claims)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, row := range rows {
		if seat == p.seat {
			if err := p.engine.Adopt(p.t.Context(), row); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// give has the first node lose everything to another one.
func (p *pair) give(to facts.Seat) {
	p.t.Helper()
	if err := p.engine.Release(p.t.Context(), "W"); err != nil {
		p.t.Fatal(err)
	}
	if err := p.registry.Retire(p.t.Context(), p.seat); err != nil {
		p.t.Fatal(err)
	}
	p.claim(to)
}

func (p *pair) ask(at *httptest.Server, method, path, token, body string) (int, http.Header, string) {
	p.t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/workspaces/" + path
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, at.URL+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := at.Client().Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

// settle makes a channel with a message that B has not read, by way of the central server.
func (p *pair) settle() {
	p.t.Helper()
	for i, step := range []struct{ method, path, body string }{
		{"PUT", "W", `{"name":"W"}`},
		{"PUT", "W/scopes/c", `{"type":"channel"}`},
		{"POST", "W/scopes/c/members:batch?create=members", `{"members":[{"id":"A"},{"id":"B"}]}`},
		{"POST", "W/scopes/c/messages", `{"opId":"1","author":"A","messageId":"m1"}`},
	} {
		code, _, text := p.ask(p.central, step.method, step.path, p.admin(), step.body)
		if code/100 != 2 {
			p.t.Fatalf("%s: %d %s", step.path, code, text)
		}
		if i == 0 {
			code, header, text := p.ask(p.central, "GET", "W/unread?member=B", p.admin(), "")
			if code != 503 || header.Get("Retry-After") == "" {
				p.t.Errorf("a workspace without an owner: %d %s", code, text)
			}
			p.claim(p.seat)
		}
	}
}

// A process that does not own a workspace refuses everything about it on every route, and says who owns
// it. A process whose lease is over does not know any more.
//
// covers: RT-012 RT-013 RT-014 RT-016 RT-478
func TestNotOwnerOnEveryRoute(t *testing.T) {
	p := newPair(t)
	p.settle()
	p.serving.Store(false)
	if code, header, text := p.ask(p.http, "GET", "W/unread", p.member("B"), ""); code != 503 || header.Get("Retry-After") == "" {
		t.Errorf("without a lease: %d %s", code, text)
	}
	if code, _, text := p.ask(p.http, "GET", "/readyz", "", ""); code != 503 || !strings.Contains(text, "no lease") {
		t.Errorf("ready without a lease: %d %s", code, text)
	}
	p.serving.Store(true)
	p.give(p.enroll("n2", "http://n2.test"))
	managed := map[string]bool{}
	p.operations(func(op apicheck.Operation, path string) {
		token := p.token("W", "A", httpapi.RoleAdmin)
		p.queries.Store(0)
		code, _, text := p.ask(p.http, op.Method, path, token, "{}")
		if code != http.StatusMisdirectedRequest {
			managed[op.ID] = true
			return
		}
		var problem httpapi.Problem
		if err := json.Unmarshal([]byte(text), &problem); err != nil || problem.Code != httpapi.CodeNotOwner ||
			problem.Owner != "http://n2.test" {
			t.Errorf("%s: %s", op.ID, text)
		}
		if n := p.queries.Load(); n > 0 {
			t.Errorf("%s asked for members %d times", op.ID, n)
		}
	})
	if want := "map[cluster:true listWorkspaces:true patchWorkspace:true putWorkspace:true whoami:true]"; fmt.Sprint(managed) != want {
		t.Errorf("without an owner are answered %v, want %s", managed, want)
	}
	_, _, text := p.ask(p.http, "GET", "/api/v1/workspaces", p.member("B"), "")
	if !strings.Contains(text, `"hasUnread":false,"state":"unavailable"`) {
		t.Errorf("the list: %s", text)
	}
}

// Every surface of a central server that shows a workspace shows no unread, asks no owner and runs no
// query about members.
//
// covers: RT-011 RT-020 RT-022 RT-023 RT-477
func TestCentralShowsNoUnread(t *testing.T) {
	p := newPair(t)
	p.settle()
	if code, _, text := p.ask(p.central, "GET", "W/unread", p.member("B"), ""); code != 200 || !strings.Contains(text, `"hasUnread":true`) {
		t.Fatalf("there is nothing unread: %d %s", code, text)
	}
	p.http.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the owner is asked %s %s", r.Method, r.URL)
	})
	p.queries.Store(0)
	for _, c := range []struct{ method, path, token, body, says string }{
		{"GET", "/api/v1/workspaces", p.member("B"), "", `"hasUnread":false,"state":"unavailable"`},
		{"GET", "/api/v1/workspaces?member=B", p.admin(), "", `"hasUnread":false,"state":"unavailable"`},
		{"GET", "/api/v1/workspaces", p.admin(), "", `{"workspaces":[{"id":"W","name":"W"}]}`},
		{"PUT", "W", p.admin(), `{"name":"X"}`, `{"id":"W","name":"X"}`},
		{"PATCH", "W", p.admin(), `{"name":"Y"}`, `{"id":"W","name":"Y"}`},
		{"GET", "/api/v1/cluster", p.admin(), "", `"health":"owned"`},
		{"GET", "/api/whoami", p.member("B"), "", `"member":"B"`},
	} {
		code, _, text := p.ask(p.central, c.method, c.path, c.token, c.body)
		if code != 200 || !strings.Contains(text, c.says) || strings.Contains(text, `"hasUnread":true`) {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, text)
		}
	}
	if n := p.queries.Load(); n != 0 {
		t.Errorf("members were asked for %d times", n)
	}
	row, err := p.engine.Workspace("W").Info(t.Context())
	if err != nil || row.Name != "Y" {
		t.Errorf("renamed to %+v, %v", row, err)
	}
}

// A request that meets the wrong node goes once more, whole, to the one that the registry names then.
func TestCentralFollowsTheOwner(t *testing.T) {
	p := newPair(t)
	p.settle()
	asked := 0
	body := ""
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		if r.Header.Get("Tidemark-Routed") == "" || r.Header.Get("Authorization") == "" {
			t.Errorf("sent on with %v", r.Header)
		}
		w.WriteHeader(http.StatusMisdirectedRequest)
	}))
	defer second.Close()
	p.give(p.enroll("n2", second.URL))
	const post = `{"opId":"2","author":"A"}`
	code, header, text := p.ask(p.central, "POST", "W/scopes/c/messages", p.admin(), post)
	if asked != 1 || body != post {
		t.Errorf("the second owner was asked %d times, last with %q", asked, body)
	}
	if code != 503 || header.Get("Retry-After") == "" || !strings.Contains(text, "on its way") {
		t.Errorf("two who are no owners: %d %s", code, text)
	}
	second.Close()
	if code, _, text := p.ask(p.central, "GET", "W/unread", p.member("B"), ""); code != 503 {
		t.Errorf("an owner that is gone: %d %s", code, text)
	}
	// An address that leads to a central server is no circle.
	p.enroll("n2", p.central.URL)
	if code, _, text := p.ask(p.central, "GET", "W/unread", p.member("B"), ""); code != 503 {
		t.Errorf("the owner is unknown by its old address: %d %s", code, text)
	}
	other := p.serve(httpapi.Config{Cluster: &httpapi.Cluster{
		Registry: p.registry, Owners: ownership.NewLookup(p.registry, 0), Central: centralStore{},
	}})
	if code, _, text := p.ask(other, "GET", "W/unread", p.member("B"), ""); code != 503 || !strings.Contains(text, "leads back") {
		t.Errorf("a circle: %d %s", code, text)
	}
}

// centralStore is never asked.
type centralStore struct{ facts.Store }

// What a central server is sent is bounded before it is kept, and a token is looked at there, too.
func TestCentralRefuses(t *testing.T) {
	p := newPair(t)
	p.settle()
	for _, c := range []struct {
		method, path, token, body string
		code                      int
	}{
		{"POST", "W/scopes/c/messages", p.admin(), strings.Repeat("x", httpapi.MaxBody+1), 413},
		{"POST", "W/scopes/c/messages", p.admin(), `{"surprise":1}`, 400},
		{"GET", "W/unread", p.token("V", "B", httpapi.RoleAdmin), "", 404},
		{"GET", "W/unread", "nonsense", "", 401},
		{"GET", "W/unread?surprise=1", p.member("B"), "", 400},
		{"POST", "W/scopes/c/rewind", p.member("B"), `{}`, 403},
		{"GET", "/api/sessions", p.admin(), "", 403},
		{"GET", "/api/sessions", p.member("B"), "", 200},
		{"GET", "nowhere/unread", p.admin(), "", 404},
		{"GET", "W/members/..%2F../blocks", p.admin(), "", 404},
	} {
		code, _, text := p.ask(p.central, c.method, c.path, c.token, c.body)
		if code != c.code {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, code, text, c.code)
		}
		if c.code == 413 {
			continue
		}
		if direct, _, same := p.ask(p.http, c.method, c.path, c.token, c.body); direct != code || same != text {
			t.Errorf("%s %s: the owner says %d %s", c.method, c.path, direct, same)
		}
	}
}

// Events and sockets pass through a central server, both ways, and end with the workspace's time at the
// owner, in a way that has clients come again.
//
// covers: RT-008 RT-028
func TestCentralStreams(t *testing.T) {
	p := newPair(t)
	p.settle()
	req, err := http.NewRequestWithContext(t.Context(), "GET", p.central.URL+"/api/v1/workspaces/W/events?access_token="+p.member("B"), nil)
	if err != nil {
		t.Fatal(err)
	}
	events, err := p.central.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	header := http.Header{"Authorization": {"Bearer " + p.member("B")}}
	socket, _, err := websocket.Dial( //nolint:bodyclose // of a handshake it need not be
		t.Context(), p.central.URL+"/api/v1/workspaces/W/socket", &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	if err := socket.Write(t.Context(), websocket.MessageText, []byte(`{"subscribe":["c"]}`)); err != nil {
		t.Fatal(err)
	}
	for seen := ""; !strings.Contains(seen, `"subscribed"`) && !strings.Contains(seen, `snapshot`); {
		_, data, err := socket.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen = string(data)
	}
	seen, buf := "", make([]byte, 4096)
	for !strings.Contains(seen, "event: snapshot") {
		n, err := events.Body.Read(buf)
		if seen += string(buf[:n]); err != nil {
			t.Fatalf("the events ended with %v after %s", err, seen)
		}
	}
	if err := p.engine.Release(t.Context(), "W"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(events.Body); err != nil {
		t.Errorf("the events ended with %v", err)
	}
	for err == nil {
		_, _, err = socket.Read(t.Context())
	}
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the socket ended with %v", err)
	}
}

// A server that shares nothing says so.
func TestClusterOfOne(t *testing.T) {
	h := newHarness(t)
	h.world("A")
	h.want(200, "GET", "/api/v1/cluster", h.admin(), nil).is(t, "all", "profile")
	h.want(200, "GET", "/api/v1/cluster", h.token("W", "A", httpapi.RoleAdmin), nil).is(t, "W", "workspaces", 0, "id")
}
