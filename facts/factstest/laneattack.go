package factstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// What this file asks of a lane was found by attacking one.

// Once ids have been new for a while the lane stops looking them up; a repeated one is answered
// all the same, and its neighbours do not notice.
func testRepeatedAfterAWhile(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	local := plain("local", "x")
	local.MessageID, local.LocalID = "", "of the device"
	first, err := r.lane.Post(ctx, testWorkspace, local)
	if err != nil {
		t.Fatal(err)
	}
	idle := func(part string) {
		t.Helper()
		for i := range 80 {
			if _, err := r.lane.Post(ctx, testWorkspace, plain(fmt.Sprint(part, i), "x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	idle("a")
	again, err := r.lane.Post(ctx, testWorkspace, local)
	if err != nil || !again.Duplicate || again.MessageID != first.MessageID {
		t.Fatalf("a local id once more: %+v, %v", again, err)
	}
	idle("l")
	local.OpID = "another"
	if _, err := r.lane.Post(ctx, testWorkspace, local); !errors.Is(err, facts.ErrMismatch) {
		t.Fatalf("a local id in another operation: %v", err)
	}
	b := r.lane.NewBatch(testWorkspace)
	b.Post(plain("new1", "x"))
	b.Post(plain("a3", "x"))
	b.Post(plain("new2", "x"))
	res, err := b.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if res[0].Err != nil || res[2].Err != nil || res[1].Err != nil || !res[1].Receipt.Duplicate ||
		res[1].Receipt.MessageID != "m-a3" || res[2].Receipt.Seq != res[0].Receipt.Seq+1 {
		t.Fatalf("repeated among new ones: %+v", res)
	}
	idle("b")
	if _, err := r.lane.Post(ctx, testWorkspace, plain("b7", "other")); !errors.Is(err, facts.ErrMismatch) {
		t.Fatalf("another body: %v", err)
	}
	rm := facts.Remove{Scope: "s1", Message: "m-b1", OpID: "rm", By: facts.Actor{Member: "A", Trusted: true}}
	if _, err := r.lane.Remove(ctx, testWorkspace, rm); err != nil {
		t.Fatal(err)
	}
	idle("c")
	if _, err := r.lane.Post(ctx, testWorkspace, plain("rm", "x")); !errors.Is(err, facts.ErrMismatch) {
		t.Fatalf("the id of a removal: %v", err)
	}
	for id, n := range posted(r.settled(t)) {
		if n != 1 {
			t.Errorf("%s was posted %d times", id, n)
		}
	}
}

func testBroadcastIDTaken(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	r.play(t, "post s1 A")
	r.play(t, "create s2 thread s1 root=1")
	_, before := f.counted()
	post := plain("twin", "x")
	post.Scope, post.Broadcast, post.MessageID = "s2", true, "m-op-1"
	if _, err := r.lane.Post(t.Context(), testWorkspace, post); !errors.Is(err, facts.ErrMismatch) {
		t.Fatalf("an id that the channel has: %v", err)
	}
	if _, after := f.counted(); after != before {
		t.Errorf("the refusal took %d commits", after-before)
	}
	r.agree(t)
	r.settled(t)
}

// Who was erased stays erased: their pseudonym is nobody to be named or made.
func testErasedIDs(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	if _, err := r.lane.EraseMember(ctx, testWorkspace, facts.EraseMember{Member: "C"}); err != nil {
		t.Fatal(err)
	}
	view, err := r.store.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	members, err := view.ListMembers(ctx, r.key, "", 100)
	if err = errors.Join(err, view.Close()); err != nil {
		t.Fatal(err)
	}
	var gone readstate.MemberID
	for _, m := range members {
		if m.Erased {
			gone = m.ID
		}
	}
	if gone == "" {
		gone = "erased-id" // a store may leave erased members out of the list
	}
	post := plain("naming", "x")
	post.Mentions, post.CreateMembers = []readstate.MemberID{gone}, gone != "erased-id"
	if _, err := r.lane.Post(ctx, testWorkspace, post); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("naming %s: %v", gone, err)
	}
	if gone != "erased-id" {
		if _, err := r.lane.PutMember(ctx, testWorkspace, facts.PutMember{ID: gone}); !errors.Is(err, facts.ErrNotFound) {
			t.Errorf("making %s: %v", gone, err)
		}
	}
	r.settled(t)
}

// An erasure whose caller goes away, or whose process dies between two commits, is carried on.
func testEraseGoesOn(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	b := r.lane.NewBatch(testWorkspace)
	for i := range 1200 {
		b.Post(plain(fmt.Sprint("e", i), "private"))
	}
	if _, err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.nextCommit(func(tx facts.Tx) error {
		cancel() // the caller goes while the first batch commits
		return tx.Commit(context.Background())
	})
	_, err := r.lane.EraseMember(ctx, testWorkspace, facts.EraseMember{Member: "A"})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// Behind the erasure in the same lane, a read of the store waits for its end.
	for {
		view, err := r.store.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		half, err := view.HalfErased(t.Context())
		if err = errors.Join(err, view.Close()); err != nil {
			t.Fatal(err)
		}
		if len(half) == 0 {
			break
		}
		if err := r.lane.FinishErasure(t.Context(), half[0]); err != nil {
			t.Fatal(err)
		}
	}
	r.settled(t)
}

// A post does not wait for the whole of a long trim in another scope.
func testLongWorkShares(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	r.play(t, "create s2 channel")
	b := r.lane.NewBatch(testWorkspace)
	for i := range 6000 {
		b.Post(plain(fmt.Sprint("l", i), "x"))
	}
	if _, err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	trimmed, posts := make(chan error, 1), make(chan int, 1)
	first := make(chan struct{})
	f.nextCommit(func(tx facts.Tx) error {
		close(first)
		return tx.Commit(context.Background())
	})
	go func() {
		_, err := r.lane.Trim(t.Context(), testWorkspace,
			facts.TrimScope{Scope: "s1", OpID: "trim", Through: 6000})
		trimmed <- err
	}()
	<-first
	done := make(chan struct{})
	go func() {
		n := 0
		for {
			select {
			case <-done:
				posts <- n
				return
			default:
			}
			post := plain(fmt.Sprint("mid", n), "x")
			post.Scope = "s2"
			if _, err := r.lane.Post(t.Context(), testWorkspace, post); err != nil {
				t.Error(err)
			}
			n++
		}
	}()
	err := <-trimmed
	close(done)
	if err != nil {
		t.Fatal(err)
	}
	if n := <-posts; n < 3 {
		t.Errorf("%d posts while 6,000 entries were trimmed in 12 commits", n)
	}
	r.settled(t)
}

func testPostKnownAfterAMove(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	r.play(t, "create s2 channel")
	ctx := t.Context()
	first, err := r.lane.Post(ctx, testWorkspace, plain("one", "x"))
	if err != nil {
		t.Fatal(err)
	}
	move := facts.Move{Scope: "s1", OpID: "mv", Messages: []string{first.MessageID}, To: "s2"}
	if _, err := r.lane.Move(ctx, testWorkspace, move); err != nil {
		t.Fatal(err)
	}
	again, err := r.lane.Post(ctx, testWorkspace, plain("one", "x"))
	if err != nil || !again.Duplicate || again.MessageID != first.MessageID || again.Seq != first.Seq {
		t.Fatalf("again: %+v, %v; first %+v", again, err, first)
	}
	if _, err := r.lane.Post(ctx, testWorkspace, plain("one", "y")); !errors.Is(err, facts.ErrMismatch) {
		t.Fatalf("another body: %v", err)
	}
	r.settled(t)
}

func testEmptyPayload(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	post := plain("empty", "x")
	post.Payload = json.RawMessage{}
	if _, err := r.lane.Post(t.Context(), testWorkspace, post); err != nil {
		t.Errorf("empty payload: %v", err)
	}
	none := json.RawMessage{}
	ed := facts.Edit{Scope: "s1", Message: "m-empty", OpID: "ed", Payload: &none}
	if _, err := r.lane.Edit(t.Context(), testWorkspace, ed); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("empty edit: %v", err)
	}
	r.settled(t)
}
