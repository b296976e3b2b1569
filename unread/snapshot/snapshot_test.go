package snapshot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/readstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRevisions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s revisions
		all := map[readstate.Revision]bool{}
		for range rng.IntN(80) {
			from := readstate.Revision(rng.IntN(3 * readstate.BlockSize))
			for r := from; r < from+readstate.Revision(1+rng.IntN(9)); r++ {
				if s.add(r) == all[r] {
					t.Fatalf("%d was there: %t", r, all[r])
				}
				all[r] = true
			}
			gone := readstate.Revision(rng.IntN(3 * readstate.BlockSize))
			if s.remove(gone) != all[gone] {
				t.Fatalf("%d was not there", gone)
			}
			delete(all, gone)
		}
		base := readstate.Revision(rng.IntN(3 * readstate.BlockSize))
		check := func(s *revisions) {
			t.Helper()
			var above uint64
			for r := range all {
				if !s.has(r) {
					t.Fatalf("%d is missing", r)
				}
				if r > base {
					above++
				}
			}
			if got := s.above(base); got != above {
				t.Fatalf("%d above %d, want %d", got, base, above)
			}
		}
		check(&s)
		back, err := unpackRevisions(s.pack())
		if err != nil {
			t.Fatal(err)
		}
		check(&back)
		s.trimBelow(base)
		for r := range all {
			if s.has(r) != (r > base) {
				t.Fatalf("after a trim to %d, %d is there: %t", base, r, s.has(r))
			}
		}
	}
	for _, text := range []string{"*", "AQ", "AAA", "//////////8BAQ", "AP///////////wE"} {
		if _, err := unpackRevisions(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// A flusher's budgets are positive.
// covers: RT-409 RT-443 RT-444
func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {FlushInterval: -1}, {FlushBatchSize: -1}, {FlushRetry: -1}, {FlushTimeout: -1}} {
		if c != (Config{}) {
			c.Store = noStore{}
		}
		if _, err := NewFlusher(c, nil, nil); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

type noStore struct{ Store }

// What needs facts that nobody has here is refused, and what was not fetched is no guess.
func TestRefusals(t *testing.T) {
	b := NewBook("w", 1, nil, func() int64 { return 0 }, Limits{Backlog: 1, Cached: 1})
	if _, err := b.Apply(2, []readstate.Event{readstate.BlockEvent{Member: 1, Other: 2}}); !errors.Is(err, ErrNotLoaded) {
		t.Error(err)
	}
	if _, err := b.Apply(3, []readstate.Event{readstate.MessageEvent{Scope: 1, Seq: 1, Revision: 1}}); !errors.Is(err, ErrNotLoaded) {
		t.Error(err)
	}
	b.Begin(readstate.ScopeInfo{Key: 1, ID: "c", Type: readstate.Channel}, readstate.ScopeRanks{}, true)
	if _, err := b.Apply(4, []readstate.Event{readstate.MessageEvent{Scope: 1, Seq: 1, Revision: 1, Author: 7}}); !errors.Is(err, ErrNotLoaded) {
		t.Error(err)
	}
	if _, err := b.Apply(5, []readstate.Event{readstate.MessageEvent{Scope: 1, Seq: 1, Revision: 1 << 50}}); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if s, _ := b.Scope(1); s.Ranks.Head != 0 {
		t.Errorf("a refused message moved the head to %d", s.Ranks.Head)
	}
}

// spelled are names that spell their numbers.
type spelled struct{}

func (spelled) Member(k readstate.MemberKey) readstate.MemberID {
	return readstate.MemberID(fmt.Sprint(k))
}

func (spelled) MemberKey(id readstate.MemberID) (k readstate.MemberKey) {
	_, _ = fmt.Sscan(string(id), &k)
	return k
}

func (spelled) Scope(k readstate.ScopeKey) readstate.ScopeID { return readstate.ScopeID(fmt.Sprint(k)) }

func (spelled) ScopeKey(id readstate.ScopeID) (k readstate.ScopeKey) {
	_, _ = fmt.Sscan(string(id), &k)
	return k
}

// filled is a book with members 1 to n in scope 7, all of them dirty.
func filled(t *testing.T, kind readstate.ScopeType, n int, limits Limits) *Book {
	t.Helper()
	limits.Held = 10
	b := NewBook("w", 1, spelled{}, func() int64 { return 0 }, limits)
	b.Begin(readstate.ScopeInfo{Key: 7, ID: "7", Type: kind}, readstate.ScopeRanks{}, true)
	for m := readstate.MemberKey(1); m <= readstate.MemberKey(n); m++ {
		b.takePerson(m, nil, true)
		join(t, b, m)
	}
	return b
}

func join(t *testing.T, b *Book, m readstate.MemberKey) {
	t.Helper()
	row := readstate.MemberRow{
		Scope: 7, Member: m, MemberID: spelled{}.Member(m),
		Row: readstate.Row{Joined: true, Visible: true, Epoch: 1, Effective: 1},
	}
	apply(t, b, readstate.MemberEvent{MemberRow: row})
}

func apply(t *testing.T, b *Book, events ...readstate.Event) {
	t.Helper()
	if _, err := b.Apply(b.lsn+1, events); err != nil {
		t.Fatal(err)
	}
}

func said(batch Batch) (keys []string) {
	for i := range batch.Rows {
		keys = append(keys, string(batch.Rows[i].Member)+"/"+string(batch.Rows[i].Scope))
	}
	return keys
}

// A row that is written again and again leaves no trace behind: what a book remembers in order to let
// rows go is bounded by the rows it has.
func TestTracesAreBounded(t *testing.T) {
	b := filled(t, readstate.Channel, 3, Limits{Backlog: 9, Cached: 9, HeldTotal: 9})
	for range 2_000 {
		join(t, b, 1)
		b.Done(b.Take(9))
	}
	if n := len(b.clean); n > 2*(3+3)+minClean+1 {
		t.Errorf("%d traces of 3 rows and 3 members", n)
	}
	if n := len(b.queue); n > 0 || b.Backlog() != 0 {
		t.Errorf("%d places of nothing", n)
	}
}

// No batch is larger than its limit, whatever its rows rely on, and every dirty row is in one of them:
// a channel's frontier no later than its rows, a task's no earlier.
// covers: RT-273 RT-436 RT-267 RT-271 RT-272
func TestBatches(t *testing.T) {
	for _, kind := range []readstate.ScopeType{readstate.Channel, readstate.Task} {
		for limit := 1; limit <= 7; limit++ {
			b := filled(t, kind, 5, Limits{Backlog: 99, Cached: 99, HeldTotal: 9})
			join(t, b, 3) // dirty already: once is enough
			if err := b.Blocking(1, []readstate.MemberKey{2, 3}); err != nil {
				t.Fatal(err)
			}
			apply(t, b, readstate.BlockEvent{Member: 1, Other: 2, Blocked: true},
				readstate.BlockEvent{Member: 1, Other: 3, Blocked: true})
			at := map[string]int{}
			order := 0
			for b.Backlog() > 0 {
				batch := b.Take(limit)
				if len(batch.Rows) == 0 || len(batch.Rows) > limit {
					t.Fatalf("%v, limit %d: a batch of %d rows", kind, limit, len(batch.Rows))
				}
				for i, key := range said(batch) {
					if batch.Rows[i].IfAbsent {
						key = "birth"
					}
					if _, again := at[key]; again {
						t.Errorf("%v, limit %d: %s is written twice", kind, limit, key)
					}
					at[key] = order
				}
				order++
				b.Done(batch)
			}
			for m := 1; m <= 5; m++ {
				row, frontier := at[fmt.Sprint(m, "/7")], at["/7"]
				if kind == readstate.Channel && frontier > row || kind == readstate.Task && (frontier < row || at["birth"] > row) {
					t.Errorf("%v, limit %d: the row of %d goes at %d, its scope at %d: %v", kind, limit, m, row, frontier, at)
				}
			}
			if at["1/"] < at["1/7"] || at["1/"] < at["2/"] || at["1/"] < at["3/"] {
				t.Errorf("%v, limit %d: the blocks go before what they need: %v", kind, limit, at)
			}
			want := 9
			if kind == readstate.Task {
				want++
			}
			if len(at) != want {
				t.Errorf("%v, limit %d: %d rows: %v", kind, limit, len(at), at)
			}
		}
	}
}

// What a flush could not write goes back to where it was, and keeps its age.
func TestFailedBatches(t *testing.T) {
	b := filled(t, readstate.Task, 4, Limits{Backlog: 99, Cached: 99, HeldTotal: 9})
	for range 3 {
		before := b.Backlog()
		batch := b.Take(3)
		join(t, b, 1) // changes while it is away
		b.Failed(batch)
		if b.Backlog() != before {
			t.Fatalf("%d rows wait, %d did", b.Backlog(), before)
		}
	}
	for b.Backlog() > 0 {
		b.Done(b.Take(2))
	}
	if len(b.waitingIn) > 0 || b.queued != 0 {
		t.Errorf("%v %d", b.waitingIn, b.queued)
	}
}

// Deliveries are counted once each, wherever the numbers came from.
func TestDeliveryLists(t *testing.T) {
	var d deliveries
	for _, r := range []readstate.Revision{5, 2, 9, 5} {
		d.add(r, r == 9)
	}
	d.addAct(3)
	row := readstate.MemberRow{Row: readstate.Row{Point: readstate.Point{E: 2}}}
	row.Row.Activity.Read = 3
	if d.fresh(5, 2) || d.fresh(2, 2) || !d.fresh(7, 2) || d.freshAct(3, 0) || !d.counts(9) || !d.names(9) || d.names(5) {
		t.Errorf("%+v", d)
	}
	d.moved(&row, &tail{low: 9})
	if d.apply(&row.Row); row.Row.Point.Targets != 2 || row.Row.Point.Direct != 1 || row.Row.Activity.Targets != 0 || d.opaque {
		t.Errorf("%+v %+v", d, row.Row)
	}
	d.rename(5, true)
	d.rename(9, false)
	d.rename(9, false)
	if d.remove(7); !d.names(5) || d.names(9) || len(d.entries) != 2 || !d.beyond(8) || d.beyond(9) {
		t.Errorf("%+v", d)
	}
	entries, err := unpack[readstate.Revision](pack(d.entries))
	if err != nil || !slices.Equal(entries, d.entries) {
		t.Errorf("%v %v", entries, err)
	}
	row.Row.Point.Targets = 7
	if d.check(&row); !d.opaque || d.entries != nil {
		t.Errorf("%+v", d)
	}
	d.entriesTo, d.actsTo = 5, 5
	if d.fresh(5, 0) || !d.fresh(6, 0) || d.freshAct(5, 0) || !d.counts(1) {
		t.Errorf("%+v", d)
	}
	if _, err := unpack[readstate.Seq]("*"); err == nil {
		t.Error("damage was accepted")
	}
}

// Members who block each other go to the table together and after all of their rows, wherever their
// places in the queue are; every row goes once, and nothing is left behind.
func TestMutualBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 200 {
		b := filled(t, readstate.Channel, 4, Limits{Backlog: 99, Cached: 99, HeldTotal: 9})
		touch := func() {
			if m := readstate.MemberKey(1 + rng.IntN(4)); rng.IntN(2) == 0 {
				join(t, b, m)
			}
		}
		for _, x := range rng.Perm(4) {
			touch()
			m, o := readstate.MemberKey(x+1), readstate.MemberKey((x+1)%4+1)
			if err := b.Blocking(m, []readstate.MemberKey{o}); err != nil {
				t.Fatal(err)
			}
			touch()
			apply(t, b, readstate.BlockEvent{Member: m, Other: o, Blocked: true})
			if rng.IntN(3) == 0 {
				b.Done(b.Take(1 + rng.IntN(3)))
			}
		}
		at, noted := map[string]int{}, map[int]bool{}
		for m := 1; m <= 4; m++ {
			noted[m] = b.people[readstate.MemberKey(m)].noted // the table knows already
		}
		for order := 0; b.Backlog() > 0; order++ {
			waiting := b.Backlog()
			batch := b.Take(5)
			if b.Done(batch); len(batch.Rows) == 0 || b.Backlog() != waiting-len(batch.Rows) {
				t.Fatalf("round %d: %d rows of %d are written, %d wait", round, len(batch.Rows), waiting, b.Backlog())
			}
			for _, key := range said(batch) {
				if _, again := at[key]; again {
					t.Errorf("round %d: %s is written twice", round, key)
				}
				at[key] = order
			}
		}
		if b.Backlog() != 0 || len(b.waitingIn) > 0 {
			t.Fatalf("round %d: %d rows wait for ever", round, b.Backlog())
		}
		for m := readstate.MemberKey(1); m <= 4; m++ {
			if b.people[m].dirty || b.rows[Key{7, m}].dirty {
				t.Errorf("round %d: %d is not written", round, m)
			}
			own, ok := at[fmt.Sprint(m, "/")]
			if row := at[fmt.Sprint(m, "/7")]; ok && row > own {
				t.Errorf("round %d: %d goes before its row: %v", round, m, at)
			}
			if other, has := at[fmt.Sprint(m%4+1, "/")]; ok && has && other > own && !noted[int(m%4+1)] {
				t.Errorf("round %d: %d goes before the one it blocks: %v", round, m, at)
			}
		}
	}
}

// More members block each other than a batch has room for: whenever a crash comes, the table knows of
// everybody whom somebody blocks there that they are blocked, and in the end it has all blocks.
func TestManyMutualBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 60 {
		n, limit := 4+rng.IntN(12), 1+rng.IntN(4)
		b := filled(t, readstate.Channel, n, Limits{Backlog: 99, Cached: 99, HeldTotal: 9})
		blocks := 0
		for m := 1; m <= n; m++ {
			for o := 1; o <= n; o++ {
				if o != m && (o == m%n+1 || rng.IntN(3) == 0) {
					who, whom := readstate.MemberKey(m), readstate.MemberKey(o)
					if err := b.Blocking(who, []readstate.MemberKey{whom}); err != nil {
						t.Fatal(err)
					}
					apply(t, b, readstate.BlockEvent{Member: who, Other: whom, Blocked: true})
					blocks++
				}
			}
		}
		table := map[readstate.MemberID]personDetail{}
		written := 0
		for writes := 0; b.Backlog() > 0; writes++ {
			batch := b.Take(limit)
			if len(batch.Rows) == 0 || len(batch.Rows) > limit || writes > 20*n {
				t.Fatalf("round %d: %d of %d rows in write %d, %d wait", round, len(batch.Rows), limit, writes, b.Backlog())
			}
			if rng.IntN(4) == 0 {
				b.Failed(batch)
				continue
			}
			for _, r := range batch.Rows {
				if r.Scope == "" {
					var d personDetail
					if err := decodeJSON(r.Detail, &d); err != nil {
						t.Fatal(err)
					}
					table[r.Member] = d
				}
			}
			b.Done(batch)
			written = 0
			for m, d := range table {
				written += len(d.Blocks)
				for _, x := range d.Blocks {
					if !table[x].Blocked {
						t.Fatalf("round %d: %s blocks %s, of whom the table does not know it", round, m, x)
					}
				}
			}
		}
		if written != blocks || b.queued != 0 || len(b.waitingIn) > 0 {
			t.Fatalf("round %d: %d of %d blocks are written; %d wait", round, written, blocks, b.queued)
		}
	}
}
