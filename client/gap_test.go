package client_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// deaf is the way of a stream on which some of what the server says is lost. It hides the connection
// below, which the server would take over otherwise.
type deaf struct {
	to    http.ResponseWriter
	loses []byte
}

func (d deaf) Header() http.Header    { return d.to.Header() }
func (d deaf) WriteHeader(status int) { d.to.WriteHeader(status) }
func (d deaf) FlushError() error      { return http.NewResponseController(d.to).Flush() }

func (d deaf) Write(p []byte) (int, error) {
	if bytes.Contains(p, d.loses) {
		return len(p), nil
	}
	return d.to.Write(p)
}

// A message that the stream did not tell of is asked for before what follows it counts as seen.
//
// covers: SE-090
func TestAGapIsClosedBeforeWhatFollows(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/api/events" {
			rw = deaf{rw, []byte("nobody hears this")}
		}
		next.ServeHTTP(rw, r)
	})
	d := w.open().ready(1)
	window := d.look("s", 2)
	w.want(201, "POST", "/api/sessions/s/messages", w.token("A"),
		object{"localId": "unheard", "payload": "nobody hears this"})
	d.shows("s", 3, 0, false, 0) // the number is heard, and is no message
	if s := window.Snapshot(); s.Through != 2 {
		t.Errorf("the window reaches through %d", s.Through)
	}
	w.answers("s", 1)
	d.reaches(window, 4)
	rendered := looking(window)
	revisions := []readsync.Revision{}
	for _, m := range rendered.Snapshot.Messages {
		revisions = append(revisions, m.ContentRevision)
	}
	if len(revisions) != 4 || revisions[2] != 3 {
		t.Errorf("seen through 4 with %v", revisions)
	}
	d.observe(rendered, window)
	d.drained()
	if said := w.said("s"); said != "4 4 false 0" {
		t.Errorf("the server has %s", said)
	}
}
