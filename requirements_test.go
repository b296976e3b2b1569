package tidemark_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Memory follows the commit: while it is open, and after it was refused, everybody reads the old
// values; the caller of a refused one gets an error.
// covers: RT-069 RT-070 RT-071 RT-137 RT-434 RT-465
func TestMemoryFollowsTheCommit(t *testing.T) {
	h := newHub(t)
	first := h.post("a")
	if n := h.unread("b"); n != 1 {
		t.Fatalf("unread %d, want 1", n)
	}
	reached, release := make(chan struct{}), make(chan struct{})
	h.gate.onCommit(func() error {
		close(reached)
		<-release
		return nil
	})
	done := make(chan error, 1)
	go func() {
		_, err := h.Post(t.Context(), facts.Post{Scope: "c", OpID: "held", Author: "a"})
		done <- err
	}()
	<-reached
	if n := h.unread("b"); n != 1 {
		t.Errorf("unread %d while the commit is open, want 1", n)
	}
	h.gate.onCommit(nil)
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := h.unread("b"); n != 2 {
		t.Errorf("unread %d after the commit, want 2", n)
	}
	h.gate.onCommit(func() error { return facts.ErrAborted })
	if _, err := h.Post(t.Context(), facts.Post{Scope: "c", OpID: "no", Author: "a"}); !errors.Is(err, facts.ErrUnavailable) {
		t.Errorf("post that cannot commit: %v", err)
	}
	read := facts.MarkRead{Scope: "c", Member: "b", Revision: &first.Revision}
	if _, err := h.MarkRead(t.Context(), read); !errors.Is(err, facts.ErrUnavailable) {
		t.Errorf("read that cannot commit: %v", err)
	}
	if n := h.unread("b"); n != 2 {
		t.Errorf("unread %d after refused commits, want 2", n)
	}
	h.gate.onCommit(nil)
	if state := h.read("b", first.Revision); state.Row.Values.Unread != 1 {
		t.Errorf("unread %d after the read, want 1", state.Row.Values.Unread)
	}
}

// Each effective change raises the generation of what it changes; one that changes nothing raises
// none. A refused commit raises none either.
// covers: RT-093 RT-094 RT-096 RT-097 RT-143 RT-151 RT-152 RT-153
func TestGenerations(t *testing.T) {
	h := newHub(t)
	ctx := t.Context()
	post := h.post("a")
	h.post("a")
	type generations struct {
		seq                               readstate.Seq
		roster                            uint64
		membership, notification, reading readstate.LSN
	}
	now := func() generations {
		t.Helper()
		s, err := h.Scope(ctx, "c")
		if err != nil {
			t.Fatal(err)
		}
		row, _, err := h.Membership(ctx, "b", "c")
		if err != nil {
			t.Fatal(err)
		}
		return generations{s.Ranks.LatestSeq, s.RosterGeneration, row.MembershipLSN,
			row.NotificationLSN, row.StateLSN}
	}
	none, hidden := readstate.LevelNone, false
	version := uint64(0)
	steps := []struct {
		name string
		run  func() error
		rose func(before, after generations) bool
	}{
		{"post", func() error { h.post("a"); return nil },
			func(b, a generations) bool { return a.seq == b.seq+1 }},
		{"read", func() error { h.read("b", post.Revision); return nil },
			func(b, a generations) bool { return a.reading > b.reading }},
		{"manual", func() error {
			_, err := h.MarkUnread(ctx, facts.MarkUnread{Scope: "c", Member: "b", Version: &version})
			return err
		}, func(b, a generations) bool { return a.reading > b.reading }},
		{"mute", func() error {
			_, err := h.PutMembership(ctx, facts.PutMembership{Scope: "c", Member: "b", Level: &none})
			return err
		}, func(b, a generations) bool { return a.notification > b.notification && a.roster > b.roster }},
		{"hide", func() error {
			_, err := h.PutMembership(ctx, facts.PutMembership{Scope: "c", Member: "b", Visible: &hidden})
			return err
		}, func(b, a generations) bool { return a.membership > b.membership && a.roster > b.roster }},
		{"leave", func() error {
			_, err := h.Leave(ctx, facts.Leave{Scope: "c", Member: "b"})
			return err
		}, func(b, a generations) bool { return a.membership > b.membership && a.roster > b.roster }},
	}
	for i, s := range steps {
		before := now()
		h.gate.onCommit(func() error { return facts.ErrAborted })
		if i > 1 { // the first two fail the test when refused
			if err := s.run(); err == nil {
				t.Errorf("%s: accepted without a commit", s.name)
			}
		}
		h.gate.onCommit(nil)
		if after := now(); after != before {
			t.Errorf("%s: refused, and yet %+v became %+v", s.name, before, after)
		}
		if err := s.run(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		after := now()
		if !s.rose(before, after) {
			t.Errorf("%s: %+v became %+v", s.name, before, after)
		}
		if i == 0 || s.name == "manual" { // a manual mark again needs the new version
			continue
		}
		if err := s.run(); err != nil {
			t.Fatalf("%s again: %v", s.name, err)
		}
		if again := now(); again != after {
			t.Errorf("%s again: %+v became %+v", s.name, after, again)
		}
	}
	h.read("c", 2)
	if state := h.read("c", 1); state.Stored.Read != 2 || state.Outcome != readstate.Unchanged {
		t.Errorf("an older read: %+v", state.Stored)
	}
}

// A message writes itself, its scope and its writer's totals, whatever the size of the roster,
// and reads no unread state.
// covers: RT-133 RT-134 RT-135 RT-136 RT-484
func TestAMessageWritesNothingPerRecipient(t *testing.T) {
	h := newHub(t)
	var members []readstate.MemberID
	for i := range 100 {
		members = append(members, readstate.MemberID(fmt.Sprint("m", i)))
	}
	h.channel("c", members...)
	h.post("a")
	h.sql.take()
	r := h.post("a")
	for _, q := range h.sql.take() {
		for _, table := range []string{
			"conversation_member_states", "scope_memberships", "message_mentions",
			"scope_notification_settings", "member_scope_unread_runtime_snapshots",
		} {
			if strings.Contains(q, table) {
				t.Errorf("a plain message asks for %s: %s", table, q)
			}
		}
	}
	s, err := h.Scope(t.Context(), "c")
	if err != nil || s.Ranks.LatestSeq != r.Seq || s.Ranks.Head != r.Revision {
		t.Errorf("scope stands at %+v, %v", s.Ranks, err)
	}
}

// A rewind takes back exactly what had counted, for exactly those for whom it had, and leaves
// every row ready. The same rewind again changes nothing.
// covers: RT-082 RT-234 RT-235 RT-237 RT-238 RT-239 RT-240 RT-244 RT-247
func TestRewind(t *testing.T) {
	h := newHub(t)
	ctx := t.Context()
	kept := h.post("a")
	h.post("a", "b")
	h.post("b")
	last := h.post("a")
	h.read("c", last.Revision) // c has read everything
	mute := readstate.LevelNone
	if _, err := h.PutMembership(ctx, facts.PutMembership{Scope: "c", Member: "d", Level: &mute}); err != nil {
		t.Fatal(err)
	}
	h.channel("c", "late") // joined after all of it
	want := map[readstate.MemberID][2]uint64{
		"a": {1, 0}, "b": {3, 1}, "c": {0, 0}, "d": {4, 1}, "late": {0, 0},
	}
	for m, n := range want {
		if got := h.unread(m); got != n[0] {
			t.Fatalf("before: unread of %s is %d, want %d", m, got, n[0])
		}
	}
	pages := h.engine.Stats().Pages
	rewind := facts.Rewind{Scope: "c", OpID: "rw", Through: kept.Seq}
	if r, err := h.Rewind(ctx, rewind); err != nil || r.Duplicate {
		t.Fatalf("rewind: %+v, %v", r, err)
	}
	check := func(when string) {
		t.Helper()
		for m, n := range want {
			row, err := h.Row(ctx, m, "c")
			if err != nil || row.State != unread.Ready || row.Values.Unread != n[1] {
				t.Errorf("%s: %s has %+v %s, %v; want %d", when, m, row.Values, row.State, err, n[1])
			}
		}
		if has, _ := h.HasUnread("a"); has {
			t.Errorf("%s: a still has unread", when)
		}
	}
	check("after the rewind")
	if got := h.engine.Stats().Pages; got != pages {
		t.Errorf("the rewind read %d pages", got-pages)
	}
	if r, err := h.Rewind(ctx, rewind); err != nil || !r.Duplicate {
		t.Fatalf("again: %+v, %v", r, err)
	}
	check("after the same rewind again")
}

// What a member may not see shows nothing at once, is no zero, and comes back as it was.
// covers: RT-227 RT-228 RT-229 RT-232 RT-233 RT-251
func TestWhatIsNotSeenIsNotShown(t *testing.T) {
	h := newHub(t)
	ctx := t.Context()
	h.post("a")
	h.post("a")
	yes, no := true, false
	shown := func() (listed bool, has bool) {
		t.Helper()
		page, err := h.Unread(ctx, "b", "", 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			listed = listed || row.Scope.ID == "c" && row.Presented.Counts
		}
		return listed, page.HasUnread
	}
	visible := func(v *bool) {
		t.Helper()
		op := facts.PutMembership{Scope: "c", Member: "b", Visible: v}
		if _, err := h.PutMembership(ctx, op); err != nil {
			t.Fatal(err)
		}
	}
	archived := func(v *bool) {
		t.Helper()
		if _, err := h.PutScope(ctx, facts.PutScope{ID: "c", Archived: v}); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]struct{ hide, show func() }{
		"visibility": {func() { visible(&no) }, func() { visible(&yes) }},
		"archive":    {func() { archived(&yes) }, func() { archived(&no) }},
	} {
		if listed, _ := shown(); !listed {
			t.Fatalf("%s: not shown before", name)
		}
		change.hide()
		if listed, has := shown(); listed || has {
			t.Errorf("%s: still shown: listed %t, dot %t", name, listed, has)
		}
		change.show()
		if n := h.unread("b"); n != 2 {
			t.Errorf("%s: back with %d, want 2", name, n)
		}
	}
	if _, err := h.Leave(ctx, facts.Leave{Scope: "c", Member: "b"}); err != nil {
		t.Fatal(err)
	}
	h.post("a")
	if listed, has := shown(); listed || has {
		t.Errorf("shown after leaving: listed %t, dot %t", listed, has)
	}
	h.channel("c", "b")
	h.post("a")
	if n := h.unread("b"); n != 1 {
		t.Errorf("unread %d after joining again, want what came since", n)
	}
}

// A restart knows nothing until somebody asks, and then reads pages: as many statements for a
// member with ten thousand unread messages as for one with three.
// covers: RT-324 RT-325 RT-341 RT-342 RT-343 RT-354 RT-355
func TestColdReadsArePages(t *testing.T) {
	h := newHub(t)
	h.post("a")
	cost := func() int {
		t.Helper()
		h.reopen()
		if s := h.engine.Stats(); s.Entries != 0 || s.Members != 0 {
			t.Fatalf("memory after a start: %+v", s)
		}
		h.sql.take()
		h.unread("b")
		return h.sql.count()
	}
	few := cost()
	batch := h.Batch()
	for i := range 10_000 {
		batch.Post(facts.Post{Scope: "c", OpID: fmt.Sprint("bulk-", i), Author: "a"})
	}
	if _, err := batch.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	many := cost()
	if n := h.unread("b"); n != 10_001 {
		t.Fatalf("unread %d", n)
	}
	if many != few {
		t.Errorf("a cold read took %d statements with 10,001 messages, %d with one", many, few)
	}
}

// An idle engine asks the store for nothing but expired messages.
// covers: RT-006 RT-092
func TestIdle(t *testing.T) {
	h := newHub(t)
	h.unread("b")
	h.sql.take()
	for range 10 {
		if err := h.engine.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range h.sql.take() {
		if strings.Contains(q, "erased = 1") {
			continue // a start looks once for erasures that a crash has broken off
		}
		if !strings.Contains(q, "expires_at") && !strings.HasPrefix(q, "BEGIN") &&
			!strings.HasPrefix(q, "COMMIT") && !strings.HasPrefix(q, "ROLLBACK") {
			t.Errorf("an idle sweep asks: %s", q)
		}
	}
}
