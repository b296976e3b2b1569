package unread

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// TestRevSet compares a set that is told of every change with a plain one, over several blocks,
// from any base whose block's bits it has been given.
func TestRevSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const span = 4 * readstate.BlockSize
	for range 20 {
		plain := map[readstate.Revision]bool{}
		bits := func(base readstate.Revision) readstate.BlockBits {
			b := readstate.BlockBits{Block: readstate.BlockOf(base)}
			for r := range plain {
				if readstate.BlockOf(r) == b.Block {
					if b.Bits == nil {
						b.Bits = new(readstate.Bitmap)
					}
					b.Bits.Set(r)
				}
			}
			return b
		}
		for range 300 {
			plain[readstate.Revision(rng.IntN(span))] = true
		}
		counts := map[uint64]uint64{}
		for r := range plain {
			counts[readstate.BlockOf(r)]++
		}
		var blocks []readstate.BlockCount
		for b := range uint64(4) {
			blocks = append(blocks, readstate.BlockCount{Block: b, Count: counts[b]})
		}
		sets, s := newSets(new(slab.Memory)), new(revSet)
		sets.fill(s, blocks)
		floor := readstate.Revision(0)
		for range 400 {
			r := floor + 1 + readstate.Revision(rng.IntN(span-int(floor)-1))
			switch {
			case rng.IntN(40) == 0 && floor < span-2*readstate.BlockSize:
				floor = min(r, floor+readstate.BlockSize)
				for x := range plain {
					if x <= floor {
						delete(plain, x)
					}
				}
				sets.trim(s, bits(floor))
			case plain[r]:
				if err := sets.remove(s, r); err != nil {
					t.Fatal(err)
				}
				delete(plain, r)
			default:
				if err := sets.add(s, r); err != nil {
					t.Fatal(err)
				}
				plain[r] = true
			}
			base := floor + readstate.Revision(rng.IntN(span-int(floor)))
			sets.learn(s, bits(base))
			var want uint64
			for x := range plain {
				if x > base {
					want++
				}
			}
			if got, err := sets.above(s, base); err != nil || got != want {
				t.Fatalf("above %d: %d, %v, want %d", base, got, err, want)
			}
		}
	}
}

func TestRevSetRefusesContradictions(t *testing.T) {
	sets, s := newSets(new(slab.Memory)), new(revSet)
	sets.fill(s, []readstate.BlockCount{{Block: 2, Count: 5}, {Block: 7}})
	if _, err := sets.above(s, 2*readstate.BlockSize+3); !errors.Is(err, ErrInvariant) {
		t.Errorf("counting within a block whose bits are unknown: %v", err)
	}
	if n, err := sets.above(s, readstate.BlockSize); err != nil || n != 5 {
		t.Errorf("counting from below it: %d, %v", n, err)
	}
	if n, err := sets.above(s, 9*readstate.BlockSize); err != nil || n != 0 {
		t.Errorf("counting from above it: %d, %v", n, err)
	}
	if err := sets.remove(s, 3); !errors.Is(err, ErrInvariant) {
		t.Errorf("taking from an empty block: %v", err)
	}
	if err := sets.add(s, 3); err != nil {
		t.Error(err)
	}
	if err := sets.add(s, 3); !errors.Is(err, ErrInvariant) {
		t.Errorf("adding twice: %v", err)
	}
	if err := sets.remove(s, 4); !errors.Is(err, ErrInvariant) {
		t.Errorf("taking what is not there: %v", err)
	}
	if err := sets.remove(s, 3); err != nil || s.blocks.n != 1 {
		t.Errorf("%v, %d blocks", err, s.blocks.n)
	}
	// A page's bits are of the same moment and stay the caller's.
	bits := new(readstate.Bitmap)
	for r := range readstate.Revision(5) {
		bits.Set(2*readstate.BlockSize + r)
	}
	sets.learn(s, readstate.BlockBits{Block: 2, Bits: bits})
	if err := sets.remove(s, 2*readstate.BlockSize); err != nil || bits.Count() != 5 {
		t.Errorf("%v; the caller's bits are %d", err, bits.Count())
	}
}

// The ring keeps what pages may need, within its bound, and knows what it has lost.
//
// covers: RT-404, RT-429
func TestRing(t *testing.T) {
	var g ring
	g.reset(10)
	event := []readstate.Event{readstate.BlockEvent{}, readstate.BlockEvent{}}
	for lsn := readstate.LSN(11); lsn <= 15; lsn++ {
		if gone := g.add(lsn, event, 10); gone != 0 {
			t.Errorf("%d events went at %d", gone, lsn)
		}
	}
	if c, whole := g.after(12); !whole || len(c) != 3 || c[0].lsn != 13 {
		t.Errorf("after 12: %v, %t", c, whole)
	}
	if _, whole := g.after(9); whole {
		t.Error("whole from before the beginning")
	}
	if gone := g.add(16, event[:1], 10); gone != 2 {
		t.Errorf("%d events went, want the oldest commit's", gone)
	}
	if _, whole := g.after(10); whole {
		t.Error("whole although the oldest commit went")
	}
	if c, whole := g.after(11); !whole || len(c) != 5 {
		t.Errorf("after 11: %v, %t", c, whole)
	}
	g.release(15)
	if c, whole := g.after(15); !whole || len(c) != 1 || g.events != 1 {
		t.Errorf("after a release: %v, %t, %d events", c, whole, g.events)
	}
	g.reset(0)
	var gone uint64
	for lsn := readstate.LSN(1); lsn <= 10_001; lsn++ {
		gone += g.add(lsn, event[:1], 10_000)
	}
	if gone != 1 {
		t.Errorf("%d events dropped at the 10,001st", gone)
	}
	g.reset(16)
	for lsn := readstate.LSN(17); lsn < 500; lsn++ {
		g.add(lsn, nil, 100)
	}
	if c, _ := g.after(450); len(c) != 49 || g.events > 100 || len(g.commits) > 250 {
		t.Errorf("%d commits, %d events in %d places", len(c), g.events, len(g.commits))
	}
}
