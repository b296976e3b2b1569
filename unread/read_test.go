package unread

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

func scopesOf(rows []Row) []string {
	var ids []string
	for _, row := range rows {
		ids = append(ids, string(row.Scope.ID))
	}
	return ids
}

// covers: RT-365
func TestBootstrapOrder(t *testing.T) {
	d := newDesk(t, Config{}, "create s1 channel", "create s2 channel", "create s3 channel",
		"create s4 channel", "create s5 channel", "create s6 channel")
	for s := 1; s <= 6; s++ {
		d.do(fmt.Sprintf("join s%d A", s), fmt.Sprintf("join s%d B", s))
	}
	// Unread, oldest first: s3, s1. Read: s5, s2. Archived with something new: s4. Left: s6.
	d.do("post s3 A", "post s2 B", "post s1 A", "post s5 B", "post s4 A", "archive s4",
		"post s6 A", "leave s6 B")
	d.load("B")
	page, err := d.r.Rows(cold(), testSpace, "B", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"s1", "s3", "s4", "s5", "s2"}
	if got := scopesOf(page.Rows); !slices.Equal(got, want) {
		t.Errorf("rows come as %v, want %v", got, want)
	}
	if page.Next != "" || page.Summary != d.summary("B") || !page.Complete || !page.HasUnread {
		t.Errorf("page is %+v", page.Summary)
	}
	for _, row := range page.Rows {
		if row.Archived != (row.Scope.ID == "s4") || row.State != Ready || row.LSN != d.facts.lsn {
			t.Errorf("row %+v", row)
		}
	}
	if _, err := d.r.Rows(cold(), testSpace, "B", "s.1", 10); !errors.Is(err, ErrCursor) {
		t.Errorf("a cursor that is none: %v", err)
	}
	if _, err := d.r.Rows(cold(), testSpace, "B", "x.1.1.1", 10); !errors.Is(err, ErrCursor) {
		t.Errorf("a cursor that is none: %v", err)
	}
}

// Whatever happens between pages, every row comes at least once, and the last time it comes it
// is as it is.
func TestBootstrapWhileThingsHappen(t *testing.T) {
	d := newDesk(t, Config{})
	for s := 1; s <= 9; s++ {
		d.do(fmt.Sprintf("create s%d channel", s), fmt.Sprintf("join s%d A", s),
			fmt.Sprintf("join s%d B", s))
	}
	d.do("post s1 A", "post s2 A", "post s3 A", "post s4 A")
	d.load("B")
	between := []string{"post s9 A", "read s1 B 1 v=0", "post s4 A"}
	seen := map[string]Row{}
	cursor := ""
	for pages := 0; ; pages++ {
		page, err := d.r.Rows(cold(), testSpace, "B", cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		if pages > 20 {
			t.Fatal("paging does not end")
		}
		for _, row := range page.Rows {
			seen[string(row.Scope.ID)] = row
		}
		if cursor = page.Next; cursor == "" {
			break
		}
		if len(between) > 0 {
			d.do(between[0])
			between = between[1:]
		}
	}
	if len(seen) != 9 {
		t.Errorf("only %v came", slices.Sorted(maps.Keys(seen)))
	}
	for id, row := range seen {
		now := d.row("B", readstate.ScopeID(id))
		if row.Values != now.Values || row.Presented != now.Presented {
			t.Errorf("%s came as %+v and is %+v", id, row.Values, now.Values)
		}
	}
}

func TestTotalsAreTheBadge(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "create s2 dm", "join s2 A", "join s2 B",
		"post s1 A", "create s3 thread s1 root=1", "post s3 B", "post s3 A", "post s3 A",
		"post s1 A @B", "post s2 A", "create s4 channel", "join s4 A", "join s4 B",
		"post s4 A", "level s4 B none")...)
	d.load("B")
	sum := d.summary("B")
	if sum.Badge != (readstate.Badge{Messages: 5, Conversations: 3, Attention: 2}) {
		t.Errorf("badge %+v", sum.Badge)
	}
	want := map[Group]map[string]readstate.Badge{
		ByType: {
			"channel": {Messages: 2, Conversations: 1, Attention: 1},
			"thread":  {Messages: 2, Conversations: 1},
			"dm":      {Messages: 1, Conversations: 1, Attention: 1},
		},
		ByParent: {
			"s1": {Messages: 4, Conversations: 2, Attention: 1},
			"s2": {Messages: 1, Conversations: 1, Attention: 1},
		},
		ByTag: {
			"even": {Messages: 4, Conversations: 2, Attention: 1},
			"odd":  {Messages: 1, Conversations: 1, Attention: 1},
		},
	}
	for group, totals := range want {
		got, err := d.r.Totals(cold(), testSpace, "B", group)
		if err != nil || !maps.Equal(got, totals) {
			t.Errorf("by %s: %+v, %v, want %+v", group, got, err, totals)
		}
		if parsed, err := ParseGroup(string(group)); err != nil || parsed != group {
			t.Errorf("parsing %s gives %s, %v", group, parsed, err)
		}
	}
	if _, err := ParseGroup("colour"); err == nil {
		t.Error("colour is a group")
	}
}

func TestExplain(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 B", "post s1 A", "read s1 B 2 v=0",
		"post s1 B", "post s1 A @B", "post s1 A", "post s1 C", "post s1 A everyone", "remove s1 5",
		"post s1 C @B", "block B C")...)
	d.load("B")
	x, err := d.r.Explain(cold(), testSpace, "B", "s1")
	if err != nil {
		t.Fatal(err)
	}
	if x.E != 2 || x.Base != 2 || x.Head != 8 || x.Removed != 1 || x.Own != 1 || x.Blocked != 2 ||
		x.Everyone != 1 || x.Direct != 2 || x.MemberKey != 2 ||
		!slices.Equal(x.BlockedBy, keys(3)) {
		t.Errorf("explained as %+v", x)
	}
	if want := uint64(x.Head-x.Base) - x.Removed - x.Own - x.Blocked; x.Row.Values.Unread != want {
		t.Errorf("the terms give %d, the row says %d", want, x.Row.Values.Unread)
	}
	if _, err := d.r.Explain(cold(), testSpace, "B", "s9"); !errors.Is(err, ErrNoRow) {
		t.Errorf("an unknown scope: %v", err)
	}
}

func TestChanged(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "create s2 channel", "join s2 A", "join s2 B",
		"create s3 channel", "join s3 A", "join s3 B", "post s1 A",
		"create s4 thread s1 root=1", "post s4 B")...)
	d.load("B")
	changed := func(since readstate.LSN) ([]string, bool) {
		t.Helper()
		c, err := d.r.Changed(cold(), testSpace, "B", since)
		if err != nil || c.LSN != d.facts.lsn {
			t.Fatalf("%+v, %v", c, err)
		}
		var words []string
		for _, x := range c.Deltas {
			word := string(x.Scope)
			if x.Removed {
				word += " removed"
			}
			words = append(words, word)
		}
		return sorted(words), c.Whole
	}
	at := d.facts.lsn
	if got, whole := changed(at); got != nil || whole {
		t.Errorf("at once: %v, %t", got, whole)
	}
	steps := []struct {
		line string
		want []string
	}{
		{"post s2 A", []string{"s2"}},
		{"read s1 B 1 v=0", []string{"s1", "s4"}}, // the parent's row decides about its threads
		{"archive s1", []string{"s1", "s4"}},
		{"hide s3 B", []string{"s3 removed"}},
		{"post s4 A", []string{"s4"}},
		{"leave s1 B", []string{"s1 removed", "s4 removed"}},
		{"post s3 A", nil},
	}
	for _, s := range steps {
		at := d.facts.lsn
		d.do(s.line)
		if got, whole := changed(at); !slices.Equal(got, s.want) || whole {
			t.Errorf("after %q: %v, %t, want %v", s.line, got, whole, s.want)
		}
		if got, _ := changed(d.facts.lsn); got != nil {
			t.Errorf("after %q, up to date: %v", s.line, got)
		}
	}
	d.do("level s2 B none until=60")
	if got, _ := changed(d.facts.lsn); !slices.Equal(got, []string{"s2"}) {
		t.Errorf("a row whose level will end: %v", got)
	}
	d.do("join s1 B", "post s4 A @B", "level s1 B mentions until=60")
	if got, _ := changed(d.facts.lsn); !slices.Equal(got, []string{"s1", "s2", "s4"}) {
		t.Errorf("rows whose level will end, and what inherits it: %v", got)
	}
	if _, whole := changed(d.facts.lsn + 1); !whole {
		t.Error("a position of the future is resumed")
	}
	at = d.facts.lsn
	d.do("block B A")
	d.load("B")
	if _, whole := changed(at); !whole {
		t.Error("a block is told in pieces")
	}
	if _, whole := changed(d.facts.lsn); whole {
		t.Error("whole although nothing changed")
	}
}

// Rows of scopes that were left are in no page: after a restart the page says when the last one
// was left, and only a snapshot will do before that.
func TestChangedAfterARestart(t *testing.T) {
	d := newDesk(t, Config{HydratePageSize: 1}, append(room, "create s2 channel", "join s2 B",
		"create s3 channel", "join s3 B")...)
	d.load("B")
	before := d.facts.lsn
	d.do("leave s1 B")
	left := d.facts.lsn
	d.do("post s2 B")
	d.r.Forget(testSpace, "B")
	d.load("B")
	for since, whole := range map[readstate.LSN]bool{before: true, left: false} {
		c, err := d.r.Changed(cold(), testSpace, "B", since)
		if err != nil || c.Whole != whole {
			t.Errorf("since %d: %+v, %v, want whole: %t", since, c, err, whole)
		}
	}
}

// The dot is answered by the first candidate however many scopes are loaded, and a second read
// finds nothing to check where all is read.
//
// covers: RT-052, RT-371
func TestDotCostsTheSame(t *testing.T) {
	cost := func(scopes int) (unread, clean uint64) {
		d := newDesk(t, Config{HydratePageSize: 10_000})
		for s := 1; s <= scopes; s++ {
			d.do(fmt.Sprintf("create s%d channel", s), fmt.Sprintf("join s%d A", s),
				fmt.Sprintf("join s%d B", s))
		}
		d.load("B")
		d.dot("B")
		before := d.r.Stats().CandidateChecks
		d.dot("B")
		clean = d.r.Stats().CandidateChecks - before
		for s := 1; s <= scopes; s++ {
			d.do(fmt.Sprintf("post s%d A", s))
		}
		d.dot("B")
		before = d.r.Stats().CandidateChecks
		d.dot("B")
		return d.r.Stats().CandidateChecks - before, clean
	}
	for _, scopes := range []int{1, 10, 100} {
		if unread, clean := cost(scopes); unread != 1 || clean != 0 {
			t.Errorf("%d scopes: %d checks with all unread, %d with nothing", scopes, unread, clean)
		}
	}
}

// covers: RT-034
func TestWorkspacesShareNoLock(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.load("B")
	d.r.Open("other", 0)
	other, err := d.r.workspace("other")
	if err != nil {
		t.Fatal(err)
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	w := d.watch("C")
	d.do("post s1 A")
	if !d.dot("B") || d.unread("B", "s1") != 1 || len(d.told(w)) != 1 {
		t.Error("wrong while another workspace is locked")
	}
}

// A message in a scope with many rows that wait fires none of them at once; whoever reads is
// exact nevertheless, and the rest is worked off in steps.
//
// covers: RT-405, RT-406, RT-412
func TestBigFire(t *testing.T) {
	d := newDesk(t, Config{MaxFirePerTick: 2}, "create s1 channel", "join s1 A", "join s1 B",
		"join s1 C", "join s1 D", "join s1 E", "create s2 channel", "join s2 B")
	members := []readstate.MemberID{"A", "B", "C", "D", "E"}
	d.load(members...)
	for _, m := range members {
		d.dot(m) // finds nothing and puts the rows to wait
	}
	d.do("post s1 A")
	ws := d.space()
	if s := d.r.Stats(); s.PendingBatches != 1 {
		t.Fatalf("%d pending batches", s.PendingBatches)
	}
	if !d.dot("B") || d.summary("C").Badge.Messages != 1 || d.dot("A") {
		t.Error("a read is not exact while a batch is pending")
	}
	d.do("post s1 B", "read s1 C 2 v=0") // a second fire meets rows that wait for the first
	steps := 0
	for ; ws.st.pending(); steps++ {
		d.r.step(ws)
	}
	if steps == 0 || d.r.Stats().PendingBatches != 0 {
		t.Errorf("%d steps, %d batches left", steps, d.r.Stats().PendingBatches)
	}
	d.agree()
}

// Writing makes nobody's own row a candidate.
func TestOwnMessagesFireNothing(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.load("A")
	d.dot("A")
	before := d.r.Stats().CandidateChecks
	d.do("post s1 A", "post s1 B as=A")
	if d.dot("A") || d.r.Stats().CandidateChecks != before {
		t.Errorf("%d checks", d.r.Stats().CandidateChecks-before)
	}
}

// covers: RT-053, RT-336
func TestRowsOfVisibleScopes(t *testing.T) {
	d := newDesk(t, Config{HydratePageSize: 1000})
	for s := 1; s <= 50; s++ {
		d.do(fmt.Sprintf("create s%d channel", s), fmt.Sprintf("join s%d A", s),
			fmt.Sprintf("join s%d B", s), fmt.Sprintf("post s%d A", s))
	}
	d.load("B")
	before := d.r.Stats()
	for _, s := range []readstate.ScopeID{"s3", "s7", "s49"} {
		if got := d.unread("B", s); got != 1 {
			t.Errorf("%d unread in %s", got, s)
		}
	}
	after := d.r.Stats()
	if after.CandidateChecks != before.CandidateChecks || after.Pages != before.Pages {
		t.Errorf("three rows cost %d checks and %d pages",
			after.CandidateChecks-before.CandidateChecks, after.Pages-before.Pages)
	}
}

// covers: RT-317
func TestStates(t *testing.T) {
	for state, servable := range map[State]bool{
		Ready: true, SnapshotServing: true, Hydrating: false, Stale: false, Unavailable: false,
	} {
		if state.Servable() != servable {
			t.Errorf("%s is servable: %t", state, !servable)
		}
	}
}
