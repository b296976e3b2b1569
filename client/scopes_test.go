package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
	"github.com/tidemark-im/tidemark/httpapi"
)

const hubPath = "/api/v1/workspaces/W"

// channel makes a channel of A and B with messages of B in it.
func (w *world) channel(id string, messages int) {
	w.t.Helper()
	root := w.sign("*", "root", httpapi.RoleAdmin, patience)
	w.want(200, "PUT", hubPath+"/scopes/"+id, root, object{"type": "channel", "name": id})
	for _, m := range []string{"A", "B"} {
		w.want(200, "PUT", hubPath+"/scopes/"+id+"/members/"+m, root, object{})
	}
	w.says("B", id, messages)
}

func (w *world) says(member, scope string, n int, mentions ...string) {
	w.t.Helper()
	for range n {
		w.turns++
		w.want(201, "POST", hubPath+"/scopes/"+scope+"/messages", w.token(member), object{
			"opId": fmt.Sprint("said-", w.turns), "payload": "hello", "mentions": append([]string{}, mentions...),
		})
	}
}

// scopeSaid is what the server says of a scope of A: content, read, manual, version, unread.
func (w *world) scopeSaid(scope string) string {
	w.t.Helper()
	s := w.want(200, "GET", hubPath+"/scopes/"+scope+"/read-state", w.token("A"), nil)
	rs, counts := s["readState"].(map[string]any), s["counts"].(map[string]any)
	return fmt.Sprint(s["contentRevision"], rs["readRevision"], rs["manualUnread"], rs["version"], counts["unread"])
}

// showsScope waits for what is shown of a scope: unread, attention, manual, dot, exact.
func (d *device) showsScope(id string, want ...any) {
	d.w.t.Helper()
	got := ""
	d.w.await(fmt.Sprint(id, " shows ", fmt.Sprint(want...)), func() bool {
		s, err := d.Scope(id)
		if got = fmt.Sprint(s.Unread, s.Attention, s.ManualUnread, s.Shown, s.Exact); err != nil {
			got = err.Error()
		}
		return got == fmt.Sprint(want...)
	})
}

func (d *device) seeScope(id string) client.Scope {
	d.w.t.Helper()
	s, err := d.Scope(id)
	if err != nil {
		d.w.t.Fatal(err)
	}
	return s
}

func (d *device) lookAtScope(id string, through int) *client.Window {
	d.w.t.Helper()
	w, err := d.OpenScope(id)
	if err != nil {
		d.w.t.Fatal(err)
	}
	d.w.t.Cleanup(w.Close)
	d.reaches(w, through)
	return w
}

// hubReady waits for all scopes, with the stream open.
func (d *device) hubReady(scopes int) *device {
	d.w.t.Helper()
	d.w.await("the scopes", func() bool {
		list, complete := d.Scopes()
		return complete && len(list) == scopes && d.HubStatus().Live
	})
	return d
}

// Two devices of one member: counts are the server's, live, and what one reads the other has read.
func TestScopesOfTwoDevices(t *testing.T) {
	w := newWorld(t)
	w.channel("general", 2)
	w.channel("quiet", 0)
	w.session("s", 1) // no scope of the hub
	here, there := w.open().hubReady(2), w.open().hubReady(2)
	list, _ := here.Scopes()
	if s := list[0]; s.Name != "general" || s.Type != "channel" || s.Level != "all" || s.ShownUnread != 2 {
		t.Errorf("the first is %+v", s)
	}
	there.showsScope("general", 2, 0, false, true, true)
	window := here.lookAtScope("general", 2)
	there.showsScope("general", 2, 0, false, true, true) // opening reads nothing
	w.says("B", "general", 1, "A")                       // live, in list and window
	here.reaches(window, 3)
	here.showsScope("general", 3, 1, false, true, true)
	o := looking(window)
	w.says("B", "general", 1)
	here.reaches(window, 4)
	if op := here.observe(o, window); op == "" {
		t.Error("nothing was read")
	}
	here.drained()
	here.showsScope("general", 1, 0, false, true, true) // what came after the look is not read
	there.showsScope("general", 1, 0, false, true, true)
	here.observe(looking(window), window)
	there.showsScope("general", 0, 0, false, false, true)

	if _, err := there.MarkScopeUnread(there.seeScope("general")); err != nil {
		t.Fatal(err)
	}
	here.showsScope("general", 0, 0, true, true, true)
	if op := here.observe(looking(window), window); op != "" {
		t.Error("a mark went that came while the window was open")
	}
	again := here.lookAtScope("general", 4)
	if op := here.observe(looking(again), again); op == "" {
		t.Error("a mark stays though the window was opened on it")
	}
	there.showsScope("general", 0, 0, false, false, true)

	w.want(200, "DELETE", hubPath+"/scopes/general/members/A", w.sign("*", "root", httpapi.RoleAdmin, patience), nil)
	there.showsScope("general", client.ErrUnknownScope)
	if _, err := there.OpenScope("general"); !errors.Is(err, client.ErrUnknownScope) {
		t.Errorf("opened: %v", err)
	}
}

// A mark that is made without a connection is shown, survives the end of the process, and is sent
// once there is a connection, to the scope and to no session of its name.
func TestMarksOfScopesAreKept(t *testing.T) {
	w := newWorld(t)
	w.channel("x", 3)
	w.session("x", 2)
	d := w.open().ready(1).hubReady(1)
	w.guard(offline)
	seen := d.seeScope("x")
	if _, err := d.MarkScopeRead(seen); err != nil {
		t.Fatal(err)
	}
	d.showsScope("x", 0, 0, false, false, true)
	if _, err := d.MarkScopeUnread(d.seeScope("x")); err != nil {
		t.Fatal(err)
	}
	d.showsScope("x", 0, 0, true, true, true)
	if id, err := d.MarkScopeUnread(d.seeScope("x")); id != "" || err != nil {
		t.Errorf("a second mark: %q, %v", id, err)
	}
	if s := d.seeScope("x"); s.Pending != 2 || d.Status().Pending != 2 {
		t.Errorf("%d are pending", s.Pending)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if said := w.scopeSaid("x"); said != "3 0 false 0 3" {
		t.Errorf("the server has %s", said)
	}
	w.guard(nil)
	d = w.open(at(d)).hubReady(1)
	d.drained()
	if said := w.scopeSaid("x"); said != "3 3 true 1 0" {
		t.Errorf("the server has %s", said)
	}
	if said := w.said("x"); said != "2 0 false 0" {
		t.Errorf("the session of that name has %s", said)
	}
}

// What only the server can count is not shown as a number.
func TestReadsOfAPartAreNotExact(t *testing.T) {
	w := newWorld(t)
	w.channel("x", 1)
	d := w.open().hubReady(1)
	window := d.lookAtScope("x", 1)
	o := looking(window)
	w.says("B", "x", 2)
	d.showsScope("x", 3, 0, false, true, true)
	w.guard(offline)
	d.observe(o, window)
	d.showsScope("x", 3, 0, false, true, false)
	w.guard(nil)
	d.Foreground()
	d.drained()
	d.showsScope("x", 2, 0, false, true, true)
}

// A refusal is told with the scope that it is of.
func TestLossesNameTheirScope(t *testing.T) {
	w := newWorld(t)
	w.channel("x", 1)
	d := w.open().hubReady(1)
	seen := d.seeScope("x")
	w.want(200, "PUT", hubPath+"/scopes/x/read-state", w.token("A"), object{"type": "unread", "expectedVersion": 0})
	w.want(200, "PUT", hubPath+"/scopes/x/read-state", w.token("A"),
		object{"type": "read", "readRevision": 1, "expectedVersion": 1})
	if _, err := d.MarkScopeUnread(seen); err != nil {
		t.Fatal(err)
	}
	w.await("a loss", func() bool { return len(d.events(client.EventLost)) == 1 })
	if e := d.events(client.EventLost)[0]; e.Scope != "x" || e.Session != "" || e.Loss.Reason != readsync.Refused {
		t.Errorf("told %+v", e)
	}
	d.showsScope("x", 0, 0, false, false, true)
}

// Posting again under an id posts nothing more; what is refused is told.
func TestPosts(t *testing.T) {
	w := newWorld(t)
	w.channel("x", 0)
	w.session("s", 0)
	d := w.open().ready(1).hubReady(1)
	window, session := d.lookAtScope("x", 0), d.look("s", 0)
	ctx := context.Background()
	for range 2 {
		m := client.NewMessage{ID: "once", Payload: []byte(`{"text":"hi"}`), Mentions: []string{"B"}}
		if err := d.PostToScope(ctx, "x", m); err != nil {
			t.Fatal(err)
		}
		m = client.NewMessage{ID: "once", Kind: "prompt", Payload: []byte(`"go on"`)}
		if err := d.Post(ctx, "s", m); err != nil {
			t.Fatal(err)
		}
	}
	d.reaches(window, 1)
	w.await("the prompt", func() bool { return len(session.Snapshot().Messages) == 1 })
	d.showsScope("x", 0, 0, false, false, true) // one's own
	var refused *client.RefusedError
	err := d.PostToScope(ctx, "nowhere", client.NewMessage{ID: "1"})
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("got %v", err)
	}
	w.guard(offline)
	if err := d.Post(ctx, "s", client.NewMessage{ID: "2"}); err == nil || errors.As(err, &refused) {
		t.Errorf("offline: %v", err)
	}
}

// Where streams are cut off, the list is asked for.
func TestScopesWithoutAStream(t *testing.T) {
	w := newWorld(t)
	w.channel("x", 2)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == hubPath+"/events" {
			http.Error(rw, "no streams here", http.StatusBadGateway)
			return
		}
		next.ServeHTTP(rw, r)
	})
	d := w.open()
	d.showsScope("x", 2, 0, false, true, true)
	if s := d.HubStatus(); s.Live || s.Err == nil {
		t.Errorf("the status is %+v", s)
	}
	w.guard(nil)
	d.Foreground()
	d.hubReady(1)
}
