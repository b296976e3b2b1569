package factstest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// What single events say, and what operations of one group see of each other.
var toldParts = []lanePart{
	{"RemovalAndTrimTold", testRemovalAndTrimTold},
	{"BlockTold", testBlockTold},
	{"ReadBesideItsMessages", testReadBesideItsMessages},
	{"RowBesideABlockedPost", testRowBesideABlockedPost},
}

// lastOf is the last event of its kind, with the number of its commit.
func lastOf[E readstate.Event](commits []facts.Commit) (last E, lsn readstate.LSN) {
	for _, c := range commits {
		for _, e := range c.Events {
			if e, ok := e.(E); ok {
				last, lsn = e, c.LSN
			}
		}
	}
	return last, lsn
}

// A removal names both whom the message was neutral to and the newest message that is left; a
// floor event has the floor, and what the trimmed writers had written up to it.
func testRemovalAndTrimTold(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	var receipts []facts.Receipt
	for i := range 4 {
		p := plain(fmt.Sprint("p", i), "x")
		p.Principal = "B"
		res, err := r.lane.Post(ctx, testWorkspace, p)
		if err != nil {
			t.Fatal(err)
		}
		receipts = append(receipts, res)
	}
	rm := facts.Remove{Scope: "s1", Message: receipts[3].MessageID, OpID: "rm"}
	_, err := r.lane.Remove(ctx, testWorkspace, rm)
	_, err2 := r.lane.Trim(ctx, testWorkspace, facts.TrimScope{Scope: "s1", OpID: "trim", Through: 2})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	commits := r.settled(t)
	gone, _ := lastOf[readstate.RemovalEvent](commits)
	if gone.Author == 0 || gone.Principal == 0 || gone.Principal == gone.Author ||
		gone.Latest.ID != receipts[2].MessageID || gone.Replies != 3 {
		t.Errorf("removed: %+v", gone)
	}
	floor, _ := lastOf[readstate.FloorEvent](commits)
	want := []readstate.FloorWriter{
		{Member: gone.Author, AuthorAtFloor: 2}, {Member: gone.Principal, PrincipalAtFloor: 2},
	}
	if floor.Floor != 2 || floor.Replies != 1 || floor.Latest.ID != receipts[2].MessageID ||
		!slices.Equal(floor.Writers, want) {
		t.Errorf("trimmed: %+v", floor)
	}
}

// A block is a change of the member, of the commit's number in both of its events.
func testBlockTold(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	r.play(t, "block B A")
	commits := r.settled(t)
	block, at := lastOf[readstate.BlockEvent](commits)
	member, same := lastOf[readstate.PrincipalEvent](commits)
	if !block.Blocked || block.MemberLSN != at || member.Info.Key != block.Member ||
		member.Info.MemberLSN != at || same != at {
		t.Errorf("commit %d: %+v, commit %d: %+v", at, block, same, member.Info)
	}
}

// A partial read in the group that posts crosses what the group has posted, and no more.
func testReadBesideItsMessages(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	ctx := t.Context()
	b := r.lane.NewBatch(testWorkspace)
	for i := range 3 {
		p := plain(fmt.Sprint("p", i), "x")
		p.Mentions = []readstate.MemberID{"B"}
		b.Post(p)
	}
	two := readstate.Revision(2)
	b.MarkRead(facts.MarkRead{Scope: "s1", Member: "B", Revision: &two, Trusted: true})
	res, err := b.Run(ctx)
	if err != nil || res[3].Err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	if p := res[3].Read.Row.Point; p.E != 2 || p.Direct != 1 {
		t.Errorf("the row after the read: %+v", p)
	}
	r.settled(t)
	r.unread(t, 1)
}

// A row that changes in the group in which a blocked member writes has that writer beside it.
func testRowBesideABlockedPost(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	r.play(t, "join s1 C")
	r.play(t, "block B C")
	b := r.lane.NewBatch(testWorkspace)
	post := plain("one", "x")
	post.Author = "C"
	b.Post(post)
	level := readstate.LevelMentions
	b.PutMembership(facts.PutMembership{Scope: "s1", Member: "B", Level: &level})
	res, err := b.Run(t.Context())
	if err != nil || errors.Join(res[0].Err, res[1].Err) != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	row, _ := lastOf[readstate.MemberEvent](r.settled(t))
	if row.MemberID != "B" || len(row.Pairs) != 1 || row.Pairs[0].Other.AuthorHead != 1 {
		t.Errorf("%s has pairs %+v", row.MemberID, row.Pairs)
	}
}
