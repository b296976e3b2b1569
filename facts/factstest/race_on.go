//go:build race

package factstest

const raceDetector = true
