package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
)

func TestRateLimits(t *testing.T) {
	clock := newHandClock()
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) {
		c.Now = clock.Now
		c.Limits = httpapi.Limits{MemberRate: 0.5, MemberBurst: 3, Tokens: 4}
	})
	h.world("A", "B")
	a := h.member("A")
	for range 3 {
		h.want(200, "GET", "W/unread", a, nil)
	}
	r := h.call("GET", "W/unread", a, nil)
	if r.status != 429 || r.header.Get("Retry-After") != "2" {
		t.Errorf("got %d, Retry-After %q", r.status, r.header.Get("Retry-After"))
	}
	h.want(200, "GET", "W/unread", h.member("B"), nil) // others are not affected
	h.unchanged2(func() {
		h.refused(httpapi.CodeOverBudget, "POST", "W/scopes/c/messages", a, object{"opId": "x"})
	})
	clock.advance(2 * time.Second)
	h.want(200, "GET", "W/unread", a, nil)
	h.refused(httpapi.CodeOverBudget, "GET", "W/events", a, nil)
	for i := range 20 { // memory of tokens is bounded
		h.call("GET", "W/unread", h.member(fmt.Sprint("m", i)), nil)
	}
	if got := metric(t, h, "tidemark_http_tokens"); got != "4" {
		t.Errorf("%s tokens are remembered", got)
	}
	if got := metric(t, h, `tidemark_http_over_budget_total{route="/api/v1/workspaces/{ws}/unread"}`); got != "1" {
		t.Errorf("%s refusals were counted", got)
	}
}

// unchanged2 compares what a service sees, whose budget is another one.
func (h *harness) unchanged2(fn func()) {
	h.t.Helper()
	before := h.call("GET", "W/scopes/c/messages", h.service(), nil).body
	fn()
	if after := h.call("GET", "W/scopes/c/messages", h.service(), nil).body; string(after) != string(before) {
		h.t.Errorf("a refused request changed %s into %s", before, after)
	}
}

// metric reads one sample.
func metric(t *testing.T, h *harness, name string) string {
	t.Helper()
	for line := range strings.Lines(metrics(t, h)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return "no"
}

func metrics(t *testing.T, h *harness) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.api.AdminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("metrics answer %d", w.Code)
	}
	return w.Body.String()
}

func TestMetricsNameNobody(t *testing.T) {
	h := newHarness(t)
	h.world("alice", "bob")
	h.post("c", "alice", nil)
	h.want(200, "GET", "W/unread", h.member("bob"), nil)
	s := h.sse(h.member("bob"), "", "")
	s.snapshot()
	h.call("BREW", "W/unread", h.member("bob"), nil)
	h.call("GET", "/some/random/path", "", nil)
	text := metrics(t, h)
	for _, want := range []string{
		`tidemark_http_requests_total{code="200",method="GET",route="/api/v1/workspaces/{ws}/unread"} 1`,
		`tidemark_http_requests_total{code="405",method="other",route="/api/v1/workspaces/{ws}/unread"} 1`,
		`tidemark_http_requests_total{code="404",method="GET",route="unknown"} 1`,
		"tidemark_streams 1", "tidemark_unread_members 1", "tidemark_unread_entries 1",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	for _, name := range []string{"alice", "bob", "random", "BREW"} {
		if strings.Contains(text, name) {
			t.Errorf("metrics name %s", name)
		}
	}
	w := httptest.NewRecorder()
	h.api.AdminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/", nil))
	if w.Code != http.StatusOK {
		t.Errorf("profiles answer %d", w.Code)
	}
	h.refused(httpapi.CodeNotFound, "GET", "/metrics", "", nil)
	h.refused(httpapi.CodeNotFound, "GET", "/debug/pprof/", "", nil)
}

func TestCORS(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) { c.CORSOrigins = []string{"https://app.example"} })
	h.world("A")
	preflight := h.request("OPTIONS", "W/scopes/c/messages", "", nil)
	preflight.Header.Set("Origin", "https://app.example")
	preflight.Header.Set("Access-Control-Request-Method", "POST")
	r := h.send(preflight)
	if r.status != 204 || r.header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
		!strings.Contains(r.header.Get("Access-Control-Allow-Methods"), "POST") ||
		!strings.Contains(r.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: %d %v", r.status, r.header)
	}
	for origin, allowed := range map[string]bool{"https://app.example": true, "https://evil.example": false} {
		for _, token := range []string{h.member("A"), "wrong"} { // pages must see refusals, too
			req := h.request("GET", "W/unread", token, nil)
			req.Header.Set("Origin", origin)
			r := h.send(req)
			if got := r.header.Get("Access-Control-Allow-Origin") == origin; got != allowed {
				t.Errorf("%s: allowed %t", origin, got)
			}
			if r.header.Get("Access-Control-Allow-Credentials") != "" || r.header.Get("Vary") != "Origin" {
				t.Errorf("%s: %v", origin, r.header)
			}
		}
	}
	for origin, status := range map[string]int{"https://app.example": 101, "https://evil.example": 403} {
		req := h.request("GET", "W/socket", h.member("A"), nil)
		for name, value := range map[string]string{
			"Origin": origin, "Connection": "Upgrade", "Upgrade": "websocket",
			"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
		} {
			req.Header.Set(name, value)
		}
		resp, err := h.http.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("socket from %s: %d", origin, resp.StatusCode)
		}
	}
}

// headerAuth is an embedder's own: whoever stands before the server says who calls.
type headerAuth struct{}

func (headerAuth) Authenticate(r *http.Request) (httpapi.Principal, error) {
	switch name := r.Header.Get("Authorization"); name {
	case "":
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	case "Bearer broken":
		return httpapi.Principal{}, errors.New("the session store at 10.0.0.7 is down")
	case "Bearer panic":
		panic("a bug")
	case "Bearer nobody":
		return httpapi.Principal{Workspace: "W"}, nil
	default:
		return httpapi.Principal{
			Workspace: "W", Member: "A", Role: httpapi.RoleAdmin, Token: name,
		}, nil
	}
}

func TestMountedUnderAPrefixWithAnotherAuthenticator(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) {
		c.Auth, c.Prefix = headerAuth{}, "/inner/unread"
	})
	h.want(200, "PUT", "W", "me", object{"name": "Embedded"})
	h.want(200, "PUT", "W/members/A", "me", object{"kind": "human"})
	h.want(200, "PUT", "W/scopes/c", "me", object{"type": "channel"})
	h.want(200, "PUT", "W/scopes/c/members/A", "me", object{})
	s := h.sse("me", "", "")
	s.snapshot()
	h.want(200, "GET", "/healthz", "", nil)
	h.refused(httpapi.CodeUnauthenticated, "GET", "W/unread", "", nil)
	h.refused(httpapi.CodeUnauthenticated, "GET", "W/unread", "nobody", nil)
	for _, token := range []string{"broken", "panic"} {
		r := h.call("GET", "W/unread", token, nil)
		if r.status != 500 || strings.Contains(string(r.body), "10.0.0.7") || strings.Contains(string(r.body), "a bug") {
			t.Errorf("%s: %d %s", token, r.status, r.body)
		}
	}
	if text := h.log.String(); !strings.Contains(text, "10.0.0.7") || !strings.Contains(text, "a bug") {
		t.Error("the log does not say what broke")
	}
	resp, err := h.http.Client().Get(h.http.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("outside the prefix: %d", resp.StatusCode)
	}
	var doc struct{ Servers []struct{ URL string } }
	if err := json.Unmarshal(h.api.Document(), &doc); err != nil || doc.Servers[0].URL != "/inner/unread" {
		t.Errorf("the document says %+v", doc)
	}
}

func TestAppServesWhatNoRouteDoes(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) {
		c.App = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "app") })
	})
	resp, err := h.http.Client().Get(h.http.URL + "/index.html")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "app" {
		t.Errorf("got %s", body)
	}
	h.refused(httpapi.CodeNotFound, "GET", "/api/v1/nothing", h.admin(), nil)
	h.want(200, "GET", "/healthz", "", nil)
}

func TestConfigurationIsChecked(t *testing.T) {
	engine, err := tidemark.Open(context.Background(), tidemark.Options{Facts: "sqlite:" + filepath.Join(t.TempDir(), "f.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for what, cfg := range map[string]httpapi.Config{
		"no engine":        {Auth: headerAuth{}},
		"no authenticator": {Engine: engine},
		"slash at the end": {Engine: engine, Auth: headerAuth{}, Prefix: "/x/"},
		"no slash":         {Engine: engine, Auth: headerAuth{}, Prefix: "x"},
		"negative limit":   {Engine: engine, Auth: headerAuth{}, Limits: httpapi.Limits{Streams: -1}},
	} {
		if _, err := httpapi.New(cfg); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}

// A closed engine answers nothing wrong: unavailable, with a time to come again.
func TestClosedEngine(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	member := h.member("B")
	h.want(200, "GET", "W/unread", member, nil)
	if err := h.engine.Close(); err != nil {
		t.Fatal(err)
	}
	r := h.call("POST", "W/scopes/c/messages", member, object{"opId": "late"})
	var p httpapi.Problem
	if err := json.Unmarshal(r.body, &p); err != nil || p.Code != httpapi.CodeUnavailable {
		t.Errorf("got %d %s", r.status, r.body)
	}
	if n, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || n < 1 {
		t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
	}
	h.refused(httpapi.CodeUnavailable, "GET", "/readyz", "", nil)
	h.want(200, "GET", "/healthz", "", nil)
}
