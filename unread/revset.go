package unread

import (
	"fmt"
	"sort"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// revSet is a set of revisions as counts of all blocks and the bits of some. Bits are held for
// the blocks in which some loaded row has its base; a block without any revision is known whole
// and needs none. The blocks lie in a run of sets, ascending by number.
type revSet struct{ blocks run }

type revBlock struct {
	number uint64
	count  uint64
	bits   int32 // none where nobody needed them yet
}

// sets keeps the blocks and bits of many revision sets.
type sets struct {
	blocks *slab.Runs[revBlock]
	bits   *slab.Slab[readstate.Bitmap]
}

func newSets(m *slab.Memory) sets {
	return sets{blocks: slab.NewRuns[revBlock](m, 1), bits: slab.NewSlab[readstate.Bitmap](m)}
}

// fill adds the blocks of an empty set.
func (t *sets) fill(s *revSet, counts []readstate.BlockCount) {
	for _, c := range counts {
		if c.Count > 0 {
			t.insert(s, s.blocks.n, revBlock{number: c.Block, count: c.Count})
		}
	}
}

func (t *sets) view(s *revSet) []revBlock {
	if s.blocks.n == 0 {
		return nil
	}
	return t.blocks.View(s.blocks.at, int(s.blocks.n))
}

// find returns the position of a block, or the one where it belongs.
func (t *sets) find(s *revSet, number uint64) (int32, bool) {
	blocks := t.view(s)
	i := sort.Search(len(blocks), func(i int) bool { return blocks[i].number >= number })
	return int32(i), i < len(blocks) && blocks[i].number == number
}

func (t *sets) insert(s *revSet, i int32, b revBlock) {
	x := &s.blocks
	if x.n == x.size {
		at, size := t.blocks.Take(int(x.n) + 1)
		copy(t.blocks.View(at, size), t.view(s))
		if x.size > 0 {
			t.blocks.Drop(x.at, int(x.size))
		}
		x.at, x.size = at, int32(size)
	}
	x.n++
	blocks := t.view(s)
	copy(blocks[i+1:], blocks[i:])
	blocks[i] = b
}

// cut takes the blocks from i up to j out.
func (t *sets) cut(s *revSet, i, j int32) {
	blocks := t.view(s)
	for k := i; k < j; k++ {
		if blocks[k].bits != none {
			t.bits.Drop(blocks[k].bits)
		}
	}
	copy(blocks[i:], blocks[j:])
	if s.blocks.n -= j - i; s.blocks.n == 0 && s.blocks.size > 0 {
		t.blocks.Drop(s.blocks.at, int(s.blocks.size))
		s.blocks = run{}
	}
}

func (t *sets) drop(s *revSet) { t.cut(s, 0, s.blocks.n) }

func (t *sets) newBits(b *readstate.Bitmap) int32 {
	i := t.bits.Take()
	*t.bits.At(i) = *b
	return i
}

// add puts r in.
func (t *sets) add(s *revSet, r readstate.Revision) error {
	number := readstate.BlockOf(r)
	i, ok := t.find(s, number)
	if !ok {
		var bits readstate.Bitmap
		bits.Set(r)
		t.insert(s, i, revBlock{number: number, count: 1, bits: t.newBits(&bits)})
		return nil
	}
	b := &t.view(s)[i]
	if b.bits != none && !t.bits.At(b.bits).Set(r) {
		return fmt.Errorf("%w: revision %d is in the set already", ErrInvariant, r)
	}
	b.count++
	return nil
}

// remove takes r out.
func (t *sets) remove(s *revSet, r readstate.Revision) error {
	i, ok := t.find(s, readstate.BlockOf(r))
	if !ok {
		return fmt.Errorf("%w: revision %d is in an empty block", ErrInvariant, r)
	}
	b := &t.view(s)[i]
	if b.bits != none && !t.bits.At(b.bits).Clear(r) {
		return fmt.Errorf("%w: revision %d is not in the set", ErrInvariant, r)
	}
	if b.count--; b.count == 0 {
		t.cut(s, i, i+1)
	}
	return nil
}

// learn takes the bits of a block that stand at the same moment as the set. They are copied.
func (t *sets) learn(s *revSet, b readstate.BlockBits) {
	i, ok := t.find(s, b.Block)
	if !ok || b.Bits == nil || t.view(s)[i].bits != none {
		return
	}
	t.view(s)[i].bits = t.newBits(b.Bits)
}

// trim drops what lies in blocks below the floor's, and replaces the floor's block.
func (t *sets) trim(s *revSet, b readstate.BlockBits) {
	i, ok := t.find(s, b.Block)
	if ok {
		i++
	}
	t.cut(s, 0, i)
	if b.Bits == nil || b.Bits.Count() == 0 {
		return
	}
	t.insert(s, 0, revBlock{number: b.Block, count: b.Bits.Count(), bits: t.newBits(b.Bits)})
}

// above counts the revisions above base.
func (t *sets) above(s *revSet, base readstate.Revision) (uint64, error) {
	number := readstate.BlockOf(base)
	var n uint64
	blocks := t.view(s)
	for i := len(blocks) - 1; i >= 0; i-- {
		b := &blocks[i]
		if b.number < number {
			break
		}
		if b.number > number {
			n += b.count
			continue
		}
		if b.bits == none {
			return 0, fmt.Errorf("%w: no bits of block %d", ErrInvariant, number)
		}
		n += b.count - t.bits.At(b.bits).CountThrough(base)
	}
	return n, nil
}

// copy makes the empty set s the one that another state has.
func (t *sets) copy(s *revSet, from *sets, other *revSet) {
	for _, b := range from.view(other) {
		if b.bits != none {
			b.bits = t.newBits(from.bits.At(b.bits))
		}
		t.insert(s, s.blocks.n, b)
	}
}

// adopt takes the bits that other has of the same moment and s lacks.
func (t *sets) adopt(s *revSet, from *sets, other *revSet) {
	for _, b := range from.view(other) {
		if b.bits != none {
			t.learn(s, readstate.BlockBits{Block: b.number, Bits: from.bits.At(b.bits)})
		}
	}
}
