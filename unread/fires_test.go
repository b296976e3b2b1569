package unread

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// fired is how many rows a read of the member's badge finds among the candidates. It is exact
// where none of them is unread: each is checked once to see that, and once to put it back.
func (d *desk) fired(m readstate.MemberID) uint64 {
	d.t.Helper()
	before := d.r.Stats().CandidateChecks
	if s := d.summary(m); s.Badge.Conversations > 0 {
		d.t.Fatalf("%s has unread: %+v", m, s.Badge)
	}
	return (d.r.Stats().CandidateChecks - before) / 2
}

// quiet is something that happens and makes nothing unread for the members named, in whose
// places it fires so many rows.
type quiet struct {
	setup []string
	then  string
	fired map[readstate.MemberID]uint64
}

// thread is a thread of s1 which A and B follow, all of it read.
var thread = []string{
	"post s1 A", "create s2 thread s1 root=1", "post s2 B", "read s1 B 1 v=0", "read s2 A 1 v=0",
}

var quietCases = map[string]quiet{
	"a message, for who is muted": {
		[]string{"level s1 B none"}, "post s1 A @B", map[readstate.MemberID]uint64{"B": 0},
	},
	"a message to everyone, for who is muted": {
		[]string{"level s1 B none"}, "post s1 A everyone", map[readstate.MemberID]uint64{"B": 0},
	},
	"a message, for who does not see the scope": {
		[]string{"hide s1 B"}, "post s1 A @B", map[readstate.MemberID]uint64{"B": 0},
	},
	"a message, for who left": {
		[]string{"leave s1 B"}, "post s1 A @B", map[readstate.MemberID]uint64{"B": 0},
	},
	"a message at level mentions": {
		[]string{"level s1 B mentions"}, "post s1 A", map[readstate.MemberID]uint64{"B": 0},
	},
	"a message that names another": {
		[]string{"level s1 B mentions"}, "post s1 A @C", map[readstate.MemberID]uint64{"B": 0},
	},
	"a message that names its author": {
		[]string{"level s1 B mentions"}, "post s1 B @B", map[readstate.MemberID]uint64{"B": 0},
	},
	"a message that names its principal": {
		[]string{"level s1 B mentions"}, "post s1 A as=B @B", map[readstate.MemberID]uint64{"B": 0},
	},
	"a delivery, for its author and for others": {
		[]string{"create s2 task", "join s2 A", "join s2 B", "join s2 C"}, "post s2 A @B to=A,C",
		map[readstate.MemberID]uint64{"A": 0, "B": 0},
	},
	"a task's activity, for its actor and for others": {
		[]string{"create s2 task", "join s2 A", "join s2 B", "join s2 C"}, "activity s2 A to=A,C",
		map[readstate.MemberID]uint64{"A": 0, "B": 0},
	},
	"an edit that names once more": {
		[]string{"post s1 A @B", "read s1 B 1 v=0"}, "edit s1 1 @B,C",
		map[readstate.MemberID]uint64{"B": 0},
	},
	"an edit that names nobody any more": {
		[]string{"post s1 A @B", "read s1 B 1 v=0"}, "edit s1 1",
		map[readstate.MemberID]uint64{"B": 0},
	},
	"an edit that takes everyone back": {
		[]string{"level s1 B mentions", "post s1 A everyone", "read s1 B 1 v=0"}, "edit s1 1",
		map[readstate.MemberID]uint64{"B": 0},
	},
	"an activity of low signal": {
		nil, "activity s1 A low", map[readstate.MemberID]uint64{"B": 0},
	},
	"a removal": {
		[]string{"post s1 A", "read s1 B 1 v=0"}, "remove s1 1",
		map[readstate.MemberID]uint64{"B": 0},
	},
	"a trim": {
		[]string{"post s1 A", "read s1 B 1 v=0", "post s1 B"}, "trim s1 1",
		map[readstate.MemberID]uint64{"B": 0},
	},
	"archiving": {
		thread, "archive s1", map[readstate.MemberID]uint64{"A": 0, "B": 0},
	},
	"a read elsewhere": {
		[]string{"create s2 channel", "join s2 A", "join s2 B"}, "unread s1 A v=0",
		map[readstate.MemberID]uint64{"B": 0},
	},
	"a read of a channel, for its threads": {
		append(slices.Clone(thread), "post s1 A @B", "level s1 B none"), "read s1 B 2 v=0",
		map[readstate.MemberID]uint64{"B": 1},
	},
	"a channel's level, for its threads": {
		thread, "level s1 B mentions", map[readstate.MemberID]uint64{"B": 2},
	},
	"an unblock of who never wrote": {
		[]string{"block B D"}, "unblock B D", map[readstate.MemberID]uint64{"B": 0},
	},
	"an unarchived channel": {
		append(slices.Clone(thread), "level s1 B mentions", "archive s1"), "unarchive s1",
		map[readstate.MemberID]uint64{"A": 2, "B": 2},
	},
	"an unarchived channel, for who is muted": {
		append(slices.Clone(thread), "level s1 B none", "archive s1"), "unarchive s1",
		map[readstate.MemberID]uint64{"B": 0},
	},
}

// What makes nothing unread fires nobody, so that it costs nobody's next read anything.
func TestQuietThings(t *testing.T) {
	for name, c := range quietCases {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, Config{}, append(slices.Clone(room), c.setup...)...)
			d.load("A", "B", "C")
			for _, m := range []readstate.MemberID{"A", "B", "C"} {
				d.dot(m)
				d.summary(m)
			}
			d.do(c.then)
			for _, m := range slices.Sorted(maps.Keys(c.fired)) {
				if got := d.fired(m); got != c.fired[m] {
					t.Errorf("%d rows of %s fired, want %d", got, m, c.fired[m])
				}
			}
			d.agree()
		})
	}
}

// A level that ends fires its row and the threads that inherit it, and none with a level of its
// own.
func TestEndOfALevelFires(t *testing.T) {
	for level, want := range map[string]uint64{"inherit": 2, "all": 1} {
		d := newDesk(t, Config{}, append(append(slices.Clone(room), thread...),
			"level s1 B none until=9", "level s2 B "+level)...)
		d.load("B")
		d.dot("B")
		d.do("clock 8")
		before := d.r.Stats().CandidateChecks
		d.dot("B")
		if n := d.r.Stats().CandidateChecks - before; n != 0 {
			t.Errorf("%s: %d checks before the end", level, n)
		}
		d.do("clock 1")
		d.dot("B")
		if n := d.r.Stats().CandidateChecks - before; n != want {
			t.Errorf("%s: %d checks at the end, want %d", level, n, want)
		}
	}
}

// A channel with more threads than the member has rows, and one with fewer: what happens to the
// channel's row reaches the member's threads in both, and no row of another channel.
func TestThreadsAreFoundEitherWay(t *testing.T) {
	for _, more := range []int{0, 9} {
		d := newDesk(t, Config{}, append(slices.Clone(room), "post s1 A", "create s2 thread s1 root=1",
			"post s2 B", "create s3 channel", "join s3 A", "join s3 B")...)
		for i := range more {
			d.do("post s1 A", fmt.Sprintf("create s%d thread s1 root=%d", 10+i, 2+i))
		}
		d.load("A", "B")
		d.do("level s1 B none", "post s2 A")
		if d.dot("B") {
			t.Errorf("%d more threads: a thread of a muted channel shows", more)
		}
		w := d.watch("B")
		d.do("level s1 B mentions", "post s2 A @B")
		if got := sorted(d.told(w)); !slices.Equal(got, []string{"B s1", "B s2"}) {
			t.Errorf("%d more threads: told %v", more, got)
		}
		if !d.dot("B") || d.summary("B").Badge.Messages != 1 {
			t.Errorf("%d more threads: %+v", more, d.summary("B").Badge)
		}
		d.do("hide s1 B")
		want := []string{"B s1 removed", "B s2 removed"}
		if got := sorted(d.told(w)); !slices.Equal(got, want) {
			t.Errorf("%d more threads: told %v", more, got)
		}
		d.agree()
	}
}

// Only who is connected has a timer for the end of a level; everybody's next read looks by itself.
func TestTimersOfTheConnected(t *testing.T) {
	d := newDesk(t, Config{}, append(slices.Clone(room), "level s1 B none until=60")...)
	due := func() int {
		_, due, _ := d.r.agenda.take(100_000)
		return len(due)
	}
	d.load("B", "C")
	d.do("level s1 C none until=50")
	if n := due(); n != 0 {
		t.Errorf("%d timers of nobody", n)
	}
	w := d.watch("B")
	if n := due(); n != 1 {
		t.Errorf("%d timers of one who connected", n)
	}
	d.do("level s1 B none until=70")
	if n := due(); n != 0 {
		t.Errorf("%d timers more, although the first is still to come", n)
	}
	d.do("level s1 B none until=40")
	w.Close()
	if n := due(); n != 0 {
		t.Errorf("%d timers of one who disconnected", n)
	}
	again := d.watch("B")
	d.do("level s1 B none until=30")
	if _, due, _ := d.r.agenda.take(39_000); len(due) != 1 {
		t.Errorf("%d timers of an earlier end", len(due))
	}
	again.Remove("B")
	if n := due(); n != 0 {
		t.Errorf("%d timers of one who is watched no more", n)
	}
}

// Whoever acts has nothing new by that: their row stays where it waits, and a look at the dot
// checks nothing.
func TestAnActFiresOthersOnly(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.load("A", "B")
	d.dot("A")
	d.dot("B")
	d.do("activity s1 A")
	for member, unread := range map[readstate.MemberID]bool{"A": false, "B": true} {
		before := d.r.Stats().CandidateChecks
		if dot := d.dot(member); dot != unread {
			t.Errorf("%s: dot %t", member, dot)
		}
		if checked := d.r.Stats().CandidateChecks > before; checked != unread {
			t.Errorf("%s: checked %t", member, checked)
		}
	}
	d.agree()
}
