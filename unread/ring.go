package unread

import "github.com/tidemark-im/tidemark/readstate"

// ring keeps the commits that a page under way may need: those after the LSN at which the page
// was read, up to the applied one. It is bounded by its number of events; what falls out is
// remembered as the lowest LSN from which it is whole.
type ring struct {
	commits []commit
	start   int // of commits; what lies before is free
	events  int
	low     readstate.LSN // every commit above low is there
}

type commit struct {
	lsn    readstate.LSN
	events []readstate.Event
}

func (g *ring) reset(lsn readstate.LSN) { *g = ring{low: lsn} }

// add keeps a commit and returns how many events had to go for it.
func (g *ring) add(lsn readstate.LSN, events []readstate.Event, limit int) uint64 {
	g.commits = append(g.commits, commit{lsn: lsn, events: events})
	g.events += weight(events)
	var gone uint64
	for g.events > limit {
		gone += uint64(len(g.commits[g.start].events))
		g.shift()
	}
	return gone
}

// weight counts an empty commit too, so that commits are bounded as well.
func weight(events []readstate.Event) int { return max(1, len(events)) }

func (g *ring) shift() {
	c := &g.commits[g.start]
	g.low = c.lsn
	g.events -= weight(c.events)
	*c = commit{}
	g.start++
	if g.start > 64 && g.start > len(g.commits)/2 {
		g.commits = append(g.commits[:0], g.commits[g.start:]...)
		g.start = 0
	}
}

// release drops commits at or below lsn, which no page needs any more.
func (g *ring) release(lsn readstate.LSN) {
	for g.start < len(g.commits) && g.commits[g.start].lsn <= lsn {
		g.shift()
	}
}

// after returns the commits above lsn; false when some of them are gone.
func (g *ring) after(lsn readstate.LSN) ([]commit, bool) {
	if lsn < g.low {
		return nil, false
	}
	c := g.commits[g.start:]
	for len(c) > 0 && c[0].lsn <= lsn {
		c = c[1:]
	}
	return c, true
}
