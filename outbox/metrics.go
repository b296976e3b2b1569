package outbox

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// metrics counts what happened since New.
type metrics struct {
	claimed, delivered, deferred, failed, behind, dead atomic.Uint64
	lostRows, released, barriers                       atomic.Uint64
	wakes, overflow, expired                           atomic.Uint64
	attempts                                           [gone + 1]atomic.Uint64
	attemptTime                                        atomic.Int64
	removed, deadWakes, lostQueues, moved, bounced     atomic.Uint64
	read                                               atomic.Uint64
	thresholds, idles                                  atomic.Uint64
	purged                                             atomic.Uint64
}

func (m *metrics) attempt(v verdict, took time.Duration) {
	m.attempts[v].Add(1)
	m.attemptTime.Add(int64(took))
}

// Stats is what an outbox has done since New, and what there is now.
type Stats struct {
	// Rows of the outbox.
	Claimed   uint64 // taken to be worked on
	Delivered uint64
	Deferred  uint64 // attempts that found a condition not met
	Failed    uint64 // attempts that failed
	Behind    uint64 // attempts that had to wait for an earlier row
	DeadRows  uint64
	LostRows  uint64 // worked on for longer than the lease
	Released  uint64 // leases of earlier owners that were ended
	Barriers  uint64 // calls of the barrier

	// Wakes.
	Wakes         uint64 // queued by rows and webhooks
	Sent          uint64 // attempts that were accepted,
	Refused       uint64 // that failed,
	AskedToWait   uint64 // that were answered with a time to come back,
	Gone          uint64 // and that disabled an endpoint
	AttemptTime   time.Duration
	Done          uint64 // wakes that do not wait any more because they were delivered or read
	DeadWakes     uint64 // given up after too many attempts,
	ExpiredWakes  uint64 // because of their age,
	OverflowWakes uint64 // and for want of room
	LostQueues    uint64 // outcomes that came too late or could not be recorded
	Moved         uint64 // queues that joined the slow because of their host
	Bounced       uint64 // queues put back because their host had enough to do
	Read          uint64 // wakes handed to readers

	Thresholds uint64 // firings of webhooks
	Idles      uint64
	Purged     uint64

	// What is under way in this process, with the budgets in force.
	Sending, SendingSlow int
	Readers              int
	Webhooks             int
	Limits               Limits

	// Gauges is what the store holds.
	Gauges facts.OutboxGauges
	// OldestAge is how long the oldest unfinished row has been there.
	OldestAge time.Duration
}

// Stats takes a survey. It asks the store for numbers, each up to facts.GaugeBound. With an error
// of the store everything but Gauges and OldestAge is there.
func (b *Outbox) Stats(ctx context.Context) (Stats, error) {
	m := &b.metrics
	s := Stats{
		Claimed: m.claimed.Load(), Delivered: m.delivered.Load(), Deferred: m.deferred.Load(),
		Failed: m.failed.Load(), Behind: m.behind.Load(), DeadRows: m.dead.Load(),
		LostRows: m.lostRows.Load(), Released: m.released.Load(), Barriers: m.barriers.Load(),
		Wakes: m.wakes.Load(), Sent: m.attempts[accepted].Load(),
		Refused: m.attempts[refused].Load(), AskedToWait: m.attempts[waiting].Load(),
		Gone: m.attempts[gone].Load(), AttemptTime: time.Duration(m.attemptTime.Load()),
		Done: m.removed.Load(), DeadWakes: m.deadWakes.Load(), ExpiredWakes: m.expired.Load(),
		OverflowWakes: m.overflow.Load(), LostQueues: m.lostQueues.Load(), Moved: m.moved.Load(),
		Bounced: m.bounced.Load(), Read: m.read.Load(), Thresholds: m.thresholds.Load(),
		Idles: m.idles.Load(), Purged: m.purged.Load(), Limits: b.Limits,
	}
	b.senders.mu.Lock()
	s.Sending, s.SendingSlow = b.senders.running[quick], b.senders.running[slow]
	b.senders.mu.Unlock()
	s.Readers, s.Webhooks = b.readers.count(), b.hooks.count()
	now := b.now()
	var err error
	if s.Gauges, err = b.Store.OutboxGauges(ctx, now); err != nil {
		return s, err
	}
	if at := s.Gauges.OldestAt; at > 0 {
		s.OldestAge = max(0, time.Duration(now-at)*time.Millisecond)
	}
	return s, nil
}
