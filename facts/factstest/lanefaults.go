package factstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// The commits of this file go wrong in every way a commit can.

func testCommitAborted(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Rollback(); err != nil {
			return err
		}
		return fmt.Errorf("%w: deadlock", facts.ErrAborted)
	})
	r.play(t, "post s1 A @B")
	r.agree(t)
	r.settled(t)
}

func testCommitLostButDone(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Commit(context.Background()); err != nil {
			return err
		}
		return errLost
	})
	r.play(t, "post s1 A @B")
	r.play(t, "post s1 A")
	r.agree(t)
	if got := posted(r.settled(t)); len(got) != 2 {
		t.Fatalf("events: %v", got)
	}
}

func testCommitLostAndUndone(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Rollback(); err != nil {
			return err
		}
		return errLost
	})
	r.play(t, "post s1 A @B")
	r.play(t, "read s1 B 1 v=0")
	r.agree(t)
	if got := posted(r.settled(t)); len(got) != 1 {
		t.Fatalf("events: %v", got)
	}
}

func testTakenOver(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	if _, err := f.TakeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_, err := r.lane.Post(t.Context(), testWorkspace, plain(fmt.Sprint("late", i), "x"))
		if !errors.Is(err, facts.ErrNotOwner) {
			t.Fatalf("post by a former owner: %v", err)
		}
	}
	r.agree(t) // nothing was written
	r.settled(t)
}

// Between the group and the answer of its lost commit another owner has taken the workspace: what
// this one remembers is worth nothing, and it must not claim that the group happened.
func testTakenOverWhileCommitting(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Rollback(); err != nil {
			return err
		}
		if _, err := f.TakeOver(context.Background()); err != nil {
			return err
		}
		return errLost
	})
	_, err := r.lane.Post(t.Context(), testWorkspace, plain("lost", "x"))
	if !errors.Is(err, facts.ErrNotOwner) {
		t.Fatalf("post: %v", err)
	}
	if _, err := r.lane.Post(t.Context(), testWorkspace, plain("more", "x")); !errors.Is(err, facts.ErrNotOwner) {
		t.Fatalf("post afterwards: %v", err)
	}
	r.agree(t)
	r.settled(t)
}

// 64 callers share commits: seqs are dense, nobody's answer is another's, and there are fewer
// transactions than operations.
func testManyWriters(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	const writers, each = 64, 8
	var wg sync.WaitGroup
	seqs := make([][]readstate.Seq, writers)
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				res, err := r.lane.Post(t.Context(), testWorkspace, plain(fmt.Sprintf("w%d-%d", w, i), "x"))
				if err != nil {
					t.Error(err)
					return
				}
				seqs[w] = append(seqs[w], res.Seq)
			}
		}()
	}
	wg.Wait()
	seen := map[readstate.Seq]bool{}
	for w := range seqs {
		for i, s := range seqs[w] {
			if seen[s] || s < 1 || s > writers*each || (i > 0 && s <= seqs[w][i-1]) {
				t.Fatalf("writer %d got seqs %v", w, seqs[w])
			}
			seen[s] = true
		}
	}
	if got := posted(r.settled(t)); len(got) != writers*each {
		t.Fatalf("%d messages, want %d", len(got), writers*each)
	}
	if _, commits := f.counted(); commits >= writers*each/2 {
		t.Errorf("%d commits for %d posts by %d writers: groups are not shared",
			commits, writers*each, writers)
	}
}

// fill posts n messages through the oracle, every third naming B.
func (r *rig) fill(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		line := "post s1 A"
		if i%3 == 0 {
			line = "post s1 A @B"
		}
		r.play(t, line)
	}
}

func testLongRewind(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	r.fill(t, 1100)
	_, before := f.counted()
	// The second batch of the rewind is refused by the store once; the rewind goes on.
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Rollback(); err != nil {
			return err
		}
		return fmt.Errorf("%w: once", facts.ErrAborted)
	})
	r.play(t, "rewind s1 20")
	if _, after := f.counted(); after-before < 3 {
		t.Errorf("a rewind of 1,080 entries took %d commits", after-before)
	}
	r.agree(t)
	r.play(t, "post s1 A @B")
	r.agree(t)
	r.settled(t)
}

func testLongTrim(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	r.fill(t, 700)
	r.play(t, "remove s1 3")
	r.play(t, "remove s1 690")
	r.play(t, "read s1 B 10 v=0")
	r.play(t, "trim s1 650")
	r.agree(t)
	r.play(t, "read s1 B 680 v=0")
	r.agree(t)
	r.play(t, "post s1 B @A")
	r.agree(t)
	r.settled(t)
}

// An erased author keeps every rank: nobody's count moves, and the id is free for a newcomer.
func testLongErase(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	batch := r.lane.NewBatch(testWorkspace)
	for i := range 1100 {
		batch.Post(plain(fmt.Sprint("e", i), "private"))
	}
	if _, err := batch.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.lane.EraseMember(ctx, testWorkspace, facts.EraseMember{Member: "C"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.lane.EraseMember(ctx, testWorkspace, facts.EraseMember{Member: "A"}); err != nil {
		t.Fatal(err)
	}
	view, err := r.store.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	if _, ok, err := view.Member(ctx, r.key, "A"); ok || err != nil {
		t.Fatalf("erased member is found: %t, %v", ok, err)
	}
	b, _, err := view.Member(ctx, r.key, "B")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Evaluate(ctx, view, r.key, b, 10, 0)
	if err != nil || got["s1"].Values.Unread != 1100 {
		t.Fatalf("unread of B: %+v, %v", got["s1"].Values, err)
	}
	scope, _, err := view.Scope(ctx, r.key, "s1")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := view.Messages(ctx, facts.MessageQuery{Scope: scope.Info.Key, Limit: 1100})
	if err != nil || len(rows) != 1100 {
		t.Fatalf("%d messages, %v", len(rows), err)
	}
	for _, m := range rows {
		if m.Payload != nil {
			t.Fatalf("payload of %s is kept", m.ID)
		}
	}
	if _, err := r.lane.PutMember(ctx, testWorkspace, facts.PutMember{ID: "A"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.lane.Post(ctx, testWorkspace, plain("new", "x")); err != nil {
		t.Fatal(err)
	}
	r.settled(t)
}

// With the store failing nothing is accepted and nothing is remembered; when it is back, all is
// as if nothing had been asked.
func testStoreGone(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	r.play(t, "post s1 A")
	f.everyWrite(func(*facts.Changes) error { return fmt.Errorf("%w: gone", facts.ErrUnavailable) })
	for i := range 3 {
		_, err := r.lane.Post(t.Context(), testWorkspace, plain(fmt.Sprint("gone", i), "x"))
		if !errors.Is(err, facts.ErrUnavailable) {
			t.Fatalf("post: %v", err)
		}
	}
	f.everyWrite(nil)
	r.agree(t)
	r.play(t, "post s1 A @B")
	r.agree(t)
	if got := posted(r.settled(t)); len(got) != 2 {
		t.Fatalf("events: %v", got)
	}
}
