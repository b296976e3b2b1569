package intake

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// witness answers what the facts of one channel say, and notes who was asked about.
type witness struct {
	head  readstate.Revision
	asked []readstate.MemberID
}

func (w *witness) Facts(_ context.Context, q FactsQuery) (MemberFacts, error) {
	w.asked = append(w.asked, q.Member)
	f := MemberFacts{Joined: true, EffectiveFrom: 1, Head: w.head}
	for r := readstate.Revision(1); r <= w.head; r++ {
		f.Entries = append(f.Entries, EntryFacts{MessageFacts: MessageFacts{
			Seq: readstate.Seq(r), Revision: r, Author: "a",
		}})
	}
	return f, nil
}

// A comparison looks at the members that it names, whoever else is in the scope: their rows by key, their
// facts, and no more. It holds what it finds against where the facts themselves stand, keeps no record
// of its own, and never comes by itself.
// covers: RT-110 RT-111 RT-265
func TestComparisonIsBounded(t *testing.T) {
	facts := &witness{head: 2}
	lists := &people{}
	b := newBench(t, Config{Facts: facts, Comparison: true, Roster: lists})
	members := []readstate.MemberID{"b"}
	for i := range 999 {
		members = append(members, readstate.MemberID(fmt.Sprintf("m%03d", i)))
	}
	var roster []RosterMember
	for _, m := range members {
		roster = append(roster, RosterMember{ID: m, EffectiveFrom: 1})
	}
	lists.set(1, "c", roster...)
	b.tell(room("c", members...)...)
	b.tell(msg("c", 1, "a"), msg("c", 2, "a"))
	b.restart()
	b.counts("b", "c", readstate.Values{Unread: 2})
	b.store.asked()
	lists.asked()
	differ, err := b.f.Compare(t.Context(), space0, Bounds{Scope: "c", Members: []readstate.MemberID{"b"}})
	if err != nil || differ != 0 || !slices.Equal(facts.asked, []readstate.MemberID{"b"}) {
		t.Errorf("%d differ, %v; asked about %v", differ, err, facts.asked)
	}
	for _, q := range b.store.asked() {
		if q.Member != "b" && q.Member != "" || q.Only == nil || len(q.Only) > 2 {
			t.Errorf("it read %+v", q)
		}
	}
	if n := lists.asked(); n > 0 {
		t.Errorf("it read %d pages of rosters", n)
	}
	// Facts that end before what was told are no facts to compare with.
	facts.head = 1
	if _, err := b.f.Compare(t.Context(), space0, Bounds{Scope: "c", Members: []readstate.MemberID{"b"}}); !errors.Is(err, snapshot.ErrFacts) {
		t.Errorf("old facts: %v", err)
	}
	facts.head = 2
	if err := b.f.Repair(t.Context(), space0, Bounds{Scope: "c", Members: []readstate.MemberID{"b"}}); err != nil {
		t.Error(err)
	}
	b.flush()
	b.table(func(db *sql.DB) {
		var tables string
		if err := db.QueryRowContext(t.Context(),
			`SELECT group_concat(name) FROM sqlite_master WHERE type = 'table'`).Scan(&tables); err != nil {
			t.Fatal(err)
		}
		if tables != "member_scope_unread_runtime_snapshots" {
			t.Errorf("there are %s", tables)
		}
	})
}

// However long nobody asks, nothing is read: not the facts, not the table, not a roster.
// covers: RT-111
func TestNoAuditByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		facts := &witness{head: 1}
		lists := &people{}
		cfg := Config{Facts: facts, Comparison: true, Roster: lists}
		cfg.Flush.FlushInterval = time.Second
		b := newBench(t, cfg)
		lists.set(1, "c", RosterMember{ID: "b", EffectiveFrom: 1})
		b.tell(room("c", "b")...)
		b.tell(msg("c", 1, "a"))
		b.counts("b", "c", readstate.Values{Unread: 1})
		time.Sleep(time.Minute)
		b.store.asked()
		lists.asked()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if q, n := b.store.asked(), lists.asked(); len(q)+n+len(facts.asked) > 0 {
			t.Errorf("in a day %v, %d pages of rosters and the facts of %v were read", q, n, facts.asked)
		}
	})
}
