package factstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// testOnACommit asks what becomes of an operation that comes while a commit is under way, for
// every way in which that commit may end.
func testOnACommit(t *testing.T, open Opener, share int) {
	ends := []struct {
		name     string
		end      fault
		accepted bool
	}{
		{"Holds", committed, true}, {"Refused", refused, true},
		{"LostButDone", lost(committed), true}, {"LostAndUndone", lost(undone), true},
		{"TakenOver", takenOver, false},
	}
	for i, e := range ends {
		for j, p := range pairs {
			if share > 1 && j%len(ends) != i {
				continue
			}
			t.Run(e.name+"/"+p.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &faulty{Store: open(t)}
					p.play(t, newRig(t, f, facts.LaneConfig{}), f, e.end, e.accepted)
				})
			})
		}
	}
}

// Ways in which a commit ends.
type fault func(f *faulty, tx facts.Tx) error

func committed(_ *faulty, tx facts.Tx) error { return tx.Commit(context.Background()) }
func undone(_ *faulty, tx facts.Tx) error    { return tx.Rollback() }

func refused(_ *faulty, tx facts.Tx) error {
	if err := tx.Rollback(); err != nil {
		return err
	}
	return fmt.Errorf("%w: deadlock", facts.ErrAborted)
}

func lost(end fault) fault {
	return func(f *faulty, tx facts.Tx) error {
		if err := end(f, tx); err != nil {
			return err
		}
		return errLost
	}
}

func takenOver(f *faulty, tx facts.Tx) error {
	if err := tx.Rollback(); err != nil {
		return err
	}
	if _, err := f.TakeOver(context.Background()); err != nil {
		return err
	}
	return errLost
}

// pair is an operation whose commit is held, and one that comes meanwhile.
type pair struct {
	name          string
	first, second func(ctx context.Context, r *rig) error
	unowned       bool // nobody can have taken over what the first makes
}

var pairs = []pair{
	{name: "a post on a post", first: doPost("one"), second: doPost("two")},
	{name: "the same post again", first: doPost("one"), second: func(ctx context.Context, r *rig) error {
		res, err := r.lane.Post(ctx, testWorkspace, plain("one", "x"))
		if err == nil && !res.Duplicate {
			return fmt.Errorf("posted twice: %+v", res)
		}
		return err
	}},
	{name: "another body", first: doPost("one"), second: func(ctx context.Context, r *rig) error {
		_, err := r.lane.Post(ctx, testWorkspace, plain("one", "y"))
		if errors.Is(err, facts.ErrMismatch) {
			return nil
		}
		return fmt.Errorf("another body: %w", firstOf(err, errors.New("accepted")))
	}},
	{name: "the same read again", first: doRead, second: doRead},
	{name: "a membership that is so already", first: doJoin, second: doJoin},
	{name: "a post by a new member", first: func(ctx context.Context, r *rig) error {
		_, err := r.lane.PutMember(ctx, testWorkspace, facts.PutMember{ID: "new"})
		return err
	}, second: func(ctx context.Context, r *rig) error {
		post := plain("new", "x")
		post.Author = "new"
		_, err := r.lane.Post(ctx, testWorkspace, post)
		return err
	}},
	{name: "a member of a new workspace", unowned: true, first: func(ctx context.Context, r *rig) error {
		_, err := r.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: "v"})
		return err
	}, second: func(ctx context.Context, r *rig) error {
		_, err := r.lane.PutMember(ctx, "v", facts.PutMember{ID: "A"})
		return err
	}},
}

func firstOf(err, or error) error {
	if err != nil {
		return err
	}
	return or
}

func doPost(op string) func(context.Context, *rig) error {
	return func(ctx context.Context, r *rig) error {
		_, err := r.lane.Post(ctx, testWorkspace, plain(op, "x"))
		return err
	}
}

func doRead(ctx context.Context, r *rig) error {
	one := readstate.Revision(1)
	_, err := r.lane.MarkRead(ctx, testWorkspace, facts.MarkRead{
		Scope: "s1", Member: "B", Revision: &one, Trusted: true,
	})
	return err
}

func doJoin(ctx context.Context, r *rig) error {
	level := readstate.LevelMentions
	_, err := r.lane.PutMembership(ctx, testWorkspace, facts.PutMembership{
		Scope: "s1", Member: "C", Level: &level,
	})
	return err
}

// play runs a pair: the second operation comes while the commit of the first is under way, which
// then ends as given. Both are accepted, in their order, if anything can be.
func (p pair) play(t *testing.T, r *rig, f *faulty, end fault, accepted bool) {
	r.channel(t)
	if _, err := r.lane.Post(t.Context(), testWorkspace, plain("zero", "x")); err != nil {
		t.Fatal(err)
	}
	release := f.hold(t)
	run := func(op func(context.Context, *rig) error) *outcome[struct{}] {
		return start(t.Context(), func(ctx context.Context) (struct{}, error) {
			return struct{}{}, op(ctx, r)
		})
	}
	both := []*outcome[struct{}]{run(p.first), run(p.second)}
	if both[0].done || both[1].done {
		t.Error("answered before the commit was durable")
	}
	release(end)
	synctest.Wait()
	for i, o := range both {
		switch {
		case !o.done:
			t.Errorf("operation %d is not answered", i+1)
		case accepted && o.err != nil:
			t.Errorf("operation %d: %v", i+1, o.err)
		case !accepted && !errors.Is(o.err, facts.ErrNotOwner) && !p.unowned:
			t.Errorf("operation %d of a lost group: %v", i+1, o.err)
		}
	}
	r.lane.Close()
	next := map[readstate.WorkspaceID]readstate.LSN{}
	for _, c := range r.commits {
		if next[c.Workspace]++; c.LSN != next[c.Workspace] {
			t.Errorf("commit %d of %s is told as number %d", c.LSN, c.Workspace, next[c.Workspace])
		}
	}
	for id, n := range posted(r.commits) {
		if n != 1 {
			t.Errorf("%s is told %d times", id, n)
		}
	}
}
