//go:build !race

package factstest

const raceDetector = false
