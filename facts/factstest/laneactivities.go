package factstest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Activities, and the lists of conversations.
var activityParts = []lanePart{
	{"ActivityRepeated", testActivityRepeated},
	{"ActivityIDsTaken", testActivityIDsTaken},
	{"ActivitySignals", testActivitySignals},
	{"ActivityRefusals", testActivityRefusals},
	{"ActivityByABlocked", testActivityByABlocked},
	{"ActivityRanks", testActivityRanks},
	{"ActivityErased", testActivityErased},
	{"DirectMessages", testDirectMessages},
	{"LargeDirectMessages", testLargeDirectMessages},
}

// However often an activity is recorded, it is one, and counts once.
//
// covers: RT-166
func testActivityRepeated(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	ctx := t.Context()
	op := record("one", highType)
	op.Payload, op.RefType, op.RefID = []byte(`{"name":"x"}`), "file", "f1"
	first, err := r.lane.RecordActivity(ctx, testWorkspace, op)
	if err != nil || first.Duplicate || first.Seq != 1 || !first.HighSignal || first.ActivityID == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	_, before := f.counted()
	op.By, op.CreateMembers = facts.Actor{Member: "A"}, true // who asks is no part of it
	again, err := r.lane.RecordActivity(ctx, testWorkspace, op)
	if first.Duplicate = true; err != nil || again != first {
		t.Errorf("again: %+v, %v, first %+v", again, err, first)
	}
	op.Payload = []byte(`{}`)
	if _, err := r.lane.RecordActivity(ctx, testWorkspace, op); !errors.Is(err, facts.ErrMismatch) {
		t.Errorf("another body: %v", err)
	}
	if _, after := f.counted(); after != before {
		t.Errorf("%d commits when repeated", after-before)
	}
	other := record("one", lowType)
	other.Actor = "B"
	if res, err := r.lane.RecordActivity(ctx, testWorkspace, other); err != nil || res.Duplicate || res.Seq != 2 {
		t.Errorf("the same id of another: %+v, %v", res, err)
	}
	if n := r.activityOf(t, "B"); n != 1 {
		t.Errorf("%d count", n)
	}
	rows := r.activities(t, facts.ActivityQuery{Limit: 9})
	if len(rows) != 2 || rows[0].ID != first.ActivityID || rows[0].RefType != "file" ||
		rows[0].RefID != "f1" || string(rows[0].Payload) != `{"name":"x"}` || rows[1].RefType != "" {
		t.Errorf("activities are %+v", rows)
	}
	r.settled(t)
}

// An operation id is one for whatever its actor does with it.
func testActivityIDsTaken(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	ctx := t.Context()
	if _, err := r.lane.Post(ctx, testWorkspace, plain("kept", "x")); err != nil {
		t.Fatal(err)
	}
	_, err := r.lane.Post(ctx, testWorkspace, plain("posted", "x"))
	_, err2 := r.lane.RecordActivity(ctx, testWorkspace, record("recorded", lowType))
	_, err3 := r.lane.Remove(ctx, testWorkspace, facts.Remove{
		Scope: "s1", Message: "m-posted", OpID: "removed", By: facts.Actor{Member: "A"},
	})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"posted", "removed"} {
		_, err := r.lane.RecordActivity(ctx, testWorkspace, record(id, lowType))
		if !errors.Is(err, facts.ErrMismatch) {
			t.Errorf("an activity under the id of what was %s: %v", id, err)
		}
	}
	if _, err := r.lane.Post(ctx, testWorkspace, plain("recorded", "x")); !errors.Is(err, facts.ErrMismatch) {
		t.Errorf("a post under the id of an activity: %v", err)
	}
	edit := facts.Edit{
		Scope: "s1", Message: "m-posted", OpID: "recorded", Mentions: &[]readstate.MemberID{},
		By: facts.Actor{Member: "A"},
	}
	if _, err := r.lane.Edit(ctx, testWorkspace, edit); !errors.Is(err, facts.ErrMismatch) {
		t.Errorf("an edit under the id of an activity: %v", err)
	}
	// Neither does a lane forget it that has just begun and first moves what the actor wrote.
	_, err = r.lane.PutScope(ctx, testWorkspace, facts.PutScope{ID: "s2", Type: readstate.Channel})
	if err != nil {
		t.Fatal(err)
	}
	next := r.successor(t, f)
	mv := facts.Move{Scope: "s1", OpID: "mv", Messages: []string{"m-kept"}, To: "s2"}
	if _, err := next.Move(ctx, testWorkspace, mv); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Post(ctx, testWorkspace, plain("recorded", "x")); !errors.Is(err, facts.ErrMismatch) {
		t.Errorf("a post under the id of an activity, after a move: %v", err)
	}
}

// Only types of a documented list count; all others are kept and count for nobody. What goes with a
// message of a task is among these.
//
// covers: RT-157
func testActivitySignals(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	high := 0
	for i, kind := range []string{
		"task_assigned", "task_unassigned", "task_status_changed", "task_due_changed",
		"approval_requested", "approval_decided", "file_shared", "poll_closed", "incident_opened",
		"incident_resolved", "task_title_changed", "discussion_added", "note_added", "x",
		"a" + strings.Repeat("_", facts.MaxTypeBytes-1),
	} {
		res, err := r.lane.RecordActivity(t.Context(), testWorkspace, record(fmt.Sprint("op", i), kind))
		if err != nil || res.HighSignal != (i < 10) || res.HighSignal != facts.HighSignal(kind) {
			t.Errorf("%s: %+v, %v", kind, res, err)
		}
		if high += int(boolInt(i < 10)); r.activityOf(t, "B") != uint64(high) {
			t.Errorf("%s: %d count, want %d", kind, r.activityOf(t, "B"), high)
		}
	}
	if n := r.activityOf(t, "A"); n != 0 {
		t.Errorf("%d count for who did them", n)
	}
	r.settled(t)
}

func boolInt(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// activityOf is how many activities of s1 a member has not read, as the durable rows say.
func (r *rig) activityOf(t *testing.T, m readstate.MemberID) uint64 {
	t.Helper()
	view, err := r.store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	info, _, err := view.Member(t.Context(), r.key, m)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Evaluate(t.Context(), view, r.key, info, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	return all["s1"].Values.Activity
}

// Telemetry is refused outright, and so is what is no type.
//
// covers: RT-085 RT-086 RT-171
func testActivityRefusals(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	ctx := t.Context()
	_, before := f.counted()
	for _, kind := range []string{
		"presence", "typing", "heartbeat", "agent_runtime", "daemon_telemetry",
		"session_trajectory", "live_trajectory", "agent_activity", "agent_status", "agent_session",
		"", "A", "1a", "_a", "a-b", "a b", "é", strings.Repeat("a", facts.MaxTypeBytes+1),
	} {
		_, err := r.lane.RecordActivity(ctx, testWorkspace, record("op", kind))
		if !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("type %q: %v", kind, err)
		}
	}
	for what, c := range map[string]struct {
		change func(*facts.RecordActivity)
		want   error
	}{
		"no id":         {func(o *facts.RecordActivity) { o.OpID = "" }, facts.ErrInvalid},
		"a long id":     {func(o *facts.RecordActivity) { o.RefID = strings.Repeat("x", 999) }, facts.ErrInvalid},
		"a bad ref":     {func(o *facts.RecordActivity) { o.RefType = "A B" }, facts.ErrInvalid},
		"a bad payload": {func(o *facts.RecordActivity) { o.Payload = []byte("{") }, facts.ErrInvalid},
		"no scope":      {func(o *facts.RecordActivity) { o.Scope = "s9" }, facts.ErrNotFound},
		"no actor":      {func(o *facts.RecordActivity) { o.Actor = "ghost" }, facts.ErrNotFound},
		"not seen": {func(o *facts.RecordActivity) {
			o.Actor, o.By = "C", facts.Actor{Member: "C"}
		}, facts.ErrNotFound},
	} {
		op := record("op", highType)
		c.change(&op)
		if _, err := r.lane.RecordActivity(ctx, testWorkspace, op); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, after := f.counted(); after != before || r.activityOf(t, "B") != 0 ||
		r.ranks(t).LatestActivity != 0 {
		t.Errorf("%d commits of what is refused", after-before)
	}
	made := record("op", highType)
	made.Actor, made.CreateMembers = "ghost", true
	if _, err := r.lane.RecordActivity(ctx, testWorkspace, made); err != nil || r.activityOf(t, "B") != 1 {
		t.Errorf("by an actor who is made: %v", err)
	}
	r.settled(t)
}

// Who acts in a scope and never writes there is somebody whom others may block, too.
func testActivityByABlocked(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		follow s1 B
		create s2 channel
		join s2 A
		join s2 B
		block B A
		activity s1 A
		activity s1 C
		activity s2 A
		activity s2 C
		level s1 B all service
		level s2 B all service
		unblock B A
		activity s1 A
		activity s2 A
		block B A
		actread s1 B 1 service
		actread s2 B 2 service`)
	r.agree(t)
	r.settled(t)
}

// ranks says where s1 stands.
func (r *rig) ranks(t *testing.T) readstate.ScopeRanks {
	t.Helper()
	view, err := r.store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	scope, _, err := view.Scope(t.Context(), r.key, "s1")
	if err != nil {
		t.Fatal(err)
	}
	return scope.Ranks
}

// The ranks of a scope and of an actor rise with what counts, and with nothing else; every activity
// has a place of its own.
//
// covers: RT-095
func testActivityRanks(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 channel
		join s1 A
		join s1 B
		activity s1 A
		activity s1 B low
		activity s1 B
		activity s1 A
		activity s1 A low`)
	var got []string
	for _, c := range r.settled(t) {
		for _, e := range c.Events {
			if e, ok := e.(readstate.ActivityEvent); ok {
				got = append(got, fmt.Sprintf("%d:%d/%d", e.Seq, e.SignalRank, e.ActorRank))
			}
		}
	}
	if want := "[1:1/1 2:0/0 3:2/1 4:3/2 5:0/0]"; fmt.Sprint(got) != want {
		t.Errorf("ranks are %v, want %s", got, want)
	}
	if k := r.ranks(t); k.LatestActivity != 5 || k.SignalHead != 3 || k.LatestSeq != 0 ||
		k.LastLSN != r.lsn(t, testWorkspace) || k.LastActivityAt != r.driver.Clock().UnixMilli() {
		t.Errorf("the scope stands at %+v", k)
	}
}

// What somebody who is erased left in activities goes; what others did stays.
func testActivityErased(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		follow s1 A
		follow s1 B
		task s1 A assignee=B
		create s2 dm
		join s2 A
		join s2 B`)
	ctx := t.Context()
	b := r.lane.NewBatch(testWorkspace)
	for i := range 700 { // more than one batch
		op := record(fmt.Sprint("op", i), lowType)
		op.Payload = []byte(`"private"`)
		b.RecordActivity(op)
	}
	theirs := record("theirs", lowType)
	theirs.Actor, theirs.Payload = "B", []byte(`"kept"`)
	b.RecordActivity(theirs)
	if res, err := b.Run(ctx); err != nil || res[700].Err != nil || res[700].Activity.Seq != 702 {
		t.Fatalf("%+v, %v", res[len(res)-1], err)
	}
	if _, err := r.lane.EraseMember(ctx, testWorkspace, facts.EraseMember{Member: "A"}); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.activities(t, facts.ActivityQuery{Limit: 1000}) {
		if who := r.names(t, a.Actor); who == "A" || string(a.Payload) == `"private"` ||
			(who == "B") != (string(a.Payload) == `"kept"`) {
			t.Fatalf("activity %d by %s: %s", a.Seq, who, a.Payload)
		}
	}
	post := plain("late", "x")
	post.Author = "B"
	if _, err := r.lane.Post(ctx, testWorkspace, post); err != nil {
		t.Fatal(err)
	}
	last, _ := lastOf[readstate.MessageEvent](r.settled(t))
	if len(last.Recipients) != 0 {
		t.Errorf("told is %q", r.names(t, last.Recipients...))
	}
}

// A message of a dm touches the list of everybody in it, the writer's own included; a channel is
// in nobody's list, and a dm that was left is in it no longer.
func testDirectMessages(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 dm
		join s1 A
		join s1 B
		join s1 C
		create s2 channel
		join s2 A
		create s3 thread s1`)
	all := f.record()
	for _, step := range []struct {
		line string
		want int
	}{
		{"post s1 A", 3},
		{"post s1 A unreadable", 0},
		{"post s2 A", 0},
		{"activity s1 A", 0},
		{"post s3 A", 0},
		{"post s3 A broadcast", 3},
		{"leave s1 C", 0},
		{"post s1 A", 2},
		{"join s1 D", 0},
		{"join s1 C", 0},
		{"post s1 B", 4},
		{"unread s1 A service", 0},
	} {
		r.play(t, step.line)
		c := all.take()
		if len(c.Conversations) != step.want || len(c.Outbox) != 0 {
			t.Errorf("%s: %+v", step.line, c.Conversations)
		}
		for _, row := range c.Conversations {
			if row.Kind != readstate.DM || row.MessageSeq == 0 || row.UpdatedLSN == 0 {
				t.Errorf("%s: %+v", step.line, row)
			}
		}
	}
	f.everyWrite(nil)
	if _, err := r.lane.EraseMember(t.Context(), testWorkspace, facts.EraseMember{Member: "D"}); err != nil {
		t.Fatal(err)
	}
	all = f.record()
	r.play(t, "post s1 B")
	if c := all.take(); len(c.Conversations) != 3 {
		t.Errorf("after an erasure: %+v", c.Conversations)
	}
	r.settled(t)
}

// A dm with more members than the index takes is in no list, until it has fewer again.
func testLargeDirectMessages(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 dm
		join s1 A`)
	ctx := t.Context()
	b := r.lane.NewBatch(testWorkspace)
	name := func(i int) readstate.MemberID { return readstate.MemberID(fmt.Sprint("m", i)) }
	for i := range facts.MaxIndexedDM + 1 {
		b.PutMembership(facts.PutMembership{Scope: "s1", Member: name(i), CreateMember: true})
	}
	if _, err := b.Run(ctx); err != nil {
		t.Fatal(err)
	}
	all := f.record()
	talks := func() int {
		t.Helper()
		r.play(t, "post s1 A")
		return len(all.take().Conversations)
	}
	if n := talks(); n != 0 {
		t.Errorf("a large dm is in %d lists", n)
	}
	for i := range 2 {
		if _, err := r.lane.Leave(ctx, testWorkspace, facts.Leave{Scope: "s1", Member: name(i)}); err != nil {
			t.Fatal(err)
		}
		if n, want := talks(), i*facts.MaxIndexedDM; n != want {
			t.Errorf("with %d gone it is in %d lists, want %d", i+1, n, want)
		}
	}
	back := facts.PutMembership{Scope: "s1", Member: name(0)}
	if _, err := r.lane.PutMembership(ctx, testWorkspace, back); err != nil {
		t.Fatal(err)
	}
	if n := talks(); n != 0 {
		t.Errorf("a large dm is in %d lists again", n)
	}
	r.settled(t)
}
