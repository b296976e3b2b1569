package intake

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// A row that would take back what somebody else's barrier protects is not written: the delivery is
// deferred, whatever would be lost, and nobody is woken.
// covers: RT-297 RT-298 RT-299 RT-300 RT-301
func TestCandidates(t *testing.T) {
	// Another owner's barrier wrote the row while b's program held what was before.
	for name, edit := range map[string]string{
		"frontier":          `'$.through', 9`,
		"activity frontier": `'$.activityThrough', 9`,
		"generation":        `'$.generations.message', 9`,
		"rewind generation": `'$.generations.rewind', 9`,
		"cursor":            `'$.read', 2`,
		"activity cursor":   `'$.activityRead', 1`,
		"count":             `'$.ranks.targets', 4`,
		"entry":             `'$.ranks.targets', 4, '$.detail.entries', 'AQQ'`, // 1 to 4
		"counted activity":  `'$.ranks.activityTargets', 1, '$.activityThrough', 0, '$.detail.actsTo', 0`,
	} {
		t.Run(name, func(t *testing.T) {
			b := protectedTask(t, 2)
			b.execute(`UPDATE member_scope_unread_runtime_snapshots
 SET task_snapshot_json = json_set(task_snapshot_json, '$.barrier', 7, `+edit+`)
 WHERE member_id = ? AND scope_id = ?`, []byte("b"), []byte("t"))
			if name == "counted activity" {
				b.execute(`UPDATE member_scope_unread_runtime_snapshots
 SET task_snapshot_json = json_set(task_snapshot_json, '$.activityThrough', 1) WHERE member_id = ?`, []byte("b"))
				b.tell(NonMessageActivityStored{Scope: "t", Seq: 1, Actor: "a", HighSignal: true})
			}
			before := b.task("b", "t")
			b.tell(delivered("t", 3, "b"))
			woken := 0
			for range 3 {
				err := b.barrier("t", 3, 0, "b")
				if err == nil {
					woken++
				}
				if !errors.Is(err, ErrDeferred) || !errors.Is(err, snapshot.ErrProtected) {
					t.Errorf("%v", err)
				}
			}
			if now := b.task("b", "t"); now != before || woken > 0 {
				t.Errorf("%d woken; %+v\nbecame %+v", woken, before, now)
			}
			if s := b.f.Stats().Flush; s.Deferred == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
	// With nothing to lose it is written over.
	b := protectedTask(t, 2)
	b.execute(`UPDATE member_scope_unread_runtime_snapshots
 SET task_snapshot_json = json_set(task_snapshot_json, '$.barrier', 7) WHERE member_id = ?`, []byte("b"))
	b.tell(delivered("t", 3, "b"))
	if err := b.barrier("t", 3, 0, "b"); err != nil {
		t.Error(err)
	}
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 3})
}

// What was taken back, read or blocked since a barrier is no loss to the next one.
// covers: RT-300
func TestCandidatesThatMay(t *testing.T) {
	for name, events := range map[string][]Event{
		"read":   {ReadCursorAdvanced{Scope: "t", Member: "b", Revision: 2}},
		"rewind": {MessageRewound{Scope: "t", Removed: []MessageFacts{{Revision: 1, Author: "a", Recipients: []readstate.MemberID{"b"}}}}},
		"block":  {BlocksChanged{Member: "b", Blocks: []readstate.MemberID{"a"}, Known: true}},
		"left":   {MembershipChanged{Scope: "t", Member: "b"}},
		"anew":   {MembershipChanged{Scope: "t", Member: "b"}, MembershipChanged{Scope: "t", Member: "b", Joined: true}},
		"back to the beginning": {
			ReadCursorAdvanced{Scope: "t", Member: "b", Revision: 3}, MembershipChanged{Scope: "t", Member: "b"},
			MembershipChanged{Scope: "t", Member: "b", Joined: true, EffectiveFrom: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := protectedTask(t, 3)
			b.tell(ReadCursorAdvanced{Scope: "t", Member: "b", Revision: 1})
			if err := b.barrier("t", 3, 0, "b"); err != nil {
				t.Fatal(err)
			}
			b.tell(events...)
			for round := range readstate.Revision(3) {
				b.tell(delivered("t", 4+round, "b", "x"))
				if err := b.barrier("t", 4+round, 0, "b", "x"); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				want, wrong := b.row("b", "t")
				if round == 1 {
					b.crash()
				} else {
					b.restart()
				}
				got, err := b.row("b", "t")
				if (err == nil) != (wrong == nil) || got.Values != want.Values {
					t.Errorf("round %d: %+v %v, was %+v %v", round, got.Values, err, want.Values, wrong)
				}
			}
		})
	}
}

// A crash between the columns of a barrier, whichever came first, leaves a row that is shown as it
// was before the barrier or after it; the delivery is tried again and counts once.
// covers: RT-286 RT-301
func TestCrashBetweenColumns(t *testing.T) {
	for _, regular := range []bool{true, false} {
		for n := range 3 {
			t.Run(fmt.Sprint(regular, n), func(t *testing.T) {
				b := protectedTask(t, n)
				store := &halves{faulty: b.store, regular: regular}
				b.f.Abandon()
				b.cfg.Store = store
				b.open()
				last := readstate.Revision(n + 1)
				b.tell(delivered("t", last, "b"))
				store.die = true
				if err := b.barrier("t", last, 0, "b"); !errors.Is(err, ErrDeferred) {
					t.Fatal(err)
				}
				store.die = false
				b.crash()
				row, err := b.row("b", "t")
				if err != nil || row.Values.Unread != uint64(n) && row.Values.Unread != uint64(n+1) {
					t.Errorf("%+v %v", row.Values, err)
				}
				b.tell(delivered("t", last, "b"))
				b.counts("b", "t", readstate.Values{Unread: uint64(n + 1)})
				if err := b.barrier("t", last, 0, "b"); err != nil {
					t.Fatal(err)
				}
				b.crash()
				b.counts("b", "t", readstate.Values{Unread: uint64(n + 1)})
			})
		}
	}
}

// A write whose answer is lost, and an older program's beside it, are found out before the next.
// covers: RT-282
func TestBarrierAfterLostAnswer(t *testing.T) {
	b := protectedTask(t, 1)
	b.tell(delivered("t", 2, "b"))
	b.store.lose = true
	if err := b.barrier("t", 2, 0, "b"); !errors.Is(err, ErrDeferred) {
		t.Fatal(err)
	}
	b.store.lose = false
	if err := b.barrier("t", 2, 0, "b"); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 2})
}
