package slab

import (
	"fmt"
	"reflect"
)

// Slab holds items of one type without pointers, each found by its index. Index 0 is never given.
// Items stay where they are until they are dropped. See the package comment for what may run at the
// same time.
type Slab[T any] struct {
	rows  segments[T]
	free  int32   // the item dropped last, which holds the index of the one before; 0 is none
	spare []int32 // free items, when they are too small to hold an index
	small bool    // they are
	top   int64   // no item from here on was ever given
	end   int64   // no segment reaches here
	items int     // in use
}

// NewSlab returns an empty slab whose segments are counted in m. It reserves nothing yet. It panics
// when T holds pointers or has no size.
func NewSlab[T any](m *Memory) *Slab[T] { return newSlab[T](m, largestItems) }

// newSlab lets tests see largest segments early.
func newSlab[T any](m *Memory, most int) *Slab[T] {
	s := &Slab[T]{top: 1, small: reflect.TypeFor[T]().Size() < linkBytes}
	s.rows.init(m, 1, most, 1)
	return s
}

// At returns the item at index i, which must be in use.
func (s *Slab[T]) At(i int32) *T { return s.rows.at(i) }

// Take returns the index of an item that was not in use and is zero. It panics when the index space
// is used up.
func (s *Slab[T]) Take() int32 {
	i := s.next()
	word, bit := s.rows.mark(i, 0)
	*word |= bit
	s.items++
	return i
}

// next removes one item from the free ones.
func (s *Slab[T]) next() int32 {
	if i := s.free; i != 0 {
		s.free = s.rows.link(i)
		s.rows.setLink(i, 0)
		return i
	}
	if last := len(s.spare) - 1; last >= 0 {
		i := s.spare[last]
		s.spare = s.spare[:last]
		return i
	}
	if s.top >= s.end {
		_, s.end = s.rows.add()
	}
	i := int32(s.top)
	s.top++
	return i
}

// Drop zeroes the item at index i and gives it back. It panics when the item is not in use.
func (s *Slab[T]) Drop(i int32) {
	if i <= 0 || int64(i) >= s.top {
		s.refuse(i)
	}
	word, bit := s.rows.mark(i, 0)
	if *word&bit == 0 {
		s.refuse(i)
	}
	*word &^= bit
	s.items--
	s.rows.wipe(i, 1)
	if s.small {
		s.spare = append(s.spare, i)
		return
	}
	s.rows.setLink(i, s.free)
	s.free = i
}

func (s *Slab[T]) refuse(i int32) {
	panic(fmt.Sprintf("slab: item %d of type %v is not in use", i, reflect.TypeFor[T]()))
}

// InUse tells whether index i was given by Take and not dropped since. Any i may be asked about.
func (s *Slab[T]) InUse(i int32) bool {
	if i <= 0 || int64(i) >= s.top {
		return false
	}
	word, bit := s.rows.mark(i, 0)
	return *word&bit != 0
}

// Len returns how many items are in use.
func (s *Slab[T]) Len() int { return s.items }

// Top returns an index above every index in use: the highest ever given, plus one. It is at most
// 2^31-1.
func (s *Slab[T]) Top() int32 { return int32(s.top) }

// Room returns how many items Take can still give before it panics.
func (s *Slab[T]) Room() int { return int(max(1, s.rows.end()) - 1 - int64(s.items)) }

// Used returns how many bytes the items in use take.
func (s *Slab[T]) Used() int64 { return int64(s.items) * s.rows.itemBytes() }

// Bytes returns how many bytes are reserved.
func (s *Slab[T]) Bytes() int64 { return s.rows.bytes }
