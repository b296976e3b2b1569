package factstest

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// What memory is told, and what becomes of operation ids.
var eventParts = []lanePart{
	{"AnswerAfterApply", testAnswerAfterApply},
	{"EventOrder", testEventOrder},
	{"BlocksOfEvents", testBlocksOfEvents},
	{"EventsOfAnErasure", testEventsOfAnErasure},
	{"IDsTakenInsideAGroup", testIDsTakenInsideAGroup},
	{"ReceiptsRepeated", testReceiptsRepeated},
	{"IDsBelongToTheirActor", testIDsBelongToTheirActor},
}

// Nobody is answered before memory has what they did.
func testAnswerAfterApply(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	r.onApply = func(facts.Commit) {
		entered <- struct{}{}
		<-leave
	}
	var answered atomic.Bool
	done := make(chan error)
	go func() {
		_, err := r.lane.Post(t.Context(), testWorkspace, plain("one", "x"))
		answered.Store(true)
		done <- err
	}()
	<-entered
	for range 1000 {
		runtime.Gosched()
	}
	if answered.Load() {
		t.Error("answered while the commit is being applied")
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Events stand where things happened: a member event is the row at its own place in the group.
func testEventOrder(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	r.play(t, "post s1 A")
	r.play(t, "create s2 thread s1 root=1")
	ctx := t.Context()
	b := r.lane.NewBatch(testWorkspace)
	reply := func(op string, names ...readstate.MemberID) facts.Post {
		p := plain(op, "x")
		p.Scope, p.Mentions = "s2", names
		return p
	}
	level := readstate.LevelMentions
	b.Post(reply("one", "B"))
	b.PutMembership(facts.PutMembership{Scope: "s2", Member: "B", Level: &level})
	b.Post(reply("two", "B"))
	res, err := b.Run(ctx)
	if err != nil || errors.Join(res[0].Err, res[1].Err, res[2].Err) != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	commits := r.settled(t)
	var got []string
	for _, e := range commits[len(commits)-1].Events {
		switch e := e.(type) {
		case readstate.MessageEvent:
			got = append(got, e.ID)
		case readstate.MemberEvent:
			got = append(got, fmt.Sprintf("%s level %d direct %d of %d", e.MemberID,
				e.Row.Level, e.Row.Point.Direct, e.Row.Point.E))
		default:
			got = append(got, fmt.Sprintf("%T", e))
		}
	}
	want := []string{
		fmt.Sprintf("B level %d direct 0 of 0", readstate.LevelInherit), "m-one",
		fmt.Sprintf("B level %d direct 1 of 0", readstate.LevelMentions), "m-two",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("events are %q, want %q", got, want)
	}
}

// The revision sets that come with events are of the block that counting begins in, once the
// floor has entered another one.
func testBlocksOfEvents(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	post := func(from, to int) {
		t.Helper()
		b := r.lane.NewBatch(testWorkspace)
		for i := from; i <= to; i++ {
			p := plain(fmt.Sprint("p", i), "x")
			p.Everyone = i >= readstate.BlockSize
			b.Post(p)
		}
		if _, err := b.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	post(1, readstate.BlockSize+9)
	remove := func(i int) {
		t.Helper()
		_, err := r.lane.Remove(ctx, testWorkspace, facts.Remove{
			Scope: "s1", Message: fmt.Sprint("m-p", i), OpID: fmt.Sprint("rm", i),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	remove(10)
	remove(readstate.BlockSize + 5)
	trim := facts.TrimScope{Scope: "s1", OpID: "trim", Through: readstate.BlockSize + 2}
	if _, err := r.lane.Trim(ctx, testWorkspace, trim); err != nil {
		t.Fatal(err)
	}
	// Leaving leaves the point where it is, below the floor.
	leave := facts.Leave{Scope: "s1", Member: "B"}
	if _, err := r.lane.Leave(ctx, testWorkspace, leave); err != nil {
		t.Fatal(err)
	}
	commits := r.settled(t)
	var floor readstate.FloorEvent
	for _, c := range commits {
		for _, e := range c.Events {
			if f, ok := e.(readstate.FloorEvent); ok {
				floor = f
			}
		}
	}
	last := commits[len(commits)-1]
	row, ok := last.Events[0].(readstate.MemberEvent)
	if !ok || row.Row.Point.E != 0 || row.StateLSN != last.LSN {
		t.Fatalf("the last event is %+v", last.Events[0])
	}
	for what, bits := range map[string]readstate.BlockBits{
		"removed at the floor": floor.Removed, "removed at the row": row.Removed,
		"everyone at the floor": floor.Everyone, "everyone at the row": row.Everyone,
	} {
		want := uint64(1)
		if what[0] == 'e' {
			want = 6 // three to nine without the removed one
		}
		if bits.Block != 1 || bits.Bits == nil {
			t.Errorf("%s: block %d, bits known %t", what, bits.Block, bits.Bits != nil)
		} else if n := bits.Bits.Count() - bits.Bits.CountThrough(readstate.BlockSize+2); n != want {
			t.Errorf("%s: %d above the floor, want %d", what, n, want)
		}
	}
}

// An erasure says who is gone and names every row that goes, once, although its first commit is
// refused.
func testEventsOfAnErasure(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	r.play(t, "create s2 channel")
	r.play(t, "join s2 A")
	before := r.lsn(t, testWorkspace)
	f.nextCommit(func(tx facts.Tx) error { return refused(f, tx) })
	erase := facts.EraseMember{Member: "A"}
	if _, err := r.lane.EraseMember(t.Context(), testWorkspace, erase); err != nil {
		t.Fatal(err)
	}
	gone := map[readstate.ScopeKey]int{}
	erased := 0
	for _, c := range r.settled(t) {
		for _, e := range c.Events {
			switch e := e.(type) {
			case readstate.RowGoneEvent:
				gone[e.Scope]++
			case readstate.PrincipalEvent:
				if e.Info.Erased {
					erased++
					if c.LSN <= before || e.Info.MemberLSN != c.LSN || e.Info.ID == "A" {
						t.Errorf("commit %d erases %+v", c.LSN, e.Info)
					}
				}
			}
		}
	}
	if len(gone) != 2 || erased != 1 {
		t.Errorf("%d erased, rows gone in %v", erased, gone)
	}
}

func testIDsTakenInsideAGroup(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	b := r.lane.NewBatch(testWorkspace)
	first := plain("one", "x")
	first.LocalID = "local"
	b.Post(first)
	sameMessage := plain("two", "x")
	sameMessage.MessageID = "m-one"
	b.Post(sameMessage)
	sameLocal := plain("three", "x")
	sameLocal.LocalID = "local"
	b.Post(sameLocal)
	b.Post(plain("four", "x"))
	res, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range res {
		if taken := i == 1 || i == 2; errors.Is(x.Err, facts.ErrMismatch) != taken ||
			(x.Err != nil) != taken {
			t.Errorf("post %d: %+v", i, x)
		}
	}
	if got := posted(r.settled(t)); len(got) != 2 {
		t.Errorf("told of %v", got)
	}
}

// Whatever takes an operation id keeps what it answered: the same again is answered the same,
// whoever asks, and changes nothing; another body is refused.
func testReceiptsRepeated(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	r.play(t, "create s2 channel")
	ctx := t.Context()
	for i := range 8 {
		if _, err := r.lane.Post(ctx, testWorkspace, plain(fmt.Sprint("p", i), "x")); err != nil {
			t.Fatal(err)
		}
	}
	names := []readstate.MemberID{"B"}
	do := map[string]func(trusted, other bool) (facts.Receipt, error){
		"edit": func(trusted, other bool) (facts.Receipt, error) {
			op := facts.Edit{Scope: "s1", Message: "m-p1", OpID: "edit", Mentions: &names}
			if other {
				op.Message = "m-p2"
			}
			op.By.Trusted = trusted
			return r.lane.Edit(ctx, testWorkspace, op)
		},
		"remove": func(trusted, other bool) (facts.Receipt, error) {
			op := facts.Remove{Scope: "s1", Message: "m-p3", OpID: "remove"}
			if other {
				op.Message = "m-p4"
			}
			op.By.Trusted = trusted
			return r.lane.Remove(ctx, testWorkspace, op)
		},
		"rewind": func(trusted, other bool) (facts.Receipt, error) {
			op := facts.Rewind{Scope: "s1", OpID: "rewind", Through: 7}
			if other {
				op.Through = 6
			}
			op.By.Trusted = trusted
			return r.lane.Rewind(ctx, testWorkspace, op)
		},
		"trim": func(trusted, other bool) (facts.Receipt, error) {
			op := facts.TrimScope{Scope: "s1", OpID: "trim", Through: 1}
			if other {
				op.Through = 2
			}
			op.By.Trusted = trusted
			return r.lane.Trim(ctx, testWorkspace, op)
		},
		"move": func(trusted, other bool) (facts.Receipt, error) {
			op := facts.Move{Scope: "s1", OpID: "move", Messages: []string{"m-p5"}, To: "s2"}
			if other {
				op.Counted = true
			}
			op.By.Trusted = trusted
			return r.lane.Move(ctx, testWorkspace, op)
		},
	}
	for what, op := range do {
		first, err := op(false, false)
		if err != nil || first.Duplicate {
			t.Errorf("%s: %+v, %v", what, first, err)
			continue
		}
		_, before := f.counted()
		again, err := op(true, false)
		if first.Duplicate = true; err != nil || again != first {
			t.Errorf("%s again: %+v, %v, first %+v", what, again, err, first)
		}
		if _, err := op(false, true); !errors.Is(err, facts.ErrMismatch) {
			t.Errorf("another %s: %v", what, err)
		}
		if _, after := f.counted(); after != before {
			t.Errorf("%s: %d commits when repeated", what, after-before)
		}
	}
	r.settled(t)
}

// Two members may use one operation id, each for something of their own.
func testIDsBelongToTheirActor(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	for _, m := range []readstate.MemberID{"A", "B"} {
		post := plain("post", "x")
		post.Author, post.MessageID = m, "m-"+string(m)
		if res, err := r.lane.Post(ctx, testWorkspace, post); err != nil || res.Duplicate {
			t.Errorf("post of %s: %+v, %v", m, res, err)
		}
		rm := facts.Remove{
			Scope: "s1", Message: post.MessageID, OpID: "remove", By: facts.Actor{Member: m},
		}
		if res, err := r.lane.Remove(ctx, testWorkspace, rm); err != nil || res.Duplicate {
			t.Errorf("removal by %s: %+v, %v", m, res, err)
		}
	}
	r.settled(t)
}
