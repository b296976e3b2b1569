package intake

import (
	"sync/atomic"

	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// metrics counts what happened since New.
type metrics struct {
	events         atomic.Uint64
	dropped        atomic.Uint64
	repeated       atomic.Uint64
	frontiers      atomic.Uint64
	retries        atomic.Uint64
	failures       atomic.Uint64
	rosters        atomic.Uint64
	rosterPages    atomic.Uint64
	refusedRosters atomic.Uint64
}

// Stats is what a intake did and holds. No number is about one member or scope.
type Stats struct {
	Runtime unread.Stats
	Flush   snapshot.FlushStats
	Books   snapshot.Stats // summed; OldestDirty is the oldest of all

	Queued           int64  // events that wait for rows or rosters
	PendingScopes    int    // scopes that have such events
	Events           uint64 // taken in
	DroppedEvents    uint64 // refused by a budget
	RepeatedEvents   uint64 // older than what they change
	PendingFrontiers uint64 // times a scope was found to have missed something
	Retries          uint64 // reads of rows and rosters to be tried again
	Failures         uint64 // events that contradicted memory
	Rosters          uint64 // read to the end
	RosterPages      uint64
	RefusedRosters   uint64 // over budget
}

// Stats takes a survey.
func (f *Intake) Stats() Stats {
	m := &f.metrics
	s := Stats{
		Runtime: f.runtime.Stats(), Flush: f.flusher.Stats(), Queued: f.queued.Load(),
		Events: m.events.Load(), DroppedEvents: m.dropped.Load(),
		RepeatedEvents: m.repeated.Load(), PendingFrontiers: m.frontiers.Load(),
		Retries: m.retries.Load(), Failures: m.failures.Load(), Rosters: m.rosters.Load(),
		RosterPages: m.rosterPages.Load(), RefusedRosters: m.refusedRosters.Load(),
	}
	f.jobs.mu.Lock()
	s.PendingScopes = f.jobs.count
	f.jobs.mu.Unlock()
	for _, b := range f.books() {
		x := b.Stats()
		s.Books.Scopes += x.Scopes
		s.Books.Rows += x.Rows
		s.Books.Backlog += x.Backlog
		s.Books.Owed += x.Owed
		s.Books.OldestDirty = max(s.Books.OldestDirty, x.OldestDirty)
		s.Books.Refused += x.Refused
		s.Books.Repeated += x.Repeated
		s.Books.Lost += x.Lost
		s.Books.Gaps += x.Gaps
		s.Books.First += x.First
		s.Books.Damaged += x.Damaged
		s.Books.Contradictions += x.Contradictions
	}
	return s
}
