package httpapi_test

import (
	"sync"
	"time"
)

// handClock is time that moves when a test says so.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*handTimer]struct{}
	set    chan struct{} // receives when a timer was set
}

type handTimer struct {
	at time.Time
	to chan time.Time
}

func newHandClock() *handClock {
	return &handClock{
		now: time.Now().Truncate(time.Second), timers: map[*handTimer]struct{}{},
		set: make(chan struct{}, 1024),
	}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// NewTimer implements live.Clock.
func (c *handClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &handTimer{c.now.Add(d), make(chan time.Time, 1)}
	if d <= 0 {
		t.to <- c.now
	} else {
		c.timers[t] = struct{}{}
	}
	select {
	case c.set <- struct{}{}:
	default:
	}
	return t.to, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
	}
}

// advance moves time on and fires what is due.
func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for t := range c.timers {
		if !t.at.After(c.now) {
			t.to <- c.now
			delete(c.timers, t)
		}
	}
}
