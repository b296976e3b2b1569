package client_test

import (
	"net/http"
	"testing"

	"github.com/tidemark-im/tidemark/client"
)

// covers: SE-038 SE-080
func TestLookingAroundReadsNothing(t *testing.T) {
	w := newWorld(t)
	for _, s := range []string{"a", "b", "c"} {
		w.session(s, 2)
	}
	d := w.open().ready(3)
	list, _ := d.Sessions()
	for _, s := range list {
		if !s.Unread {
			t.Errorf("%s is not unread", s.ID)
		}
		d.look(s.ID, 2).Close()
	}
	if sent := w.requests("PUT /api/sessions"); len(sent) != 0 || d.Status().Pending != 0 {
		t.Errorf("sent %v", sent)
	}
}

// covers: SE-073 SE-074 SE-075 SE-076 SE-077 SE-078 SE-079
func TestAReadingNeedsAllOfIt(t *testing.T) {
	w := newWorld(t)
	w.session("s", 3)
	d := w.open().ready(1)
	window := d.look("s", 3)
	for what, spoil := range map[string]func(*client.Observation){
		"hidden, or behind an inspector": func(o *client.Observation) { o.Visible = false },
		"in the background":              func(o *client.Observation) { o.Foreground = false },
		"not loaded":                     func(o *client.Observation) { o.Loaded = false },
		"of a failed load":               func(o *client.Observation) { o.Snapshot.Loaded = false },
		"scrolled up":                    func(o *client.Observation) { o.TailInView = false },
	} {
		o := looking(window)
		spoil(&o)
		if op := d.observe(o, window); op != "" {
			t.Errorf("an observation %s reads", what)
		}
	}
	if sent := w.requests("PUT /api/sessions"); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
	if op := d.observe(looking(window), window); op == "" {
		t.Error("a whole observation reads nothing")
	}
	d.shows("s", 3, 3, false, 0)
	d.drained()
	if said := w.said("s"); said != "3 3 false 0" {
		t.Errorf("the server has %s", said)
	}
}

// covers: SE-083 SE-092
func TestOnlyWhatWasRenderedIsRead(t *testing.T) {
	w := newWorld(t)
	w.session("s", 12)
	d := w.open().ready(1)
	window := d.look("s", 12)
	rendered := looking(window)
	w.answers("s", 1)
	d.reaches(window, 13) // the window has it, the screen does not
	d.shows("s", 13, 0, false, 0)
	d.observe(rendered, window)
	d.drained()
	if said := w.said("s"); said != "13 12 false 0" {
		t.Errorf("the server has %s", said)
	}
	if s := d.see("s"); !s.Unread {
		t.Error("13 was not seen, and nothing is unread")
	}
}

// covers: SE-081
func TestAMarkOfAnotherDeviceIsNoViewing(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	window := d.look("s", 2)
	d.observe(looking(window), window)
	d.drained()
	before := len(w.requests("PUT"))
	w.mark("s", 0)
	d.shows("s", 2, 2, true, 1)
	for range 3 {
		if op := d.observe(looking(window), window); op != "" {
			t.Fatal("a mark was taken for a viewing")
		}
	}
	if n := len(w.requests("PUT")) - before; n != 1 {
		t.Errorf("%d operations beside the mark", n-1)
	}
	// What comes next to it is read, and the mark stays.
	w.answers("s", 1)
	d.reaches(window, 3)
	d.observe(looking(window), window)
	d.drained()
	if said := w.said("s"); said != "3 3 true 1" {
		t.Errorf("the server has %s", said)
	}
	// Opening it anew is a viewing.
	window.Close()
	again := d.look("s", 3)
	d.observe(looking(again), again)
	d.drained()
	if said := w.said("s"); said != "3 3 false 2" {
		t.Errorf("the server has %s", said)
	}
}

// covers: SE-082
func TestMarkAllReadReadsWhatWasListed(t *testing.T) {
	w := newWorld(t)
	w.session("grows", 2)
	w.session("marked", 1)
	w.read("marked", 1, 0)
	w.mark("marked", 0)
	w.session("quiet", 0)
	d := w.open().ready(3)
	listed, _ := d.Sessions()
	w.answers("grows", 1)
	d.shows("grows", 3, 0, false, 0)
	if err := d.MarkAllRead(listed); err != nil {
		t.Fatal(err)
	}
	d.drained()
	for session, want := range map[string]string{
		"grows": "3 2 false 0", "marked": "1 1 false 2", "quiet": "0 0 false 0",
	} {
		if said := w.said(session); said != want {
			t.Errorf("%s: the server has %s, want %s", session, said, want)
		}
	}
	if s := d.see("grows"); !s.Unread {
		t.Error("what came after the list is read")
	}
	if n := len(w.requests("PUT /api/sessions/quiet")); n != 0 {
		t.Errorf("%d requests for a session with nothing to read", n)
	}
}

// covers: SE-089
func TestAReceiptGoesWithItsWindow(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	window := d.look("s", 2)
	old := looking(window)
	window.Close()
	if op := d.observe(old, window); op != "" {
		t.Error("a closed window reads")
	}
	w.guard(offline)
	again, err := d.OpenWindow("s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	w.await("a failed load", func() bool { return again.Snapshot().Err != nil })
	for _, o := range []client.Observation{old, looking(again)} {
		if op := d.observe(o, again); op != "" {
			t.Error("read without a fresh tail")
		}
	}
	w.guard(nil)
	d.Foreground()
	d.reaches(again, 2)
	d.observe(looking(again), again)
	d.drained()
	if said := w.said("s"); said != "2 2 false 0" {
		t.Errorf("the server has %s", said)
	}
}

// covers: SE-125 SE-126
func TestAWindowOfAMergedSession(t *testing.T) {
	w := newWorld(t)
	w.session("old", 3)
	w.session("new", 7)
	d := w.open().ready(2)
	window := d.look("old", 3)
	stale := looking(window)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && r.Header.Get("Direct") == "" {
			rw.WriteHeader(http.StatusServiceUnavailable) // what is queued stays queued
			return
		}
		next.ServeHTTP(rw, r)
	})
	d.observe(stale, window)
	w.await("an attempt", func() bool { return len(w.requests("PUT /api/sessions/old")) > 0 })
	attempts := len(w.requests("PUT /api/sessions/old"))
	loads := len(w.requests("GET /api/sessions/new/messages"))
	w.want(200, "POST", "/api/sessions/old/merge", w.token("A"), object{"opId": "m", "into": "new"})
	w.await("the other session", func() bool { return len(d.events(client.EventReplaced)) > 0 })
	d.reaches(window, 10)
	s := window.Snapshot()
	if s.Session != "new" || len(s.Messages) != 10 {
		t.Errorf("the window is of %s and has %d messages", s.Session, len(s.Messages))
	}
	if n := len(w.requests("GET /api/sessions/new/messages")) - loads; n != 1 {
		t.Errorf("%d loads of the new tail", n)
	}
	if op := d.observe(stale, window); op != "" {
		t.Error("what was rendered of the old session reads the new one")
	}
	w.guard(nil)
	d.Foreground()
	d.drained()
	if n := len(w.requests("PUT /api/sessions/old")); n != attempts {
		t.Errorf("%d requests for the old session after the merge", n-attempts)
	}
	if said := w.said("new"); said != "10 0 false 1" && said != "10 0 false 0" {
		t.Errorf("the server has %s", said)
	}
	d.observe(looking(window), window)
	d.drained()
	if said := w.said("new"); said[:5] != "10 10" {
		t.Errorf("the server has %s", said)
	}
}
