package tidemark_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// deltas takes what a watch has been told, by member.
func deltas(w *unread.Watch) map[readstate.MemberID][]unread.Delta {
	out := map[readstate.MemberID][]unread.Delta{}
	for batch := w.Next(100); batch != nil; batch = w.Next(100) {
		for _, d := range batch {
			out[d.Member] = append(out[d.Member], d)
		}
	}
	return out
}

func (h *hub) watch(members ...readstate.MemberID) *unread.Watch {
	h.t.Helper()
	w, err := h.Watch(members...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(w.Close)
	for _, m := range members {
		h.summary(m) // loads
	}
	deltas(w)
	return w
}

func (h *hub) summary(m readstate.MemberID) unread.Summary {
	h.t.Helper()
	s, err := h.Summary(h.t.Context(), m)
	if err != nil || !s.Complete {
		h.t.Fatalf("summary of %s: %+v, %v", m, s, err)
	}
	return s
}

func (h *hub) postIn(s readstate.ScopeID, op facts.Post) facts.Receipt {
	h.t.Helper()
	h.posts++
	op.Scope, op.OpID = s, fmt.Sprint("post-", h.posts)
	r, err := h.Post(h.t.Context(), op)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// However many messages a rewind takes back, those who are connected get one delta each, with
// the value that is right now.
//
// covers: RT-241
func TestARewindTellsEachOnce(t *testing.T) {
	h := newHub(t)
	kept := h.post("a")
	for range 5 {
		h.post("a", "b")
	}
	h.post("b")
	h.read("c", 3)
	h.channel("other", "e")
	w, device := h.watch("a", "b", "c", "d", "e"), h.watch("b")
	want := map[readstate.MemberID][2]uint64{"a": {1, 0}, "b": {6, 1}, "c": {4, 0}, "d": {7, 1}}
	for m, n := range want {
		if got := h.unread(m); got != n[0] {
			t.Fatalf("before: %s has %d, want %d", m, got, n[0])
		}
	}
	op := facts.Rewind{Scope: "c", OpID: "rw", Through: kept.Seq}
	if _, err := h.Rewind(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	told := deltas(w)
	for m, n := range want {
		got := told[m]
		if len(got) != 1 || got[0].Scope != "c" || got[0].Removed ||
			got[0].Row.Values.Unread != n[1] || got[0].Summary.HasUnread != (n[1] > 0) {
			t.Errorf("%s is told %+v, want one delta of %d", m, got, n[1])
		}
	}
	if got := told["e"]; len(got) > 0 {
		t.Errorf("somebody elsewhere is told %+v", got)
	}
	if got := deltas(device)["b"]; len(got) != 1 || got[0].Row.Values.Unread != 1 {
		t.Errorf("b's other device is told %+v", got)
	}
	if _, err := h.Rewind(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	if again := deltas(w); len(again) > 0 {
		t.Errorf("the same rewind tells %+v", again)
	}
}

// Two channels with the same history: one is rewound at once, of the other the same messages are
// removed one by one. Nobody can tell them apart, not after a restart either.
//
// covers: RT-243
func TestARewindIsTheSumOfItsRemovals(t *testing.T) {
	for seed := range uint64(12) {
		twins(t, seed)
	}
}

func twins(t *testing.T, seed uint64) {
	w := &pair{
		hub: newHub(t), rng: rand.New(rand.NewPCG(seed, 1)), seed: seed,
		ids: map[readstate.Seq]string{},
	}
	w.channel("x", pairMembers...)
	for round := range 3 {
		for range 6 + w.rng.IntN(6) {
			w.write()
			if w.head > 0 && w.rng.IntN(3) == 0 {
				w.disturb()
			}
		}
		w.same("before")
		w.takeBack(round, w.rng.IntN(len(w.seqs)))
		w.same("after")
		w.disturb()
		w.same("after what came then")
	}
	w.reopen()
	w.same("after a restart")
}

var pairMembers = []readstate.MemberID{"a", "b", "c", "d"}

// pair is a hub whose channels c and x have the same history.
type pair struct {
	*hub
	rng  *rand.Rand
	seed uint64
	head readstate.Revision
	seqs []readstate.Seq          // of what is there
	ids  map[readstate.Seq]string // in x
}

func (w *pair) both(what string, run func(readstate.ScopeID) error) {
	w.t.Helper()
	for _, s := range []readstate.ScopeID{"c", "x"} {
		if err := run(s); err != nil {
			w.t.Fatalf("seed %d: %s in %s: %v", w.seed, what, s, err)
		}
	}
}

func (w *pair) write() {
	readable := w.rng.IntN(6) > 0
	op := facts.Post{
		Author: pairMembers[w.rng.IntN(4)], Everyone: w.rng.IntN(5) == 0, Readable: &readable,
	}
	if w.rng.IntN(4) == 0 {
		op.Principal = pairMembers[w.rng.IntN(4)]
	}
	for _, m := range pairMembers {
		if w.rng.IntN(4) == 0 {
			op.Mentions = append(op.Mentions, m)
		}
	}
	w.postIn("c", op)
	r := w.postIn("x", op)
	w.seqs, w.ids[r.Seq], w.head = append(w.seqs, r.Seq), r.MessageID, max(w.head, r.Revision)
}

// disturb reads, marks or sets a level, in both channels.
func (w *pair) disturb() {
	ctx, m := w.t.Context(), pairMembers[w.rng.IntN(4)]
	at := readstate.Revision(w.rng.Uint64N(uint64(w.head) + 1))
	level := []readstate.Level{readstate.LevelAll, readstate.LevelMentions}[w.rng.IntN(2)]
	switch w.rng.IntN(4) {
	case 0, 1:
		w.both("read", func(s readstate.ScopeID) error {
			_, err := w.MarkRead(ctx, facts.MarkRead{Scope: s, Member: m, Revision: &at})
			return err
		})
	case 2:
		w.both("mark", func(s readstate.ScopeID) error {
			op := facts.MarkUnread{Scope: s, Member: m, From: max(at, 1), Trusted: true}
			_, err := w.MarkUnread(ctx, op)
			return err
		})
	default:
		w.both("level", func(s readstate.ScopeID) error {
			_, err := w.PutMembership(ctx, facts.PutMembership{Scope: s, Member: m, Level: &level})
			return err
		})
	}
}

// takeBack leaves the first messages: c is rewound, x loses one message after the other.
func (w *pair) takeBack(round, keep int) {
	w.t.Helper()
	ctx, through := w.t.Context(), readstate.Seq(0)
	if keep > 0 {
		through = w.seqs[keep-1]
	}
	op := facts.Rewind{Scope: "c", OpID: fmt.Sprint("rw-", round), Through: through}
	if _, err := w.Rewind(ctx, op); err != nil {
		w.t.Fatal(err)
	}
	for _, at := range slices.Backward(w.seqs[keep:]) {
		op := facts.Remove{Scope: "x", Message: w.ids[at], OpID: fmt.Sprint("rm-", at)}
		if _, err := w.Remove(ctx, op); err != nil {
			w.t.Fatal(err)
		}
	}
	w.seqs = w.seqs[:keep]
}

func (w *pair) same(when string) {
	w.t.Helper()
	for _, m := range pairMembers {
		a, errA := w.Row(w.t.Context(), m, "c")
		b, errB := w.Row(w.t.Context(), m, "x")
		if errA != nil || errB != nil {
			w.t.Fatalf("seed %d, %s: %v, %v", w.seed, when, errA, errB)
		}
		if a.Values != b.Values || a.Presented != b.Presented || a.Row.Read != b.Row.Read ||
			a.Ranks.Head != b.Ranks.Head {
			w.t.Errorf("seed %d, %s: %s has %+v %+v rewound, %+v %+v removed", w.seed, when, m,
				a.Values, a.Presented, b.Values, b.Presented)
		}
	}
}

// Archiving and hiding take out of the badge what was in it, and give back what is there by then,
// from memory: no row is read again.
//
// covers: RT-248
func TestWhatIsHiddenLeavesTheBadgeExactly(t *testing.T) {
	h := newHub(t)
	ctx := t.Context()
	h.channel("x", "a", "b", "d")
	for range 3 {
		h.post("a", "b")
	}
	for range 2 {
		h.postIn("x", facts.Post{Author: "a"})
	}
	w := h.watch("b", "d")
	pages := h.engine.Stats().Pages
	yes, no := true, false
	archive := func(v *bool) {
		t.Helper()
		if _, err := h.PutScope(ctx, facts.PutScope{ID: "c", Archived: v}); err != nil {
			t.Fatal(err)
		}
	}
	hide := func(v *bool) {
		t.Helper()
		op := facts.PutMembership{Scope: "x", Member: "b", Visible: v}
		if _, err := h.PutMembership(ctx, op); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []struct {
		name string
		run  func()
		b, d readstate.Badge
	}{
		{"before", func() {}, readstate.Badge{Messages: 5, Conversations: 2, Attention: 3},
			readstate.Badge{Messages: 5, Conversations: 2}},
		{"archived", func() { archive(&yes) }, readstate.Badge{Messages: 2, Conversations: 1},
			readstate.Badge{Messages: 2, Conversations: 1}},
		{"hidden from b", func() { hide(&no) }, readstate.Badge{}, readstate.Badge{Messages: 2, Conversations: 1}},
		{"more written", func() { h.post("a"); h.postIn("x", facts.Post{Author: "a"}) }, readstate.Badge{},
			readstate.Badge{Messages: 3, Conversations: 1}},
		{"restored", func() { archive(&no) }, readstate.Badge{Messages: 4, Conversations: 1, Attention: 3},
			readstate.Badge{Messages: 7, Conversations: 2}},
		{"shown to b", func() { hide(&yes) }, readstate.Badge{Messages: 7, Conversations: 2, Attention: 3},
			readstate.Badge{Messages: 7, Conversations: 2}},
	} {
		s.run()
		for m, want := range map[readstate.MemberID]readstate.Badge{"b": s.b, "d": s.d} {
			got := h.summary(m)
			if got.Badge != want || got.HasUnread != (want.Conversations > 0) || got.State != unread.Ready {
				t.Errorf("%s: the badge of %s is %+v, want %+v", s.name, m, got, want)
			}
		}
		for m, list := range deltas(w) {
			if last := list[len(list)-1]; last.Summary.Badge != h.summary(m).Badge {
				t.Errorf("%s: %s is told a badge of %+v", s.name, m, last.Summary.Badge)
			}
		}
	}
	if got := h.engine.Stats().Pages; got != pages {
		t.Errorf("%d pages were read", got-pages)
	}
}

// Reading k scopes at once is work for k scopes, in the store and in memory, however many the
// member has.
//
// covers: RT-145
func TestReadingSomeScopesCostsThoseScopes(t *testing.T) {
	const read = 3
	counted := map[int]int{}
	for _, scopes := range []int{5, 60} {
		h := newHub(t)
		var batch []readstate.ScopeID
		for i := range scopes {
			id := readstate.ScopeID(fmt.Sprint("s", i))
			h.channel(id, "a", "b")
			h.postIn(id, facts.Post{Author: "a"})
			batch = append(batch, id)
		}
		w := h.watch("b")
		checks := h.engine.Stats().CandidateChecks
		h.sql.take()
		b, to := h.Batch(), readstate.Revision(1)
		for _, id := range batch[:read] {
			b.MarkRead(facts.MarkRead{Scope: id, Member: "b", Revision: &to})
		}
		answers, err := b.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			if a.Err != nil || a.Read.Row.Read != 1 {
				t.Errorf("answered %+v", a)
			}
		}
		counted[scopes] = h.sql.count()
		if n := h.engine.Stats().CandidateChecks - checks; n > 0 {
			t.Errorf("%d rows were looked at", n)
		}
		if told := deltas(w)["b"]; len(told) != read {
			t.Errorf("%d scopes changed, want %d", len(told), read)
		}
		if got := h.summary("b").Badge.Conversations; got != uint64(scopes-read) {
			t.Errorf("%d scopes are left, want %d", got, scopes-read)
		}
	}
	if counted[5] != counted[60] {
		t.Errorf("statements by scopes of the member: %v", counted)
	}
}

// Every row that says what counts for whom has a number that only rises, of its own or of the
// row that owns it; no row is ordered by a time, and no table was added to count in.
//
// covers: RT-098
func TestOwningRowsHaveGenerations(t *testing.T) {
	h := newHub(t)
	if err := h.engine.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", h.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT m.name, c.name, c.type, c."notnull"
		FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns := map[string]map[string]string{}
	for rows.Next() {
		var table, column, kind string
		var filled bool
		if err := rows.Scan(&table, &column, &kind, &filled); err != nil {
			t.Fatal(err)
		}
		if columns[table] == nil {
			columns[table] = map[string]string{}
		}
		columns[table][column] = fmt.Sprint(kind, " ", filled)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for table, generations := range map[string][]string{
		"workspaces":                  {"term", "lsn"},
		"members":                     {"member_lsn"}, // also of the member's blocks
		"scopes":                      {"latest_seq", "latest_activity_seq", "roster_generation", "last_lsn"},
		"scope_messages":              {"seq"},
		"scope_activity_events":       {"seq"},
		"scope_memberships":           {"membership_lsn"},
		"scope_notification_settings": {"notification_lsn"},
		"conversation_member_states":  {"manual_unread_version", "state_lsn"},
	} {
		for _, g := range generations {
			if got := columns[table][g]; got != "INTEGER true" {
				t.Errorf("%s.%s is %q", table, g, got)
			}
		}
		if _, timed := columns[table]["updated_at"]; timed {
			t.Errorf("%s has a time that could be taken for its order", table)
		}
	}
	for table, list := range columns {
		for column := range list {
			if table != "member_scope_unread_runtime_snapshots" &&
				(strings.Contains(column, "unread_count") || strings.Contains(table, "unread")) {
				t.Errorf("%s.%s looks like a stored count", table, column)
			}
		}
	}
}
