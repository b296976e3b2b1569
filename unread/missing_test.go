package unread

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// half loads the first page of a member whose two later scopes are still missing. The scopes of
// the page are s4 and s3, of which the named one has something unread.
func half(t *testing.T, unread string) *desk {
	t.Helper()
	d := newDesk(t, Config{HydratePageSize: 2}, "create s1 channel", "create s2 channel",
		"create s3 channel", "create s4 channel", "join s1 B", "join s2 B", "join s3 B", "join s4 B",
		"post s1 A", "post s3 B", "post s4 B")
	if unread != "" {
		d.do("post " + unread + " A")
	}
	d.r.HasUnread(testSpace, "B")
	j := d.r.queue.next()
	req, _ := d.r.beginPage(j)
	page, err := d.facts.Page(context.Background(), req)
	d.r.finishPage(j, page, err)
	return d
}

// With pages missing, something unread is final wherever it stands among the rows that are
// there, and nothing unread is never said.
func TestAHitInAPartIsFinal(t *testing.T) {
	for _, unread := range []string{"s3", "s4"} {
		d := half(t, unread)
		if dot, state := d.r.HasUnread(testSpace, "B"); !dot || state != Ready {
			t.Errorf("%s: %t, %s", unread, dot, state)
		}
	}
	d := half(t, "")
	for range 2 { // the second time no candidate is left
		if dot, state := d.r.HasUnread(testSpace, "B"); dot || state != Hydrating {
			t.Errorf("nothing so far: %t, %s", dot, state)
		}
	}
}

// What is missing is neither zero nor unknown to the source: nothing is said of it.
func TestWhatIsMissingIsWithheld(t *testing.T) {
	d := half(t, "s3")
	if row := d.row("B", "s3"); row.State != Ready || row.Values.Unread != 1 {
		t.Errorf("a row that is there: %+v", row)
	}
	if row, err := d.r.Row(cold(), testSpace, "B", "s1"); !errors.Is(err, ErrNotServable) ||
		errors.Is(err, ErrNoRow) || row.State != Hydrating {
		t.Errorf("a row that is missing: %s, %v", row.State, err)
	}
	if _, err := d.r.Explain(cold(), testSpace, "B", "s1"); !errors.Is(err, ErrNotServable) {
		t.Errorf("why a missing row counts: %v", err)
	}
	if _, err := d.r.Totals(cold(), testSpace, "B", ByType); !errors.Is(err, ErrNotServable) {
		t.Errorf("totals: %v", err)
	}
	if _, err := d.r.Changed(cold(), testSpace, "B", d.facts.lsn); !errors.Is(err, ErrNotServable) {
		t.Errorf("changes: %v", err)
	}
	if _, known := d.r.Visible(testSpace, "B", "s1"); known {
		t.Error("it is known whether a missing row is visible")
	}
	d.pump()
	if got := d.unread("B", "s1"); got != 1 {
		t.Errorf("%d unread once it is there", got)
	}
}

// The page of a member of whom a part is there says so, and the next one begins again.
func TestAPageOfAPart(t *testing.T) {
	d := half(t, "s3")
	d.r.cfg.HydrateWait = 1
	page, err := d.r.Rows(t.Context(), testSpace, "B", "", 1)
	if err != nil || page.Complete || page.Next == "" || len(page.Rows) != 1 ||
		page.Rows[0].Scope.ID != "s3" {
		t.Fatalf("%v, complete %t, next %q, %v", scopesOf(page.Rows), page.Complete, page.Next, err)
	}
	d.pump()
	var all []string
	for cursor := page.Next; ; cursor = page.Next {
		if page, err = d.r.Rows(t.Context(), testSpace, "B", cursor, 1); err != nil {
			t.Fatal(err)
		}
		if all = append(all, scopesOf(page.Rows)...); page.Next == "" {
			break
		}
	}
	if want := []string{"s1", "s2", "s3", "s4"}; !page.Complete || !slices.Equal(sorted(all), want) {
		t.Errorf("complete %t, %v", page.Complete, all)
	}
}

// Who was read lately stays when others have to go, and whoever was loaded just now stays even
// if nobody else could make room.
func TestWhoStays(t *testing.T) {
	d := newDesk(t, Config{MaxEntries: 3}, append(slices.Clone(room), "join s1 D", "join s1 E",
		"create s2 channel", "join s2 E")...)
	there := func() (members []readstate.MemberID) {
		for _, id := range five {
			if _, known := d.r.Visible(testSpace, id, "s1"); known {
				members = append(members, id)
			}
		}
		return members
	}
	d.load("A", "B", "C")
	for _, m := range five[:3] {
		d.dot(m) // and finds nothing, so that the next one needs no lock
	}
	d.load("D") // all were read: the first of them goes
	if got := there(); !slices.Equal(got, []readstate.MemberID{"B", "C", "D"}) {
		t.Fatalf("%v are there", got)
	}
	if _, state := d.r.HasUnread(testSpace, "B"); state != Ready {
		t.Errorf("B is %s", state)
	}
	d.load("A")
	if got := there(); !slices.Equal(got, []readstate.MemberID{"A", "B", "D"}) {
		t.Errorf("%v are there, and B was read after C", got)
	}
	small := newDesk(t, Config{MaxEntries: 1}, "create s1 channel", "create s2 channel",
		"join s1 E", "join s2 E", "post s1 A")
	small.load("E")
	if s := small.summary("E"); !s.Complete || s.Badge.Messages != 1 || small.r.Stats().Evicted != 0 {
		t.Errorf("one member above the budget: %+v", s)
	}
}

// A slot stays as long as a row or a thread's slot refers to it.
func TestWhatKeepsASlot(t *testing.T) {
	d := newDesk(t, Config{}, append(slices.Clone(room), thread...)...)
	d.load("B")
	gone := func(scope readstate.ScopeKey, want int) {
		t.Helper()
		d.apply(readstate.RowGoneEvent{Scope: scope, Member: 2})
		if n := d.r.Stats().Scopes; n != want {
			t.Errorf("%d slots, want %d", n, want)
		}
		if err := d.space().st.sound(); err != nil {
			t.Error(err)
		}
	}
	gone(scopeKey(1), 2) // its thread has a row
	d.load("A")
	gone(scopeKey(2), 2) // A has rows in both
	d.r.Forget(testSpace, "A")
	if n := d.r.Stats().Scopes; n != 0 {
		t.Errorf("%d slots are needed by nobody", n)
	}
}

// What a page has without a row for it leaves no slot behind, be it that the row went while the
// page was under way.
func TestAPageWithoutARowLeavesNoSlot(t *testing.T) {
	for _, went := range []bool{true, false} {
		d := newDesk(t, Config{}, room...)
		d.r.HasUnread(testSpace, "B")
		j := d.r.queue.next()
		req, _ := d.r.beginPage(j)
		page, err := d.facts.Page(context.Background(), req)
		if went {
			d.apply(readstate.RowGoneEvent{Scope: scopeKey(1), Member: 2})
		} else {
			page.Rows = nil
		}
		d.r.finishPage(j, page, err)
		if s := d.r.Stats(); s.Pages != 1 || s.Entries != 0 || s.Scopes != 0 {
			t.Errorf("went %t: %d pages, %d rows, %d slots", went, s.Pages, s.Entries, s.Scopes)
		}
	}
}

// Threads with a level of their own are not sent to whoever resumes only because the channel's
// level will end; a block and an unblock both need a snapshot, of a watched member too.
func TestWhatAResumeNeeds(t *testing.T) {
	d := newDesk(t, Config{}, append(append(slices.Clone(room), thread...),
		"level s1 B mentions until=60")...)
	d.watch("B")
	changed := func(since readstate.LSN) (scopes []string, whole bool) {
		t.Helper()
		c, err := d.r.Changed(cold(), testSpace, "B", since)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range c.Deltas {
			scopes = append(scopes, string(x.Scope))
		}
		return sorted(scopes), c.Whole
	}
	if got, _ := changed(d.facts.lsn); !slices.Equal(got, []string{"s1", "s2"}) {
		t.Errorf("a thread that inherits the level: %v", got)
	}
	d.do("level s2 B all")
	if got, _ := changed(d.facts.lsn); !slices.Equal(got, []string{"s1"}) {
		t.Errorf("a thread with one of its own: %v", got)
	}
	for _, line := range []string{"block B A", "unblock B A"} {
		before := d.facts.lsn
		d.do(line)
		d.pump()
		if _, whole := changed(before); !whole {
			t.Errorf("%s is told in pieces", line)
		}
		if _, whole := changed(d.facts.lsn); whole {
			t.Errorf("%s is told twice", line)
		}
	}
}
