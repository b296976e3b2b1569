package unread

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// More events come while a page is read than the queue of events holds: it stays within its
// bound, what went is counted, the member shows nothing until the page was read again, and is
// exact then. Members who are loaded notice nothing.
//
// covers: RT-413, RT-458
func TestEventQueueOverBudget(t *testing.T) {
	const budget = 10
	d := newDesk(t, Config{RingEvents: budget}, append(room, "post s1 A")...)
	d.load("C")
	d.r.HasUnread(testSpace, "B")
	j := d.r.queue.next()
	req, _ := d.r.beginPage(j)
	page, err := d.facts.Page(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * budget {
		d.do("post s1 A")
		if s := d.r.Stats(); s.RingEvents > budget || s.WorkspaceRingEvents != s.RingEvents {
			t.Fatalf("%d events are kept, %d in the fullest workspace", s.RingEvents, s.WorkspaceRingEvents)
		}
	}
	if s := d.r.Stats(); s.DroppedEvents < 2*budget || s.Budgets.RingEvents != budget {
		t.Errorf("%d events were dropped, budget %d", s.DroppedEvents, s.Budgets.RingEvents)
	}
	d.r.finishPage(j, page, nil)
	if s := d.r.Stats(); s.RingOverruns != 1 {
		t.Errorf("%d overruns", s.RingOverruns)
	}
	if row, err := d.r.Row(cold(), testSpace, "B", "s1"); err == nil || row.State != Hydrating ||
		row.Values != (readstate.Values{}) {
		t.Errorf("a page that lacks events is served: %+v, %v", row, err)
	}
	if got := d.unread("C", "s1"); got != 3*budget+1 {
		t.Errorf("%d unread of a member who is loaded", got)
	}
	d.pump()
	if got := d.unread("B", "s1"); got != 3*budget+1 {
		t.Errorf("%d unread once the page was read again", got)
	}
	d.agree()
}

// The age of the oldest load grows while its page does not come, and is nothing afterwards.
//
// covers: RT-426
func TestHydrationAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := bubble(t, Config{})
		r.HasUnread(testSpace, "B")
		for _, age := range []time.Duration{7 * time.Second, time.Minute} {
			time.Sleep(age - time.Duration(r.Stats().OldestHydration)*time.Millisecond)
			r.HasUnread(testSpace, "C") // a younger one changes nothing
			if got := r.Stats().OldestHydration; got != age.Milliseconds() {
				t.Errorf("after %v the oldest load is %d ms old", age, got)
			}
		}
		close(g.open)
		synctest.Wait()
		if s := r.Stats(); s.OldestHydration != 0 || s.Hydrating != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A watch of more members than the budget is refused whole, and counted.
func TestRefusedWatchesAreCounted(t *testing.T) {
	d := newDesk(t, Config{MaxWatchMembers: 2}, room...)
	if _, err := d.r.Watch(testSpace, []readstate.MemberID{"A", "B", "C"}); err == nil {
		t.Error("three members were taken")
	}
	d.watch("A", "B")
	if s := d.r.Stats(); s.RefusedWatches != 1 || s.Watches != 1 {
		t.Errorf("%+v", s)
	}
}
