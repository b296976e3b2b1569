package broker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/relay/agent"
	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

const token = "a-token-of-the-test"

// world is a relay, an agent on it, and its broker, all on real ports.
type world struct {
	t      *testing.T
	relay  *relaytest.Server
	url    string
	host   string
	key    *nostrx.Key
	client *http.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	var keys [2]*nostrx.Key
	for i := range keys {
		var err error
		if keys[i], err = nostrx.NewKey(); err != nil {
			t.Fatal(err)
		}
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	w := &world{t: t, key: keys[1], client: &http.Client{Transport: transport}}
	var err error
	if w.relay, err = relaytest.Listen(t.Context(), "127.0.0.1:0", relaytest.Options{
		Self: keys[0], Community: uuid.New(),
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.relay.Close() })
	if err := w.relay.SetChannel(relaytest.Channel{
		ID: "a", Name: "A", Type: "stream", Members: []nostrx.PubKey{w.key.Public()},
	}); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(t.Context(), filepath.Join(t.TempDir(), "j.db"), journal.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	a, err := agent.Open(t.Context(), agent.Options{
		HTTP: w.client, URL: w.relay.URL, Key: w.key, Book: j.Book(journal.Partition{Scope: "x", Viewer: w.key.Public()}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.host = l.Addr().String()
	w.url = "http://" + w.host
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: New(Options{
		Agent: a, Token: token, Host: w.host, Origins: []string{"http://app.test"},
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	if err := a.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) do(method, path, body string, set func(*http.Request)) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if set != nil {
		set(req)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// post has somebody write, past the relay's clock and its rules.
func (w *world) post() nostrx.Event {
	w.t.Helper()
	by, err := nostrx.NewKey()
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := by.Sign(nostrx.Event{Kind: nostrx.KindChat, CreatedAt: time.Now().Unix(), Tags: []nostrx.Tag{{"h", "a"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.relay.Keep(e); err != nil {
		w.t.Fatal(err)
	}
	if code, text := w.do("POST", "/v1/unread/refresh", "", nil); code != 200 {
		w.t.Fatalf("%d %s", code, text)
	}
	return e
}

// Whoever has no token, another host's name or another page's origin gets nowhere, and changes nothing.
func TestWalls(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		set  func(*http.Request)
		want int
	}{
		"no token":     {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"wrong token":  {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") }, 401},
		"other scheme": {func(r *http.Request) { r.Header.Set("Authorization", "Basic "+token) }, 401},
		"other host":   {func(r *http.Request) { r.Host = "evil.test" }, 403},
		"rebound name": {func(r *http.Request) { r.Host = "evil.test:" + strings.Split(w.host, ":")[1] }, 403},
		"other origin": {func(r *http.Request) { r.Header.Set("Origin", "http://evil.test") }, 403},
		"null origin":  {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"own origin":   {func(r *http.Request) { r.Header.Set("Origin", w.url) }, 200},
		"app's origin": {func(r *http.Request) { r.Header.Set("Origin", "http://app.test") }, 200},
		"a program":    {nil, 200},
	} {
		code, text := w.do("POST", "/v1/unread/mark-unread", `{"target":{"kind":"channel","channelId":"a"}}`, c.set)
		if code != c.want || strings.Contains(text, token) {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	if code, _ := w.do("GET", "/", "", func(r *http.Request) { r.Header.Del("Authorization") }); code != 200 {
		t.Errorf("the page: %d", code)
	}
}

// Bad input gets its row of the table and changes nothing.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	id := strings.Repeat("a", 64)
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"mark-unread", `{`, 400},
		{"mark-unread", `{"targe":1}`, 400},
		{"mark-unread", `{"target":{"kind":"channel"}} {}`, 400},
		{"mark-unread", `{"target":{"kind":"message","channelId":"a","messageId":"x"}}`, 400},
		{"mark-unread", `{"target":{"kind":"message","channelId":"a","messageId":"` + id + `"}}`, 422},
		{"mark-unread", `{"target":{"kind":"channel","channelId":"nowhere"}}`, 403},
		{"mark-channel-read", `{"channelId":"nowhere"}`, 403},
		{"mark-through", `{"target":{"kind":"channel","channelId":"a"},"messageId":"` + id + `"}`, 422},
		{"reading", `{"channelId":"nowhere"}`, 403},
		{"reading/7/observe", `{"messageIds":[]}`, 409},
		{"reading/x/observe", `{"messageIds":[]}`, 409},
		{"subscribe", `{"stream":"x","targets":[]}`, 404},
		{"level", `{"channelId":"a","level":"some"}`, 400},
		{"follow", `{"channelId":"a","rootId":"x"}`, 400},
		{"refresh", `{"text":"` + strings.Repeat("x", MaxBody) + `"}`, 413},
	} {
		code, text := w.do("POST", "/v1/unread/"+c.path, c.body, nil)
		if code != c.want || !strings.Contains(text, `"error"`) {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, code, text)
		}
	}
	if code, text := w.do("POST", "/v1/channels/a/messages", `{"text":""}`, nil); code != 422 {
		t.Errorf("an empty message: %d %s", code, text)
	}
	if _, text := w.do("GET", "/v1/unread/diagnostics", "", nil); !strings.Contains(text, `"revision":0`) {
		t.Errorf("something was saved: %s", text)
	}
}

// Two windows of one agent see the same: what one reads, the other is told of.
//
// covers: RL-001, RL-003
func TestWindows(t *testing.T) {
	w := newWorld(t)
	e := w.post()
	one, two := w.window(), w.window()
	for _, v := range []*window{one, two} {
		v.until("snapshots", func(data []byte) bool { return bytes.Contains(data, []byte(`"observedCount":1`)) })
	}
	code, text := w.do("POST", "/v1/unread/reading", `{"channelId":"a"}`, nil)
	var lease struct{ Lease string }
	if err := json.Unmarshal([]byte(text), &lease); err != nil || code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	code, text = w.do("POST", "/v1/unread/reading/"+lease.Lease+"/observe",
		`{"messageIds":["`+string(e.ID)+`"],"bottom":true}`, nil)
	if code != 200 || !strings.Contains(text, `"durability":"saved"`) {
		t.Fatalf("%d %s", code, text)
	}
	for _, v := range []*window{one, two} {
		v.until("snapshots", func(data []byte) bool { return bytes.Contains(data, []byte(`"observedCount":0`)) })
	}
	if code, _ := w.do("DELETE", "/v1/unread/reading/"+lease.Lease, "", nil); code != 204 {
		t.Errorf("dispose: %d", code)
	}
	code, text = w.do("POST", "/v1/channels/a/messages", `{"text":"mine","replyTo":"`+string(e.ID)+`"}`, nil)
	if code != 200 {
		t.Fatalf("write: %d %s", code, text)
	}
	if _, text := w.do("GET", "/v1/channels/a/messages?limit=10", "", nil); strings.Count(text, `"author"`) != 2 ||
		!strings.Contains(text, `"rootId":"`+string(e.ID)+`"`) {
		t.Errorf("the timeline: %s", text)
	}
}

type window struct {
	t     *testing.T
	lines *bufio.Scanner
	id    string
}

func (w *world) window() *window {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+"/v1/unread/events", http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	v := &window{t: w.t, lines: bufio.NewScanner(resp.Body)}
	v.until("hello", func(data []byte) bool {
		var hello struct{ Stream string }
		_ = json.Unmarshal(data, &hello)
		v.id = hello.Stream
		return v.id != ""
	})
	body := `{"stream":"` + v.id + `","targets":[{"kind":"channel","channelId":"a"}]}`
	if code, text := w.do("POST", "/v1/unread/subscribe", body, nil); code != 200 {
		w.t.Fatalf("subscribe: %d %s", code, text)
	}
	return v
}

// until reads steps until one of a name has what is wanted.
func (v *window) until(name string, ok func([]byte) bool) {
	v.t.Helper()
	event := ""
	for v.lines.Scan() {
		line := v.lines.Bytes()
		if rest, is := bytes.CutPrefix(line, []byte("event: ")); is {
			event = string(rest)
		}
		if data, is := bytes.CutPrefix(line, []byte("data: ")); is && event == name && ok(data) {
			return
		}
	}
	v.t.Fatalf("the stream ended before %s: %v", name, v.lines.Err())
}

func TestMain(m *testing.M) {
	// net/http waits half a second by itself after a body that was too large.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}
