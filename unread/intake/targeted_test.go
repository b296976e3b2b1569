package intake

import (
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// A barrier writes the rows of its recipients among any number of dirty ones, asks nobody anything
// for it, and everything else is written when it would have been, once, and as it is by then.
// covers: RT-204 RT-205 RT-206 RT-207 RT-222
func TestBarrierIsTargeted(t *testing.T) {
	const others = 500
	lists := &people{}
	b := newBench(t, Config{Roster: lists})
	b.tell(job("t", "b", "x", "y", "z")...)
	b.tell(room("c")...)
	crowd := make([]Event, others)
	for i := range crowd {
		crowd[i] = MembershipChanged{Scope: "c", Member: readstate.MemberID(fmt.Sprintf("m%03d", i)), Joined: true}
	}
	b.tell(crowd...)
	b.flush()
	for i := range crowd {
		crowd[i] = ManualUnreadSet{Scope: "c", Member: readstate.MemberID(fmt.Sprintf("m%03d", i))}
	}
	b.tell(crowd...)
	to := []readstate.MemberID{"b", "x", "y"}
	b.tell(delivered("t", 1, to...))
	b.store.written()
	b.store.asked()
	lists.asked()
	dirty := b.f.Stats().Books.Backlog
	if err := b.barrier("t", 1, 0, to...); err != nil {
		t.Fatal(err)
	}
	rows := map[snapshot.Row]bool{}
	for _, r := range b.store.written() {
		rows[snapshot.Row{Scope: r.Scope, Member: r.Member}] = true
	}
	for _, m := range to {
		if !rows[snapshot.Row{Scope: "t", Member: m}] {
			t.Errorf("no row of %s", m)
		}
	}
	if left := b.f.Stats().Books.Backlog; len(rows) != len(to) || left != dirty-len(to) || left < others {
		t.Errorf("%d rows were written; %d of %d are dirty", len(rows), left, dirty)
	}
	if loads, pages := b.store.asked(), lists.asked(); len(loads)+pages > 0 {
		t.Errorf("the barrier read %v, and %d pages of rosters", loads, pages)
	}
	b.tell(delivered("t", 2, "b"), ManualUnreadSet{Scope: "t", Member: "x"})
	if early := b.store.written(); len(early) > 0 {
		t.Errorf("%d rows were written before their time", len(early))
	}
	b.flush()
	count := map[readstate.ScopeID]map[readstate.MemberID]int{"c": {}, "t": {}}
	for _, r := range b.store.written() {
		if r.Member != "" && r.Scope != "" {
			count[r.Scope][r.Member]++
		}
	}
	if len(count["c"]) != others || count["t"]["b"] != 1 || count["t"]["x"] != 1 || count["t"]["y"] != 0 {
		t.Errorf("%d others and %v were written by the flush", len(count["c"]), count["t"])
	}
	b.crash()
	b.counts("b", "t", readstate.Values{Unread: 2})
	b.counts("x", "t", readstate.Values{Unread: 1})
}

// An outbox that goes by its barrier wakes nobody, and calls nothing delivered, before exactly the rows
// of the recipients are in the table, for messages and activities alike.
// covers: RT-468
func TestBarrierComesFirst(t *testing.T) {
	for _, what := range []string{"message", "activity"} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, Config{})
			b.tell(job("t", "b", "x", "y")...)
			b.flush()
			to := []readstate.MemberID{"b", "x"}
			d, want := Delivery{Scope: "t", Revision: 1, Recipients: to}, int64(1)
			if ev := delivered("t", 1, to...); what == "message" {
				b.tell(ev)
			} else {
				d.Revision, d.Activity, want = 0, 1, 0
				b.tell(NonMessageActivityStored{Scope: "t", Seq: 1, Actor: "a", HighSignal: true, Recipients: to})
			}
			b.tell(ManualUnreadSet{Scope: "t", Member: "y"})
			b.store.written()
			woken := 0
			try := func() {
				if b.f.Barrier(t.Context(), space0, d) != nil {
					return
				}
				woken++ // from here on the delivery may be seen
				for _, m := range []readstate.MemberID{"b", "x", "y"} {
					rows, err := b.store.Store.Load(t.Context(), snapshot.Query{
						Workspace: space0, Member: m, Only: []readstate.ScopeID{"t"}, Limit: 1,
					})
					if err != nil || len(rows) != 1 {
						t.Fatalf("%d rows of %s, %v", len(rows), m, err)
					}
					r, is := rows[0], m != "y"
					if is && (r.MessageUnread != want || r.ActivityUnread != 1-want) ||
						!is && r.MessageUnread+r.ActivityUnread+r.ManualUnread != 0 {
						t.Errorf("the table says of %s: %+v", m, r)
					}
				}
			}
			b.store.fail(true)
			if try(); woken != 0 {
				t.Error("somebody was woken although nothing was written")
			}
			b.store.fail(false)
			b.store.written()
			if try(); woken != 1 {
				t.Error("nobody was woken")
			}
			if rows := b.store.written(); len(rows) != len(to) {
				t.Errorf("%d rows were written", len(rows))
			}
		})
	}
}

// A barrier mends nothing: what a crash took from a recipient stays missing.
// covers: RT-221
func TestBarrierMendsNothing(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(job("t", "b")...)
	b.tell(room("c", "b", "a")...)
	b.flush()
	b.tell(msg("c", 1, "a"))
	b.crash()
	b.counts("b", "c", readstate.Values{})
	b.tell(delivered("t", 1, "b"))
	if err := b.barrier("t", 1, 0, "b"); err != nil {
		t.Fatal(err)
	}
	b.counts("b", "c", readstate.Values{})
	b.crash()
	b.counts("b", "c", readstate.Values{})
	b.counts("b", "t", readstate.Values{Unread: 1})
}

// An activity changes what its recipient is shown in the task, the sum of all scopes and the badge,
// what waits for the flush, and tells whoever watches.
// covers: RT-164
func TestActivityIsEverywhere(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(job("t", "b", "x")...)
	b.flush()
	b.counts("b", "t", readstate.Values{})
	w, err := b.f.Runtime().Watch(space0, []readstate.MemberID{"b", "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if s := b.f.Stats().Books; s.Backlog != 0 {
		t.Fatalf("%d rows are dirty", s.Backlog)
	}
	b.tell(NonMessageActivityStored{
		Scope: "t", Seq: 1, Actor: "a", HighSignal: true, Recipients: []readstate.MemberID{"b"},
	})
	b.counts("b", "t", readstate.Values{Activity: 1})
	sum, err := b.f.Runtime().Summary(t.Context(), space0, "b")
	if err != nil || sum.Badge.Conversations != 1 || !sum.HasUnread {
		t.Errorf("the sum is %+v, %v", sum, err)
	}
	if has, state := b.f.Runtime().HasUnread(space0, "b"); !has {
		t.Errorf("no badge: %s", state)
	}
	if s := b.f.Stats().Books; s.Backlog == 0 {
		t.Error("nothing is dirty")
	}
	<-w.Ready()
	deltas := w.Next(10)
	if len(deltas) != 1 || deltas[0].Member != "b" || deltas[0].Scope != "t" ||
		deltas[0].Row.Values.Activity != 1 || deltas[0].Summary.Badge != sum.Badge {
		t.Errorf("told of %+v", deltas)
	}
	b.restart()
	b.counts("b", "t", readstate.Values{Activity: 1})
}
