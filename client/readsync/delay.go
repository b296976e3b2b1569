package readsync

import "math"

// Delay is how long to wait after a number of failures in a row, in milliseconds: it doubles from
// half a second to a minute and is spread over the upper half, so that clients that failed together
// do not come back together. Random is from 0 up to 1.
func Delay(failures int, random float64) int64 {
	const first, most = 500.0, 60_000.0
	full := min(most, first*math.Exp2(float64(min(max(failures-1, 0), 20))))
	return int64(full/2 + full/2*random)
}
