package unread

import "sync/atomic"

// metrics counts what happened since New.
type metrics struct {
	checks      tally
	repeated    atomic.Uint64
	gaps        atomic.Uint64
	dropped     atomic.Uint64
	alarms      atomic.Uint64
	pages       atomic.Uint64
	failures    atomic.Uint64
	overruns    atomic.Uint64
	restarts    atomic.Uint64
	refused     atomic.Uint64
	evicted     atomic.Uint64
	suppressed  atomic.Uint64
	ticks       atomic.Uint64
	reading     atomic.Int64
	maxReading  atomic.Int64
	deltas      atomic.Uint64
	lostWatches atomic.Uint64
	overWatches atomic.Uint64
}

// Stats is what a runtime has done since New, and what it holds now.
type Stats struct {
	Workspaces      int
	Members         int   // loaded
	Entries         int   // loaded rows
	Bytes           int64 // of memory that rows, members, scopes and texts take
	ReservedBytes   int64 // of memory, free places included
	Scopes          int   // loaded slots
	Watches         int
	PendingBatches  int
	RingEvents      int
	Hydrating       int    // members being loaded
	OldestHydration int64  // milliseconds since the oldest of them was asked for
	ReadingPages    int64  // right now
	MaxReadingPages int64  // most at once
	Pages           uint64 // pages installed
	PageFailures    uint64 // pages the source could not read
	RingOverruns    uint64 // pages read again because the ring had lost what they needed
	Restarts        uint64 // members loaded anew because their memory went meanwhile
	RefusedJobs     uint64 // members not loaded because of a budget
	DroppedEvents   uint64 // events that left the ring while a page might need them
	RepeatedCommits uint64 // commits at or below the applied one
	Gaps            uint64 // LSN gaps, each of which emptied a workspace
	Alarms          uint64 // broken invariants, each of which emptied a workspace
	Evicted         uint64 // members let go
	CandidateChecks uint64 // rows evaluated for a badge or a dot
	Suppressed      uint64 // answers withheld
	Ticks           uint64 // steps of pending work
	Deltas          uint64 // handed to watches
	LostWatches     uint64
	RefusedWatches  uint64 // watches that asked for too many members

	// The highest of any workspace, for budgets that each of them has.
	WorkspaceHydrating   int // members being loaded
	WorkspaceRingEvents  int
	WorkspaceIdleEntries int // rows of members without a watch

	// Budgets is the configuration in force, without its ports.
	Budgets Config
}

// Stats takes a survey. It locks one workspace after another, each for a moment.
func (r *Runtime) Stats() Stats {
	m := &r.metrics
	s := Stats{
		ReadingPages: m.reading.Load(), MaxReadingPages: m.maxReading.Load(),
		Pages: m.pages.Load(), PageFailures: m.failures.Load(),
		RingOverruns: m.overruns.Load(), Restarts: m.restarts.Load(),
		RefusedJobs: m.refused.Load(), DroppedEvents: m.dropped.Load(),
		RepeatedCommits: m.repeated.Load(), Gaps: m.gaps.Load(), Alarms: m.alarms.Load(),
		Evicted: m.evicted.Load(), CandidateChecks: m.checks.load(),
		Suppressed: m.suppressed.Load(), Ticks: m.ticks.Load(),
		Deltas: m.deltas.Load(), LostWatches: m.lostWatches.Load(),
	}
	s.RefusedWatches = m.overWatches.Load()
	s.Budgets = r.cfg
	s.Budgets.Source, s.Budgets.Now = nil, nil
	s.Bytes, s.ReservedBytes = r.used.Load(), r.memory.Bytes()
	now := r.now()
	for _, ws := range r.spaces.all() {
		ws.mu.RLock()
		s.Workspaces++
		s.Members += ws.st.members.Len()
		s.Entries += ws.st.rows.n
		s.Scopes += ws.st.scopes.Len()
		s.PendingBatches += len(ws.st.batches)
		s.RingEvents += ws.ring.events
		s.Hydrating += len(ws.jobs)
		s.WorkspaceHydrating = max(s.WorkspaceHydrating, len(ws.jobs))
		s.WorkspaceRingEvents = max(s.WorkspaceRingEvents, ws.ring.events)
		s.WorkspaceIdleEntries = max(s.WorkspaceIdleEntries, ws.st.rows.n-ws.st.watched)
		for _, j := range ws.jobs {
			s.OldestHydration = max(s.OldestHydration, now-j.since)
		}
		seen := map[*Watch]bool{}
		for _, list := range ws.watches {
			for _, w := range list {
				seen[w] = true
			}
		}
		s.Watches += len(seen)
		ws.mu.RUnlock()
	}
	return s
}
