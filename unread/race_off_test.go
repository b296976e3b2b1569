//go:build !race

package unread

const raceComparisons = 600_000
