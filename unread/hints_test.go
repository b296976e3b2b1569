package unread

import (
	"errors"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// Only a hint may count below zero without an alarm: it is withheld, and everything else is shown.
// A row that is known exactly, of the same source, is a broken invariant.
//
// covers: RT-428
func TestOnlyHintsMayContradictThemselves(t *testing.T) {
	for _, serving := range []readstate.Serving{readstate.Exact, readstate.Hint} {
		d := newDesk(t, Config{Hints: true}, append(room, "create s2 channel", "join s2 B", "post s1 A", "post s2 A")...)
		d.load("B")
		ev := wrong()
		ev.Row.Serving = serving
		d.apply(ev)
		before := d.r.Stats().Suppressed
		row, err := d.r.Row(cold(), testSpace, "B", "s1")
		if serving == readstate.Exact {
			if s := d.r.Stats(); !errors.Is(err, ErrInvariant) || s.Alarms != 1 {
				t.Errorf("an exact row: %v, %d alarms", err, s.Alarms)
			}
			continue
		}
		if !errors.Is(err, ErrNotServable) || row.State != Stale || row.Values != (readstate.Values{}) {
			t.Errorf("a hint shows %+v %s, %v", row.Values, row.State, err)
		}
		if n := d.r.Stats().Suppressed - before; n != 1 {
			t.Errorf("one answer was counted as withheld %d times", n)
		}
		x, err := d.r.Explain(cold(), testSpace, "B", "s1")
		if !errors.Is(err, ErrNotServable) || x.Row.State != Stale || x.Own != 0 {
			t.Errorf("a hint is explained by %+v, %v", x, err)
		}
		sum := d.summary("B")
		if sum.Badge != (readstate.Badge{Messages: 1, Conversations: 1}) || !sum.HasUnread {
			t.Errorf("the sum beside it is %+v", sum)
		}
		counts, _, err := d.r.Counts(cold(), testSpace, "B", nil)
		if err != nil || len(counts) != 1 || counts[0].Scope != scopeKey(2) {
			t.Errorf("counts %+v, %v", counts, err)
		}
		if s := d.r.Stats(); s.Alarms != 0 {
			t.Errorf("%d alarms", s.Alarms)
		}
	}
}

// The head of a blocked writer is the rank that a fact has. Whoever has no facts numbers what comes,
// from a rank of their own, whatever rank the event has.
func TestHeadsOfBlockedWriters(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 A", "block B A")...)
	d.load("B")
	heads := func() (author, actor uint64) {
		ws := d.space()
		d.r.lock(ws)
		defer d.r.unlock(ws)
		w := ws.st.blocked.writers[ws.st.scopeByKey[scopeKey(1)]][1]
		return w.authorHead, w.actorHead
	}
	next := func(r readstate.Revision, rank uint64) {
		d.apply(readstate.MessageEvent{
			Scope: scopeKey(1), Seq: readstate.Seq(r), Revision: r, Author: 1, AuthorRank: rank,
		}, readstate.ActivityEvent{
			Scope: scopeKey(1), Seq: readstate.Seq(r), HighSignal: true, SignalRank: rank, Actor: 1,
			ActorRank: rank,
		})
	}
	next(2, 7)
	if author, actor := heads(); author != 7 || actor != 7 {
		t.Errorf("facts of rank 7 make heads %d and %d", author, actor)
	}
	d.apply(readstate.WriterEvent{Scope: scopeKey(1), Other: readstate.BlockedWriter{
		Member: 1, AuthorHead: 1000, ActorHead: 2000, Low: 900,
	}})
	next(3, 8)
	if author, actor := heads(); author != 1001 || actor != 2001 {
		t.Errorf("the next ones after 1000 and 2000 are %d and %d", author, actor)
	}
}
