package unread

import (
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// covers: RT-455, RT-072, RT-115, RT-118, RT-103, RT-460, RT-035, RT-062
func TestMessageCounts(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.load("A", "B", "C")
	d.do("post s1 A")
	for m, want := range map[readstate.MemberID]uint64{"A": 0, "B": 1, "C": 1} {
		if got := d.unread(m, "s1"); got != want {
			t.Errorf("%s has %d unread, want %d", m, got, want)
		}
		if d.dot(m) != (want > 0) {
			t.Errorf("dot of %s is %t", m, d.dot(m))
		}
	}
	d.do("post s1 A", "post s1 B as=C")
	for m, want := range map[readstate.MemberID]uint64{"A": 1, "B": 2, "C": 2} {
		if got := d.unread(m, "s1"); got != want {
			t.Errorf("%s has %d unread, want %d: author and principal are neutral", m, got, want)
		}
	}
	d.agree()
}

// covers: RT-100, RT-101, RT-102
func TestApplyTwice(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.load("A", "B", "C")
	lines := []string{
		"post s1 A @B", "edit s1 1 @C", "post s1 B everyone", "remove s1 2", "activity s1 A",
		"read s1 B 1 service", "unread s1 C v=0", "level s1 C mentions", "block C A",
		"archive s1", "unarchive s1", "leave s1 B", "join s1 B", "trim s1 1",
	}
	for _, line := range lines {
		before := d.facts.lsn
		d.do(line)
		d.pump()
		d.load("A", "B", "C")
		d.agree()
		for range 10 {
			if err := d.r.Apply(testSpace, d.facts.lsn, d.facts.events); err != nil {
				t.Fatal(err)
			}
		}
		d.agree()
		if d.facts.lsn == before {
			t.Errorf("%q changed nothing", line)
		}
	}
	// An older commit leaves a newer state alone.
	row := d.row("C", "s1")
	older := []readstate.Event{readstate.ScopeEvent{Info: readstate.ScopeInfo{
		Key: scopeKey(1), ID: "s1", Type: readstate.Channel, Archived: true,
	}}}
	if err := d.r.Apply(testSpace, d.facts.lsn-1, older); err != nil {
		t.Fatal(err)
	}
	if now := d.row("C", "s1"); now.Archived || now.LSN != row.LSN {
		t.Errorf("an older commit changed %+v to %+v", row, now)
	}
	if n := d.r.Stats().RepeatedCommits; n != uint64(10*len(lines)+1) {
		t.Errorf("%d repeated commits counted", n)
	}
}

// covers: RT-461, RT-076, RT-078, RT-140, RT-138, RT-143
func TestReadAndManualUnread(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.load("B")
	d.do("post s1 A", "post s1 A", "post s1 A")
	d.do("read s1 B 1 v=0")
	if got := d.unread("B", "s1"); got != 2 {
		t.Errorf("after a partial read %d unread, want 2", got)
	}
	d.do("read s1 B 3 v=0")
	if d.unread("B", "s1") != 0 || d.dot("B") {
		t.Error("still unread after a read to the head")
	}
	d.do("unread s1 B v=0")
	if row := d.row("B", "s1"); row.Values.Unread != 0 || !row.Presented.Shown || !d.dot("B") {
		t.Errorf("a manual mark does not show: %+v", row.Presented)
	}
	d.do("unread s1 B from=2 v=1")
	if got := d.unread("B", "s1"); got != 2 {
		t.Errorf("from revision 2 on there are %d unread, want 2", got)
	}
	d.do("read s1 B 2 v=2")
	if row := d.row("B", "s1"); row.Row.Manual.Set || row.Values.Unread != 0 {
		t.Errorf("a read naming the version leaves %+v", row)
	}
	d.agree()
}

// covers: RT-462, RT-117, RT-045
func TestLevels(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "level s1 B none", "level s1 C mentions")...)
	d.load("B", "C")
	d.do("post s1 A")
	if d.dot("B") || d.dot("C") {
		t.Error("a plain message shows at level none or mentions")
	}
	d.do("post s1 A @B,C")
	if d.dot("B") || !d.dot("C") {
		t.Error("a mention shows at level mentions alone")
	}
	if row := d.row("C", "s1"); row.Presented.Unread != 1 || row.Values.Unread != 2 ||
		row.Level != readstate.LevelMentions {
		t.Errorf("level mentions shows %+v of %+v", row.Presented, row)
	}
	if row := d.row("B", "s1"); row.Presented.Shown || row.Presented.Unread != 0 ||
		row.Level != readstate.LevelNone || d.summary("B").Badge != (readstate.Badge{}) {
		t.Errorf("level none shows %+v and a badge of %+v", row, d.summary("B").Badge)
	}
	d.do("read s1 C 2 v=0", "post s1 A", "post s1 A")
	if d.dot("C") {
		t.Error("plain messages show at level mentions")
	}
	d.do("edit s1 4 everyone")
	if !d.dot("C") {
		t.Error("an edit that mentions everyone does not show at level mentions")
	}
	d.do("level s1 B all")
	if !d.dot("B") {
		t.Error("what piled up does not show once the level is all again")
	}
	d.agree()
}

// Levels that end one after the other, for a reader whose clock once goes back.
func TestLevelsEnd(t *testing.T) {
	var now int64
	d := newDesk(t, Config{Now: func() int64 { return now }}, append(room,
		"create s2 channel", "join s2 A", "join s2 B", "level s1 B none until=10",
		"level s2 B none until=20", "post s1 A", "post s2 A")...)
	d.load("B")
	for _, s := range []struct {
		now   int64
		shown uint64
	}{{9_999, 0}, {10_000, 1}, {9_000, 1}, {19_999, 1}, {20_000, 2}, {10_000, 2}} {
		now = s.now
		if got := d.summary("B").Badge.Conversations; got != s.shown || d.dot("B") != (s.shown > 0) {
			t.Errorf("at %d %d are shown, want %d", s.now, got, s.shown)
		}
	}
}

// covers: RT-155, RT-044
func TestDotIsTheOr(t *testing.T) {
	for bits := range 8 {
		d := newDesk(t, Config{}, append(room, "post s1 B", "read s1 B 1 v=0")...)
		d.load("B")
		message, activity, manual := bits&1 != 0, bits&2 != 0, bits&4 != 0
		if message {
			d.do("post s1 A")
		}
		if activity {
			d.do("activity s1 A")
		}
		if manual {
			d.do("unread s1 B v=0")
		}
		if got, want := d.dot("B"), message || activity || manual; got != want {
			t.Errorf("message %t, activity %t, manual %t: dot %t", message, activity, manual, got)
		}
		d.agree()
	}
}

// covers: RT-456, RT-156, RT-157, RT-074, RT-158, RT-077
func TestActivity(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.load("A", "B")
	d.do("activity s1 A low")
	if d.dot("B") {
		t.Error("a low-signal activity shows")
	}
	d.do("activity s1 A")
	if row := d.row("B", "s1"); row.Values.Activity != 1 || row.Values.Unread != 0 || !d.dot("B") {
		t.Errorf("one activity makes %+v", row.Values)
	}
	if d.dot("A") {
		t.Error("an activity shows to its actor")
	}
	d.do("actread s1 B 2")
	if d.dot("B") {
		t.Error("an activity shows after it was read")
	}
	d.agree()
}

// covers: RT-459, RT-160, RT-161, RT-163, RT-172, RT-073
func TestTasksCountForRecipients(t *testing.T) {
	d := newDesk(t, Config{},
		"create s1 task", "join s1 A", "join s1 B", "join s1 C", "join s1 D")
	d.load("A", "B", "C", "D")
	d.do("post s1 A to=B,C", "activity s1 A to=A,B")
	for m, want := range map[readstate.MemberID]readstate.Values{
		"A": {}, "B": {Unread: 1, Activity: 1}, "C": {Unread: 1}, "D": {},
	} {
		if got := d.row(m, "s1").Values; got != want {
			t.Errorf("%s has %+v, want %+v", m, got, want)
		}
	}
	d.do("actread s1 B 1", "activity s1 A to=B")
	if got := d.row("B", "s1").Values.Activity; got != 1 {
		t.Errorf("%d activities after the cursor, want 1", got)
	}
	d.do("leave s1 B")
	if d.dot("B") {
		t.Error("a task shows to a recipient who left")
	}
	d.agree()
}

// covers: RT-081, RT-117
func TestMembershipFiltersAtRead(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.load("B")
	d.do("post s1 A")
	steps := []struct {
		line  string
		shown bool
		row   bool
	}{
		{"hide s1 B", false, false}, {"show s1 B", true, true},
		{"archive s1", false, true}, {"unarchive s1", true, true},
		{"leave s1 B", false, false}, {"join s1 B", false, true},
		{"post s1 A", true, true},
	}
	for _, s := range steps {
		d.do(s.line)
		if got := d.dot("B"); got != s.shown {
			t.Errorf("after %q the dot is %t", s.line, got)
		}
		_, err := d.r.Row(cold(), testSpace, "B", "s1")
		if s.row != (err == nil) || (err != nil && !errors.Is(err, ErrNoRow)) {
			t.Errorf("after %q the row answers %v", s.line, err)
		}
		if got, known := d.r.Visible(testSpace, "B", "s1"); got != s.row || !known {
			t.Errorf("after %q visible is %t, known %t", s.line, got, known)
		}
	}
	d.agree()
}

// covers: RT-054
func TestEventsStayInTheirScope(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "create s2 channel", "join s2 A", "join s2 B")...)
	d.load("A", "B")
	d.do("read s1 B 0 v=0") // nothing
	d.dot("B")
	st := d.space().st
	b := st.memberNamed("B")
	other := st.rows.load(st.entryOf(b, st.scopeNamed("s2")))
	d.do("post s1 A @B everyone", "activity s1 A", "remove s1 1")
	if now := st.rows.load(st.entryOf(b, st.scopeNamed("s2"))); now != other {
		t.Errorf("events of s1 made %+v of the row in s2, which was %+v", now, other)
	}
}

// A gap in the order of commits empties the memory; what follows is exact again.
//
// covers: RT-088, RT-340, RT-475
func TestGap(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.load("B")
	w := d.watch("B")
	d.facts.play(parse(t, "post s1 A"))
	d.do("post s1 A")
	if s := d.r.Stats(); s.Gaps != 1 || s.Members != 0 || s.Hydrating != 0 {
		t.Errorf("after a gap: %+v", s)
	}
	d.withheld("B", "s1")
	select {
	case <-w.Lost():
	default:
		t.Error("the watch does not know")
	}
	if _, state := d.r.HasUnread(testSpace, "B"); state != Hydrating {
		t.Errorf("state is %s", state)
	}
	d.pump()
	if got := d.unread("B", "s1"); got != 2 {
		t.Errorf("%d unread after reading again, want 2", got)
	}
	// Also when what was missed changes no number of the member's.
	d.facts.play(parse(t, "post s1 B"))
	d.do("read s1 C 1 v=0")
	d.withheld("B", "s1")
	d.pump()
	if got := d.unread("B", "s1"); got != 2 {
		t.Errorf("%d unread after reading again, want 2 as before", got)
	}
	d.agree()
}

// withheld demands that no read has a value for a member, and that the source is asked for
// nothing but the member's next page.
func (d *desk) withheld(m readstate.MemberID, s readstate.ScopeID) {
	d.t.Helper()
	row, err := d.r.Row(cold(), testSpace, m, s)
	if !errors.Is(err, ErrNotServable) || row.State != Hydrating || row.Values != (readstate.Values{}) {
		d.t.Errorf("a row answers %+v, %v", row, err)
	}
	page, err := d.r.Rows(cold(), testSpace, m, "", 10)
	if !errors.Is(err, ErrNotServable) || page.State.Servable() || len(page.Rows) > 0 || page.HasUnread {
		d.t.Errorf("a page answers %+v, %v", page, err)
	}
	sum, err := d.r.Summary(cold(), testSpace, m)
	if !errors.Is(err, ErrNotServable) || sum != (Summary{State: Hydrating}) {
		d.t.Errorf("a summary answers %+v, %v", sum, err)
	}
	if dot, state := d.r.HasUnread(testSpace, m); dot || state != Hydrating {
		d.t.Errorf("the dot is %t, %s", dot, state)
	}
	if n := len(d.r.queue.jobs); n != 1 || d.r.queue.jobs[0].member != m {
		d.t.Errorf("%d members are to be read", n)
	}
}

// Events that contradict memory are never clamped: the memory goes and is read again.
func TestInvariantAlarm(t *testing.T) {
	bad := map[string]readstate.Event{
		"a revision is skipped": readstate.MessageEvent{
			Scope: scopeKey(1), Seq: 9, Revision: 9, Author: 1, AuthorRank: 9,
		},
		"a mention is taken that was never there": readstate.EditEvent{
			Scope: scopeKey(1), Seq: 1, Revision: 1, Author: 1, NamedBefore: keys(2),
		},
		"everyone is taken back twice": readstate.RemovalEvent{
			Scope: scopeKey(1), Seq: 1, Revision: 1, Author: 1, Everyone: true,
		},
	}
	for name, ev := range bad {
		d := newDesk(t, Config{}, append(room, "post s1 A")...)
		d.load("B")
		err := d.r.Apply(testSpace, d.facts.lsn+1, []readstate.Event{ev})
		if !errors.Is(err, ErrInvariant) {
			t.Errorf("%s: Apply answers %v", name, err)
		}
		if s := d.r.Stats(); s.Alarms != 1 || s.Members != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		if _, err := d.r.Row(cold(), testSpace, "B", "s1"); !errors.Is(err, ErrNotServable) {
			t.Errorf("%s: a read answers %v", name, err)
		}
	}
	// A count that falls below zero is found when it is read.
	d := newDesk(t, Config{}, append(room, "post s1 A")...)
	d.load("B")
	st := d.space().st
	e := st.entryOf(st.memberNamed("B"), st.scopeNamed("s1"))
	f := st.rows.load(e)
	f.row.Point.OwnRemoved = 7
	st.rows.store(e, &f)
	row, err := d.r.Row(cold(), testSpace, "B", "s1")
	if !errors.Is(err, ErrInvariant) || row.State.Servable() || row.Values.Unread != 0 {
		t.Errorf("a negative count answers %+v, %v", row, err)
	}
	if s := d.r.Stats(); s.Alarms != 1 || s.Members != 0 {
		t.Errorf("after a negative count: %+v", s)
	}
	d.load("B")
	d.agree()
}

// What erasure sends: the member's own facts, then every row.
//
// covers: RT-428
func TestErase(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 A")...)
	w := d.watch("B")
	lsn := d.facts.lsn + 1
	err := d.r.Apply(testSpace, lsn, []readstate.Event{
		readstate.PrincipalEvent{Info: readstate.MemberInfo{
			Key: 2, ID: "erased-1", Erased: true, MemberLSN: lsn,
		}},
		readstate.RowGoneEvent{Scope: scopeKey(1), Member: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.told(w); !slices.Equal(got, []string{"B s1 removed"}) {
		t.Errorf("the watch hears %v", got)
	}
	if _, err := d.r.Row(cold(), testSpace, "B", "s1"); !errors.Is(err, ErrNoMember) {
		t.Errorf("a read of the erased answers %v", err)
	}
	before := d.r.Stats().Suppressed
	if dot, state := d.r.HasUnread(testSpace, "B"); dot || state != Unavailable {
		t.Errorf("the dot of the erased is %t (%s)", dot, state)
	}
	if n := d.r.Stats().Suppressed - before; n != 1 {
		t.Errorf("it was withheld %d times", n)
	}
}

func parse(t *testing.T, line string) model.Op {
	t.Helper()
	op, err := model.ParseOp(line)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func keys(ids ...model.MemberID) []readstate.MemberKey { return memberKeys(ids) }
