package inbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	if path := os.Getenv(workerEnv); path != "" {
		fmt.Fprintln(os.Stderr, playWorker(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const space readstate.WorkspaceID = "w"

// errInjected is a failure that a test asked for.
var errInjected = errors.New("injected")

// clock is a clock that stands still unless it is moved.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time       { return time.UnixMilli(c.ms.Load()) }
func (c *clock) move(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// world is a store with its lane, as a server has them, with the accounts Ada, Bo, Cy and Dee.
type world struct {
	t     testing.TB
	path  string // of the file, and
	facts string // the database by its name
	store *sqlstore.Store
	lane  *facts.Lane
	clock *clock
	mu    sync.Mutex
	terms map[facts.WorkspaceKey]uint64
	told  func([]facts.InboxChange)
	ops   atomic.Int64
	count func(query string) // told of every statement, where set
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "facts.db"), clock: &clock{}}
	w.facts = "sqlite:" + w.path
	if db, ok := serverOf(t); ok {
		w.facts = db.Facts
	}
	w.clock.ms.Store(1_700_000_000_000)
	w.open()
	t.Cleanup(w.close)
	_, err := w.lane.PutWorkspace(t.Context(), facts.PutWorkspace{ID: space, Name: "W"})
	w.ok(err)
	w.own()
	for _, m := range []string{"Ada", "Bo", "Cy", "Dee"} {
		w.member(readstate.MemberID(m), true)
	}
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
	w.store, err = sqlstore.Open(ctx, w.facts, sqlstore.Options{
		Unsafe: true, OnStatement: func(_ context.Context, query string) {
			if w.count != nil {
				w.count(query)
			}
		},
	})
	w.ok(err)
	w.lane, err = facts.NewLane(ctx, facts.LaneConfig{
		Store: w.store, Now: w.clock.now, NewID: w.id,
		Apply: func(c facts.Commit) {
			w.mu.Lock()
			told := w.told
			w.mu.Unlock()
			if told != nil && len(c.Inboxes) > 0 {
				told(c.Inboxes)
			}
		},
	})
	w.ok(err)
	w.own()
}

func (w *world) id() string { return fmt.Sprintf("id%d", w.ops.Add(1)) }

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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.terms = map[facts.WorkspaceKey]uint64{}
	for _, row := range all {
		w.terms[row.Key] = row.Term
	}
}

func (w *world) termOf(key facts.WorkspaceKey) (uint64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	term, ok := w.terms[key]
	return term, ok
}

// member makes a member, or changes whether they are active.
func (w *world) member(id readstate.MemberID, active bool) {
	w.t.Helper()
	_, err := w.lane.PutMember(w.t.Context(), space, facts.PutMember{ID: id, Active: &active})
	w.ok(err)
}

func (w *world) block(m, other readstate.MemberID, blocked bool) {
	w.t.Helper()
	_, err := w.lane.SetBlock(w.t.Context(), space, facts.SetBlock{
		Member: m, Other: other, Blocked: blocked,
	})
	w.ok(err)
}

// scope makes a scope that members have joined.
func (w *world) scope(id readstate.ScopeID, kind readstate.ScopeType, members ...readstate.MemberID) {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.lane.PutScope(ctx, space, facts.PutScope{ID: id, Type: kind})
	w.ok(err)
	for _, m := range members {
		_, err := w.lane.PutMembership(ctx, space, facts.PutMembership{Scope: id, Member: m, Trusted: true})
		w.ok(err)
	}
}

// send sends to Ada's inbox.
func (w *world) send(sender readstate.MemberID) facts.Receipt {
	w.t.Helper()
	r, err := w.lane.SendInbox(w.t.Context(), space, facts.SendInbox{
		To: "Ada", Sender: sender, OpID: w.id(), Text: "hello", By: facts.Actor{Trusted: true},
	})
	w.ok(err)
	return r
}

// post writes a message and returns its id.
func (w *world) post(s readstate.ScopeID, author readstate.MemberID, named ...readstate.MemberID) string {
	w.t.Helper()
	r, err := w.lane.Post(w.t.Context(), space, facts.Post{
		Scope: s, OpID: w.id(), Author: author, Mentions: named, By: facts.Actor{Trusted: true},
	})
	w.ok(err)
	return r.MessageID
}

func (w *world) remove(s readstate.ScopeID, message string) {
	w.t.Helper()
	_, err := w.lane.Remove(w.t.Context(), space, facts.Remove{
		Scope: s, Message: message, OpID: w.id(),
	})
	w.ok(err)
}

// key returns a member's number.
func (w *world) key(m readstate.MemberID) readstate.MemberKey {
	w.t.Helper()
	v, err := w.store.View(w.t.Context())
	w.ok(err)
	defer v.Close()
	row, _, err := v.Workspace(w.t.Context(), space)
	w.ok(err)
	info, found, err := v.Member(w.t.Context(), row.Key, m)
	w.ok(err)
	if !found {
		w.t.Fatalf("no member %q", m)
	}
	return info.Key
}

// inbox makes an inbox that is moved step by step. It is told of commits.
func (w *world) inbox(change ...func(o *Options)) *Inbox {
	w.t.Helper()
	o := Options{Store: w.store, Terms: w.termOf, Now: w.clock.now}
	for _, f := range change {
		f(&o)
	}
	b, err := New(o)
	w.ok(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = func(changes []facts.InboxChange) {
		for _, c := range changes {
			b.Poke(c.Member)
		}
	}
	return b
}

func own(m readstate.MemberID) Access { return Access{Workspace: space, Member: m, By: m} }

var ada = own("Ada")

func (w *world) open1(b *Inbox) Opening {
	w.t.Helper()
	out, err := b.Open(w.t.Context(), ada)
	w.ok(err)
	return out
}

func (w *world) ack(b *Inbox, snapshot string) Receipt {
	w.t.Helper()
	r, err := b.Acknowledge(w.t.Context(), ada, Ack{OpID: w.id(), Snapshot: snapshot})
	w.ok(err)
	return r
}

// work projects everything that is known to be behind.
func (w *world) work(b *Inbox) int {
	w.t.Helper()
	n, err := b.Work(w.t.Context())
	w.ok(err)
	return n
}

// step projects one more item of Ada's inbox.
func (w *world) step(b *Inbox) {
	w.t.Helper()
	was := b.Limits.BatchRows
	b.Limits.BatchRows = 1
	defer func() { b.Limits.BatchRows = was }()
	key := w.key("Ada")
	_, err := b.batch(w.t.Context(), facts.WorkspaceKey(key>>32), []due{{key, false}})
	w.ok(err)
}

// badge writes Ada's badge down: H A P tail, then who counts.
func (w *world) badge(b *Inbox) string {
	w.t.Helper()
	out, err := b.Badge(w.t.Context(), ada)
	w.ok(err)
	return textOf(out)
}

func textOf(b Badge) string {
	names := make([]string, len(b.Senders))
	for i, s := range b.Senders {
		names[i] = string(s)
	}
	return fmt.Sprintf("H%d A%d P%d tail %d: %s", b.Accepted, b.Acknowledged, b.Projected, b.TailRows,
		strings.Join(names, " "))
}

func (w *world) wantBadge(b *Inbox, want string) {
	w.t.Helper()
	if got := w.badge(b); got != want {
		w.t.Errorf("badge %q, want %q", got, want)
	}
}

// maxima writes down the projection of Ada's inbox.
func (w *world) maxima() string {
	w.t.Helper()
	rows := w.query(`SELECT m.id, x.position FROM inbox_sender_maxima x
  JOIN members m ON m.member = x.sender WHERE x.member = ? ORDER BY m.id`, int64(w.key("Ada")))
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s%d", r[0], r[1]))
	}
	return strings.Join(out, " ")
}

// all is everything that is stored of inboxes.
func (w *world) all() string {
	w.t.Helper()
	var out strings.Builder
	for _, table := range []string{
		"inboxes", "inbox_positions", "inbox_messages", "inbox_projections", "inbox_sender_maxima",
		"inbox_snapshots", "inbox_acks", "operations", "conversation_member_states", "scope_messages",
	} {
		rows := w.query("SELECT * FROM " + table)
		lines := make([]string, len(rows))
		for i, r := range rows {
			lines[i] = fmt.Sprint(r...)
		}
		slices.Sort(lines)
		fmt.Fprintln(&out, table, lines)
	}
	return out.String()
}
