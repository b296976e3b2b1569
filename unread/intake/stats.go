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
	largestRoster  atomic.Int64
	repairs        atomic.Uint64
	failedRepairs  atomic.Uint64
	comparisons    atomic.Uint64
	mismatches     atomic.Uint64
}

// sawRoster notes the size of a roster being read.
func (m *metrics) sawRoster(n int) {
	for {
		most := m.largestRoster.Load()
		if int64(n) <= most || m.largestRoster.CompareAndSwap(most, int64(n)) {
			return
		}
	}
}

// Stats is what an intake did and holds. No number is about one member or scope.
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
	Scopes           int    // known to workspaces beside their books
	MemberNames      int    // ids that have a number
	ScopeNames       int
	OldestHint       int64  // milliseconds for which somebody has been served what came from the table
	Repairs          uint64 // rows made what the program's facts say, by an operator
	FailedRepairs    uint64
	Comparisons      uint64 // served rows held against facts, in comparison mode
	Mismatches       uint64

	// The highest of any workspace, scope or roster, for budgets that each of them has.
	WorkspaceBacklog int // rows that wait for a flush
	WorkspaceCached  int // rows and members in the book
	WorkspaceScopes  int // scopes in the book
	WorkspaceHeld    int // newest entries of all scopes
	ScopePending     int // events that wait
	LargestRoster    int // members, of those read since New

	// Budgets is the configuration in force, without its ports.
	Budgets Config
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
	s.Repairs, s.FailedRepairs = m.repairs.Load(), m.failedRepairs.Load()
	s.Comparisons, s.Mismatches = m.comparisons.Load(), m.mismatches.Load()
	s.Budgets = f.cfg
	s.Budgets.Store, s.Budgets.Roster, s.Budgets.Facts = nil, nil, nil
	s.Budgets.Log, s.Budgets.Now, s.Budgets.Flush.Store, s.Budgets.Flush.Log = nil, nil, nil, nil
	s.Budgets.Runtime = s.Runtime.Budgets
	f.jobs.mu.Lock()
	s.PendingScopes = f.jobs.count
	f.jobs.mu.Unlock()
	s.LargestRoster = int(m.largestRoster.Load())
	now := f.cfg.Now()
	for _, sp := range f.all() {
		b := sp.book.Stats()
		s.Books.Add(&b)
		s.WorkspaceBacklog = max(s.WorkspaceBacklog, b.Backlog)
		s.WorkspaceCached = max(s.WorkspaceCached, b.Rows+b.People)
		s.WorkspaceScopes = max(s.WorkspaceScopes, b.Scopes)
		s.WorkspaceHeld = max(s.WorkspaceHeld, b.Held)
		members, scopes := sp.names.count()
		s.MemberNames += members
		s.ScopeNames += scopes
		s.OldestHint = max(s.OldestHint, sp.hints.oldest(now, sp.hinted))
		sp.mu.Lock()
		s.Scopes += len(sp.scopes)
		for sc := range sp.busy {
			s.ScopePending = max(s.ScopePending, len(sc.pending))
		}
		sp.mu.Unlock()
	}
	return s
}
