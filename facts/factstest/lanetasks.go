package factstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// What is written for whom when something happens in a task.
var taskLaneParts = []lanePart{
	{"TaskMessage", testTaskMessage},
	{"TaskRecipients", testTaskRecipients},
	{"TaskAgents", testTaskAgents},
	{"TaskRecipientsAreFrozen", testTaskRecipientsAreFrozen},
	{"TaskOfThousands", testTaskOfThousands},
	{"TaskRebuilt", testTaskRebuilt},
	{"TaskFacts", testTaskFacts},
	{"TaskRefusals", testTaskRefusals},
	{"TaskSettings", testTaskSettings},
	{"TaskWatchers", testTaskWatchers},
	{"TaskWatchersOfThePast", testTaskWatchersOfThePast},
	{"TaskReads", testTaskReads},
	{"TaskReadsNamed", testTaskReadsNamed},
	{"TaskReadsOfThePast", testTaskReadsOfThePast},
	{"TaskReadWrites", testTaskReadWrites},
	{"TaskMoves", testTaskMoves},
	{"TaskGroupsAreBounded", testTaskGroupsAreBounded},
	{"TaskOutboxAcrossFailures", testTaskOutboxAcrossFailures},
	{"TaskRolledBack", testTaskRolledBack},
}

// written collects what the lane writes.
type written struct {
	mu sync.Mutex
	facts.Changes
}

// record keeps a copy of everything that is written from now on.
func (f *faulty) record() *written {
	all := &written{}
	f.everyWrite(func(c *facts.Changes) error {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.NewMessages = append(all.NewMessages, c.NewMessages...)
		all.Messages = append(all.Messages, c.Messages...)
		all.States = append(all.States, c.States...)
		all.Mentions = append(all.Mentions, c.Mentions...)
		all.Targets = append(all.Targets, c.Targets...)
		all.Tasks = append(all.Tasks, c.Tasks...)
		all.Activities = append(all.Activities, c.Activities...)
		all.ActivityTargets = append(all.ActivityTargets, c.ActivityTargets...)
		all.Conversations = append(all.Conversations, c.Conversations...)
		all.Outbox = append(all.Outbox, c.Outbox...)
		return nil
	})
	return all
}

// take returns what was written since the last call.
func (w *written) take() facts.Changes {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.Changes
	w.Changes = facts.Changes{}
	return out
}

// names resolves keys to the members' ids, in order.
func (r *rig) names(t *testing.T, keys ...readstate.MemberKey) string {
	t.Helper()
	view, err := r.store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids, err := view.MemberIDs(t.Context(), keys)
	if err = errors.Join(err, view.Close()); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, k := range keys {
		out = append(out, string(ids[k]))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// script plays lines of the oracle's language.
func (r *rig) script(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			r.play(t, line)
		}
	}
}

// agent makes an agent who has joined and watches s1.
func (r *rig) agent(t *testing.T, id readstate.MemberID, watches bool) {
	t.Helper()
	ctx, yes := t.Context(), true
	_, err := r.lane.PutMember(ctx, testWorkspace, facts.PutMember{ID: id, Agent: &yes})
	_, joined := r.lane.PutMembership(ctx, testWorkspace, facts.PutMembership{Scope: "s1", Member: id})
	if err = errors.Join(err, joined); err == nil && watches {
		_, err = r.lane.SetFollow(ctx, testWorkspace, facts.SetFollow{
			Scope: "s1", Member: id, Following: true,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func record(op, kind string) facts.RecordActivity {
	return facts.RecordActivity{
		Scope: "s1", OpID: op, Actor: "A", Type: kind, By: facts.Actor{Trusted: true},
	}
}

// A message of a task is one message, its recipients frozen with it, one activity that goes with
// it and counts for nobody, one outbox row, and one conversation a recipient: all in one
// transaction. An activity writes no message at all.
//
// covers: RT-149 RT-169 RT-180 RT-193 RT-198 RT-200
func testTaskMessage(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		follow s1 B
		follow s1 C`)
	all := f.record()
	r.play(t, "post s1 A @C")
	c := all.take()
	if len(c.NewMessages) != 1 || len(c.Activities) != 1 || len(c.Outbox) != 1 ||
		len(c.Targets) != 2 || len(c.ActivityTargets) != 0 || len(c.Conversations) != 2 ||
		len(c.Mentions) != 1 || len(c.Tasks) != 0 {
		t.Fatalf("a message writes %+v", c)
	}
	m, pair, out := c.NewMessages[0], c.Activities[0], c.Outbox[0]
	if got := r.names(t, m.Recipients...); got != "B C" {
		t.Errorf("recipients are %s", got)
	}
	if pair.Type != facts.DiscussionAdded || pair.HighSignal || pair.SignalRank != 0 ||
		pair.Revision != m.Revision || pair.RefType != facts.RefMessage || pair.RefID != m.ID ||
		pair.Actor != m.Author || len(pair.Recipients) != 0 {
		t.Errorf("with it comes %+v", pair)
	}
	lsn := r.lsn(t, testWorkspace)
	if out.Kind != facts.TaskMessage || out.Version != facts.PayloadVersion || out.Seq != m.Seq ||
		out.ID != m.ID || out.Actor != m.Author || out.Scope != m.Scope || out.Workspace != r.key ||
		out.Key != facts.EventKeyOf(lsn, 0) || !slices.Equal(out.Humans, m.Recipients) ||
		len(out.Agents) != 0 || out.CreatedAt != m.CreatedAt {
		t.Errorf("the outbox gets %+v at commit %d", out, lsn)
	}
	for _, row := range c.Conversations {
		if row.Kind != readstate.Task || row.MessageSeq != 1 || row.ActivitySeq != 1 ||
			row.UpdatedLSN != lsn || !slices.Contains(m.Recipients, row.Member) {
			t.Errorf("conversation %+v", row)
		}
	}
	r.play(t, "activity s1 A")
	c = all.take()
	if len(c.NewMessages)+len(c.Targets)+len(c.Mentions) != 0 || len(c.Activities) != 1 ||
		len(c.ActivityTargets) != 2 || len(c.Outbox) != 1 || len(c.Conversations) != 2 {
		t.Fatalf("an activity writes %+v", c)
	}
	a, out := c.Activities[0], c.Outbox[0]
	if a.RefType != facts.RefTaskEvent || !a.HighSignal || a.Seq != 2 ||
		out.Kind != facts.TaskActivity || out.Seq != a.Seq || out.ID != a.ID ||
		!slices.Equal(out.Humans, a.Recipients) {
		t.Errorf("activity %+v, outbox %+v", a, out)
	}
	r.play(t, "activity s1 A low")
	if c = all.take(); len(c.Activities) != 1 || len(c.Outbox)+len(c.ActivityTargets)+
		len(c.Conversations)+len(c.States) != 0 {
		t.Errorf("an activity of low signal writes %+v", c)
	}
	r.play(t, "post s1 A unreadable")
	if c = all.take(); len(c.NewMessages) != 1 || len(c.NewMessages[0].Recipients)+len(c.Activities)+
		len(c.Outbox)+len(c.Targets)+len(c.Conversations) != 0 {
		t.Errorf("what is not readable writes %+v", c)
	}
	r.agree(t)
	told, _ := lastOf[readstate.ActivityEvent](r.settled(t))
	if told.HighSignal || told.Seq != 3 || len(told.Recipients) != 0 {
		t.Errorf("memory is told %+v", told)
	}
}

// Watchers, the assignee and whom a message names are told of it, but not who wrote it; of an
// activity those whom it does not name. Each is told once, whatever grounds there are.
//
// covers: RT-159 RT-162 RT-177 RT-181 RT-187
func testTaskRecipients(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		join s1 D
		follow s1 A
		task s1 D assignee=B`)
	all := f.record()
	for _, step := range []struct{ line, humans string }{
		{"post s1 A @C", "B C"},
		{"post s1 A", "B"}, // who was named once is not told again
		{"post s1 D @A,B,D", "A B"},
		{"post s1 B as=A @A,B", ""}, // nor for whom it was written
		{"activity s1 A", "B"},
		{"activity s1 B", "A"},
		{"activity s1 D", "A B"},
		{"task s1 A status=1", "B"},
		{"task s1 A assignee=C", "C"}, // and not B, who has it no more
		{"task s1 D assignee=nobody", "A"},
		{"post s1 D", "A"},
		{"unfollow s1 A", ""},
		{"post s1 D", ""},
		{"post s1 D @A", "A"},
		{"task s1 D assignee=A", "A"},
		{"activity s1 D", "A"},
	} {
		r.play(t, step.line)
		c := all.take()
		var got string
		for _, o := range c.Outbox {
			got = r.names(t, o.Humans...)
			for i, m := range o.Humans[min(1, len(o.Humans)):] {
				if m <= o.Humans[i] {
					t.Errorf("%s: recipients %d do not ascend", step.line, o.Humans)
				}
			}
		}
		if want := !strings.Contains(step.line, "follow"); len(c.Outbox) == 1 != want || got != step.humans {
			t.Errorf("%s: %d outbox rows, the last for %q, want %q", step.line, len(c.Outbox), got, step.humans)
		}
	}
	r.agree(t)
	told, _ := lastOf[readstate.ActivityEvent](r.settled(t))
	if !told.HighSignal || told.At == 0 || told.Scope == 0 || told.Actor == 0 ||
		len(told.Recipients) != 1 {
		t.Errorf("memory is told %+v", told)
	}
}

// Agents are woken by the outbox and never counted.
//
// covers: RT-075 RT-178 RT-182
func testTaskAgents(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		follow s1 B`)
	r.agent(t, "bot", true)
	r.agent(t, "helper", false)
	all := f.record()
	post := plain("one", "x")
	post.Mentions = []readstate.MemberID{"helper", "bot", "A"}
	if _, err := r.lane.Post(t.Context(), testWorkspace, post); err != nil {
		t.Fatal(err)
	}
	c := all.take()
	if got := r.names(t, c.Outbox[0].Agents...); got != "bot helper" {
		t.Errorf("woken are %q", got)
	}
	if got := r.names(t, c.NewMessages[0].Recipients...); got != "B" || len(c.Targets) != 1 ||
		len(c.Mentions) != 0 || len(c.Conversations) != 1 {
		t.Errorf("counted is %q: %+v", got, c)
	}
	if _, err := r.lane.RecordActivity(t.Context(), testWorkspace, record("two", highType)); err != nil {
		t.Fatal(err)
	}
	c = all.take()
	if got := r.names(t, c.Outbox[0].Agents...); got != "bot" || len(c.ActivityTargets) != 1 {
		t.Errorf("woken is %q, counted %+v", got, c.ActivityTargets)
	}
	// A silent message counts and wakes nobody.
	post = plain("three", "x")
	post.Silent = true
	if _, err := r.lane.Post(t.Context(), testWorkspace, post); err != nil {
		t.Fatal(err)
	}
	c = all.take()
	if len(c.Outbox) != 1 || len(c.Outbox[0].Agents) != 0 || len(c.Outbox[0].Humans) != 1 {
		t.Errorf("a silent message: %+v", c.Outbox)
	}
	f.everyWrite(nil)
	bot := r.stateOf(t, "s1", "bot")
	if bot.Row.Point.Targets+bot.Row.Point.Direct+bot.Row.Activity.Targets != 0 {
		t.Errorf("an agent has %+v", bot.Row)
	}
	last, _ := lastOf[readstate.MessageEvent](r.settled(t))
	if got := r.names(t, last.Recipients...); got != "B" {
		t.Errorf("memory is told of %q", got)
	}
}

// stateOf reads a member's row.
func (r *rig) stateOf(t *testing.T, s readstate.ScopeID, m readstate.MemberID) facts.StateRow {
	t.Helper()
	ctx := t.Context()
	view, err := r.store.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	scope, _, err := view.Scope(ctx, r.key, s)
	member, _, err2 := view.Member(ctx, r.key, m)
	row, _, err3 := view.State(ctx, facts.RowKey{Scope: scope.Info.Key, Member: member.Key})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return row
}

// Whoever watches or is assigned later is told of nothing earlier, and whoever was told stays so.
//
// covers: RT-160 RT-161 RT-196 RT-202
func testTaskRecipientsAreFrozen(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		join s1 D
		task s1 A assignee=B
		follow s1 D
		hide s1 D`)
	r.unreadIn(t, "s1", map[readstate.MemberID][2]uint64{"B": {0, 1}})
	r.script(t, `
		post s1 A
		activity s1 A
		show s1 D`)
	want := map[readstate.MemberID][2]uint64{"B": {1, 2}, "C": {0, 0}, "D": {0, 0}}
	r.unreadIn(t, "s1", want)
	all := f.record()
	r.script(t, `
		unfollow s1 B
		follow s1 C
		leave s1 D`)
	if c := all.take(); len(c.Outbox)+len(c.Targets)+len(c.ActivityTargets)+len(c.Messages) != 0 {
		t.Errorf("a choice writes %+v", c)
	}
	r.unreadIn(t, "s1", want)
	// A cursor that covers an activity is not counted below it; the next one is.
	r.play(t, "actread s1 B 3 service")
	r.unreadIn(t, "s1", map[readstate.MemberID][2]uint64{"B": {1, 0}})
	r.play(t, "activity s1 A")
	r.unreadIn(t, "s1", map[readstate.MemberID][2]uint64{"B": {1, 1}, "C": {0, 1}})
	r.agree(t)
	r.settled(t)
}

// unreadIn compares unread messages and activities as the durable rows have them.
func (r *rig) unreadIn(
	t *testing.T, s readstate.ScopeID, want map[readstate.MemberID][2]uint64,
) {
	t.Helper()
	for m, n := range want {
		row := r.stateOf(t, s, m).Row
		if got := [2]uint64{row.Point.Targets, row.Activity.Targets}; got != n {
			t.Errorf("%s has %d, want %d", m, got, n)
		}
	}
}

// What a message of a task costs depends on whom it is delivered to, not on who could read it.
//
// covers: RT-167 RT-197 RT-201
func testTaskOfThousands(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		join s1 D
		follow s1 B
		task s1 A assignee=C`)
	b := r.lane.NewBatch(testWorkspace)
	for i := range 2000 {
		b.PutMembership(facts.PutMembership{
			Scope: "s1", Member: readstate.MemberID(fmt.Sprint("crowd", i)), CreateMember: true,
		})
	}
	if _, err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := f.record()
	r.play(t, "post s1 A @D")
	c := all.take()
	if len(c.Targets) != 3 || len(c.States) != 3 || len(c.Conversations) != 3 {
		t.Errorf("a message to three writes %d, %d and %d rows",
			len(c.Targets), len(c.States), len(c.Conversations))
	}
	r.play(t, "activity s1 A")
	c = all.take()
	if len(c.ActivityTargets) != 2 || len(c.States) != 2 || len(c.Conversations) != 2 {
		t.Errorf("an activity for two writes %d, %d and %d rows",
			len(c.ActivityTargets), len(c.States), len(c.Conversations))
	}
	r.settled(t)
}

// What is unread of a task follows from its messages and the read cursor alone.
//
// covers: RT-176
func testTaskRebuilt(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		follow s1 B
		post s1 A
		post s1 A @C
		post s1 C
		post s1 B @C
		post s1 A @C
		read s1 B 1 service
		remove s1 5
		edit s1 4
		read s1 C 2 service
		post s1 A @B,C`)
	view, err := r.store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	scope, _, err := view.Scope(t.Context(), r.key, "s1")
	if err != nil {
		t.Fatal(err)
	}
	all, err := view.Messages(t.Context(), facts.MessageQuery{Scope: scope.Info.Key, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for m, want := range map[readstate.MemberID]uint64{"A": 0, "B": 3, "C": 2} {
		row := r.stateOf(t, "s1", m)
		var n uint64
		for i := range all {
			counts := all[i].Revision > row.Row.Read && slices.Contains(all[i].Recipients, row.Member)
			n += uint64(boolInt(counts))
		}
		if n != want || row.Row.Point.Targets != n {
			t.Errorf("%s: %d by the messages, %d kept, want %d", m, n, row.Row.Point.Targets, want)
		}
	}
	r.settled(t)
}
