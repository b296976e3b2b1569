package intake

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

const notUTF8 = "\xff\xfe"

// What rows cannot bring back is refused when it is told, whichever event carries it: a row is never
// found damaged for what the program was allowed to say.
// covers: RT-337
func TestRefusedIsWhatRowsCannotHold(t *testing.T) {
	const far = readstate.MaxCounter + 1
	facts := MessageFacts{Seq: 1, Revision: 1, Author: "a"}
	with := func(change func(x *MessageFacts)) MessageFacts {
		x := facts
		change(&x)
		return x
	}
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"))
	for i, ev := range []Event{
		MessageStored{Scope: notUTF8, Seq: 2, Revision: 2, Author: "a"},
		MessageStored{Scope: "c", Seq: 2, Revision: 2, Author: notUTF8},
		MessageStored{Scope: "c", Seq: 2, Revision: 2, Author: "a", NotifyPrincipal: notUTF8},
		MessageStored{Scope: "c", Seq: 2, Revision: 2, Author: "a", Mentions: []readstate.MemberID{"b", notUTF8}},
		MessageStored{Scope: "c", Seq: 2, Revision: 2, Author: "a", Recipients: []readstate.MemberID{notUTF8}},
		MessageStored{Scope: "c", Seq: 2, Revision: 2, Author: "a", ID: notUTF8},
		MessageStored{Scope: "c", Seq: far, Revision: 2, Author: "a"},
		MessageStored{Scope: "c", Seq: 2, Revision: 2, Author: "a", Type: 77},
		MessageStored{Scope: "c", Seq: 2, Revision: 2, Author: "a", Generation: 1 << 63},
		MessageStored{Scope: "c", Seq: 2, Revision: 2, Author: "a", RosterGeneration: 1 << 63},
		NonMessageActivityStored{Scope: "c", Seq: far, Actor: "a", HighSignal: true},
		NonMessageActivityStored{Scope: "c", Seq: 1, Actor: notUTF8},
		NonMessageActivityStored{Scope: "c", Seq: 1, Actor: "a", Recipients: []readstate.MemberID{notUTF8}},
		ReadCursorAdvanced{Scope: "c", Member: "b", Revision: far},
		ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 1, Head: far},
		ActivityReadCursorAdvanced{Scope: "c", Member: "b", Seq: far},
		ManualUnreadSet{Scope: "c", Member: "b", From: far},
		ManualUnreadSet{Scope: "c", Member: "b", Generation: 1 << 63},
		ManualUnreadCleared{Scope: "c", Member: "b", Generation: 1 << 63},
		NotificationPolicyChanged{Scope: "c", Member: "b", Level: readstate.LevelNone + 1},
		NotificationPolicyChanged{Scope: "c", Member: "b", Level: readstate.LevelNone, Until: -5},
		NotificationPolicyChanged{Scope: "c", Member: "b", Generation: 1 << 63},
		MembershipChanged{Scope: "c", Member: "x", Joined: true, EffectiveFrom: far},
		MembershipChanged{Scope: "c", Member: "x", Joined: true, Generation: 1 << 63},
		MembershipChanged{Scope: "c", Member: "x", Joined: true, RosterGeneration: 1 << 63},
		MessageVisibilityChanged{Scope: "c", Member: "b", Visible: true, Generation: 1 << 63},
		ScopeStateChanged{Scope: "d", Parent: notUTF8},
		ScopeStateChanged{Scope: "d", Name: notUTF8},
		ScopeStateChanged{Scope: "d", Type: 77},
		ScopeStateChanged{Scope: "d", Head: far},
		ScopeTrimmed{Scope: "c", Floor: far},
		ScopeTrimmed{Scope: "c", Floor: 1, Trimmed: []MessageFacts{with(func(x *MessageFacts) { x.Author = notUTF8 })}},
		MessageRewound{Scope: "c", Removed: []MessageFacts{with(func(x *MessageFacts) { x.Revision = far })}},
		MessageRewound{Scope: "c", Removed: []MessageFacts{facts}, Generation: 1 << 63},
		MessageEdited{Scope: "c", Was: facts, Mentions: []readstate.MemberID{notUTF8}},
		MessageEdited{Scope: "c", Was: with(func(x *MessageFacts) { x.Seq = far })},
		BlocksChanged{Member: notUTF8},
		BlocksChanged{Member: "b", Blocks: []readstate.MemberID{notUTF8}},
		BlocksChanged{Member: "b", Generation: 1 << 63},
		BlocksChanged{Member: "b", Blocks: []readstate.MemberID{"a"}, Known: true, Written: []Written{{Scope: notUTF8}}},
		BlocksChanged{Member: "b", Blocks: []readstate.MemberID{"a"}, Known: true, Written: []Written{
			{Scope: "c", Entries: []MessageFacts{with(func(x *MessageFacts) { x.Revision = far })}},
		}},
		BlocksChanged{Member: "b", Blocks: []readstate.MemberID{"a"}, Known: true, Written: []Written{
			{Scope: "c", Activities: []ActivityFacts{{Seq: far, Actor: "a"}}},
		}},
		EventLost{Scope: notUTF8},
	} {
		if err := b.f.Tell(space0, ev); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d: %+v: %v", i, ev, err)
		}
	}
	b.settle()
	b.restart()
	b.shows("b", "c", 1, unread.SnapshotServing)
	if s := b.f.Stats(); s.Books.Damaged+s.Runtime.Alarms > 0 {
		t.Errorf("%+v", s.Books)
	}
}

// The most and the strangest that may be told comes back: generations that are nanoseconds, ids that
// hold anything, the highest numbers.
// covers: RT-259 RT-255
func TestExtremesComeBack(t *testing.T) {
	const now = uint64(1_790_000_000_000_000_000) // nanoseconds since the Unix epoch
	b := newBench(t, Config{})
	odd := readstate.MemberID("\x00\u202e\"\\</script>\n" + string(rune(0x10ffff)))
	thread := readstate.ScopeID(" \x00t")
	parent := readstate.ScopeID("\t..*%")
	b.tell(
		ScopeStateChanged{Scope: parent, Type: readstate.Channel},
		MembershipChanged{Scope: parent, Member: "a", Joined: true, Generation: now},
		MembershipChanged{Scope: parent, Member: odd, Joined: true, Generation: now, RosterGeneration: now},
		ScopeStateChanged{Scope: thread, Parent: parent, Name: "\x00"},
		MembershipChanged{Scope: thread, Member: odd, Joined: true, Generation: math.MaxInt64},
		MessageStored{Scope: parent, Seq: readstate.MaxCounter - 1, Revision: 1, Author: "a", Mentions: []readstate.MemberID{odd}, Generation: now},
		MessageStored{Scope: thread, Seq: 1, Revision: 1, Author: "x", At: math.MinInt64, Generation: math.MaxInt64},
		MessageStored{Scope: thread, Seq: 2, Revision: 2, Author: "y", At: math.MaxInt64},
		NonMessageActivityStored{Scope: parent, Seq: readstate.MaxCounter, Actor: "a", HighSignal: true},
		MessageEdited{Scope: parent, Was: MessageFacts{Revision: 1, Author: "a", Mentions: []readstate.MemberID{odd}},
			Mentions: []readstate.MemberID{odd, "a"}, Generation: now},
		NotificationPolicyChanged{Scope: parent, Member: odd, Level: readstate.LevelMentions, Until: math.MaxInt64, Generation: now},
		ManualUnreadSet{Scope: thread, Member: odd, From: 1, Generation: now},
		BlocksChanged{Member: odd, Blocks: []readstate.MemberID{"y"}, Known: true, Generation: now},
	)
	see := func() string {
		t.Helper()
		var all string
		for _, s := range []readstate.ScopeID{parent, thread} {
			row, err := b.row(odd, s)
			if err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			all += fmt.Sprintf("%+v %+v %q %v\n", row.Values, row.Presented, row.Scope.ParentID, row.Level)
		}
		return all
	}
	want := see()
	for range 2 {
		b.restart()
		if got := see(); got != want {
			t.Errorf("came back as\n%swas\n%s", got, want)
		}
	}
	// An older generation is still older.
	b.tell(NotificationPolicyChanged{Scope: parent, Member: odd, Level: readstate.LevelAll, Generation: now - 1})
	if got := see(); got != want {
		t.Errorf("an older level made it\n%swas\n%s", got, want)
	}
	if s := b.f.Stats(); s.Books.Damaged+s.Runtime.Alarms+s.Failures > 0 {
		t.Errorf("%+v %+v", s.Books, s)
	}
}
