package client_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// What an earlier run has left is sent before the list is there. A list that set out before that read
// was done must not show as unread what was read.
//
// covers: SE-039 SE-095
func TestAnAnswerIsNewerThanTheList(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	w.guard(offline)
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	asked, done := make(chan struct{}), make(chan struct{})
	var once, settled sync.Once
	t.Cleanup(func() { settled.Do(func() { close(done) }) })
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case r.Header.Get("Direct") != "":
		case r.URL.Path == "/api/events":
			rw.WriteHeader(http.StatusBadGateway) // nothing else tells of the session
			return
		case r.URL.Path == "/api/sessions":
			old := httptest.NewRecorder()
			next.ServeHTTP(old, r)
			once.Do(func() { close(asked) })
			<-done
			_, _ = rw.Write(old.Body.Bytes())
			return
		case r.Method == http.MethodPut:
			<-asked
		}
		next.ServeHTTP(rw, r)
	})
	again := w.open(at(d))
	again.drained()
	w.await("the read", func() bool {
		if again.Status().Pending > 0 || w.said("s") != "2 2 false 0" {
			return false
		}
		settled.Do(func() { close(done) })
		return true
	})
	w.await("the list", func() bool { _, complete := again.Sessions(); return complete })
	if got := again.state("s"); got != "2 2 false 0" {
		t.Errorf("it shows %s", got)
	}
}
