package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/readstate"
)

// patience bounds every wait for something that should happen soon.
const patience = 30 * time.Second

// emptyStore is a database with the schema and nothing in it.
var emptyStore []byte

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	dir, err := os.MkdirTemp("", "client")
	if err == nil {
		err = makeEmptyStore(filepath.Join(dir, "empty.db"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
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

var secret = []byte("a secret of the tests, 32 bytes.")

type object map[string]any

// world is a real server with members A and B, and a gate in front of it.
type world struct {
	t      *testing.T
	http   *httptest.Server
	moves  chan struct{} // something may have happened
	turns  int
	rounds int            // of processes that were killed
	steps  map[string]int // at which they were

	mu   sync.Mutex
	gate func(w http.ResponseWriter, r *http.Request, next http.Handler)
	log  []string // methods and addresses of requests, in the order of arrival
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store := filepath.Join(t.TempDir(), "facts.db")
	if err := os.WriteFile(store, emptyStore, 0o600); err != nil {
		t.Fatal(err)
	}
	engine, err := tidemark.Open(context.Background(), tidemark.Options{Facts: "sqlite:" + store})
	if err != nil {
		t.Fatal(err)
	}
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}})
	if err != nil {
		t.Fatal(err)
	}
	port, err := engine.Inboxes(context.Background(), func([]facts.InboxChange) {})
	if err != nil {
		t.Fatal(err)
	}
	box, err := inbox.New(inbox.Options{Store: port.Store, Terms: port.Terms, Changed: port.Changed})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Config{
		Engine: engine, Auth: auth, Inbox: box, Live: live.Options{Heartbeat: 10 * time.Second},
		Limits: httpapi.Limits{MemberRate: 1e6, MemberBurst: 1e6, ServiceRate: 1e6, ServiceBurst: 1e6},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, moves: make(chan struct{}, 1), steps: map[string]int{}}
	w.http = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.log = append(w.log, r.Method+" "+r.URL.RequestURI())
		gate := w.gate
		w.mu.Unlock()
		w.moved()
		if gate == nil {
			api.ServeHTTP(rw, r)
		} else {
			gate(rw, r, api)
		}
		w.moved()
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := api.Drain(ctx); err != nil {
			t.Errorf("drain: %v", err)
		}
		w.http.CloseClientConnections()
		w.http.Close()
		if err := engine.Close(); err != nil {
			t.Errorf("close engine: %v", err)
		}
		auth.Close()
	})
	root := w.sign("*", "root", httpapi.RoleAdmin, time.Hour)
	w.want(200, "PUT", "/api/v1/workspaces/W", root, object{"name": "Workspace"})
	for _, m := range []string{"A", "B", "x.y:z"} {
		w.want(200, "PUT", "/api/v1/workspaces/W/members/"+m, root, object{"kind": "human"})
	}
	return w
}

// moved wakes whoever awaits something.
func (w *world) moved() {
	select {
	case w.moves <- struct{}{}:
	default:
	}
}

// await waits until something holds. It is looked at whenever anything moved, and now and then: what
// moves the clock has to go on until somebody waits for it.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-w.moves:
		case <-again.C:
		case <-end.C:
			w.t.Fatalf("never: %s; requests were\n%s", what, strings.Join(w.requests(""), "\n"))
		}
	}
}

func (w *world) guard(gate func(http.ResponseWriter, *http.Request, http.Handler)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = gate
}

// requests are those that contain a text.
func (w *world) requests(with string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.log {
		if strings.Contains(r, with) {
			out = append(out, r)
		}
	}
	return out
}

func (w *world) sign(ws, member string, role httpapi.Role, life time.Duration) string {
	w.t.Helper()
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: readstate.WorkspaceID(ws), Member: readstate.MemberID(member), Role: role,
		Expires: time.Now().Add(life),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func (w *world) token(member string) string {
	return w.sign("W", member, httpapi.RoleMember, time.Hour)
}

// do sends a request of its own; it passes the gate like any other.
func (w *world) do(method, path, token string, body any) (int, object) {
	w.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	if body == nil {
		text = nil
	}
	req, err := http.NewRequest(method, w.http.URL+path, bytes.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Direct", "yes")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.http.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var out object
	_ = json.Unmarshal(data, &out) // not every answer is one
	return resp.StatusCode, out
}

func (w *world) want(status int, method, path, token string, body any) object {
	w.t.Helper()
	got, out := w.do(method, path, token, body)
	if got != status {
		w.t.Fatalf("%s %s: %d %v, want %d", method, path, got, out, status)
	}
	return out
}

// session makes a session of A with answers in it.
func (w *world) session(id string, answers int) {
	w.t.Helper()
	w.want(201, "POST", "/api/sessions", w.token("A"), object{"id": id, "title": id})
	w.answers(id, answers)
}

func (w *world) answers(session string, n int) {
	w.t.Helper()
	for range n {
		w.turns++
		w.want(201, "POST", "/api/sessions/"+session+"/messages", w.token("A"),
			object{"localId": fmt.Sprint("turn-", w.turns), "payload": "an answer"})
	}
}

// read and mark are what another device of A does.
func (w *world) read(session string, revision, version int) {
	w.t.Helper()
	w.want(200, "PUT", "/api/sessions/"+session+"/read-state", w.token("A"),
		object{"type": "read", "readRevision": revision, "expectedVersion": version})
}

func (w *world) mark(session string, version int) {
	w.t.Helper()
	w.want(200, "PUT", "/api/sessions/"+session+"/read-state", w.token("A"),
		object{"type": "unread", "expectedVersion": version})
}

// said is what the server says of a session of A: content, read, manual, version.
func (w *world) said(session string) string {
	w.t.Helper()
	s := w.want(200, "GET", "/api/sessions/"+session, w.token("A"), nil)
	rs := s["readState"].(map[string]any)
	return fmt.Sprint(s["contentRevision"], rs["readRevision"], rs["manualUnread"], rs["version"])
}

// device is a client of the world.
type device struct {
	*client.Client
	w     *world
	clock *handClock
	path  string

	mu   sync.Mutex
	told []client.Event
}

type deviceOptions struct {
	base    string
	path    string // of the file
	token   client.Token
	clock   *handClock
	options client.Options
}

// open opens a client of A.
func (w *world) open(change ...func(*deviceOptions)) *device {
	w.t.Helper()
	d, err := w.tryOpen(change...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(d.shut)
	return d
}

func (w *world) tryOpen(change ...func(*deviceOptions)) (*device, error) {
	token := w.token("A")
	o := deviceOptions{
		base: w.http.URL, path: filepath.Join(w.t.TempDir(), "client.db"), clock: newHandClock(),
		token: func(context.Context) (string, error) { return token, nil },
	}
	for _, c := range change {
		c(&o)
	}
	d := &device{w: w, clock: o.clock, path: o.path}
	o.options.Clock = o.clock
	o.options.OnEvent = func(e client.Event) {
		d.mu.Lock()
		d.told = append(d.told, e)
		d.mu.Unlock()
		w.moved()
	}
	var err error
	d.Client, err = client.OpenWith(context.Background(), o.base, o.token, o.path, o.options)
	return d, err
}

func (d *device) shut() {
	if err := d.Close(); err != nil {
		d.w.t.Errorf("close: %v", err)
	}
}

// ready waits for the list with some sessions.
func (d *device) ready(sessions int) *device {
	d.w.t.Helper()
	d.w.await("the list", func() bool {
		list, complete := d.Sessions()
		return complete && len(list) == sessions && d.Status().Live
	})
	return d
}

// shows waits for what is shown of a session: content, read, manual, version.
func (d *device) shows(session string, want ...any) {
	d.w.t.Helper()
	d.w.await(fmt.Sprintf("%s shows %v", session, fmt.Sprint(want...)), func() bool {
		return d.state(session) == fmt.Sprint(want...)
	})
}

func (d *device) state(session string) string {
	s, err := d.Session(session)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(s.ContentRevision, s.ReadRevision, s.ManualUnread, s.Version)
}

func (d *device) see(session string) client.Session {
	d.w.t.Helper()
	s, err := d.Session(session)
	if err != nil {
		d.w.t.Fatal(err)
	}
	return s
}

// drained waits until the server has decided on everything.
func (d *device) drained() {
	d.w.t.Helper()
	d.w.await("an empty outbox", func() bool { return d.Status().Pending == 0 })
}

func (d *device) events(kind client.EventKind) []client.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []client.Event
	for _, e := range d.told {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// look opens a window and waits until it reaches a revision.
func (d *device) look(session string, through int) *client.Window {
	d.w.t.Helper()
	w, err := d.OpenWindow(session)
	if err != nil {
		d.w.t.Fatal(err)
	}
	d.w.t.Cleanup(w.Close)
	d.reaches(w, through)
	return w
}

func (d *device) reaches(w *client.Window, through int) {
	d.w.t.Helper()
	d.w.await(fmt.Sprintf("a window through %d", through), func() bool {
		s := w.Snapshot()
		return s.Loaded && int(s.Through) == through
	})
}

// looking is the observation of somebody who looks at all that a window has.
func looking(w *client.Window) client.Observation {
	return client.Observation{
		Snapshot: w.Snapshot(), Visible: true, Foreground: true, Loaded: true, TailInView: true,
	}
}

func (d *device) observe(o client.Observation, w *client.Window) string {
	d.w.t.Helper()
	op, err := w.Observe(o)
	if err != nil {
		d.w.t.Fatal(err)
	}
	return op
}

// offline answers nothing to clients; requests of the test itself pass.
func offline(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.Header.Get("Direct") != "" {
		next.ServeHTTP(w, r)
		return
	}
	panic(http.ErrAbortHandler)
}

// refusing answers operations of clients with a problem; everything else passes.
func refusing(status int, code string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodPut || r.Header.Get("Direct") != "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"code":%q,"status":%d}`, code, status)
	}
}

// handClock is time that moves when a test says so.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*handTimer]struct{}
}

type handTimer struct {
	at time.Time
	to chan time.Time
}

func newHandClock() *handClock {
	return &handClock{now: time.Now(), timers: map[*handTimer]struct{}{}}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// NewTimer implements client.Clock.
func (c *handClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &handTimer{c.now.Add(d), make(chan time.Time, 1)}
	if d <= 0 {
		t.to <- c.now
	} else {
		c.timers[t] = struct{}{}
	}
	return t.to, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
	}
}

// advance moves time on and fires what is due.
func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for t := range c.timers {
		if !t.at.After(c.now) {
			t.to <- c.now
			delete(c.timers, t)
		}
	}
}
