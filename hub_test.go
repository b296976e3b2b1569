package tidemark_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
)

// gated is a real store whose commits a test can hold open or refuse.
type gated struct {
	facts.Store

	mu     sync.Mutex
	before func() error // of the next commits; nil lets them through
}

func (g *gated) Begin(ctx context.Context) (facts.Tx, error) {
	tx, err := g.Store.Begin(ctx)
	return gatedTx{tx, g}, err
}

func (g *gated) onCommit(before func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = before
}

type gatedTx struct {
	facts.Tx
	gate *gated
}

func (t gatedTx) Commit(ctx context.Context) error {
	t.gate.mu.Lock()
	before := t.gate.before
	t.gate.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return errors.Join(err, t.Rollback())
		}
	}
	return t.Tx.Commit(ctx)
}

// statements records what a store is asked.
type statements struct {
	mu   sync.Mutex
	seen []string
}

func (s *statements) note(_ context.Context, query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, query)
}

// take returns what was asked since the last take.
func (s *statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.seen
	s.seen = nil
	return out
}

// count takes what was asked and counts it, without the beginnings and ends of transactions and
// without the look for broken erasures, which an engine takes some time after its start.
func (s *statements) count() int {
	n := 0
	for _, q := range s.take() {
		bare := q == "BEGIN" || q == "ROLLBACK" || q == "COMMIT" || strings.HasPrefix(q, "BEGIN ")
		if !bare && !strings.Contains(q, "erased = 1") {
			n++
		}
	}
	return n
}

// hub is an engine with channel c and the members a to d in it.
type hub struct {
	*tidemark.Workspace
	t      *testing.T
	engine *tidemark.Engine
	gate   *gated
	sql    *statements
	path   string
	posts  int
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{t: t, path: filepath.Join(t.TempDir(), "facts.db")}
	h.open()
	if _, err := h.engine.CreateWorkspace(t.Context(), "w", ""); err != nil {
		t.Fatal(err)
	}
	h.channel("c", "a", "b", "c", "d")
	return h
}

func (h *hub) open() {
	h.t.Helper()
	h.sql = &statements{}
	store, err := sqlstore.OpenSQLite(h.t.Context(), h.path,
		sqlstore.Options{OnStatement: h.sql.note, Unsafe: true})
	if err != nil {
		h.t.Fatal(err)
	}
	h.gate = &gated{Store: store}
	engine, err := tidemark.OpenStore(h.t.Context(), h.gate,
		tidemark.Options{SweepEvery: time.Hour})
	if err != nil {
		h.t.Fatal(err)
	}
	h.engine, h.Workspace = engine, engine.Workspace("w")
	h.t.Cleanup(func() { _ = engine.Close() }) // a test may have closed it before
}

func (h *hub) reopen() {
	h.t.Helper()
	if err := h.engine.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.open()
}

func (h *hub) channel(id readstate.ScopeID, members ...readstate.MemberID) {
	h.t.Helper()
	ctx := h.t.Context()
	if _, err := h.PutScope(ctx, facts.PutScope{ID: id, Type: readstate.Channel}); err != nil {
		h.t.Fatal(err)
	}
	for _, m := range members {
		op := facts.PutMembership{Scope: id, Member: m, CreateMember: true}
		if _, err := h.PutMembership(ctx, op); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *hub) post(author readstate.MemberID, mentions ...readstate.MemberID) facts.Receipt {
	h.t.Helper()
	h.posts++
	r, err := h.Post(h.t.Context(), facts.Post{
		Scope: "c", OpID: fmt.Sprint("post-", h.posts), Author: author, Mentions: mentions,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *hub) unread(m readstate.MemberID) uint64 {
	h.t.Helper()
	row, err := h.Row(h.t.Context(), m, "c")
	if err != nil {
		h.t.Fatal(err)
	}
	return row.Values.Unread
}

func (h *hub) read(m readstate.MemberID, r readstate.Revision) tidemark.ReadState {
	h.t.Helper()
	state, err := h.MarkRead(h.t.Context(), facts.MarkRead{Scope: "c", Member: m, Revision: &r})
	if err != nil {
		h.t.Fatal(err)
	}
	return state
}
