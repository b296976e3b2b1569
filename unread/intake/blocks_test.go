package intake

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

func blocks(m readstate.MemberID, others ...readstate.MemberID) BlocksChanged {
	return BlocksChanged{Member: m, Blocks: others}
}

// counts expects all of a row's values.
func (b *bench) counts(m readstate.MemberID, s readstate.ScopeID, want readstate.Values) {
	b.t.Helper()
	row, err := b.row(m, s)
	if err != nil || row.Values != want {
		b.t.Fatalf("%s in %s: %+v %s, %v; want %+v", m, s, row.Values, row.State, err, want)
	}
}

// noise is what x and a did in a channel before anybody blocked anybody: b has four unread, two of
// them by x, and so on. One of x's messages was taken back, and one was written on b's behalf.
func noise(s readstate.ScopeID) []Event {
	return append(room(s, "a", "b", "x"),
		MessageStored{Scope: s, Seq: 1, Revision: 1, Author: "x", Mentions: []readstate.MemberID{"b"}},
		msg(s, 2, "a"),
		MessageStored{Scope: s, Seq: 3, Revision: 3, Author: "x", Everyone: true},
		MessageStored{Scope: s, Seq: 4, Revision: 4, Author: "x", NotifyPrincipal: "b"},
		MessageStored{Scope: s, Seq: 5, Revision: 5, Author: "a", Mentions: []readstate.MemberID{"b"}},
		msg(s, 6, "x"),
		MessageRewound{Scope: s, Removed: []MessageFacts{{Seq: 6, Revision: 6, Author: "x"}}},
		NonMessageActivityStored{Scope: s, Seq: 1, Actor: "x", HighSignal: true},
		NonMessageActivityStored{Scope: s, Seq: 2, Actor: "a", HighSignal: true},
	)
}

var (
	loud   = readstate.Values{Unread: 4, Attention: 3, Activity: 2}
	hushed = readstate.Values{Unread: 2, Attention: 1, Activity: 1}
)

// known is what the program knows of x in the channel of noise.
func known(s readstate.ScopeID) []Written {
	return []Written{{
		Scope: s, Entries: []MessageFacts{
			{Revision: 6, Author: "x"}, {Revision: 4, Author: "x", NotifyPrincipal: "b"},
			{Revision: 3, Author: "x", Everyone: true},
			{Revision: 1, Author: "x", Mentions: []readstate.MemberID{"b"}}, {Revision: 3, Author: "x"},
			{Revision: 2, Author: "a"},
		},
		Activities: []ActivityFacts{{Seq: 2, Actor: "a"}, {Seq: 1, Actor: "x"}, {Seq: 1, Actor: "x"}},
	}}
}

// What a blocked member wrote and did counts for nothing, from the block on, over restarts, and again
// once the block is lifted. Nobody else notices.
func TestBlocks(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(noise("c")...)
	b.counts("b", "c", loud)
	b.tell(blocks("b", "x"))
	b.counts("b", "c", hushed)
	b.shows("b", "c", 2, unread.Ready)
	b.shows("a", "c", 3, unread.Ready)
	b.tell(
		MessageStored{Scope: "c", Seq: 7, Revision: 7, Author: "x", Mentions: []readstate.MemberID{"b"}},
		MessageStored{Scope: "c", Seq: 8, Revision: 8, Author: "a", Mentions: []readstate.MemberID{"b"}},
		NonMessageActivityStored{Scope: "c", Seq: 3, Actor: "x", HighSignal: true},
	)
	b.counts("b", "c", readstate.Values{Unread: 3, Attention: 2, Activity: 1})
	b.restart()
	b.counts("b", "c", readstate.Values{Unread: 3, Attention: 2, Activity: 1})
	// A removal and an edit of what does not count change nothing, in whatever order they come.
	b.tell(MessageRewound{Scope: "c", Removed: []MessageFacts{
		{Seq: 1, Revision: 1, Author: "x", Mentions: []readstate.MemberID{"b"}},
	}}, MessageEdited{Scope: "c", Was: MessageFacts{Revision: 7, Author: "x", Mentions: []readstate.MemberID{"b"}}, Everyone: true})
	b.counts("b", "c", readstate.Values{Unread: 3, Attention: 2, Activity: 1})
	b.tell(blocks("b"))
	b.counts("b", "c", readstate.Values{Unread: 5, Attention: 4, Activity: 3})
	b.restart()
	b.counts("b", "c", readstate.Values{Unread: 5, Attention: 4, Activity: 3})
	if s := b.f.Stats(); s.Failures+s.Runtime.Alarms+s.Books.Contradictions > 0 {
		t.Errorf("%+v", s)
	}
}

// After a restart nobody holds what was written before. Rows that may count it are withheld, unless
// the program says what it was; rows with nothing unread, and the block itself, are not in doubt.
// covers: RT-226 RT-246
func TestBlocksAfterRestart(t *testing.T) {
	for name, ev := range map[string]BlocksChanged{
		"unknown": blocks("b", "x"),
		"known":   {Member: "b", Blocks: []readstate.MemberID{"x"}, Known: true, Written: known("c")},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{}
			cfg.Runtime.HydratePageSize = 2
			b := newBench(t, cfg)
			b.tell(noise("c")...)
			for _, s := range []readstate.ScopeID{"d", "e", "f"} {
				b.tell(room(s, "a", "b", "x")...)
				b.tell(msg(s, 1, "x"), ReadCursorAdvanced{Scope: s, Member: "b", Revision: 1})
			}
			b.tell(room("g", "a", "b", "x")...)
			b.tell(msg("g", 1, "x"), msg("g", 2, "a"))
			b.restart()
			b.counts("b", "c", loud)
			b.store.asked()
			if ev.Known {
				ev.Written = append(ev.Written, Written{Scope: "g", Entries: []MessageFacts{{Revision: 1, Author: "x"}}})
			}
			b.tell(ev)
			if name == "known" {
				b.shows("b", "g", 1, unread.SnapshotServing)
			} else {
				b.hides("b", "g", unread.Stale)
			}
			for _, q := range b.store.asked() {
				if q.Limit > 8 { // a page and the scopes of it
					t.Errorf("a load of %+v", q)
				}
			}
			if name == "known" {
				b.counts("b", "c", hushed)
			} else {
				b.hides("b", "c", unread.Stale)
			}
			b.shows("b", "d", 0, unread.SnapshotServing)
			for _, s := range []readstate.ScopeID{"d", "e", "f"} {
				b.tell(msg(s, 2, "x"), msg(s, 3, "a"))
				b.shows("b", s, 1, unread.SnapshotServing)
			}
			b.tell(msg("c", 7, "x"), msg("c", 8, "a"))
			b.restart()
			if name == "known" {
				b.counts("b", "c", readstate.Values{Unread: 3, Attention: 1, Activity: 1})
			} else {
				b.hides("b", "c", unread.Stale)
			}
			b.shows("b", "e", 1, unread.SnapshotServing)
			b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 8, Head: 8})
			if name == "unknown" {
				b.hides("b", "c", unread.Stale) // its activities are still in doubt
			}
			b.tell(ActivityReadCursorAdvanced{Scope: "c", Member: "b", Seq: 2})
			b.tell(msg("c", 9, "x"), msg("c", 10, "a"))
			b.counts("b", "c", readstate.Values{Unread: 1})
			if s := b.f.Stats(); s.Failures+s.Runtime.Alarms+s.Books.Contradictions > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Deliveries of a task by somebody blocked count for nothing.
func TestBlocksInTasks(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(ScopeStateChanged{Scope: "t", Type: readstate.Task},
		MembershipChanged{Scope: "t", Member: "b", Joined: true})
	to := func(r readstate.Revision, author readstate.MemberID) MessageStored {
		m := msg("t", r, author)
		m.Recipients = []readstate.MemberID{"b"}
		return m
	}
	b.tell(to(1, "x"), to(2, "a"), NonMessageActivityStored{
		Scope: "t", Seq: 1, Actor: "x", HighSignal: true, Recipients: []readstate.MemberID{"b"},
	})
	b.counts("b", "t", readstate.Values{Unread: 2, Activity: 1})
	b.tell(blocks("b", "x"))
	b.counts("b", "t", readstate.Values{Unread: 1})
	b.tell(to(3, "x"), to(4, "a"))
	b.restart()
	b.counts("b", "t", readstate.Values{Unread: 2})
	b.tell(blocks("b"))
	b.counts("b", "t", readstate.Values{Unread: 4, Activity: 1})
}

// A block that was lifted, and forgotten by the table, is whole when it comes again.
func TestBlockedAgain(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Cached = 1
	b := newBench(t, cfg)
	b.tell(noise("c")...)
	b.tell(blocks("b", "x"))
	b.flush()
	b.tell(blocks("b"), ManualUnreadSet{Scope: "c", Member: "b"})
	b.flush() // the row goes without the pair
	again := blocks("b", "x")
	again.Known, again.Written = true, known("c")
	b.tell(again)
	b.restart()
	b.counts("b", "c", hushed)
}

// A list of blocks that is told again, or late, changes nothing, and makes nothing dirty. Lists that
// nobody can have are refused.
// covers: RT-100 RT-101 RT-102 RT-269
func TestBlocksTwice(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(noise("c")...)
	ev := blocks("b", "x", "y", "x")
	ev.Generation = 5
	b.tell(ev)
	b.counts("b", "c", hushed)
	b.flush()
	b.store.written()
	late := blocks("b")
	late.Generation = 4
	b.tell(ev, late, blocks("b", "y", "x"), blocks("a"))
	b.counts("b", "c", hushed)
	b.flush()
	if rows := b.store.written(); len(rows) > 0 {
		t.Errorf("no change wrote %+v", rows)
	}
	var many []readstate.MemberID
	for i := range MaxBlocks + 1 {
		many = append(many, readstate.MemberID(fmt.Sprint("m", i)))
	}
	for _, bad := range []BlocksChanged{blocks(""), blocks("b", ""), blocks("b", "b"), blocks("b", many...)} {
		if err := b.f.Tell(space0, bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d blocks: %v", len(bad.Blocks), err)
		}
	}
	b.tell(blocks("b", many[1:]...))
	b.counts("b", "c", loud)
}

// Whatever part of a flush a crash cuts off, a row is never shown with a count that no state of the
// world ever had: a block is in the table with everything it needs, or not at all.
// covers: RT-356 RT-357
func TestBlockCutOff(t *testing.T) {
	after := readstate.Values{Unread: 4, Attention: 2, Activity: 1}
	seen := map[string]int{}
	for cut := 0; ; cut++ {
		cfg := Config{}
		cfg.Flush.FlushBatchSize = 1
		b := newBench(t, cfg)
		b.tell(noise("c")...)
		b.tell(noise("d")...)
		b.tell(noise("e")...)
		b.flush()
		b.tell(blocks("b", "x"), msg("d", 7, "x"),
			MessageStored{Scope: "d", Seq: 8, Revision: 8, Author: "a", Mentions: []readstate.MemberID{"b"}},
			MessageStored{Scope: "d", Seq: 9, Revision: 9, Author: "a"})
		b.store.failAfter(cut)
		err := b.f.Flush(t.Context())
		b.store.failAfter(-1)
		b.crash()
		for _, s := range []readstate.ScopeID{"c", "d", "e"} {
			row, rowErr := b.row("b", s)
			switch {
			case rowErr != nil:
				seen["withheld"]++
			case row.Values == hushed:
				seen["blocked"]++
			case row.Values == loud:
				seen["before"]++
			case s == "d" && row.Values == after:
				seen["after"]++
			case s == "d" && row.Values.Attention <= 5 && row.Values.Unread >= 6:
				seen["unblocked"]++ // d is newer, the block did not get there
			default:
				t.Errorf("after %d writes %s shows %+v", cut, s, row.Values)
			}
		}
		if s := b.f.Stats(); s.Failures+s.Runtime.Alarms > 0 {
			t.Errorf("after %d writes: %+v", cut, s)
		}
		if err == nil {
			break
		}
	}
	t.Logf("%v", seen)
	if seen["blocked"] == 0 || seen["before"] == 0 || seen["after"] != 1 {
		t.Errorf("%v", seen)
	}
}

// Who is blocked is in the table no later than who blocks them, whichever was dirty first.
func TestBlockedBeforeBlocker(t *testing.T) {
	for cut := 0; ; cut++ {
		cfg := Config{}
		cfg.Flush.FlushBatchSize = 1
		b := newBench(t, cfg)
		b.tell(blocks("b", "y"), blocks("b", "y", "x"))
		b.store.failAfter(cut)
		err := b.f.Flush(t.Context())
		b.store.failAfter(-1)
		b.crash()
		b.tell(room("c", "a", "b", "x")...)
		b.tell(msg("c", 1, "x"), msg("c", 2, "a"))
		own, loadErr := b.store.Store.Load(t.Context(), snapshot.Query{
			Workspace: space0, Member: "b", Only: []readstate.ScopeID{""},
		})
		want := uint64(2)
		if len(own) > 0 && strings.Contains(own[0].Detail, `"x"`) {
			want = 1
		}
		row, rowErr := b.row("b", "c")
		if loadErr != nil || rowErr != nil || row.Values.Unread != want {
			t.Errorf("after %d writes: %+v %v, want %d", cut, row.Values, rowErr, want)
		}
		if err == nil {
			break
		}
	}
}

// No row is in the table ahead of its scope, whichever was dirty first, so that a crash between two
// batches leaves rows that can be shown.
// covers: RT-356
func TestNoRowAheadOfItsScope(t *testing.T) {
	for cut := 0; ; cut++ {
		cfg := Config{}
		cfg.Flush.FlushBatchSize = 1
		b := newBench(t, cfg)
		b.tell(room("c", "a", "b")...)
		b.flush()
		b.tell(ManualUnreadSet{Scope: "c", Member: "b"}, msg("c", 1, "a"), msg("c", 2, "b"), msg("c", 3, "a"),
			ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 2, Head: 3})
		b.store.failAfter(cut)
		err := b.f.Flush(t.Context())
		b.store.failAfter(-1)
		b.crash()
		if row, rowErr := b.row("b", "c"); rowErr != nil || row.Values.Unread > 3 {
			t.Errorf("after %d writes: %+v %s %v", cut, row.Values, row.State, rowErr)
		}
		if err == nil {
			break
		}
	}
}

// Nobody knows whom a member blocks whose own row is damaged: nothing is shown to them until the
// program says it.
// covers: RT-337
func TestDamagedBlocks(t *testing.T) {
	for _, ev := range []BlocksChanged{blocks("b", "x"), blocks("b")} {
		b := newBench(t, Config{})
		b.tell(noise("c")...)
		b.tell(blocks("b", "x"))
		b.restart()
		b.counts("b", "c", hushed)
		b.store.tamper = func(r *snapshot.Row) {
			if r.Scope == "" && r.Member == "b" {
				r.Detail = "{"
			}
		}
		b.crash()
		b.hides("b", "c", unread.Unavailable)
		b.shows("a", "c", 3, unread.SnapshotServing)
		b.tell(msg("c", 7, "a"))
		b.hides("b", "c", unread.Unavailable)
		ev.Known, ev.Written = true, known("c")
		b.tell(ev)
		if b.store.tamper = nil; len(ev.Blocks) > 0 {
			b.counts("b", "c", readstate.Values{Unread: 3, Attention: 1, Activity: 1})
		} else {
			b.counts("b", "c", readstate.Values{Unread: 5, Attention: 3, Activity: 2})
		}
		if s := b.f.Stats(); s.Books.Damaged == 0 || s.Failures+s.Runtime.Alarms > 0 {
			t.Errorf("%+v", s)
		}
	}
}

// The row of a blocked member may be damaged: what they write is still theirs.
func TestBlockedMemberDamaged(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(noise("c")...)
	b.tell(blocks("b", "x"))
	b.store.tamper = func(r *snapshot.Row) {
		if r.Scope == "c" && r.Member == "x" {
			r.Visibility = "?"
		}
	}
	b.restart()
	b.counts("b", "c", hushed)
	b.tell(msg("c", 7, "x"), MessageStored{Scope: "c", Seq: 8, Revision: 8, Author: "x", Everyone: true}, msg("c", 9, "a"))
	b.counts("b", "c", readstate.Values{Unread: 3, Attention: 1, Activity: 1})
	for _, ev := range []Event{
		MessageEdited{Scope: "c", Was: MessageFacts{Revision: 7, Author: "x"}, Everyone: true},
		MessageRewound{Scope: "c", Removed: []MessageFacts{{Revision: 8, Author: "x", Everyone: true}}},
		NonMessageActivityStored{Scope: "c", Seq: 3, Actor: "x", HighSignal: true},
	} {
		b.tell(ev)
		b.counts("b", "c", readstate.Values{Unread: 3, Attention: 1, Activity: 1})
	}
	b.hides("x", "c", unread.Unavailable)
	b.tell(blocks("b"))
	b.counts("b", "c", readstate.Values{Unread: 6, Attention: 4, Activity: 3})
	if s := b.f.Stats(); s.Failures+s.Runtime.Alarms > 0 {
		t.Errorf("%+v", s)
	}
}

// What is known of a blocked member apart from scopes may be damaged: that they are blocked is not
// forgotten, wherever they write for the first time.
func TestBlockedPersonDamaged(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(noise("c")...)
	b.tell(room("d", "a", "b", "x")...)
	b.tell(blocks("b", "x"))
	b.store.tamper = func(r *snapshot.Row) {
		if r.Scope == "" && r.Member == "x" {
			r.Detail = "{"
		}
	}
	b.restart()
	b.counts("b", "d", readstate.Values{})
	b.tell(msg("d", 1, "x"), msg("d", 2, "a"),
		NonMessageActivityStored{Scope: "d", Seq: 1, Actor: "x", HighSignal: true})
	b.counts("b", "d", readstate.Values{Unread: 1})
	b.f.Runtime().Forget(space0, "b")
	b.counts("b", "d", readstate.Values{Unread: 1})
	b.hides("x", "d", unread.Unavailable)
	if s := b.f.Stats(); s.Books.Damaged == 0 || s.Failures+s.Runtime.Alarms > 0 {
		t.Errorf("%+v", s)
	}
}

// Nothing is unread where all that is there was written by oneself, or by others on one's behalf. What
// the blocked one of these wrote has to be known all the same; the rows of oneself alone have not.
func TestBlocksOnOnesBehalf(t *testing.T) {
	b := newBench(t, Config{})
	for _, s := range []readstate.ScopeID{"own", "behalf"} {
		b.tell(room(s, "a", "b", "x")...)
		b.tell(msg(s, 1, "x"), ReadCursorAdvanced{Scope: s, Member: "b", Revision: 1}, msg(s, 2, "b"))
	}
	b.tell(blocks("a", "x")) // so that x is noted
	b.tell(MessageStored{Scope: "behalf", Seq: 3, Revision: 3, Author: "x", NotifyPrincipal: "b"},
		msg("own", 3, "x"), MessageRewound{Scope: "own", Removed: []MessageFacts{{Seq: 3, Revision: 3, Author: "x"}}})
	b.restart()
	b.counts("b", "own", readstate.Values{})
	b.counts("b", "behalf", readstate.Values{})
	b.tell(blocks("b", "x"))
	b.counts("b", "own", readstate.Values{})
	b.hides("b", "behalf", unread.Stale)
	b.tell(ReadCursorAdvanced{Scope: "behalf", Member: "b", Revision: 3, Head: 3})
	for _, s := range []readstate.ScopeID{"own", "behalf"} {
		b.tell(msg(s, 4, "x"), msg(s, 5, "a"))
		b.counts("b", s, readstate.Values{Unread: 1})
	}
	if s := b.f.Stats(); s.Failures+s.Runtime.Alarms+s.Books.Damaged+s.Books.Contradictions > 0 {
		t.Errorf("%+v", s)
	}
}
