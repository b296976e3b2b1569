package tidemark_test

import (
	"errors"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// covers: RT-007
func TestOneOwnerAtATime(t *testing.T) {
	opts := tidemark.Options{Facts: "sqlite:" + filepath.Join(t.TempDir(), "facts.db")}
	first, err := tidemark.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tidemark.Open(t.Context(), opts); !errors.Is(err, facts.ErrNotOwner) {
		t.Fatalf("second owner: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := tidemark.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBadOptions(t *testing.T) {
	for _, name := range []string{"", "sqlite:", "postgres://x", "oracle://x/y", "facts.db"} {
		if _, err := tidemark.Open(t.Context(), tidemark.Options{Facts: name}); !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("facts %q: %v", name, err)
		}
	}
	bad := tidemark.Options{
		Facts:   "sqlite:" + filepath.Join(t.TempDir(), "facts.db"),
		Runtime: unread.Config{HydratePageSize: -1},
	}
	if _, err := tidemark.Open(t.Context(), bad); err == nil {
		t.Error("a negative page size was accepted")
	}
}

// What is written is there after a restart, exactly, from one bounded page and without a look at
// any message.
// covers: RT-317
func TestRestart(t *testing.T) {
	ctx := t.Context()
	opts := tidemark.Options{Facts: "sqlite:" + filepath.Join(t.TempDir(), "facts.db")}
	open := func() (*tidemark.Engine, *tidemark.Workspace) {
		t.Helper()
		engine, err := tidemark.Open(ctx, opts)
		if err != nil {
			t.Fatal(err)
		}
		return engine, engine.Workspace("w")
	}
	engine, ws := open()
	if _, err := engine.CreateWorkspace(ctx, "w", "Workspace"); err != nil {
		t.Fatal(err)
	}
	if _, err := ws.PutScope(ctx, facts.PutScope{ID: "c", Type: readstate.Channel}); err != nil {
		t.Fatal(err)
	}
	for _, m := range []readstate.MemberID{"a", "b"} {
		op := facts.PutMembership{Scope: "c", Member: m, CreateMember: true}
		if _, err := ws.PutMembership(ctx, op); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"1", "2", "3"} {
		post := facts.Post{Scope: "c", OpID: id, Author: "a", Mentions: []readstate.MemberID{"b"}}
		if _, err := ws.Post(ctx, post); err != nil {
			t.Fatal(err)
		}
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	engine, ws = open()
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	if has, state := ws.HasUnread("b"); has || state.Servable() {
		t.Errorf("before anything is loaded: %t, %s", has, state)
	}
	row, err := ws.Row(ctx, "b", "c")
	if err != nil || row.Values != (readstate.Values{Unread: 3, Attention: 3}) || row.State != unread.Ready {
		t.Fatalf("after the restart: %+v %s, %v", row.Values, row.State, err)
	}
	if has, state := ws.HasUnread("b"); !has || state != unread.Ready {
		t.Errorf("once loaded: %t, %s", has, state)
	}
}
