package unread

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// edges are the numbers at which a row changes its form: what a small counter, a word and the
// wire can hold.
var edges = []uint64{
	0, 1, 2, 254, 255, 256, 1<<32 - 2, 1<<32 - 1, 1 << 32, 1<<32 + 1, readstate.MaxCounter - 1,
	readstate.MaxCounter,
}

func edge(rng *rand.Rand) uint64 {
	switch rng.IntN(4) {
	case 0:
		return edges[rng.IntN(len(edges))]
	case 1:
		return rng.Uint64N(300)
	}
	return 0 // as most numbers of most rows are
}

func randomRow(rng *rand.Rand) full {
	var v numbers
	for i := range v {
		v[i] = edge(rng)
	}
	var f full
	f.set(&v)
	f.row.Joined, f.row.Visible = rng.IntN(2) == 0, rng.IntN(2) == 0
	f.row.Manual.Set = rng.IntN(2) == 0
	f.row.Level = readstate.Level(rng.IntN(4))
	f.row.Follow = readstate.Follow(rng.IntN(3))
	return f
}

// Every row comes back as it was stored, whatever its numbers, over whatever stood there before,
// and stays on its list. Nothing is left of rows that are forgotten.
func TestRowsComeBackAsStored(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	r := newRows(new(slab.Memory))
	x := r.take(16, 1)
	var want [16]full
	for i := range int32(16) {
		r.store(x.at+i, &want[i])
	}
	wide := 0
	for range 200_000 {
		i := rng.Int32N(16)
		e := x.at + i
		r.hot.At(e).place(spot(rng.IntN(4)), uint8(rng.IntN(generations)))
		before := r.hotAt(e)
		want[i] = randomRow(rng)
		r.store(e, &want[i])
		after := r.hotAt(e)
		if before.spot() != after.spot() || before.gen() != after.gen() {
			t.Fatalf("a row moved from list %d/%d to %d/%d",
				before.spot(), before.gen(), after.spot(), after.gen())
		}
		if after.cold != none && *r.cold.At(after.cold)&coldWide != 0 {
			wide++
		}
		for j := range want {
			if got := r.load(x.at + int32(j)); got != want[j] {
				t.Fatalf("stored %+v\nloaded %+v", want[j], got)
			}
		}
	}
	if wide == 0 {
		t.Error("no number needed more than a word")
	}
	for i := range int32(16) {
		r.forget(x.at + i)
	}
	if r.cold.Used() != 0 {
		t.Errorf("%d bytes of cold records are left", r.cold.Used())
	}
}

// An ordinary row, of a member who joined late, wrote a little and read on, has no cold record;
// 2^32 - 1 is the last revision that it can have without one.
func TestOrdinaryRowsAreHotAlone(t *testing.T) {
	r := newRows(new(slab.Memory))
	x := r.take(1, 1)
	row := func(read readstate.Revision) full {
		var f full
		f.row = readstate.Row{
			Joined: true, Visible: true, Epoch: 1, Effective: 70, Read: read,
			Point: readstate.Point{E: read, AuthorRank: 3, OwnRemoved: 255, Direct: 255},
		}
		f.writer.AuthorHead, f.stateLSN = 1<<32-1, 1<<32-1
		return f
	}
	for read, cold := range map[readstate.Revision]bool{
		70: false, 1<<32 - 1: false, 1 << 32: true,
	} {
		f := row(read)
		r.store(x.at, &f)
		if got := r.hotAt(x.at).cold != none; got != cold {
			t.Errorf("read up to %d: a cold record %t", read, got)
		}
	}
	for _, change := range []func(*full){
		func(f *full) { f.row.Point.Direct = 256 },
		func(f *full) { f.row.Point.OwnRemoved = 256 },
		func(f *full) { f.stateLSN = 1 << 32 },
		func(f *full) { f.row.Point.E-- },
		func(f *full) { f.row.Epoch = 2 },
		func(f *full) { f.row.Until = 1 },
	} {
		f := row(70)
		change(&f)
		r.store(x.at, &f)
		if r.hotAt(x.at).cold == none || r.load(x.at) != f {
			t.Errorf("%+v has no cold record", f)
		}
	}
}

// Commit numbers count from where memory began, so that large ones take no cold record; earlier ones
// are as good as that.
func TestCommitNumbersCountFromABase(t *testing.T) {
	r := newRows(new(slab.Memory))
	r.base = 1 << 50
	e := r.take(1, 1).at
	for lsn, want := range map[readstate.LSN]readstate.LSN{
		0: 1 << 50, 1<<50 - 1: 1 << 50, 1 << 50: 1 << 50, 1<<50 + 7: 1<<50 + 7,
		1<<50 + 1<<32 - 1: 1<<50 + 1<<32 - 1, 1<<50 + 1<<32: 1<<50 + 1<<32,
	} {
		f := full{row: readstate.Row{Joined: true, Effective: 1, Epoch: 1}, stateLSN: lsn}
		r.store(e, &f)
		if got := r.load(e).stateLSN; got != want {
			t.Errorf("%d comes back as %d, want %d", lsn, got, want)
		}
		if cold := r.hotAt(e).cold != none; cold != (lsn >= 1<<50+1<<32) {
			t.Errorf("%d has a cold record: %t", lsn, cold)
		}
	}
}

// What is there once per row, member and scope has the size that memory is reckoned with.
func TestSizes(t *testing.T) {
	for what, is := range map[string][2]uintptr{
		"hot words of a row": {reflect.TypeFor[hotWords]().Size(), 28},
		"links of a row":     {reflect.TypeFor[link]().Size(), 8},
		"slot of a scope":    {reflect.TypeFor[scope]().Size(), 192},
		"member":             {reflect.TypeFor[member]().Size(), 64}, // a cache line
	} {
		if is[0] != is[1] {
			t.Errorf("%s: %d bytes, want %d", what, is[0], is[1])
		}
	}
}

// An author's rank is raised by its word alone only where the word holds it before and after.
func TestRanksAreRaisedInTheirPlace(t *testing.T) {
	r := newRows(new(slab.Memory))
	e := r.take(8, 1).at
	for _, c := range []struct {
		before, rank uint64
		word         bool
	}{
		{0, 1, true}, {5, 6, true}, {1<<32 - 2, 1<<32 - 1, true}, {1<<32 - 1, 1 << 32, false},
		{1 << 33, 1<<33 + 1, false}, {1 << 33, 7, false},
	} {
		var f full
		f.row.Effective, f.writer.AuthorHead = 1, c.before
		r.store(e, &f)
		word := r.raiseAuthor(e, c.rank)
		want := c.before
		if word {
			want = c.rank
		}
		if got := r.load(e).writer.AuthorHead; word != c.word || got != want {
			t.Errorf("from %d to %d: by word %t, then %d", c.before, c.rank, word, got)
		}
	}
}
