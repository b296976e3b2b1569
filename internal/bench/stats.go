package bench

import (
	"math"
	"slices"
	"time"
)

// Series is what one side of a figure gave, one value for each round.
type Series struct {
	Name   string    `json:"name"`
	Unit   Unit      `json:"unit"`
	Values []float64 `json:"values"`
}

// Spread is a series in three numbers.
type Spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// Spread of an empty series is not a number.
func (s *Series) Spread() Spread {
	if len(s.Values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	return Spread{Median(s.Values), slices.Min(s.Values), slices.Max(s.Values)}
}

// Median returns the middle value, the mean of the two in the middle for an even number, and
// NaN for none. It leaves v alone.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}

// Quantile returns the least value of which at least the share q, from 0 to 1, lies at or below.
// It sorts v. Zero for none.
func Quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	at := int(math.Ceil(q*float64(len(v)))) - 1
	return v[min(max(at, 0), len(v)-1)]
}

// Unit says what the values of a series are.
type Unit string

const (
	Nanoseconds Unit = "ns"
	Bytes       Unit = "B"
	PerSecond   Unit = "/s"
	Times       Unit = "x"
	Number      Unit = ""
)

// Bound is what a ratio is held against. One of the two is set.
type Bound struct {
	AtMost  float64 `json:"atMost,omitempty"`
	AtLeast float64 `json:"atLeast,omitempty"`
}

// Holds reports that a value is within the bound. A value that is not a number never is.
func (b Bound) Holds(v float64) bool {
	switch {
	case math.IsNaN(v):
		return false
	case b.AtMost > 0:
		return v <= b.AtMost
	default:
		return v >= b.AtLeast
	}
}

// None reports that nothing is demanded.
func (b Bound) None() bool { return b == Bound{} }
