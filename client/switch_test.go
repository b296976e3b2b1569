package client_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A client that changes from one server to another and back, without waiting for an answer, and is
// killed on the way: what it has shown is done on the server that it was meant for, and nothing on the
// other, which has sessions of the same names.
//
// covers: SE-095 SE-105 SE-108 SE-109
func TestKilledWhileSwitching(t *testing.T) {
	here, there := newWorld(t), newWorld(t)
	for _, step := range steps {
		for n := int64(1); here.killedSwitching(there, step, n); n++ {
			if n == 100 {
				t.Fatal("it never ends")
			}
		}
	}
	t.Logf("killed at %v", here.steps)
}

// killedSwitching kills a child at the n-th of a step; false when it came through.
func (w *world) killedSwitching(other *world, step string, n int64) bool {
	w.t.Helper()
	w.rounds++
	o := orders{
		Base: w.http.URL, Token: w.token("A"), Step: step, Stop: n,
		Path:   filepath.Join(w.t.TempDir(), "client.db"),
		Switch: []string{w.http.URL, other.http.URL, w.http.URL},
	}
	for _, what := range []string{"read", "mark", "all"} {
		id := fmt.Sprintf("%s-%d", what, w.rounds)
		o.Sessions = append(o.Sessions, id)
		w.session(id, 2)
		other.session(id, 2)
	}
	ran := w.run(o, make(chan *os.Process, 1))
	for _, at := range []*world{w, other} {
		d := at.open(func(dev *deviceOptions) { dev.path = o.Path }).ready(3 * w.rounds)
		d.drained()
		if lost := d.Status().Lost; len(lost) > 0 {
			w.t.Errorf("killed at %q, time %d: lost %+v", ran.at, n, lost)
		}
		if err := d.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	const untouched = "2 0 false 0"
	for i, done := range []string{"2 2 false 0", "2 0 true 1", "2 2 false 0"} {
		meant, id := w, o.Sessions[i]
		not := other
		if i == 1 {
			meant, not = other, w
		}
		said := meant.said(id)
		if said != done && (said != untouched || ran.shown[id]) {
			w.t.Errorf("killed at %q, time %d: %s is %s, want %s", ran.at, n, id, said, done)
		}
		if said := not.said(id); said != untouched {
			w.t.Errorf("killed at %q, time %d: the other server has %s as %s", ran.at, n, id, said)
		}
	}
	return !ran.through
}
