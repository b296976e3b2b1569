package unread

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// revSet is a set of revisions as counts of all blocks and the bits of some. Bits are held for
// the blocks in which some loaded row has its base; a block without any revision is known whole
// and needs none.
type revSet struct {
	blocks []revBlock // ascending by number; counts are above zero
}

type revBlock struct {
	number uint64
	count  uint64
	bits   *readstate.Bitmap // nil where nobody needed them yet
}

func newRevSet(counts []readstate.BlockCount) revSet {
	var s revSet
	for _, c := range counts {
		if c.Count > 0 {
			s.blocks = append(s.blocks, revBlock{number: c.Block, count: c.Count})
		}
	}
	return s
}

func (s *revSet) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(s.blocks, number, func(b revBlock, n uint64) int {
		switch {
		case b.number < n:
			return -1
		case b.number > n:
			return 1
		}
		return 0
	})
}

// add puts r in.
func (s *revSet) add(r readstate.Revision) error {
	number := readstate.BlockOf(r)
	i, ok := s.find(number)
	if !ok {
		bits := new(readstate.Bitmap)
		bits.Set(r)
		s.blocks = slices.Insert(s.blocks, i, revBlock{number: number, count: 1, bits: bits})
		return nil
	}
	b := &s.blocks[i]
	if b.bits != nil && !b.bits.Set(r) {
		return fmt.Errorf("%w: revision %d is in the set already", ErrInvariant, r)
	}
	b.count++
	return nil
}

// remove takes r out.
func (s *revSet) remove(r readstate.Revision) error {
	i, ok := s.find(readstate.BlockOf(r))
	if !ok {
		return fmt.Errorf("%w: revision %d is in an empty block", ErrInvariant, r)
	}
	b := &s.blocks[i]
	if b.bits != nil && !b.bits.Clear(r) {
		return fmt.Errorf("%w: revision %d is not in the set", ErrInvariant, r)
	}
	if b.count--; b.count == 0 {
		s.blocks = slices.Delete(s.blocks, i, i+1)
	}
	return nil
}

// learn takes the bits of a block that stand at the same moment as the set. They are copied.
func (s *revSet) learn(b readstate.BlockBits) {
	i, ok := s.find(b.Block)
	if !ok || b.Bits == nil || s.blocks[i].bits != nil {
		return
	}
	bits := *b.Bits
	s.blocks[i].bits = &bits
}

// trim drops what lies in blocks below the floor's, and replaces the floor's block.
func (s *revSet) trim(b readstate.BlockBits) {
	i, ok := s.find(b.Block)
	if ok {
		i++
	}
	s.blocks = slices.Delete(s.blocks, 0, i)
	if b.Bits == nil || b.Bits.Count() == 0 {
		return
	}
	bits := *b.Bits
	s.blocks = slices.Insert(s.blocks, 0,
		revBlock{number: b.Block, count: bits.Count(), bits: &bits})
}

// above counts the revisions above base.
func (s *revSet) above(base readstate.Revision) (uint64, error) {
	number := readstate.BlockOf(base)
	var n uint64
	for i := len(s.blocks) - 1; i >= 0; i-- {
		b := &s.blocks[i]
		if b.number < number {
			break
		}
		if b.number > number {
			n += b.count
			continue
		}
		if b.bits == nil {
			return 0, fmt.Errorf("%w: no bits of block %d", ErrInvariant, number)
		}
		n += b.count - b.bits.CountThrough(base)
	}
	return n, nil
}

// adopt takes the bits that other has of the same moment and s lacks.
func (s *revSet) adopt(other *revSet) {
	for i := range other.blocks {
		s.learn(readstate.BlockBits{Block: other.blocks[i].number, Bits: other.blocks[i].bits})
	}
}
