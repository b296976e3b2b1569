package outbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var (
	secretBytes = []byte("0123456789abcdef0123456789abcdef")
	secretText  = SecretPrefix + base64.StdEncoding.EncodeToString(secretBytes)
)

// receiver is a server that takes wakes.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer func(r *http.Request, n int) (status int, header http.Header) // n counts from 1
}

type received struct {
	header http.Header
	body   []byte
	path   string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.got = append(r.got, received{req.Header, body, req.URL.Path})
	n, answer := len(r.got), r.answer
	r.mu.Unlock()
	status, header := http.StatusNoContent, http.Header(nil)
	if answer != nil {
		status, header = answer(req, n)
	}
	for k, v := range header {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
}

func (r *receiver) take() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

func (r *receiver) set(answer func(r *http.Request, n int) (int, http.Header)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer, r.got = answer, nil
}

func always(status int, header ...string) func(*http.Request, int) (int, http.Header) {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return func(*http.Request, int) (int, http.Header) { return status, h }
}

// endpoint has an agent's wakes sent to a path of a server.
func (w *world) endpoint(b *Outbox, agent readstate.MemberID, url string) {
	w.t.Helper()
	w.ok(b.PutEndpoint(w.t.Context(), space, agent, Endpoint{URL: url, Secret: secretText}))
}

func ids(got []received) []string {
	var out []string
	for _, r := range got {
		var m Message
		_ = json.Unmarshal(r.body, &m)
		out = append(out, m.MessageID+m.ActivityID)
	}
	return out
}

// A wake is a POST of a known form, signed so that a receiver who knows the secret can check it.
func TestWakeOnTheWire(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox()
	w.endpoint(b, "a0", r.URL+"/hook")
	id := w.post("t", "a0")
	w.rows(b)
	w.send(b)
	got := r.take()
	if len(got) != 1 || got[0].path != "/hook" {
		t.Fatalf("%d requests", len(got))
	}
	h := got[0].header
	stamp := fmt.Sprint(w.clock.now().Unix())
	if h.Get("webhook-timestamp") != stamp || h.Get("Content-Type") != "application/json" {
		t.Errorf("%v", h)
	}
	// The signature, computed by the letter of the standard.
	mac := hmac.New(sha256.New, secretBytes)
	fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), stamp, got[0].body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if h.Get("webhook-signature") != want {
		t.Errorf("signature %q, want %q", h.Get("webhook-signature"), want)
	}
	event := w.query(`SELECT event FROM outbox`)[0][0]
	if want := fmt.Sprintf("wake_1_%d_%d", event, uint32(w.key("a0"))); h.Get("webhook-id") != want {
		t.Errorf("id %q, want %q", h.Get("webhook-id"), want)
	}
	wantBody := fmt.Sprintf(`{"type":"task.message","workspace":"w","agent":"a0","scope":"t",`+
		`"scopeType":"task","messageId":%q,"seq":1,"actor":"author",`+
		`"createdAt":"2023-11-14T22:13:20.000Z","event":"evt_1_%d"}`, id, event)
	if string(got[0].body) != wantBody {
		t.Errorf("body\n%s\nwant\n%s", got[0].body, wantBody)
	}
	if n := len(w.waiting("a0")); n != 0 {
		t.Errorf("%d wakes are left", n)
	}
	// An activity has its own type and names itself.
	w.assign("t", "h0")
	w.rows(b)
	w.send(b)
	var m Message
	if err := json.Unmarshal(r.take()[0].body, &m); err != nil || m.Type != TypeTaskActivity ||
		m.ActivityID == "" || m.MessageID != "" {
		t.Errorf("%+v %v", m, err)
	}
}

// Every attempt of a wake has the same id and body, in order, until it is taken.
func TestRetries(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox()
	w.endpoint(b, "a0", r.URL)
	r.set(always(http.StatusInternalServerError))
	first, second := w.post("t"), w.post("t")
	w.rows(b)
	for try := range 5 {
		if n := w.send(b); n != 1 {
			t.Fatalf("try %d: %d queues", try, n)
		}
		if n := w.send(b); n != 0 {
			t.Fatalf("try %d: again without a pause", try)
		}
		w.clock.move(b.Limits.RetryFirst << try)
	}
	state, err := b.Endpoint(t.Context(), space, "a0")
	if err != nil || state.Streak != 5 || state.Waiting != 2 || state.Error != "answered 500" {
		t.Errorf("%+v %v", state, err)
	}
	failed := r.take()
	r.set(nil)
	w.send(b)
	got := slices.Concat(failed, r.take())
	if want := []string{first, first, first, first, first, first, second}; !slices.Equal(ids(got), want) {
		t.Fatalf("%v, want %v", ids(got), want)
	}
	for _, g := range got[:6] {
		if g.header.Get("webhook-id") != got[0].header.Get("webhook-id") ||
			string(g.body) != string(got[0].body) {
			t.Errorf("an attempt differs: %v %s", g.header, g.body)
		}
	}
	if state, _ := b.Endpoint(t.Context(), space, "a0"); state != (EndpointState{URL: r.URL}) {
		t.Errorf("%+v", state)
	}
}

// After its attempts a wake is a dead letter and the next one has its turn.
func TestWakeBudget(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox(func(o *Options) { o.Limits.WakeAttempts = 3 })
	w.endpoint(b, "a0", r.URL)
	r.set(always(http.StatusBadRequest))
	first, second := w.post("t"), w.post("t")
	w.rows(b)
	for range 3 {
		w.send(b)
		w.clock.move(time.Hour)
	}
	if got := w.waiting("a0"); !slices.Equal(got, []string{second}) {
		t.Fatalf("waiting %v", got)
	}
	letters, err := b.DeadLetters(t.Context(), space, 0, 10)
	if err != nil || len(letters) != 1 || letters[0].Row || letters[0].Overflow ||
		letters[0].Attempts != 3 || letters[0].Message.MessageID != first ||
		letters[0].Message.Agent != "a0" || letters[0].Error != "answered 400" {
		t.Fatalf("%+v %v", letters, err)
	}
	r.set(nil)
	w.send(b)
	w.ok(b.Requeue(t.Context(), space, letters[0].ID))
	w.send(b)
	if got := ids(r.take()); !slices.Equal(got, []string{second, first}) {
		t.Errorf("%v", got)
	}
	if more, _ := b.DeadLetters(t.Context(), space, 0, 10); len(more) != 0 {
		t.Errorf("%+v", more)
	}
}

// A wake that is too old is not sent any more.
func TestWakeAge(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox()
	w.endpoint(b, "a0", r.URL)
	old := w.post("t")
	w.rows(b)
	w.clock.move(b.Limits.WakeAge + time.Millisecond)
	young := w.post("t")
	w.rows(b)
	w.send(b)
	if got := ids(r.take()); !slices.Equal(got, []string{young}) {
		t.Errorf("sent %v", got)
	}
	letters, _ := b.DeadLetters(t.Context(), space, 0, 10)
	if len(letters) != 1 || letters[0].Message.MessageID != old {
		t.Errorf("%+v", letters)
	}
	// Of one that is taken up again the time begins anew.
	w.ok(b.Requeue(t.Context(), space, letters[0].ID))
	w.send(b)
	if got := ids(r.take()); !slices.Equal(got, []string{old}) {
		t.Errorf("sent %v", got)
	}
}

// An answer with a time to come back is respected within bounds and costs no attempt.
func TestRetryAfter(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox(func(o *Options) { o.Limits.WakeAttempts = 2 })
	w.endpoint(b, "a0", r.URL)
	w.post("t")
	w.rows(b)
	at := func(d time.Duration) func() string {
		return func() string { return w.clock.now().Add(d).UTC().Format(http.TimeFormat) }
	}
	text := func(s string) func() string { return func() string { return s } }
	for _, c := range []struct {
		status int
		after  func() string
		want   time.Duration
	}{
		{429, text("120"), 2 * time.Minute},
		{503, text("120"), 2 * time.Minute},
		{429, text("0"), b.Limits.RetryFirst},
		{429, text("999999999"), b.Limits.RetryAfterMost},
		{503, at(90 * time.Second), 90 * time.Second},
		{503, at(-time.Hour), b.Limits.RetryFirst},
		{503, at(100 * time.Hour), b.Limits.RetryAfterMost},
	} {
		after := c.after()
		r.set(always(c.status, "Retry-After", after))
		w.send(b)
		due := w.query(`SELECT due_at FROM wake_endpoints WHERE url IS NOT NULL`)[0][0].(int64)
		if got := time.Duration(due-w.clock.ms.Load()) * time.Millisecond; got != c.want {
			t.Errorf("%d %q: back in %v, want %v", c.status, after, got, c.want)
		}
		w.clock.ms.Store(due)
	}
	if state, _ := b.Endpoint(t.Context(), space, "a0"); state.Streak != 0 || state.Waiting != 1 {
		t.Errorf("%+v", state)
	}
	// Without a time that can be read it is a failure like others.
	r.set(always(429, "Retry-After", "soon"))
	w.send(b)
	if state, _ := b.Endpoint(t.Context(), space, "a0"); state.Streak != 1 {
		t.Errorf("%+v", state)
	}
}

// An endpoint that is gone is not asked again until it is set anew; its wakes can be read.
func TestGone(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox()
	w.endpoint(b, "a0", r.URL)
	r.set(always(http.StatusGone))
	first := w.post("t")
	w.rows(b)
	w.send(b)
	second := w.post("t")
	w.rows(b)
	w.clock.move(time.Hour)
	if n := w.send(b); n != 0 {
		t.Fatal("an endpoint that is gone was asked")
	}
	if state, _ := b.Endpoint(t.Context(), space, "a0"); !state.Disabled || state.Waiting != 2 {
		t.Errorf("%+v", state)
	}
	if got := w.waiting("a0"); !slices.Equal(got, []string{first, second}) {
		t.Errorf("%v", got)
	}
	r.set(nil)
	w.endpoint(b, "a0", r.URL)
	w.send(b)
	if got := ids(r.take()); !slices.Equal(got, []string{first, second}) {
		t.Errorf("%v", got)
	}
}

// Redirects are failures, whatever they lead to; a long answer is not read.
func TestAnswers(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox()
	other := newReceiver(t)
	w.endpoint(b, "a0", r.URL)
	w.post("t")
	w.rows(b)
	for _, status := range []int{301, 302, 303, 307, 308, 100 + 4*50, 404, 500} {
		r.set(always(status, "Location", other.URL))
		w.send(b)
		w.clock.move(2 * time.Hour)
	}
	if n := len(other.take()); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
	state, _ := b.Endpoint(t.Context(), space, "a0")
	if state.Streak != 8 {
		t.Errorf("%+v", state)
	}
	long := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, endless{})
	}))
	defer long.Close()
	w.endpoint(b, "a0", long.URL)
	w.send(b)
	if n := len(w.waiting("a0")); n != 0 {
		t.Errorf("%d wakes are left after an endless 200", n)
	}
	wide := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeaderBytes))
	}))
	defer wide.Close()
	w.post("t")
	w.rows(b)
	w.endpoint(b, "a0", wide.URL)
	w.send(b)
	if state, _ := b.Endpoint(t.Context(), space, "a0"); state.Streak != 1 {
		t.Errorf("an endless head was taken: %+v", state)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A receiver that does not answer costs one timeout.
func TestTimeout(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
	}))
	defer silent.Close()
	defer close(release)
	b := w.outbox(func(o *Options) { o.Limits.WakeTimeout = 50 * time.Millisecond })
	w.endpoint(b, "a0", silent.URL)
	w.post("t")
	w.rows(b)
	w.send(b)
	state, _ := b.Endpoint(t.Context(), space, "a0")
	if state.Streak != 1 || state.Error != "no answer in time" || state.Waiting != 1 {
		t.Errorf("%+v", state)
	}
}

// A queue that becomes too long loses its oldest wakes to the dead letters.
func TestOverflow(t *testing.T) {
	w := newWorld(t)
	b := w.outbox(func(o *Options) { o.Limits.Queue = 3 })
	var all []string
	for range 5 {
		all = append(all, w.post("t"))
	}
	w.rows(b)
	if got := w.waiting("a0"); !slices.Equal(got, all[2:]) {
		t.Errorf("waiting %v", got)
	}
	letters, _ := b.DeadLetters(t.Context(), space, 0, 100)
	var dead []string
	for _, l := range letters {
		if l.Message.Agent == "a0" {
			dead = append(dead, l.Message.MessageID)
		}
		if !l.Overflow || l.Row {
			t.Errorf("%+v", l)
		}
	}
	if !slices.Equal(dead, all[:2]) {
		t.Errorf("dead %v", dead)
	}
	if stats, err := b.Stats(t.Context()); err != nil || stats.OverflowWakes != 6 ||
		stats.Gauges.Waiting != 9 || stats.Gauges.Dead != 6 || stats.Delivered != 5 {
		t.Errorf("%+v %v", stats, err)
	}
}

// An agent who was erased is not woken, and what waited for them goes.
func TestErasedAgent(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox()
	w.endpoint(b, "a1", r.URL)
	w.post("t")
	w.rows(b)
	w.post("t")
	key := w.key("a1")
	_, err := w.lane.EraseMember(t.Context(), space, facts.EraseMember{Member: "a1"})
	w.ok(err)
	w.ok(b.Forget(t.Context(), 1, key))
	w.rows(b)
	if n := len(w.query(`SELECT 1 FROM wakes WHERE recipient = ?`, int64(key))); n != 0 {
		t.Errorf("%d wakes of an erased agent", n)
	}
	if n := len(w.query(`SELECT 1 FROM wake_endpoints WHERE recipient = ?`, int64(key))); n != 0 {
		t.Error("the endpoint is still there")
	}
	if n := len(w.waiting("a0")); n != 2 {
		t.Errorf("%d wakes of another", n)
	}
}

// What was read costs those after it no attempt.
func TestReadingClearsAttempts(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox(func(o *Options) { o.Limits.WakeAttempts = 3 })
	w.endpoint(b, "a0", r.URL)
	r.set(always(http.StatusInternalServerError))
	w.post("t")
	second := w.post("t")
	w.rows(b)
	for range 2 {
		w.send(b)
		w.clock.move(time.Hour)
	}
	_, err := w.store.SettleWakes(t.Context(), facts.WakeSettlement{
		Terms: b.Terms, Now: b.now(),
		Outcomes: []facts.WakeOutcome{{Recipient: w.recipient("a0"), Through: 1, Read: true}},
	})
	w.ok(err)
	for range 2 {
		w.send(b)
		w.clock.move(time.Hour)
	}
	if got := w.waiting("a0"); !slices.Equal(got, []string{second}) {
		t.Errorf("%v", got)
	}
	if got, _ := b.DeadLetters(t.Context(), space, 0, 10); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
