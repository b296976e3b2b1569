package factstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// A task has so many watchers and no more; who ends a watch makes room for another.
//
// covers: RT-202
func testTaskWatchers(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B`)
	ctx := t.Context()
	b := r.lane.NewBatch(testWorkspace)
	name := func(i int) readstate.MemberID { return readstate.MemberID(fmt.Sprint("w", i)) }
	for i := range facts.MaxWatchers {
		b.PutMembership(facts.PutMembership{Scope: "s1", Member: name(i), CreateMember: true})
	}
	if _, err := b.Run(ctx); err != nil {
		t.Fatal(err)
	}
	watch := func(m readstate.MemberID, on bool) error {
		_, err := r.lane.SetFollow(ctx, testWorkspace, facts.SetFollow{
			Scope: "s1", Member: m, Following: on, Trusted: true,
		})
		return err
	}
	for i := range facts.MaxWatchers {
		if err := watch(name(i), true); err != nil {
			t.Fatal(err)
		}
	}
	limit := fmt.Sprint(facts.MaxWatchers)
	if err := watch("B", true); !errors.Is(err, facts.ErrInvalid) || !strings.Contains(err.Error(), limit) {
		t.Fatalf("one more: %v", err)
	}
	all := f.record()
	r.play(t, "post s1 A @B")
	if c := all.take(); len(c.Outbox[0].Humans) != facts.MaxWatchers+1 {
		t.Errorf("%d recipients", len(c.Outbox[0].Humans))
	}
	f.everyWrite(nil)
	again := watch(name(7), true)
	stops, instead := watch(name(7), false), watch("B", true)
	if err := errors.Join(again, stops, instead); err != nil {
		t.Errorf("one instead of another: %v", err)
	}
	if err := watch(name(7), true); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("back again: %v", err)
	}
	erased := facts.EraseMember{Member: name(8)}
	if _, err := r.lane.EraseMember(ctx, testWorkspace, erased); err != nil {
		t.Fatal(err)
	}
	if err := watch(name(7), true); err != nil {
		t.Errorf("in the place of who was erased: %v", err)
	}
	r.settled(t)
}

// A lane that has just begun knows who watched and who was assigned before it.
func testTaskWatchersOfThePast(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		join s1 D
		join s1 E
		follow s1 B
		follow s1 C
		task s1 A assignee=D
		create s2 dm
		join s2 A
		join s2 B`)
	all := f.record()
	next := r.successor(t, f)
	ctx := t.Context()
	unwatch := facts.SetFollow{Scope: "s1", Member: "C"}
	_, err := next.SetFollow(ctx, testWorkspace, unwatch)
	_, err2 := next.Post(ctx, testWorkspace, plain("one", "x"))
	dm := plain("two", "x")
	dm.Scope = "s2"
	_, err3 := next.Post(ctx, testWorkspace, dm)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	c := all.take()
	if got := r.names(t, c.Outbox[0].Humans...); got != "B D" {
		t.Errorf("told are %q", got)
	}
	talks := 0
	for _, row := range c.Conversations {
		if row.Kind == readstate.DM {
			talks++
		}
	}
	if talks != 2 {
		t.Errorf("%d have the dm in their lists", talks)
	}
}

// successor is a lane that takes over and knows nothing yet. It ends with the test.
func (r *rig) successor(t *testing.T, store facts.Store) *facts.Lane {
	t.Helper()
	next, err := facts.NewLane(t.Context(), facts.LaneConfig{
		Store: store, NewID: func() string { return fmt.Sprint("next-", r.made.Add(1)) },
		Apply: func(facts.Commit) {}, Now: r.driver.Clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	r.lane.Close()
	return next
}

// What is moved into a task with its revision is delivered there, and what leaves one is taken
// back from those whom it was delivered to.
func testTaskMoves(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		create s2 channel
		join s1 A
		join s1 B
		join s1 C
		follow s1 B
		post s2 A @C
		post s2 A
		post s2 B everyone`)
	all := f.record()
	r.play(t, "move s2 1,2 s1 count")
	c := all.take()
	if len(c.Outbox) != 2 || c.Outbox[0].Key+1 != c.Outbox[1].Key || len(c.Targets) != 3 ||
		len(c.Activities) != 2 {
		t.Errorf("two moved messages write %+v", c)
	}
	r.unreadIn(t, "s1", map[readstate.MemberID][2]uint64{"B": {2, 0}, "C": {1, 0}})
	op := facts.Move{Scope: "s2", OpID: "mv", Messages: []string{"m-op-3"}, To: "s1", Counted: true}
	if _, err := r.lane.Move(t.Context(), testWorkspace, op); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("everyone in a task: %v", err)
	}
	r.play(t, "move s2 3 s1")
	r.play(t, "move s1 1 s2")
	c = all.take()
	left := c.NewMessages[len(c.NewMessages)-1]
	if len(c.Outbox) != 0 || len(left.Recipients) != 0 {
		t.Errorf("history and what leaves write %+v, the latter for %d", c.Outbox, left.Recipients)
	}
	r.unreadIn(t, "s1", map[readstate.MemberID][2]uint64{"B": {1, 0}, "C": {0, 0}})
	r.agree(t)
	r.settled(t)
}

// A group counts what it delivers, so that a task with many watchers makes no group without bound.
func testTaskGroupsAreBounded(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A`)
	b := r.lane.NewBatch(testWorkspace)
	const watchers, posts = 200, 40
	for i := range watchers {
		b.PutMembership(facts.PutMembership{
			Scope: "s1", Member: readstate.MemberID(fmt.Sprint("w", i)), CreateMember: true,
		})
	}
	if _, err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range watchers {
		_, err := r.lane.SetFollow(t.Context(), testWorkspace, facts.SetFollow{
			Scope: "s1", Member: readstate.MemberID(fmt.Sprint("w", i)), Following: true,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := f.record()
	for _, broken := range []bool{false, true} {
		b = r.lane.NewBatch(testWorkspace)
		for i := range posts {
			b.Post(plain(fmt.Sprint(broken, i), "x"))
		}
		if broken {
			f.nextCommit(func(tx facts.Tx) error { return refused(f, tx) })
		}
		res, err := b.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range res {
			if x.Err != nil || (i > 0 && x.Receipt.Seq != res[i-1].Receipt.Seq+1) {
				t.Fatalf("post %d: %+v", i, x)
			}
		}
	}
	f.everyWrite(nil)
	r.unreadIn(t, "s1", map[readstate.MemberID][2]uint64{"w7": {2 * posts, 0}})
	most := 0
	for _, c := range r.settled(t) {
		most = max(most, len(c.Messages))
	}
	if rows := 3 * watchers * most; rows > facts.DefaultGroupRows+3*watchers || most < 2 {
		t.Errorf("a group delivers %d messages to %d", most, watchers)
	}
	if c := all.take(); len(c.Targets) < 2*posts*watchers {
		t.Errorf("%d deliveries", len(c.Targets))
	}
}

// Outbox rows ascend over all commits, whatever breaks on the way, and no fact has two.
//
// covers: RT-199
func testTaskOutboxAcrossFailures(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		follow s1 B`)
	ctx := t.Context()
	var rows []facts.OutboxRow
	f.everyWrite(func(c *facts.Changes) error {
		for _, m := range c.NewMessages {
			if strings.Contains(string(m.Payload), "poison") {
				return fmt.Errorf("%w: poisoned", facts.ErrUnavailable)
			}
		}
		rows = append(rows, c.Outbox...)
		return nil
	})
	batch := func(round string) {
		t.Helper()
		b := r.lane.NewBatch(testWorkspace)
		for i := range 6 {
			text := "good"
			if i == 3 {
				text = round
			}
			b.Post(plain(fmt.Sprint(round, i), text))
			b.Post(plain(fmt.Sprint(round, i), text)) // which is the same
		}
		if _, err := b.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	batch("poison")
	f.nextCommit(func(tx facts.Tx) error {
		rows = nil // the rows of this round have not been
		return refused(f, tx)
	})
	kept := slices.Clone(rows)
	batch("refused")
	rows = append(kept, rows...)
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Commit(context.Background()); err != nil {
			return err
		}
		return errLost
	})
	batch("lost")
	seen := map[readstate.Seq]bool{}
	for i, o := range rows {
		if seen[o.Seq] || (i > 0 && o.Key <= rows[i-1].Key) {
			t.Errorf("row %d: seq %d, key %d after %d", i, o.Seq, o.Key, rows[max(i-1, 0)].Key)
		}
		seen[o.Seq] = true
	}
	if len(seen) != 5+6+6 {
		t.Errorf("%d facts have outbox rows", len(seen))
	}
	f.everyWrite(nil)
	r.unreadIn(t, "s1", map[readstate.MemberID][2]uint64{"B": {17, 0}})
	r.settled(t)
}

// What was refused by the store is not remembered: no watcher, no assignee, nobody in a dm, and no
// conversation of a message that never was.
func testTaskRolledBack(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		create s2 dm
		join s2 A
		join s2 B
		post s1 A
		post s2 A`)
	ctx := t.Context()
	f.everyWrite(func(*facts.Changes) error { return fmt.Errorf("%w: gone", facts.ErrUnavailable) })
	who := readstate.MemberID("C")
	_, err := r.lane.SetFollow(ctx, testWorkspace, facts.SetFollow{
		Scope: "s1", Member: "B", Following: true,
	})
	_, err2 := r.lane.PutTask(ctx, testWorkspace, facts.PutTask{Scope: "s1", Actor: "A", Assignee: &who})
	_, err3 := r.lane.PutMembership(ctx, testWorkspace, facts.PutMembership{Scope: "s2", Member: "C"})
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, facts.ErrUnavailable) {
			t.Errorf("refused: %v", err)
		}
	}
	// The first group breaks before it is written, and then this message cannot be looked for.
	asked := 0
	f.everyLoad(func() error {
		if asked++; asked > 1 {
			return fmt.Errorf("%w: gone", facts.ErrUnavailable)
		}
		return nil
	})
	f.everyWrite(nil)
	future := readstate.Revision(99)
	lost, bad := plain("lost", "x"), plain("bad", "x")
	lost.LocalID, lost.Mentions = "local", []readstate.MemberID{"C"}
	bad.Author, bad.CreateMembers, bad.AdvanceCursor = "ghost", true, &future
	b := r.lane.NewBatch(testWorkspace)
	b.Post(lost)
	b.Post(bad)
	res, err := b.Run(ctx)
	if err != nil || !errors.Is(res[0].Err, facts.ErrUnavailable) || !errors.Is(res[1].Err, facts.ErrFuture) {
		t.Fatalf("%+v, %v", res, err)
	}
	all := f.record()
	r.script(t, `
		post s1 A
		post s2 A`)
	c := all.take()
	if len(c.Outbox) != 1 || len(c.Outbox[0].Humans) != 0 || len(c.Conversations) != 2 {
		t.Errorf("afterwards: %+v, %+v", c.Outbox, c.Conversations)
	}
	r.agree(t)
	r.settled(t)
}
