package factstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

var sessionParts = []lanePart{
	{"SessionSettles", testSessionSettles},
	{"SessionMerge", testSessionMerge},
	{"SessionFork", testSessionFork},
	{"SessionCopiesAreBounded", testSessionCopiesAreBounded},
	{"SessionOfAnErasedOwner", testSessionOfAnErasedOwner},
	{"SessionTouched", testSessionTouched},
	{"SessionsApart", testSessionsApart},
	{"SessionLocalIDs", testSessionLocalIDs},
}

// sessions are two sessions of A with four entries each, by A and an agent E whom nobody blocks
// yet.
const sessions = `
	create s1 session A
	create s2 session A
	post s1 A
	post s1 E @A
	post s1 A @A
	post s1 E
	post s2 E
	post s2 E
	post s2 A
	post s2 E`

// Whatever leaves nothing unread moves the cursor to the head: here each of them as the last step,
// after steps that leave something.
//
// covers: SE-128
func testSessionSettles(t *testing.T, r *rig, _ *faulty) {
	r.agreeing(t, sessions+`
		read s1 A 2 v=0
		remove s1 3
		remove s1 4
		post s1 E
		post s1 E unreadable
		post s1 A unreadable saw=5
		block A E
		post s1 E
		post s1 A
		remove s1 9
		unread s1 A v=0
		read s1 A 6 v=0
		unblock A E
		post s1 E
		post s1 E
		read s1 A 8 v=0
		trim s1 12
		read s2 A 3 v=0
		rewind s2 3
		unread s2 A from=2 v=0
		remove s2 2
		remove s2 3
		read s2 A 4 v=1
		post s2 B saw=4
		post s2 E expires=5
		read s2 A 5 v=2
		expire 9
		create s3 session A
		post s3 E
		post s3 E
		post s3 E
		remove s3 3
		read s3 A 2 v=0
		create s4 session A
		post s4 E
		post s4 E
		remove s4 2
		post s4 A unreadable saw=1
		create s5 session A
		create s6 session A
		post s6 E
		read s6 A 1 v=0
		block A E
		post s5 E
		merge s5 s6`)
	for _, s := range []model.ScopeID{1, 2, 3, 4, 6} {
		scope := r.scope(t, s)
		row := r.stateOf(t, scope.Info.ID, "A").Row
		if row.Read != scope.Ranks.Head || row.Point.E != scope.Ranks.Head {
			t.Errorf("%s: read %d, point %d, head %d", s, row.Read, row.Point.E, scope.Ranks.Head)
		}
	}
}

// covers: SE-120 SE-121 SE-122 SE-123 SE-124
func testSessionMerge(t *testing.T, r *rig, _ *faulty) {
	r.agreeing(t, sessions+`
		read s1 A 3 v=0
		remove s1 3
		unread s1 A from=2 v=0
		read s2 A 3 v=0
		merge s1 s2`)
	scope := r.scope(t, 2)
	row := r.stateOf(t, scope.Info.ID, "A").Row
	if scope.Ranks.Head != 7 || scope.Ranks.LatestSeq != 8 || row.Read != 3 {
		t.Errorf("merged to %+v, read %d", scope.Ranks, row.Read)
	}
	if row.Manual != (readstate.Manual{Set: true, From: 5, Version: 2}) {
		t.Errorf("the mark is %+v", row.Manual)
	}
	view, err := r.store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	_, kept, err := view.State(t.Context(), facts.RowKey{Scope: r.scope(t, 1).Info.Key, Member: scope.Owner})
	if err != nil || kept {
		t.Errorf("the merged session has a row: %t, %v", kept, err)
	}
	_, err = r.lane.Post(t.Context(), testWorkspace, facts.Post{
		Scope: r.driver.Scope(1), OpID: "late", Author: "A", Payload: json.RawMessage(`"late"`),
	})
	var replaced *facts.ReplacedError
	if !errors.As(err, &replaced) || !errors.Is(err, facts.ErrReplaced) || replaced.By != "s2" {
		t.Errorf("a late post: %v", err)
	}
	gone := false
	commits := r.settled(t)
	if last := commits[len(commits)-1]; len(last.Messages) > 0 {
		t.Errorf("copies are told as messages: %+v", last.Messages)
	}
	for _, c := range commits {
		for _, e := range c.Events {
			_, ok := e.(readstate.RowGoneEvent)
			gone = gone || ok
		}
	}
	if !gone {
		t.Error("memory is not told that a row is gone")
	}
}

// covers: SE-118
func testSessionFork(t *testing.T, r *rig, _ *faulty) {
	r.agreeing(t, sessions+`
		remove s1 2
		fork s1 s3
		post s3 E`)
	scope := r.scope(t, 3)
	if scope.Ranks.Head != 1 || scope.Ranks.LatestSeq != 4 {
		t.Errorf("the fork is at %+v", scope.Ranks)
	}
}

func testSessionCopiesAreBounded(t *testing.T, r *rig, _ *faulty) {
	ctx := t.Context()
	put := facts.PutSession{Owner: "A", ID: "long", Create: true}
	if _, err := r.lane.PutSession(ctx, testWorkspace, put); err != nil {
		t.Fatal(err)
	}
	batch := r.lane.NewBatch(testWorkspace)
	for i := range facts.MaxSessionCopied {
		batch.Post(facts.Post{
			Scope: facts.SessionScope("A", "long"), OpID: fmt.Sprint(i), Author: "A",
			Baseline: true, By: facts.Actor{Trusted: true},
		})
	}
	if _, err := batch.Run(ctx); err != nil {
		t.Fatal(err)
	}
	fork := facts.ForkSession{Owner: "A", From: "long", To: "copy", OpID: "fork"}
	got, err := r.lane.ForkSession(ctx, testWorkspace, fork)
	if err != nil || !got.Created {
		t.Fatalf("%+v, %v", got, err)
	}
	before := got.LSN
	if got, err = r.lane.ForkSession(ctx, testWorkspace, fork); err != nil || !got.Duplicate ||
		got.LSN != before {
		t.Errorf("again: %+v, %v", got, err)
	}
	post := facts.Post{
		Scope: facts.SessionScope("A", "long"), OpID: "one more", Author: "A", Payload: []byte(`"x"`),
	}
	if _, err := r.lane.Post(ctx, testWorkspace, post); err != nil {
		t.Fatal(err)
	}
	fork.To, fork.OpID = "another", "again"
	if _, err := r.lane.ForkSession(ctx, testWorkspace, fork); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("a longer one: %v", err)
	}
}

func testSessionOfAnErasedOwner(t *testing.T, r *rig, _ *faulty) {
	ctx, title := t.Context(), "My secrets"
	put := facts.PutSession{Owner: "A", ID: "diary", Title: &title, Create: true}
	_, err := r.lane.PutSession(ctx, testWorkspace, put)
	if err != nil {
		t.Fatal(err)
	}
	was := r.named(t, facts.SessionScope("A", "diary"))
	if _, err := r.lane.EraseMember(ctx, testWorkspace, facts.EraseMember{Member: "A"}); err != nil {
		t.Fatal(err)
	}
	view, err := r.store.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	rows, err := view.Scopes(ctx, []readstate.ScopeKey{was.Info.Key})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v, %v", rows, err)
	}
	owner, id, ok := facts.SessionOf(rows[0].Info.ID)
	if !ok || owner == "A" || strings.Contains(id, "diary") || rows[0].Info.Name != "" {
		t.Errorf("what is left is %q, %q, %q", owner, id, rows[0].Info.Name)
	}
}

// An entry and a change bring a session to the top of the list; a reading does not.
//
// covers: SE-059
func testSessionTouched(t *testing.T, r *rig, _ *faulty) {
	ctx := t.Context()
	r.script(t, "create s1 session A\nclock 5\npost s1 E")
	at := func(seconds int64) {
		t.Helper()
		view, err := r.store.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = view.Close() }()
		rows, err := view.Sessions(ctx, []readstate.ScopeKey{r.scope(t, 1).Info.Key})
		want := Time(0).Add(time.Duration(seconds) * time.Second).UnixMilli()
		if err != nil || len(rows) != 1 || rows[0].UpdatedAt != want {
			t.Errorf("%+v, %v, want %d", rows, err, want)
		}
	}
	at(5)
	r.script(t, "clock 5\nread s1 A 1 v=0\nunread s1 A v=0")
	at(5)
	title := "Work"
	put := facts.PutSession{Owner: "A", ID: "s1", Title: &title}
	for range 2 { // the second one changes nothing
		if _, err := r.lane.PutSession(ctx, testWorkspace, put); err != nil {
			t.Fatal(err)
		}
		at(10)
		r.script(t, "clock 5")
	}
}

// Sessions of two members have the same id, and neither is a scope that others name.
func testSessionsApart(t *testing.T, r *rig, _ *faulty) {
	ctx := t.Context()
	for _, owner := range []readstate.MemberID{"A", "B"} {
		title := "of " + string(owner)
		got, err := r.lane.PutSession(ctx, testWorkspace, facts.PutSession{
			Owner: owner, ID: "s", Title: &title, Create: true,
		})
		if err != nil || got.Session.Title != title {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	for _, id := range []readstate.ScopeID{"s", "session:s"} {
		_, err := r.lane.Post(ctx, testWorkspace, facts.Post{
			Scope: id, OpID: "x", Author: "A", Payload: json.RawMessage(`"x"`),
		})
		if !errors.Is(err, facts.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range []readstate.ScopeID{"session:s", facts.SessionScope("A", "new")} {
		_, err := r.lane.PutScope(ctx, testWorkspace, facts.PutScope{ID: id, Type: readstate.Channel})
		if !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("a channel %q: %v", id, err)
		}
	}
	mine := facts.SessionScope("A", "s")
	if _, err := r.lane.PutMembership(ctx, testWorkspace, facts.PutMembership{
		Scope: mine, Member: "B",
	}); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("somebody joins: %v", err)
	}
	var listed []facts.ScopeRow
	view, err := r.store.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	owner := r.named(t, mine).Owner
	for _, q := range []facts.ScopeQuery{
		{Workspace: r.key}, {Workspace: r.key, Member: owner},
		{Workspace: r.key, Type: readstate.Session},
	} {
		q.Limit = 10
		rows, err := view.ListScopes(ctx, q)
		if listed = append(listed, rows...); err != nil {
			t.Fatal(err)
		}
	}
	if len(listed) > 0 {
		t.Errorf("sessions are listed among scopes: %+v", listed)
	}
}

// A send whose local id the session has seen is answered with what became of the first one, whatever
// else it says, inside a group and after it.
func testSessionLocalIDs(t *testing.T, r *rig, _ *faulty) {
	r.agreeing(t, sessions)
	p := plain("first", "x")
	p.Scope, p.MessageID, p.LocalID = r.driver.Scope(1), "", "of the device"
	again := p
	again.OpID, again.Payload = "again", json.RawMessage(`"y"`)
	b := r.lane.NewBatch(testWorkspace)
	b.Post(p)
	b.Post(again)
	res, err := b.Run(t.Context())
	if err != nil || res[0].Err != nil || res[1].Err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	want := res[0].Receipt
	want.Duplicate, want.LSN = true, res[1].Receipt.LSN
	if res[1].Receipt != want {
		t.Errorf("in one group: %+v, want %+v", res[1].Receipt, want)
	}
	again.OpID = "later"
	got, err := r.lane.Post(t.Context(), testWorkspace, again)
	if want.LSN = got.LSN; err != nil || got != want {
		t.Errorf("later: %+v, %v; want %+v", got, err, want)
	}
}

// scope reads a scope of the oracle's name, named one of a real name.
func (r *rig) scope(t *testing.T, s model.ScopeID) facts.ScopeRow {
	t.Helper()
	return r.named(t, r.driver.Scope(s))
}

func (r *rig) named(t *testing.T, id readstate.ScopeID) facts.ScopeRow {
	t.Helper()
	view, err := r.store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	row, ok, err := view.Scope(t.Context(), r.key, id)
	if err != nil || !ok {
		t.Fatalf("scope %q: %t, %v", id, ok, err)
	}
	return row
}

// agreeing plays lines of the oracle's language and compares after each.
func (r *rig) agreeing(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			r.play(t, line)
			r.agree(t)
		}
	}
}
