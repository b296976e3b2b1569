package facts

import "time"

// LaneStats is what a lane holds now, beside its budgets.
type LaneStats struct {
	Queued int    // requests that wait to be taken up; a batch is one
	Full   uint64 // requests that found the queue full and waited outside it

	// The budgets in force.
	GroupRows  int
	GroupWait  time.Duration
	QueueDepth int
}

// Stats takes no lock and waits for nothing.
func (l *Lane) Stats() LaneStats {
	return LaneStats{
		Queued: len(l.queue), Full: l.full.Load(),
		GroupRows: l.cfg.GroupRows, GroupWait: l.cfg.GroupWait, QueueDepth: l.cfg.QueueDepth,
	}
}
