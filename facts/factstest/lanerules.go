package factstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// The rules of fences, broken groups and uncertain commits, each with what would happen without
// it.
var ruleParts = []lanePart{
	{"RefusedAfterAChange", testRefusedAfterAChange},
	{"OtherWorkspaceFenced", testOtherWorkspaceFenced},
	{"FencedOneByOne", testFencedOneByOne},
	{"TakenOverByAnotherLane", testTakenOverByAnotherLane},
	{"RefusedInALostGroup", testRefusedInALostGroup},
	{"WorkspaceLostAndUndone", testWorkspaceLostAndUndone},
	{"WorkspaceLostButDone", testWorkspaceLostButDone},
	{"ReadBackIsRepeated", testReadBackIsRepeated},
	{"ClosedWhileReadingBack", testClosedWhileReadingBack},
	{"WorkspaceRolledBack", testWorkspaceRolledBack},
}

// lsn is the number of the workspace's last commit.
func (r *rig) lsn(t *testing.T, id readstate.WorkspaceID) readstate.LSN {
	t.Helper()
	view, err := r.store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, ok, err := view.Workspace(t.Context(), id)
	if err = errors.Join(err, view.Close()); err != nil || !ok {
		t.Fatalf("workspace %q: found %t, %v", id, ok, err)
	}
	return row.LSN
}

// An operation that makes a member and is refused later has made nobody, and costs its
// neighbours nothing.
func testRefusedAfterAChange(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	future := readstate.Revision(99)
	bad := plain("bad", "x")
	bad.Author, bad.CreateMembers, bad.AdvanceCursor = "ghost", true, &future
	b := r.lane.NewBatch(testWorkspace)
	b.Post(plain("one", "x"))
	b.Post(bad)
	b.Post(plain("two", "x"))
	res, err := b.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if res[0].Err != nil || res[2].Err != nil || !errors.Is(res[1].Err, facts.ErrFuture) ||
		res[2].Receipt.Seq != res[0].Receipt.Seq+1 {
		t.Errorf("answers: %+v", res)
	}
	late := plain("late", "x")
	late.Author = "ghost"
	if _, err := r.lane.Post(ctx, testWorkspace, late); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("a post by who was not made: %v", err)
	}
	for _, c := range r.settled(t) {
		for _, e := range c.Events {
			if p, ok := e.(readstate.PrincipalEvent); ok && p.Info.ID == "ghost" {
				t.Errorf("commit %d makes the member of a refused post", c.LSN)
			}
		}
	}
}

// One workspace of the lane is somebody else's: the others go on, and its memory goes once.
func testOtherWorkspaceFenced(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	ctx := t.Context()
	if _, err := r.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: "v"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.lane.PutMember(ctx, "v", facts.PutMember{ID: "A"}); err != nil {
		t.Fatal(err)
	}
	last := r.lsn(t, "v")
	f.refuse(r.key + 1)
	type answer struct {
		mine bool
		err  error
	}
	answers := make(chan answer)
	for i := range 20 {
		go func() {
			id := readstate.MemberID(fmt.Sprint("n", i))
			_, err := r.lane.PutMember(ctx, "v", facts.PutMember{ID: id})
			answers <- answer{false, err}
		}()
		go func() {
			_, err := r.lane.Post(ctx, testWorkspace, plain(fmt.Sprint("n", i), "x"))
			answers <- answer{true, err}
		}()
	}
	for range 40 {
		a := <-answers
		if a.mine && a.err != nil {
			t.Errorf("a neighbour: %v", a.err)
		}
		if !a.mine && !errors.Is(a.err, facts.ErrNotOwner) {
			t.Errorf("somebody else's: %v", a.err)
		}
	}
	f.everyWrite(func(*facts.Changes) error { return fmt.Errorf("%w: gone", facts.ErrUnavailable) })
	if _, err := r.lane.Post(ctx, testWorkspace, plain("gone", "x")); !errors.Is(err, facts.ErrUnavailable) {
		t.Errorf("with the store gone: %v", err)
	}
	f.everyWrite(nil)
	r.lane.Close()
	if want := []forgotten{{"v", last}}; !slices.Equal(r.dropped, want) {
		t.Errorf("forgotten are %v, want %v", r.dropped, want)
	}
}

// A group that runs one by one may meet a refused fence, too.
func testFencedOneByOne(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	f.refuse(r.key)
	future := readstate.Revision(99)
	bad := plain("bad", "x") // which breaks the group before it comes to its fence
	bad.Author, bad.CreateMembers, bad.AdvanceCursor = "ghost", true, &future
	b := r.lane.NewBatch(testWorkspace)
	b.Post(plain("one", "x"))
	b.Post(bad)
	b.Post(plain("two", "x"))
	res, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range res {
		if !errors.Is(x.Err, facts.ErrNotOwner) {
			t.Errorf("operation %d: %v", i, x.Err)
		}
	}
	r.settled(t)
	if len(r.dropped) != 1 {
		t.Errorf("forgotten are %v", r.dropped)
	}
}

// A lane that takes over finds every workspace at its number and goes on from there; the former
// one writes nothing more, and its memory goes once.
func testTakenOverByAnotherLane(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	ctx := t.Context()
	last := r.lsn(t, testWorkspace)
	var found []forgotten
	var applied []readstate.LSN
	next, err := facts.NewLane(ctx, facts.LaneConfig{
		Store: f.Store, NewID: func() string { return "unused" },
		Apply: func(c facts.Commit) { applied = append(applied, c.LSN) },
		Dropped: func(w readstate.WorkspaceID, lsn readstate.LSN) {
			found = append(found, forgotten{w, lsn})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_, err := r.lane.Post(ctx, testWorkspace, plain(fmt.Sprint("late", i), "x"))
		if !errors.Is(err, facts.ErrNotOwner) {
			t.Errorf("a post by the former owner: %v", err)
		}
	}
	if _, err := next.Post(ctx, testWorkspace, plain("next", "x")); err != nil {
		t.Errorf("a post by the next owner: %v", err)
	}
	next.Close()
	r.lane.Close()
	want := []forgotten{{testWorkspace, last}}
	if !slices.Equal(found, want) || !slices.Equal(applied, []readstate.LSN{last + 1}) {
		t.Errorf("the next owner finds %v and applies %v after %d", found, applied, last)
	}
	if !slices.Equal(r.dropped, want) {
		t.Errorf("the former owner forgets %v, want %v", r.dropped, want)
	}
}

// While the answer of a commit is lost somebody else takes over: what had been refused is still
// refused for its own reason, and the memory goes once.
func testRefusedInALostGroup(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	last := r.lsn(t, testWorkspace)
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Commit(context.Background()); err != nil {
			return err
		}
		if _, err := f.TakeOver(context.Background()); err != nil {
			return err
		}
		return errLost
	})
	b := r.lane.NewBatch(testWorkspace)
	b.Post(plain("one", "x"))
	nowhere := plain("two", "x")
	nowhere.Scope = "nowhere"
	b.Post(nowhere)
	res, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(res[0].Err, facts.ErrNotOwner) || res[0].Receipt != (facts.Receipt{}) ||
		!errors.Is(res[1].Err, facts.ErrNotFound) {
		t.Errorf("answers: %+v", res)
	}
	late := facts.PutMember{ID: "late"}
	if _, err := r.lane.PutMember(t.Context(), testWorkspace, late); !errors.Is(err, facts.ErrNotOwner) {
		t.Errorf("afterwards: %v", err)
	}
	r.settled(t)
	if want := []forgotten{{testWorkspace, last}}; !slices.Equal(r.dropped, want) {
		t.Errorf("forgotten are %v, want %v", r.dropped, want)
	}
}

// lostWorkspace makes workspace v in a commit whose answer is lost.
func lostWorkspace(t *testing.T, r *rig, f *faulty, end func(facts.Tx) error) {
	t.Helper()
	ctx := t.Context()
	f.nextCommit(func(tx facts.Tx) error {
		if err := end(tx); err != nil {
			return err
		}
		return errLost
	})
	if _, err := r.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: "v"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.lane.PutMember(ctx, "v", facts.PutMember{ID: "A"}); err != nil {
		t.Fatal(err)
	}
	r.lane.Close()
	var of []readstate.LSN
	for _, c := range r.commits {
		if c.Workspace == "v" {
			of = append(of, c.LSN)
		}
	}
	if !slices.Equal(of, []readstate.LSN{1, 2}) || len(r.dropped) > 0 {
		t.Errorf("commits %v, forgotten %v", of, r.dropped)
	}
}

func testWorkspaceLostAndUndone(t *testing.T, r *rig, f *faulty) {
	lostWorkspace(t, r, f, func(tx facts.Tx) error { return tx.Rollback() })
}

func testWorkspaceLostButDone(t *testing.T, r *rig, f *faulty) {
	lostWorkspace(t, r, f, func(tx facts.Tx) error { return tx.Commit(context.Background()) })
}

// While the store does not answer nothing can be known: the lane asks until it does.
func testReadBackIsRepeated(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	left := 3
	f.everyReadBack(func() error {
		if left--; left >= 0 {
			return fmt.Errorf("%w: gone", facts.ErrUnavailable)
		}
		return nil
	})
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Commit(context.Background()); err != nil {
			return err
		}
		return errLost
	})
	r.play(t, "post s1 A @B")
	r.agree(t)
	if left != -1 {
		t.Errorf("%d answers of the store are left", left)
	}
	if got := posted(r.settled(t)); len(got) != 1 || len(r.dropped) > 0 {
		t.Errorf("events %v, forgotten %v", got, r.dropped)
	}
}

// A lane that is closed while nobody knows says so: the operation may have happened.
func testClosedWhileReadingBack(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	asked := make(chan struct{}, 100)
	f.everyReadBack(func() error {
		asked <- struct{}{}
		return fmt.Errorf("%w: gone", facts.ErrUnavailable)
	})
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Commit(context.Background()); err != nil {
			return err
		}
		return errLost
	})
	answer := make(chan error, 1)
	go func() {
		_, err := r.lane.Post(t.Context(), testWorkspace, plain("one", "x"))
		answer <- err
	}()
	<-asked
	r.lane.Close()
	if err := <-answer; !errors.Is(err, facts.ErrUnavailable) {
		t.Errorf("answer: %v", err)
	}
	if got := posted(r.commits); len(got) > 0 {
		t.Errorf("told of %v, which nobody knows", got)
	}
}

// A workspace whose commit was refused is none; it can be made again, under the same key.
func testWorkspaceRolledBack(t *testing.T, r *rig, f *faulty) {
	ctx := t.Context()
	f.everyWrite(func(c *facts.Changes) error {
		if len(c.NewWorkspaces) > 0 {
			return fmt.Errorf("%w: gone", facts.ErrUnavailable)
		}
		return nil
	})
	if _, err := r.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: "v"}); !errors.Is(err, facts.ErrUnavailable) {
		t.Errorf("made: %v", err)
	}
	f.everyWrite(nil)
	if _, err := r.lane.PutMember(ctx, "v", facts.PutMember{ID: "A"}); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("a member of no workspace: %v", err)
	}
	if _, err := r.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: "v"}); err != nil {
		t.Error(err)
	}
	if got := r.lsn(t, "v"); got != 1 {
		t.Errorf("it begins at %d", got)
	}
}
