package slab

import "math/bits"

// Sizes of ranges come in classes, so that a range that was dropped fits others. Counted in units,
// classes are all numbers up to 16, then eight to each doubling: 18, 20, ... 32, 36, 40, ... 64, 72.
// Rounding up to a class wastes less than an eighth.

// classOf returns the smallest class that holds the given number of units, at least 1.
func classOf(units int) int {
	if units <= 8 {
		return units - 1
	}
	e := bits.Len(uint(units-1)) - 4 // units in (8<<e, 16<<e]
	return 8*e + (units-1)>>e
}

// classUnits returns how many units a range of the class has.
func classUnits(class int) int {
	if class < 8 {
		return class + 1
	}
	e := class/8 - 1
	return (class%8 + 9) << e
}

// classWithin returns the largest class of at most the given number of units, at least 1.
func classWithin(units int) int {
	class := classOf(units)
	if classUnits(class) > units {
		class--
	}
	return class
}
