package unread

import (
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
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

// A running badge ends with the end of a level, although no event says so.
func TestARunningBadgeEndsWithALevel(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "level s1 B none until=10", "post s1 A")...)
	d.load("B")
	d.watch("B")
	for range 2 { // the second time it runs
		if s := d.summary("B"); s.HasUnread {
			t.Fatalf("muted: %+v", s)
		}
	}
	d.facts.play(model.Op{Kind: model.OpAdvanceClock, Advance: 10})
	if s := d.summary("B"); s.Badge.Messages != 1 {
		t.Errorf("unmuted by time: %+v", s)
	}
	d.agree()
}

// Changes beyond what is kept are added up anew.
func TestARunningBadgeForgetsManyChanges(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "create s2 channel", "join s2 A", "join s2 B",
		"create s3 channel", "join s3 A", "join s3 B")...)
	d.load("B")
	w := d.watch("B")
	d.summary("B")
	for range maxChanged { // alternating scopes are changes of their own
		d.do("post s1 A", "post s2 A")
	}
	d.do("post s3 A")
	if s := d.summary("B"); s.Badge.Messages != 2*maxChanged+1 || s.Badge.Conversations != 3 {
		t.Errorf("badge %+v", s.Badge)
	}
	d.told(w)
	d.agree()
}
