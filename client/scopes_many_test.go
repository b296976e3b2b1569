package client_test

import (
	"fmt"
	"testing"
)

// A stream tells messages of 100 scopes. Windows of more are live all the same: counts of all scopes
// are told, and a window that is told no messages asks for them.
func TestMoreWindowsThanAStreamTells(t *testing.T) {
	w := newWorld(t)
	const many = 102
	name := func(i int) string { return fmt.Sprintf("c%03d", i) }
	for i := range many {
		w.channel(name(i), 1)
	}
	d := w.open().hubReady(many)
	for i := range many {
		d.lookAtScope(name(i), 1)
	}
	first, last := d.lookAtScope(name(0), 1), d.lookAtScope(name(many-1), 1)
	w.await("the stream", func() bool { return d.HubStatus().Live })
	for n := range 3 {
		w.says("B", name(0), 1)
		w.says("B", name(many-1), 1, "A")
		d.reaches(first, n+2)
		d.reaches(last, n+2)
	}
	if op := d.observe(looking(last), last); op == "" {
		t.Error("what came live is not read")
	}
	d.drained()
	d.showsScope(name(many-1), 0, 0, false, false, true)
}
