package factstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// What is written into whose inbox.
var inboxParts = []lanePart{
	{"InboxOfADM", testInboxOfADM},
	{"InboxOfMentions", testInboxOfMentions},
	{"InboxOfThreads", testInboxOfThreads},
	{"InboxOfTasks", testInboxOfTasks},
	{"InboxOfWhatDoesNotCount", testInboxOfWhatDoesNotCount},
	{"InboxRetractions", testInboxRetractions},
	{"InboxEdits", testInboxEdits},
	{"InboxMoves", testInboxMoves},
	{"InboxSends", testInboxSends},
	{"InboxSendsAtOnce", testInboxSendsAtOnce},
	{"InboxAcrossFailures", testInboxAcrossFailures},
	{"InboxErased", testInboxErased},
	{"InboxOfALargeDM", testInboxOfALargeDM},
}

// inboxOf writes an inbox down: H and the number of retractions, then each item with its position,
// sender and message; one that is retracted in brackets.
func (r *rig) inboxOf(t *testing.T, m readstate.MemberID) string {
	t.Helper()
	ctx := t.Context()
	view, err := r.store.(*faulty).Store.(facts.InboxStore).InboxView(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }() // read only: nothing to lose
	infos, err := view.MembersByID(ctx, r.key, []readstate.MemberID{m})
	if err != nil || len(infos) != 1 {
		t.Fatalf("member %s: %v, %v", m, infos, err)
	}
	key := infos[0].Key
	rows, err := view.Inboxes(ctx, []readstate.MemberKey{key})
	if err != nil {
		t.Fatal(err)
	}
	row := first1(rows)
	items, err := view.Items(ctx, key, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "H%d R%d", row.Accepted, row.Retractions)
	for i, item := range items {
		if item.Position != facts.Position(i+1) {
			t.Fatalf("%s: position %d after %d", m, item.Position, i)
		}
		name := "-"
		if item.Message.Scope != 0 {
			found, err := view.MessagesAt(ctx, []facts.Place{item.Message})
			if err != nil {
				t.Fatal(err)
			}
			name = first1(found).ID
		} else if texts, err := view.Texts(ctx, key, []facts.Position{item.Position}); err != nil {
			t.Fatal(err)
		} else {
			name = first1(texts).Text
		}
		text := fmt.Sprintf("%d%s:%s", item.Position, r.names(t, item.Sender), name)
		if !item.Live {
			text = "(" + text + ")"
		}
		out.WriteString(" " + text)
	}
	return out.String()
}

func first1[T any](rows []T) (row T) {
	if len(rows) > 0 {
		return rows[0]
	}
	return row
}

// inboxes fails unless every member's inbox is as written down; members who are left out have none.
func (r *rig) wantInboxes(t *testing.T, want map[readstate.MemberID]string) {
	t.Helper()
	for _, m := range []readstate.MemberID{"A", "B", "C", "D", "E"} {
		text, ok := want[m]
		if !ok {
			text = "H0 R0"
		}
		if got := r.inboxOf(t, m); got != text {
			t.Errorf("inbox of %s:\n%s\nwant\n%s", m, got, text)
		}
	}
}

func (r *rig) post(t *testing.T, p facts.Post) {
	t.Helper()
	p.By.Trusted = true
	if p.MessageID == "" {
		p.MessageID = p.OpID
	}
	if _, err := r.lane.Post(t.Context(), testWorkspace, p); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) active(t *testing.T, m readstate.MemberID, active bool) {
	t.Helper()
	_, err := r.lane.PutMember(t.Context(), testWorkspace, facts.PutMember{ID: m, Active: &active})
	if err != nil {
		t.Fatal(err)
	}
}

func ids(all ...readstate.MemberID) []readstate.MemberID { return all }

// In a dm everybody else is addressed, each by one item in an order of their own, in the transaction
// of the message; also by a silent one, and whatever their level is.
//
// covers: IN-036 IN-037 IN-038 IN-039 IN-043
func testInboxOfADM(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 dm
		join s1 A
		join s1 B
		join s1 C
		create s2 dm
		join s2 C
		join s2 B`)
	r.active(t, "C", false)
	r.post(t, facts.Post{Scope: "s1", OpID: "m1", Author: "A", Mentions: ids("B", "A")})
	r.active(t, "C", true)
	r.post(t, facts.Post{Scope: "s2", OpID: "m2", Author: "C", Silent: true})
	_, before := f.counted()
	r.post(t, facts.Post{Scope: "s1", OpID: "m3", Author: "A"})
	if _, after := f.counted(); after != before+1 {
		t.Errorf("%d commits for one message", after-before)
	}
	r.post(t, facts.Post{Scope: "s1", OpID: "m4", Author: "B", Principal: "C"})
	r.wantInboxes(t, map[readstate.MemberID]string{
		"A": "H1 R0 1B:m4", "B": "H3 R0 1A:m1 2C:m2 3A:m3", "C": "H1 R0 1A:m3",
	})
	last, _ := lastCommit(r.settled(t))
	if len(last.Inboxes) != 1 || last.Inboxes[0].ID != "A" {
		t.Errorf("told of the inboxes %v", last.Inboxes)
	}
}

func lastCommit(all []facts.Commit) (facts.Commit, bool) {
	if len(all) == 0 {
		return facts.Commit{}, false
	}
	return all[len(all)-1], true
}

// In a channel whom a message names is addressed, if they are active and may read it now; everyone
// is nobody.
func testInboxOfMentions(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 channel
		join s1 A
		join s1 B
		join s1 C
		join s1 D`)
	hidden := false
	_, err := r.lane.PutMembership(t.Context(), testWorkspace, facts.PutMembership{
		Scope: "s1", Member: "D", Visible: &hidden, Trusted: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.post(t, facts.Post{Scope: "s1", OpID: "m1", Author: "A", Mentions: ids("A", "B", "B", "D", "E")})
	r.post(t, facts.Post{Scope: "s1", OpID: "m2", Author: "A", Everyone: true})
	r.post(t, facts.Post{Scope: "s1", OpID: "m3", Author: "A", Everyone: true, Mentions: ids("B")})
	r.active(t, "B", false)
	r.post(t, facts.Post{Scope: "s1", OpID: "m4", Author: "A", Principal: "C", Mentions: ids("B", "C")})
	r.wantInboxes(t, map[readstate.MemberID]string{"B": "H2 R0 1A:m1 2A:m3"})
}

// Who sees a thread's channel may be addressed in the thread. A broadcast reply is one message.
func testInboxOfThreads(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 dm
		join s1 A
		join s1 B
		join s1 C`)
	r.post(t, facts.Post{Scope: "s1", OpID: "root", Author: "A"})
	_, err := r.lane.PutScope(t.Context(), testWorkspace, facts.PutScope{
		ID: "th", Type: readstate.Thread, Parent: "s1", RootMessage: "root",
	})
	if err != nil {
		t.Fatal(err)
	}
	r.post(t, facts.Post{Scope: "th", OpID: "r1", Author: "A", Mentions: ids("B", "D")})
	r.post(t, facts.Post{Scope: "th", OpID: "r2", Author: "A", Mentions: ids("B"), Broadcast: true})
	r.wantInboxes(t, map[readstate.MemberID]string{
		"B": "H3 R0 1A:root 2A:r1 3A:r2", "C": "H2 R0 1A:root 2A:r2",
	})
	// Not named any more, B still has it: it is in their dm. Then it goes, in both logs at once.
	none := []readstate.MemberID{}
	_, err = r.lane.Edit(t.Context(), testWorkspace, facts.Edit{
		Scope: "s1", Message: "r2", OpID: "e", Mentions: &none,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "H3 R0 1A:root 2A:r1 3A:r2"
	if got := r.inboxOf(t, "B"); got != want {
		t.Errorf("after the edit: %s", got)
	}
	remove(t, r, "s1", "r2")
	r.wantInboxes(t, map[readstate.MemberID]string{
		"B": "H3 R1 1A:root 2A:r1 (3A:r2)", "C": "H2 R1 1A:root (2A:r2)",
	})
}

func remove(t *testing.T, r *rig, s readstate.ScopeID, m string) {
	t.Helper()
	_, err := r.lane.Remove(t.Context(), testWorkspace, facts.Remove{
		Scope: s, Message: m, OpID: "remove-" + m,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// In a task whom a message is delivered to is addressed; an agent only by name.
func testInboxOfTasks(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 task planned
		join s1 A
		join s1 B
		join s1 C
		join s1 D
		follow s1 A
		follow s1 B`)
	r.agent(t, "bot", true)
	r.post(t, facts.Post{Scope: "s1", OpID: "m1", Author: "A", Mentions: ids("C", "E")})
	if got := r.inboxOf(t, "bot"); got != "H0 R0" {
		t.Errorf("the agent: %s", got)
	}
	r.post(t, facts.Post{Scope: "s1", OpID: "m2", Author: "A", Mentions: ids("bot")})
	if got := r.inboxOf(t, "bot"); got != "H1 R0 1A:m2" {
		t.Errorf("the agent: %s", got)
	}
	none := []readstate.MemberID{}
	for _, m := range []string{"m1", "m2"} {
		_, err := r.lane.Edit(t.Context(), testWorkspace, facts.Edit{
			Scope: "s1", Message: m, OpID: "e" + m, Mentions: &none,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// A delivery is frozen, a name is not.
	r.wantInboxes(t, map[readstate.MemberID]string{"B": "H2 R0 1A:m1 2A:m2", "C": "H1 R0 1A:m1"})
	if got := r.inboxOf(t, "bot"); got != "H1 R1 (1A:m2)" {
		t.Errorf("the agent: %s", got)
	}
}

// What has no revision addresses nobody, nor does anything in a session.
func testInboxOfWhatDoesNotCount(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 dm
		join s1 A
		join s1 B`)
	no := false
	r.post(t, facts.Post{Scope: "s1", OpID: "m1", Author: "A", Readable: &no, Mentions: ids("B")})
	r.post(t, facts.Post{Scope: "s1", OpID: "m2", Author: "A", Baseline: true})
	edit(t, r, "s1", "m1", "B")
	remove(t, r, "s1", "m1")
	r.wantInboxes(t, nil)
}

func edit(t *testing.T, r *rig, s readstate.ScopeID, m string, named ...readstate.MemberID) {
	t.Helper()
	if named == nil {
		named = []readstate.MemberID{}
	}
	_, err := r.lane.Edit(t.Context(), testWorkspace, facts.Edit{
		Scope: s, Message: m, OpID: fmt.Sprint("edit-", m, named), Mentions: &named,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever takes a message back retracts its items, which keep their positions.
//
// covers: IN-157
func testInboxRetractions(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 dm
		join s1 A
		join s1 B`)
	ctx := t.Context()
	for i := range 5 {
		p := facts.Post{Scope: "s1", OpID: fmt.Sprint("m", i+1), Author: "A"}
		if i == 1 {
			p.ExpiresAt = r.driver.Clock().UnixMilli()
		}
		r.post(t, p)
	}
	remove(t, r, "s1", "m1")
	for {
		n, err := r.lane.Expire(ctx, testWorkspace)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	want := "H5 R2 (1A:m1) (2A:m2) 3A:m3 4A:m4 5A:m5"
	if got := r.inboxOf(t, "B"); got != want {
		t.Fatalf("removed and expired: %s", got)
	}
	_, err := r.lane.Rewind(ctx, testWorkspace, facts.Rewind{Scope: "s1", OpID: "rw", Through: 3})
	if err != nil {
		t.Fatal(err)
	}
	r.post(t, facts.Post{Scope: "s1", OpID: "m6", Author: "A"})
	remove(t, r, "s1", "m1") // again: nothing is taken back twice
	want = "H6 R4 (1A:m1) (2A:m2) 3A:m3 (4A:m4) (5A:m5) 6A:m6"
	if got := r.inboxOf(t, "B"); got != want {
		t.Errorf("rewound: %s", got)
	}
}

// An edit that names somebody addresses them, one that does not any more takes that back, and a
// third gives the same item back: there is one for a member and a message.
func testInboxEdits(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	r.play(t, "join s1 C")
	r.post(t, facts.Post{Scope: "s1", OpID: "m1", Author: "A", Mentions: ids("B")})
	edit(t, r, "s1", "m1", "B", "C", "A", "E")
	edit(t, r, "s1", "m1", "C")
	r.wantInboxes(t, map[readstate.MemberID]string{"B": "H1 R1 (1A:m1)", "C": "H1 R0 1A:m1"})
	edit(t, r, "s1", "m1", "B")
	r.wantInboxes(t, map[readstate.MemberID]string{"B": "H1 R2 1A:m1", "C": "H1 R1 (1A:m1)"})
}

// A message that moves is taken back where it was; where it counts it is addressed anew.
func testInboxMoves(t *testing.T, r *rig, _ *faulty) {
	r.channel(t)
	r.script(t, `
		create s2 channel
		join s2 A
		join s2 B`)
	for i, counted := range []bool{true, false} {
		id := fmt.Sprint("m", i)
		r.post(t, facts.Post{Scope: "s1", OpID: id, Author: "A", Mentions: ids("B")})
		_, err := r.lane.Move(t.Context(), testWorkspace, facts.Move{
			Scope: "s1", To: "s2", OpID: "move" + id, Messages: []string{id}, Counted: counted,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := r.inboxOf(t, "B")
	for _, want := range []string{"H3 R2 (1A:", "2A:m0 (3A:"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func send(op, text string, to readstate.MemberID) facts.SendInbox {
	return facts.SendInbox{To: to, Sender: "A", OpID: op, Text: text, By: facts.Actor{Member: "A"}}
}

// A send is one item, whatever happens to its answer. What is refused uses no position.
//
// covers: IN-018 IN-019 IN-023 IN-026 IN-027 IN-028 IN-029 IN-030 IN-034 IN-042
func testInboxSends(t *testing.T, r *rig, _ *faulty) {
	ctx := t.Context()
	try := func(op facts.SendInbox) (facts.Receipt, error) {
		return r.lane.SendInbox(ctx, testWorkspace, op)
	}
	one, err := try(send("one", "hello", "B"))
	if err != nil || one.Seq != 1 || one.MessageID == "" || one.Duplicate {
		t.Fatalf("%+v, %v", one, err)
	}
	again, err := try(send("one", "hello", "B"))
	if err != nil || again.Seq != 1 || again.MessageID != one.MessageID || !again.Duplicate {
		t.Errorf("again: %+v, %v", again, err)
	}
	two, err := try(send("two", "hello", "B"))
	if err != nil || two.Seq != 2 || two.MessageID == one.MessageID {
		t.Errorf("the same text: %+v, %v", two, err)
	}
	other := send("three", "x", "B")
	other.Sender = "C"
	refusals := []struct {
		op   facts.SendInbox
		want error
	}{
		{send("one", "other", "B"), facts.ErrMismatch},
		{send("one", "hello", "C"), facts.ErrMismatch},
		{send("", "x", "B"), facts.ErrInvalid},
		{send("e", "", "B"), facts.ErrInvalid},
		{send("e", "\xff", "B"), facts.ErrInvalid},
		{send("e", strings.Repeat("x", facts.MaxPayloadBytes+1), "B"), facts.ErrInvalid},
		{send("e", "x", "A"), facts.ErrInvalid},
		{send("e", "x", "nobody"), facts.ErrNotFound},
		{other, facts.ErrForbidden},
	}
	for _, c := range refusals {
		if _, err := try(c.op); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.op, err, c.want)
		}
	}
	r.active(t, "B", false)
	if _, err := try(send("off", "x", "B")); !errors.Is(err, facts.ErrForbidden) {
		t.Errorf("to an inactive account: %v", err)
	}
	r.active(t, "B", true)
	r.active(t, "A", false)
	if _, err := try(send("off", "x", "B")); !errors.Is(err, facts.ErrForbidden) {
		t.Errorf("from an inactive account: %v", err)
	}
	r.active(t, "A", true)
	// The id is free: nothing was kept of what was refused.
	if three, err := try(send("off", "x", "B")); err != nil || three.Seq != 3 || three.Duplicate {
		t.Errorf("after the refusals: %+v, %v", three, err)
	}
	// An id of another sender is another id.
	other.OpID, other.By = "one", facts.Actor{Trusted: true}
	if four, err := try(other); err != nil || four.Seq != 4 || four.Duplicate {
		t.Errorf("of another sender: %+v, %v", four, err)
	}
	r.wantInboxes(t, map[readstate.MemberID]string{
		"B": "H4 R0 1A:hello 2A:hello 3A:x 4C:x",
	})
}

// Positions have no gaps and no duplicates, however many send at once.
//
// covers: IN-041
func testInboxSendsAtOnce(t *testing.T, r *rig, _ *faulty) {
	const all, writers = 1000, 20
	var wg sync.WaitGroup
	got := make([]readstate.Seq, all)
	for w := range writers {
		wg.Go(func() {
			for i := w; i < all; i += writers {
				rec, err := r.lane.SendInbox(t.Context(), testWorkspace, send(fmt.Sprint(i), "x", "B"))
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = rec.Seq
			}
		})
	}
	wg.Wait()
	slices.Sort(got)
	for i, at := range got {
		if at != readstate.Seq(i+1) {
			t.Fatalf("position %d at %d", at, i+1)
		}
	}
	if text := r.inboxOf(t, "B"); !strings.HasPrefix(text, "H1000 R0 ") {
		t.Errorf("%.20s", text)
	}
}

// What was rolled back is not there and used nothing; what was committed and not answered is there
// once.
func testInboxAcrossFailures(t *testing.T, r *rig, f *faulty) {
	r.script(t, `
		create s1 dm
		join s1 A
		join s1 B`)
	ctx := t.Context()
	r.post(t, facts.Post{Scope: "s1", OpID: "m1", Author: "A"})
	abort := func(facts.Tx) error { return fmt.Errorf("%w: deadlock", facts.ErrAborted) }
	f.everyCommit(abort)
	if _, err := r.lane.SendInbox(ctx, testWorkspace, send("one", "x", "B")); err == nil {
		t.Error("nothing was committed")
	}
	_, err := r.lane.Post(ctx, testWorkspace, facts.Post{Scope: "s1", OpID: "m2", Author: "A"})
	if err == nil {
		t.Error("nothing was committed")
	}
	f.everyCommit(nil)
	if got := r.inboxOf(t, "B"); got != "H1 R0 1A:m1" {
		t.Errorf("after what was rolled back: %s", got)
	}
	f.nextCommit(func(tx facts.Tx) error {
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		return errLost
	})
	for range 2 {
		if rec, err := r.lane.SendInbox(ctx, testWorkspace, send("one", "x", "B")); err != nil || rec.Seq != 2 {
			t.Errorf("%+v, %v", rec, err)
		}
	}
	r.post(t, facts.Post{Scope: "s1", OpID: "m2", Author: "A"})
	if got := r.inboxOf(t, "B"); got != "H3 R0 1A:m1 2A:x 3A:m2" {
		t.Errorf("at the end: %s", got)
	}
}

// Nothing is left of an erased member's inbox, and what they sent is taken back, its words included.
//
// covers: IN-156
func testInboxErased(t *testing.T, r *rig, _ *faulty) {
	r.script(t, `
		create s1 dm
		join s1 A
		join s1 B`)
	ctx := t.Context()
	for i := range 600 {
		op := send(fmt.Sprint(i), "secret", "B")
		if i%2 > 0 {
			op.To, op.Sender, op.By = "A", "B", facts.Actor{Trusted: true}
		}
		if _, err := r.lane.SendInbox(ctx, testWorkspace, op); err != nil {
			t.Fatal(err)
		}
	}
	r.post(t, facts.Post{Scope: "s1", OpID: "m1", Author: "A"})
	key := r.memberKey(t, "A")
	if _, err := r.lane.EraseMember(ctx, testWorkspace, facts.EraseMember{Member: "A"}); err != nil {
		t.Fatal(err)
	}
	text := r.inboxOf(t, "B")
	if !strings.HasPrefix(text, "H301 R301 (1erased-") || strings.Contains(text, "secret") {
		t.Errorf("%.60s", text)
	}
	view, err := r.store.(*faulty).Store.(facts.InboxStore).InboxView(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }() // read only: nothing to lose
	rows, err := view.Inboxes(ctx, []readstate.MemberKey{key})
	if err != nil || len(rows) != 0 {
		t.Errorf("%+v, %v", rows, err)
	}
	if items, err := view.Items(ctx, key, 0, 10); err != nil || len(items) != 0 {
		t.Errorf("%d items, %v", len(items), err)
	}
	if texts, err := view.Texts(ctx, key, []facts.Position{1, 2}); err != nil || len(texts) != 0 {
		t.Errorf("%d texts, %v", len(texts), err)
	}
}

func (r *rig) memberKey(t *testing.T, m readstate.MemberID) readstate.MemberKey {
	t.Helper()
	view, err := r.store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }() // read only: nothing to lose
	info, ok, err := view.Member(t.Context(), r.key, m)
	if err != nil || !ok {
		t.Fatalf("member %s: %v", m, err)
	}
	return info.Key
}

// Everybody in a dm is addressed, also in one that is too large for the index of conversations.
func testInboxOfALargeDM(t *testing.T, r *rig, _ *faulty) {
	ctx := t.Context()
	r.script(t, `
		create s1 dm
		join s1 A`)
	b := r.lane.NewBatch(testWorkspace)
	for i := range facts.MaxIndexedDM + 20 {
		b.PutMembership(facts.PutMembership{
			Scope: "s1", Member: readstate.MemberID(fmt.Sprint("x", i)), CreateMember: true,
		})
	}
	if res, err := b.Run(ctx); err != nil || res[0].Err != nil {
		t.Fatal(err, res[0].Err)
	}
	r.post(t, facts.Post{Scope: "s1", OpID: "m1", Author: "A"})
	for _, i := range []int{0, facts.MaxIndexedDM, facts.MaxIndexedDM + 19} {
		if got := r.inboxOf(t, readstate.MemberID(fmt.Sprint("x", i))); got != "H1 R0 1A:m1" {
			t.Errorf("x%d: %s", i, got)
		}
	}
}
