package unread

import "sync/atomic"

// tally is a counter for many goroutines at once: those of different members mostly count in
// different cache lines.
type tally [tallies]struct {
	n atomic.Uint64
	_ [56]byte
}

const tallies = 32

func (t *tally) add(m int32, n int) { t[uint32(m)%tallies].n.Add(uint64(n)) }

func (t *tally) load() (n uint64) {
	for i := range t {
		n += t[i].n.Load()
	}
	return n
}
