package unread

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// wrong is B's row in s1 as no store would send it: more of B's own messages are removed than
// there are messages.
func wrong() readstate.MemberEvent {
	return readstate.MemberEvent{MemberRow: readstate.MemberRow{
		Scope: scopeKey(1), Member: 2, MemberID: "B",
		Row: readstate.Row{Joined: true, Visible: true, Point: readstate.Point{OwnRemoved: 7}},
	}}
}

// Whoever asks first for a count that is below zero gets none, and the memory goes.
func TestEveryReadFindsANegativeCount(t *testing.T) {
	reads := map[string]func(d *desk) error{
		"dot": func(d *desk) error {
			if dot, state := d.r.HasUnread(testSpace, "B"); dot || state != Unavailable {
				return nil
			}
			return ErrInvariant
		},
		"row": func(d *desk) error {
			_, err := d.r.Row(cold(), testSpace, "B", "s1")
			return err
		},
		"summary": func(d *desk) error {
			_, err := d.r.Summary(cold(), testSpace, "B")
			return err
		},
		"rows": func(d *desk) error {
			_, err := d.r.Rows(cold(), testSpace, "B", "", 9)
			return err
		},
		"totals": func(d *desk) error {
			_, err := d.r.Totals(cold(), testSpace, "B", ByType)
			return err
		},
		"explanation": func(d *desk) error {
			_, err := d.r.Explain(cold(), testSpace, "B", "s1")
			return err
		},
		"changes": func(d *desk) error {
			_, err := d.r.Changed(cold(), testSpace, "B", d.facts.lsn-1)
			return err
		},
	}
	for name, read := range reads {
		d := newDesk(t, Config{}, append(room, "post s1 A")...)
		d.load("B")
		d.apply(wrong())
		if err := read(d); !errors.Is(err, ErrInvariant) {
			t.Errorf("%s: %v", name, err)
		}
		if s := d.r.Stats(); s.Alarms != 1 || s.Members != 0 {
			t.Errorf("%s: %d alarms, %d members left", name, s.Alarms, s.Members)
		}
		d.load("B")
		d.agree()
	}
}

// A stream that comes upon a negative count is lost, and hands nothing out.
func TestAStreamFindsANegativeCount(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 A")...)
	w := d.watch("B")
	d.apply(wrong())
	if got := d.told(w); got != nil {
		t.Errorf("told %v", got)
	}
	select {
	case <-w.Lost():
	default:
		t.Error("the watch is not lost")
	}
	if s := d.r.Stats(); s.Alarms != 1 || s.LostWatches != 1 {
		t.Errorf("%+v", s)
	}
}

// The pair about a blocked writer may contradict an event although the row does not.
func TestAPairIsContradicted(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 C", "block B C", "post s1 A @B")...)
	d.load("B")
	unnamed := readstate.EditEvent{
		Scope: scopeKey(1), Seq: 1, Revision: 1, Author: 3, NamedBefore: keys(2),
	}
	err := d.r.Apply(testSpace, d.facts.lsn+1, []readstate.Event{unnamed})
	if !errors.Is(err, ErrInvariant) {
		t.Errorf("Apply answers %v", err)
	}
	if s := d.r.Stats(); s.Alarms != 1 || s.Members != 0 {
		t.Errorf("%+v", s)
	}
}

// A page that contradicts itself is not installed, harms nobody else, and is read again later.
func TestAPageContradictsItself(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 A")...)
	d.load("C")
	d.r.HasUnread(testSpace, "B")
	j := d.r.queue.next()
	req, _ := d.r.beginPage(j)
	page, err := d.facts.Page(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	page.Scopes = nil // of which it has rows
	d.r.finishPage(j, page, nil)
	if s := d.r.Stats(); s.Alarms != 1 || s.Members != 1 || s.Pages != 1 {
		t.Errorf("%+v", s)
	}
	if dot, state := d.r.HasUnread(testSpace, "B"); dot || state != Hydrating {
		t.Errorf("dot %t, %s", dot, state)
	}
	d.pump()
	if s := d.r.Stats(); s.Members != 1 {
		t.Errorf("read again at once: %+v", s)
	}
	_, due, _ := d.r.agenda.take(d.r.now() + 5000)
	if len(due) != 1 {
		t.Fatalf("%d appointments", len(due))
	}
	d.r.keep(due[0])
	d.pump()
	if got := d.unread("B", "s1"); got != 1 {
		t.Errorf("%d unread", got)
	}
	d.agree()
}

// A level that was seen to end stays ended, whatever the clock says afterwards.
func TestAWorkspacesClockNeverGoesBack(t *testing.T) {
	now := int64(0)
	d := newDesk(t, Config{Now: func() int64 { return now }},
		append(room, "level s1 B none until=10", "post s1 A")...)
	d.load("B")
	now = 10_000
	if d.summary("B").Badge.Messages != 1 {
		t.Error("the level has not ended")
	}
	now = 9_000
	d.do("post s1 A")
	if row := d.row("B", "s1"); row.Level != readstate.LevelAll || row.Presented.Unread != 2 {
		t.Errorf("the level is %s again: %+v", row.Level, row.Presented)
	}
}

// That holds also where only reads that share a lock, or take none, have seen the end.
func TestReadsKeepTheLatestTime(t *testing.T) {
	now := int64(0)
	d := newDesk(t, Config{Now: func() int64 { return now }},
		append(room, "level s1 B none until=10", "post s1 A")...)
	d.load("A", "B")
	now = 10_000
	if row := d.row("B", "s1"); row.Level != readstate.LevelAll {
		t.Errorf("the level is %s, it has ended", row.Level)
	}
	now = 9_000
	if row := d.row("B", "s1"); row.Level != readstate.LevelAll || !d.dot("B") {
		t.Errorf("the level is %s again", row.Level)
	}
}
