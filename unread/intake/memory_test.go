package intake

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

func scopeNo(i int) readstate.ScopeID { return readstate.ScopeID(fmt.Sprintf("s%05d", i)) }

// Scopes that nobody needs are let go, however many are fed, and come back from their row with what
// they had. Those that are dirty, or in use, stay.
func TestScopesAreLetGo(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Scopes, cfg.Limits.Cached, cfg.Limits.HeldTotal = 40, 10, 60
	b := newBench(t, cfg)
	b.tell(room("kept", "a", "viewer")...)
	b.tell(msg("kept", 1, "a"))
	watch, err := b.f.Runtime().Watch(space0, []readstate.MemberID{"viewer"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	b.shows("viewer", "kept", 1, unread.Ready)
	const many = 600
	for i := range many {
		s := scopeNo(i)
		b.tell(append(room(s, "a", "b"), msg(s, 1, "a"), msg(s, 2, "x"), MessageRewound{
			Scope: s, Removed: []MessageFacts{{Seq: 1, Revision: 1, Author: "a"}},
		})...)
		if i%20 == 19 {
			if st := b.f.Stats(); st.Books.Scopes < 20 {
				t.Fatalf("%d scopes are dirty, %d are kept", 20, st.Books.Scopes)
			}
			b.flush()
		}
		// Twenty are dirty at most, and what is let go is eight an event at most.
		if st := b.f.Stats(); st.WorkspaceScopes > 40+40 || st.Scopes > 40+40 || st.ScopeNames > 40+60 || st.Books.Held > 60 {
			t.Fatalf("after %d scopes: %d in the book, %d beside it, %d names, %d messages held", i+1,
				st.Books.Scopes, st.Scopes, st.ScopeNames, st.Books.Held)
		}
	}
	b.flush()
	for range 20 {
		b.tell(msg("other", 1, "a"))
	}
	st := b.f.Stats()
	if st.Books.Scopes > 41 || st.Books.Forgotten < many-60 || st.Books.CutTails == 0 || st.Budgets.Limits.Scopes != 40 {
		t.Errorf("%+v", st.Books)
	}
	b.tell(msg("kept", 2, "a"))
	b.shows("viewer", "kept", 2, unread.Ready) // in use by a stream, and exact all the time
	for _, i := range []int{0, 7, many / 2, many - 1} {
		b.tell(msg(scopeNo(i), 3, "a"))
		row, err := b.row("b", scopeNo(i))
		if err != nil || row.Values.Unread != 2 || !row.State.Servable() {
			t.Errorf("scope %d: %+v %s %v", i, row.Values, row.State, err)
		}
	}
	if st := b.f.Stats(); st.Failures+st.Runtime.Alarms+st.Books.Lost > 0 {
		t.Errorf("%+v", st)
	}
}

// Events that no budget has room for leave nothing behind, however many scopes they are about.
func TestRefusedScopesLeaveNothing(t *testing.T) {
	cfg := Config{MaxWarmScopes: 3}
	b := newBench(t, cfg)
	b.store.mu.Lock()
	gate := make(chan struct{})
	b.store.gate = gate
	b.store.mu.Unlock()
	for i := range 5_000 {
		if err := b.f.Tell(space0, msg(scopeNo(i), 1, "a")); err != nil {
			t.Fatal(err)
		}
	}
	st := b.f.Stats()
	if st.Scopes > 3 || st.ScopeNames > 3 || st.DroppedEvents != 4_997 || st.ScopePending != 1 || st.PendingScopes != 3 {
		t.Errorf("%d scopes, %d names, %d dropped, %d pending", st.Scopes, st.ScopeNames, st.DroppedEvents, st.ScopePending)
	}
	b.store.mu.Lock()
	b.store.gate = nil
	b.store.mu.Unlock()
	close(gate)
	b.settle()
}

// A scope that is read while it is let go is whole in the page all the same.
func TestPageWhileLettingGo(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Scopes, cfg.Limits.Cached = 2, 1
	b := newBench(t, cfg)
	for i := range 12 {
		s := scopeNo(i)
		b.tell(append(room(s, "a", "b"), msg(s, 1, "a"))...)
	}
	b.restart()
	busy := false
	b.store.after = func(q snapshotQuery) {
		if busy || q.Member != "b" && q.Member != "" {
			return
		}
		busy = true
		for i := range 40 {
			if err := b.f.Tell(space0, msg(scopeNo(100+i), 1, "x")); err != nil {
				t.Error(err)
			}
		}
		b.settle()
		busy = false
	}
	counts, _, err := b.f.Runtime().Counts(t.Context(), space0, "b", nil)
	if err != nil || len(counts) != 12 || slices.ContainsFunc(counts, func(c unread.Count) bool { return c.Unread != 1 }) {
		t.Errorf("%d counts, %v: %+v", len(counts), err, counts)
	}
}

// How long somebody has been served a hint is known, from the page that brought it to the cursor that
// settles it.
// covers: RT-427
func TestHintAge(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(room("d", "a")...)
	b.tell(msg("c", 1, "a"))
	b.restart()
	age := func(want int64) {
		t.Helper()
		if got := b.f.Stats().OldestHint; got != want {
			t.Errorf("a hint has been shown for %d ms, want %d", got, want)
		}
	}
	b.clock.Add(1000)
	age(0) // nobody is loaded
	b.shows("b", "c", 1, unread.SnapshotServing)
	b.clock.Add(4000)
	age(4000)
	b.shows("a", "c", 0, unread.SnapshotServing)
	b.clock.Add(1000)
	age(5000)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 1, Head: 1})
	b.shows("b", "c", 0, unread.Ready)
	age(1000) // a is one still
	b.clock.Add(-5000)
	age(0) // a clock that goes back makes nothing older
	b.clock.Add(6000)
	b.f.Runtime().Forget(space0, "a")
	age(0)
	b.shows("b", "c", 0, unread.Ready)
	age(0)
	// Whoever was let go is not remembered for ever.
	for i := range 2000 {
		m := readstate.MemberID(fmt.Sprint("m", i))
		b.tell(MembershipChanged{Scope: "d", Member: m, Joined: true})
	}
	b.restart()
	for i := range 2000 {
		m := readstate.MemberID(fmt.Sprint("m", i))
		b.shows(m, "d", 0, unread.SnapshotServing)
		b.f.Runtime().Forget(space0, m)
	}
	h := &b.f.all()[0].hints
	if n := len(h.since); n > 2*minHints || n != len(h.known) {
		t.Errorf("%d and %d members are remembered", n, len(h.known))
	}
}

// What a session is doing, and what it waits for, comes back with it.
func TestSessionsComeBack(t *testing.T) {
	b := newBench(t, Config{})
	state := ScopeStateChanged{
		Scope: "s", Type: readstate.Session, Name: "n", Active: true, PendingInput: true, PendingPermission: true,
	}
	b.tell(state, MembershipChanged{Scope: "s", Member: "b", Joined: true})
	for range 2 {
		row, err := b.row("b", "s")
		if x := row.Scope; err != nil || x.Name != "n" || !x.Active || x.Thinking || !x.PendingInput || !x.PendingPermission {
			t.Errorf("%+v, %v", x, err)
		}
		b.restart()
	}
}

// A stream that comes back is told of everything that changed since, also of rows and scopes that
// were let go meanwhile, and of blocks; and of nothing that did not change.
func TestResumeAfterLettingGo(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Scopes, cfg.Limits.Cached = 1, 1
	b := newBench(t, cfg)
	for _, s := range []readstate.ScopeID{"row", "scope", "edit", "still"} {
		b.tell(room(s, "a", "b")...)
		b.tell(msg(s, 1, "a"))
	}
	r := b.f.Runtime()
	sum, err := r.Summary(t.Context(), space0, "b")
	if err != nil {
		t.Fatal(err)
	}
	b.tell(ReadCursorAdvanced{Scope: "row", Member: "b", Revision: 1}, msg("scope", 2, "a"),
		MessageEdited{Scope: "edit", Was: MessageFacts{Revision: 1, Author: "a"}, Mentions: []readstate.MemberID{"b"}})
	letGo := func() {
		t.Helper()
		r.Forget(space0, "b")
		b.flush()
		for i := range 40 {
			b.tell(append(room(scopeNo(i%4), "x"), msg(scopeNo(i%4), readstate.Revision(1+i/4), "x"))...)
		}
		if st := b.f.Stats().Books; st.Forgotten == 0 {
			t.Fatalf("nothing was let go: %+v", st)
		}
		b.flush()
	}
	letGo()
	changes, err := r.Changed(t.Context(), space0, "b", sum.LSN)
	var told []string
	for _, d := range changes.Deltas {
		told = append(told, string(d.Scope))
	}
	slices.Sort(told)
	if err != nil || changes.Whole || !slices.Equal(told, []string{"edit", "row", "scope"}) {
		t.Errorf("told of %v, all %t, %v", told, changes.Whole, err)
	}
	b.tell(blocks("b", "x"))
	letGo()
	if again, err := r.Changed(t.Context(), space0, "b", changes.LSN); err != nil || !again.Whole {
		t.Errorf("a block is told as %+v, %v", again, err)
	}
	// In the next process no position of this one is any good, whatever its clock says.
	b.clock.Store(1)
	b.restart()
	if _, err := r.Summary(t.Context(), space0, "b"); err == nil {
		t.Error("the memory of a crash answers")
	}
	r = b.f.Runtime()
	now, err := r.Summary(t.Context(), space0, "b")
	if err != nil || now.LSN >= changes.LSN {
		t.Fatalf("%+v, %v", now, err)
	}
	if again, err := r.Changed(t.Context(), space0, "b", changes.LSN); err != nil || !again.Whole {
		t.Errorf("a position ahead is told %+v, %v", again, err)
	}
	if again, err := r.Changed(t.Context(), space0, "b", now.LSN); err != nil || again.Whole || len(again.Deltas) > 0 {
		t.Errorf("nothing is told as %+v, %v", again, err)
	}
}
