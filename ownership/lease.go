package ownership

import (
	"sync/atomic"
	"time"
)

const (
	// DefaultTTL is how long a lease lasts after a renewal. A node that dies is replaced within
	// twice as long.
	DefaultTTL = 10 * time.Second
	// marginParts: the part of a lease that is not used, for clocks that run at different speeds.
	marginParts = 10
	// renewParts: how many renewals a lease has time for.
	renewParts = 3
)

// lease is the time until which this process may answer. It is read by every request.
type lease struct {
	began    time.Time // the readings of the clock are relative to it, and monotonic
	deadline atomic.Int64
	over     atomic.Bool // for good
}

func newLease(now time.Time) *lease {
	l := &lease{began: now}
	l.deadline.Store(-1)
	return l
}

// renewed extends the lease after a renewal that was sent at a time: the store's clock began to count
// later than that.
func (l *lease) renewed(sent time.Time, ttl time.Duration) {
	until := int64(sent.Sub(l.began) + ttl - ttl/marginParts)
	if until > l.deadline.Load() { // one goroutine renews
		l.deadline.Store(until)
	}
}

// end is the end of serving, for good.
func (l *lease) end() { l.over.Store(true) }

// holds reports that answers may be given at a time.
func (l *lease) holds(now time.Time) bool {
	return !l.over.Load() && int64(now.Sub(l.began)) < l.deadline.Load()
}

// left is how long answers may be given from a time on, zero or less for not at all.
func (l *lease) left(now time.Time) time.Duration {
	if l.over.Load() {
		return 0
	}
	return time.Duration(l.deadline.Load()) - now.Sub(l.began)
}
