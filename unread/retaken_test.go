package unread

import (
	"context"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// newKey is the key of whoever takes B's id after B was erased.
const newKey readstate.MemberKey = 9

// apply makes a commit of events that the world knows nothing of.
func (d *desk) apply(events ...readstate.Event) {
	d.t.Helper()
	d.facts.lsn++
	if err := d.r.Apply(testSpace, d.facts.lsn, events); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) eraseB() {
	d.t.Helper()
	d.apply(readstate.PrincipalEvent{Info: readstate.MemberInfo{
		Key: 2, ID: "erased-1", Erased: true, MemberLSN: d.facts.lsn + 1,
	}}, readstate.RowGoneEvent{Scope: scopeKey(1), Member: 2})
}

func (d *desk) retakeB() {
	d.t.Helper()
	d.apply(readstate.PrincipalEvent{Info: readstate.MemberInfo{
		Key: newKey, ID: "B", Active: true, MemberLSN: d.facts.lsn + 1,
	}})
}

// page reads the next page of the job that waits, as of the member with the key, and answers
// with what hands it in.
func (d *desk) page(key readstate.MemberKey, refusal error) (finish func()) {
	d.t.Helper()
	if len(d.r.queue.jobs) == 0 {
		d.t.Fatal("nobody is being loaded")
	}
	j := d.r.queue.next()
	req, ok := d.r.beginPage(j)
	if !ok {
		d.t.Fatal("the job reads nothing")
	}
	page, err := d.facts.Page(context.Background(), req)
	if err != nil {
		d.t.Fatal(err)
	}
	page.Member.Key = key
	if refusal != nil {
		page, err = readstate.Page{}, refusal
	}
	return func() { d.r.finishPage(j, page, err) }
}

// The id of an erased member who is loaded is free: whoever takes it is loaded, and read.
func TestErasedIDTakenAnew(t *testing.T) {
	for _, watched := range []bool{false, true} {
		d := newDesk(t, Config{}, append(room, "post s1 A")...)
		d.load("B")
		var w *Watch
		if watched {
			w = d.watch("B")
		}
		if !d.dot("B") {
			t.Fatal("B has nothing unread")
		}
		d.eraseB()
		if dot, state := d.r.HasUnread(testSpace, "B"); dot || state != Unavailable {
			t.Errorf("watched %t: the dot of an erased member is %t, %s", watched, dot, state)
		}
		if visible, known := d.r.Visible(testSpace, "B", "s1"); visible || !known {
			t.Errorf("watched %t: an erased member sees %t, known %t", watched, visible, known)
		}
		if watched {
			d.told(w)
		}
		d.retakeB()
		if dot, state := d.r.HasUnread(testSpace, "B"); dot || state != Hydrating {
			t.Errorf("watched %t: the dot of an unread member is %t, %s", watched, dot, state)
		}
		if _, known := d.r.Visible(testSpace, "B", "s1"); known {
			t.Errorf("watched %t: memory knows what it has not loaded", watched)
		}
		d.page(newKey, nil)()
		if got := d.unread("B", "s1"); got != 1 {
			t.Errorf("watched %t: %d unread, want 1", watched, got)
		}
		if watched {
			if got := d.told(w); !slices.Equal(got, []string{"B s1"}) {
				t.Errorf("the watch hears %v", got)
			}
		}
		if m := d.space().st.memberNamed("B"); d.space().st.members.At(m).key != newKey {
			t.Errorf("watched %t: the id is not the new member's", watched)
		}
	}
}

// A page of the erased member that is being read meanwhile is no page of the next one.
func TestErasedIDTakenWhileAPageIsRead(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		d := newDesk(t, Config{HydratePageSize: 1}, append(room, "create s2 channel", "join s2 B")...)
		d.r.HasUnread(testSpace, "B")
		if loaded {
			d.page(2, nil)() // the first of two pages is installed
		}
		finish := d.page(2, nil)
		d.eraseB()
		d.retakeB()
		finish()
		if len(d.r.queue.jobs) != 1 || d.r.queue.jobs[0].cursor != "" {
			t.Fatalf("loaded %t: the job did not begin anew", loaded)
		}
		for len(d.r.queue.jobs) > 0 {
			d.page(newKey, nil)()
		}
		st := d.space().st
		m := st.memberNamed("B")
		if mb := st.members.At(m); mb.key != newKey || !mb.is(complete) || mb.n.Load() != 2 {
			t.Errorf("loaded %t: key %d, complete %t, %d rows",
				loaded, mb.key, mb.is(complete), mb.n.Load())
		}
	}
}

// A watched member who is made while the source still answers that there is none is loaded.
func TestMemberMadeWhileAPageIsRead(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	w, err := d.r.Watch(testSpace, []readstate.MemberID{"B"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	finish := d.page(newKey, ErrNoMember)
	d.retakeB()
	finish()
	d.page(newKey, nil)()
	if got := d.told(w); !slices.Equal(got, []string{"B s1"}) {
		t.Errorf("the watch hears %v", got)
	}
}

// What is being read again is neither visible nor hidden.
func TestVisibleIsUnknownWhileRowsAreReadAgain(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.watch("B")
	d.do("block B C")
	if visible, known := d.r.Visible(testSpace, "B", "s1"); visible || known {
		t.Errorf("visible %t, known %t", visible, known)
	}
	d.pump()
	if visible, known := d.r.Visible(testSpace, "B", "s1"); !visible || !known {
		t.Errorf("after reading again: visible %t, known %t", visible, known)
	}
	if visible, known := d.r.Visible(testSpace, "B", "s9"); visible || !known {
		t.Errorf("no row: visible %t, known %t", visible, known)
	}
}

// A clock that goes back between an appointment's time and its keeping loses no end of a level.
func TestClockGoesBackAtAnAppointment(t *testing.T) {
	now := int64(0)
	d := newDesk(t, Config{Now: func() int64 { return now }},
		append(room, "level s1 B none until=60")...)
	w := d.watch("B")
	_, due, _ := d.r.agenda.take(60_000)
	if len(due) != 1 {
		t.Fatalf("%d appointments", len(due))
	}
	d.r.keep(due[0]) // the clock is at zero again
	if got := d.told(w); len(got) > 0 {
		t.Errorf("told of %v before the time", got)
	}
	now = 60_000
	if _, due, _ = d.r.agenda.take(now); len(due) != 1 {
		t.Fatal("the appointment is lost")
	}
	d.r.keep(due[0])
	if got := d.told(w); !slices.Equal(got, []string{"B s1"}) {
		t.Errorf("told of %v", got)
	}
}
