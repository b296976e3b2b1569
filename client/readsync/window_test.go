package readsync_test

import (
	"testing"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// rows are messages with the seqs; those above zero are revisions.
func rows(from readsync.Seq, revisions ...readsync.Revision) []readsync.Message {
	var out []readsync.Message
	for i, r := range revisions {
		seq := from + readsync.Seq(i)
		out = append(out, readsync.Message{ID: string(rune('a' + seq)), Seq: seq, ContentRevision: r})
	}
	return out
}

func row(seq readsync.Seq, revision readsync.Revision) readsync.Message {
	return rows(seq, revision)[0]
}

func tail(w *readsync.Window, through readsync.Revision, messages []readsync.Message) {
	w.Latest(w.Asked(), readsync.Page{Messages: messages, ReadThroughRevision: through}, readsync.View{})
}

func receipt(t *testing.T, w *readsync.Window, want readsync.Revision) {
	t.Helper()
	got, synced := w.Receipt()
	if !synced || got != want {
		t.Errorf("the receipt is %d, %t, want %d", got, synced, want)
	}
}

// covers: SE-090 SE-091
func TestReceiptsFollowWhatComesAfterTheTail(t *testing.T) {
	w := readsync.Open("s")
	w.Added(row(4, 3))
	if r, synced := w.Receipt(); synced || r != 0 {
		t.Errorf("a receipt of %d before the tail", r)
	}
	tail(&w, 2, rows(1, 1, 0, 2))
	receipt(t, &w, 3) // what came meanwhile follows without a gap
	w.Added(row(5, 0))
	receipt(t, &w, 3)
	w.Added(row(6, 4))
	receipt(t, &w, 4)
	w.Added(row(6, 4)) // told twice
	if n := len(w.Messages()); n != 6 {
		t.Errorf("%d messages", n)
	}
}

func TestReceiptsNeverPassAGap(t *testing.T) {
	for name, late := range map[string]readsync.Message{
		"of entries": row(5, 4), "of revisions": row(4, 5),
	} {
		w := readsync.Open("s")
		tail(&w, 3, rows(1, 1, 2, 3))
		w.Added(late)
		receipt(t, &w, 3)
		after, needed := w.NeedsCatchUp()
		if !needed || after != 3 {
			t.Errorf("%s: catch up after %d, %t", name, after, needed)
		}
		w.CatchUp(w.Asked(), 3, readsync.Page{Messages: rows(4, 4, 5), ReadThroughRevision: 5})
		receipt(t, &w, 5)
		if _, needed := w.NeedsCatchUp(); needed {
			t.Errorf("%s: still behind", name)
		}
	}
}

func TestPagesWithoutAReceipt(t *testing.T) {
	w := readsync.Open("s")
	tail(&w, 7, rows(5, 5, 6, 7))
	w.Before(readsync.Page{Messages: rows(1, 1, 2, 3, 4), ReadThroughRevision: 99})
	receipt(t, &w, 7)
	if n := len(w.Messages()); n != 7 || w.First() != 1 || w.Earlier() {
		t.Errorf("%d messages from %d", n, w.First())
	}
	w.Interrupted()
	w.CatchUp(w.Asked(), 7, readsync.Page{Messages: rows(8, 8, 9), HasMore: true, ReadThroughRevision: 99}) // cut
	receipt(t, &w, 7)
	w.CatchUp(w.Asked(), 9, readsync.Page{Messages: rows(10, 10)}) // the head has moved on
	receipt(t, &w, 7)
	w.Added(row(11, 11))
	receipt(t, &w, 7)
	if after, needed := w.NeedsCatchUp(); !needed || after != 10 {
		t.Errorf("after %d, %t", after, needed)
	}
	w.CatchUp(w.Asked(), 10, readsync.Page{Messages: rows(11, 11), ReadThroughRevision: 11})
	receipt(t, &w, 11)
	w.Added(row(12, 0))
	w.Interrupted()
	w.CatchUp(w.Asked(), 12, readsync.Page{}) // nothing newer; zero is no receipt on the wire
	if _, needed := w.NeedsCatchUp(); needed {
		t.Error("it never ends")
	}
}

// What is missed while a page is on its way is not in it.
func TestMissedWhileAPageIsOnItsWay(t *testing.T) {
	w := readsync.Open("s")
	asked := w.Asked()
	w.Interrupted()
	w.Latest(asked, readsync.Page{Messages: rows(1, 1), ReadThroughRevision: 1}, readsync.View{})
	receipt(t, &w, 1)
	for _, page := range []readsync.Page{
		{}, {Messages: rows(2, 2), ReadThroughRevision: 2}, {Messages: rows(3, 3)},
	} {
		after, needed := w.NeedsCatchUp()
		if !needed {
			t.Fatal("what was missed is forgotten")
		}
		asked = w.Asked()
		w.Interrupted()
		w.CatchUp(asked, after, page)
	}
	receipt(t, &w, 2)
	w.CatchUp(w.Asked(), 3, readsync.Page{ReadThroughRevision: 3})
	receipt(t, &w, 3)
	if _, needed := w.NeedsCatchUp(); needed {
		t.Error("still behind")
	}
}

func TestRemovedAndEditedMessages(t *testing.T) {
	w := readsync.Open("s")
	tail(&w, 3, rows(1, 1, 2, 3))
	w.Removed(row(3, 3).ID)
	edited := row(2, 2)
	edited.Payload = []byte(`"better"`)
	w.Edited(edited)
	receipt(t, &w, 3)
	m := w.Messages()
	if len(m) != 2 || string(m[1].Payload) != `"better"` {
		t.Errorf("left are %v", m)
	}
	w.Added(row(4, 4))
	receipt(t, &w, 4)
}

func TestWindowsAreBounded(t *testing.T) {
	w := readsync.Open("s")
	tail(&w, 0, nil)
	for i := range readsync.Seq(readsync.MaxMessages + 10) {
		w.Added(row(i+1, readsync.Revision(i+1)))
	}
	if n := len(w.Messages()); n != readsync.MaxMessages || w.First() != 11 || !w.Earlier() {
		t.Errorf("%d messages from %d", n, w.First())
	}
}

// covers: SE-125
func TestAWindowOfAnotherSessionKnowsNothing(t *testing.T) {
	w := readsync.Open("old")
	tail(&w, 3, rows(1, 1, 2, 3))
	old := looking(&w)
	w.Replaced("new")
	if r, synced := w.Receipt(); synced || r != 0 || len(w.Messages()) != 0 || !w.NeedsTail() {
		t.Errorf("it has a receipt of %d", r)
	}
	tail(&w, 40, rows(1, 39, 40))
	if _, reads := w.Observe(old, state{}); reads {
		t.Error("what was rendered of the old session reads the new one")
	}
	if r, reads := w.Observe(looking(&w), state{}); !reads || r != 40 {
		t.Errorf("read %d, %t", r, reads)
	}
}

// looking is an observation of everything that the window holds.
func looking(w *readsync.Window) readsync.Observation {
	through, _ := w.Receipt()
	return readsync.Observation{
		Visible: true, Foreground: true, Loaded: true, TailInView: true, Epoch: w.Epoch(), Through: through,
	}
}

// covers: SE-073 SE-074 SE-075 SE-076 SE-077 SE-078 SE-079
func TestOnlyTheWholeObservationReads(t *testing.T) {
	for bits := range 16 {
		w := readsync.Open("s")
		tail(&w, 3, rows(1, 1, 2, 3))
		o := looking(&w)
		o.Visible, o.Foreground = bits&1 > 0, bits&2 > 0
		o.Loaded, o.TailInView = bits&4 > 0, bits&8 > 0
		if _, reads := w.Observe(o, state{ContentRevision: 3}); reads != (bits == 15) {
			t.Errorf("%+v reads: %t", o, reads)
		}
	}
	w := readsync.Open("s")
	if _, reads := w.Observe(looking(&w), state{ContentRevision: 3}); reads {
		t.Error("read before the tail")
	}
}

// covers: SE-083 SE-092
func TestReadingsNameWhatWasRendered(t *testing.T) {
	w := readsync.Open("s")
	tail(&w, 12, rows(12, 12))
	rendered := looking(&w)
	w.Added(row(13, 13)) // not rendered yet
	if r, reads := w.Observe(rendered, state{ContentRevision: 14}); !reads || r != 12 {
		t.Errorf("read %d, %t", r, reads)
	}
}

// covers: SE-081
func TestAStateIsNoViewing(t *testing.T) {
	w := readsync.Open("s")
	tail(&w, 12, rows(12, 12))
	r, reads := w.Observe(looking(&w), state{ContentRevision: 12})
	if !reads {
		t.Fatal("the opening reads nothing")
	}
	w.Acknowledged(r)
	// Another device marks it, and moves the cursor back in no case.
	marked := state{ContentRevision: 12, ReadRevision: 12, ManualUnread: true, Version: 1}
	for range 3 {
		if _, reads := w.Observe(looking(&w), marked); reads {
			t.Fatal("a mark was taken for a viewing")
		}
	}
	// Something new next to it is read without touching the mark.
	w.Added(row(13, 13))
	r, reads = w.Observe(looking(&w), marked)
	if op, _ := w.Reading("x", r, 0); !reads || op.Revision != 13 || op.ExpectedVersion != 0 || op.Flips {
		t.Errorf("%t, %+v", reads, op)
	}
}

// A mark that took the place of the one that the window was opened on was not seen by the opening.
//
// covers: SE-081
func TestOpeningTakesNoLaterMarkAway(t *testing.T) {
	marked := state{ContentRevision: 12, ReadRevision: 12, ManualUnread: true, Version: 5}
	w := readsync.Open("s")
	w.Latest(w.Asked(), readsync.Page{Messages: rows(12, 12), ReadThroughRevision: 12}, readsync.View{Session: "s", State: marked, Base: 5})
	again := marked
	again.Version = 7
	if r, reads := w.Observe(looking(&w), again); reads {
		t.Errorf("reads %d at a mark of version 7", r)
	}
}

func TestOpeningTakesTheMarkAway(t *testing.T) {
	marked := state{ContentRevision: 12, ReadRevision: 12, ManualUnread: true, Version: 5}
	w := readsync.Open("s")
	w.Latest(w.Asked(), readsync.Page{Messages: rows(12, 12), ReadThroughRevision: 12}, readsync.View{Session: "s", State: marked, Base: 5})
	r, reads := w.Observe(looking(&w), marked)
	op, base := w.Reading("x", r, 0)
	if !reads || op.Session != "s" || op.Revision != 12 || op.ExpectedVersion != 5 || !op.Flips || base != 5 {
		t.Errorf("%t, %+v", reads, op)
	}
	w.Acknowledged(r)
	if _, reads := w.Observe(looking(&w), marked); reads {
		t.Error("read twice")
	}
}
