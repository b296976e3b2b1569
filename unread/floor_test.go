package unread

import (
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// What a trim does to a row that it does not name: its point stays below the floor, and so do
// its ranks of a blocked writer, whose own rank at the floor decides then.
func TestTrimUnderABlock(t *testing.T) {
	for _, first := range []bool{true, false} {
		d := newDesk(t, Config{}, room...)
		if first { // the writer comes after the block: the pair is the zero pair
			d.do("block B C", "post s1 A", "post s1 C", "post s1 C", "post s1 A")
		} else {
			d.do("post s1 A", "post s1 C", "post s1 C", "post s1 A", "block B C")
		}
		d.load("B")
		d.do("trim s1 2")
		if got := d.unread("B", "s1"); got != 1 {
			t.Errorf("block first: %t: %d unread after the trim, want 1", first, got)
		}
		d.do("post s1 C", "post s1 C everyone", "remove s1 5", "trim s1 3", "post s1 A")
		if row := d.row("B", "s1"); row.Values != (readstate.Values{Unread: 2}) {
			t.Errorf("block first: %t: %+v", first, row.Values)
		}
		d.agree()
		d.do("unblock B C")
		if row := d.row("B", "s1"); row.Values != (readstate.Values{Unread: 3, Attention: 1}) {
			t.Errorf("after the unblock: %+v", row.Values)
		}
		d.agree()
	}
}

// A floor that enters a block whose bits nobody needed so far brings them along.
func TestFloorEntersAnotherBlock(t *testing.T) {
	d := newDesk(t, Config{}, "create s1 channel", "join s1 A", "join s1 B")
	d.facts.offset[1] = readstate.BlockSize - 3
	d.do("post s1 A", "post s1 A", "post s1 A", "post s1 A", "post s1 A", "post s1 A everyone",
		"remove s1 4", "remove s1 5")
	d.load("B") // of E's block alone
	d.do("remove s1 1", "trim s1 4")
	if got := d.unread("B", "s1"); got != 1 {
		t.Errorf("%d unread, want 1", got)
	}
	d.agree()
	d.do("trim s1 6")
	if got := d.unread("B", "s1"); got != 0 {
		t.Errorf("%d unread, want 0", got)
	}
	d.agree()
	sc := d.space().st.scopes.at(d.space().st.scopeByID["s1"])
	if n := len(sc.everyone.blocks); n != 0 {
		t.Errorf("%d blocks of everyone left below the floor", n)
	}
}

// Seven cases that chance finds too rarely, each with rows that were loaded and found clean.
func TestRareCases(t *testing.T) {
	cases := map[string]struct {
		setup, then []string
		member      readstate.MemberID
		scope       readstate.ScopeID
		want        readstate.Presented
	}{
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
	for name, c := range cases {
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
