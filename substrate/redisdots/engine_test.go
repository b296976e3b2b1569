package redisdots

import (
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/substrate"
)

// office is an engine whose dots are published.
type office struct {
	t      *testing.T
	engine *tidemark.Engine
	ops    int
}

func newOffice(t *testing.T, spaces ...readstate.WorkspaceID) *office {
	t.Helper()
	o := &office{t: t}
	var err error
	o.engine, err = tidemark.Open(t.Context(), tidemark.Options{
		Facts: "sqlite:" + filepath.Join(t.TempDir(), "facts.db"),
	})
	o.ok(err)
	t.Cleanup(func() { o.ok(o.engine.Close()) })
	for _, id := range spaces {
		_, err := o.engine.CreateWorkspace(t.Context(), id, "")
		o.ok(err)
		_, err = o.engine.Workspace(id).PutScope(t.Context(), facts.PutScope{ID: "s", Type: readstate.Channel})
		o.ok(err)
		for _, m := range []readstate.MemberID{"ann", "bob"} {
			_, err = o.engine.Workspace(id).PutMembership(t.Context(), facts.PutMembership{
				Scope: "s", Member: m, CreateMember: true, Trusted: true,
			})
			o.ok(err)
		}
	}
	return o
}

func (o *office) ok(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) post(w readstate.WorkspaceID) readstate.Revision {
	o.t.Helper()
	o.ops++
	r, err := o.engine.Workspace(w).Post(o.t.Context(), facts.Post{
		Scope: "s", OpID: strconv.Itoa(o.ops), Author: "ann", By: facts.Actor{Trusted: true},
	})
	o.ok(err)
	return r.Revision
}

func (o *office) read(w readstate.WorkspaceID, r readstate.Revision) {
	o.t.Helper()
	_, err := o.engine.Workspace(w).MarkRead(o.t.Context(), facts.MarkRead{
		Scope: "s", Member: "bob", Revision: &r, Trusted: true,
	})
	o.ok(err)
}

// The list of another process shows what memory of the owner says, and nothing of what nobody owns.
//
// covers: RT-027
func TestListsOfAnotherProcess(t *testing.T) {
	s := newServer(t)
	o := newOffice(t, "w", "quiet")
	running(t, s.dots(), substrate.Engine(o.engine), quick)
	head := o.post("w")
	r := reading(t, s.dots(), quick)
	got := r.Dots(t.Context(), "bob", []readstate.WorkspaceID{"w", "quiet"})
	want := substrate.Dot{
		Key: substrate.Key{Workspace: "w", Member: "bob"}, Term: got["w"].Term, LSN: got["w"].LSN,
		Unread: true, Badge: readstate.Badge{Messages: 1, Conversations: 1},
	}
	if got["w"] != want || got["w"].Term == 0 || got["w"].LSN == 0 {
		t.Errorf("%+v, want %+v", got["w"], want)
	}
	if quiet, known := got["quiet"]; !known || quiet.Unread {
		t.Errorf("the quiet one is %+v, %t", quiet, known)
	}
	o.read("w", head)
	until(t, func() bool {
		dot, known := r.Dots(t.Context(), "bob", []readstate.WorkspaceID{"w"})["w"]
		if !known {
			t.Fatal("it is not known any more")
		}
		return !dot.Unread
	})
	short := quick
	short.Patience = 1
	none := reading(t, s.dots(), short).Dots(t.Context(), "ghost", []readstate.WorkspaceID{"w", "nowhere"})
	if len(none) != 0 {
		t.Errorf("dots of nobody: %v", none)
	}
}

// Who follows hears of each change, the newest of several, without asking.
func TestFollowersHear(t *testing.T) {
	s := newServer(t)
	o := newOffice(t, "w")
	running(t, s.dots(), substrate.Engine(o.engine), quick)
	feed, err := reading(t, s.dots(), quick).Follow(t.Context(), substrate.Key{Workspace: "w", Member: "bob"})
	o.ok(err)
	defer feed.Close()
	expect(t, feed, func(c substrate.Change) bool { return c.Known && !c.Dot.Unread })
	var head readstate.Revision
	for range 20 {
		head = o.post("w")
	}
	expect(t, feed, func(c substrate.Change) bool { return c.Known && c.Dot.Badge.Messages == 20 })
	o.read("w", head)
	expect(t, feed, func(c substrate.Change) bool { return c.Known && !c.Dot.Unread })
}

// expect waits for a change that answers, and holds that dots of a feed never become older.
func expect(t *testing.T, f *substrate.Feed, answers func(substrate.Change) bool) {
	t.Helper()
	var last substrate.Change
	until(t, func() bool {
		for _, c := range f.Next() {
			if c.Known && last.Known && !c.Dot.Supersedes(&last.Dot) {
				t.Fatalf("%+v came after %+v", c, last)
			}
			last = c
			if answers(c) {
				return true
			}
		}
		return false
	})
}

// A server that is killed takes dots with it, which are unknown then and never off; the owner commits
// and answers as before. An empty one in its place is filled again although nobody asks.
func TestServerKilled(t *testing.T) {
	s := newServer(t)
	o := newOffice(t, "w")
	p := running(t, s.dots(), substrate.Engine(o.engine), quick)
	r := reading(t, s.dots(), quick)
	key := substrate.Key{Workspace: "w", Member: "bob"}
	feed, err := r.Follow(t.Context(), key)
	o.ok(err)
	defer feed.Close()
	o.post("w")
	expect(t, feed, func(c substrate.Change) bool { return c.Known && c.Dot.Unread })
	for range 3 {
		s.Kill()
		expect(t, feed, func(c substrate.Change) bool { return !c.Known })
		if dots := r.Dots(t.Context(), "bob", []readstate.WorkspaceID{"w"}); len(dots) != 0 {
			t.Errorf("known without a server: %v", dots)
		}
		head := o.post("w")
		o.read("w", head)
		if dot, state := o.engine.Workspace("w").HasUnread("bob"); dot || state != "ready" {
			t.Errorf("the owner says %t, %s", dot, state)
		}
		o.post("w")
		s.Start()
		expect(t, feed, func(c substrate.Change) bool { return c.Known && c.Dot.Badge.Messages == 1 })
		until(t, func() bool { // lists come by a connection of their own
			_, known := r.Dots(t.Context(), "bob", []readstate.WorkspaceID{"w"})["w"]
			return known
		})
	}
	if stats := p.Stats(); stats.Members != 1 || stats.Workspaces != 1 || stats.Published == 0 {
		t.Errorf("%+v", stats)
	}
}

// A server that hangs holds nobody up: lists come without dots, commits go on, and it is caught up with.
func TestServerHangs(t *testing.T) {
	s := newServer(t)
	o := newOffice(t, "w")
	limits := quick
	limits.Timeout = quick.Timeout / 20
	p := running(t, s.dots(), substrate.Engine(o.engine), limits)
	r := reading(t, s.dots(), limits)
	list := func() (substrate.Dot, bool) {
		dot, known := r.Dots(t.Context(), "bob", []readstate.WorkspaceID{"w"})["w"]
		return dot, known
	}
	o.post("w")
	until(t, func() bool { dot, known := list(); return known && dot.Unread })
	s.Signal(syscall.SIGSTOP)
	failed := r.Stats().Failed
	if dot, known := list(); known {
		t.Errorf("known of a server that hangs: %+v", dot)
	}
	if r.Stats().Failed == failed {
		t.Error("no failure was counted")
	}
	for range 10 {
		o.post("w")
	}
	until(t, func() bool { return p.Stats().Failed > 0 })
	s.Signal(syscall.SIGCONT)
	until(t, func() bool { dot, known := list(); return known && dot.Badge.Messages == 11 })
}

// An owner that comes later finds what is wanted, and takes no more than its bounds.
func TestWishesAreFound(t *testing.T) {
	s := newServer(t)
	o := newOffice(t, "w")
	r := reading(t, s.dots(), quick)
	feed, err := r.Follow(t.Context(), substrate.Key{Workspace: "w", Member: "ann"},
		substrate.Key{Workspace: "w", Member: "bob"}, substrate.Key{Workspace: "gone", Member: "bob"})
	o.ok(err)
	defer feed.Close()
	limits := quick
	limits.Members = 1
	p := running(t, s.dots(), substrate.Engine(o.engine), limits)
	expect(t, feed, func(c substrate.Change) bool { return c.Known })
	until(t, func() bool { return p.Stats().Dropped > 0 })
	if stats := p.Stats(); stats.Members != 1 || stats.Workspaces != 1 {
		t.Errorf("%+v", stats)
	}
}
