package slab

import (
	"fmt"
	"math/bits"
	"reflect"
)

// Runs holds ranges of neighbouring items of one type without pointers. A range is found by the index
// of its first item; index 0 is never given. Ranges stay where they are until they are dropped, and
// each lies in one segment. See the package comment for what may run at the same time.
type Runs[T any] struct {
	rows  segments[T]
	unit  int      // items
	limit int      // items in the largest class
	free  []int32  // per class, the range dropped last, which holds the index of the one before
	some  []uint64 // the classes that have a free range, as bits
	next  int64    // what is left of the newest segment begins here
	end   int64    // and ends here
	items int      // in ranges in use
}

// The bitmaps of a segment.
const (
	inUse  = iota // at the first item of a range in use
	begins        // at the first item of a range, free or in use; once a border, always a border
	layers
)

// NewRuns returns an empty Runs whose segments are counted in m and whose ranges are multiples of unit
// items. It reserves nothing yet. It panics when T holds pointers or has no size, or when a unit has
// fewer than 4 bytes.
func NewRuns[T any](m *Memory, unit int) *Runs[T] { return newRuns[T](m, unit, largestItems) }

// newRuns lets tests see largest segments early.
func newRuns[T any](m *Memory, unit, most int) *Runs[T] {
	if size := int(reflect.TypeFor[T]().Size()); unit < 1 || unit*size < linkBytes {
		panic(fmt.Sprintf("slab: a unit of %d items of %d bytes cannot hold a link", unit, size))
	}
	r := &Runs[T]{unit: unit}
	r.rows.init(m, unit, most, layers)
	classes := classWithin(1<<r.rows.shift/unit) + 1
	r.limit = classUnits(classes-1) * unit
	r.free = make([]int32, classes)
	r.some = make([]uint64, (classes+63)/64)
	return r
}

// MaxRun returns the size in items of the largest range there can be.
func (r *Runs[T]) MaxRun() int { return r.limit }

// Size returns the size in items of the range that Take(n) would give.
func (r *Runs[T]) Size(n int) int {
	if n == 0 {
		return 0
	}
	return classUnits(r.classOf(n)) * r.unit
}

// classOf returns the class for n items, or panics when there is none.
func (r *Runs[T]) classOf(n int) int {
	if n < 1 || n > r.limit {
		panic(fmt.Sprintf("slab: a range of %d items, at most %d", n, r.limit))
	}
	return classOf((n + r.unit - 1) / r.unit)
}

// Take returns the index of the first of size items, which were not in use and are zero. The size is
// Size(n), at least n; Drop wants it back. Take(0) gives 0, 0. It panics when n is negative or above
// MaxRun, and when the index space is used up.
func (r *Runs[T]) Take(n int) (at int32, size int) {
	if n == 0 {
		return 0, 0
	}
	class := r.classOf(n)
	size = classUnits(class) * r.unit
	at = r.find(class, size)
	word, bit := r.rows.mark(at, inUse)
	*word |= bit
	r.items += size
	return at, size
}

// find removes a range of the class, whose size is given in items, from the free ones.
func (r *Runs[T]) find(class, size int) int32 {
	if r.free[class] != 0 {
		return r.pop(class)
	}
	if r.end-r.next < int64(size) {
		if larger := r.larger(class); larger >= 0 {
			at := r.pop(larger)
			r.push(int64(at)+int64(size), int64(at)+int64(classUnits(larger)*r.unit))
			return at
		}
		r.grow(size)
	}
	at := int32(r.next)
	r.next += int64(size)
	r.border(at)
	return at
}

// grow adds segments until the newest has size items left. What was left before becomes free ranges.
func (r *Runs[T]) grow(size int) {
	for r.end-r.next < int64(size) {
		from, to := r.rows.add()
		r.push(r.next, r.end)
		// Units are counted from the beginning of the segment; less than one at its end is not used.
		r.next, r.end = from, to-(to-from)%int64(r.unit)
		if from == 0 {
			r.next += int64(r.unit) // with index 0
		}
	}
}

// larger returns the smallest class above the given one that has a free range, or -1.
func (r *Runs[T]) larger(class int) int {
	class++
	for k := class / 64; k < len(r.some); k++ {
		word := r.some[k]
		if k == class/64 {
			word = word >> (class % 64) << (class % 64)
		}
		if word != 0 {
			return k*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// push makes the unused and zeroed items from index at up to, not including, end free: a whole number
// of units, cut into as few classes as possible.
func (r *Runs[T]) push(at, end int64) {
	for at < end {
		class := min(classWithin(int(end-at)/r.unit), len(r.free)-1)
		r.border(int32(at))
		r.rows.setLink(int32(at), r.free[class])
		r.free[class] = int32(at)
		r.some[class/64] |= 1 << (class % 64)
		at += int64(classUnits(class) * r.unit)
	}
}

// pop removes the range of the class that was freed last. There is one.
func (r *Runs[T]) pop(class int) int32 {
	at := r.free[class]
	r.free[class] = r.rows.link(at)
	r.rows.setLink(at, 0)
	if r.free[class] == 0 {
		r.some[class/64] &^= 1 << (class % 64)
	}
	return at
}

// Drop zeroes the range that Take gave as at and size, and gives it back. It panics when no range in
// use has this place and size. Drop(0, 0) does nothing.
func (r *Runs[T]) Drop(at int32, size int) {
	if at == 0 && size == 0 {
		return
	}
	if !r.InUse(at) || !r.reaches(at, size) {
		panic(fmt.Sprintf("slab: no range of %d items of type %v at %d is in use",
			size, reflect.TypeFor[T](), at))
	}
	r.rows.wipe(at, size)
	word, bit := r.rows.mark(at, inUse)
	*word &^= bit
	r.items -= size
	r.push(int64(at), int64(at)+int64(size))
}

// InUse tells whether a range that Take gave and nobody dropped begins at index at. Any index may be
// asked about.
func (r *Runs[T]) InUse(at int32) bool {
	if at <= 0 || int64(at) >= r.next {
		return false
	}
	word, bit := r.rows.mark(at, inUse)
	return *word&bit != 0
}

// border notes that a range begins at the index.
func (r *Runs[T]) border(at int32) {
	word, bit := r.rows.mark(at, begins)
	*word |= bit
}

// reaches tells whether the range that begins at the index has the size in items.
func (r *Runs[T]) reaches(at int32, size int) bool {
	behind := r.rows.behind(at, r.unit)
	if size < 1 || size > behind || r.rows.anyMarked(at+1, size-1, begins) {
		return false
	}
	next := int64(at) + int64(size)
	return size == behind || next == r.next || next < r.next && r.rows.anyMarked(int32(next), 1, begins)
}

// View returns n items from index at on, with no capacity beyond them. They belong to one range in
// use. The slice stays valid until that range is dropped.
func (r *Runs[T]) View(at int32, n int) []T {
	if n == 0 {
		return nil
	}
	return r.rows.view(at, n)
}

// At returns the item at index i, which belongs to a range in use.
func (r *Runs[T]) At(i int32) *T { return r.rows.at(i) }

// Len returns how many items are in ranges in use, counting their whole size.
func (r *Runs[T]) Len() int { return r.items }

// Room returns how many items the segments could hold that may still be added. A Take of a size up to
// it succeeds; with less room, it succeeds where a free range is large enough.
func (r *Runs[T]) Room() int { return int(max(0, r.rows.end()-r.end)) }

// Used returns how many bytes the ranges in use take.
func (r *Runs[T]) Used() int64 { return int64(r.items) * r.rows.itemBytes() }

// Bytes returns how many bytes are reserved.
func (r *Runs[T]) Bytes() int64 { return r.rows.bytes }
