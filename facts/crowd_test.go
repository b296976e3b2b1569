package facts

import (
	"testing"
	"time"
)

func callers(n int) []*request {
	var out []*request
	for range n {
		out = append(out, &request{}, &request{last: true}) // each waits for two operations
	}
	return out
}

// A group waits for callers only while some are missing whom the last one has answered, never for
// longer than a part of a commit, and ever more seldom after waits in vain.
func TestCrowd(t *testing.T) {
	var c crowd
	group := func(came, waiting int, took time.Duration) {
		c.open()
		c.came(callers(came))
		c.opened = c.opened.Add(-took)
		c.answered(callers(came), waiting)
	}
	waits := func(here int) bool {
		c.open()
		c.came(callers(here))
		turns, long := c.turns()
		if (turns == crowdTurns) != (long > 0) {
			t.Fatalf("%d turns for %v", turns, long)
		}
		return long > 0
	}
	if waits(1) {
		t.Error("somebody was expected before the first group")
	}
	group(1, 0, time.Second)
	if waits(1) {
		t.Error("a single caller waits for nobody")
	}
	group(1, 1, time.Second)
	if !waits(1) || waits(2) {
		t.Error("two callers who take turns are not brought together")
	}
	if _, long := c.turns(); long != 0 {
		t.Error("a full group stays open")
	}
	c.open()
	c.came(callers(1))
	half := time.Second / 2
	if _, long := c.turns(); long < half/crowdShare || long > 2*half/crowdShare {
		t.Errorf("waits %v for half of a commit of one second", long)
	}

	group(2, 0, time.Second)
	inVain := 0
	const groups = 1_000
	for range groups {
		if waits(1) {
			inVain++
			c.learn(false)
		}
	}
	if inVain < 5 || inVain > 2*groups/crowdDoubts {
		t.Errorf("%d of %d groups waited in vain", inVain, groups)
	}
	tries := 0
	for !waits(1) && tries <= crowdDoubts {
		tries++
	}
	c.learn(true)
	for range 2 {
		if !waits(1) {
			t.Error("callers who came back are not expected again")
		}
	}
}
