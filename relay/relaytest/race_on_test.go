//go:build race

package relaytest_test

const raceDetector = true
