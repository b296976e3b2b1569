package outbox

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
)

// server is a whole engine with an outbox beside it, in a bubble.
type server struct {
	*world
	engine *tidemark.Engine
	space  *tidemark.Workspace
	outbox *Outbox
	town   *town
	ended  chan error
}

func startServer(t testing.TB, path string) *server {
	t.Helper()
	ctx := t.Context()
	store, err := sqlstore.OpenSQLite(ctx, path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := tidemark.OpenStore(ctx, store, tidemark.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.CreateWorkspace(ctx, space, "W")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		world:  &world{t: t, path: path, store: store, clock: &clock{}},
		engine: engine, space: engine.Workspace(space), town: newTown(),
		ended: make(chan error, 1),
	}
	s.own()
	s.town.set("agents", well)
	s.outbox = s.world.outbox(func(o *Options) {
		o.Now, o.Badges = time.Now, EngineBadges(engine)
		o.Accounting = Applied(s.applied)
	})
	s.outbox.client.Transport = s.town
	go func() { s.ended <- s.outbox.Run(context.Background()) }()
	return s
}

// applied is the LSN that the engine's memory of the workspace shows.
func (s *server) applied(readstate.WorkspaceID) (readstate.LSN, bool) {
	sum, err := s.space.Summary(context.Background(), "h0")
	return sum.LSN, err == nil
}

func (s *server) stop() {
	s.outbox.Close()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
	if err := s.engine.Close(); err != nil {
		s.t.Error(err)
	}
}

func (s *server) restart() *server {
	s.t.Helper()
	s.stop()
	again := startServer(s.t, s.path)
	again.ops = s.ops
	return again
}

func (s *server) found() {
	s.t.Helper()
	ctx := s.t.Context()
	yes := true
	for _, m := range []readstate.MemberID{"author", "h0", "h1", "reader", "a0", "a1"} {
		op := facts.PutMember{ID: m}
		if m[0] == 'a' && m != "author" {
			op.Agent = &yes
		}
		_, err := s.space.PutMember(ctx, op)
		s.ok(err)
	}
	_, err := s.space.PutScope(ctx, facts.PutScope{ID: "t", Type: readstate.Task})
	s.ok(err)
	for _, m := range []readstate.MemberID{"author", "h0", "h1", "reader", "a0", "a1"} {
		_, err := s.space.PutMembership(ctx, facts.PutMembership{Scope: "t", Member: m, Trusted: true})
		s.ok(err)
		if m == "author" || m == "reader" {
			continue
		}
		_, err = s.space.SetFollow(ctx, facts.SetFollow{Scope: "t", Member: m, Following: true, Trusted: true})
		s.ok(err)
	}
	for _, a := range []readstate.MemberID{"a0", "a1"} {
		s.endpoint(s.outbox, a, "http://agents/"+string(a))
	}
}

func (s *server) say() {
	s.t.Helper()
	_, err := s.space.Post(s.t.Context(), facts.Post{
		Scope: "t", OpID: s.id(), Author: "author", By: facts.Actor{Trusted: true},
	})
	s.ok(err)
	s.outbox.Poke(1)
	pass(time.Second)
	synctest.Wait()
}

// counts are what a member sees of the task.
func (s *server) counts(m readstate.MemberID) string {
	s.t.Helper()
	row, err := s.space.Row(s.t.Context(), m, "t")
	s.ok(err)
	return fmt.Sprintf("%d messages, %d activities", row.Values.Unread, row.Values.Activity)
}

// The humans of a task's message are counted once and its agents are woken once, and likewise
// with an activity, whatever is tried again and restarted in between.
//
// covers: RT-178, RT-199, RT-466, RT-467
func TestTaskFromEndToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, filepath.Join(t.TempDir(), "facts.db"))
		s.found()
		check := func(when string, counts string, wakes int) {
			t.Helper()
			for _, m := range []readstate.MemberID{"h0", "h1"} {
				if got := s.counts(m); got != counts {
					t.Errorf("%s: %s has %s, want %s", when, m, got, counts)
				}
			}
			for _, m := range []readstate.MemberID{"a0", "a1", "reader", "author"} {
				if got := s.counts(m); got != "0 messages, 0 activities" {
					t.Errorf("%s: %s has %s", when, m, got)
				}
			}
			for _, a := range []string{"a0", "a1"} {
				if got, _ := s.town.got(a); len(got) != wakes {
					t.Errorf("%s: %s was woken by %v, want %d", when, a, got, wakes)
				}
			}
		}
		s.say()
		check("after a message", "1 messages, 0 activities", 1)
		s.assignIn(s.space, "h0")
		check("after an activity", "1 messages, 1 activities", 2)
		// Rows that are worked off again change nothing: neither counts nor wakes.
		s.exec(`DELETE FROM outbox_state`)
		s.exec(`UPDATE outbox_progress SET through = 0`)
		s.say()
		for _, a := range []string{"a0", "a1"} {
			got, _ := s.town.got(a)
			if got = slices.Compact(slices.Sorted(slices.Values(got))); len(got) != 3 {
				t.Errorf("%s was woken by %v", a, got)
			}
		}
		for _, m := range []readstate.MemberID{"h0", "h1"} {
			if got := s.counts(m); got != "2 messages, 1 activities" {
				t.Errorf("%s has %s after a replay", m, got)
			}
		}
		s = s.restart()
		pass(time.Hour)
		if got := s.counts("h0"); got != "2 messages, 1 activities" {
			t.Errorf("after a restart: %s", got)
		}
		s.stop()
	})
}

func (s *server) assignIn(space *tidemark.Workspace, to readstate.MemberID) {
	s.t.Helper()
	_, err := space.PutTask(s.t.Context(), facts.PutTask{
		Scope: "t", Actor: "author", Assignee: &to, By: facts.Actor{Trusted: true},
	})
	s.ok(err)
	s.outbox.Poke(1)
	pass(time.Second)
	synctest.Wait()
}

// A row marked as delivered is of a commit whose counts are durable: whoever comes after a crash
// is shown them.
//
// covers: RT-217
func TestDeliveredIsCountedAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, filepath.Join(t.TempDir(), "facts.db"))
		s.found()
		for n := 1; n <= 3; n++ {
			s.say()
			if rows := s.query(`SELECT 1 FROM outbox_state WHERE state = 5`); len(rows) != n {
				t.Errorf("%d rows are delivered", len(rows))
			}
			s = s.restart()
			for _, m := range []readstate.MemberID{"h0", "h1"} {
				if got := s.counts(m); got != fmt.Sprintf("%d messages, 0 activities", n) {
					t.Errorf("%s has %s after restart %d", m, got, n)
				}
			}
		}
		s.stop()
	})
}

// Webhooks follow the badges of a real engine, reads included.
func TestWebhooksOfAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, filepath.Join(t.TempDir(), "facts.db"))
		s.found()
		m := uint32(s.key("h0"))
		s.town.set("hooks", after(0, 500)) // they stay where the test finds them
		s.ok(s.outbox.PutWebhook(t.Context(), space, Webhook{
			ID: "hook", Endpoint: Endpoint{URL: "http://hooks/", Secret: secretText},
			Threshold: 2, Idle: time.Minute, Members: []readstate.MemberID{"h0"},
		}))
		pass(time.Second)
		s.say()
		s.expect("one message")
		s.say()
		got := s.fired()
		if len(got) != 1 || got[0][:len("threshold m")] != "threshold m" {
			t.Errorf("two messages: %q", got)
		}
		pass(55 * time.Second)
		s.expect("almost idle")
		// A read that leaves something unread begins the time anew.
		rev := readstate.Revision(1)
		_, err := s.space.MarkRead(t.Context(), facts.MarkRead{
			Scope: "t", Member: "h0", Revision: &rev, Trusted: true,
		})
		s.ok(err)
		pass(30 * time.Second)
		s.expect("read in time")
		pass(31 * time.Second)
		if got := s.fired(); len(got) != 1 || got[0][:4] != "idle" || got[0][len(got[0])-3:] != ": 1" {
			t.Errorf("idle: %q (member %d)", got, m)
		}
		s.say()
		if got := s.fired(); len(got) != 1 || got[0][:9] != "threshold" {
			t.Errorf("up again: %q", got)
		}
		s = s.restart()
		s.town.set("hooks", after(0, 500))
		pass(time.Hour)
		s.expect("a restart repeats nothing")
		s.stop()
	})
}

// What a stream was told before the barrier failed stays, and nothing is told again by the rows'
// retries.
//
// covers: RT-215
func TestDeltaIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, filepath.Join(t.TempDir(), "facts.db"))
		s.found()
		s.outbox.Close()
		s.ok(<-s.ended)
		port := &spy{}
		port.set(StageUpsert, errInjected)
		s.outbox = s.world.outbox(func(o *Options) {
			o.Now, o.Barrier, o.RequireBarrier = time.Now, port, true
		})
		s.outbox.client.Transport = s.town
		go func() { s.ended <- s.outbox.Run(context.Background()) }()
		watch, err := s.space.Watch("h0")
		s.ok(err)
		defer watch.Close()
		_, err = s.space.Summary(t.Context(), "h0")
		s.ok(err)
		s.say()
		told := watch.Next(100)
		if len(told) != 1 || told[0].Row.Values.Unread != 1 {
			t.Fatalf("%+v", told)
		}
		pass(time.Minute)
		port.set(0, nil)
		pass(time.Minute)
		if again := watch.Next(100); len(again) != 0 {
			t.Errorf("told again: %+v", again)
		}
		if got, _ := s.town.got("a0"); len(got) != 1 || len(port.take()) < 3 {
			t.Errorf("a0 was woken by %v", got)
		}
		s.stop()
	})
}
