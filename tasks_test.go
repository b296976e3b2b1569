package tidemark_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// task makes task "task" with the members a to d, of whom b watches it.
func (h *hub) task() {
	h.t.Helper()
	ctx := h.t.Context()
	if _, err := h.PutScope(ctx, facts.PutScope{ID: "task", Type: readstate.Task}); err != nil {
		h.t.Fatal(err)
	}
	for _, m := range []readstate.MemberID{"a", "b", "c", "d"} {
		op := facts.PutMembership{Scope: "task", Member: m, CreateMember: true}
		if _, err := h.PutMembership(ctx, op); err != nil {
			h.t.Fatal(err)
		}
	}
	watch := facts.SetFollow{Scope: "task", Member: "b", Following: true}
	if _, err := h.SetFollow(ctx, watch); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) record(s readstate.ScopeID, kind string) facts.ActivityReceipt {
	h.t.Helper()
	h.posts++
	r, err := h.RecordActivity(h.t.Context(), facts.RecordActivity{
		Scope: s, OpID: fmt.Sprint("act-", h.posts), Actor: "a", Type: kind,
		Payload: []byte(`{"n":1}`),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *hub) row(m readstate.MemberID, s readstate.ScopeID) unread.Row {
	h.t.Helper()
	row, err := h.Row(h.t.Context(), m, s)
	if err != nil {
		h.t.Fatal(err)
	}
	return row
}

func TestTaskOfALibrary(t *testing.T) {
	h := newHub(t)
	h.task()
	ctx := t.Context()
	task, err := h.Task(ctx, "task")
	if err != nil || task != (facts.Task{Scope: "task"}) {
		t.Fatalf("a new task: %+v, %v", task, err)
	}
	who, status := readstate.MemberID("c"), "open"
	put := facts.PutTask{Scope: "task", Actor: "a", Assignee: &who, Status: &status}
	res, err := h.PutTask(ctx, put)
	want := facts.Task{Scope: "task", Assignee: "c", Status: "open"}
	if err != nil || res.Task != want || len(res.Changed) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if task, err = h.Task(ctx, "task"); err != nil || task != want {
		t.Errorf("%+v, %v", task, err)
	}
	if _, err := h.Task(ctx, "c"); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("a channel as a task: %v", err)
	}
	if _, err := h.Task(ctx, "none"); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("no task: %v", err)
	}
	h.postIn("task", facts.Post{Author: "a"})
	h.record("task", "note_added")
	var all []facts.Activity
	f := tidemark.ActivityFilter{Scope: "task", Limit: 3}
	for more := true; more; {
		page, err := h.Activities(ctx, f)
		if err != nil || page.Latest != 4 {
			t.Fatalf("%+v, %v", page, err)
		}
		all, more = slices.Concat(page.Activities, all), page.HasMore
		f.Before = all[0].Seq
	}
	var types []string
	for _, a := range all {
		types = append(types, fmt.Sprintf("%d %s %s/%s %s", a.Seq, a.Type, a.Actor, a.Subject, a.RefType))
	}
	if !slices.Equal(types, []string{
		"1 task_assigned a/c task_event", "2 task_status_changed a/ task_event",
		"3 discussion_added a/ message", "4 note_added a/ task_event",
	}) {
		t.Errorf("activities: %q", types)
	}
	page, err := h.Activities(ctx, tidemark.ActivityFilter{Scope: "task", After: 1, Limit: 1, Timeline: true})
	if err != nil || len(page.Activities) != 1 || page.Activities[0].Seq != 2 || !page.HasMore {
		t.Errorf("the timeline: %+v, %v", page, err)
	}
	talks, err := h.Conversations(ctx, tidemark.ConversationFilter{Member: "c", Limit: 9})
	if err != nil || len(talks) != 1 || talks[0].Info.ID != "task" || talks[0].Kind != readstate.Task {
		t.Errorf("conversations: %+v, %v", talks, err)
	}
	none := tidemark.ConversationFilter{Member: "c", Kind: readstate.DM, Limit: 9}
	if talks, err = h.Conversations(ctx, none); err != nil || len(talks) != 0 {
		t.Errorf("dms: %+v, %v", talks, err)
	}
	none.Kind = readstate.Channel
	if _, err = h.Conversations(ctx, none); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("channels: %v", err)
	}
}

// A task is one row of a member's list, whatever happens in it: messages, activities and a mark add
// up there and are told at once to those whom they are for, and one read takes both away.
//
// covers: RT-042 RT-148 RT-160 RT-165 RT-171 RT-172 RT-173 RT-188 RT-189 RT-200
func TestATaskIsOneRow(t *testing.T) {
	h := newHub(t)
	h.task()
	w := h.watch("a", "b", "c", "d")
	post := h.postIn("task", facts.Post{Author: "a"})
	if got := deltas(w); len(got) != 1 || len(got["b"]) != 1 || !got["b"][0].Summary.HasUnread ||
		got["b"][0].Row.Values != (readstate.Values{Unread: 1}) {
		t.Errorf("after a message: %+v", got)
	}
	h.record("task", "file_shared")
	if got := deltas(w); len(got) != 1 || len(got["b"]) != 1 ||
		got["b"][0].Row.Values != (readstate.Values{Unread: 1, Activity: 1}) {
		t.Errorf("after an activity: %+v", got)
	}
	h.record("task", "note_added")
	for _, kind := range []string{"presence", "agent_runtime", "session_trajectory", "typing"} {
		_, err := h.RecordActivity(t.Context(), facts.RecordActivity{
			Scope: "task", OpID: "x", Actor: "a", Type: kind,
		})
		if !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, m := range []readstate.MemberID{"a", "c", "d"} {
		if s := h.summary(m); s.HasUnread || h.row(m, "task").Values != (readstate.Values{}) {
			t.Errorf("%s has %+v", m, s)
		}
	}
	page, err := h.Unread(t.Context(), "b", "", 100)
	if n := len(page.Rows); err != nil || n != 2 { // with channel c
		t.Errorf("%d rows, %v", n, err)
	}
	mark := facts.MarkUnread{Scope: "task", Member: "b", Trusted: true}
	if _, err := h.MarkUnread(t.Context(), mark); err != nil {
		t.Fatal(err)
	}
	listed := func() int {
		t.Helper()
		talks, err := h.Conversations(t.Context(), tidemark.ConversationFilter{Member: "b", Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		return len(talks)
	}
	if n := listed(); n != 1 {
		t.Errorf("%d conversations", n)
	}
	last := readstate.Seq(3)
	read := facts.MarkRead{
		Scope: "task", Member: "b", Revision: &post.Revision, ActivitySeq: &last, Trusted: true,
	}
	state, err := h.MarkRead(t.Context(), read)
	if err != nil || state.Row.Values != (readstate.Values{}) || state.Row.Presented.Shown ||
		state.Stored.Manual.Set || h.summary("b").HasUnread || listed() != 1 {
		t.Errorf("after the read: %+v, %v, %d conversations", state, err, listed())
	}
	// Who loses sight of the task after the commit is shown nothing of it.
	h.record("task", "file_shared")
	no := false
	hide := facts.PutMembership{Scope: "task", Member: "b", Visible: &no}
	if _, err := h.PutMembership(t.Context(), hide); err != nil {
		t.Fatal(err)
	}
	if h.summary("b").HasUnread {
		t.Error("what is not seen is shown")
	}
}

// A read of a task takes as many statements whatever is unread, writes the member's row and
// nothing else, and no message and no activity is looked through, then or after a restart.
//
// covers: RT-149 RT-150 RT-154 RT-194
func TestTaskReadStatements(t *testing.T) {
	h := newHub(t)
	h.task()
	read := func(post facts.Receipt) []string {
		t.Helper()
		h.sql.take()
		op := facts.MarkRead{Scope: "task", Member: "b", Revision: &post.Revision}
		state, err := h.MarkRead(t.Context(), op)
		if err != nil || state.Row.Values.Unread != 0 {
			t.Fatalf("%+v, %v", state, err)
		}
		return h.sql.take()
	}
	h.row("b", "task")
	few := read(h.postIn("task", facts.Post{Author: "a"}))
	var last facts.Receipt
	for i := range 300 {
		last = h.postIn("task", facts.Post{Author: "a"})
		if i%3 == 0 {
			h.record("task", "file_shared")
		}
	}
	many := read(last)
	if len(many) != len(few) {
		t.Errorf("%d statements for 300 messages, %d for one:\n%s", len(many), len(few),
			strings.Join(many, "\n"))
	}
	for _, q := range many {
		for _, word := range []string{"INSERT", "UPDATE", "DELETE"} {
			if strings.HasPrefix(q, word) && !strings.Contains(q, "conversation_member_states") &&
				!strings.HasPrefix(q, "UPDATE workspaces") {
				t.Errorf("a read writes: %s", q)
			}
		}
		if strings.Contains(q, "scope_messages") {
			t.Errorf("a read looks at messages: %s", q)
		}
	}
	h.postIn("task", facts.Post{Author: "a"})
	h.reopen()
	h.sql.take()
	for range 2 { // opened, and refreshed
		if page, err := h.Unread(t.Context(), "b", "", 100); err != nil || len(page.Rows) != 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		if has, _ := h.HasUnread("b"); !has {
			t.Error("nothing unread")
		}
	}
	for _, q := range h.sql.take() {
		if strings.Contains(q, "erased = 1") {
			continue // not asked for by a page
		}
		for _, word := range []string{
			"scope_messages", "scope_activity_events", "message_targets", "activity_targets t",
			"im_conversation_index", "outbox",
		} {
			if strings.Contains(q, word) {
				t.Errorf("a page asks for %s: %s", word, q)
			}
		}
	}
}

// What a message of a task costs in statements does not grow with those who could read it.
//
// covers: RT-167 RT-201
func TestTaskMessageStatements(t *testing.T) {
	h := newHub(t)
	h.task()
	cost := func() [2]int {
		t.Helper()
		h.postIn("task", facts.Post{Author: "a"})
		h.record("task", "file_shared")
		h.sql.take()
		h.postIn("task", facts.Post{Author: "a"})
		posted := h.sql.count()
		h.record("task", "file_shared")
		return [2]int{posted, h.sql.count()}
	}
	few := cost()
	b := h.Batch()
	for i := range 3000 {
		b.PutMembership(facts.PutMembership{
			Scope: "task", Member: readstate.MemberID(fmt.Sprint("crowd", i)), CreateMember: true,
		})
	}
	if _, err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if many := cost(); many != few {
		t.Errorf("statements of a message and of an activity: %d among thousands, %d among four", many, few)
	}
}

// Every fact is where it was after a restart, whatever memory had of it.
//
// covers: RT-005 RT-493
func TestFactsSurviveARestart(t *testing.T) {
	h := newHub(t)
	h.task()
	ctx := t.Context()
	who, status, level, one := readstate.MemberID("b"), "open", readstate.LevelMentions, readstate.Seq(1)
	post := h.postIn("task", facts.Post{Author: "a", Payload: []byte(`"x"`)})
	_, err := h.PutTask(ctx, facts.PutTask{Scope: "task", Actor: "a", Assignee: &who, Status: &status})
	_, err2 := h.MarkRead(ctx, facts.MarkRead{
		Scope: "task", Member: "b", Revision: &post.Revision, ActivitySeq: &one, Trusted: true,
	})
	_, err3 := h.MarkUnread(ctx, facts.MarkUnread{Scope: "task", Member: "b", Trusted: true})
	_, err4 := h.PutMembership(ctx, facts.PutMembership{Scope: "task", Member: "b", Level: &level})
	no := false
	_, err5 := h.PutMembership(ctx, facts.PutMembership{Scope: "task", Member: "c", Visible: &no})
	_, err6 := h.Leave(ctx, facts.Leave{Scope: "task", Member: "d"})
	if err := errors.Join(err, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	h.summary("b")
	h.reopen()
	task, err := h.Task(ctx, "task")
	if err != nil || task != (facts.Task{Scope: "task", Assignee: "b", Status: "open"}) {
		t.Errorf("task: %+v, %v", task, err)
	}
	activities, err := h.Activities(ctx, tidemark.ActivityFilter{Scope: "task", Limit: 9})
	if err != nil || len(activities.Activities) != 3 {
		t.Errorf("activities: %+v, %v", activities, err)
	}
	messages, err := h.Messages(ctx, tidemark.MessageFilter{Scope: "task", Limit: 9})
	if err != nil || len(messages.Messages) != 1 || string(messages.Messages[0].Payload) != `"x"` {
		t.Errorf("messages: %+v, %v", messages, err)
	}
	row := func(m readstate.MemberID) readstate.Row {
		t.Helper()
		row, ok, err := h.Membership(ctx, m, "task")
		if err != nil || !ok {
			t.Fatalf("%s: found %t, %v", m, ok, err)
		}
		return row.Row
	}
	if b := row("b"); !b.Joined || !b.Manual.Set || b.Read != 1 || b.Activity.Read != 1 ||
		b.Level != level || b.Follow != readstate.FollowExplicit {
		t.Errorf("b: %+v", b)
	}
	if row("c").Visible || row("d").Joined {
		t.Errorf("c: %+v, d: %+v", row("c"), row("d"))
	}
	if v := h.row("b", "task"); v.Values != (readstate.Values{Activity: 2}) || !v.Presented.Shown {
		t.Errorf("b is served %+v", v)
	}
}

// A mark is durable with its row; nothing is shown of it before the row is loaded.
//
// covers: RT-184
func TestTaskMarkAfterARestart(t *testing.T) {
	h := newHub(t)
	h.task()
	mark := facts.MarkUnread{Scope: "task", Member: "c", Trusted: true}
	if _, err := h.MarkUnread(t.Context(), mark); err != nil {
		t.Fatal(err)
	}
	h.reopen()
	row, ok, err := h.Membership(t.Context(), "c", "task")
	if err != nil || !ok || !row.Row.Manual.Set {
		t.Errorf("the durable row: %+v, %v", row, err)
	}
	if has, state := h.HasUnread("c"); has && state == unread.Ready {
		t.Errorf("before it is loaded: %t, %s", has, state)
	}
	if !h.summary("c").HasUnread || !h.row("c", "task").Presented.Shown {
		t.Error("the mark is not shown")
	}
}
