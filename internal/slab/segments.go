package slab

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"reflect"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// This is the only file that uses package unsafe. What makes that sound:
//
//   - Items hold no pointers (checked by newSegments), so the collector need not see them, and memory
//     that holds none can be made from words or mapped from the system.
//   - A segment begins at a multiple of 8, the largest alignment a type without pointers can have. Its
//     bitmaps take whole words, and items follow them as in an array.
//   - Base pointers are read from a slice with its bounds checked, and the offset is masked to the size
//     of that segment, so that no index leads out of the segments. The bitmaps end at the base.
//   - Base pointers into the Go heap are real pointers in a real slice, so they hold their segment.
//     Mapped segments are released by a cleanup of the segments value, not before it is unreachable.

const (
	firstBytes   = 4 << 10  // segment 0 has at most that many bytes of items
	largestBytes = 64 << 20 // and every segment at most that many
	largestItems = 1 << 20
	indexes      = 1 << 31 // every index is below
	linkBytes    = 4       // of the index that a free item holds
	wordBytes    = 8
	halfBytes    = 4  // what is written at once where items are wiped
	lineBytes    = 64 // items begin with a cache line, so that those of 64 bytes lie in one
)

// segments is a row of segments of items. It must not be copied, and it must live on the heap.
type segments[T any] struct {
	bases  atomic.Pointer[[]unsafe.Pointer] // where each segment begins
	first  uint32                           // items in segment 0, a power of two
	shift  int                              // a largest segment holds 1<<shift items
	skip   int                              // bits.Len32(first)
	layers int                              // bitmaps of a segment, with a bit for each item
	memory *Memory
	bytes  int64 // reserved
	limit  int64 // indexes below which segments may end
}

// init prepares the row for segments with the given number of bitmaps. The first has at least two times
// unit items; the largest have limit items, or less where those are too many bytes. It panics when
// items hold pointers or have no size.
func (s *segments[T]) init(m *Memory, unit, limit, layers int) {
	t := reflect.TypeFor[T]()
	if t.Size() == 0 {
		panic(fmt.Sprintf("slab: items of type %v have no size", t))
	}
	if holdsPointers(t) {
		panic(fmt.Sprintf("slab: items of type %v hold pointers", t))
	}
	size := int(t.Size())
	low := max(floorLog(min(limit, firstBytes/size)), floorLog(2*unit-1)+1)
	s.first = 1 << low
	s.skip = low + 1
	s.shift = max(low, floorLog(min(limit, largestBytes/size)))
	s.layers = layers
	s.memory = m
	s.limit = indexes
	s.bases.Store(new([]unsafe.Pointer))
}

// at returns the item at index i. For an index beyond the segments it panics.
func (s *segments[T]) at(i int32) *T {
	j := uint32(i) + s.first
	e := min(bits.Len32(j)-1, s.shift) & 31
	base := (*s.bases.Load())[int(j>>e)+e-s.skip]
	return (*T)(unsafe.Add(base, uintptr(j&(1<<e-1))*unsafe.Sizeof(*new(T))))
}

// view returns n items from index i, all in one segment, or panics.
func (s *segments[T]) view(i int32, n int) []T {
	j := uint32(i) + s.first
	e := min(bits.Len32(j)-1, s.shift) & 31
	off := j & (1<<e - 1)
	if uint(n) > uint(1<<e-off) {
		panic(fmt.Sprintf("slab: %d items at %d leave their segment", n, i))
	}
	base := (*s.bases.Load())[int(j>>e)+e-s.skip]
	return unsafe.Slice((*T)(unsafe.Add(base, uintptr(off)*unsafe.Sizeof(*new(T)))), n)
}

// rest returns the items from index i to the end of its segment.
func (s *segments[T]) rest(i int32) []T {
	j := uint32(i) + s.first
	e := min(bits.Len32(j)-1, s.shift) & 31
	off := j & (1<<e - 1)
	base := (*s.bases.Load())[int(j>>e)+e-s.skip]
	return unsafe.Slice((*T)(unsafe.Add(base, uintptr(off)*unsafe.Sizeof(*new(T)))), 1<<e-off)
}

// mark returns the word of the bitmap with the number layer that holds the bit of index i, and which
// bit of it that is.
func (s *segments[T]) mark(i int32, layer int) (word *uint64, bit uint64) {
	j := uint32(i) + s.first
	e := min(bits.Len32(j)-1, s.shift) & 31
	off := uintptr(j & (1<<e - 1))
	base := (*s.bases.Load())[int(j>>e)+e-s.skip]
	// Bitmaps stand before the items, and all have the same size.
	back := (1+layer)*mapBytes(1<<e) - int(off/64*8)
	return (*uint64)(unsafe.Add(base, -back)), 1 << (off % 64)
}

// behind returns how many items of the segment come behind index i, counting whole units from the
// segment's beginning.
func (s *segments[T]) behind(i int32, unit int) int {
	j := uint32(i) + s.first
	e := min(bits.Len32(j)-1, s.shift) & 31
	items := 1 << e
	return items - items%unit - int(j&(1<<e-1))
}

// anyMarked tells whether one of the n items from index i is marked. They are all in one segment.
func (s *segments[T]) anyMarked(i int32, n, layer int) bool {
	for n > 0 {
		word, bit := s.mark(i, layer)
		m := min(n, 64-bits.TrailingZeros64(bit)) // as many as this word holds
		if *word/bit<<(64-m) != 0 {
			return true
		}
		i, n = i+int32(m), n-m
	}
	return false
}

// link reads the index that a free item holds in its first bytes.
func (s *segments[T]) link(i int32) int32 {
	return int32(binary.NativeEndian.Uint32((*[linkBytes]byte)(unsafe.Pointer(s.at(i)))[:]))
}

// setLink writes it. Items, or the ranges that begin with them, have at least linkBytes bytes.
func (s *segments[T]) setLink(i, next int32) {
	if s.whole() {
		atomic.StoreUint32((*uint32)(unsafe.Pointer(s.at(i))), uint32(next))
		return
	}
	binary.NativeEndian.PutUint32((*[linkBytes]byte)(unsafe.Pointer(s.at(i)))[:], uint32(next))
}

// wipe zeroes n items from index i, all in one segment: word by word where items consist of words, so
// that others may read words of them atomically meanwhile.
func (s *segments[T]) wipe(i int32, n int) {
	items := s.view(i, n)
	if !s.whole() {
		clear(items)
		return
	}
	base := unsafe.Pointer(unsafe.SliceData(items))
	for off := uintptr(0); off < uintptr(n)*unsafe.Sizeof(*new(T)); off += halfBytes {
		atomic.StoreUint32((*uint32)(unsafe.Add(base, off)), 0)
	}
}

// itemBytes returns how many bytes an item has.
func (s *segments[T]) itemBytes() int64 { return int64(unsafe.Sizeof(*new(T))) }

// whole tells whether items consist of words of four bytes, and so lie at multiples of it.
func (s *segments[T]) whole() bool { return unsafe.Sizeof(*new(T))%halfBytes == 0 }

// add reserves the next segment, publishes it and returns its bounds: indexes from up to, not
// including, to.
func (s *segments[T]) add() (from, to int64) {
	bases := *s.bases.Load()
	from, to = s.bounds(len(bases))
	if to > s.limit {
		panic(fmt.Sprintf("slab: no index left for items of type %v, %d are taken", reflect.TypeFor[T](), from))
	}
	items := int(to - from)
	head := roundUp(s.layers*mapBytes(items), lineBytes)
	n := roundUp(head+items*int(unsafe.Sizeof(*new(T))), wordBytes)
	b := block{memory: s.memory, bytes: int64(n)}
	var base unsafe.Pointer
	if n >= mapFrom {
		b.mapped = mapMemory(n)
	}
	if b.mapped != nil {
		b.bytes = int64(len(b.mapped))
		base = unsafe.Pointer(unsafe.SliceData(b.mapped))
	} else {
		base = unsafe.Pointer(unsafe.SliceData(make([]uint64, n/wordBytes)))
	}
	s.bytes += b.bytes
	s.memory.bytes.Add(b.bytes)
	runtime.AddCleanup(s, block.release, b)
	// A reader of the old table does not look beyond its length, so they may share an array.
	bases = append(bases, unsafe.Add(base, head))
	s.bases.Store(&bases)
	return from, to
}

// bounds returns the indexes of segment k, to exclusive.
func (s *segments[T]) bounds(k int) (from, to int64) {
	first, doublings := int64(s.first), s.shift+1-s.skip
	if k <= doublings {
		return first<<k - first, first<<(k+1) - first
	}
	from = int64(k-doublings+1)<<s.shift - first
	return from, from + 1<<s.shift
}

// end returns the index before which the last segment would end that the limit allows.
func (s *segments[T]) end() int64 {
	row := s.limit + int64(s.first)
	if row >= 1<<s.shift {
		return row>>s.shift<<s.shift - int64(s.first)
	}
	return max(0, 1<<(bits.Len64(uint64(row))-1)-int64(s.first))
}

// mapBytes returns the bytes that a bitmap of n items takes, in whole words.
func mapBytes(n int) int { return (n + 63) / 64 * wordBytes }

// roundUp returns the first multiple of step from n on.
func roundUp(n, step int) int { return (n + step - 1) / step * step }

// floorLog returns the binary logarithm of n, rounded down, and 0 below 1.
func floorLog(n int) int { return max(0, bits.Len(uint(max(0, n)))-1) }

// octets returns the bytes of cells, in place.
func octets(cells []cell) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(cells))), len(cells)*cellBytes)
}

// holdsPointers tells whether values of the type refer to other memory.
func holdsPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	case reflect.Array:
		return t.Len() > 0 && holdsPointers(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			if holdsPointers(field.Type) {
				return true
			}
		}
		return false
	}
	return true
}
