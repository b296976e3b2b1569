package slab

import (
	"testing"

	"pgregory.net/rapid"
)

func TestColumnPropertyFollowsItsRuns(t *testing.T) {
	for _, unit := range []int{1, 3, 4} {
		t.Run(string(rune('0'+unit)), rapid.MakeCheck(func(t *rapid.T) {
			var m Memory
			r := newRuns[row](&m, unit, 64)
			small, large := NewColumn[int32](&m, r), NewColumn[[9]uint64](&m, r)
			sizes := map[int32]int{}
			t.Repeat(map[string]func(*rapid.T){
				"take": func(t *rapid.T) {
					at, size := r.Take(rapid.IntRange(1, 48).Draw(t, "n"))
					small.Cover(at + int32(size))
					large.Cover(at + int32(size))
					sizes[at] = size
					for i := range int32(size) {
						*r.At(at + i) = row{Member: at + i}
						*small.At(at + i) = at + i
						large.At(at + i)[8] = uint64(at + i)
					}
				},
				"drop": func(t *rapid.T) {
					if len(sizes) == 0 {
						t.Skip("no range")
					}
					at := rapid.SampledFrom(sortedKeys(sizes)).Draw(t, "at")
					r.Drop(at, sizes[at])
					delete(sizes, at)
				},
				"": func(t *rapid.T) {
					for at, size := range sizes {
						rows, beside, far := r.View(at, size), small.View(at, size), large.View(at, size)
						for i := range size {
							want := at + int32(i)
							if rows[i].Member != want || beside[i] != want || far[i][8] != uint64(want) {
								t.Fatalf("beside %d are %d, %d and %d", want, rows[i].Member, beside[i], far[i][8])
							}
						}
					}
					if sum := r.Bytes() + small.Bytes() + large.Bytes(); m.Bytes() != sum {
						t.Fatalf("%d bytes, %d in sum", m.Bytes(), sum)
					}
				},
			})
		}))
	}
}

func TestColumnStaysWhereItIs(t *testing.T) {
	r := NewRuns[row](new(Memory), 4)
	c := NewColumn[int32](new(Memory), r)
	if c.View(0, 0) != nil || c.Bytes() != 0 {
		t.Fatal("not empty")
	}
	mustPanic(t, func() { c.At(4) })
	at, size := r.Take(8)
	c.Cover(at + int32(size))
	before := c.At(at)
	*before = 5
	c.Cover(1 << 20)
	if c.At(at) != before || *before != 5 {
		t.Fatal("an item moved")
	}
	bytes := c.Bytes()
	c.Cover(1 << 20)
	c.Cover(1)
	if c.Bytes() != bytes || bytes > 9<<20 {
		t.Fatalf("%d bytes grew to %d without need", bytes, c.Bytes())
	}
	mustPanic(t, func() { NewColumn[*int](new(Memory), r) })
}
