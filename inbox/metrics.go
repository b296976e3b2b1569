package inbox

import (
	"sync"
	"sync/atomic"
	"time"
)

// metrics counts what happened since New.
type metrics struct {
	opened, acknowledged, behind, gaps        atomic.Uint64
	projected                                 atomic.Uint64
	lag                                       atomic.Uint64 // positions, of the inbox looked at last
	age                                       atomic.Int64  // milliseconds, likewise
	summaryHits, summaryMisses, summaryErrors atomic.Uint64

	mu      sync.Mutex
	tail    int
	reads   uint64
	took    time.Duration
	buckets [len(badgeBounds)]uint64
}

// badgeBounds are the upper bounds of the histogram of badge reads, in seconds.
var badgeBounds = [...]float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10}

func (m *metrics) badge(tail int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tail = tail
	m.reads++
	m.took += took
	for i, bound := range badgeBounds {
		if took.Seconds() <= bound {
			m.buckets[i]++
		}
	}
}

// progress notes what the worker has committed.
func (m *metrics) progress(now int64, s *step) {
	m.lag.Store(uint64(s.lag))
	if s.oldest > 0 {
		m.age.Store(now - s.oldest)
	}
}

// Stats is what an inbox has done since New, and how it is now.
type Stats struct {
	Opened       uint64
	Acknowledged uint64
	Behind       uint64 // reads that found the tail too long
	Gaps         uint64 // inboxes that could not be projected
	Projected    uint64 // items
	Pending      int    // inboxes that may be behind
	// Lag is how many positions the inbox that the worker, or a read, looked at last is behind. Age is
	// how old an item was when it was projected.
	Lag uint64
	Age time.Duration
	// TailRows is the tail of the badge read last.
	TailRows int
	// BadgeReads is the number of badges read, BadgeTime what they took together, and
	// BadgeBuckets how many took at most the time of each bound, in seconds.
	BadgeReads   uint64
	BadgeTime    time.Duration
	BadgeBuckets map[float64]uint64
	// Reads that the prepared summary answered, that found it missing or old, and its failures.
	SummaryHits, SummaryMisses, SummaryErrors uint64
	Limits                                    Limits // in force
}

// Stats takes a survey. It asks nobody.
func (b *Inbox) Stats() Stats {
	m := &b.metrics
	s := Stats{
		Opened: m.opened.Load(), Acknowledged: m.acknowledged.Load(), Behind: m.behind.Load(),
		Gaps: m.gaps.Load(), Projected: m.projected.Load(), Pending: b.pending.len(),
		Lag: m.lag.Load(), Age: time.Duration(max(0, m.age.Load())) * time.Millisecond,
		SummaryHits: m.summaryHits.Load(), SummaryMisses: m.summaryMisses.Load(),
		SummaryErrors: m.summaryErrors.Load(), Limits: b.Limits,
		BadgeBuckets: map[float64]uint64{},
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.TailRows, s.BadgeReads, s.BadgeTime = m.tail, m.reads, m.took
	for i, bound := range badgeBounds {
		s.BadgeBuckets[bound] = m.buckets[i]
	}
	return s
}
