package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/internal/apicheck"
	"github.com/tidemark-im/tidemark/outbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// emptyStore is a database with the schema and nothing in it, from which every test gets a copy:
// laying the schema out takes longer than most tests.
var emptyStore []byte

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "httpapi")
	if err == nil {
		err = makeEmptyStore(filepath.Join(dir, "empty.db"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		if missing := neverAnswered(); code == 0 && len(missing) > 0 && !filtered() {
			fmt.Fprintln(os.Stderr, "no test saw a success of", missing)
			code = 1
		}
		os.Exit(code)
	}))
}

// answered counts for each documented operation the tests that saw a success of it.
var answered = struct {
	sync.Mutex
	by map[string]int
}{by: map[string]int{}}

// filtered reports that not all tests were asked for.
func filtered() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return true
		}
	}
	return false
}

func neverAnswered() []string {
	answered.Lock()
	defer answered.Unlock()
	var missing []string
	for id, n := range answered.by {
		if n == 0 {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	return missing
}

// noteAnswers adds what the harness saw.
func (h *harness) noteAnswers() {
	answered.Lock()
	defer answered.Unlock()
	unseen := h.check.Unseen()
	for _, op := range h.check.Operations() {
		if !slices.Contains(unseen, op.ID) {
			answered.by[op.ID]++
		} else {
			answered.by[op.ID] += 0 // it exists
		}
	}
}

func makeEmptyStore(path string) error {
	engine, err := tidemark.Open(context.Background(), tidemark.Options{Facts: "sqlite:" + path})
	if err != nil {
		return err
	}
	if err := engine.Close(); err != nil {
		return err
	}
	emptyStore, err = os.ReadFile(path)
	return err
}

var (
	secret    = []byte("a secret of the tests, 32 bytes.")
	oldSecret = []byte("the secret of the month before..")
)

// harness is a real engine behind a real server. Every exchange that goes through it is held
// against the document that the server serves.
type harness struct {
	t      *testing.T
	engine *tidemark.Engine
	api    *httpapi.Server
	inbox  *inbox.Inbox
	http   *httptest.Server
	check  *apicheck.Checker
	prefix string

	mu         sync.Mutex
	recording  bool
	statements []statement
	gate       func(statement) // holds statements up, where set
	ops        int
	log        *logBuffer
}

// logBuffer keeps what the server logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

type option func(*tidemark.Options, *httpapi.Config)

func newHarness(t *testing.T, options ...option) *harness {
	t.Helper()
	return makeHarness(t, nil, options...)
}

// makeHarness makes one with an outbox where a network says what it may reach.
func makeHarness(t *testing.T, network *outbox.Network, options ...option) *harness {
	t.Helper()
	h := &harness{t: t, log: &logBuffer{}}
	store := filepath.Join(t.TempDir(), "facts.db")
	if err := os.WriteFile(store, emptyStore, 0o600); err != nil {
		t.Fatal(err)
	}
	opts := tidemark.Options{
		Facts:       "sqlite:" + store,
		SweepEvery:  time.Hour, // statements of the sweeper would be seen by the probe
		OnStatement: h.record,
	}
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret, oldSecret}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := httpapi.Config{
		Auth: auth, Log: slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Limits: httpapi.Limits{MemberRate: 1e6, MemberBurst: 1e6, ServiceRate: 1e6, ServiceBurst: 1e6},
	}
	for _, o := range options {
		o(&opts, &cfg)
	}
	if h.engine, err = tidemark.Open(context.Background(), opts); err != nil {
		t.Fatal(err)
	}
	cfg.Engine = h.engine
	cfg.Inbox = h.makeInbox()
	stop := func() {}
	if network != nil {
		cfg.Outbox, stop = startOutbox(t, h.engine, *network)
	}
	if h.api, err = httpapi.New(cfg); err != nil {
		t.Fatal(err)
	}
	h.prefix = cfg.Prefix
	h.http = httptest.NewServer(h.api)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.api.Drain(ctx); err != nil {
			t.Errorf("drain: %v", err)
		}
		h.http.Close()
		stop()
		if err := h.engine.Close(); err != nil {
			t.Errorf("close engine: %v", err)
		}
		auth.Close()
	})
	resp, err := h.http.Client().Get(h.http.URL + h.prefix + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	if h.check, err = apicheck.New(document); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.noteAnswers)
	return h
}

// makeInbox makes inboxes whose worker is moved by hand.
func (h *harness) makeInbox() *inbox.Inbox {
	h.t.Helper()
	port, err := h.engine.Inboxes(context.Background(), func(changes []facts.InboxChange) {
		for _, c := range changes {
			h.inbox.Poke(c.Member)
		}
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.inbox, err = inbox.New(inbox.Options{
		Store: port.Store, Terms: port.Terms, Changed: port.Changed,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.inbox
}

// statement is one SQL statement with the path that led to it.
type statement struct {
	by    string // hydrate, lane, http or other
	query string
}

// record is called for every statement, on the goroutine that is about to run it.
func (h *harness) record(_ context.Context, query string) {
	s := statement{caller(), query}
	h.mu.Lock()
	if h.recording {
		h.statements = append(h.statements, s)
	}
	gate := h.gate
	h.mu.Unlock()
	if gate != nil {
		gate(s)
	}
}

// caller says which part of the engine is at work.
func caller() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		switch {
		case strings.Contains(f.Function, "unread.(*Runtime).hydrate"):
			return "hydrate"
		case strings.Contains(f.Function, "facts.(*Lane)"):
			return "lane"
		case strings.Contains(f.Function, "httpapi.(*Server).ServeHTTP"):
			return "http"
		case !more:
			return "other"
		}
	}
}

// probe returns the statements that run while fn does.
func (h *harness) probe(fn func()) []statement {
	h.mu.Lock()
	h.recording, h.statements = true, nil
	h.mu.Unlock()
	fn()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recording = false
	return h.statements
}

// canary proves that the probe sees statements of requests.
func (h *harness) canary(member string) {
	h.t.Helper()
	seen := h.probe(func() { h.want(200, "GET", "W/members", h.member(member), nil) })
	for _, s := range seen {
		if s.by == "http" {
			return
		}
	}
	h.t.Errorf("the probe does not see statements of requests: %v", seen)
}

// token signs for an hour.
func (h *harness) token(ws, member string, role httpapi.Role) string {
	h.t.Helper()
	return h.tokenUntil(ws, member, role, time.Now().Add(time.Hour))
}

func (h *harness) tokenUntil(ws, member string, role httpapi.Role, expires time.Time) string {
	h.t.Helper()
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: readstate.WorkspaceID(ws), Member: readstate.MemberID(member), Role: role,
		Expires: expires,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

func (h *harness) member(name string) string { return h.token("W", name, httpapi.RoleMember) }
func (h *harness) service() string           { return h.token("W", "backend", httpapi.RoleService) }
func (h *harness) admin() string             { return h.token("*", "root", httpapi.RoleAdmin) }

// reply is an answer, whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// call sends a request to a path below /api/v1, or to one that begins with a slash. A body that
// is a string or bytes is sent as it is.
func (h *harness) call(method, path, token string, body any) reply {
	h.t.Helper()
	return h.send(h.request(method, path, token, body))
}

func (h *harness) request(method, path, token string, body any) *http.Request {
	h.t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/workspaces/" + path
	}
	var data []byte
	switch b := body.(type) {
	case nil:
	case string:
		data = []byte(b)
	case []byte:
		data = b
	default:
		var err error
		if data, err = json.Marshal(body); err != nil {
			h.t.Fatal(err)
		}
	}
	req, err := http.NewRequest(method, h.http.URL+h.prefix+path, bytes.NewReader(data))
	if err != nil {
		h.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if data != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

// send sends a request and checks the exchange against the document.
func (h *harness) send(req *http.Request) reply {
	h.t.Helper()
	resp, err := h.http.Client().Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.check.Exchange(req, resp, body); err != nil {
		h.t.Errorf("against the document: %v", err)
	}
	return reply{resp.StatusCode, resp.Header, body}
}

// want sends a request and demands a status.
func (h *harness) want(status int, method, path, token string, body any) object {
	h.t.Helper()
	r := h.call(method, path, token, body)
	if r.status != status {
		h.t.Fatalf("%s %s: got %d %s, want %d", method, path, r.status, r.body, status)
	}
	var out object
	if len(r.body) > 0 {
		if err := json.Unmarshal(r.body, &out); err != nil {
			h.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return out
}

// refused demands a row of the error table.
func (h *harness) refused(code httpapi.Code, method, path, token string, body any) {
	h.t.Helper()
	h.refusedBy(code, h.request(method, path, token, body))
}

func (h *harness) refusedBy(code httpapi.Code, req *http.Request) {
	h.t.Helper()
	r := h.send(req)
	var p httpapi.Problem
	if err := json.Unmarshal(r.body, &p); err != nil || p.Code != code {
		h.t.Errorf("%s %s: got %d %.300s, want %s", req.Method, req.URL.Path, r.status, r.body, code)
	}
}

// object is a decoded JSON object.
type object map[string]any

// at walks down by keys and indexes.
func (o object) at(path ...any) any {
	var v any = map[string]any(o)
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				return nil
			}
			v = m[s]
		case int:
			l, ok := v.([]any)
			if !ok || s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

// is compares a value by how it prints, so that numbers need no types.
func (o object) is(t *testing.T, want any, path ...any) {
	t.Helper()
	if got := o.at(path...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v: got %v, want %v, in %v", path, got, want, o)
	}
}

func (h *harness) op() string {
	h.ops++
	return fmt.Sprintf("op-%d", h.ops)
}

// world makes workspace W with members and a channel that they have joined.
func (h *harness) world(members ...string) {
	h.t.Helper()
	h.want(200, "PUT", "W", h.admin(), object{"name": "Workspace"})
	h.channel("c", members...)
}

func (h *harness) channel(id string, members ...string) {
	h.t.Helper()
	service := h.service()
	h.want(200, "PUT", "W/scopes/"+url.PathEscape(id), service, object{"type": "channel", "name": id})
	items := make([]object, len(members))
	for i, m := range members {
		items[i] = object{"id": m}
	}
	h.want(200, "POST", "W/scopes/"+url.PathEscape(id)+"/members:batch?create=members", service,
		object{"members": items})
}

func (h *harness) thread(id, parent, root string) {
	h.t.Helper()
	h.want(200, "PUT", "W/scopes/"+id, h.service(), object{"type": "thread", "parent": parent, "rootMessage": root})
}

// post lets a member post and returns the answer.
func (h *harness) post(scope, author string, more object) object {
	h.t.Helper()
	body := object{"opId": h.op()}
	for k, v := range more {
		body[k] = v
	}
	return h.want(201, "POST", "W/scopes/"+url.PathEscape(scope)+"/messages", h.member(author), body)
}

func (h *harness) row(member, scope string) object {
	h.t.Helper()
	page := h.want(200, "GET", "W/unread", h.member(member), nil)
	row, _ := page.at("scopes", scope).(map[string]any)
	return row
}

// digest is everything that a member and a service can see of workspace W.
func (h *harness) digest(members ...string) string {
	h.t.Helper()
	var b strings.Builder
	get := func(path, token string) {
		r := h.call("GET", path, token, nil)
		fmt.Fprintf(&b, "%s %d %s\n", path, r.status, r.body)
	}
	for _, path := range []string{"W/members", "W/scopes", "W/scopes/c/members", "W/scopes/c/messages"} {
		get(path, h.service())
	}
	get("/api/v1/workspaces", h.admin())
	for _, m := range members {
		get("W/unread", h.member(m))
		get("W/members/"+m+"/blocks", h.member(m))
		get("W/members/"+m+"/settings", h.member(m))
		get("/api/sessions", h.member(m))
		get("/api/sessions/m1/messages", h.member(m))
	}
	return b.String()
}
