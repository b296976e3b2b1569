package snapshot

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// revisions is a set of revisions in blocks, ascending by number.
type revisions struct{ blocks []block }

type block struct {
	number uint64
	bits   *readstate.Bitmap
}

func compareBlock(b block, number uint64) int {
	switch {
	case b.number < number:
		return -1
	case b.number > number:
		return 1
	}
	return 0
}

// add reports that r was not in the set yet.
func (s *revisions) add(r readstate.Revision) bool {
	number := readstate.BlockOf(r)
	i, found := slices.BinarySearchFunc(s.blocks, number, compareBlock)
	if !found {
		s.blocks = slices.Insert(s.blocks, i, block{number, new(readstate.Bitmap)})
	}
	return s.blocks[i].bits.Set(r)
}

func (s *revisions) remove(r readstate.Revision) bool {
	i, found := slices.BinarySearchFunc(s.blocks, readstate.BlockOf(r), compareBlock)
	if !found || !s.blocks[i].bits.Clear(r) {
		return false
	}
	if s.blocks[i].bits.Count() == 0 {
		s.blocks = slices.Delete(s.blocks, i, i+1)
	}
	return true
}

// put adds or removes r, and reports that this changed the set.
func (s *revisions) put(r readstate.Revision, in bool) bool {
	if in {
		return s.add(r)
	}
	return s.remove(r)
}

func (s *revisions) has(r readstate.Revision) bool {
	i, found := slices.BinarySearchFunc(s.blocks, readstate.BlockOf(r), compareBlock)
	return found && s.blocks[i].bits.Has(r)
}

// above counts what lies above base.
func (s *revisions) above(base readstate.Revision) uint64 {
	number := readstate.BlockOf(base)
	i, found := slices.BinarySearchFunc(s.blocks, number, compareBlock)
	var n uint64
	if found {
		n -= s.blocks[i].bits.CountThrough(base)
	}
	for _, b := range s.blocks[i:] {
		n += b.bits.Count()
	}
	return n
}

// trim forgets the blocks that end below the floor.
func (s *revisions) trim(floor readstate.Revision) {
	i, _ := slices.BinarySearchFunc(s.blocks, readstate.BlockOf(floor), compareBlock)
	s.blocks = slices.Delete(s.blocks, 0, i)
}

// trimBelow forgets everything at or below the floor as well.
func (s *revisions) trimBelow(floor readstate.Revision) {
	s.trim(floor)
	if len(s.blocks) == 0 || s.blocks[0].number != readstate.BlockOf(floor) {
		return
	}
	first := readstate.Revision(s.blocks[0].number * readstate.BlockSize)
	for r := first; r <= floor; r++ {
		s.blocks[0].bits.Clear(r)
	}
	if s.blocks[0].bits.Count() == 0 {
		s.blocks = slices.Delete(s.blocks, 0, 1)
	}
}

// at returns the block that holds base, for a reader who counts from there.
func (s *revisions) at(base readstate.Revision) readstate.BlockBits {
	out := readstate.BlockBits{Block: readstate.BlockOf(base)}
	if i, found := slices.BinarySearchFunc(s.blocks, out.Block, compareBlock); found {
		bits := *s.blocks[i].bits
		out.Bits = &bits
	}
	return out
}

func (s *revisions) counts() []readstate.BlockCount {
	var out []readstate.BlockCount
	for _, b := range s.blocks {
		out = append(out, readstate.BlockCount{Block: b.number, Count: b.bits.Count()})
	}
	return out
}

// each calls f for every revision, ascending.
func (s *revisions) each(f func(r readstate.Revision)) {
	for _, b := range s.blocks {
		first := readstate.Revision(b.number * readstate.BlockSize)
		for w := range b.bits {
			for word := b.bits[w]; word != 0; word &= word - 1 {
				f(first + readstate.Revision(w*wordBits+bits.TrailingZeros64(word)))
			}
		}
	}
}

// within reports that no revision of the set is above head.
func (s *revisions) within(head readstate.Revision) bool {
	return len(s.blocks) == 0 || s.above(head) == 0
}

// common calls f for every revision that is in both sets, ascending.
func (s *revisions) common(other *revisions, f func(r readstate.Revision)) {
	for _, b := range s.blocks {
		i, found := slices.BinarySearchFunc(other.blocks, b.number, compareBlock)
		if !found {
			continue
		}
		theirs := other.blocks[i].bits
		first := readstate.Revision(b.number * readstate.BlockSize)
		for w := range b.bits {
			for word := b.bits[w] & theirs[w]; word != 0; word &= word - 1 {
				f(first + readstate.Revision(w*wordBits+bits.TrailingZeros64(word)))
			}
		}
	}
}

const wordBits = 64

// maxRuns bounds what a damaged text may make of itself.
const maxRuns = 1 << 24

var errRuns = errors.New("damaged revision set")

// pack writes the set as runs: the distance from the end of the one before, and the length.
func (s *revisions) pack() string {
	var out []byte
	var start, end readstate.Revision // of the run under way, end exclusive
	var before readstate.Revision
	flush := func() {
		if end > start {
			out = binary.AppendUvarint(out, uint64(start-before))
			out = binary.AppendUvarint(out, uint64(end-start))
			before = end
		}
	}
	s.each(func(r readstate.Revision) {
		if r != end || end == start {
			flush()
			start = r
		}
		end = r + 1
	})
	flush()
	return base64.RawStdEncoding.EncodeToString(out)
}

// unpackRevisions reads what pack wrote.
func unpackRevisions(text string) (revisions, error) {
	var s revisions
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return s, errRuns
	}
	var at, total uint64
	for len(raw) > 0 {
		gap, n := binary.Uvarint(raw)
		if n <= 0 {
			return s, errRuns
		}
		length, m := binary.Uvarint(raw[n:])
		if m <= 0 || length == 0 {
			return s, errRuns
		}
		raw = raw[n+m:]
		if at += gap; at+length > readstate.MaxCounter || total+length > maxRuns {
			return s, errRuns
		}
		total += length
		for range length {
			s.add(readstate.Revision(at))
			at++
		}
	}
	return s, nil
}
