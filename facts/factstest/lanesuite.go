package factstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// lanePart is one thing that a lane has to do.
type lanePart struct {
	name string
	run  func(t *testing.T, r *rig, f *faulty)
}

// TestLane is what a lane over a store has to do when things go wrong, on the store that open
// returns.
func TestLane(t *testing.T, open Opener) { testLane(t, open, 1, 0, 1) }

// TestFarLane is TestLane for a kind of store where every statement is a journey, one of a number of
// kinds. Of the ways in which a commit can end under two operations, each pair of operations meets
// one, but in the soak. Under the race detector, which looks at the lane and not at the database,
// each kind runs some of the parts; make test runs all of them on each without it.
func TestFarLane(t *testing.T, open Opener, kind, kinds int) {
	share, some := farShare(), 4*kinds
	if share == 1 || !raceDetector {
		kind, some = 0, 1
	}
	testLane(t, open, share, kind, some)
}

func testLane(t *testing.T, open Opener, share, kind, kinds int) {
	parts := []lanePart{
		{"DuplicatesInsideAGroup", testDuplicatesInsideAGroup},
		{"DuplicatesAcrossGroups", testDuplicatesAcrossGroups},
		{"RefusedAmongGood", testRefusedAmongGood},
		{"PoisonedAmongGood", testPoisonedAmongGood},
		{"CommitAborted", testCommitAborted},
		{"CommitLostButDone", testCommitLostButDone},
		{"CommitLostAndUndone", testCommitLostAndUndone},
		{"TakenOver", testTakenOver},
		{"TakenOverWhileCommitting", testTakenOverWhileCommitting},
		{"HostileOperations", testHostileOperations},
		{"EndedCaller", testEndedCaller},
		{"ManyWriters", testManyWriters},
		{"LongRewind", testLongRewind},
		{"LongTrim", testLongTrim},
		{"LongErase", testLongErase},
		{"StoreGone", testStoreGone},
		{"RepeatedAfterAWhile", testRepeatedAfterAWhile},
		{"BroadcastIDTaken", testBroadcastIDTaken},
		{"ErasedIDs", testErasedIDs},
		{"EraseGoesOn", testEraseGoesOn},
		{"LongWorkShares", testLongWorkShares},
		{"PostKnownAfterAMove", testPostKnownAfterAMove},
		{"EmptyPayload", testEmptyPayload},
		{"UnderFire", testUnderFire},
	}
	for i, p := range slices.Concat(
		parts, groupParts, ruleParts, eventParts, toldParts, workParts, taskLaneParts,
		activityParts, sessionParts, inboxParts,
	) {
		if i%kinds != kind {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			f := &faulty{Store: open(t)}
			p.run(t, newRig(t, f, facts.LaneConfig{}), f)
		})
	}
	t.Run("OnACommit", func(t *testing.T) { testOnACommit(t, open, share) })
	t.Run("Handover", func(t *testing.T) { testHandover(t, open) })
	t.Run("ReleaseUnderFire", func(t *testing.T) { testReleaseUnderFire(t, open) })
	t.Run("NothingWithoutALease", func(t *testing.T) { testNothingWithoutALease(t, open) })
}

// channel makes channel s1 with the members A and B.
func (r *rig) channel(t *testing.T) {
	t.Helper()
	for _, line := range []string{"create s1 channel", "join s1 A", "join s1 B"} {
		r.play(t, line)
	}
}

// play runs one line of the oracle's language on both sides.
func (r *rig) play(t *testing.T, line string) {
	t.Helper()
	op, err := model.ParseOp(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.driver.Apply(t.Context(), op); err != nil {
		t.Fatal(err)
	}
}

// agree fails unless every durable value equals the oracle's.
func (r *rig) agree(t *testing.T) {
	t.Helper()
	if _, diff := r.compare(t, 100); diff != "" {
		t.Fatal(diff)
	}
}

// settled closes the lane, so that the commits belong to the test, and checks their order.
func (r *rig) settled(t *testing.T) []facts.Commit {
	t.Helper()
	r.lane.Close()
	var last readstate.LSN
	for _, c := range r.commits {
		if c.LSN != last+1 {
			t.Fatalf("commit %d follows %d", c.LSN, last)
		}
		last = c.LSN
	}
	return r.commits
}

// posted counts the message events of all commits, by message id.
func posted(commits []facts.Commit) map[string]int {
	out := map[string]int{}
	for _, c := range commits {
		for _, e := range c.Events {
			if m, ok := e.(readstate.MessageEvent); ok {
				out[m.ID]++
			}
		}
	}
	return out
}

func plain(op, text string) facts.Post {
	return facts.Post{
		Scope: "s1", OpID: op, MessageID: "m-" + op, Author: "A",
		Payload: fmt.Appendf(nil, "%q", text), By: facts.Actor{Trusted: true},
	}
}

func testDuplicatesInsideAGroup(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	b := r.lane.NewBatch(testWorkspace)
	b.Post(plain("one", "same"))
	b.Post(plain("one", "same"))
	b.Post(plain("one", "other"))
	b.Post(plain("two", "same"))
	res, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if res[0].Err != nil || res[0].Receipt.Duplicate {
		t.Fatalf("first: %+v", res[0])
	}
	if res[1].Err != nil || !res[1].Receipt.Duplicate || res[1].Receipt.Seq != res[0].Receipt.Seq {
		t.Fatalf("same body: %+v", res[1])
	}
	if !errors.Is(res[2].Err, facts.ErrMismatch) {
		t.Fatalf("other body: %+v", res[2])
	}
	if res[3].Err != nil || res[3].Receipt.Seq != res[0].Receipt.Seq+1 {
		t.Fatalf("next: %+v", res[3])
	}
	if got := posted(r.settled(t)); got["m-one"] != 1 || got["m-two"] != 1 {
		t.Fatalf("events: %v", got)
	}
}

func testDuplicatesAcrossGroups(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	first, err := r.lane.Post(ctx, testWorkspace, plain("one", "x"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.lane.Post(ctx, testWorkspace, plain("one", "x"))
	if err != nil || !again.Duplicate || again.Seq != first.Seq || again.MessageID != first.MessageID {
		t.Fatalf("again: %+v, %v", again, err)
	}
	if _, err := r.lane.Post(ctx, testWorkspace, plain("one", "y")); !errors.Is(err, facts.ErrMismatch) {
		t.Fatalf("other body: %v", err)
	}
	rm := facts.Remove{Scope: "s1", Message: "m-one", OpID: "rm"}
	gone, err := r.lane.Remove(ctx, testWorkspace, rm)
	if err != nil || gone.Duplicate {
		t.Fatalf("remove: %+v, %v", gone, err)
	}
	if again, err := r.lane.Remove(ctx, testWorkspace, rm); err != nil || !again.Duplicate {
		t.Fatalf("remove again: %+v, %v", again, err)
	}
	rm.Message = "m-two"
	if _, err := r.lane.Remove(ctx, testWorkspace, rm); !errors.Is(err, facts.ErrMismatch) {
		t.Fatalf("remove of another: %v", err)
	}
	// The id lives as long as the tombstone does.
	if again, err := r.lane.Post(ctx, testWorkspace, plain("one", "x")); err != nil || !again.Duplicate {
		t.Fatalf("post after removal: %+v, %v", again, err)
	}
}

func testRefusedAmongGood(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	future := readstate.Revision(99)
	bad := map[int]facts.Post{
		2: {Scope: "nowhere", OpID: "b1", Author: "A"},
		4: {Scope: "s1", OpID: "b2", Author: "nobody"},
		6: {Scope: "s1", OpID: "b3", Author: "A", AdvanceCursor: &future},
		8: {Scope: "s1", OpID: "b4", Author: "A", Mentions: []readstate.MemberID{"nobody"}},
	}
	b := r.lane.NewBatch(testWorkspace)
	for i := range 10 {
		if post, ok := bad[i]; ok {
			b.Post(post)
			continue
		}
		b.Post(plain(fmt.Sprint("ok", i), "x"))
	}
	res, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seq := readstate.Seq(0)
	for i, x := range res {
		if _, ok := bad[i]; ok {
			if x.Err == nil {
				t.Errorf("operation %d was accepted", i)
			}
			continue
		}
		if seq++; x.Err != nil || x.Receipt.Seq != seq {
			t.Errorf("operation %d: %+v, want seq %d", i, x, seq)
		}
	}
	if got := posted(r.settled(t)); len(got) != 6 {
		t.Fatalf("events: %v", got)
	}
}

// A row that the store will not take breaks its group; its neighbours must not notice.
func testPoisonedAmongGood(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	f.everyWrite(func(c *facts.Changes) error {
		for _, m := range c.NewMessages {
			if strings.Contains(string(m.Payload), "poison") {
				return fmt.Errorf("%w: poisoned", facts.ErrUnavailable)
			}
		}
		return nil
	})
	b := r.lane.NewBatch(testWorkspace)
	for i := range 9 {
		text := "good"
		if i == 4 {
			text = "poison"
		}
		b.Post(plain(fmt.Sprint("p", i), text))
	}
	res, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range res {
		if (x.Err != nil) != (i == 4) {
			t.Errorf("operation %d: %v", i, x.Err)
		}
	}
	if !errors.Is(res[4].Err, facts.ErrUnavailable) {
		t.Errorf("poisoned: %v", res[4].Err)
	}
	if got := posted(r.settled(t)); len(got) != 8 || got["m-p4"] != 0 {
		t.Fatalf("events: %v", got)
	}
}

func testHostileOperations(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	long := strings.Repeat("x", facts.MaxIDBytes+1)
	for _, id := range []string{"", ".", "..", "*", long, "a\x00b", "a\nb", "\xff", "a\u0085b"} {
		post := plain("op", "x")
		post.OpID = id
		if _, err := r.lane.Post(ctx, testWorkspace, post); !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("opId %q: %v", id, err)
		}
		post = plain("op", "x")
		post.Author = readstate.MemberID(id)
		if _, err := r.lane.Post(ctx, testWorkspace, post); !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("author %q: %v", id, err)
		}
		put := facts.PutScope{ID: readstate.ScopeID(id), Type: readstate.Channel}
		if _, err := r.lane.PutScope(ctx, testWorkspace, put); !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("scope %q: %v", id, err)
		}
	}
	for _, id := range []string{"A'; DROP TABLE members; --", "a ", "a", "É", "E\u0301", "%_", "🦊", `"`, "A/B?c=d#e"} {
		member := readstate.MemberID("h" + id)
		if _, err := r.lane.PutMember(ctx, testWorkspace, facts.PutMember{ID: member}); err != nil {
			t.Errorf("member %q: %v", id, err)
		}
		post := plain("op"+id, "x")
		post.Author, post.MessageID = member, "h"+id
		if res, err := r.lane.Post(ctx, testWorkspace, post); err != nil || res.Duplicate {
			t.Errorf("post by %q: %+v, %v", id, res, err)
		}
	}
	r.settled(t)
}

func testEndedCaller(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.lane.Post(ctx, testWorkspace, plain("late", "x")); !errors.Is(err, context.Canceled) {
		t.Fatalf("ended caller: %v", err)
	}
	// Whatever became of it, the id tells: once more is once in all.
	if _, err := r.lane.Post(t.Context(), testWorkspace, plain("late", "x")); err != nil {
		t.Fatal(err)
	}
	if got := posted(r.settled(t)); got["m-late"] != 1 {
		t.Fatalf("events: %v", got)
	}
}
