package main

// suite is a list of alterations with the tests that judge them, the quick ones first: most
// alterations do not get beyond those.
type suite struct {
	name   string // of the list, alterations/NAME.txt
	stages []stage
}

// stage is the tests of one package whose names match a pattern.
type stage struct {
	dir   string
	tests string
	flags []string
}

func (s stage) name() string { return s.dir + " " + s.tests }

// served compares what an engine answers with the oracle, after every operation of a history. It
// is what notices when facts tell memory less than it needs to know.
var served = stage{dir: ".", tests: "^TestSeededHistoriesAreServedExactly$"}

// random are the tests of package unread that play random histories.
const random = "^Test(HydrationRaces|ConcurrentReaders)$"

// protection are the tests of rows behind barriers beside an older program.
const protection = "^Test(Barrier|LateOlder|LateFlush|LateDeliv|OlderWrite|Controls|FirstBarrier|" +
	"Candidates|CrashBetween|UnreadableProtection|Fold|RowsWithoutRanks)"

var suites = []suite{
	{"readstate", []stage{
		{
			dir:   "readstate",
			tests: "^(Test[^SP]|TestSettle|TestPresent|TestPlan|TestPost)",
			flags: []string{"-rapid.nofailfile"},
		},
		{dir: "readstate", tests: ".", flags: []string{"-rapid.nofailfile"}},
	}},
	{"facts", []stage{
		{dir: "facts", tests: "^TestLane$"},
		{dir: "facts", tests: "."},
		{dir: "facts/sqlstore", tests: "^TestStore$"},
		served,
	}},
	{"snapshot", []stage{
		{dir: "unread/snapshot/sqlsnap", tests: "."},
		{dir: "unread/intake", tests: protection},
		{dir: "unread/intake", tests: "^Test(SeededRollingUpgrade|DeliveriesOverCrashes)$"},
	}},
	{"unread", []stage{
		{dir: "unread", tests: ".", flags: []string{"-test.skip", random}},
		{dir: "unread", tests: random},
		served,
	}},
	{"framing", []stage{{dir: "httpapi/framing", tests: "."}}},
	{"client", []stage{
		{dir: "client/readsync", tests: "."},
		{dir: "client", tests: ".", flags: []string{
			"-test.skip", "^Test(SimulatedDevices|KilledAnywhere|KilledWhileSwitching)$",
		}},
		// TIDEMARK_SEEDS, in percent, makes it shorter.
		{dir: "client", tests: "^TestSimulatedDevices$"},
	}},
}
