package live

import (
	"runtime"
	"sync"
	"time"
)

// couriers write what has changed to the streams that wait for it. A message in a big channel
// makes thousands of streams ready at once: a few goroutines that go from one to the next do that
// with the stacks and buffers of a few, while waking a goroutine of each stream would fetch those
// of all from memory.
//
// A courier exists while there is something to carry. One that is held up by a client who does not
// read is replaced, so that nobody waits for somebody else's client for longer than holdUp, or a
// few times that while many clients stop reading at once.
type couriers struct {
	regular int // of them carry while none is held up

	mu     sync.Mutex
	queue  []*Stream // from head on; each stream at most once
	head   int
	active []*courier
	wanted int // regular, and more while some are held up
	timer  *time.Timer
	looks  bool // the timer is set
}

// courier is what is known of one of them.
type courier struct {
	place int    // in active
	trips uint64 // begun
	seen  uint64 // trips when it was last looked at
}

// holdUp is the time after which a courier that is still at the same stream is replaced. It is far
// above what a write takes that finds room, and far below what anybody notices.
const holdUp = 20 * time.Millisecond

func (c *couriers) init() {
	c.regular = runtime.GOMAXPROCS(0)
	c.wanted = c.regular
}

// send puts a stream into the queue. It never waits: commits call it.
func (c *couriers) send(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head > len(c.queue)/2 && len(c.queue) == cap(c.queue) {
		n := copy(c.queue, c.queue[c.head:])
		clear(c.queue[n:])
		c.queue, c.head = c.queue[:n], 0
	}
	c.queue = append(c.queue, s)
	switch {
	case len(c.active) < c.wanted:
		c.hire()
	case !c.looks:
		c.looks = true
		c.look()
	}
}

// hire begins with one more. Under the lock.
func (c *couriers) hire() {
	x := &courier{place: len(c.active)}
	c.active = append(c.active, x)
	go func() { // until nothing is left to be carried
		for s := c.next(x); s != nil; s = c.next(x) {
			s.carry()
		}
	}()
}

// next returns the stream to go to, nil when the courier is not needed any more.
func (c *couriers) next(x *courier) *Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head == len(c.queue) || len(c.active) > c.wanted {
		c.dismiss(x)
		return nil
	}
	s := c.queue[c.head]
	c.queue[c.head] = nil
	c.head++
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	}
	x.trips++
	return s
}

// dismiss takes one out. Under the lock.
func (c *couriers) dismiss(x *courier) {
	last := len(c.active) - 1
	c.active[x.place] = c.active[last]
	c.active[x.place].place = x.place
	c.active[last] = nil
	c.active = c.active[:last]
}

// look sets the time for the next look. Under the lock.
func (c *couriers) look() {
	if c.timer == nil {
		c.timer = time.AfterFunc(holdUp, c.relieve)
		return
	}
	c.timer.Reset(holdUp)
}

// relieve hires in place of those who were at the same stream already when it looked last, as long
// as streams wait. It hires twice as many, so that it takes few looks until enough of them move.
func (c *couriers) relieve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := 0
	for _, x := range c.active {
		if x.trips == x.seen && x.trips > 0 { // one that was not given a processor yet is not held up
			held++
		}
		x.seen = x.trips
	}
	c.wanted = c.regular + 2*held
	waiting := len(c.queue) - c.head
	if waiting == 0 {
		c.wanted, c.looks = c.regular, false
		return
	}
	for n := min(c.wanted-len(c.active), waiting); n > 0; n-- {
		c.hire()
	}
	c.look()
}
