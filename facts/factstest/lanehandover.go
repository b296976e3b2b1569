package factstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// node is a shared lane with what it told of its workspaces.
type node struct {
	lane    *facts.Lane
	serving func() bool

	mu  sync.Mutex
	log []string // "dropped 5", "released", "commit 6"
}

func (n *node) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, fmt.Sprintf(format, args...))
}

// told returns what was noted since the last call.
func (n *node) told() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	log := fmt.Sprint(n.log)
	n.log = nil
	return log
}

func openNode(t *testing.T, store facts.Store) *node {
	t.Helper()
	n := &node{serving: func() bool { return true }}
	var ids atomic.Int64
	lane, err := facts.NewLane(t.Context(), facts.LaneConfig{
		Store: store, Shared: true,
		NewID:    func() string { return fmt.Sprintf("%p-%d", n, ids.Add(1)) },
		Serving:  func() bool { return n.serving() },
		Apply:    func(c facts.Commit) { n.note("commit %d", c.LSN) },
		Dropped:  func(_ readstate.WorkspaceID, lsn readstate.LSN) { n.note("dropped %d", lsn) },
		Released: func(readstate.WorkspaceID) { n.note("released") },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.lane = lane
	t.Cleanup(lane.Close)
	return n
}

// takes makes the node the owner, as somebody does who has the right to.
func (n *node) takes(t *testing.T, store facts.Store) {
	t.Helper()
	rows, err := store.TakeOver(t.Context())
	if err == nil {
		err = n.lane.Adopt(t.Context(), rows[0])
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (n *node) posts(op string) (facts.Receipt, error) {
	return n.lane.Post(context.Background(), testWorkspace, plain(op, "x"))
}

// must posts and checks the place.
func (n *node) must(t *testing.T, op string, seq readstate.Seq) {
	t.Helper()
	if r, err := n.posts(op); err != nil || r.Seq != seq {
		t.Errorf("%s: %+v, %v, not at %d", op, r, err, seq)
	}
}

func (n *node) refused(t *testing.T, op string, why error) {
	t.Helper()
	if r, err := n.posts(op); !errors.Is(err, why) {
		t.Errorf("%s: %+v, %v, not %v", op, r, err, why)
	}
}

// testHandover is a workspace that goes from one lane to another and back: each commits while it owns
// it and not a moment longer, and goes on with what the other one wrote.
//
// covers: RT-007 RT-013
func testHandover(t *testing.T, open Opener) {
	store := open(t)
	r := newRig(t, store, facts.LaneConfig{})
	r.channel(t)
	r.lane.Close()
	a, b := openNode(t, store), openNode(t, store)
	a.refused(t, "early", facts.ErrNotOwner)
	_, err := a.lane.PutWorkspace(t.Context(), facts.PutWorkspace{ID: "new"})
	if !errors.Is(err, facts.ErrNotOwner) {
		t.Errorf("a shared lane makes a workspace: %v", err)
	}
	a.takes(t, store)
	a.must(t, "one", 1)
	first := a.told()
	b.takes(t, store)
	b.must(t, "two", 2)
	a.refused(t, "three", facts.ErrNotOwner)
	if told := a.told(); told != "[released]" {
		t.Errorf("a, which was taken over, told %s", told)
	}
	a.refused(t, "three", facts.ErrNotOwner)
	if err := b.lane.Release(t.Context(), testWorkspace); err != nil {
		t.Fatal(err)
	}
	b.refused(t, "three", facts.ErrNotOwner)
	b.told()
	a.takes(t, store)
	if r, err := a.posts("two"); err != nil || !r.Duplicate || r.Seq != 2 {
		t.Errorf("what b wrote, repeated: %+v, %v", r, err)
	}
	a.must(t, "three", 3)
	if again := a.told(); len(again) <= len("[dropped 1]") || first == again {
		t.Errorf("a told %s and then %s", first, again)
	}
	if err := b.lane.Release(t.Context(), testWorkspace); err != nil || b.told() != "[]" {
		t.Errorf("what is released is released once more: %v", err)
	}
	if err := r.lane.Adopt(t.Context(), facts.WorkspaceRow{}); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("a lane that owns everything adopts: %v", err)
	}
}

// testReleaseUnderFire: when Release has returned, nothing is applied and nothing written any more.
func testReleaseUnderFire(t *testing.T, open Opener) {
	store := open(t)
	r := newRig(t, store, facts.LaneConfig{})
	r.channel(t)
	r.lane.Close()
	a := openNode(t, store)
	for round := range 5 {
		a.takes(t, store)
		var writers sync.WaitGroup
		var done atomic.Int64
		some := make(chan struct{})
		for w := range 4 {
			writers.Go(func() {
				for i := 0; ; i++ {
					if _, err := a.posts(fmt.Sprint(round, "-", w, "-", i)); err != nil {
						if !errors.Is(err, facts.ErrNotOwner) {
							t.Error(err)
						}
						return
					}
					if done.Add(1) == 20 {
						close(some)
					}
				}
			})
		}
		<-some
		if err := a.lane.Release(t.Context(), testWorkspace); err != nil {
			t.Fatal(err)
		}
		a.told()
		before, err := store.Fences(t.Context(), []facts.WorkspaceKey{r.key})
		if err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		after, err := store.Fences(t.Context(), []facts.WorkspaceKey{r.key})
		if err != nil || after[r.key] != before[r.key] || a.told() != "[]" {
			t.Errorf("after a release it went on from %+v to %+v, %v", before, after, err)
		}
	}
}

// testNothingWithoutALease: a lane that may not write now does not, whether it learns so before a
// group or while one is being built, and goes on when it may.
func testNothingWithoutALease(t *testing.T, open Opener) {
	store := open(t)
	r := newRig(t, store, facts.LaneConfig{})
	r.channel(t)
	r.lane.Close()
	a := openNode(t, store)
	a.takes(t, store)
	a.must(t, "one", 1)
	var answers atomic.Int64 // how often it may still write
	a.serving = func() bool { return answers.Add(-1) >= 0 }
	a.refused(t, "two", facts.ErrUnavailable)
	answers.Store(1) // a group begins, and its lease ends before it commits
	a.refused(t, "two", facts.ErrUnavailable)
	answers.Store(1 << 30)
	a.must(t, "three", 2)
	a.must(t, "two", 3)
}
