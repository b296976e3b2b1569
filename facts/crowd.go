package facts

import (
	"runtime"
	"time"
)

// How long a group stays open for callers who are not there yet. Whoever has just been answered
// often has more to ask, and one commit for all is cheaper than two.
const (
	// closingTurns is how often everybody else who is ready gets a turn before a group closes. It
	// costs nothing where nobody is.
	closingTurns = 3
	// crowdTurns is the same while somebody is expected who came back every time so far.
	crowdTurns = 2_000
	// crowdShare is how much of the time that their part of a commit takes may be waited for them:
	// one part in so many. Few who are missing among many are worth little.
	crowdShare = 3
	// crowdDoubts is after how many groups, at most, a lane waits again for callers who did not
	// come back.
	crowdDoubts = 64
)

// crowd guesses how many callers the next group will have: those who were answered by the last one
// and those who waited meanwhile. Without it two callers take turns, a commit for each, instead of
// sharing every one. It is only a guess: a wrong one costs a part of a commit's time, and the more
// often it was wrong, the more seldom it is made.
type crowd struct {
	expected int // callers of the next group
	here     int // of them
	doubt    int // groups to sit out after the next wait in vain
	sitOut   int // groups
	opened   time.Time
	took     time.Duration // from opening to the end of the last group
}

// open begins a group.
func (c *crowd) open() {
	c.here, c.opened = 0, time.Now()
}

// came counts callers whose requests have joined the group.
func (c *crowd) came(requests []*request) {
	for _, r := range requests {
		if r.last {
			c.here++
		}
	}
}

// answered ends a group whose callers go now, while others wait.
func (c *crowd) answered(requests []*request, waiting int) {
	c.expected = waiting
	for _, r := range requests {
		if r.last {
			c.expected++
		}
	}
	c.took = time.Since(c.opened)
}

// turns is how often others get their turn before the group closes, and for how long at most.
func (c *crowd) turns() (int, time.Duration) {
	switch {
	case c.here >= c.expected:
		return closingTurns, 0
	case c.sitOut > 0:
		c.sitOut--
		return closingTurns, 0
	}
	missing := int64(c.expected - c.here)
	return crowdTurns, time.Duration(int64(c.took) * missing / int64(c.expected) / crowdShare)
}

// learn notes whether a wait for the crowd brought somebody.
func (c *crowd) learn(somebody bool) {
	if somebody {
		c.doubt = 0
		return
	}
	c.doubt = min(max(1, 2*c.doubt), crowdDoubts)
	c.sitOut = c.doubt
}

// more returns what waits, or comes before the group closes.
func (l *Lane) more(opened time.Time) []*request {
	turns, long := l.crowd.turns()
	var since time.Time
	if long > 0 {
		since = time.Now()
	}
	for turn := 0; ; turn++ {
		select {
		case batch := <-l.queue:
			if long > 0 {
				l.crowd.learn(true)
			}
			l.crowd.came(batch)
			return batch
		default:
		}
		if turn >= turns || long > 0 && turn > closingTurns &&
			(time.Since(since) > long || l.cfg.Now().Sub(opened) >= l.cfg.GroupWait) {
			if long > 0 {
				l.crowd.learn(false)
			}
			return nil
		}
		runtime.Gosched()
	}
}

// join adds what has come in the meantime, so that nobody waits for all of somebody's long work.
func (l *Lane) join(backlog []*request) []*request {
	for len(backlog) < l.cfg.GroupRows {
		select {
		case batch := <-l.queue:
			l.crowd.came(batch)
			backlog = append(backlog, batch...)
		default:
			return backlog
		}
	}
	return backlog
}
