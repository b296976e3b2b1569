package client

import "time"

// Clock is where a client takes time from.
type Clock interface {
	Now() time.Time
	// NewTimer returns a channel that receives once after d, and what releases it.
	NewTimer(d time.Duration) (rings <-chan time.Time, stop func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
