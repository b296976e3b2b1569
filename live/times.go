package live

import "time"

// times is when a stream has something to do by itself. It keeps one timer for all of it, since
// there are as many streams as people at their screens.
type times struct {
	beat  time.Time
	retry time.Time // of members who wait; zero while nobody does
	end   time.Time // of the token; zero for never

	rings <-chan time.Time // nil while no timer is set
	at    time.Time
	off   func()
}

// set has rings receive at the next of the times.
func (t *times) set(clock Clock) {
	next := t.beat
	for _, at := range [...]time.Time{t.retry, t.end} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	if t.rings != nil && t.at.Equal(next) {
		return
	}
	t.stop()
	t.at = next
	t.rings, t.off = clock.NewTimer(next.Sub(clock.Now()))
}

func (t *times) stop() {
	if t.rings != nil {
		t.off()
		t.rings = nil
	}
}

// passed reports that a time has come. One that is zero never does.
func passed(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
