package slab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// row stands for what the slabs are made for: 40 bytes, some of them the bytes of a free item's link.
type row struct {
	Next, Member, Scope, Flags int32
	Revision, LSN, Since       uint64
}

// mustPanic calls f, which has to panic, and returns with what.
func mustPanic(t interface {
	Helper()
	Fatal(args ...any)
}, f func(),
) (with string) {
	t.Helper()
	defer func() {
		t.Helper()
		p := recover()
		if p == nil {
			t.Fatal("no panic")
		}
		with = fmt.Sprint(p)
	}()
	f()
	return ""
}

func TestSlabGivesZeroedItemsFromOneOn(t *testing.T) {
	var m Memory
	s := NewSlab[row](&m)
	if s.Len() != 0 || s.Top() != 1 || s.Bytes() != 0 || m.Bytes() != 0 || s.InUse(0) || s.InUse(1) {
		t.Fatalf("empty: Len %d, Top %d, Bytes %d", s.Len(), s.Top(), s.Bytes())
	}
	for want := int32(1); want <= 1000; want++ {
		i := s.Take()
		if i != want || *s.At(i) != (row{}) || !s.InUse(i) || s.Top() != i+1 {
			t.Fatalf("Take gave %d with %+v, Top %d; want %d", i, *s.At(i), s.Top(), want)
		}
		*s.At(i) = row{Next: -1, Member: i, Flags: -1, LSN: math.MaxUint64}
	}
	for i := int32(1); i <= 1000; i++ {
		if got := s.At(i).Member; got != i {
			t.Fatalf("item %d holds %d", i, got)
		}
	}
	if s.Len() != 1000 || s.Used() != 40_000 || m.Bytes() != s.Bytes() || s.Bytes() < 1000*48 {
		t.Fatalf("Len %d, Bytes %d of %d", s.Len(), s.Bytes(), m.Bytes())
	}
}

func TestSlabGivesLastDroppedFirst(t *testing.T) {
	s := NewSlab[row](new(Memory))
	for range 10 {
		s.At(s.Take()).LSN = 7
	}
	for _, i := range []int32{3, 9, 5} {
		s.Drop(i)
	}
	before := s.Bytes()
	for _, want := range []int32{5, 9, 3, 11} {
		if i := s.Take(); i != want || *s.At(i) != (row{}) {
			t.Fatalf("Take gave %d with %+v, want %d", i, *s.At(i), want)
		}
	}
	if s.Len() != 11 || s.Top() != 12 || s.Bytes() != before {
		t.Fatalf("Len %d, Top %d", s.Len(), s.Top())
	}
}

func TestDroppedItemsAreWipedWhole(t *testing.T) {
	t.Run("1", testWiped[byte])
	t.Run("3", testWiped[[3]byte])
	t.Run("4", testWiped[[4]byte])
	t.Run("8", testWiped[uint64])
	t.Run("12", testWiped[[3]uint32])
	t.Run("28", testWiped[[7]uint32])
	t.Run("31", testWiped[[31]byte])
	t.Run("40", testWiped[row])
}

// testWiped fills items with ones, drops them and looks at them when they are given again.
func testWiped[T comparable](t *testing.T) {
	var zero T
	size := int(reflect.TypeFor[T]().Size())
	ones := reflect.New(reflect.TypeFor[T]())
	if _, err := binary.Decode(bytes.Repeat([]byte{255}, size), binary.NativeEndian, ones.Interface()); err != nil {
		t.Fatal(err)
	}
	s, r := NewSlab[T](new(Memory)), NewRuns[T](new(Memory), 4)
	for range 3 {
		var single, first []int32
		for range 200 {
			i := s.Take()
			at, n := r.Take(9)
			for _, p := range append(pointers(r.View(at, n)), s.At(i)) {
				if *p != zero {
					t.Fatalf("an item that was given holds %v", *p)
				}
				reflect.ValueOf(p).Elem().Set(ones.Elem())
			}
			single, first = append(single, i), append(first, at)
		}
		for k := range single {
			s.Drop(single[k])
			r.Drop(first[k], r.Size(9))
		}
	}
}

func pointers[T any](view []T) (all []*T) {
	for i := range view {
		all = append(all, &view[i])
	}
	return all
}

func TestDropDoesNotAllocate(t *testing.T) {
	s, four := NewSlab[row](new(Memory)), NewSlab[uint32](new(Memory))
	if n := testing.AllocsPerRun(100, func() {
		var at, small [10]int32
		for k := range at {
			at[k], small[k] = s.Take(), four.Take()
		}
		for k := range at {
			s.Drop(at[k])
			four.Drop(small[k])
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSlabRefusesToDropWhatIsNotInUse(t *testing.T) {
	s := NewSlab[row](new(Memory))
	a, b := s.Take(), s.Take()
	s.Drop(a)
	for _, i := range []int32{a, 0, b + 1, 1 << 20, -1, math.MinInt32, math.MaxInt32} {
		mustPanic(t, func() { s.Drop(i) })
	}
	if s.Len() != 1 || s.Take() != a || s.InUse(-1) || s.InUse(math.MaxInt32) {
		t.Fatal("a refused Drop changed the slab")
	}
	s.Drop(b)
}

func TestSlabItemsStayWhereTheyAre(t *testing.T) {
	// Far enough for mapped segments, and for two of the largest size.
	s := NewSlab[row](new(Memory))
	at := map[int32]*row{}
	for range 2_200_000 {
		i := s.Take()
		if i&(i-1) == 0 || i%9973 == 0 {
			at[i] = s.At(i)
			at[i].Member = i
		}
	}
	for i, p := range at {
		if s.At(i) != p || p.Member != i {
			t.Fatalf("item %d moved, or holds %d", i, p.Member)
		}
	}
}

func TestSlabNeighboursDoNotOverlap(t *testing.T) {
	// Every item is written whole before any is read, over all borders between segments.
	t.Run("1 byte", testNeighbours(func(i int32) byte { return byte(i * 7) }))
	t.Run("3 bytes", testNeighbours(func(i int32) [3]byte { return [3]byte{byte(i), byte(i >> 8), byte(i >> 16)} }))
	t.Run("8 bytes", testNeighbours(func(i int32) int64 { return int64(i)<<32 | int64(i) }))
	t.Run("12 bytes", testNeighbours(func(i int32) [3]int32 { return [3]int32{i, -i, i} }))
	t.Run("5000 bytes", testNeighbours(func(i int32) (v [1250]int32) { v[0], v[1249] = i, i; return v }))
}

func testNeighbours[T comparable](value func(i int32) T) func(t *testing.T) {
	return func(t *testing.T) {
		s := newSlab[T](new(Memory), 1<<10)
		for range 6000 {
			i := s.Take()
			*s.At(i) = value(i)
		}
		for i := int32(1); i < s.Top(); i++ {
			if *s.At(i) != value(i) || !s.InUse(i) {
				t.Fatalf("item %d was overwritten", i)
			}
		}
		for i := int32(1); i <= 6000; i += 2 {
			s.Drop(i)
		}
		for i := int32(1); i <= 6000; i++ {
			if used := i%2 == 0; s.InUse(i) != used || used && *s.At(i) != value(i) {
				t.Fatalf("item %d was overwritten by a dropped one", i)
			}
		}
	}
}

func TestSlabRefusesTypesWithPointers(t *testing.T) {
	type inner struct{ P *int }
	type outer struct{ In [2]inner }
	for name, makes := range map[string]func(){
		"pointer":   func() { NewSlab[*int](new(Memory)) },
		"string":    func() { NewSlab[string](new(Memory)) },
		"slice":     func() { NewSlab[[]byte](new(Memory)) },
		"map":       func() { NewSlab[map[int]int](new(Memory)) },
		"interface": func() { NewSlab[any](new(Memory)) },
		"function":  func() { NewSlab[func()](new(Memory)) },
		"channel":   func() { NewSlab[chan int](new(Memory)) },
		"nested":    func() { NewSlab[outer](new(Memory)) },
		"no size":   func() { NewSlab[struct{}](new(Memory)) },
		"runs":      func() { NewRuns[outer](new(Memory), 1) },
	} {
		t.Run(name, func(t *testing.T) { mustPanic(t, makes) })
	}
	type fine struct {
		A [3]struct {
			B bool
			C complex128
		}
		D uintptr
		E [0]*int // no pointer in it
		F float32
	}
	NewSlab[fine](new(Memory)).Take()
}

func TestSlabIndexSpaceEnds(t *testing.T) {
	s := newSlab[row](new(Memory), 1<<8)
	s.rows.limit = 1 << 10
	var last int32
	for s.Room() > 0 {
		room := s.Room()
		last = s.Take()
		if s.Room() != room-1 {
			t.Fatalf("Room went from %d to %d", room, s.Room())
		}
	}
	if last < 1<<10-1<<8 || last >= 1<<10 {
		t.Fatalf("the last item is %d", last)
	}
	mustPanic(t, func() { s.Take() })
	s.Drop(17)
	if s.Room() != 1 || s.Take() != 17 || s.Len() != int(last) {
		t.Fatal("no item after one was dropped")
	}
	mustPanic(t, func() { s.Take() })
}

func TestSlabRoomIsAlmostTheIndexSpace(t *testing.T) {
	s := NewSlab[row](new(Memory))
	if room := s.Room(); room < math.MaxInt32-128 || room > math.MaxInt32 {
		t.Fatalf("Room %d", room)
	}
}

func TestSlabPropertyEqualsMap(t *testing.T) {
	t.Run("linked", rapid.MakeCheck(func(t *rapid.T) {
		modelSlab(t, func(n uint64) row {
			n *= 0x9e3779b97f4a7c15 // bits everywhere
			return row{Next: int32(n), Member: int32(n >> 32), Flags: -1, LSN: n, Since: ^n}
		})
	}))
	t.Run("exactly a link", rapid.MakeCheck(func(t *rapid.T) {
		modelSlab(t, func(n uint64) uint32 { return 1<<31 | uint32(n) })
	}))
	t.Run("too small for a link", rapid.MakeCheck(func(t *rapid.T) {
		modelSlab(t, func(n uint64) [3]byte { return [3]byte{byte(n), byte(n >> 8), byte(n >> 16)} })
	}))
	t.Run("no whole words", rapid.MakeCheck(func(t *rapid.T) {
		modelSlab(t, func(n uint64) [9]byte { return [9]byte{0: byte(n), 1: byte(n >> 8), 3: 255, 7: 255, 8: 255} })
	}))
	t.Run("an odd number of words", rapid.MakeCheck(func(t *rapid.T) {
		modelSlab(t, func(n uint64) [7]uint32 { return [7]uint32{uint32(n), 1: 1 << 31, 5: 1, 6: 1 << 31} })
	}))
}

// modelSlab runs a history against a map from index to value.
func modelSlab[T comparable](t *rapid.T, value func(uint64) T) {
	var m Memory
	s := newSlab[T](&m, rapid.SampledFrom([]int{8, 64, largestItems}).Draw(t, "most"))
	want := map[int32]T{}
	written := uint64(0)
	var zero T
	take := func(n int) {
		for range n {
			i := s.Take()
			if _, twice := want[i]; twice || i < 1 || *s.At(i) != zero {
				t.Fatalf("Take gave %d: in use %t, holds %v", i, twice, *s.At(i))
			}
			written++
			*s.At(i) = value(written)
			want[i] = value(written)
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"take": func(t *rapid.T) { take(rapid.IntRange(1, 60).Draw(t, "n")) },
		"drop": func(t *rapid.T) {
			keys := sortedKeys(want)
			if len(keys) == 0 {
				t.Skip("no item")
			}
			from := rapid.IntRange(0, len(keys)-1).Draw(t, "from")
			step := rapid.IntRange(1, 20).Draw(t, "step")
			for k := from; k < len(keys); k += step {
				s.Drop(keys[k])
				delete(want, keys[k])
			}
			mustPanic(t, func() { s.Drop(keys[from]) })
		},
		"": func(t *rapid.T) {
			if s.Len() != len(want) || m.Bytes() != s.Bytes() {
				t.Fatalf("Len %d, want %d", s.Len(), len(want))
			}
			for i := int32(0); i < s.Top(); i++ {
				if v, used := want[i]; used != s.InUse(i) || used && *s.At(i) != v {
					t.Fatalf("item %d: in use %t, want %t", i, s.InUse(i), used)
				}
			}
		},
	})
}

func sortedKeys[V any](m map[int32]V) []int32 {
	keys := make([]int32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
