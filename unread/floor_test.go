package unread

import (
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
	sc := d.space().st.scopes.At(d.space().st.scopeNamed("s1"))
	if n := sc.everyone.blocks.n; n != 0 {
		t.Errorf("%d blocks of everyone left below the floor", n)
	}
}

// A cursor that enters a block whose bits nobody needed so far brings them along.
func TestCursorEntersAnotherBlock(t *testing.T) {
	d := newDesk(t, Config{}, "create s1 channel", "join s1 A", "join s1 B")
	d.facts.offset[1] = readstate.BlockSize - 3
	d.do("post s1 A", "post s1 A", "post s1 A", "post s1 A", "post s1 A", "post s1 A everyone",
		"post s1 A everyone", "remove s1 4", "remove s1 5")
	d.load("B")
	d.do("read s1 B 4 v=0")
	if row := d.row("B", "s1"); row.Values != (readstate.Values{Unread: 2, Attention: 2}) {
		t.Errorf("%+v", row.Values)
	}
	d.do("read s1 B 6 v=0", "remove s1 7")
	if row := d.row("B", "s1"); row.Values != (readstate.Values{}) {
		t.Errorf("%+v", row.Values)
	}
	d.agree()
}

// What a blocked writer mentions everyone in on the blocker's own behalf is neutral to them, and
// is taken off once.
func TestBlockedWriterOnTheBlockersBehalf(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 C", "block B A")...)
	d.load("B")
	d.do("post s1 A as=B everyone", "post s1 A everyone", "post s1 A as=B", "post s1 C everyone")
	if row := d.row("B", "s1"); row.Values != (readstate.Values{Unread: 2, Attention: 1}) {
		t.Errorf("%+v", row.Values)
	}
	d.do("remove s1 2", "edit s1 3", "edit s1 4 everyone")
	d.agree()
	d.do("trim s1 4")
	d.agree()
	w := d.space().st.blocked.writers[d.space().st.scopeNamed("s1")][1]
	if len(w.removed)+len(w.everyone) != 0 {
		t.Errorf("what lies below the floor is kept: %+v", w)
	}
}
