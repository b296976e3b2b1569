package slab

import "testing"

func TestClassesCoverEverySizeClosely(t *testing.T) {
	steps := []int{}
	for class := range 40 {
		steps = append(steps, classUnits(class))
	}
	want := []int{
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30, 32,
		36, 40, 44, 48, 52, 56, 60, 64, 72, 80, 88, 96, 104, 112, 120, 128,
	}
	for i := range want {
		if steps[i] != want[i] {
			t.Fatalf("class %d has %d units, want %d", i, steps[i], want[i])
		}
	}
	for units := 1; units <= largestItems; units++ {
		class := classOf(units)
		size := classUnits(class)
		if size < units || class > 0 && classUnits(class-1) >= units {
			t.Fatalf("%d units are in class %d of %d", units, class, size)
		}
		if waste := size - units; waste*8 >= size {
			t.Fatalf("%d units take %d", units, size)
		}
		within := classWithin(units)
		if classUnits(within) > units || classUnits(within+1) <= units {
			t.Fatalf("the largest class within %d units is not %d", units, within)
		}
	}
}
