package intake

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
	"github.com/tidemark-im/tidemark/unread/snapshot/sqlsnap"
)

func TestMain(m *testing.M) {
	runVictim()
	goleak.VerifyTestMain(m)
}

const space0 readstate.WorkspaceID = "w"

// faulty is a real store that can be told to fail, or to stand still.
type faulty struct {
	*sqlsnap.Store
	mu      sync.Mutex
	failing bool
	lose    bool                   // writes succeed, and nobody hears of it
	cut     int                    // how many writes succeed before all others fail; -1 for no end
	during  func()                 // called in the middle of the next write
	tamper  func(r *snapshot.Row)  // rows as they are loaded
	after   func(q snapshot.Query) // called between a read of the table and its use
	// strangers counts loads by others than the workers, and writes by others than the flusher.
	strangers int
	gate      chan struct{}    // where it is not nil, loads wait for it to be closed
	loads     []snapshot.Query // of members' rows
	upserts   [][]snapshot.Row
}

type snapshotQuery = snapshot.Query

// calledBy reports that one of the functions is on the caller's stack.
func calledBy(names ...string) bool {
	stack := string(debug.Stack())
	return slices.ContainsFunc(names, func(n string) bool { return strings.Contains(stack, n) })
}

var errFire = errors.New("disk on fire")

func (s *faulty) Load(ctx context.Context, q snapshot.Query) ([]snapshot.Row, error) {
	s.mu.Lock()
	failing, gate := s.failing, s.gate
	s.loads = append(s.loads, q)
	if !calledBy("(*Runtime).hydrate", "(*Intake).warm", "(*Intake).barrier", "(*space).atRest") {
		s.strangers++
	}
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if failing {
		return nil, errFire
	}
	rows, err := s.Store.Load(ctx, q)
	for i := range rows {
		if s.tamper != nil {
			s.tamper(&rows[i])
		}
	}
	if s.after != nil {
		s.after(q)
	}
	return rows, err
}

func (s *faulty) Upsert(ctx context.Context, rows []snapshot.Row) error {
	s.mu.Lock()
	failing := s.failing || s.cut == 0
	if s.cut > 0 {
		s.cut--
	}
	s.upserts = append(s.upserts, rows)
	if !calledBy("(*Flusher).flush", "(*Flusher).Barrier") {
		s.strangers++
	}
	s.mu.Unlock()
	if failing {
		return errFire
	}
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
	if s.lose {
		return errors.Join(s.Store.Upsert(ctx, rows), errFire)
	}
	return s.Store.Upsert(ctx, rows)
}

// failAfter has writes fail after the next n; a negative number ends that.
func (s *faulty) failAfter(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = n
}

func (s *faulty) fail(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = on
}

// written takes the rows that were handed over since the last call, in the order of flushes.
func (s *faulty) written() (rows []snapshot.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.upserts {
		rows = append(rows, u...)
	}
	s.upserts = nil
	return rows
}

func (s *faulty) asked() []snapshot.Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.loads
	s.loads = nil
	return q
}

// people are the rosters of a test.
type people struct {
	mu      sync.Mutex
	of      map[readstate.ScopeID][]RosterMember
	at      uint64
	pages   int
	failing bool
}

func (p *people) Roster(_ context.Context, q RosterQuery) (RosterPage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages++
	if p.failing {
		return RosterPage{}, errFire
	}
	page := RosterPage{Generation: p.at}
	for _, m := range p.of[q.Scope] {
		if string(m.ID) <= q.After {
			continue
		}
		if len(page.Members) == q.Limit {
			page.Next = string(page.Members[q.Limit-1].ID)
			break
		}
		page.Members = append(page.Members, m)
	}
	return page, nil
}

func (p *people) set(at uint64, scope readstate.ScopeID, members ...RosterMember) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[readstate.ScopeID][]RosterMember{}
	}
	p.of[scope], p.at = members, at
}

func (p *people) fail(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing = on
}

func (p *people) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.pages
	p.pages = 0
	return n
}

// bench is a intake over a real table, with a clock of its own.
type bench struct {
	t     *testing.T
	path  string
	store *faulty
	cfg   Config
	f     *Intake
	clock atomic.Int64
}

func newBench(t *testing.T, cfg Config) *bench {
	t.Helper()
	path := file(t)
	store, err := sqlsnap.OpenSQLite(t.Context(), path, sqlsnap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, path: path, store: &faulty{Store: store, cut: -1}, cfg: cfg}
	b.clock.Store(1)
	b.cfg.Store, b.cfg.Now = b.store, b.clock.Load
	if b.cfg.Flush.FlushInterval == 0 {
		b.cfg.Flush.FlushInterval = time.Hour // tests flush themselves
	}
	b.open()
	t.Cleanup(func() {
		b.f.Abandon()
		// covers: RT-278 RT-282
		if b.store.strangers > 0 {
			t.Errorf("%d reads and writes of the table from elsewhere", b.store.strangers)
		}
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) open() {
	b.t.Helper()
	f, err := New(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.f = f
	if err := f.Open(space0); err != nil {
		b.t.Fatal(err)
	}
}

// crash loses memory and opens anew.
func (b *bench) crash() {
	b.t.Helper()
	b.f.Abandon()
	b.open()
}

// restart flushes before it does.
func (b *bench) restart() {
	b.t.Helper()
	b.flush()
	b.crash()
}

func (b *bench) flush() {
	b.t.Helper()
	if err := b.f.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// tell feeds events and waits until they are taken in.
func (b *bench) tell(events ...Event) {
	b.t.Helper()
	if err := b.f.Tell(space0, events...); err != nil {
		b.t.Fatal(err)
	}
	b.settle()
}

func (b *bench) settle() {
	b.t.Helper()
	if err := b.f.Settle(b.t.Context(), space0); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) row(m readstate.MemberID, s readstate.ScopeID) (unread.Row, error) {
	return b.f.Runtime().Row(b.t.Context(), space0, m, s)
}

// shows expects a value in a state.
func (b *bench) shows(m readstate.MemberID, s readstate.ScopeID, n uint64, state unread.State) {
	b.t.Helper()
	row, err := b.row(m, s)
	if err != nil || row.Values.Unread != n || row.State != state {
		b.t.Fatalf("%s in %s: %d %s, %v; want %d %s", m, s, row.Values.Unread, row.State, err, n, state)
	}
}

// hides expects no value, and the state.
func (b *bench) hides(m readstate.MemberID, s readstate.ScopeID, state unread.State) {
	b.t.Helper()
	row, err := b.row(m, s)
	if err == nil || row.State != state || row.Values != (readstate.Values{}) {
		b.t.Fatalf("%s in %s: %+v %s, %v; want nothing and %s", m, s, row.Values, row.State, err, state)
	}
}

// room is a channel with members who joined it while it was empty.
func room(s readstate.ScopeID, members ...readstate.MemberID) []Event {
	events := []Event{ScopeStateChanged{Scope: s, Type: readstate.Channel}}
	for _, m := range members {
		events = append(events, MembershipChanged{Scope: s, Member: m, Joined: true})
	}
	return events
}

func msg(s readstate.ScopeID, r readstate.Revision, author readstate.MemberID) MessageStored {
	return MessageStored{Scope: s, Seq: readstate.Seq(r), Revision: r, Author: author, At: int64(r)}
}
