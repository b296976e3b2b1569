package readstate_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-im/tidemark/readstate"
)

// naiveSet is a block as a set of revisions.
type naiveSet map[readstate.Revision]bool

// step does the same to a block and to a set and compares the answers. What is done comes from
// the low bits of code, the revision from the others.
func (s naiveSet) step(b *readstate.Bitmap, block uint64, code uint16) error {
	r := readstate.Revision(block*readstate.BlockSize + uint64(code>>2)%readstate.BlockSize)
	if got := readstate.BlockOf(r); got != block {
		return fmt.Errorf("block of %d is %d, not %d", r, got, block)
	}
	had := s[r]
	switch code % 3 {
	case 0, 1:
		if b.Set(r) == had {
			return fmt.Errorf("set %d: marked before is %t", r, had)
		}
		s[r] = true
	default:
		if b.Clear(r) != had {
			return fmt.Errorf("clear %d: marked before is %t", r, had)
		}
		delete(s, r)
	}
	var through uint64
	for q := range s {
		if q <= r {
			through++
		}
	}
	switch {
	case b.Has(r) != s[r]:
		return fmt.Errorf("has %d is %t", r, b.Has(r))
	case b.Count() != uint64(len(s)):
		return fmt.Errorf("count is %d, not %d", b.Count(), len(s))
	case b.CountThrough(r) != through:
		return fmt.Errorf("count through %d is %d, not %d", r, b.CountThrough(r), through)
	}
	return nil
}

func TestPropertyBitmap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.Uint64Range(0, readstate.MaxCounter/readstate.BlockSize).Draw(t, "block")
		codes := rapid.SliceOfN(rapid.Uint16(), 1, 200).Draw(t, "codes")
		set, bits := naiveSet{}, new(readstate.Bitmap)
		for _, code := range codes {
			if err := set.step(bits, block, code); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzBitmap(f *testing.F) {
	f.Add(uint64(0), []byte{0, 0, 4, 0, 2, 0, 255, 255, 253, 255})
	f.Add(uint64(3), []byte{252, 0, 0, 1, 254, 0, 2, 1})
	f.Fuzz(func(t *testing.T, block uint64, data []byte) {
		block %= readstate.MaxCounter / readstate.BlockSize
		set, bits := naiveSet{}, new(readstate.Bitmap)
		for ; len(data) > 1; data = data[2:] {
			if err := set.step(bits, block, binary.LittleEndian.Uint16(data)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestBitmapWhole(t *testing.T) {
	var b readstate.Bitmap
	for r := range readstate.Revision(readstate.BlockSize) {
		b.Set(r)
		if got := b.CountThrough(r); got != uint64(r)+1 {
			t.Fatalf("count through %d is %d", r, got)
		}
	}
	if b.Count() != readstate.BlockSize {
		t.Fatalf("a full block counts %d", b.Count())
	}
	for _, c := range []struct {
		r     readstate.Revision
		block uint64
	}{{0, 0}, {4095, 0}, {4096, 1}, {8191, 1}, {8192, 2}} {
		if got := readstate.BlockOf(c.r); got != c.block {
			t.Errorf("block of %d is %d, not %d", c.r, got, c.block)
		}
	}
}
