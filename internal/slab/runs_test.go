package slab

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestRunsTakeAndDrop(t *testing.T) {
	var m Memory
	r := NewRuns[row](&m, 4)
	if r.Len() != 0 || r.Bytes() != 0 || r.InUse(0) || r.InUse(4) {
		t.Fatal("not empty")
	}
	for _, c := range []struct{ n, size int }{
		{1, 4}, {4, 4}, {5, 8}, {32, 32}, {33, 36}, {64, 64}, {65, 72}, {129, 144}, {1000, 1024}, {1025, 1152},
	} {
		before := r.Len()
		at, size := r.Take(c.n)
		if size != c.size || r.Size(c.n) != size || r.Len() != before+size || !r.InUse(at) {
			t.Errorf("Take(%d) gave %d items, want %d", c.n, size, c.size)
		}
		view := r.View(at, c.n)
		if len(view) != c.n || cap(view) != c.n || &view[0] != r.At(at) || &view[c.n-1] != r.At(at+int32(c.n)-1) {
			t.Errorf("View of %d items has %d and %d", c.n, len(view), cap(view))
		}
		for i := range view {
			if view[i] != (row{}) {
				t.Fatalf("Take(%d): item %d holds %+v", c.n, i, view[i])
			}
			view[i] = row{Next: -1, LSN: math.MaxUint64}
		}
	}
	if m.Bytes() != r.Bytes() || r.Used() != int64(r.Len())*40 {
		t.Errorf("%d bytes, %d counted", r.Bytes(), m.Bytes())
	}
}

func TestRunsOfNothing(t *testing.T) {
	r := NewRuns[row](new(Memory), 4)
	at, size := r.Take(0)
	if at != 0 || size != 0 || r.Size(0) != 0 || r.View(0, 0) != nil || r.Bytes() != 0 {
		t.Fatalf("Take(0) gave %d, %d", at, size)
	}
	r.Drop(0, 0)
}

func TestRunsGiveLastDroppedFirst(t *testing.T) {
	r := NewRuns[row](new(Memory), 2)
	var at [6]int32
	for i := range at {
		at[i], _ = r.Take(6)
		r.View(at[i], 6)[5].LSN = 1
		r.View(at[i], 6)[0].Next = 1
	}
	bytes := r.Bytes()
	for _, i := range []int{4, 1, 2} {
		r.Drop(at[i], 6)
	}
	for _, i := range []int{2, 1, 4} {
		got, _ := r.Take(5)
		if got != at[i] {
			t.Fatalf("Take gave %d, want %d", got, at[i])
		}
		for _, v := range r.View(got, 6) {
			if v != (row{}) {
				t.Fatalf("range %d holds %+v", got, v)
			}
		}
	}
	if r.Bytes() != bytes || r.Len() != 36 {
		t.Fatalf("Len %d", r.Len())
	}
}

func TestRunsRefuseToDropWhatIsNotARange(t *testing.T) {
	r := NewRuns[row](new(Memory), 2)
	var at [5]int32
	for i := range at {
		at[i], _ = r.Take(8)
	}
	long, _ := r.Take(72)
	neighbour, _ := r.Take(8)
	if neighbour != long+72 {
		t.Fatalf("ranges at %d and %d", long, neighbour)
	}
	r.Drop(at[1], 8)
	r.Drop(at[4], 8)
	small, _ := r.Take(2) // cut from the one dropped last
	for _, c := range []struct {
		at   int32
		size int
	}{
		{at[1], 8},     // twice
		{at[0] + 2, 6}, // not a beginning
		{at[0], 6},     // too small
		{at[0], 16},    // too large, into a free range
		{at[2], 16},    // too large, into one in use
		{at[3], 10},    // too large, into a cut one
		{at[0], 7},     // no class
		{at[0], 0},     // no size
		{at[0], -8},    // nor this
		{small + 2, 6}, // the rest of the cut one is free
		{small, 8},     // and the range in use is small
		{long, 80},     // too large, by what the next word of the bitmap tells
		{0, 2},         // nobody's
		{-1, 2},        // no index
		{math.MaxInt32, 2},
		{at[0], math.MaxInt},
	} {
		mustPanic(t, func() { r.Drop(c.at, c.size) })
	}
	if r.Len() != 3*8+72+8+2 {
		t.Fatalf("a refused Drop changed Len to %d", r.Len())
	}
	for _, i := range []int{0, 2, 3} {
		r.Drop(at[i], 8)
	}
	r.Drop(small, 2)
	r.Drop(long, 72)
	r.Drop(neighbour, 8)
	if r.Len() != 0 {
		t.Fatalf("Len %d", r.Len())
	}
}

func TestRunsDropAtTheEndOfASegment(t *testing.T) {
	// Ranges of 3 items fill segments of 32, of which the last 2 stay unused, and the first 3 with index 0.
	r := newRuns[row](new(Memory), 3, 32)
	var at []int32
	for range 40 {
		i, _ := r.Take(3)
		at = append(at, i)
	}
	if at[0] != 3 || at[8] != 27 || at[9] != 32 || at[18] != 59 || at[19] != 64 {
		t.Fatalf("ranges at %v", at)
	}
	for _, i := range at {
		mustPanic(t, func() { r.Drop(i, 6) })
		r.Drop(i, 3)
		mustPanic(t, func() { r.Drop(i, 3) })
	}
}

func TestRunsUseTheTailOfASegment(t *testing.T) {
	r := newRuns[row](new(Memory), 1, 256)
	first, _ := r.Take(40) // of 64, after index 0
	_, size := r.Take(120) // does not fit what is left, nor one segment to come
	bytes := r.Bytes()
	var tail int
	for r.Bytes() == bytes && tail < 1000 {
		at, n := r.Take(1)
		if at >= first && at < first+40 {
			t.Fatalf("item %d was given twice", at)
		}
		tail += n
	}
	// All items but the first and those in use were given before another segment was added.
	if want := 64 + 128 - 1 - 40 - size + 1; tail != want {
		t.Fatalf("%d single items, want %d", tail, want)
	}
}

func TestRunsCutLargerRangesBeforeGrowing(t *testing.T) {
	r := newRuns[row](new(Memory), 2, 1<<10)
	var last int32
	for r.Room() > 0 && r.end-r.next != 0 || r.end == 0 { // fill the first segment to its end
		last, _ = r.Take(2)
	}
	big, size := r.Take(112) // of the next, which then has 16 left
	rest, _ := r.Take(16)
	bytes := r.Bytes()
	r.View(big, size)[77].LSN = 1
	r.Drop(big, size)
	seen := map[int32]bool{last: true, rest: true}
	got := 0
	for _, n := range []int{30, 18, 2, 6, 40, 2, 4, 8, 2} {
		at, size := r.Take(n)
		if at < big || at >= big+112 || seen[at] {
			t.Fatalf("Take(%d) gave %d, outside of the free range", n, at)
		}
		seen[at] = true
		for _, v := range r.View(at, size) {
			if v != (row{}) {
				t.Fatalf("range %d holds %+v", at, v)
			}
		}
		got += size
	}
	if got != 112 || r.Bytes() != bytes {
		t.Fatalf("%d items of 112 used, %d bytes grew to %d", got, bytes, r.Bytes())
	}
}

func TestRunsLimits(t *testing.T) {
	r := newRuns[row](new(Memory), 3, 1<<10)
	if r.MaxRun() != 960 { // 320 units; 341 would fit a segment, but the next class has 352
		t.Fatalf("MaxRun %d", r.MaxRun())
	}
	at, size := r.Take(960)
	if size != 960 {
		t.Fatalf("Take(960) gave %d", size)
	}
	r.View(at, size)[959].LSN = 1
	r.Drop(at, size)
	if again, _ := r.Take(960); again != at || r.View(again, size)[959].LSN != 0 {
		t.Fatalf("Take gave %d after %d was dropped", again, at)
	}
	for _, n := range []int{961, -1, math.MaxInt, math.MinInt} {
		mustPanic(t, func() { r.Take(n) })
		mustPanic(t, func() { r.Size(n) })
	}
	mustPanic(t, func() { NewRuns[byte](new(Memory), 3) })
	mustPanic(t, func() { NewRuns[row](new(Memory), 0) })
	mustPanic(t, func() { NewRuns[row](new(Memory), -4) })
	if n := NewRuns[row](new(Memory), 4).MaxRun(); n != 1<<20 {
		t.Fatalf("MaxRun %d", n)
	}
}

func TestRunsIndexSpaceEnds(t *testing.T) {
	r := newRuns[row](new(Memory), 1, 1<<8)
	r.rows.limit = 1 << 10
	taken := 0
	for r.Room() >= 100 {
		_, size := r.Take(100)
		taken += size
	}
	mustPanic(t, func() {
		for range 10 {
			r.Take(200)
		}
	})
	// What was left over is still given, to the last item.
	for r.end-r.next > 0 || r.larger(-1) >= 0 {
		_, size := r.Take(1)
		taken += size
	}
	mustPanic(t, func() { r.Take(1) })
	if r.Room() != 0 || r.Len() < 1<<10-1<<8 || r.Len() >= 1<<10 {
		t.Fatalf("Room %d, %d items taken", r.Room(), r.Len())
	}
}

func TestRunsPropertyEqualSlices(t *testing.T) {
	for _, c := range []struct{ unit, most int }{{1, 64}, {4, 512}, {3, 256}, {8, largestItems}} {
		t.Run(fmt.Sprintf("unit %d to %d", c.unit, c.most), rapid.MakeCheck(func(t *rapid.T) {
			modelRuns(t, newRuns[int32](new(Memory), c.unit, c.most), min(400, c.most*3/4))
		}))
	}
}

// modelRuns runs a history against one slice for each range. Every item of a range is written, so that
// an overlap with another range, a link or a bitmap shows.
func modelRuns(t *rapid.T, r *Runs[int32], longest int) {
	want := map[int32][]int32{}
	written, total := int32(0), 0
	take := func(n int) {
		at, size := r.Take(n)
		if size < n || size != r.Size(n) || at < 1 || want[at] != nil {
			t.Fatalf("Take(%d) gave %d items at %d", n, size, at)
		}
		values := make([]int32, size)
		for i, v := range r.View(at, size) {
			if v != 0 {
				t.Fatalf("Take(%d) gave an item that holds %d", n, v)
			}
			written++
			values[i] = -written
		}
		copy(r.View(at, size), values)
		want[at] = values
		total += size
	}
	drop := func(at int32) {
		r.Drop(at, len(want[at]))
		mustPanic(t, func() { r.Drop(at, len(want[at])) })
		total -= len(want[at])
		delete(want, at)
	}
	t.Repeat(map[string]func(*rapid.T){
		"take": func(t *rapid.T) {
			for range rapid.IntRange(1, 10).Draw(t, "times") {
				take(rapid.IntRange(1, longest).Draw(t, "n"))
			}
		},
		"take small": func(t *rapid.T) {
			n := rapid.IntRange(1, 12).Draw(t, "n")
			for range rapid.IntRange(1, 50).Draw(t, "times") {
				take(n)
			}
		},
		"drop": func(t *rapid.T) {
			keys := sortedKeys(want)
			for range min(len(keys), rapid.IntRange(1, 40).Draw(t, "times")) {
				if at := rapid.SampledFrom(keys).Draw(t, "at"); want[at] != nil {
					drop(at)
				}
			}
		},
		"drop all": func(*rapid.T) {
			for _, at := range sortedKeys(want) {
				drop(at)
			}
		},
		"": func(t *rapid.T) {
			if r.Len() != total {
				t.Fatalf("Len %d, want %d", r.Len(), total)
			}
			for at, values := range want {
				for i, v := range r.View(at, len(values)) {
					if v != values[i] {
						t.Fatalf("item %d of the range at %d holds %d, want %d", i, at, v, values[i])
					}
				}
				if !r.InUse(at) || r.InUse(at+1) && want[at+1] == nil {
					t.Fatalf("the range at %d is not in use, or begins twice", at)
				}
			}
			accountFor(t, r, total)
		},
	})
}

// accountFor checks that no item is lost: all are in use, free, not given yet, or nobody's.
func accountFor(t *rapid.T, r *Runs[int32], used int) {
	free := int(r.end - r.next)
	for class := range r.free {
		listed := r.some[class/64]>>(class%64)&1 != 0
		if listed != (r.free[class] != 0) {
			t.Fatalf("class %d is listed as free: %t", class, listed)
		}
		for at := r.free[class]; at != 0; at = r.rows.link(at) {
			size := classUnits(class) * r.unit
			free += size
			if r.InUse(at) {
				t.Fatalf("the free range at %d is in use", at)
			}
			for i, v := range r.View(at, size)[1:] {
				if v != 0 {
					t.Fatalf("item %d of the free range at %d holds %d", i+1, at, v)
				}
			}
		}
	}
	all := 0
	for k := range *r.rows.bases.Load() {
		from, to := r.rows.bounds(k)
		all += int(to-from) / r.unit * r.unit
	}
	if want := max(0, all-r.unit); used+free != want {
		t.Fatalf("%d items used and %d free of %d", used, free, want)
	}
}
