package slab

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// places returns n places in a slab of the given size, with no order in them.
func places(n, size int) []int32 {
	at := make([]int32, n)
	for k, x := 0, uint32(1); k < n; k++ {
		x = x*1664525 + 1013904223
		at[k] = int32(uint64(x)*uint64(size-1)>>32) + 1
	}
	return at
}

func filled(items int) *Slab[row] {
	s := NewSlab[row](new(Memory))
	for range items {
		s.At(s.Take()).LSN = 1
	}
	return s
}

// BenchmarkAt compares finding an item with indexing a slice of the same size: near is what stays in
// the cache, far is what does not.
func BenchmarkAt(b *testing.B) {
	const items = 4 << 20
	s, plain := filled(items), make([]row, items)
	clear(plain)
	for _, c := range []struct {
		name string
		at   []int32
	}{
		{"near", places(1024, 400)},
		{"far", places(1<<20, items)},
	} {
		perItem := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.at)), "ns/item")
		}
		var sum uint64
		b.Run(c.name+"/slab", func(b *testing.B) {
			for b.Loop() {
				for _, i := range c.at {
					sum += s.At(i).LSN
				}
			}
			perItem(b)
		})
		b.Run(c.name+"/slice", func(b *testing.B) {
			for b.Loop() {
				for _, i := range c.at {
					sum += plain[i].LSN
				}
			}
			perItem(b)
		})
		runtime.KeepAlive(sum)
	}
}

func BenchmarkTakeDrop(b *testing.B) {
	b.Run("slab", func(b *testing.B) {
		s := filled(1000)
		b.ReportAllocs()
		for b.Loop() {
			s.Drop(s.Take())
		}
	})
	b.Run("slab fresh", func(b *testing.B) {
		s := NewSlab[row](new(Memory))
		b.ReportAllocs()
		for b.Loop() {
			if s.Room() < 1<<31-50_000_000 {
				s = NewSlab[row](new(Memory))
				runtime.GC()
			}
			s.At(s.Take()).LSN = 1
		}
	})
	b.Run("runs of 100", func(b *testing.B) {
		r := NewRuns[row](new(Memory), 4)
		b.ReportAllocs()
		for b.Loop() {
			r.Drop(r.Take(100))
		}
	})
	b.Run("text of 23", func(b *testing.B) {
		x := NewText(new(Memory))
		b.ReportAllocs()
		for b.Loop() {
			x.Drop(x.Put("a text of 23 bytes here"))
		}
	})
}

// BenchmarkWalk reads 200 neighbouring items through a View.
func BenchmarkWalk(b *testing.B) {
	r := NewRuns[row](new(Memory), 4)
	at, _ := r.Take(200)
	var sum uint64
	for b.Loop() {
		view := r.View(at, 200)
		for k := range view {
			sum += view[k].LSN
		}
	}
	runtime.KeepAlive(sum)
}

// BenchmarkCollection forces collections while 10 million items are resident in different ways.
func BenchmarkCollection(b *testing.B) {
	const items = 10_000_000
	for _, c := range []struct {
		name   string
		reside func() any
	}{
		{"nothing", func() any { return nil }},
		{"slab", func() any { return filled(items) }},
		{"runs", func() any {
			r := NewRuns[row](new(Memory), 4)
			for range items / 100 {
				at, _ := r.Take(100)
				r.View(at, 100)[0].LSN = 1
			}
			return r
		}},
		{"pointers", func() any {
			rows := make([]*row, items)
			for i := range rows {
				rows[i] = &row{LSN: 1}
			}
			return rows
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			resident := c.reside()
			runtime.GC()
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				runtime.GC()
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			b.Logf("%s: median %v, longest %v, heap %d MiB", c.name,
				times[len(times)/2], times[len(times)-1], stats.HeapAlloc>>20)
			runtime.KeepAlive(resident)
		})
	}
}
