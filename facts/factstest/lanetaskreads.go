package factstest

import (
	"errors"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// A lane that has just begun finds what goes with each message, whichever is read first.
func testTaskReadsOfThePast(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		follow s1 B
		follow s1 C
		activity s1 A
		post s1 A
		activity s1 A
		post s1 A
		activity s1 A`)
	next := r.successor(t, f)
	for _, step := range []struct {
		member   readstate.MemberID
		revision readstate.Revision
		through  readstate.Seq
	}{{"B", 1, 2}, {"C", 2, 4}, {"B", 2, 4}} {
		res, err := next.MarkRead(t.Context(), testWorkspace, facts.MarkRead{
			Scope: "s1", Member: step.member, Revision: &step.revision, Trusted: true,
		})
		if err != nil || res.Row.Activity.Read != step.through {
			t.Errorf("%s through %d: %+v, %v", step.member, step.revision, res.Row.Activity, err)
		}
	}
}

// A read of a task moves both cursors, the one of activities to what had happened when the
// message was written.
//
// covers: RT-147 RT-158 RT-168 RT-183
func testTaskReads(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		follow s1 B
		activity s1 A
		post s1 A
		activity s1 A
		activity s1 A
		post s1 A
		activity s1 A`)
	r.unreadIn(t, "s1", map[readstate.MemberID][2]uint64{"B": {2, 4}})
	for _, step := range []struct {
		line    string
		unread  [2]uint64
		through readstate.Seq
	}{
		{"read s1 B 0 service", [2]uint64{2, 4}, 0},
		{"read s1 B 1 service", [2]uint64{1, 3}, 2},
		{"read s1 B 1 service", [2]uint64{1, 3}, 2},
		{"actread s1 B 3 service", [2]uint64{1, 2}, 3},
		{"actread s1 B 1 service", [2]uint64{1, 2}, 3},
		{"read s1 B 2 service", [2]uint64{0, 1}, 5},
		{"remove s1 2", [2]uint64{0, 1}, 5},
		{"read s1 B 2 service", [2]uint64{0, 1}, 5},
		{"actread s1 B 6 service", [2]uint64{0, 0}, 6},
		{"post s1 A", [2]uint64{1, 0}, 6},
		{"activity s1 A", [2]uint64{1, 1}, 6},
		{"post s1 B saw=3", [2]uint64{0, 1}, 7},
		{"trim s1 9", [2]uint64{0, 1}, 7},
		{"read s1 B 4 service", [2]uint64{0, 0}, 9},
	} {
		r.play(t, step.line)
		r.unreadIn(t, "s1", map[readstate.MemberID][2]uint64{"B": step.unread})
		if got := r.stateOf(t, "s1", "B").Row.Activity.Read; got != step.through {
			t.Errorf("%s: activities read through %d, want %d", step.line, got, step.through)
		}
	}
	r.agree(t)
	r.told(t, 4, 9)
	r.play(t, "activity s1 A")
	r.play(t, "actread s1 B 10 service")
	r.told(t, 4, 10)
	r.settled(t)
}

// A message names the place as well as its revision does, and one action may name both cursors.
func testTaskReadsNamed(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		follow s1 B`)
	ctx := t.Context()
	b := r.lane.NewBatch(testWorkspace)
	b.Post(plain("m1", "x"))
	b.Post(plain("m2", "x"))
	if _, err := b.Run(ctx); err != nil {
		t.Fatal(err)
	}
	activity := func(op string) {
		t.Helper()
		if _, err := r.lane.RecordActivity(ctx, testWorkspace, record(op, highType)); err != nil {
			t.Fatal(err)
		}
	}
	activity("a1")
	read := facts.MarkRead{Scope: "s1", Member: "B", Through: "m-m1", Trusted: true}
	res, err := r.lane.MarkRead(ctx, testWorkspace, read)
	if err != nil || res.Row.Activity.Read != 1 || res.Row.Point.Targets != 1 {
		t.Errorf("through a message: %+v, %v", res, err)
	}
	two, last, far := readstate.Revision(2), readstate.Seq(3), readstate.Seq(4)
	read = facts.MarkRead{Scope: "s1", Member: "B", Revision: &two, ActivitySeq: &far, Trusted: true}
	if _, err := r.lane.MarkRead(ctx, testWorkspace, read); !errors.Is(err, facts.ErrFuture) {
		t.Errorf("an activity that is not there: %v", err)
	}
	read.ActivitySeq = &last
	res, err = r.lane.MarkRead(ctx, testWorkspace, read)
	if err != nil || res.Row.Activity != (readstate.ActivityPoint{
		Read: 3, SignalAt: res.Row.Activity.SignalAt,
	}) || res.Row.Point.Targets != 0 || res.Outcome != readstate.Applied {
		t.Errorf("both: %+v, %v", res, err)
	}
	if again, err := r.lane.MarkRead(ctx, testWorkspace, read); err != nil ||
		again.Outcome != readstate.Unchanged || again.LSN != res.LSN {
		t.Errorf("again: %+v, %v", again, err)
	}
	r.settled(t)
}

// told fails unless the last row that memory was told of stands at the given cursors.
func (r *rig) told(t *testing.T, read readstate.Revision, activities readstate.Seq) {
	t.Helper()
	row, _ := lastOf[readstate.MemberEvent](r.commits) // which nobody appends to just now
	if row.MemberID != "B" || row.Row.Read != read || row.Row.Activity.Read != activities {
		t.Errorf("memory is told of %s: %+v", row.MemberID, row.Row)
	}
}

// Reads and manual marks of a task write the member's own row and, for a mark, their one
// conversation. What has been read already is not written again.
//
// covers: RT-148 RT-149 RT-151 RT-152 RT-165 RT-185 RT-188 RT-189 RT-190
func testTaskReadWrites(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		follow s1 B`)
	ctx := t.Context()
	talks := func(m readstate.MemberID) []facts.Conversation {
		t.Helper()
		view, err := r.store.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = view.Close() }()
		member, _, err := view.Member(ctx, r.key, m)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := view.ConversationPage(ctx, facts.ConversationQuery{Member: member.Key, Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if n := len(talks("A")) + len(talks("B")) + len(talks("C")); n != 0 {
		t.Errorf("%d conversations of those who have only joined", n)
	}
	r.script(t, `
		activity s1 A
		activity s1 A
		clock 5
		post s1 A
		activity s1 A
		activity s1 A
		clock 5
		activity s1 A`)
	at := r.driver.Clock().UnixMilli()
	if got := talks("B"); len(got) != 1 || got[0].SortAt != at || got[0].MessageSeq != 1 ||
		got[0].ActivitySeq != 6 {
		t.Errorf("after five activities and a message: %+v", got)
	}
	all := f.record()
	rows := func(line string, states, talks int) {
		t.Helper()
		r.play(t, line)
		c := all.take()
		if len(c.States) != states || len(c.Conversations) != talks ||
			len(c.Activities)+len(c.Messages)+len(c.NewMessages)+len(c.Targets)+
				len(c.ActivityTargets)+len(c.Outbox)+len(c.Tasks) != 0 {
			t.Errorf("%s writes %+v", line, c)
		}
	}
	rows("read s1 B 1 service", 1, 0)
	rows("read s1 B 1 service", 0, 0)
	rows("actread s1 B 6 service", 1, 0)
	rows("actread s1 B 6 service", 0, 0)
	r.play(t, "clock 5")
	rows("unread s1 B service", 1, 1)
	rows("unread s1 B service", 0, 0)
	if got := talks("B"); len(got) != 1 || got[0].SortAt != at+5000 {
		t.Errorf("after the mark: %+v", got)
	}
	rows("read s1 B 1 service", 1, 0)
	rows("unread s1 C service", 1, 1)
	f.everyWrite(nil)
	if a, b, c := len(talks("A")), len(talks("B")), len(talks("C")); a != 0 || b != 1 || c != 1 {
		t.Errorf("%d, %d and %d conversations", a, b, c)
	}
	r.settled(t)
}
