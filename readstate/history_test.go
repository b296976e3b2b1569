package readstate_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// histories says how many histories a test plays: TIDEMARK_SEEDS is the number in percent of
// what a test plays by default.
func histories(t testing.TB, standard int) int {
	text := os.Getenv("TIDEMARK_SEEDS")
	if text == "" {
		return standard
	}
	percent, err := strconv.Atoi(text)
	if err != nil || percent < 1 {
		t.Fatalf("TIDEMARK_SEEDS=%q is not a positive number", text)
	}
	return max(standard*percent/100, 1)
}

// play runs a history on the machine and on the oracle and compares everything after every
// operation. The error is the first difference, with the number of the operation.
func play(ops []model.Op, laws bool) (at int, problem error) {
	w, world := newMachine(), model.New()
	for i, op := range ops {
		for _, part := range batches(world, op, i) {
			out, verdict := world.Apply(part)
			if err := w.apply(part, out, verdict); err != nil {
				return i, fmt.Errorf("%s: %w", part, err)
			}
			if err := w.compare(world); err != nil {
				return i, fmt.Errorf("%s: %w", part, err)
			}
		}
		if laws {
			if err := w.laws(i); err != nil {
				return i, fmt.Errorf("%s: %w", op, err)
			}
		}
	}
	return 0, nil
}

// batches splits a rewind or trim of many entries as a store does. What stands after each batch
// has to be right by itself.
func batches(world *model.World, op model.Op, i int) []model.Op {
	info, ok := world.Scope(op.Scope)
	size := model.Seq(1 + i%3)
	if !ok || op.Kind != model.OpRewind && op.Kind != model.OpTrim {
		return []model.Op{op}
	}
	var parts []model.Op
	part := op
	if op.Kind == model.OpRewind {
		for q := info.LatestSeq - size; q > op.Seq; q -= size {
			part.Seq = q
			parts = append(parts, part)
		}
		return append(parts, op)
	}
	for _, e := range world.Entries(op.Scope) {
		if !e.Trimmed && e.Seq < op.Seq && e.Seq%size == 0 {
			part.Seq = e.Seq
			parts = append(parts, part)
		}
	}
	return append(parts, op)
}

// shrink takes operations out of a failing history for as long as it goes on failing.
func shrink(ops []model.Op, fails func([]model.Op) bool) []model.Op {
	for size := len(ops) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(ops); {
			fewer := slices.Delete(slices.Clone(ops), from, from+size)
			if fails(fewer) {
				ops = fewer
			} else {
				from += size
			}
		}
	}
	return ops
}

// judge plays a history and reports the shortest one that fails. Its operations can be pasted
// into a transcript.
func judge(t testing.TB, from string, ops []model.Op) {
	t.Helper()
	if _, err := play(ops, true); err == nil {
		return
	}
	ops = shrink(ops, func(fewer []model.Op) bool {
		_, err := play(fewer, true)
		return err != nil
	})
	at, err := play(ops, true)
	t.Fatalf("%s; again by TIDEMARK_SEEDS=%s go test -run '^%s$' ./readstate\noperation %d of\n%s%v",
		from, os.Getenv("TIDEMARK_SEEDS"), t.Name(), at+1, model.FormatOps(ops), err)
}

// covers: RT-036, RT-037, RT-041, RT-138, RT-143
func TestSeededHistories(t *testing.T) {
	t.Parallel()
	for seed := range histories(t, 100) {
		judge(t, fmt.Sprintf("full mix, seed %d", seed), randomOps(uint64(seed), 1, 80, model.FullMix()))
	}
}

// TestSeededPlainHistories leaves out what a hub of people has not, so that the rest meets more
// often.
func TestSeededPlainHistories(t *testing.T) {
	t.Parallel()
	for seed := range histories(t, 100) {
		judge(t, fmt.Sprintf("hub mix, seed %d", seed), randomOps(uint64(seed), 2, 100, model.HubMix()))
	}
}

// TestSeededBlockBorders plays histories in a channel whose revisions pass from one block of a
// revision set to the next.
func TestSeededBlockBorders(t *testing.T) {
	t.Parallel()
	const offset = readstate.BlockSize - 12
	for seed := range histories(t, 3) {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		plain := model.RandomOps(rng, 40, model.HubMix())
		ops := []model.Op{plain[0]}
		for i := range offset {
			author := model.MemberID(rng.IntN(5) + 1)
			ops = append(ops, model.Op{
				Kind: model.OpPost, Scope: 1, Member: author, Everyone: i%97 == 0,
			})
		}
		for _, op := range plain[1:] {
			ops = append(ops, shift(op, offset))
		}
		w, world := newMachine(), model.New()
		for i, op := range ops {
			out, verdict := world.Apply(op)
			if err := w.apply(op, out, verdict); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, op, err)
			}
			if i < offset {
				continue
			}
			if err := w.compare(world); err != nil {
				t.Fatalf("seed %d: after %d posts\n%s%v", seed, offset,
					model.FormatOps(ops[offset+1:i+1]), err)
			}
		}
	}
}

// shift moves what an operation says of the first scope up by n entries.
func shift(op model.Op, n int) model.Op {
	seq := func(q model.Seq) model.Seq { return q + model.Seq(n) }
	revision := func(r model.Revision) model.Revision {
		if r == 0 {
			return 0
		}
		return r + model.Revision(n)
	}
	for i, it := range op.Items {
		if it.Scope == 1 {
			op.Items = slices.Clone(op.Items)
			op.Items[i].Revision = revision(it.Revision)
		}
	}
	if op.Kind == model.OpCreate && op.Type == model.Thread && op.To == 1 {
		op.Seq = seq(op.Seq)
	}
	if op.Scope != 1 || op.Kind == model.OpCreate {
		return op
	}
	op.Seqs = slices.Clone(op.Seqs)
	for i, q := range op.Seqs {
		op.Seqs[i] = seq(q)
	}
	op.Seq, op.Revision, op.From = seq(op.Seq), revision(op.Revision), revision(op.From)
	return op
}

// TestPropertyHistories draws histories through rapid, which makes a failing one short.
func TestPropertyHistories(t *testing.T) {
	t.Parallel()
	steps := rapid.SliceOfN(rapid.Uint64(), 1, 60)
	rapid.Check(t, func(t *rapid.T) {
		var data []byte
		for _, u := range steps.Draw(t, "steps") {
			data = binary.LittleEndian.AppendUint64(data, scatter(u))
		}
		ops := model.DecodeOps(data)
		if at, err := play(ops, false); err != nil {
			t.Fatalf("operation %d of\n%s%v", at+1, model.FormatOps(ops), err)
		}
	})
}

// scatter spreads the small numbers that rapid prefers over all bytes (splitmix64).
func scatter(u uint64) uint64 {
	u += 0x9e3779b97f4a7c15
	u = (u ^ u>>30) * 0xbf58476d1ce4e5b9
	u = (u ^ u>>27) * 0x94d049bb133111eb
	return u ^ u>>31
}

func FuzzHistory(f *testing.F) {
	for seed := range uint64(3) {
		data := make([]byte, 30*8)
		rng := rand.New(rand.NewPCG(seed, 4))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 100*8 {
			t.Skip("long histories find nothing that short ones do not")
		}
		judge(t, fmt.Sprintf("%d bytes", len(data)), model.DecodeOps(data))
	})
}
