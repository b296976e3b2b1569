package unread

import (
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// A frame's badge costs the scopes that changed since the last one, however many are unread.
func TestARunningBadgeCostsWhatChanged(t *testing.T) {
	const scopes = 40
	var lines []string
	for i := range scopes {
		s := fmt.Sprintf("s%d", i+1)
		lines = append(lines, "create "+s+" channel", "join "+s+" B", "post "+s+" A")
	}
	d := newDesk(t, Config{}, lines...)
	d.load("B")
	w := d.watch("B")
	frame := func(line string) (checks uint64, badge readstate.Badge) {
		before := d.r.Stats().CandidateChecks
		d.do(line)
		deltas := w.Next(100)
		if len(deltas) != 1 {
			t.Fatalf("%q: %d deltas", line, len(deltas))
		}
		return d.r.Stats().CandidateChecks - before, deltas[0].Summary.Badge
	}
	frame("post s1 A") // the first one adds everything up
	want := readstate.Badge{Messages: scopes + 1, Conversations: scopes}
	for _, c := range []struct {
		line               string
		messages, channels int
	}{{"post s7 A", 1, 0}, {"read s7 B 2 v=0", -2, -1}, {"post s7 A", 1, 1}} {
		want.Messages += uint64(c.messages)
		want.Conversations += uint64(c.channels)
		checks, got := frame(c.line)
		if got != want {
			t.Errorf("%q: badge %+v, want %+v", c.line, got, want)
		}
		if checks > 3 { // the row, and what is tidied
			t.Errorf("%q: %d rows were looked at of %d", c.line, checks, scopes)
		}
	}
	d.agree()
}
