package tidemark_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
)

// spy is a lane over a real store with channel c and the members a and b in it. It keeps what
// memory would be fed.
type spy struct {
	*facts.Lane
	t   *testing.T
	now time.Time

	mu      sync.Mutex
	commits []facts.Commit
	names   map[readstate.MemberKey]readstate.MemberID
}

func newSpy(t *testing.T) *spy {
	t.Helper()
	store, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "facts.db"),
		sqlstore.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &spy{t: t, now: time.UnixMilli(1_700_000_000_123), names: map[readstate.MemberKey]readstate.MemberID{}}
	ids := 0
	s.Lane, err = facts.NewLane(t.Context(), facts.LaneConfig{
		Store: store, Apply: s.apply, Now: func() time.Time { return s.now },
		NewID: func() string { ids++; return fmt.Sprint("m", ids) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := t.Context()
	_, err = s.PutWorkspace(ctx, facts.PutWorkspace{ID: "w"})
	s.ok(err)
	_, err = s.PutScope(ctx, "w", facts.PutScope{ID: "c", Type: readstate.Channel})
	s.ok(err)
	for _, m := range []readstate.MemberID{"a", "b"} {
		_, err = s.PutMembership(ctx, "w", facts.PutMembership{Scope: "c", Member: m, CreateMember: true})
		s.ok(err)
	}
	return s
}

func (s *spy) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *spy) apply(c facts.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits = append(s.commits, c)
	for _, ev := range c.Events {
		if m, ok := ev.(readstate.MemberEvent); ok {
			s.names[m.Member] = m.MemberID
		}
	}
}

// take returns what was fed since the last take.
func (s *spy) take() []facts.Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.commits
	s.commits = nil
	return out
}

// fed returns the events of an operation, each as a word.
func (s *spy) fed(run func() error) []string {
	s.t.Helper()
	s.take()
	s.ok(run())
	var words []string
	for _, c := range s.take() {
		for _, ev := range c.Events {
			words = append(words, s.word(ev))
		}
	}
	return words
}

func (s *spy) word(ev readstate.Event) string {
	switch ev := ev.(type) {
	case readstate.MessageEvent:
		return fmt.Sprint("message ", ev.Seq)
	case readstate.RemovalEvent:
		return fmt.Sprint("removal ", ev.Seq)
	case readstate.ScopeEvent:
		return fmt.Sprintf("scope %s archived=%t", ev.Info.ID, ev.Info.Archived)
	case readstate.MemberEvent:
		return fmt.Sprintf("row of %s: joined=%t visible=%t level=%v manual=%t", ev.MemberID,
			ev.Row.Joined, ev.Row.Visible, ev.Row.Level, ev.Row.Manual.Set)
	}
	return fmt.Sprintf("%T", ev)
}

func (s *spy) post(op facts.Post) facts.Receipt {
	s.t.Helper()
	op.Scope = "c"
	r, err := s.Post(s.t.Context(), "w", op)
	s.ok(err)
	return r
}

// Each kind of change feeds memory by itself, with what it changed and no more. A rewind says
// which messages went, and nothing about the scope; only archiving and restoring do that.
//
// covers: RT-083 RT-231
func TestEachPathFeedsItsOwnEvents(t *testing.T) {
	s := newSpy(t)
	ctx := t.Context()
	for i := range 3 {
		s.post(facts.Post{OpID: fmt.Sprint(i), Author: "a", Mentions: []readstate.MemberID{"b"}})
	}
	version, yes, no, none := uint64(0), true, false, readstate.LevelNone
	row := func(joined, visible bool, level string, manual bool) []string {
		return []string{fmt.Sprintf("row of b: joined=%t visible=%t level=%s manual=%t",
			joined, visible, level, manual)}
	}
	member := func(op facts.PutMembership) func() error {
		op.Scope, op.Member = "c", "b"
		return func() error { _, err := s.PutMembership(ctx, "w", op); return err }
	}
	archive := func(v *bool) func() error {
		return func() error {
			_, err := s.PutScope(ctx, "w", facts.PutScope{ID: "c", Archived: v})
			return err
		}
	}
	for _, path := range []struct {
		name string
		run  func() error
		want []string
	}{
		{"manual unread", func() error {
			_, err := s.MarkUnread(ctx, "w", facts.MarkUnread{Scope: "c", Member: "b", Version: &version})
			return err
		}, row(true, true, "inherit", true)},
		{"notification policy", member(facts.PutMembership{Level: &none}), row(true, true, "none", true)},
		{"visibility", member(facts.PutMembership{Visible: &no}), row(true, false, "none", true)},
		{"visibility restored", member(facts.PutMembership{Visible: &yes}), row(true, true, "none", true)},
		{"archive", archive(&yes), []string{"scope c archived=true"}},
		{"restore", archive(&no), []string{"scope c archived=false"}},
		{"rewind", func() error {
			_, err := s.Rewind(ctx, "w", facts.Rewind{Scope: "c", OpID: "rw", Through: 1})
			return err
		}, []string{"removal 3", "removal 2"}},
		{"membership", func() error {
			_, err := s.Leave(ctx, "w", facts.Leave{Scope: "c", Member: "b"})
			return err
		}, row(false, true, "none", true)},
	} {
		if got := s.fed(path.run); !slices.Equal(got, path.want) {
			t.Errorf("%s feeds %q, want %q", path.name, got, path.want)
		}
	}
}

// What is known of a stored message goes with its commit: where and when it was said, by whom,
// for whom, and what it is.
//
// covers: RT-113
func TestAMessageFeedsWhatIsKnownOfIt(t *testing.T) {
	s := newSpy(t)
	for i, x := range []struct {
		op        facts.Post
		principal readstate.MemberID // in force
		kind      string
	}{
		{facts.Post{Author: "a"}, "a", "text"},
		{facts.Post{Author: "a", Principal: "b", Kind: "media"}, "b", "media"},
		{facts.Post{Author: "b", Principal: "b", Kind: "error"}, "b", "error"},
	} {
		s.take()
		s.now = s.now.Add(time.Second)
		x.op.OpID = fmt.Sprint(i)
		r := s.post(x.op)
		commits := s.take()
		if len(commits) != 1 || len(commits[0].Events) != 1 || len(commits[0].Messages) != 1 {
			t.Fatalf("a post is fed as %+v", commits)
		}
		c := commits[0]
		ev, ok := c.Events[0].(readstate.MessageEvent)
		if !ok {
			t.Fatalf("a post is fed as %T", c.Events[0])
		}
		message := c.Messages[0]
		if c.Workspace != "w" || message.ScopeID != "c" || message.Scope != ev.Scope {
			t.Errorf("post %d was in %s, %s (%d), and is fed as in %d",
				i, c.Workspace, message.ScopeID, message.Scope, ev.Scope)
		}
		if ev.Seq != r.Seq || ev.Seq != readstate.Seq(i+1) || ev.Revision != r.Revision || ev.ID != r.MessageID {
			t.Errorf("post %d is at %+v, fed is %+v", i, r, ev)
		}
		principal := s.names[ev.Principal]
		if ev.Principal == 0 { // nobody else than
			principal = s.names[ev.Author]
		}
		if s.names[ev.Author] != x.op.Author || principal != x.principal {
			t.Errorf("post %d is fed as by %s for %s", i, s.names[ev.Author], principal)
		}
		if m := message.Message; m.Kind != x.kind || m.Author != x.op.Author || m.Seq != r.Seq {
			t.Errorf("post %d is fed with %+v", i, m)
		}
		if at := s.now.UnixMilli(); ev.At != at || message.Message.CreatedAt != at {
			t.Errorf("post %d of %d is fed as of %d, %d", i, at, ev.At, message.Message.CreatedAt)
		}
	}
}
