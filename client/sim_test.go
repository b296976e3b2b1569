package client_test

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

const (
	testOfDevices = "TestSimulatedDevices"
	// runsPerServer is how many runs one server sees, each with a member of its own.
	runsPerServer = 50
	// usualRuns and racedRuns are how many runs a plain test makes: under the race detector each
	// takes several times as long.
	usualRuns, racedRuns = 1000, 100
	// leastRuns is how many runs a plain test has of every fault and of every pair of faults.
	leastRuns = 100
)

// Two devices of a member with real files, and a real server over a real file, on a network that
// drops, delays, repeats and reorders, while the server is ended and the clients are closed and
// killed between any two steps. At every moment what is shown is in the file, nothing that was shown
// as read is shown less, a receipt has no gap, what is sent is exactly what was seen, and the server
// takes away no mark whose reader had not seen it. At the end both devices show what the server has,
// nothing is left to be sent, and every operation is done once, or its loss was told.
//
// TIDEMARK_SEED plays one seed; TIDEMARK_SEEDS is how many of them, in percent of the usual number,
// from TIDEMARK_SEED on if both are given: a long run goes on where it was left.
//
// covers: SE-068 SE-069 SE-070 SE-093 SE-094 SE-095 SE-098 SE-103 SE-110 SE-125
func TestSimulatedDevices(t *testing.T) {
	first, runs := uint64(0), uint64(usualRuns)
	if raceDetector {
		runs = racedRuns
	}
	percent, err := strconv.ParseUint(os.Getenv("TIDEMARK_SEEDS"), 10, 64)
	many := err == nil
	if many {
		runs = runs * percent / 100
	}
	if seed, err := strconv.ParseUint(os.Getenv("TIDEMARK_SEED"), 10, 64); err == nil {
		first = seed
		if !many {
			runs = 1
		}
	}
	var count tally
	for from := first; from < first+runs; from += runsPerServer {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			server := newSimServer(t, dir)
			for seed := from; seed < min(from+runsPerServer, first+runs); seed++ {
				r := newRun(t, server, dir, seed)
				r.sleep = time.Sleep
				if !r.play() {
					break
				}
				count.add(r.happened)
			}
			if server.api != nil {
				server.stop()
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Log(&count)
	if least := count.least(); runs >= usualRuns && least < leastRuns {
		t.Errorf("a fault, or a pair of faults, happened in %d runs, and in less than %d", least, leastRuns)
	}
}
