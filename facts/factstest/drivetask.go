package factstest

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// Types of activity that stand for those of the oracle.
const (
	highType = "file_shared"
	lowType  = "note_added"
)

func (d *Driver) activity(
	ctx context.Context, op model.Op, want model.Outcome, accepted bool,
) error {
	record := facts.RecordActivity{
		Scope: d.Scope(op.Scope), OpID: d.opID(), Actor: Member(op.Member), Type: highType,
		By: facts.Actor{Trusted: true},
	}
	if op.LowSignal {
		record.Type = lowType
	}
	r, err := d.do.RecordActivity(ctx, record)
	if err != nil || !accepted {
		return err
	}
	if r.Seq != readstate.Seq(want.Activity) || r.HighSignal == op.LowSignal {
		return fmt.Errorf("activity is %+v, want seq %d", r, want.Activity)
	}
	return nil
}

func word(w model.Word) *string {
	if w == 0 {
		return nil
	}
	text := fmt.Sprint("word ", w)
	return &text
}

func (d *Driver) task(
	ctx context.Context, op model.Op, want model.Outcome, accepted bool,
) error {
	put := facts.PutTask{
		Scope: d.Scope(op.Scope), Actor: Member(op.Member), Status: word(op.Status),
		Title: word(op.Title), By: facts.Actor{Trusted: true},
	}
	if op.Assigns {
		assignee := readstate.MemberID("")
		if op.Other != 0 {
			assignee = Member(op.Other)
		}
		put.Assignee = &assignee
	}
	r, err := d.do.PutTask(ctx, put)
	if err != nil || !accepted {
		return err
	}
	info, _ := d.World.Scope(op.Scope)
	task := facts.Task{Scope: d.Scope(op.Scope)}
	if info.Assignee != 0 {
		task.Assignee = Member(info.Assignee)
	}
	if w := word(info.Status); w != nil {
		task.Status = *w
	}
	if w := word(info.Title); w != nil {
		task.Title = *w
	}
	if r.Task != task || len(r.Changed) != want.Changes {
		return fmt.Errorf("task is %+v, want %+v after %d changes", r, task, want.Changes)
	}
	return nil
}

// Activities compares the activities of a scope with the oracle's: who did what, of which signal,
// and in a task to whom it was delivered. The error says how they differ.
func (d *Driver) Activities(
	ctx context.Context, v facts.View, scope facts.ScopeRow, s model.ScopeID,
) error {
	want := d.World.Activities(s)
	var got []facts.ActivityRow
	for {
		q := facts.ActivityQuery{Scope: scope.Info.Key, Before: 1 << 40, Limit: 7}
		if len(got) > 0 {
			q.Before = got[0].Seq
		}
		page, err := v.Activities(ctx, q)
		if err != nil {
			return err
		}
		got = slices.Concat(page, got)
		if len(page) < q.Limit {
			break
		}
	}
	if len(got) != len(want) || scope.Ranks.LatestActivity != readstate.Seq(len(want)) {
		return fmt.Errorf("%s has %d activities, the newest %d, want %d",
			s, len(got), scope.Ranks.LatestActivity, len(want))
	}
	for i, a := range got {
		keys := append([]readstate.MemberKey{a.Actor}, a.Recipients...)
		ids, err := v.MemberIDs(ctx, keys)
		if err != nil {
			return err
		}
		var to []readstate.MemberID
		for _, k := range a.Recipients {
			to = append(to, ids[k])
		}
		slices.Sort(to)
		w := want[i]
		if ids[a.Actor] != Member(w.Actor) || a.HighSignal == w.Low ||
			a.Revision != readstate.Revision(w.Revision) || !slices.Equal(to, members(w.Recipients)) {
			return fmt.Errorf("activity %d of %s is %+v to %v, want %+v", i+1, s, a, to, w)
		}
	}
	return nil
}
