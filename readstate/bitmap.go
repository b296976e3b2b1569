package readstate

// BlockSize is how many revisions one block of a revision set covers.
const BlockSize = 4096

const wordBits = 64

// Bitmap marks revisions of one block.
type Bitmap [BlockSize / wordBits]uint64

// BlockOf returns the block that revision r lies in. Block 0 holds revisions 0 to 4,095.
func BlockOf(r Revision) uint64 { return uint64(r) / BlockSize }

// Has reports that r is marked. The block is the caller's to choose.
func (b *Bitmap) Has(r Revision) bool {
	i := uint64(r) % BlockSize
	return b[i/wordBits]&(1<<(i%wordBits)) != 0
}

// Set marks r and reports that it was not marked before.
func (b *Bitmap) Set(r Revision) bool {
	i := uint64(r) % BlockSize
	word, bit := &b[i/wordBits], uint64(1)<<(i%wordBits)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// Clear unmarks r and reports that it was marked before.
func (b *Bitmap) Clear(r Revision) bool {
	i := uint64(r) % BlockSize
	word, bit := &b[i/wordBits], uint64(1)<<(i%wordBits)
	if *word&bit == 0 {
		return false
	}
	*word &^= bit
	return true
}

// CountThrough returns how many marked revisions of the block are at most r.
func (b *Bitmap) CountThrough(r Revision) uint64 {
	i := uint64(r) % BlockSize
	var n uint64
	for w := uint64(0); w < i/wordBits; w++ {
		n += ones(b[w])
	}
	return n + ones(b[i/wordBits]&(^uint64(0)>>(wordBits-1-i%wordBits)))
}

// Count returns how many revisions of the block are marked.
func (b *Bitmap) Count() uint64 {
	var n uint64
	for _, w := range b {
		n += ones(w)
	}
	return n
}

// ones counts set bits. The package imports no math/bits; the compiler knows this shape.
func ones(x uint64) uint64 {
	x -= x >> 1 & 0x5555555555555555
	x = x&0x3333333333333333 + x>>2&0x3333333333333333
	x = (x + x>>4) & 0x0f0f0f0f0f0f0f0f
	return x * 0x0101010101010101 >> 56
}
