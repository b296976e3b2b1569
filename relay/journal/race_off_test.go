//go:build !race

package journal

const raceDetector = false
