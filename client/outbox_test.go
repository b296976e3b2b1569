package client_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
	"github.com/tidemark-im/tidemark/httpapi"
)

// at reopens a file with a clock.
func at(d *device) func(*deviceOptions) {
	return func(o *deviceOptions) { o.path, o.clock = d.path, d.clock }
}

// A disk that is full refuses the read; nothing is shown, and it can be tried again.
//
// covers: SE-093
func TestNothingIsShownThatIsNotSaved(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	w.session("untouched", 2)
	d := w.open().ready(2)
	window := d.look("untouched", 2)
	w.guard(offline)
	if err := d.Fill(); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 1000 { // the last pages have some room
		seen := d.see("s")
		if seen.ManualUnread {
			_, err = d.MarkRead(seen)
		} else {
			_, err = d.MarkUnread(seen)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("the disk does not get full")
	}
	pending := d.Status().Pending
	list, _ := d.Sessions()
	for what, attempt := range map[string]func() error{
		"a reading": func() error { _, err := window.Observe(looking(window)); return err },
		"a read":    func() error { _, err := d.MarkRead(d.see("untouched")); return err },
		"a mark":    func() error { _, err := d.MarkUnread(d.see("untouched")); return err },
		"all reads": func() error { return d.MarkAllRead(list) },
	} {
		if err := attempt(); err == nil {
			t.Errorf("%s was saved on a full disk", what)
		}
		if got := d.state("untouched"); got != "2 0 false 0" || d.Status().Pending != pending {
			t.Errorf("after %s: %s", what, got)
		}
	}
	if err := d.Empty(); err != nil {
		t.Fatal(err)
	}
	if op := d.observe(looking(window), window); op == "" {
		t.Error("the reading cannot be tried again")
	}
	w.guard(nil)
	d.Foreground()
	d.drained()
	if said := w.said("untouched"); said != "2 2 false 0" {
		t.Errorf("the server has %s", said)
	}
}

// covers: SE-094
func TestTransientFailuresAreRetried(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	failures := 0
	var mu sync.Mutex
	count := func() int { mu.Lock(); defer mu.Unlock(); return failures }
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		passes := r.Method != http.MethodPut || r.Header.Get("Direct") != "" || failures == 6
		if !passes {
			failures++
		}
		kind := failures
		mu.Unlock()
		if passes {
			next.ServeHTTP(rw, r)
			return
		}
		switch kind {
		case 1, 2:
			rw.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			panic(http.ErrAbortHandler)
		case 4:
			rw.WriteHeader(http.StatusNotFound) // somebody else's page
		case 5:
			http.Redirect(rw, r, "http://localhost/", http.StatusTemporaryRedirect)
		default:
			_, _ = rw.Write([]byte("<html>Sign in to the network</html>"))
		}
	})
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 6; n++ {
		w.await("an attempt", func() bool { return count() >= n && d.Status().Waiting != nil })
		if d.state("s") != "2 2 false 0" {
			t.Errorf("after %d failures: %s", n, d.state("s"))
		}
		w.await("the next one", func() bool {
			d.clock.advance(time.Minute)
			return count() > n || n == 6 && d.Status().Pending == 0
		})
	}
	d.drained()
	if said := w.said("s"); said != "2 2 false 0" || len(d.events(client.EventLost)) != 0 {
		t.Errorf("the server has %s, lost %v", said, d.events(client.EventLost))
	}
	w.await("nothing to wait for", func() bool { return d.Status().Waiting == nil })
}

// covers: SE-095 SE-097
func TestOperationsOutliveTheProcess(t *testing.T) {
	w := newWorld(t)
	for _, s := range []string{"a", "b", "c"} {
		w.session(s, 2)
	}
	d := w.open().ready(3)
	w.guard(offline)
	if _, err := d.MarkRead(d.see("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.MarkUnread(d.see("b")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.MarkRead(d.see("b")); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	ids := stored(t, d.path, "id")
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = id != ""
	}
	if len(ids) != 3 || len(seen) != 3 {
		t.Errorf("the file has the ids %v", ids)
	}
	w.answers("a", 1)
	w.guard(nil)
	again := w.open(at(d)).ready(3)
	again.drained()
	for session, want := range map[string]string{"a": "3 2 false 0", "b": "2 2 false 2", "c": "2 0 false 0"} {
		if said := w.said(session); said != want {
			t.Errorf("%s: the server has %s, want %s", session, said, want)
		}
	}
	again.shows("a", 3, 2, false, 0)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if left := stored(t, d.path, "id"); len(left) != 0 {
		t.Errorf("the file has %v", left)
	}
}

// stored reads a column of a file that no client has open.
func stored(t *testing.T, path, column string) []string {
	t.Helper()
	return storedIn(t, "operations", path, column)
}

func storedIn(t *testing.T, table, path, column string) []string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT " + column + " FROM " + table + " ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// covers: SE-096
func TestForegroundRetriesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	w.guard(refusing(503, "unavailable"))
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	w.await("a failure", func() bool { return d.Status().Waiting != nil })
	w.guard(nil)
	d.Foreground() // the clock stands
	d.drained()
	if said := w.said("s"); said != "2 2 false 0" {
		t.Errorf("the server has %s", said)
	}
}

// An attempt that was under way when the app came to the front fails for reasons of before.
//
// covers: SE-096
func TestForegroundDuringAnAttempt(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	arrived, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		first := false
		if r.Method == http.MethodPut && r.Header.Get("Direct") == "" {
			once.Do(func() { first = true })
		}
		if first {
			close(arrived)
			<-proceed
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		next.ServeHTTP(rw, r)
	})
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	<-arrived
	d.Foreground()
	close(proceed)
	d.drained() // the clock stands
	if said := w.said("s"); said != "2 2 false 0" {
		t.Errorf("the server has %s", said)
	}
}

// covers: SE-099 SE-100 SE-101
func TestRefusedOperationsAreRolledBack(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	for i, refusal := range []struct {
		status int
		code   string
	}{{400, "revision_in_future"}, {403, "forbidden"}, {404, "not_found"}} {
		w.guard(refusing(refusal.status, refusal.code))
		id, err := d.MarkRead(d.see("s"))
		if err != nil {
			t.Fatal(err)
		}
		w.await("a loss", func() bool { return len(d.events(client.EventLost)) == i+1 })
		if got := d.state("s"); got != "2 0 false 0" || d.Status().Pending != 0 {
			t.Errorf("after %d: %s", refusal.status, got)
		}
		lost := d.Status().Lost
		if l := lost[len(lost)-1]; l.Operation.ID != id || l.Reason != readsync.Refused || l.Answer.Status != refusal.status {
			t.Errorf("after %d: lost %+v", refusal.status, l)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if left := stored(t, d.path, "id"); len(left) != 0 {
			t.Errorf("after %d the file has %v", refusal.status, left)
		}
		told := d.events(client.EventLost)
		w.guard(nil)
		d = w.open(at(d)).ready(1)
		d.mu.Lock()
		d.told = told
		d.mu.Unlock()
	}
}

// A mark that comes too late is rolled back to the server's state, what was made on top of it does
// not touch the mark of the other device, and nothing is sent with the newer version.
//
// covers: SE-102 SE-103
func TestAConflictIsRolledBackAndNotRebased(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	w.read("s", 1, 0)
	d := w.open().ready(1)
	w.guard(offline)
	if _, err := d.MarkUnread(d.see("s")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	d.shows("s", 2, 2, false, 2)
	w.mark("s", 0) // another device, to the same version
	var mu sync.Mutex
	var bodies []string
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && r.Header.Get("Direct") == "" {
			var body strings.Builder
			r.Body = teeBody{r.Body, &body}
			next.ServeHTTP(rw, r)
			mu.Lock()
			bodies = append(bodies, body.String())
			mu.Unlock()
			return
		}
		next.ServeHTTP(rw, r)
	})
	d.Foreground()
	d.drained()
	d.shows("s", 2, 2, true, 1)
	if said := w.said("s"); said != "2 2 true 1" {
		t.Errorf("the server has %s", said)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, b := range bodies {
		if !strings.Contains(b, `"expectedVersion":0`) {
			t.Errorf("sent %s", b)
		}
	}
	if len(bodies) != 2 {
		t.Errorf("sent %v", bodies)
	}
}

// covers: SE-098 SE-110
func TestAnAnswerLeavesWhatWasQueuedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.session("s", 3)
	d := w.open().ready(1)
	arrived, proceed := make(chan struct{}, 9), make(chan struct{})
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && r.Header.Get("Direct") == "" {
			arrived <- struct{}{}
			<-proceed
		}
		next.ServeHTTP(rw, r)
	})
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	<-arrived
	second, err := d.MarkUnread(d.see("s"))
	if err != nil {
		t.Fatal(err)
	}
	proceed <- struct{}{}
	<-arrived // of the second
	if n := d.Status().Pending; n != 1 {
		t.Errorf("%d operations are left", n)
	}
	d.shows("s", 3, 3, true, 1)
	close(proceed)
	d.drained()
	if said := w.said("s"); said != "3 3 true 1" || second == "" {
		t.Errorf("the server has %s", said)
	}
}

// covers: SE-104
func TestOperationsWaitForCredentials(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	var mu sync.Mutex
	token := w.token("A")
	set := func(to string) { mu.Lock(); defer mu.Unlock(); token = to }
	d := w.open(func(o *deviceOptions) {
		o.token = func(context.Context) (string, error) { mu.Lock(); defer mu.Unlock(); return token, nil }
	}).ready(1)
	set(w.sign("W", "A", httpapi.RoleMember, -time.Minute)) // expired
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	w.await("a refusal", func() bool { return errors.Is(d.Status().Waiting, client.ErrCredentials) })
	asked := len(w.requests("/api/whoami"))
	for range 5 { // the same token is not sent again
		d.Foreground()
		d.clock.advance(2 * time.Minute)
	}
	d.shows("s", 2, 2, false, 0)
	if n := len(w.requests("/api/whoami")); n != asked || d.Status().Pending != 1 {
		t.Errorf("%d more requests, %d pending", n-asked, d.Status().Pending)
	}
	set(w.sign("W", "B", httpapi.RoleMember, time.Hour)) // somebody else
	d.Renewed()
	w.await("another refusal", func() bool { return errors.Is(d.Status().Waiting, client.ErrNamespace) })
	set(w.sign("W", "A", httpapi.RoleMember, 2*time.Hour))
	d.Renewed()
	d.drained()
	if said := w.said("s"); said != "2 2 false 0" || len(d.events(client.EventLost)) != 0 {
		t.Errorf("the server has %s", said)
	}
}

// covers: SE-108
func TestClosingWaitsForTheDisk(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	writing, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d := w.open(func(o *deviceOptions) {
		o.options.OnStep(func(step string) {
			if step == "commit" {
				once.Do(func() { close(writing); <-proceed })
			}
		})
	}).ready(1)
	w.guard(offline)
	marked := make(chan error, 1)
	go func() { _, err := d.MarkRead(d.see("s")); marked <- err }()
	select {
	case <-writing:
	case err := <-marked:
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	w.await("the beginning of the end", func() bool {
		window, err := d.OpenWindow("s")
		if err == nil {
			window.Close()
		}
		return errors.Is(err, client.ErrClosed)
	})
	select {
	case <-closed:
		t.Error("closed during a write")
	default:
	}
	close(proceed)
	if err := <-marked; err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if ids := stored(t, d.path, "id"); len(ids) != 1 {
		t.Errorf("the file has %v", ids)
	}
	if _, err := d.MarkRead(d.see("s")); !errors.Is(err, client.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestOperationsAreGivenUpVisibly(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	w.guard(refusing(503, "unavailable"))
	id, err := d.MarkRead(d.see("s"))
	if err != nil {
		t.Fatal(err)
	}
	w.await("a failure", func() bool { return d.Status().Waiting != nil })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d.clock.advance(readsync.GiveUpAfter * time.Millisecond)
	again := w.open(at(d)).ready(1)
	w.await("a loss", func() bool { return len(again.events(client.EventLost)) == 1 })
	lost := again.Status().Lost
	if len(lost) != 1 || lost[0].Operation.ID != id || lost[0].Reason != readsync.TooOld {
		t.Errorf("lost %+v", lost)
	}
	again.shows("s", 2, 0, false, 0)
	again.drained()
}

// The answer to an operation may be the first that tells of a merge.
//
// covers: SE-102 SE-125 SE-126
func TestAnAnswerTellsOfAMerge(t *testing.T) {
	w := newWorld(t)
	w.session("old", 3)
	w.session("new", 1)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/api/events" {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		next.ServeHTTP(rw, r)
	})
	d := w.open()
	w.await("the list", func() bool { list, complete := d.Sessions(); return complete && len(list) == 2 })
	window := d.look("old", 3)
	w.want(200, "POST", "/api/sessions/old/merge", w.token("A"), object{"opId": "m", "into": "new"})
	d.observe(looking(window), window)
	w.await("the merge", func() bool { return len(d.events(client.EventReplaced)) == 1 })
	d.reaches(window, 4)
	d.drained()
	lost, merged := d.events(client.EventLost), d.events(client.EventReplaced)
	if len(lost) != 1 || lost[0].Loss.Answer.Code != readsync.CodeReplaced || merged[0].Session != "old" || merged[0].By != "new" {
		t.Errorf("told %+v, %+v", lost, merged)
	}
	if s := window.Snapshot(); s.Session != "new" || len(s.Messages) != 4 {
		t.Errorf("the window is of %s with %d messages", s.Session, len(s.Messages))
	}
	if _, err := d.Session("old"); !errors.Is(err, client.ErrUnknownSession) {
		t.Errorf("got %v", err)
	}
	if said := w.said("new"); said != "4 0 false 0" && said != "4 0 false 1" {
		t.Errorf("the server has %s", said)
	}
}

// A server that asks to be left alone is.
func TestRetryAfterIsKept(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && r.Header.Get("Direct") == "" {
			rw.Header().Set("Retry-After", "300")
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(rw, r)
	})
	before := len(w.requests("PUT"))
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	w.await("an attempt", func() bool { return d.Status().Waiting != nil })
	d.clock.advance(250 * time.Second)
	passed := 0
	w.await("another stream, since the first was silent", func() bool {
		if passed < 40 {
			passed++
			d.clock.advance(time.Second)
		}
		return len(w.requests("/api/events")) > 1
	})
	if n := len(w.requests("PUT")) - before; n != 1 {
		t.Errorf("%d attempts before the time", n)
	}
	w.guard(nil)
	d.clock.advance(50 * time.Second)
	d.drained()
}
