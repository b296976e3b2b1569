//go:build unix

package clusterdemo

import (
	"errors"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A process is what was done to it, and what makes no sense is refused; the end of each is waited for,
// also of one that is paused and of one that heeds no request.
func TestConditions(t *testing.T) {
	n := &Node{Name: "n", binary: "/bin/sh", args: []string{"-c", "trap '' HUP; echo here >&2; exec sleep 1000"}}
	defer n.Stop()
	for i, step := range []struct {
		do      func() error
		refused bool
		then    Condition
	}{
		{n.Kill, true, ""},
		{n.Resume, true, ""},
		{n.Start, false, Running},
		{n.Start, true, Running},
		{n.Pause, false, Paused},
		{n.Pause, true, Paused},
		{n.Start, true, Paused},
		{n.Resume, false, Running},
		{n.Kill, false, Killed},
		{n.Kill, true, Killed},
		{n.Start, false, Running},
		{n.Pause, false, Paused},
	} {
		err := step.do()
		if refused := errors.Is(err, errCondition); refused != step.refused || err != nil && !refused {
			t.Fatalf("step %d: %v", i, err)
		}
		if is := n.Condition(); is != step.then {
			t.Fatalf("step %d: it is %q", i, is)
		}
	}
	n.Stop()
	if is := n.Condition(); is != Ended {
		t.Errorf("it is %q", is)
	}
	n.Stop()
}

// What a process says is kept as far as a message needs it.
func TestTail(t *testing.T) {
	var said tail
	for range tailBytes {
		if _, err := said.Write([]byte("xy")); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = said.Write([]byte("end\n")) // never fails
	if text := said.String(); len(text) >= tailBytes || text[len(text)-4:] != "yend" {
		t.Errorf("%d bytes, %.10s", len(text), text)
	}
}
