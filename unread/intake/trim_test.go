package intake

import (
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// trimmed is a trim of entries by their authors, the first one above the floor of from.
func trimmed(s readstate.ScopeID, from readstate.Revision, authors ...readstate.MemberID) ScopeTrimmed {
	ev := ScopeTrimmed{Scope: s, Floor: from + readstate.Revision(len(authors))}
	for i, m := range authors {
		r := from + readstate.Revision(i) + 1
		ev.Trimmed = append(ev.Trimmed, MessageFacts{Seq: readstate.Seq(r), Revision: r, Author: m})
	}
	return ev
}

// said are messages of a channel by their authors, after the first ones.
func said(s readstate.ScopeID, after readstate.Revision, authors ...readstate.MemberID) (events []Event) {
	for i, m := range authors {
		events = append(events, msg(s, after+readstate.Revision(i)+1, m))
	}
	return events
}

// A floor and the rows that it moves go to the table in any number of writes. Whatever part of them a
// crash cuts off, nobody is shown a count that was never true, and whom the trim did not name is shown
// theirs.
// covers: RT-356 RT-357
func TestTrimCutOff(t *testing.T) {
	seen := map[string]int{}
	for cut := 0; ; cut++ {
		cfg := Config{}
		cfg.Flush.FlushBatchSize = 1
		cfg.Limits.Cached = 1
		b := newBench(t, cfg)
		b.tell(room("c", "a", "b", "reader")...)
		b.tell(said("c", 0, "b", "b", "a", "a", "b", "a")...)
		b.restart()
		b.tell(trimmed("c", 0, "b", "b", "a", "a"))
		b.store.failAfter(cut)
		err := b.f.Flush(t.Context())
		b.store.failAfter(-1)
		b.crash()
		for m, want := range map[readstate.MemberID][2]uint64{"a": {3, 1}, "b": {3, 1}, "reader": {6, 2}} {
			row, rowErr := b.row(m, "c")
			switch {
			case rowErr != nil && m != "reader" && row.State == unread.Stale:
				seen["withheld"]++
			case rowErr == nil && row.Values.Unread == want[0]:
				seen["before"]++
			case rowErr == nil && row.Values.Unread == want[1]:
				seen["after"]++
			default:
				t.Errorf("after %d writes %s sees %d %s, %v", cut, m, row.Values.Unread, row.State, rowErr)
			}
		}
		// Whoever is withheld is settled by a cursor, and stays so over the next floor.
		b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 6, Head: 6})
		b.tell(said("c", 6, "a", "b", "a")...)
		b.shows("b", "c", 2, unread.Ready)
		b.restart()
		b.shows("b", "c", 2, unread.SnapshotServing)
		if s := b.f.Stats(); s.Failures+s.Runtime.Alarms+s.Books.Damaged+s.Books.Contradictions > 0 {
			t.Errorf("after %d writes: %+v", cut, s)
		}
		if err == nil {
			break
		}
	}
	if seen["withheld"] == 0 || seen["before"] == 0 || seen["after"] == 0 {
		t.Errorf("%v", seen)
	}
}

// A trim that does not tell all of what it took leaves exact rows that reach below it in doubt, and
// one that ends above the head tells where the head is.
// covers: RT-226 RT-245
func TestPartialTrims(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b", "ahead")...)
	b.tell(said("c", 0, "b", "b", "a", "a", "b", "a")...)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "ahead", Revision: 5, Head: 6})
	b.shows("b", "c", 3, unread.Ready)
	b.tell(trimmed("c", 0, "b", "b"))
	b.shows("b", "c", 3, unread.Ready)
	if s := b.f.Stats(); s.PendingFrontiers+s.Books.Gaps > 0 {
		t.Errorf("a whole trim is in doubt: %+v", s)
	}
	b.tell(trimmed("c", 3, "a")) // and the third one before it
	b.hides("b", "c", unread.Stale)
	b.shows("ahead", "c", 1, unread.Ready)
	b.tell(ScopeTrimmed{Scope: "c", Floor: 3}) // an older one
	b.shows("ahead", "c", 1, unread.Ready)
	b.tell(ScopeTrimmed{Scope: "c", Floor: 8})
	b.hides("ahead", "c", unread.Stale)
	sp := b.f.all()[0]
	if at, _ := sp.book.Scope(sp.names.ScopeKey("c")); at.Ranks.Floor != 8 || at.Ranks.Head != 8 {
		t.Errorf("the scope stands at %+v", at.Ranks)
	}
	b.tell(said("c", 8, "a")...)
	for _, m := range []readstate.MemberID{"b", "ahead"} {
		b.tell(ReadCursorAdvanced{Scope: "c", Member: m, Revision: 9, Head: 9})
	}
	b.tell(said("c", 9, "a", "b")...)
	b.shows("b", "c", 1, unread.Ready)
	b.shows("ahead", "c", 2, unread.Ready)
	b.tell(ScopeTrimmed{Scope: "c", Floor: 1 << 40}) // no loss explains that
	b.tell(said("c", 11, "a")...)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 11, Head: 12})
	b.shows("b", "c", 1, unread.Ready)
	if s := b.f.Stats(); s.Runtime.Alarms+s.Books.Contradictions > 0 || s.Failures != 1 {
		t.Errorf("%+v", s)
	}
}

// Facts that contradict what was told withhold the row that they contradict, and no other.
func TestWrongFacts(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Held = 1 // the removed entry is held no longer: the program's word is all there is
	b := newBench(t, cfg)
	b.tell(room("c", "a", "b", "x")...)
	b.tell(room("d", "a", "b")...)
	b.tell(append(said("c", 0, "b", "b"), said("d", 0, "a")...)...)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "x", Revision: 1})
	b.shows("b", "c", 0, unread.Ready)
	b.tell(MessageRewound{Scope: "c", Removed: []MessageFacts{{Seq: 1, Revision: 1, Author: "x"}}})
	b.hides("b", "c", unread.Unavailable) // memory is read again
	for range 3 {
		b.hides("b", "c", unread.Stale)
		b.shows("b", "d", 1, unread.Ready)
		b.shows("a", "c", 1, unread.Ready)
	}
	alarms := b.f.Stats().Runtime.Alarms
	b.tell(said("c", 2, "a")...)
	b.hides("b", "c", unread.Stale)
	b.restart()
	b.hides("b", "c", unread.Stale)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 3, Head: 3})
	b.tell(said("c", 3, "a")...)
	b.shows("b", "c", 1, unread.Ready)
	if s := b.f.Stats(); alarms > 1 || s.Runtime.Alarms > 0 || s.Books.Damaged > 0 {
		t.Errorf("%d alarms, %+v", alarms, s)
	}
}

// A row that an event took below zero is withheld, over restarts too, until a cursor settles it; it is
// not taken for damage.
func TestContradictedRowComesBack(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(append(said("c", 0, "b", "b"),
		MessageRewound{Scope: "c", Removed: []MessageFacts{{Seq: 1, Revision: 1, Author: "b"}}})...)
	b.restart() // nobody holds the second message now
	b.shows("b", "c", 0, unread.SnapshotServing)
	b.tell(MessageEdited{Scope: "c", Was: MessageFacts{Revision: 2, Author: "a", Mentions: []readstate.MemberID{"b"}}})
	b.hides("b", "c", unread.Stale)
	if s := b.f.Stats(); s.Books.Contradictions != 1 {
		t.Errorf("%+v", s.Books)
	}
	b.restart()
	b.hides("b", "c", unread.Stale)
	b.tell(said("c", 2, "b", "a")...)
	b.restart()
	b.hides("b", "c", unread.Stale)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 4, Head: 4})
	b.tell(said("c", 4, "b", "a")...)
	b.shows("b", "c", 1, unread.Ready)
	if s := b.f.Stats(); s.Failures+s.Runtime.Alarms+s.Books.Damaged > 0 {
		t.Errorf("%+v", s)
	}
}
