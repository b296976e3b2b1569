package factstest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Work that takes many commits, and work that takes none.
var workParts = []lanePart{
	{"NothingNew", testNothingNew},
	{"RewindSparesTheNew", testRewindSparesTheNew},
	{"RewindGoesOn", testRewindGoesOn},
	{"ReceiptsForgotten", testReceiptsForgotten},
	{"BroadcastRepeated", testBroadcastRepeated},
	{"MovedRoot", testMovedRoot},
}

// What is so already is answered without a commit.
func testNothingNew(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	for what, step := range r.repeatable() {
		var commits [3]int
		for i := range commits {
			if err := step(t.Context()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			_, commits[i] = f.counted()
		}
		if commits[2] != commits[0] {
			t.Errorf("%s: %d commits when it is repeated", what, commits[2]-commits[0])
		}
	}
	last := r.lsn(t, testWorkspace)
	if all := r.settled(t); all[len(all)-1].LSN != last {
		t.Errorf("the last commit is %d, the store says %d", all[len(all)-1].LSN, last)
	}
}

// repeatable are operations of which the second in a row changes nothing.
func (r *rig) repeatable() map[string]func(context.Context) error {
	yes, level, name := true, readstate.LevelMentions, "room"
	none, badge := readstate.Revision(0), readstate.DisplayAttention
	setting := func(run func(context.Context) (facts.Setting, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := run(ctx)
			return err
		}
	}
	return map[string]func(context.Context) error{
		"post": func(ctx context.Context) error {
			_, err := r.lane.Post(ctx, testWorkspace, plain("one", "x"))
			return err
		},
		"read": func(ctx context.Context) error {
			_, err := r.lane.MarkRead(ctx, testWorkspace, facts.MarkRead{
				Scope: "s1", Member: "B", Revision: &none, Trusted: true,
			})
			return err
		},
		"expiry": func(ctx context.Context) error {
			_, err := r.lane.Expire(ctx, testWorkspace)
			return err
		},
		"member": setting(func(ctx context.Context) (facts.Setting, error) {
			return r.lane.PutMember(ctx, testWorkspace, facts.PutMember{ID: "B", Agent: &yes})
		}),
		"settings": setting(func(ctx context.Context) (facts.Setting, error) {
			return r.lane.PutSettings(ctx, testWorkspace, facts.PutSettings{Member: "B", Badge: &badge})
		}),
		"block": setting(func(ctx context.Context) (facts.Setting, error) {
			block := facts.SetBlock{Member: "B", Other: "C", Blocked: true}
			return r.lane.SetBlock(ctx, testWorkspace, block)
		}),
		"scope": setting(func(ctx context.Context) (facts.Setting, error) {
			return r.lane.PutScope(ctx, testWorkspace, facts.PutScope{ID: "s1", Name: &name})
		}),
		"membership": setting(func(ctx context.Context) (facts.Setting, error) {
			put := facts.PutMembership{Scope: "s1", Member: "B", Level: &level}
			return r.lane.PutMembership(ctx, testWorkspace, put)
		}),
		"leave": setting(func(ctx context.Context) (facts.Setting, error) {
			return r.lane.Leave(ctx, testWorkspace, facts.Leave{Scope: "s1", Member: "A"})
		}),
		"workspace": setting(func(ctx context.Context) (facts.Setting, error) {
			return r.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: testWorkspace, Name: "new"})
		}),
	}
}

// What is posted while a long rewind is under way stays.
func testRewindSparesTheNew(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	ctx := t.Context()
	b := r.lane.NewBatch(testWorkspace)
	for i := range 1700 {
		b.Post(plain(fmt.Sprint("p", i), "x"))
	}
	if _, err := b.Run(ctx); err != nil {
		t.Fatal(err)
	}
	began, ended := make(chan struct{}), make(chan error, 1)
	posted := make(chan error, 1)
	f.nextCommit(func(tx facts.Tx) error {
		close(began)
		return tx.Commit(ctx)
	})
	go func() {
		_, err := r.lane.Rewind(ctx, testWorkspace, facts.Rewind{Scope: "s1", OpID: "rw", Through: 10})
		ended <- err
	}()
	<-began
	go func() {
		_, err := r.lane.Post(ctx, testWorkspace, plain("new", "x"))
		posted <- err
	}()
	if err := errors.Join(<-posted, <-ended); err != nil {
		t.Fatal(err)
	}
	view, err := r.store.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	scope, _, err := view.Scope(ctx, r.key, "s1")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := view.Messages(ctx, facts.MessageQuery{Scope: scope.Info.Key, Limit: 100})
	if err != nil || len(rows) != 11 || rows[10].ID != "m-new" {
		t.Errorf("%d live entries, %v", len(rows), err)
	}
}

// live counts the live entries of s1.
func (r *rig) live(t *testing.T) int {
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
	rows, err := view.Messages(t.Context(), facts.MessageQuery{Scope: scope.Info.Key, Limit: 5000})
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

// A rewind whose caller goes while its first batch commits is carried through.
func testRewindGoesOn(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	b := r.lane.NewBatch(testWorkspace)
	for i := range 1700 {
		b.Post(plain(fmt.Sprint("p", i), "x"))
	}
	if _, err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.nextCommit(func(tx facts.Tx) error {
		cancel()
		return tx.Commit(context.Background())
	})
	rewind := facts.Rewind{Scope: "s1", OpID: "rw", Through: 10}
	if _, err := r.lane.Rewind(ctx, testWorkspace, rewind); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who went: %v", err)
	}
	r.settled(t) // which waits for what was begun
	if n := r.live(t); n != 10 {
		t.Errorf("%d entries are left, want 10", n)
	}
}

// Receipts are kept for a month, and forgotten afterwards.
func testReceiptsForgotten(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	if _, err := r.lane.Post(ctx, testWorkspace, plain("one", "x")); err != nil {
		t.Fatal(err)
	}
	again := func() bool {
		t.Helper()
		if err := r.lane.Forget(ctx, testWorkspace); err != nil {
			t.Fatal(err)
		}
		rm := facts.Remove{Scope: "s1", Message: "m-one", OpID: "rm"}
		res, err := r.lane.Remove(ctx, testWorkspace, rm)
		if err != nil {
			t.Fatal(err)
		}
		return res.Duplicate
	}
	if again() {
		t.Error("the first removal is repeated")
	}
	r.play(t, fmt.Sprint("clock ", 29*24*3600))
	if !again() {
		t.Error("forgotten within the month")
	}
	r.play(t, fmt.Sprint("clock ", 2*24*3600))
	if again() {
		t.Error("known after the month")
	}
	r.settled(t)
}

// A broadcast reply that is posted again is answered with both of its places.
func testBroadcastRepeated(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	r.play(t, "post s1 A")
	r.play(t, "create s2 thread s1 root=1")
	reply := plain("reply", "x")
	reply.Scope, reply.Broadcast = "s2", true
	first, err := r.lane.Post(t.Context(), testWorkspace, reply)
	if err != nil || first.Channel == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := r.lane.Post(t.Context(), testWorkspace, reply)
	if first.Duplicate = true; err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("again: %+v, %v, first %+v", again, err, first)
	}
	r.settled(t)
}

// A thread whose root was moved away has none, also when the message comes back: nobody follows it
// for having written that.
func testMovedRoot(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	r.script(t, `
		post s1 A
		create s2 thread s1 root=1
		create s3 channel
		move s1 1 s3 count
		move s3 1 s1 count
		leave s1 A
		join s1 A
		post s2 B`)
	r.agree(t)
	r.settled(t)
}
