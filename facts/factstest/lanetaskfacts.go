package factstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Each field that changes is one activity; what is so already is none. The timeline has these and
// nothing else.
//
// covers: RT-180
func testTaskFacts(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		follow s1 B
		post s1 A`)
	ctx := t.Context()
	who, status, title, none := readstate.MemberID("B"), "open", "ship", readstate.MemberID("")
	put := facts.PutTask{
		Scope: "s1", Actor: "A", Assignee: &who, Status: &status, Title: &title,
		By: facts.Actor{Trusted: true},
	}
	first, err := r.lane.PutTask(ctx, testWorkspace, put)
	want := facts.Task{Scope: "s1", Assignee: "B", Status: "open", Title: "ship"}
	changed := []string{facts.TaskAssigned, facts.TaskStatusChanged, facts.TaskTitleChanged}
	if err != nil || first.Task != want || !slices.Equal(first.Changed, changed) {
		t.Fatalf("%+v, %v", first, err)
	}
	_, before := f.counted()
	again, err := r.lane.PutTask(ctx, testWorkspace, put)
	if _, after := f.counted(); err != nil || again.Task != want || again.Changed != nil ||
		again.LSN != first.LSN || after != before {
		t.Errorf("the same again: %+v, %v, %d commits", again, err, after-before)
	}
	put = facts.PutTask{Scope: "s1", Actor: "A", Assignee: &none, Status: &title, By: put.By}
	second, err := r.lane.PutTask(ctx, testWorkspace, put)
	want.Assignee, want.Status = "", "ship"
	changed = []string{facts.TaskUnassigned, facts.TaskStatusChanged}
	if err != nil || second.Task != want || !slices.Equal(second.Changed, changed) {
		t.Fatalf("%+v, %v", second, err)
	}
	var got []string
	for _, a := range r.activities(t, facts.ActivityQuery{Timeline: true, Limit: 100}) {
		subject := "nobody"
		if a.Subject != 0 {
			subject = r.names(t, a.Subject)
		}
		got = append(got, fmt.Sprintf("%d %s %t %s %s", a.Seq, a.Type, a.HighSignal, subject, a.Payload))
	}
	lines := []string{
		"2 task_assigned true B ", `3 task_status_changed true nobody {"from":"","to":"open"}`,
		`4 task_title_changed false nobody {"from":"","to":"ship"}`, "5 task_unassigned true B ",
		`6 task_status_changed true nobody {"from":"open","to":"ship"}`,
	}
	if !slices.Equal(got, lines) {
		t.Errorf("the timeline is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
	r.settled(t)
}

// activities lists those of s1.
func (r *rig) activities(t *testing.T, q facts.ActivityQuery) []facts.ActivityRow {
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
	q.Scope = scope.Info.Key
	rows, err := view.Activities(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func testTaskRefusals(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		hide s1 B
		create s2 channel
		join s2 A`)
	ctx := t.Context()
	to := func(m readstate.MemberID) *readstate.MemberID { return &m }
	long, bad := strings.Repeat("x", facts.MaxNameBytes+1), "\xff"
	_, before := f.counted()
	for what, c := range map[string]struct {
		put  facts.PutTask
		want error
	}{
		"nowhere":             {facts.PutTask{Scope: "s9", Actor: "A"}, facts.ErrNotFound},
		"in a channel":        {facts.PutTask{Scope: "s2", Actor: "A"}, facts.ErrInvalid},
		"by nobody":           {facts.PutTask{Scope: "s1"}, facts.ErrInvalid},
		"by a stranger":       {facts.PutTask{Scope: "s1", Actor: "ghost"}, facts.ErrNotFound},
		"to a stranger":       {facts.PutTask{Scope: "s1", Actor: "A", Assignee: to("ghost")}, facts.ErrNotFound},
		"to who is not in":    {facts.PutTask{Scope: "s1", Actor: "A", Assignee: to("C")}, facts.ErrForbidden},
		"to who sees nothing": {facts.PutTask{Scope: "s1", Actor: "A", Assignee: to("B")}, facts.ErrForbidden},
		"long status":         {facts.PutTask{Scope: "s1", Actor: "A", Status: &long}, facts.ErrInvalid},
		"bad title":           {facts.PutTask{Scope: "s1", Actor: "A", Title: &bad}, facts.ErrInvalid},
		"by who is not in": {facts.PutTask{
			Scope: "s1", Actor: "C", By: facts.Actor{Member: "C"},
		}, facts.ErrNotFound},
	} {
		if _, err := r.lane.PutTask(ctx, testWorkspace, c.put); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	post := plain("one", "x")
	post.Everyone = true
	if _, err := r.lane.Post(ctx, testWorkspace, post); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("to everyone: %v", err)
	}
	follow := facts.SetFollow{Scope: "s1", Member: "B", Following: true}
	if _, err := r.lane.SetFollow(ctx, testWorkspace, follow); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("a watch of what is not seen: %v", err)
	}
	follow.Scope, follow.Member = "s2", "A"
	if _, err := r.lane.SetFollow(ctx, testWorkspace, follow); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("a watch of a channel: %v", err)
	}
	if _, after := f.counted(); after != before {
		t.Errorf("%d commits of what is refused", after-before)
	}
	r.settled(t)
}

// Whether somebody watches is the only thing that a task keeps of anybody's choices: being
// assigned or named leaves no row, nor does a watch change a level.
//
// covers: RT-186 RT-187
func testTaskSettings(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		task s1 A assignee=B
		post s1 A @C`)
	check := func(m readstate.MemberID, follow readstate.Follow, set bool) {
		t.Helper()
		row := r.stateOf(t, "s1", m)
		if row.Row.Follow != follow || row.Row.Notification != (readstate.Notification{}) ||
			(row.NotificationLSN != 0) != set {
			t.Errorf("%s: %+v", m, row)
		}
	}
	check("B", readstate.FollowAutomatic, false)
	check("C", readstate.FollowAutomatic, false)
	r.script(t, `
		follow s1 B
		unfollow s1 C`)
	check("B", readstate.FollowExplicit, true)
	check("C", readstate.FollowStopped, true)
	// A choice outlives its member's leaving, and only somebody trusted ends it then.
	r.play(t, "leave s1 B")
	check("B", readstate.FollowExplicit, true)
	for _, op := range []facts.SetFollow{
		{Scope: "s1", Member: "B"}, {Scope: "s1", Member: "C", Following: true},
		{Scope: "s1", Member: "B", Following: true, Trusted: true},
	} {
		_, err := r.lane.SetFollow(t.Context(), testWorkspace, op)
		if want := op.Member == "B"; errors.Is(err, facts.ErrNotFound) != want {
			t.Errorf("%+v: %v", op, err)
		}
	}
	r.play(t, "follow s1 C")
	r.play(t, "unfollow s1 B")
	check("B", readstate.FollowStopped, true)
	r.agree(t)
	r.settled(t)
}
