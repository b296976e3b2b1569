package slab

import (
	"math"
	"runtime"
	"testing"
	"unsafe"
)

func TestSegmentBoundsAreWithoutGaps(t *testing.T) {
	for _, c := range []struct {
		name             string
		unit, most       int
		first, biggest   int64
		doublingSegments int
	}{
		{name: "as made", unit: 1, most: largestItems, first: 64, biggest: 1 << 20, doublingSegments: 14},
		{name: "large unit", unit: 200, most: largestItems, first: 512, biggest: 1 << 20, doublingSegments: 11},
		{name: "one size only", unit: 1, most: 2, first: 2, biggest: 2},
		{name: "unit above the largest", unit: 100, most: 8, first: 256, biggest: 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := new(segments[row])
			s.init(new(Memory), c.unit, c.most, 1)
			next := int64(0)
			for k := range 100 {
				from, to := s.bounds(k)
				want := c.first << min(k, c.doublingSegments)
				if from != next || to-from != want {
					t.Fatalf("segment %d is [%d, %d), want [%d, %d)", k, from, to, next, next+want)
				}
				next = to
				s.limit = to
				if s.end() != to {
					t.Fatalf("limit %d: the end is %d", to, s.end())
				}
				s.limit = to - 1
				if s.end() != from {
					t.Fatalf("limit %d: the end is %d, want %d", to-1, s.end(), from)
				}
			}
			if size := c.first << c.doublingSegments; size != c.biggest {
				t.Fatalf("the largest has %d items", size)
			}
		})
	}
}

func TestLargestSegmentsHaveAtMostTheirBytes(t *testing.T) {
	big := new(segments[[300]byte])
	big.init(new(Memory), 1, largestItems, 1)
	if n := 1 << big.shift; n*300 > largestBytes || n*600 <= largestBytes {
		t.Fatalf("%d items of 300 bytes", n)
	}
	huge := new(segments[[1 << 16]byte])
	huge.init(new(Memory), 1, largestItems, 1)
	if n := 1 << huge.shift; n != 1<<10 || huge.first != 2 {
		t.Fatalf("%d items of 64 KiB, first %d", n, huge.first)
	}
}

func TestEveryIndexHasItsOwnPlace(t *testing.T) {
	s := new(segments[row])
	s.init(new(Memory), 1, 256, 2)
	end := int64(0)
	for range 10 {
		_, end = s.add()
	}
	places := map[*row]bool{}
	type place struct {
		word *uint64
		bit  uint64
	}
	marks := map[place]bool{}
	for i := range int32(end) {
		places[s.at(i)] = true
		if s.at(i) != &s.view(i, 1)[0] {
			t.Fatalf("view and at disagree about %d", i)
		}
		for layer := range 2 {
			word, bit := s.mark(i, layer)
			*word |= bit
			marks[place{word, bit}] = true
		}
	}
	if len(places) != int(end) || len(marks) != 2*int(end) {
		t.Fatalf("%d places and %d marks for %d items", len(places), len(marks), end)
	}
	for i := range int32(end) {
		if *s.at(i) != (row{}) {
			t.Fatalf("a mark was written into item %d", i)
		}
	}
}

func TestNoIndexLeadsOutOfTheSegments(t *testing.T) {
	s := new(segments[row])
	s.init(new(Memory), 1, 256, 1)
	mustPanic(t, func() { s.at(0) })
	_, end := s.add()
	for _, i := range []int32{int32(end), 1 << 20, math.MaxInt32, -1, -2, -int32(s.first) - 1, math.MinInt32} {
		mustPanic(t, func() { s.at(i) })
		mustPanic(t, func() { s.view(i, 1) })
	}
	mustPanic(t, func() { s.view(1, int(end)) })
	for range 5 {
		_, end = s.add()
	}
	for _, n := range []int{int(end), -1, math.MinInt, math.MaxInt} {
		mustPanic(t, func() { s.view(0, n) })
	}
}

func TestItemsBeginWithALine(t *testing.T) {
	s := NewSlab[[64]byte](new(Memory))
	for range 3000 { // the last segments are mapped
		s.Take()
	}
	for i := int32(1); i < s.Top(); i++ {
		if uintptr(unsafe.Pointer(s.At(i)))%lineBytes != 0 {
			t.Fatalf("item %d lies in two lines", i)
		}
	}
}

func TestLargeSegmentsAreOutsideTheHeap(t *testing.T) {
	if mapped := mapMemory(1); mapped == nil {
		t.Skip("no mappings here")
	} else {
		unmapMemory(mapped)
	}
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	s := NewSlab[row](new(Memory))
	for range 1_000_000 {
		s.At(s.Take()).LSN = 1
	}
	if grown := int64(heap()) - int64(before); grown > 1<<20 || s.Bytes() < 40<<20 {
		t.Fatalf("the heap grew by %d bytes with %d reserved", grown, s.Bytes())
	}
	runtime.KeepAlive(s)
}

func TestMemoryIsGivenBackWithTheSlab(t *testing.T) {
	var m Memory
	fill := func() {
		s, r, x := NewSlab[row](&m), NewRuns[row](&m, 4), NewText(&m)
		for i := range 20_000 {
			s.Take()
			r.Take(i % 40)
			x.Put("a text that takes some room")
		}
		if sum := s.Bytes() + r.Bytes() + x.Bytes(); m.Bytes() != sum || sum < 20_000*(40+20*40+30) {
			t.Fatalf("%d bytes, %d in sum", m.Bytes(), sum)
		}
	}
	fill()
	kept := NewSlab[row](&m)
	kept.At(kept.Take()).LSN = 5
	// Cleanups run some time after a collection; each further one gives them time.
	for range 1000 {
		if m.Bytes() == kept.Bytes() {
			break
		}
		runtime.GC()
	}
	if m.Bytes() != kept.Bytes() || kept.At(1).LSN != 5 {
		t.Fatalf("%d bytes are reserved, want %d", m.Bytes(), kept.Bytes())
	}
	runtime.KeepAlive(kept)
	for range 1000 {
		if m.Bytes() == 0 {
			return
		}
		runtime.GC()
	}
	t.Fatalf("%d bytes are reserved without a slab", m.Bytes())
}
