package factstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// How operations come together in groups.
var groupParts = []lanePart{
	{"GroupsAreBounded", testGroupsAreBounded},
	{"ManyGroups", testManyGroups},
	{"ChainedAfterAFailure", testChainedAfterAFailure},
	{"RepeatedWithoutAnID", testRepeatedWithoutAnID},
	{"LoadFailsOnce", testLoadFailsOnce},
	{"CallerGoneMeanwhile", testCallerGoneMeanwhile},
	{"FencesInOrder", testFencesInOrder},
	{"ClosedWithWorkLeft", testClosedWithWorkLeft},
	{"InTheWayOnce", testInTheWayOnce},
}

// stall holds the goroutine that runs operations in its next write until release is called.
func (f *faulty) stall() (stalled <-chan struct{}, release func()) {
	at, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.everyWrite(func(*facts.Changes) error {
		once.Do(func() { close(at) })
		<-leave
		return nil
	})
	return at, func() { f.everyWrite(nil); close(leave) }
}

// queued is a context that tells when the lane has taken the operation in and its caller waits.
type queued struct {
	context.Context
	mu    sync.Mutex
	asked int
	taken chan struct{}
}

func queue(ctx context.Context) *queued {
	return &queued{Context: ctx, taken: make(chan struct{})}
}

// Done is looked at once while the operation is handed over, and again while its caller waits.
func (q *queued) Done() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked++; q.asked == 2 {
		close(q.taken)
	}
	return q.Context.Done()
}

func testGroupsAreBounded(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	_, before := f.counted()
	b := r.lane.NewBatch(testWorkspace)
	const n = 1500
	for i := range n {
		b.Post(plain(fmt.Sprint("p", i), "x"))
	}
	if _, err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, after := f.counted(); after-before < 3 || after-before > 10 {
		t.Errorf("%d posts took %d commits", n, after-before)
	}
	largest := 0
	for _, c := range r.settled(t) {
		largest = max(largest, len(c.Messages))
	}
	if rows := 4 * largest; rows > facts.DefaultGroupRows+4 {
		t.Errorf("a group has %d rows", rows)
	}
}

// A group that the store rolled back in favour of others runs once more in one piece: nothing is
// wrong with any of its operations.
func testInTheWayOnce(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	const n = 20
	left := 1
	f.everyWrite(func(*facts.Changes) error {
		if left--; left < 0 {
			return nil
		}
		return fmt.Errorf("%w: %w: deadlock", facts.ErrUnavailable, facts.ErrAborted)
	})
	before, _ := f.counted()
	b := r.lane.NewBatch(testWorkspace)
	for i := range n {
		b.Post(plain(fmt.Sprint("p", i), "x"))
	}
	res, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range res {
		if x.Err != nil {
			t.Errorf("post %d: %v", i, x.Err)
		}
	}
	f.everyWrite(nil)
	if begun, _ := f.counted(); begun-before != 2 {
		t.Errorf("%d posts in the way of others took %d transactions", n, begun-before)
	}
	r.unread(t, n)
}

// A batch that is larger than a group is answered whole, in several commits; a group that breaks
// on the way, as it runs or as it commits, leaves nothing undone.
func testManyGroups(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	const n, bad = 1500, 3
	seq := readstate.Seq(0)
	for _, round := range []string{"runs", "commits"} {
		b := r.lane.NewBatch(testWorkspace)
		for i := range n {
			p := plain(fmt.Sprint(round, i), "x")
			if future := readstate.Revision(9999); round == "runs" && i == bad {
				p.Author, p.CreateMembers, p.AdvanceCursor = "ghost", true, &future
			}
			b.Post(p)
		}
		if round == "commits" {
			f.nextCommit(func(tx facts.Tx) error { return refused(f, tx) })
		}
		res, err := b.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range res {
			if round == "runs" && i == bad {
				if !errors.Is(x.Err, facts.ErrFuture) {
					t.Errorf("the one that breaks its group: %+v", x)
				}
				continue
			}
			if seq++; x.Err != nil || x.Receipt.Seq != seq {
				t.Fatalf("%s, post %d: %+v, want seq %d", round, i, x, seq)
			}
		}
	}
	if got := posted(r.settled(t)); len(got) != 2*n-1 {
		t.Errorf("%d messages told, want %d", len(got), 2*n-1)
	}
}

func testChainedAfterAFailure(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	b := r.lane.NewBatch(testWorkspace)
	b.Chain()
	b.Post(plain("one", "x"))
	nowhere := plain("two", "x")
	nowhere.Scope = "nowhere"
	b.Post(nowhere)
	b.Post(plain("three", "x"))
	b.Post(plain("four", "x"))
	res, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if res[0].Err != nil || !errors.Is(res[1].Err, facts.ErrNotFound) ||
		!errors.Is(res[2].Err, facts.ErrSkipped) || !errors.Is(res[3].Err, facts.ErrSkipped) {
		t.Errorf("answers: %+v", res)
	}
	if got := posted(r.settled(t)); len(got) != 1 {
		t.Errorf("told of %v", got)
	}
}

// Once ids have been new for a while, a repeated post whose message id the lane has made is noticed
// as it is written. It is answered all the same, and its neighbours do not notice; nor if the
// commit of the group that runs again is refused, too.
func testRepeatedWithoutAnID(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	ctx := t.Context()
	unnamed := func(op string) facts.Post {
		p := plain(op, "x")
		p.MessageID = ""
		return p
	}
	for round, fails := range []bool{false, true} {
		var first facts.Receipt
		for i := range 80 {
			res, err := r.lane.Post(ctx, testWorkspace, unnamed(fmt.Sprint("p", round, i)))
			if err != nil {
				t.Fatal(err)
			}
			if i == 3 {
				first = res
			}
		}
		if fails {
			f.nextCommit(func(tx facts.Tx) error { return refused(f, tx) })
		}
		b := r.lane.NewBatch(testWorkspace)
		for _, op := range []string{"new", "p", "next"} {
			if op == "p" {
				b.Post(unnamed(fmt.Sprint("p", round, 3)))
				continue
			}
			b.Post(unnamed(fmt.Sprint(op, round)))
		}
		res, err := b.Run(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if res[0].Err != nil || res[1].Err != nil || res[2].Err != nil || !res[1].Receipt.Duplicate ||
			res[1].Receipt.MessageID != first.MessageID || res[1].Receipt.Seq != first.Seq ||
			res[2].Receipt.Seq != res[0].Receipt.Seq+1 {
			t.Errorf("refused once more: %t, first %+v: %+v", fails, first, res)
		}
	}
	r.settled(t)
}

// A statement that fails although nothing has been staged breaks the group all the same: it runs
// again, and only an operation that fails by itself is refused.
func testLoadFailsOnce(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	for _, failures := range []int{1, 9} {
		left := failures
		f.everyLoad(func() error {
			if left--; left >= 0 {
				return fmt.Errorf("%w: gone", facts.ErrUnavailable)
			}
			return nil
		})
		b := r.lane.NewBatch(testWorkspace)
		for i := range 3 {
			p := plain(fmt.Sprint("p", failures, i), "x")
			if i == 1 {
				p.LocalID = p.OpID
			}
			b.Post(p)
		}
		res, err := b.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range res {
			if refused := i == 1 && failures > 1; errors.Is(x.Err, facts.ErrUnavailable) != refused ||
				(x.Err != nil) != refused {
				t.Errorf("%d failures, post %d: %v", failures, i, x.Err)
			}
		}
	}
	f.everyLoad(nil)
	if got := posted(r.settled(t)); len(got) != 5 {
		t.Errorf("told of %v", got)
	}
}

// An operation whose caller goes while it waits for its turn is not run.
func testCallerGoneMeanwhile(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	stalled, release := f.stall()
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := r.lane.Post(t.Context(), testWorkspace, plain("one", "x"))
		first <- err
	}()
	<-stalled
	ctx, cancel := context.WithCancel(t.Context())
	waits := queue(ctx)
	go func() {
		_, err := r.lane.Post(waits, testWorkspace, plain("two", "x"))
		second <- err
	}()
	<-waits.taken
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who went: %v", err)
	}
	release()
	if err := <-first; err != nil {
		t.Error(err)
	}
	if got := posted(r.settled(t)); got["m-one"] != 1 || got["m-two"] != 0 {
		t.Errorf("told of %v", got)
	}
}

// Two owners that meet fence the workspaces of a group in one order, whichever came first.
func testFencesInOrder(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	ctx := t.Context()
	if _, err := r.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: "v"}); err != nil {
		t.Fatal(err)
	}
	stalled, release := f.stall()
	answers := make(chan error, 3)
	put := func(ctx context.Context, w readstate.WorkspaceID, id readstate.MemberID) {
		_, err := r.lane.PutMember(ctx, w, facts.PutMember{ID: id})
		answers <- err
	}
	go put(ctx, testWorkspace, "first")
	<-stalled
	for _, w := range []readstate.WorkspaceID{"v", testWorkspace} {
		waits := queue(ctx)
		go put(waits, w, "next")
		<-waits.taken
	}
	release()
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	r.lane.Close()
	shared := 0
	for _, keys := range f.fences() {
		if len(keys) > 1 {
			shared++
		}
		if !slices.IsSorted(keys) {
			t.Errorf("fenced in the order %v", keys)
		}
	}
	if shared == 0 {
		t.Error("no group has two workspaces")
	}
}

// What a lane has taken in when it is closed is answered.
func testClosedWithWorkLeft(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	for i := range 12 {
		lane := r.lane
		if i > 0 {
			next, err := facts.NewLane(t.Context(), facts.LaneConfig{
				Store: f, Apply: func(facts.Commit) {}, NewID: func() string { return "unused" },
			})
			if err != nil {
				t.Fatal(err)
			}
			lane = next
		}
		stalled, release := f.stall()
		answers := make(chan error, 2)
		post := func(ctx context.Context, op string) {
			_, err := lane.Post(ctx, testWorkspace, plain(op, "x"))
			answers <- err
		}
		go post(t.Context(), fmt.Sprint("first", i))
		<-stalled
		waits := queue(t.Context())
		go post(waits, fmt.Sprint("second", i))
		<-waits.taken
		closed := make(chan struct{})
		go func() { lane.Close(); close(closed) }()
		for { // until the lane refuses, and so knows that it is closed
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := lane.PutWorkspace(ctx, facts.PutWorkspace{ID: testWorkspace})
			if errors.Is(err, facts.ErrClosed) {
				break
			}
		}
		release()
		for range 2 {
			if err := <-answers; err != nil {
				t.Errorf("round %d: %v", i, err)
			}
		}
		<-closed
	}
}
