package client_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/client"
)

// A refused operation is told, wherever the process is killed: by it, or by the next one. Once OnEvent
// has returned from it, nobody is told again, and it is remembered all the same.
//
// covers: SE-101
func TestLossesAreToldAfterAKill(t *testing.T) {
	w := newWorld(t)
	kinds := slices.Concat(steps, []string{"told"})
	for _, step := range kinds {
		for n := int64(1); w.killedLosing(step, n); n++ {
			if n == 100 {
				t.Fatal("it never ends")
			}
		}
		if w.steps[step] == 0 {
			t.Errorf("nobody was killed at %q", step)
		}
	}
	t.Logf("killed at %v", w.steps)
}

// killedLosing kills a child at the n-th of a step, while the server refuses its mark; false when it
// came through.
func (w *world) killedLosing(step string, n int64) bool {
	w.t.Helper()
	w.rounds++
	session := fmt.Sprint("lost-", w.rounds)
	w.session(session, 1)
	refuse := refusing(http.StatusForbidden, "forbidden")
	w.guard(refuse)
	o := orders{
		Base: w.http.URL, Token: w.token("A"), Step: step, Stop: n, Lose: true,
		Path: filepath.Join(w.t.TempDir(), "client.db"), Sessions: []string{session},
	}
	said := w.run(o, make(chan *os.Process, 1))
	how := fmt.Sprintf("killed at %q, time %d, shown %v, told of %v", said.at, n, said.shown, said.lost)
	d := w.open(func(dev *deviceOptions) { dev.path = o.Path })
	d.ready(w.rounds)
	d.drained()
	remembered := d.Status().Lost
	if len(remembered) > 1 || len(remembered) == 0 && said.shown[session] {
		w.t.Errorf("%s: remembered are %+v", how, remembered)
	}
	if len(remembered) == 1 {
		id := remembered[0].Operation.ID
		count := func() (n int) {
			for _, e := range d.events(client.EventLost) {
				if e.Session != session || e.Loss.Operation.ID != id {
					w.t.Errorf("%s: told of %+v", how, e)
				}
				n++
			}
			return n
		}
		if !slices.Contains(said.lost, id) || said.at == "told" {
			w.await("the loss", func() bool { return count() == 1 })
		}
	}
	if err := d.Close(); err != nil { // returns after what is being told
		w.t.Fatal(err)
	}
	d = w.open(at(d)).ready(w.rounds)
	if again := d.events(client.EventLost); len(again) != 0 {
		w.t.Errorf("%s: told once more of %+v", how, again)
	}
	if got := d.Status().Lost; len(got) != len(remembered) {
		w.t.Errorf("%s: remembered were %+v, and are %+v", how, remembered, got)
	}
	if err := d.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.guard(nil)
	return !said.through
}

// What was told is kept for a while, and not for ever.
func TestOldLossesAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.session("s", 1)
	w.guard(refusing(http.StatusForbidden, "forbidden"))
	d := w.open().ready(1)
	var last string
	for i := range 105 {
		id, err := d.MarkUnread(d.see("s"))
		if err != nil {
			t.Fatal(err)
		}
		last = id
		w.await("a loss", func() bool { return len(d.events(client.EventLost)) == i+1 })
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = w.open(at(d)).ready(1)
	lost := d.Status().Lost
	if len(lost) != 100 || lost[99].Operation.ID != last {
		t.Errorf("%d losses are remembered, the last is %+v", len(lost), lost[len(lost)-1])
	}
}

// A file of before losses were kept is taken over, with what is in it.
func TestFileOfBeforeLosses(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	d := w.open().ready(1)
	w.guard(refusing(http.StatusServiceUnavailable, "unavailable"))
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: d.path}).String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("DROP TABLE losses; PRAGMA user_version = 1"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	w.guard(nil)
	d = w.open(at(d)).ready(1)
	d.drained()
	d.shows("s", 2, 2, false, 0)
}

// Files of other programs beside the outbox, of times that somebody read at and of marks, are nothing
// that this client looks at.
//
// covers: SE-114
func TestFilesOfOlderClientsAreIgnored(t *testing.T) {
	w := newWorld(t)
	w.session("s", 2)
	path := filepath.Join(t.TempDir(), "client.db")
	for name, text := range map[string]string{
		"last-read.json":     `{"s":"2030-01-01T00:00:00Z"}`,
		"manual-unread.json": `["s"]`,
		"client.db.json":     `{"s":{"readRevision":9,"manualUnread":true,"version":9}}`,
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := w.open(func(dev *deviceOptions) { dev.path = path }).ready(1)
	d.shows("s", 2, 0, false, 0)
	d.drained()
	if said := w.said("s"); said != "2 0 false 0" {
		t.Errorf("the server has %s", said)
	}
}
