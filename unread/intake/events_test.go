package intake

import (
	"errors"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// every kind of event, in an order in which all of them change something.
func everything() []Event {
	return append(room("c", "a", "b", "x"),
		MessageStored{
			Scope: "c", Seq: 1, Revision: 1, ID: "m1", Author: "a", NotifyPrincipal: "x",
			Mentions: []readstate.MemberID{"b"}, Generation: 1, RosterGeneration: 1,
		},
		msg("c", 2, "a"),
		MessageStored{Scope: "c", Seq: 3, Author: "a"}, // for no human's eye
		MessageStored{Scope: "c", Seq: 4, Revision: 3, Author: "a"},
		MessageEdited{
			Scope: "c", Was: MessageFacts{Revision: 2, Author: "a"}, Mentions: []readstate.MemberID{"b"},
			Generation: 1,
		},
		NonMessageActivityStored{Scope: "c", Seq: 1, Actor: "a", HighSignal: true, ActivityType: "reaction"},
		NonMessageActivityStored{Scope: "c", Seq: 2, Actor: "a", ActivityType: "typing done"},
		ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 1},
		ActivityReadCursorAdvanced{Scope: "c", Member: "x", Seq: 1},
		ManualUnreadSet{Scope: "c", Member: "x", From: 3, Generation: 1},
		ManualUnreadSet{Scope: "c", Member: "b", Generation: 1},
		ManualUnreadCleared{Scope: "c", Member: "b", Generation: 2},
		NotificationPolicyChanged{Scope: "c", Member: "x", Level: readstate.LevelMentions, Generation: 3},
		MessageVisibilityChanged{Scope: "c", Member: "a", Generation: 5},
		MessageVisibilityChanged{Scope: "c", Member: "a", Visible: true, Generation: 6},
		MembershipChanged{Scope: "c", Member: "y", Joined: true, Generation: 2},
		MessageRewound{Scope: "c", Removed: []MessageFacts{{Revision: 3, Author: "a"}}, Generation: 2},
		msg("c", 5, "b").at(4),
		ScopeStateChanged{Scope: "c", Name: "sea", Archived: true},
		ScopeStateChanged{Scope: "c", Name: "sea"},
	)
}

// at gives a message another revision than its seq.
func (e MessageStored) at(r readstate.Revision) MessageStored {
	e.Revision = r
	return e
}

func (b *bench) everyone() map[readstate.MemberID]unread.Row {
	b.t.Helper()
	rows := map[readstate.MemberID]unread.Row{}
	for _, m := range []readstate.MemberID{"a", "b", "x", "y"} {
		row, err := b.row(m, "c")
		if err != nil {
			b.t.Fatalf("%s: %v", m, err)
		}
		row.LSN, row.Ranks.LastLSN = 0, 0
		rows[m] = row
	}
	return rows
}

// Told twice, in order or out of it, is told once.
// covers: RT-031 RT-039 RT-040 RT-100 RT-101 RT-102 RT-099 RT-269 RT-247
func TestEventsTwice(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		b := newBench(t, Config{})
		events := everything()
		b.tell(events...)
		if restarts {
			b.restart()
		} else {
			b.flush()
		}
		want := b.everyone()
		for i, v := range map[readstate.MemberID]readstate.Values{
			"a": {Unread: 1}, "b": {Unread: 1, Attention: 1, Activity: 1},
			"x": {Unread: 2}, "y": {Unread: 1},
		} {
			if want[i].Values != v {
				t.Errorf("%s has %+v, want %+v", i, want[i].Values, v)
			}
		}
		b.store.written()
		for _, ev := range events {
			switch ev.(type) {
			case MembershipChanged, MessageVisibilityChanged, ManualUnreadSet, ManualUnreadCleared,
				ScopeStateChanged:
				continue // without a generation, or not the newest: below
			}
			b.tell(ev, ev)
		}
		b.tell(
			ManualUnreadSet{Scope: "c", Member: "b", Generation: 1},
			NotificationPolicyChanged{Scope: "c", Member: "x", Level: readstate.LevelNone, Generation: 2},
			MessageVisibilityChanged{Scope: "c", Member: "a", Generation: 5},
			MembershipChanged{Scope: "c", Member: "y", Generation: 1},
			ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 0},
		)
		for m, row := range b.everyone() {
			if row.Values != want[m].Values || row.Presented != want[m].Presented || row.State != want[m].State {
				t.Errorf("restarts %t: %s is %+v %s, was %+v %s", restarts, m, row.Values, row.State,
					want[m].Values, want[m].State)
			}
		}
		b.flush()
		for _, row := range b.store.written() {
			if row.Member != "" {
				t.Errorf("no change wrote %+v", row)
			}
		}
		if s := b.f.Stats(); s.RepeatedEvents+s.Books.Repeated == 0 || s.Failures > 0 {
			t.Errorf("%+v", s)
		}
	}
}

// What makes no sense is refused and changes nothing.
func TestInvalidEvents(t *testing.T) {
	b := newBench(t, Config{})
	for _, ev := range []Event{
		MessageStored{Scope: "", Seq: 1, Revision: 1, Author: "a"},
		MessageStored{Scope: "c", Revision: 1, Author: "a"},
		MessageStored{Scope: "c", Seq: 1, Revision: 1},
		MessageStored{Scope: "c", Seq: 1, Revision: 1 << 60, Author: "a"},
		ReadCursorAdvanced{Scope: "c", Revision: 1},
		MembershipChanged{Scope: "c", Joined: true},
		NonMessageActivityStored{Scope: "c", Actor: "a"},
	} {
		if err := b.f.Tell(space0, ev); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", ev, err)
		}
	}
	if err := b.f.Tell("other", msg("c", 1, "a")); !errors.Is(err, unread.ErrNoWorkspace) {
		t.Error(err)
	}
	if err := b.f.Open(space0); !errors.Is(err, ErrOpen) {
		t.Error(err)
	}
}

// A cursor that stops among the messages that are held is exact. Below them nobody knows.
// covers: RT-138 RT-143
func TestPartialReads(t *testing.T) {
	b := newBench(t, Config{Limits: snapshot.Limits{Held: 3}})
	b.tell(room("c", "a", "b")...)
	for r := readstate.Revision(1); r <= 6; r++ {
		author := readstate.MemberID("a")
		if r == 5 {
			author = "b"
		}
		b.tell(msg("c", r, author))
	}
	b.shows("b", "c", 5, unread.Ready)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 4})
	b.shows("b", "c", 1, unread.Ready)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 2})
	b.shows("b", "c", 1, unread.Ready)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "a", Revision: 2})
	b.hides("a", "c", unread.Stale)
	b.restart()
	b.hides("a", "c", unread.Stale) // a flush makes no number of what nobody knew
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "a", Revision: 6, Head: 6})
	b.shows("a", "c", 0, unread.Ready)
}

// covers: RT-079 RT-139 RT-078
func TestManualMarks(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	for r := readstate.Revision(1); r <= 5; r++ {
		b.tell(msg("c", r, "a"))
	}
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 5}, ManualUnreadSet{Scope: "c", Member: "b", From: 5})
	manual := func(want bool) {
		t.Helper()
		row, err := b.row("b", "c")
		if err != nil || row.Row.Manual.Set != want {
			t.Errorf("manual %t %v", row.Row.Manual.Set, err)
		}
	}
	b.shows("b", "c", 1, unread.Ready)
	manual(true)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 4})
	manual(true)
	b.restart()
	manual(true)
	b.shows("b", "c", 1, unread.SnapshotServing)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 5, Head: 5})
	manual(false)
	b.tell(ManualUnreadSet{Scope: "c", Member: "b"})
	manual(true)
	b.tell(ManualUnreadCleared{Scope: "c", Member: "b"})
	manual(false)
}

// A row of the table carries everything that a restart needs, and the generations it was made of.
// covers: RT-038 RT-048 RT-050 RT-051 RT-255 RT-256 RT-257 RT-258 RT-259 RT-263 RT-264
func TestRowsCarryEverything(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(everything()...)
	before := b.everyone()
	b.flush()
	found := map[readstate.MemberID]snapshot.Row{}
	for _, row := range b.store.written() {
		found[row.Member] = row
	}
	x := found["x"]
	if x.MessageUnread != 2 || x.ManualUnread != 1 || x.MessageRead != 0 || x.ActivityRead != 1 ||
		x.EffectiveFrom != 1 || x.MessageAccounted != 4 || x.ActivityAccounted != 2 ||
		x.Notification != "mentions" || x.Visibility != "visible" ||
		x.Generations.Manual != 1 || x.Generations.Notification != 3 || x.Generations.Rewind != 2 ||
		x.Generations.Message != 5 || x.Generations.Activity != 2 {
		t.Errorf("%+v", x)
	}
	if g := found["y"].Generations; g.Membership != 2 {
		t.Errorf("%+v", g)
	}
	if f := found[""]; f.Ranks.Head != 4 || f.Generations.Message != 5 || f.Visibility != "open" {
		t.Errorf("%+v", f)
	}
	// Absurd generations change no value and cause no read.
	x.Generations = snapshot.Generations{Roster: 99, Message: 99, Activity: 99, Rewind: 99}
	b.put(x)
	b.crash()
	after := b.everyone()
	for m, row := range after {
		was := before[m]
		if row.State != unread.SnapshotServing || was.State != unread.Ready {
			t.Errorf("%s is %s, was %s", m, row.State, was.State)
		}
		was.State, row.State = "", ""
		was.Row.Serving, row.Row.Serving = 0, 0
		if row.Values != was.Values || row.Presented != was.Presented || row.Row != was.Row || row.Level != was.Level {
			t.Errorf("%s:\n got %+v\nwant %+v", m, row, was)
		}
	}
}
