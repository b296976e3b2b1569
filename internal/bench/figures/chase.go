package figures

import "math/rand/v2"

// chase is memory that is walked by following numbers: each load must wait for the one before.
type chase struct {
	next []uint32
	at   uint32
}

// lineWords is how many numbers a cache line has; only the first one of each is used.
const lineWords = 16

// newChase makes a walk through all lines of so many bytes in an order that nothing can guess.
func newChase(bytes int) *chase {
	lines := bytes / 4 / lineWords
	c := &chase{next: make([]uint32, lines*lineWords)}
	order := rand.New(rand.NewPCG(7, 7)).Perm(lines)
	for i, line := range order {
		c.next[line*lineWords] = uint32(order[(i+1)%lines] * lineWords)
	}
	return c
}

// walk follows n numbers.
func (c *chase) walk(n int) {
	at := c.at
	for range n {
		at = c.next[at]
	}
	c.at = at
}
