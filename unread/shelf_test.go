package unread

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
	"github.com/tidemark-im/tidemark/unread/snapshot/sqlsnap"
)

// shelf answers a simulation's pages from snapshot rows in a real table instead of facts. What
// happens is told to its book when it is committed, before memory hears of it; flushes and
// restarts come at any moment. A nil shelf leaves the facts where they were.
type shelf struct {
	store    *sqlsnap.Store
	space    readstate.WorkspaceID
	facts    *mirror
	book     *snapshot.Book
	restarts int
	flushes  int
	repeated uint64 // by the books before a restart
}

// mirrorNames knows the ids of the mirror by their numbers.
type mirrorNames struct{}

func (mirrorNames) Member(k readstate.MemberKey) readstate.MemberID {
	return memberID(model.MemberID(k))
}

func (mirrorNames) MemberKey(id readstate.MemberID) readstate.MemberKey {
	return memberKey(model.MemberID(id[0]-'A') + 1)
}

func (mirrorNames) Scope(k readstate.ScopeKey) readstate.ScopeID {
	return scopeID(model.ScopeID(k - 100))
}

func (mirrorNames) ScopeKey(id readstate.ScopeID) readstate.ScopeKey {
	n, err := strconv.Atoi(string(id[1:]))
	if err != nil {
		panic(err)
	}
	return scopeKey(model.ScopeID(n))
}

func newShelfStore(t *testing.T) *sqlsnap.Store {
	t.Helper()
	store, err := sqlsnap.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "snap.db"), sqlsnap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func (h *shelf) open(facts *mirror) {
	if h != nil {
		h.facts = facts
		h.book = h.newBook()
	}
}

// newBook lets few rows stay, so that most are read from the table again.
func (h *shelf) newBook() *snapshot.Book {
	return snapshot.NewBook(h.space, h.facts.lsn, mirrorNames{}, h.facts.now,
		snapshot.Limits{Backlog: math.MaxInt, Cached: 3})
}

// keep tells the book of a commit and returns the events for memory.
func (h *shelf) keep(t *testing.T, lsn readstate.LSN, events []readstate.Event) []readstate.Event {
	if h == nil {
		return events
	}
	if needs := h.book.Needs(events); len(needs) > 0 {
		if err := h.book.Fetch(context.Background(), h.store, needs); err != nil {
			t.Fatal(err)
		}
	}
	for _, ev := range events {
		if ev, ok := ev.(readstate.ScopeEvent); ok {
			at := h.facts.offset[model.ScopeID(ev.Info.Key-100)]
			h.book.Begin(ev.Info, readstate.ScopeRanks{Head: at, Floor: at}, true)
		}
	}
	out, err := h.book.Apply(lsn, events)
	if err != nil {
		t.Fatal(err)
	}
	h.book.Trim()
	return out
}

func (h *shelf) page(facts *mirror, r PageRequest) (readstate.Page, error) {
	if h == nil {
		return facts.Page(context.Background(), r)
	}
	if facts.failing[r.Member] > 0 {
		facts.failing[r.Member]--
		return readstate.Page{}, errors.New("disk on fire")
	}
	return h.book.Page(context.Background(), h.store, snapshot.Request{
		Member: r.Member, Cursor: r.Cursor, Limit: r.Limit, Only: r.Only,
	})
}

func (h *shelf) flush(t *testing.T) {
	h.flushes++
	for n := h.book.Backlog(); n > 0; {
		batch := h.book.Take(3)
		n -= len(batch.Rows)
		if h.flushes%5 == 0 && n > 0 {
			h.book.Failed(batch)
			return
		}
		if err := h.store.Upsert(context.Background(), batch.Rows); err != nil {
			t.Fatal(err)
		}
		h.book.Done(batch)
	}
}

// ranks takes from memory when a scope changed last, since an event that tells nothing new does not
// count.
func (h *shelf) ranks(
	st *state, want func(model.ScopeID) readstate.ScopeRanks,
) func(model.ScopeID) readstate.ScopeRanks {
	return func(id model.ScopeID) readstate.ScopeRanks {
		r := want(id)
		if s := st.scopeByKey[scopeKey(id)]; s != none {
			r.LastLSN = st.ranks(s).LastLSN
		}
		return r
	}
}

// restart flushes and then loses all memory at once.
func (s *simulation) restart() error {
	s.shelf.flush(s.t)
	for s.shelf.book.Backlog() > 0 {
		s.shelf.flush(s.t)
	}
	for s.applied < len(s.history)-1 {
		if err := s.apply(); err != nil {
			return err
		}
	}
	s.shelf.restarts++
	s.shelf.repeated += s.shelf.book.Stats().Repeated
	s.shelf.book = s.shelf.newBook()
	s.r.Open(testSpace, readstate.LSN(s.applied))
	s.ws, _ = s.r.workspace(testSpace)
	s.flights, s.streams = nil, nil
	return nil
}

const (
	snapshotComparisons      = 120_000
	shortSnapshotComparisons = 15_000
)

// The same histories as with facts, but all that outlives memory is the snapshot table: rows and
// frontiers that were written by a flush, in pieces, some of which fail. As long as nothing is
// lost, every value is that of the oracle, whatever was let go, read again, or restarted.
// covers: RT-267, RT-271, RT-279, RT-280, RT-320, RT-332, RT-334, RT-352, RT-353
func TestSnapshotRaces(t *testing.T) {
	t.Parallel()
	goal := snapshotComparisons
	if testing.Short() {
		goal = shortSnapshotComparisons
	}
	seeds, _ := strconv.ParseUint(os.Getenv("TIDEMARK_SEEDS"), 10, 64) // at least so many
	store := newShelfStore(t)
	var sum Stats
	comparisons, restarts, flushes := 0, 0, 0
	for seed := uint64(0); comparisons < goal || seed < seeds; seed++ {
		h := &shelf{store: store, space: readstate.WorkspaceID(fmt.Sprint("w", seed))}
		n, stats := simulate(t, seed, 150, h)
		comparisons += n
		restarts += h.restarts
		flushes += h.flushes
		sum.add(stats)
		if x := h.book.Stats(); x.Contradictions+x.Damaged+x.Lost+x.Refused > 0 {
			t.Fatalf("seed %d: %+v", seed, x)
		}
	}
	t.Logf("%d comparisons, %d pages, %d restarts, %d flushes, %d evictions, %d gaps, %d deltas",
		comparisons, sum.Pages, restarts, flushes, sum.Evicted, sum.Gaps, sum.Deltas)
	if restarts == 0 || flushes == 0 || sum.Evicted == 0 || sum.Gaps == 0 || sum.Deltas == 0 {
		t.Error("something did not happen")
	}
}
