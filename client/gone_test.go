package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-im/tidemark/client"
)

// Sessions that were merged away are told once each, do not come back, and are not remembered longer
// than it takes the requests of that time to end.
//
// covers: SE-124 SE-125
func TestDeparturesAreForgotten(t *testing.T) {
	w := newWorld(t)
	const merged = 12
	w.session("into", 1)
	for i := range merged {
		w.session(fmt.Sprint("s", i), 1)
	}
	d := w.open().ready(merged + 1)
	for i := range merged {
		path := fmt.Sprintf("/api/sessions/s%d/merge", i)
		w.want(200, "POST", path, w.token("A"), object{"opId": fmt.Sprint("m", i), "into": "into"})
	}
	w.await("all merges", func() bool { return len(d.events(client.EventReplaced)) >= merged })
	w.await("nothing to remember", func() bool { return d.Departed() == 0 })
	told := map[string]int{}
	for _, e := range d.events(client.EventReplaced) {
		told[e.Session]++
	}
	for id, n := range told {
		if n != 1 {
			t.Errorf("%s is told %d times", id, n)
		}
	}
	if list, _ := d.Sessions(); len(list) != 1 || list[0].ID != "into" || len(told) != merged {
		t.Errorf("%d sessions are left, and %d were told", len(list), len(told))
	}
}

// A list that the server told before a merge, and that arrives after it, does not bring the session back.
//
// covers: SE-125
func TestAnOldListBringsNothingBack(t *testing.T) {
	w := newWorld(t)
	w.session("old", 1)
	w.session("into", 1)
	told, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path != "/api/sessions" || r.Method != http.MethodGet {
			next.ServeHTTP(rw, r)
			return
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		once.Do(func() { close(told) })
		<-proceed
		rw.WriteHeader(rec.Code)
		_, _ = rw.Write(rec.Body.Bytes()) // the client may be gone
	})
	d := w.open()
	<-told
	w.await("both, by the stream", func() bool { list, _ := d.Sessions(); return len(list) == 2 })
	w.want(200, "POST", "/api/sessions/old/merge", w.token("A"), object{"opId": "m", "into": "into"})
	w.await("the merge", func() bool { list, _ := d.Sessions(); return len(list) == 1 })
	close(proceed)
	w.await("the list", func() bool { _, complete := d.Sessions(); return complete })
	if list, _ := d.Sessions(); len(list) != 1 || list[0].ID != "into" {
		t.Errorf("listed are %+v", list)
	}
}

// What a merge copies is no event of the session that it is copied to, and no revision of it when it
// was read before. A window of that session has it all the same.
func TestAMergeReachesTheWindowsOfItsDestination(t *testing.T) {
	w := newWorld(t)
	w.session("old", 0)
	w.session("into", 2)
	w.want(200, "POST", "/api/sessions/old/import", w.token("A"), object{
		"opId": "i", "messages": []object{{"localId": "h1", "payload": "history"}},
	})
	d := w.open().ready(2)
	window := d.look("into", 2)
	w.want(200, "POST", "/api/sessions/old/merge", w.token("A"), object{"opId": "m", "into": "into"})
	w.await("the copy", func() bool { return len(window.Snapshot().Messages) == 3 })
	if got := window.Snapshot(); got.Through != 2 {
		t.Errorf("the receipt is %d", got.Through)
	}
}

// The operations of a long list do not wait for each other, and are not all sent at once.
func TestAllReadsAreSentSomeAtATime(t *testing.T) {
	w := newWorld(t)
	const sessions, most = 11, 4
	for i := range sessions {
		w.session(fmt.Sprint("s", i), 1)
	}
	d := w.open().ready(sessions)
	var now, peak atomic.Int64
	proceed := make(chan struct{})
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && r.Header.Get("Direct") == "" {
			n := now.Add(1)
			defer now.Add(-1)
			for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
			}
			w.moved()
			<-proceed
		}
		next.ServeHTTP(rw, r)
	})
	list, _ := d.Sessions()
	if err := d.MarkAllRead(list); err != nil {
		t.Fatal(err)
	}
	w.await("some at once", func() bool { return now.Load() == most })
	close(proceed)
	d.drained()
	for i := range sessions {
		if said := w.said(fmt.Sprint("s", i)); said != "1 1 false 0" {
			t.Errorf("s%d is %s", i, said)
		}
	}
	if p := peak.Load(); p != most {
		t.Errorf("%d at once", p)
	}
}
