package unread

import (
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

type rareCase struct {
	setup, then []string
	member      readstate.MemberID
	scope       readstate.ScopeID
	want        readstate.Presented
}

var rareCases = map[string]rareCase{
	"an edit newly names a member at mentions": {
		[]string{"post s1 A", "level s1 B mentions"}, []string{"edit s1 1 @B"}, "B", "s1",
		readstate.Presented{Counts: true, Shown: true, Unread: 1, Attention: 1},
	},
	"an edit to everyone for a member at mentions": {
		[]string{"post s1 A", "level s1 B mentions"}, []string{"edit s1 1 everyone"}, "B", "s1",
		readstate.Presented{Counts: true, Shown: true, Unread: 1, Attention: 1},
	},
	"a session's run ends": {
		[]string{"create s2 session B", "run s2 active thinking", "post s2 B"},
		[]string{"run s2 active"}, "B", "s2",
		readstate.Presented{Counts: true, Shown: true, Unread: 1},
	},
	"an unblock": {
		[]string{"block B A", "post s1 A @B"}, []string{"unblock B A"}, "B", "s1",
		readstate.Presented{Counts: true, Shown: true, Unread: 1, Attention: 1},
	},
	"the pair of a first-time writer": {
		[]string{"block B C", "post s1 A"}, []string{"post s1 C @B", "activity s1 C"}, "B", "s1",
		readstate.Presented{Counts: true, Shown: true, Unread: 1},
	},
	"a first-time actor, who writes later": {
		[]string{"block B C"}, []string{"activity s1 C", "post s1 C", "post s1 A"}, "B", "s1",
		readstate.Presented{Counts: true, Shown: true, Unread: 1},
	},
	"a dm at level mentions": {
		[]string{"create s2 dm", "join s2 A", "join s2 B", "level s2 B mentions"},
		[]string{"post s2 A"}, "B", "s2",
		readstate.Presented{Counts: true, Shown: true, Unread: 1, Attention: 1},
	},
	"an unarchived channel brings its threads": {
		[]string{"post s1 A", "create s2 thread s1 root=1", "post s2 B", "archive s1", "post s2 A"},
		[]string{"unarchive s1"}, "B", "s2",
		readstate.Presented{Counts: true, Shown: true, Unread: 1},
	},
	"a channel's level brings its threads": {
		[]string{"post s1 A", "create s2 thread s1 root=1", "post s2 B", "level s1 B none", "post s2 A"},
		[]string{"level s1 B all"}, "B", "s2",
		readstate.Presented{Counts: true, Shown: true, Unread: 1},
	},
	"a level ends": {
		[]string{"level s1 B none until=9", "post s1 A"}, []string{"clock 9"}, "B", "s1",
		readstate.Presented{Counts: true, Shown: true, Unread: 1},
	},
	"a delivery and an activity of a task": {
		[]string{"create s2 task", "join s2 A", "join s2 B"},
		[]string{"post s2 A to=B", "activity s2 A to=B"}, "B", "s2",
		readstate.Presented{Counts: true, Shown: true, Unread: 1},
	},
}

// Cases that chance finds too rarely, each with rows that were loaded and found clean before.
func TestRareCases(t *testing.T) {
	for name, c := range rareCases {
		for _, limit := range []int{1, 1000} {
			t.Run(fmt.Sprintf("%s/%d", name, limit), func(t *testing.T) {
				d := newDesk(t, Config{MaxFirePerTick: limit}, room...)
				d.load("A", "B", "C")
				w := d.watch("B")
				d.do(c.setup...)
				d.load("A", "B", "C")
				for _, m := range []readstate.MemberID{"A", "B", "C"} {
					d.dot(m)
					d.summary(m)
				}
				d.told(w)
				d.do(c.then...)
				if !d.dot(c.member) {
					t.Error("no dot")
				}
				if got := d.row(c.member, c.scope).Presented; got != c.want {
					t.Errorf("presented %+v, want %+v", got, c.want)
				}
				for d.space().st.pending() {
					d.r.step(d.space())
				}
				if _, due, _ := d.r.agenda.take(d.r.now()); len(due) > 0 {
					d.r.keep(due[0])
				}
				if got := d.told(w); len(got) == 0 {
					t.Error("the watch hears nothing")
				}
				d.agree()
			})
		}
	}
}
