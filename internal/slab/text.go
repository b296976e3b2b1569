package slab

import (
	"encoding/binary"
	"fmt"
)

// cell is the unit in which texts are kept.
type cell [cellBytes]byte

const cellBytes = 8

// Text keeps byte strings of any length up to MaxText. Each takes its own place, also when it equals
// another. A text is stored as its length in bytes, a varint, and the bytes.
type Text struct {
	cells *Runs[cell]
}

// Ref names a text in a [Text]. Ref 0 is the empty string, for which nothing is stored.
type Ref int32

// MaxText is how many bytes the longest text has.
const MaxText = largestItems*cellBytes - binary.MaxVarintLen32

// NewText returns an empty Text whose segments are counted in m. It reserves nothing yet.
func NewText(m *Memory) *Text { return &Text{cells: NewRuns[cell](m, 1)} }

// Put stores a copy of s. It panics when s is longer than MaxText, and when the index space of 16 GiB
// is used up.
func (t *Text) Put(s string) Ref {
	if s == "" {
		return 0
	}
	at, size := t.cells.Take(cellsFor(s))
	write(t.cells.View(at, size), s)
	return Ref(at)
}

// Set makes s the text in place of old, which is no longer to be used; the Ref that it returns is. The
// place is the same when s fits it as well as old did. It panics when old is not in use, and where Put
// does; then old is still there.
func (t *Text) Set(old Ref, s string) Ref {
	if old == 0 {
		return t.Put(s)
	}
	size := t.size(old)
	if s != "" && t.cells.Size(cellsFor(s)) == size {
		write(t.cells.View(int32(old), size), s)
		return old
	}
	r := t.Put(s)
	t.cells.Drop(int32(old), size)
	return r
}

// String returns a copy of the text in the Go heap.
func (t *Text) String(r Ref) string { return string(t.bytes(r)) }

// View returns the text in place. It is not to be changed, and lasts until the text is set anew or
// dropped.
func (t *Text) View(r Ref) []byte {
	if r == 0 { // so much is not worth a call
		return nil
	}
	return t.bytes(r)
}

// Equal tells whether the text is s.
func (t *Text) Equal(r Ref, s string) bool { return string(t.bytes(r)) == s }

// Drop gives the text back. It panics when r is not in use. Drop(0) does nothing.
func (t *Text) Drop(r Ref) {
	if r == 0 {
		return
	}
	t.cells.Drop(int32(r), t.size(r))
}

// Room returns how many bytes the segments could hold that may still be added; see [Runs.Room].
func (t *Text) Room() int64 { return int64(t.cells.Room()) * cellBytes }

// Used returns how many bytes the texts in use take.
func (t *Text) Used() int64 { return t.cells.Used() }

// Bytes returns how many bytes are reserved.
func (t *Text) Bytes() int64 { return t.cells.Bytes() }

// bytes returns the text in place.
func (t *Text) bytes(r Ref) []byte {
	if r == 0 {
		return nil
	}
	b := octets(t.cells.rows.rest(int32(r)))
	if n := 1 + int(b[0]); n <= 1<<7 { // as most are
		return b[1:n:n]
	}
	v, prefix := binary.Uvarint(b)
	n := prefix + int(v)
	return b[prefix:n:n]
}

// length returns how many bytes the length takes, and the length of the text.
func (t *Text) length(r Ref) (prefix, n int) {
	first := t.cells.At(int32(r))
	v, prefix := binary.Uvarint(first[:])
	return prefix, int(v)
}

// size returns how many cells the text was given. It panics when the text is not in use.
func (t *Text) size(r Ref) int {
	if !t.cells.InUse(int32(r)) {
		panic(fmt.Sprintf("slab: text %d is not in use", r))
	}
	prefix, n := t.length(r)
	return t.cells.Size(toCells(prefix + n))
}

// write stores s in its cells and leaves nothing behind it.
func write(cells []cell, s string) {
	b := octets(cells)
	n := binary.PutUvarint(b, uint64(len(s)))
	n += copy(b[n:], s)
	clear(b[n:])
}

// cellsFor returns how many cells s takes.
func cellsFor(s string) int {
	var prefix [binary.MaxVarintLen64]byte
	return toCells(binary.PutUvarint(prefix[:], uint64(len(s))) + len(s))
}

func toCells(bytes int) int { return (bytes + cellBytes - 1) / cellBytes }
