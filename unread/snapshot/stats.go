package snapshot

// Stats is what a book holds and what happened to it.
type Stats struct {
	Scopes         int // frontiers in the book
	Rows           int // members' rows in the book
	People         int // members in the book, apart from scopes
	Held           int // newest entries and activities of all scopes
	Backlog        int // rows waiting for a flush
	Owed           int // changed rows that the budget refused, withheld until there is room
	OldestDirty    int64
	Refused        uint64 // times the budget refused a row
	Repeated       uint64 // events that told nothing new
	Lost           uint64 // entries nobody told of
	Gaps           uint64 // times that was found
	First          uint64 // first rows of members of rosters
	Damaged        uint64 // rows of the table that were not usable
	Contradictions uint64 // rows withheld because they and what was told contradict each other
	Forgotten      uint64 // scopes let go
	CutTails       uint64 // scopes whose newest entries were let go
}

// Stats takes a survey. OldestDirty is in milliseconds since the change that waits longest.
func (b *Book) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Scopes, s.Rows, s.Owed = len(b.frontiers), len(b.rows), len(b.owed)
	s.People, s.Held, s.Backlog = len(b.people), b.held, b.queued
	for _, p := range b.queue {
		if m := b.waits(p); m != nil {
			s.OldestDirty = max(0, b.now()-m.since)
			break
		}
	}
	return s
}

// Add sums two books up. OldestDirty is that of the one which waits longer.
func (s *Stats) Add(o *Stats) {
	s.Scopes += o.Scopes
	s.Rows += o.Rows
	s.People += o.People
	s.Held += o.Held
	s.Backlog += o.Backlog
	s.Owed += o.Owed
	s.OldestDirty = max(s.OldestDirty, o.OldestDirty)
	s.Refused += o.Refused
	s.Repeated += o.Repeated
	s.Lost += o.Lost
	s.Gaps += o.Gaps
	s.First += o.First
	s.Damaged += o.Damaged
	s.Contradictions += o.Contradictions
	s.Forgotten += o.Forgotten
	s.CutTails += o.CutTails
}
