package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// instead answers requests of clients whose method and address begin with a text by something else.
func instead(begin string, status int, body string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Header.Get("Direct") != "" || !strings.HasPrefix(r.Method+" "+r.URL.RequestURI(), begin) {
			next.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(status)
		fmt.Fprint(rw, body)
	}
}

// Whoever posts may forget a text when the server took it or refused it for good, and not because
// something on the way answered.
func TestOnlyTheServerTakesAPost(t *testing.T) {
	w := newWorld(t)
	w.session("s", 0)
	d := w.open().ready(1)
	post := func() error {
		return d.Post(context.Background(), "s", client.NewMessage{ID: "1", Payload: []byte(`"x"`)})
	}
	for _, c := range []struct {
		status int
		body   string
		final  bool
	}{
		{200, "<html>Please sign in to the hotel's network.</html>", false},
		{200, "{}", false},
		{201, "", false},
		{404, "<html>not here</html>", false},
		{400, `{"code":"invalid_request"}`, true},
		{403, `{"code":"forbidden"}`, true},
		{429, `{"code":"over_budget"}`, false},
		{500, `{"code":"internal"}`, false},
		{503, `{"code":"unavailable"}`, false},
	} {
		w.guard(instead("POST", c.status, c.body))
		err := post()
		var refused *client.RefusedError
		if err == nil || (errors.As(err, &refused) && refused.Final()) != c.final {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
	}
	w.guard(nil)
	if err := post(); err != nil {
		t.Error(err)
	}
	if page := w.want(200, "GET", "/api/sessions/s/messages", w.token("A"), nil); len(page["messages"].([]any)) != 1 {
		t.Errorf("the session has %v", page)
	}
}

// An answer that does not say what was asked for changes nothing, and is asked for again.
func TestAnswersOfSomethingElse(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	const another = `{"id":"other","title":"Other","contentRevision":9,
		"readState":{"readRevision":0,"manualUnread":false,"version":0}}`
	for begin, body := range map[string]string{
		"GET /api/sessions/s/messages": "{}", "GET /api/sessions/unlisted": another, "GET /api/sessions/absent": "{}",
	} {
		w.guard(instead(begin, 200, body))
		id := strings.Split(begin, "/")[3]
		window, err := d.OpenWindow(id)
		if err != nil {
			t.Fatal(err)
		}
		w.await("an error of "+id, func() bool { return window.Snapshot().Err != nil || window.Snapshot().Loaded })
		if s := window.Snapshot(); s.Loaded || s.Err == nil {
			t.Errorf("%s answered %s: the window is %+v", begin, body, s)
		}
		if op, err := window.Observe(looking(window)); op != "" || err != nil {
			t.Errorf("%s was read: %s, %v", id, op, err)
		}
		window.Close()
	}
	if list, _ := d.Sessions(); len(list) != 1 {
		t.Errorf("the list is %+v", list)
	}
	w.guard(instead("GET /api/sessions?", 200, "{}"))
	asked := len(w.requests("GET /api/sessions?"))
	other := w.open()
	w.await("two lists", func() bool {
		other.clock.advance(time.Second)
		return len(w.requests("GET /api/sessions?")) > asked+1
	})
	if _, complete := other.Sessions(); complete {
		t.Error("a list that is none is complete")
	}
	w.guard(nil)
	other.Foreground()
	other.ready(1)
}

// A server that goes on for ever is asked no faster than one that fails.
func TestPagesWithoutAnEnd(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	w.channel("x", 1)
	const page = `{"sessions":[{"id":"s"}],"messages":[],"scopes":{"x":{"type":"channel"}},"lsn":1,
		"next":"more","page":{"hasMore":true}}`
	streams := instead("GET "+hubPath+"/events", 502, "")
	for what, begin := range map[string]string{
		"sessions": "GET /api/sessions?", "scopes": "GET " + hubPath + "/unread",
		"messages": "GET /api/sessions/s/messages?limit=100&after",
	} {
		d := w.open()
		if what == "messages" {
			d.ready(1)
			d.look("s", 2)
		}
		pages := instead(begin, 200, page)
		w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			pages(rw, r, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { streams(rw, r, next) }))
		})
		d.Scopes()
		w.http.CloseClientConnections() // streams begin anew, so that all is asked for
		w.await("a page of "+what, func() bool {
			d.clock.advance(time.Second)
			return len(w.requests(begin)) > 1
		})
		before := len(w.requests(begin))
		for range 100 {
			w.said("s")
		}
		if n := len(w.requests(begin)) - before; n > 10 {
			t.Errorf("pages of %s were asked for %d times at once", what, n)
		}
		w.guard(nil)
		d.shut()
	}
}

// An event's id that no header can hold is not what a stream goes on after, and a heartbeat that
// does not fit into a duration is not a short one.
func TestStreamsOfAnOddServer(t *testing.T) {
	w := newWorld(t)
	w.session("s", 1)
	odd := "event: hello\ndata: {\"heartbeatSeconds\":18446744074,\"resumed\":false}\n\n" +
		"id: a\x01b\nevent: session-updated\ndata: {\"id\":\"\"}\n\n"
	proceed := make(chan struct{})
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path != "/api/events" {
			next.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, odd)
		rw.(http.Flusher).Flush()
		select {
		case <-proceed:
		case <-r.Context().Done():
		}
	})
	d := w.open()
	w.await("the list", func() bool { _, complete := d.Sessions(); return complete && d.Status().Live })
	for range 20 {
		d.clock.advance(time.Second)
		w.said("s")
	}
	if n := len(w.requests("/api/events")); n != 1 || !d.Status().Live {
		t.Errorf("%d streams", n)
	}
	if list, _ := d.Sessions(); len(list) != 1 {
		t.Errorf("the list is %+v", list)
	}
	w.guard(nil)
	close(proceed)
	w.await("another stream", func() bool {
		d.clock.advance(time.Second)
		return len(w.requests("/api/events")) > 1 && d.Status().Live
	})
	w.answers("s", 1)
	d.shows("s", 2, 0, false, 0)
}

// A number that no server may say is not known, and nothing is read by it.
//
// covers: SE-015
func TestNumbersBeyondTheSafeOnes(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	w.guard(instead("GET /api/sessions?", 200, `{"sessions":[{"id":"s","contentRevision":9007199254740992,
		"readState":{"readRevision":0,"manualUnread":false,"version":0}},{"id":"t","contentRevision":1,
		"readState":{"readRevision":0,"manualUnread":true,"version":18446744073709551615}}]}`))
	d := w.open().ready(2)
	list, _ := d.Sessions()
	for _, s := range list { // of the session that is one, the stream may have told
		if s.ContentRevision > 2 || s.Version != 0 || s.ID == "t" && s.Unread {
			t.Errorf("shown is %+v", s)
		}
	}
	w.guard(nil)
	w.answers("s", 1)
	d.shows("s", 3, 0, false, 0)
	w.guard(instead("GET /api/sessions/s/messages", 200,
		`{"messages":[],"page":{"hasMore":false,"readThroughRevision":9007199254740992}}`))
	window, err := d.OpenWindow("s")
	if err != nil {
		t.Fatal(err)
	}
	defer window.Close()
	w.await("an error", func() bool { return window.Snapshot().Err != nil })
	if op, err := window.Observe(looking(window)); op != "" || err != nil || window.Snapshot().Through != 0 {
		t.Errorf("it was read: %s, %v, %+v", op, err, window.Snapshot())
	}
}

// What was never seen can be neither read nor marked, since it would wait for ever.
func TestNothingIsMarkedThatNobodySaw(t *testing.T) {
	w := newWorld(t)
	w.session("s", 1)
	w.channel("x", 1)
	d := w.open().ready(1).hubReady(1)
	_, readErr := d.MarkRead(client.Session{ID: "s", ContentRevision: 1})
	_, markErr := d.MarkUnread(client.Session{})
	allErr := d.MarkAllRead([]client.Session{d.see("s"), {ID: "s", ContentRevision: 1}, {ContentRevision: 2}})
	_, windowErr := d.OpenWindow("")
	postErr := d.Post(context.Background(), "", client.NewMessage{ID: "1"})
	for i, err := range []error{readErr, markErr, allErr, windowErr, postErr} {
		if !errors.Is(err, client.ErrUnknownSession) {
			t.Errorf("%d: got %v", i, err)
		}
	}
	_, readErr = d.MarkScopeRead(client.Scope{ID: "x", ContentRevision: 1})
	_, markErr = d.MarkScopeUnread(client.Scope{})
	_, windowErr = d.OpenScope("")
	postErr = d.PostToScope(context.Background(), "", client.NewMessage{ID: "1"})
	for i, err := range []error{readErr, markErr, windowErr, postErr} {
		if !errors.Is(err, client.ErrUnknownScope) {
			t.Errorf("%d: got %v", i, err)
		}
	}
	if n := d.Status().Pending; n != 0 {
		t.Errorf("%d operations wait", n)
	}
	var op readsync.Operation
	if _, scope := client.ScopeOf(&op); scope {
		t.Error("no scope is one")
	}
}

// A machine on the way that wants to be signed in to says nothing of the token, which is as good as
// before once that machine lets through.
func TestATokenThatAnotherMachineRefuses(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	w.guard(instead("", 401, "<html>Please sign in to the hotel's network.</html>"))
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	w.http.CloseClientConnections() // the stream, too
	w.await("refusals of everything", func() bool {
		d.clock.advance(time.Second)
		return d.Status().Waiting != nil && !d.Status().Live && len(w.requests("/api/events")) > 1
	})
	if why := d.Status().Waiting; errors.Is(why, client.ErrCredentials) {
		t.Errorf("it waits for another token: %v", why)
	}
	w.guard(nil)
	d.Foreground()
	d.drained()
	d.ready(1)
	if said := w.said("s"); said != "2 2 false 0" {
		t.Errorf("the server has %s", said)
	}
}

// A stream that begins and is cut off at once, again and again, is opened no faster than one that
// does not begin.
func TestStreamsThatDoNotLast(t *testing.T) {
	w := newWorld(t)
	w.session("s", 1)
	w.channel("x", 1)
	d := w.open().ready(1).hubReady(1)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			next.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "event: hello\ndata: {\"heartbeatSeconds\":10}\n\n")
	})
	before := len(w.requests("/events"))
	w.http.CloseClientConnections()
	for range 60 {
		d.clock.advance(time.Second)
		for range 5 {
			w.said("s")
		}
	}
	if n := len(w.requests("/events")) - before; n == 0 || n > 20 {
		t.Errorf("in a minute, the two streams were opened %d times", n)
	}
	w.guard(nil)
	d.Foreground()
	d.ready(1).hubReady(1)
}
