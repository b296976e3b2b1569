package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/tmaxmax/go-sse"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/live"
)

// patience ends a test that waits for something that never comes.
const patience = 20 * time.Second

// event is one frame of either transport.
type event struct {
	name string
	id   string
	data object
}

// stream reads frames until it is closed.
type stream struct {
	h      *harness
	events chan event
	cancel context.CancelFunc
	socket *websocket.Conn
	ended  chan error
}

func (h *harness) streamContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// sse opens a stream of server-sent events. The query may hold more than the token's member.
func (h *harness) sse(token, query, lastID string) *stream {
	h.t.Helper()
	return h.events(token, "W/events"+query, lastID)
}

// events opens a stream of server-sent events at a path.
func (h *harness) events(token, path, lastID string) *stream {
	h.t.Helper()
	ctx, cancel := h.streamContext()
	req := h.request("GET", path, token, nil).WithContext(ctx)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := h.http.Client().Do(req) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		cancel()
		h.t.Fatal(err)
	}
	if err := h.check.Exchange(req, resp, nil); err != nil {
		h.t.Error(err)
	}
	s := &stream{h: h, events: make(chan event, 4096), cancel: cancel, ended: make(chan error, 1)}
	go func() {
		defer close(s.events)
		defer resp.Body.Close()
		last := ""
		for e, err := range sse.Read(resp.Body, &sse.ReadConfig{MaxEventSize: 8 << 20}) {
			if err != nil {
				s.ended <- err
				return
			}
			id := e.LastEventID
			if id == last {
				id = ""
			} else {
				last = id
			}
			s.take(e.Type, id, []byte(e.Data))
		}
		s.ended <- nil
	}()
	h.t.Cleanup(s.close)
	return s
}

func (s *stream) take(name, id string, data []byte) {
	if err := s.h.check.Event(name, data); err != nil {
		s.h.t.Errorf("against the document: %v", err)
	}
	e := event{name: name, id: id}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &e.data); err != nil {
			s.h.t.Errorf("event %s: %v", name, err)
		}
	}
	s.events <- e
}

// ws opens a socket.
func (h *harness) ws(token, query string) *stream {
	h.t.Helper()
	ctx, cancel := h.streamContext()
	target := "ws" + strings.TrimPrefix(h.http.URL, "http") + h.prefix + "/api/v1/workspaces/W/socket" + query
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	//nolint:bodyclose // it is the connection's
	conn, resp, err := websocket.Dial(ctx, target, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		cancel()
		h.t.Fatal(err)
	}
	if err := h.check.Exchange(h.request("GET", "W/socket"+query, token, nil), resp, nil); err != nil {
		h.t.Error(err)
	}
	conn.SetReadLimit(8 << 20)
	s := &stream{h: h, events: make(chan event, 4096), cancel: cancel, socket: conn, ended: make(chan error, 1)}
	go func() {
		defer close(s.events)
		for {
			_, data, err := conn.Read(ctx)
			if err != nil {
				s.ended <- err
				return
			}
			if err := h.check.Frame(data); err != nil {
				h.t.Errorf("against the document: %v", err)
			}
			var f struct {
				Event, ID string
				Data      object
			}
			if err := json.Unmarshal(data, &f); err != nil {
				h.t.Errorf("frame %s: %v", data, err)
			}
			s.events <- event{f.Event, f.ID, f.Data}
		}
	}()
	h.t.Cleanup(s.close)
	return s
}

func (s *stream) send(frame any) {
	s.h.t.Helper()
	data, ok := frame.(string)
	if !ok {
		b, err := json.Marshal(frame)
		if err != nil {
			s.h.t.Fatal(err)
		}
		data = string(b)
	}
	ctx, cancel := s.h.streamContext()
	defer cancel()
	if err := s.socket.Write(ctx, websocket.MessageText, []byte(data)); err != nil {
		s.h.t.Fatal(err)
	}
}

func (s *stream) close() {
	s.cancel()
	if s.socket != nil {
		s.socket.CloseNow()
	}
	for range s.events {
	}
}

// next waits for the next event of a name and returns it; others are passed over.
func (s *stream) next(name string) event {
	s.h.t.Helper()
	for e := range s.events {
		if e.name == name {
			return e
		}
	}
	s.h.t.Fatalf("the stream ended before %s", name)
	return event{}
}

// unread waits for a delta of a scope.
func (s *stream) unread(scope string) event {
	s.h.t.Helper()
	for {
		e := s.next("unread")
		if e.data["scope"] == scope {
			return e
		}
	}
}

// snapshot reads pages up to the last and returns all rows and the last page's id.
func (s *stream) snapshot() (map[string]object, string) {
	s.h.t.Helper()
	rows := map[string]object{}
	for {
		e := s.next("snapshot")
		scopes, _ := e.data["scopes"].(map[string]any)
		for name, row := range scopes {
			rows[name] = row.(map[string]any)
		}
		if e.data["complete"] == true {
			return rows, e.id
		}
	}
}

// page waits for the last page of a member's snapshot; what is withheld until then is passed over.
func (s *stream) page() event {
	s.h.t.Helper()
	for {
		if e := s.next("snapshot"); e.data["complete"] == true {
			return e
		}
	}
}

// over waits for the end of the stream and returns the names of the events before it.
func (s *stream) over() []string {
	s.h.t.Helper()
	var names []string
	for e := range s.events {
		names = append(names, e.name)
	}
	return names
}

// covers: RT-365 RT-372
func TestStreamBeginsWithASnapshotAndCarriesDeltas(t *testing.T) {
	for _, transport := range []string{"sse", "socket"} {
		t.Run(transport, func(t *testing.T) {
			h := newHarness(t)
			h.world("A", "B")
			h.post("c", "A", nil)
			s := h.open(transport, h.member("B"), "")
			hello := s.next("hello")
			hello.data.is(t, false, "resumed")
			hello.data.is(t, 25, "heartbeatSeconds")
			rows, id := s.snapshot()
			rows["c"].is(t, 1, "unread")
			if id == "" {
				t.Error("the last page carries no id")
			}
			h.post("c", "A", object{"mentions": []string{"B"}})
			d := s.unread("c")
			d.data.is(t, 2, "row", "unread")
			d.data.is(t, 1, "row", "attention")
			d.data.is(t, 2, "badge", "messages")
			d.data.is(t, true, "hasUnread")
			d.data.is(t, d.id, "lsn")
			if got, want := fmt.Sprint(d.data["row"]), fmt.Sprint(map[string]any(h.row("B", "c"))); got != want {
				t.Errorf("the delta says\n%s\nthe list says\n%s", got, want)
			}
			h.want(200, "PUT", "W/scopes/c/read-state", h.member("B"),
				object{"type": "read", "readRevision": 2, "expectedVersion": 0})
			s.unread("c").data.is(t, false, "hasUnread")
			h.want(200, "DELETE", "W/scopes/c/members/B", h.service(), nil)
			gone := s.unread("c")
			gone.data.is(t, true, "removed")
			gone.data.is(t, nil, "row")
		})
	}
}

func (h *harness) open(transport, token, query string) *stream {
	if transport == "sse" {
		return h.sse(token, query, "")
	}
	return h.ws(token, query)
}

// covers: RT-373
func TestDeltasGoToTheMembersTheyAreAbout(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B", "C")
	h.channel("private", "A", "B")
	h.channel("fence", "C", "A")
	phone, laptop, other := h.sse(h.member("B"), "", ""), h.ws(h.member("B"), ""), h.sse(h.member("C"), "", "")
	for _, s := range []*stream{phone, laptop, other} {
		s.snapshot()
	}
	h.post("private", "A", nil)
	phone.unread("private").data.is(t, 1, "row", "unread")
	laptop.unread("private").data.is(t, 1, "row", "unread")
	h.post("fence", "A", nil)
	if e := other.next("unread"); e.data["scope"] != "fence" {
		t.Errorf("a member got a delta of %v", e.data["scope"])
	}
}

// covers: RT-370
func TestStreamResumes(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	h.channel("d", "A", "B")
	h.channel("left", "A", "B")
	s := h.sse(h.member("B"), "", "")
	_, start := s.snapshot()
	h.post("c", "A", nil)
	id := s.unread("c").id
	if id == "" {
		t.Fatal("a delta with nothing behind it has no id")
	}
	s.close()
	h.post("d", "A", nil)
	h.want(200, "DELETE", "W/scopes/left/members/B", h.service(), nil)

	for _, how := range []string{"header", "query", "socket"} {
		var again *stream
		switch how {
		case "header":
			again = h.sse(h.member("B"), "", id)
		case "query":
			again = h.sse(h.member("B"), "?resume="+id, "")
		default:
			again = h.ws(h.member("B"), "?resume="+id)
		}
		again.next("hello").data.is(t, true, "resumed")
		got := map[any]event{}
		for len(got) < 2 {
			e := again.next("unread")
			got[e.data["scope"]] = e
		}
		got["d"].data.is(t, 1, "row", "unread")
		got["left"].data.is(t, true, "removed")
		if _, repeated := got["c"]; repeated {
			t.Errorf("%s: what was seen before the token came again", how)
		}
	}
	whole := h.sse(h.member("B"), "", start)
	whole.next("hello").data.is(t, true, "resumed")
	for _, token := range []string{"99999999", "nonsense", "-1", "18446744073709551616"} {
		again := h.sse(h.member("B"), "", token)
		again.next("hello").data.is(t, false, "resumed")
		rows, _ := again.snapshot()
		rows["d"].is(t, 1, "unread")
	}
	h.want(200, "PUT", "W/members/B/settings", h.member("B"), object{"badge": "attention"})
	h.sse(h.member("B"), "", id).next("hello").data.is(t, false, "resumed")
}

func TestSnapshotComesInPages(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) { c.Live.PageRows = 2 })
	h.world("A", "B")
	for i := range 6 {
		h.channel(fmt.Sprint("p", i), "A", "B")
	}
	h.post("p3", "A", nil)
	s := h.sse(h.member("B"), "", "")
	first := s.next("snapshot")
	first.data.is(t, false, "complete")
	first.data.is(t, true, "hasUnread")
	first.data.is(t, 1, "scopes", "p3", "unread")
	rows, id := s.snapshot()
	if len(rows) != 5 || id == "" {
		t.Errorf("%d more rows, id %q", len(rows), id)
	}
}

func TestTokenEndsTheStream(t *testing.T) {
	clock := newHandClock()
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) { c.Live.Clock = clock })
	h.world("A", "B")
	token := h.tokenUntil("W", "B", httpapi.RoleMember, clock.Now().Add(10*time.Minute))
	s, w := h.sse(token, "", ""), h.ws(token, "")
	s.snapshot()
	w.snapshot()
	h.post("c", "A", nil)
	s.unread("c")
	w.unread("c")
	clock.advance(10 * time.Minute)
	if names := s.over(); names[len(names)-1] != "expired" {
		t.Errorf("the stream ended with %v", names)
	}
	if names := w.over(); names[len(names)-1] != "expired" {
		t.Errorf("the socket ended with %v", names)
	}
	if err := <-w.ended; websocket.CloseStatus(err) != live.CloseExpired {
		t.Errorf("the socket ended with %v", err)
	}
	if n := h.api.Streams().Expired; n != 2 {
		t.Errorf("%d streams ended with their token", n)
	}
}

func TestTokenInTheAddress(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	token := h.member("B")
	s := h.sse("", "?access_token="+token, "")
	s.snapshot()
	w := h.ws("", "?access_token="+token)
	w.snapshot()
	// Elsewhere it is no way in.
	h.refused(httpapi.CodeUnauthenticated, "GET", "W/unread?access_token="+token, "", nil)
	h.refused(httpapi.CodeUnauthenticated, "GET", "W/events?access_token=wrong", "", nil)
	if strings.Contains(h.log.String(), token) || strings.Contains(h.log.String(), "access_token") {
		t.Error("a token was logged")
	}
}
