package snapshot

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// Stats is what a book holds and what happened to it.
type Stats struct {
	Scopes         int // frontiers in the book
	Rows           int // members' rows in the book
	Backlog        int // rows waiting for a flush
	Owed           int // changed rows that the budget refused, withheld until there is room
	OldestDirty    int64
	Refused        uint64 // times the budget refused a row
	Repeated       uint64 // events that were told before
	Lost           uint64 // entries nobody told of
	Gaps           uint64 // times that was found
	First          uint64 // first rows of members of rosters
	Damaged        uint64 // rows of the table that were not usable
	Contradictions uint64 // rows withheld because an event took back what they never had
}

// Stats takes a survey. OldestDirty is in milliseconds since the change that waits longest.
func (b *Book) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Scopes, s.Rows, s.Owed = len(b.frontiers), len(b.rows), len(b.owed)
	s.Backlog = len(b.queue)
	if len(b.queue) > 0 {
		if m := b.markOf(b.queue[0]); m != nil {
			s.OldestDirty = max(0, b.now()-m.since)
		}
	}
	return s
}

// Batch is a part of the backlog on its way to the table.
type Batch struct {
	Rows []Row
	keys []Key
}

// Backlog returns how many rows wait for a flush.
func (b *Book) Backlog() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// Take removes up to limit rows from the backlog and returns them as they are now. They stay
// dirty until Done. A frontier goes before the rows of its scope that became dirty with it, so
// that no row is ahead of its scope in the table.
func (b *Book) Take(limit int) Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(limit, len(b.queue))
	batch := Batch{keys: slices.Clone(b.queue[:n])}
	b.queue = slices.Delete(b.queue, 0, n)
	now := b.now()
	for _, key := range batch.keys {
		f := b.frontiers[key.Scope]
		var row Row
		if key.Member == 0 {
			f.flight = f.changed
			row = encodeFrontier(f)
		} else {
			e := b.rows[key]
			e.flight = e.changed
			// A row that contradicts itself is withheld; what it last said is not worse than
			// what the table has.
			values, err := f.values(&e.row)
			if err != nil {
				b.stats.Contradictions++
				values = readstate.Values{}
			}
			row = encodeMember(b.names.Member(key.Member), e, f, values)
		}
		row.Workspace, row.UpdatedAt = b.workspace, now
		batch.Rows = append(batch.Rows, row)
	}
	return batch
}

// Done says that the table has the batch. Rows that changed meanwhile stay dirty.
func (b *Book) Done(batch Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes++
	for _, key := range batch.keys {
		m := b.markOf(key)
		if m == nil {
			continue
		}
		if m.changed != m.flight {
			m.since = b.now()
			b.queue = append(b.queue, key)
			continue
		}
		m.dirty, m.since = false, 0
		if key.Member != 0 {
			b.retire(key, m)
		}
	}
	b.admitOwed()
}

// Failed puts the batch back to where it was.
func (b *Book) Failed(batch Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(slices.Clone(batch.keys), b.queue...)
}

// admitOwed takes rows in that the budget refused. Their values come back with the next events.
func (b *Book) admitOwed() {
	for len(b.owed) > 0 && len(b.queue) < b.limits.Backlog {
		key := b.owed[0]
		b.owed = b.owed[1:]
		m := b.markOf(key)
		if m == nil || !m.owed {
			continue
		}
		m.owed, m.dirty = false, true
		b.queue = append(b.queue, key)
		b.restored = append(b.restored, key)
	}
}

// Restored reports that rows wait to be shown again: apply a commit, if need be without events.
func (b *Book) Restored() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.restored) > 0
}
