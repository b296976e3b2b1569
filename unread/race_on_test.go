//go:build race

package unread

// raceComparisons is lower under the race detector, which finds nothing more in a test of one
// goroutine; the full number runs without it.
const raceComparisons = 100_000
