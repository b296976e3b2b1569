package outbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := playRole(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const space readstate.WorkspaceID = "w"

// clock is a clock that stands still unless it is moved.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time       { return time.UnixMilli(c.ms.Load()) }
func (c *clock) move(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// world is a store with its lane, as a server has them, and a clock for the outbox.
type world struct {
	t     testing.TB
	path  string
	store *sqlstore.Store
	lane  *facts.Lane
	clock *clock
	terms map[facts.WorkspaceKey]uint64
	sql   statements
	ops   int
}

// statements remembers what was asked of the database.
type statements struct {
	mu  sync.Mutex
	all []string
	on  func(query string)
}

func (s *statements) note(query string) {
	s.mu.Lock()
	on := s.on
	s.all = append(s.all, query)
	s.mu.Unlock()
	if on != nil {
		on(query)
	}
}

func (s *statements) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}

func (s *statements) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.all...)
}

// newWorld opens a new store with a task "t" whose humans are h0 to h2 and whose agents a0 to a2,
// all of whom watch it. "x" is no part of it and "author" writes.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "facts.db"), clock: &clock{}}
	w.clock.ms.Store(1_700_000_000_000)
	w.open()
	t.Cleanup(w.close)
	ctx := t.Context()
	_, err := w.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: space, Name: "W"})
	w.ok(err)
	w.own()
	for _, m := range []string{"author", "x", "h0", "h1", "h2", "a0", "a1", "a2"} {
		w.member(m)
	}
	w.task("t", "author", "h0", "h1", "h2", "a0", "a1", "a2")
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open() {
	w.t.Helper()
	ctx := context.Background()
	var err error
	w.store, err = sqlstore.OpenSQLite(ctx, w.path, sqlstore.Options{
		OnStatement: func(_ context.Context, query string) { w.sql.note(query) },
	})
	w.ok(err)
	w.lane, err = facts.NewLane(ctx, facts.LaneConfig{
		Store: w.store, Apply: func(facts.Commit) {}, Now: w.clock.now, NewID: w.id,
	})
	w.ok(err)
	w.own()
}

func (w *world) id() string {
	w.ops++
	return fmt.Sprintf("id%d", w.ops)
}

func (w *world) close() {
	if w.lane == nil {
		return
	}
	w.lane.Close()
	if err := w.store.Close(); err != nil {
		w.t.Error(err)
	}
	w.lane = nil
}

// reopen is a restart: another term, and nothing in memory.
func (w *world) reopen() {
	w.t.Helper()
	w.close()
	w.open()
}

// own takes note of the terms.
func (w *world) own() {
	w.t.Helper()
	v, err := w.store.View(context.Background())
	w.ok(err)
	defer v.Close()
	all, err := v.Workspaces(context.Background())
	w.ok(err)
	w.terms = map[facts.WorkspaceKey]uint64{}
	for _, row := range all {
		w.terms[row.Key] = row.Term
	}
}

func (w *world) termOf(key facts.WorkspaceKey) (uint64, bool) {
	term, ok := w.terms[key]
	return term, ok
}

// member makes a member; one whose name begins with an a and a digit is an agent.
func (w *world) member(name string) {
	w.t.Helper()
	agent := len(name) > 1 && name[0] == 'a' && name[1] >= '0' && name[1] <= '9'
	_, err := w.lane.PutMember(w.t.Context(), space, facts.PutMember{
		ID: readstate.MemberID(name), Agent: &agent,
	})
	w.ok(err)
}

// task makes a task whose members watch it, all but the first.
func (w *world) task(id readstate.ScopeID, members ...readstate.MemberID) {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.lane.PutScope(ctx, space, facts.PutScope{ID: id, Type: readstate.Task})
	w.ok(err)
	for i, m := range members {
		_, err := w.lane.PutMembership(ctx, space, facts.PutMembership{Scope: id, Member: m, Trusted: true})
		w.ok(err)
		if i == 0 {
			continue
		}
		_, err = w.lane.SetFollow(ctx, space, facts.SetFollow{
			Scope: id, Member: m, Following: true, Trusted: true,
		})
		w.ok(err)
	}
}

// post writes a message of a task and returns its id.
func (w *world) post(task readstate.ScopeID, mentions ...readstate.MemberID) string {
	w.t.Helper()
	r, err := w.lane.Post(w.t.Context(), space, facts.Post{
		Scope: task, OpID: w.id(), Author: "author", Mentions: mentions,
		By: facts.Actor{Trusted: true},
	})
	w.ok(err)
	return r.MessageID
}

// key returns a member's number.
func (w *world) key(m readstate.MemberID) readstate.MemberKey {
	w.t.Helper()
	v, err := w.store.View(w.t.Context())
	w.ok(err)
	defer v.Close()
	row, ok, err := v.Workspace(w.t.Context(), space)
	w.ok(err)
	info, found, err := v.Member(w.t.Context(), row.Key, m)
	w.ok(err)
	if !ok || !found {
		w.t.Fatalf("no member %q", m)
	}
	return info.Key
}

func (w *world) recipient(m readstate.MemberID) facts.Recipient {
	return facts.AgentRecipient(w.key(m))
}

// counted says that everybody is counted.
func counted(readstate.WorkspaceID) (readstate.LSN, bool) { return 0, false }

// outbox makes an outbox that is moved step by step.
func (w *world) outbox(change ...func(o *Options)) *Outbox {
	w.t.Helper()
	o := Options{
		Store: w.store, Terms: w.termOf, Accounting: Applied(counted), Now: w.clock.now,
		Rand:    func() float64 { return 1 },
		Network: Network{AllowHTTP: true, Allow: AllowPrivate()},
	}
	for _, f := range change {
		f(&o)
	}
	b, err := New(o)
	w.ok(err)
	w.t.Cleanup(b.client.CloseIdleConnections)
	return b
}

// rows works off rows until none is due and returns how many were claimed.
func (w *world) rows(b *Outbox) int {
	w.t.Helper()
	w.ok(b.rescan(w.t.Context()))
	sum := 0
	for {
		n, _, err := b.workRows(w.t.Context())
		w.ok(err)
		if n == 0 {
			return sum
		}
		sum += n
	}
}

// send sends what is due, once, and settles it.
func (w *world) send(b *Outbox) int {
	w.t.Helper()
	ctx := w.t.Context()
	b.senders.attempts, b.senders.stop = ctx, ctx
	n, _, err := b.claimSends(ctx)
	w.ok(err)
	b.senders.all.Wait()
	w.settle(b)
	return n
}

func (w *world) settle(b *Outbox) {
	for {
		select {
		case i := <-b.settler.in:
			b.settler.commit(w.t.Context(), b.settler.gather(i))
		default:
			return
		}
	}
}

// waiting returns the ids of the messages that an agent's wakes are about.
func (w *world) waiting(agent readstate.MemberID) []string {
	w.t.Helper()
	wakes, err := w.store.Wakes(w.t.Context(), w.recipient(agent), 0, MaxWakes)
	w.ok(err)
	var out []string
	for i := range wakes {
		out = append(out, wakes[i].ID)
	}
	return out
}

// state is what is stored of a row.
type state struct {
	state     facts.EffectState
	failures  int
	deferrals int
	due       int64
	err       string
}

// states returns the states of all rows by the id of their message or activity; rows without
// one are left out.
func (w *world) states() map[string]state {
	w.t.Helper()
	out := map[string]state{}
	rows := w.query(`SELECT CAST(o.id AS TEXT), s.state, s.failures, s.deferrals,
    coalesce(s.due_at, 0), s.error
  FROM outbox o JOIN outbox_state s ON s.workspace = o.workspace AND s.event = o.event`)
	for _, r := range rows {
		out[r[0].(string)] = state{
			state: facts.EffectState(r[1].(int64)), failures: int(r[2].(int64)),
			deferrals: int(r[3].(int64)), due: r[4].(int64), err: r[5].(string),
		}
	}
	return out
}

// errInjected is a failure that a test asked for.
var errInjected = errors.New("injected")
