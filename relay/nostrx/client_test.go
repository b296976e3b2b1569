package nostrx_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

// patience bounds every wait for something that should happen soon.
const patience = 20 * time.Second

func keyOf(t testing.TB, n int) *nostrx.Key {
	t.Helper()
	key, err := nostrx.ParseKey(fmt.Sprintf("%064x", n))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, key *nostrx.Key, e nostrx.Event) nostrx.Event {
	t.Helper()
	e, err := key.Sign(e)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// message is a message of the channel c, of now.
func message(t testing.TB, key *nostrx.Key, text string) nostrx.Event {
	t.Helper()
	return sign(t, key, nostrx.Event{Kind: nostrx.KindChat, CreatedAt: time.Now().Unix(), Content: text,
		Tags: []nostrx.Tag{{"h", "c"}}})
}

// listen starts a relay with the channel c of the keys 1 and 2.
func listen(t testing.TB) *relaytest.Server {
	t.Helper()
	members := []nostrx.PubKey{keyOf(t, 1).Public(), keyOf(t, 2).Public()}
	s, err := relaytest.Listen(t.Context(), "127.0.0.1:0", relaytest.Options{
		Self: keyOf(t, 99), Members: members, Community: uuid.MustParse("01234567-89ab-cdef-0123-456789abcdef"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.SetChannel(relaytest.Channel{ID: "c", Type: "stream", Members: members}); err != nil {
		t.Fatal(err)
	}
	return s
}

// dial opens a client that comes again at once.
func dial(t testing.TB, address string, key *nostrx.Key) *nostrx.Client {
	t.Helper()
	c, err := nostrx.Open(t.Context(), nostrx.Options{
		URL: address, Key: key, Backoff: func(int) time.Duration { return 10 * time.Millisecond },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func publish(t testing.TB, c *nostrx.Client, e nostrx.Event) {
	t.Helper()
	if got, err := c.Publish(t.Context(), e); err != nil || !got.Accepted {
		t.Fatalf("publish: %+v, %v", got, err)
	}
}

// next returns the next signal of a subscription.
func next(t testing.TB, s *nostrx.Subscription) nostrx.Signal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := s.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// until reads signals up to one of a kind.
func until(t testing.TB, s *nostrx.Subscription, kind nostrx.SignalKind) nostrx.Signal {
	t.Helper()
	for {
		if got := next(t, s); got.Kind == kind {
			return got
		}
	}
}

var inChannel = nostrx.Filter{Kinds: []int{nostrx.KindChat}, Tags: map[string][]string{"h": {"c"}}}

// What one publishes, another one hears and finds; both answer the relay's challenge by themselves.
func TestLive(t *testing.T) {
	s := listen(t)
	one, two := dial(t, s.URL, keyOf(t, 1)), dial(t, s.URL, keyOf(t, 2))
	sub, err := two.Subscribe(t.Context(), inChannel)
	if err != nil {
		t.Fatal(err)
	}
	if got := next(t, sub); got.Kind != nostrx.SignalCaughtUp {
		t.Fatalf("before anything: %+v", got)
	}
	e := message(t, keyOf(t, 1), "hello")
	publish(t, one, e)
	if got := next(t, sub); got.Kind != nostrx.SignalEvent || got.Event.ID != e.ID {
		t.Fatalf("heard %+v", got)
	}
	found, err := two.Query(t.Context(), inChannel)
	if err != nil || len(found) != 1 || found[0].Content != "hello" {
		t.Fatalf("found %+v, %v", found, err)
	}
	if got, err := two.Publish(t.Context(), sign(t, keyOf(t, 2), nostrx.Event{Kind: 1, CreatedAt: 5})); err != nil ||
		got.Accepted || !strings.Contains(got.Reason, "timestamp") {
		t.Errorf("an old event: %+v, %v", got, err)
	}
	sub.Close()
	if _, err := sub.Next(t.Context()); !errors.Is(err, nostrx.ErrEnded) {
		t.Errorf("after its end: %v", err)
	}
}

// Who is no member is refused, and told so.
func TestStranger(t *testing.T) {
	s := listen(t)
	for _, key := range []*nostrx.Key{keyOf(t, 3), nil} {
		c := dial(t, s.URL, key)
		if _, err := c.Query(t.Context(), inChannel); !errors.Is(err, nostrx.ErrRefused) {
			t.Errorf("a query as %v: %v", key, err)
		}
		sub, err := c.Subscribe(t.Context(), inChannel)
		if err != nil {
			t.Fatal(err)
		}
		if got := next(t, sub); got.Kind != nostrx.SignalRefused || got.Reason == "" {
			t.Errorf("a subscription as %v: %+v", key, got)
		}
	}
}

// A connection that ends is made again, and who listens is told that something may be missing.
func TestReconnect(t *testing.T) {
	s := listen(t)
	c := dial(t, s.URL, keyOf(t, 1))
	sub, err := c.Subscribe(t.Context(), inChannel)
	if err != nil {
		t.Fatal(err)
	}
	until(t, sub, nostrx.SignalCaughtUp)
	for i := range 3 {
		before := s.Connects()
		s.Cut()
		if got := next(t, sub); got.Kind != nostrx.SignalGap {
			t.Fatalf("after cut %d: %+v", i, got)
		}
		until(t, sub, nostrx.SignalCaughtUp)
		if got := s.Connects(); got != before+1 {
			t.Errorf("%d connections after cut %d, want %d", got, i, before+1)
		}
		e := message(t, keyOf(t, 1), fmt.Sprint(i))
		publish(t, c, e)
		if got := until(t, sub, nostrx.SignalEvent); got.Event.ID != e.ID {
			// Stored ones come again with the new connection.
			if got = until(t, sub, nostrx.SignalEvent); got.Event.ID != e.ID {
				t.Errorf("heard %+v", got)
			}
		}
	}
}

// A relay that is wrong teaches nothing: what is forged or was not asked for is dropped and counted,
// what comes twice is the same event, and a lie about the end is only a lie about the end.
func TestLyingRelay(t *testing.T) {
	s := listen(t)
	c := dial(t, s.URL, keyOf(t, 1))
	publish(t, c, message(t, keyOf(t, 1), "genuine"))
	if err := s.Keep(sign(t, keyOf(t, 2), nostrx.Event{Kind: 7, CreatedAt: 1})); err != nil {
		t.Fatal(err)
	}
	for fault, want := range map[relaytest.Fault]int{
		relaytest.Forge: 0, relaytest.Unasked: 1, relaytest.Repeat: 2, relaytest.EarlyEnd: 0, relaytest.Reverse: 1,
	} {
		before := c.Refused()
		s.Switch(fault, true)
		got, err := c.Query(t.Context(), inChannel)
		s.Switch(fault, false)
		if err != nil || len(got) != want {
			t.Errorf("%s: %d events, %v", fault, len(got), err)
		}
		for _, e := range got {
			if e.Content != "genuine" {
				t.Errorf("%s: learned %+v", fault, e)
			}
		}
		dropped := fault == relaytest.Forge || fault == relaytest.Unasked
		if (c.Refused() > before) != dropped {
			t.Errorf("%s: %d refused", fault, c.Refused()-before)
		}
	}
}

// A publication without a receipt has an unknown end; sent again it is the same event, and stays one.
// covers: RL-438
func TestLostReceipt(t *testing.T) {
	s := listen(t)
	c := dial(t, s.URL, keyOf(t, 1))
	publish(t, c, message(t, keyOf(t, 1), "first"))
	e := message(t, keyOf(t, 1), "second")

	arrived := make(chan struct{}, 1)
	s.Intercept(func(o relaytest.Occasion) relaytest.Fault {
		if o.Point != relaytest.AtReceipt {
			return relaytest.None
		}
		arrived <- struct{}{}
		return relaytest.LoseReceipts
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if got, err := c.Publish(ctx, e); !errors.Is(err, context.Canceled) {
		t.Errorf("without a receipt: %+v, %v", got, err)
	}
	s.Intercept(func(o relaytest.Occasion) relaytest.Fault {
		if o.Point == relaytest.AtReceipt {
			return relaytest.Cut
		}
		return relaytest.None
	})
	if got, err := c.Publish(t.Context(), e); !errors.Is(err, nostrx.ErrLost) {
		t.Errorf("on a connection that ends: %+v, %v", got, err)
	}
	s.Intercept(nil)
	publish(t, c, e)
	if got := s.Stored(nostrx.Filter{IDs: []nostrx.EventID{e.ID}}); len(got) != 1 {
		t.Errorf("stored %d times", len(got))
	}
}

// Requests of a connection end with it.
func TestCutQuery(t *testing.T) {
	s := listen(t)
	c := dial(t, s.URL, keyOf(t, 1))
	s.Switch(relaytest.Cut, true)
	if got, err := c.Query(t.Context(), inChannel); !errors.Is(err, nostrx.ErrLost) {
		t.Errorf("%v, %v", got, err)
	}
	s.Switch(relaytest.Cut, false)
	if _, err := c.Query(t.Context(), inChannel); err != nil {
		t.Errorf("on the next connection: %v", err)
	}
}

// A frame beyond the limit ends the connection, and is not read to its end.
func TestOversizeFrame(t *testing.T) {
	var connects atomic.Int64
	var serving sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		if connects.Add(1) == 1 {
			_ = ws.Write(r.Context(), websocket.MessageText, []byte(`["NOTICE","`+strings.Repeat("x", 2<<20)+`"]`))
			_, _, _ = ws.Read(r.Context())
			return
		}
		for {
			_, data, err := ws.Read(r.Context())
			if err != nil {
				return
			}
			id, _, _ := strings.Cut(strings.TrimPrefix(string(data), `["REQ","`), `"`)
			_ = ws.Write(r.Context(), websocket.MessageText, fmt.Appendf(nil, `["EOSE",%q]`, id))
		}
	}))
	defer serving.Wait()
	defer server.Close()
	ended := make(chan error, 8)
	c, err := nostrx.Open(t.Context(), nostrx.Options{
		URL:     strings.Replace(server.URL, "http:", "ws:", 1),
		Backoff: func(int) time.Duration { return time.Millisecond },
		OnConnect: func(err error) {
			if err != nil {
				ended <- err
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := <-ended; websocket.CloseStatus(err) != -1 || !strings.Contains(err.Error(), "limit") {
		t.Errorf("ended by %v", err)
	}
	if _, err := c.Query(t.Context(), nostrx.Filter{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Where nobody answers, calls end by their deadline, and the client by its context.
func TestUnreachable(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "ws://" + l.Addr().String()
	l.Close()
	c := dial(t, address, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := c.Query(ctx, nostrx.Filter{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a query: %v", err)
	}
	sub, err := c.Subscribe(t.Context(), nostrx.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := sub.Next(t.Context()); !errors.Is(err, nostrx.ErrEnded) {
		t.Errorf("its subscription: %v", err)
	}
	if _, err := c.Query(t.Context(), nostrx.Filter{}); !errors.Is(err, nostrx.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	for _, bad := range []string{"", "http://x", "ws://", "ws://a:b@host", "\x00"} {
		if c, err := nostrx.Open(t.Context(), nostrx.Options{URL: bad}); err == nil {
			c.Close()
			t.Errorf("opened %q", bad)
		}
	}
}

func web(t testing.TB, address string, key *nostrx.Key) *nostrx.Web {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	w, err := nostrx.NewWeb(address, key, &http.Client{Transport: transport}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A snapshot is taken from the relay whole, and from a relay that is wrong not at all. What never
// ends is cut. Without a descriptor nothing is sent.
// covers: RL-547, RL-553
func TestWebSnapshot(t *testing.T) {
	s := listen(t)
	key := keyOf(t, 1)
	w := web(t, s.URL, key)
	for i := range 3 {
		e := sign(t, key, nostrx.Event{Kind: nostrx.KindAppData, CreatedAt: time.Now().Unix(),
			Tags: []nostrx.Tag{{"d", fmt.Sprint(i)}}})
		if got, err := w.Publish(t.Context(), e); err != nil || !got.Accepted {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	info, err := w.Info(t.Context())
	if err != nil || info.Snapshot == nil || info.Self != keyOf(t, 99).Public() {
		t.Fatalf("%+v, %v", info, err)
	}
	got, err := w.Snapshot(t.Context(), info.Snapshot)
	if err != nil || len(got.Events) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	for fault, want := range map[relaytest.Fault]string{
		relaytest.Partial: "snapshot_id", relaytest.Endless: "more than 8392704 bytes", relaytest.Fail: "503", relaytest.Cut: "",
	} {
		s.Switch(fault, true)
		got, err := w.Snapshot(t.Context(), info.Snapshot)
		s.Switch(fault, false)
		if err == nil || !strings.Contains(err.Error(), want) || got.Events != nil {
			t.Errorf("%s: %v, %+v", fault, err, got)
		}
	}
	s.Intercept(func(relaytest.Occasion) relaytest.Fault {
		t.Error("something was asked")
		return relaytest.None
	})
	if _, err := w.Snapshot(t.Context(), nil); !errors.Is(err, nostrx.ErrUnsupported) {
		t.Errorf("without a descriptor: %v", err)
	}
	if _, err := web(t, s.URL, nil).Snapshot(t.Context(), info.Snapshot); !errors.Is(err, nostrx.ErrUnsupported) {
		t.Errorf("without a key: %v", err)
	}
}

// Queries and publications over HTTP are believed as little as those over a connection.
func TestWebQuery(t *testing.T) {
	s := listen(t)
	w := web(t, s.URL, keyOf(t, 1))
	e := message(t, keyOf(t, 1), "hello")
	if got, err := w.Publish(t.Context(), e); err != nil || !got.Accepted {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, refused, err := w.Query(t.Context(), inChannel); err != nil || len(got) != 1 || refused != 0 {
		t.Errorf("%+v, %d, %v", got, refused, err)
	}
	old := sign(t, keyOf(t, 1), nostrx.Event{Kind: 1, CreatedAt: 5})
	if got, err := w.Publish(t.Context(), old); err != nil || got.Accepted ||
		got.Reason != "invalid: event timestamp too far from server time" {
		t.Errorf("%+v, %v", got, err)
	}
	s.Switch(relaytest.Fail, true)
	if got, err := w.Publish(t.Context(), message(t, keyOf(t, 1), "x")); err == nil {
		t.Errorf("a 503 is a receipt: %+v", got)
	}
	var moved atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if moved.Add(1) > 1 {
			t.Error("an authorisation was sent on")
		}
		http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
	}))
	defer elsewhere.Close()
	if _, _, err := web(t, elsewhere.URL, keyOf(t, 1)).Query(t.Context(), inChannel); err == nil {
		t.Error("followed elsewhere")
	}
	for _, bad := range []string{"", "ftp://x", "https://", "https://a:b@host", "https://host/?q", "https://host/#f"} {
		if _, err := nostrx.NewWeb(bad, nil, nil, nil); err == nil {
			t.Errorf("took %q", bad)
		}
	}
}
