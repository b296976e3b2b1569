package snapshot

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// place is one of the queue of dirty rows. It is empty once the row has another, or none.
type place struct {
	key    Key
	ticket uint64
}

// touch makes a row dirty. It reports that the budget of the queue refuses it. Scopes and persons
// are never refused: every row relies on them.
func (b *Book) touch(m *mark, key Key) bool {
	m.changed++
	if m.dirty || m.owed {
		return m.owed
	}
	if m.since == 0 {
		m.since = b.now()
	}
	if key.Member != 0 && key.Scope != 0 && b.queued >= b.limits.Backlog {
		m.owed = true
		b.owed = append(b.owed, key)
		b.wait(key, 1)
		b.stats.Refused++
		return true
	}
	m.dirty = true
	b.queue = append(b.queue, b.seat(m, key))
	return false
}

// seat gives a dirty row a place, which its caller puts into the queue.
func (b *Book) seat(m *mark, key Key) place {
	b.tickets++
	m.ticket = b.tickets
	b.queued++
	b.wait(key, 1)
	return place{key, m.ticket}
}

// wait counts the rows of a scope that are dirty and not on their way.
func (b *Book) wait(key Key, n int) {
	if key.Scope == 0 || key.Member == 0 {
		return
	}
	if b.waitingIn[key.Scope] += n; b.waitingIn[key.Scope] == 0 {
		delete(b.waitingIn, key.Scope)
	}
}

func (b *Book) markOf(key Key) *mark {
	switch {
	case key.Member == 0:
		if f := b.frontiers[key.Scope]; f != nil {
			return &f.mark
		}
	case key.Scope == 0:
		if p := b.people[key.Member]; p != nil {
			return &p.mark
		}
	default:
		if e := b.rows[key]; e != nil {
			return &e.mark
		}
	}
	return nil
}

// waits returns the mark of a place that is taken.
func (b *Book) waits(p place) *mark {
	if m := b.markOf(p.key); m != nil && m.ticket == p.ticket {
		return m
	}
	return nil
}

// Batch is a part of the backlog on its way to the table.
type Batch struct {
	Rows   []Row
	keys   []Key
	shadow []*shadow            // of the rows of keys, in a batch that protects them,
	ready  []Row                // and these rows
	births []readstate.ScopeKey // scopes that go as they began, for rows that rely on them
}

// size is how many rows the batch has.
func (t *Batch) size() int { return len(t.keys) + len(t.births) }

// Backlog returns how many rows wait for a flush.
func (b *Book) Backlog() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queued
}

// overfull is how many backlogs of rows, refused ones and those of scopes and persons included, may
// wait before a book is full.
const overfull = 4

// Full reports that so much waits for the table that nothing more should be told: what is refused
// has to be kept all the same.
func (b *Book) Full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queued+len(b.owed) >= overfull*b.limits.Backlog
}

// Take removes up to limit rows from the backlog and returns them as they are now. They stay
// dirty until Done. What a row relies on goes no later:
//
//   - a frontier before the rows of its scope, so that no row is ahead of its scope in the table;
//   - in scopes that count deliveries the other way round, since barriers write rows alone: there
//     no scope is ahead of a row, and the rows know what they count;
//   - somebody who is blocked before whoever blocks them, and the rows of a member before the
//     member, so that no block is in the table without what it needs. Of more members who block each
//     other than a batch has room for, the table hears first that they are blocked.
func (b *Book) Take(limit int) Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch Batch
	var later []place
	for len(b.queue) > 0 && batch.size() < limit {
		next := b.queue[0]
		b.queue = b.queue[1:]
		if b.waits(next) == nil {
			continue
		}
		first, ok := b.before(next.key)
		if !ok {
			later = append(later, next)
			continue
		}
		if !b.admit(&batch, limit, next, first) {
			break
		}
	}
	for i, next := range later {
		if b.waits(next) == nil {
			continue // it went with something else
		}
		first, ok := b.before(next.key) // what it waited for may be in this batch
		if batch.size() >= limit {
			b.queue = append(b.queue, later[i:]...)
			break
		}
		if !ok {
			b.queue = append(b.queue, next)
			continue
		}
		if !b.admit(&batch, limit, next, first) {
			b.queue = append(b.queue, later[i+1:]...)
			break
		}
	}
	b.encode(&batch)
	return batch
}

// admit puts a row into a batch with what goes before it, or back to the front of the queue where
// there is no room for all of them.
func (b *Book) admit(batch *Batch, limit int, next place, first []Key) bool {
	room := limit - batch.size()
	birth := b.unborn(batch, next.key)
	if len(first)+len(birth) < room {
		batch.births = append(batch.births, birth...)
		b.board(batch, append(first, next.key)...)
		return true
	}
	b.queue = slices.Concat([]place{next}, b.queue)
	if room == limit { // it would never fit
		batch.births = birth
		b.board(batch, first[:min(len(first), room)]...)
	}
	return false
}

// unborn returns the scope of a row that the table has to have with it, as it began: none where the
// scope goes first.
func (b *Book) unborn(batch *Batch, key Key) []readstate.ScopeKey {
	f := b.frontiers[key.Scope]
	if key.Member == 0 || f == nil || f.stored || !f.info.Type.Targeted() ||
		slices.Contains(batch.births, key.Scope) {
		return nil
	}
	return []readstate.ScopeKey{key.Scope}
}

// before lists the dirty rows that have to be in the table no later than the given one, those of
// them that are on their way left out. It is false where that takes another batch.
func (b *Book) before(key Key) (first []Key, ok bool) {
	targeted := key.Scope != 0 && b.frontiers[key.Scope].info.Type.Targeted()
	switch {
	case key.Member == 0:
		return nil, !targeted || b.waitingIn[key.Scope] == 0
	case key.Scope != 0:
		if k := (Key{Scope: key.Scope}); !targeted && b.waiting(k) {
			first = append(first, k)
		}
		return first, true
	}
	// Members may block each other: all of them go together, and after the rows of all of them.
	seen := map[readstate.MemberKey]bool{key.Member: true}
	for at := []Key{key}; len(at) > 0; at = at[1:] {
		for _, s := range b.byMember[at[0].Member] {
			if b.waiting(Key{s, at[0].Member}) {
				return nil, false
			}
		}
		for _, x := range b.people[at[0].Member].blocks {
			if k := (Key{Member: x}); !seen[x] && b.waiting(k) && !b.people[x].noted {
				seen[x] = true
				at, first = append(at, k), append(first, k)
			}
		}
	}
	return first, true
}

// waiting reports that a row is dirty, or owed, and not on its way.
func (b *Book) waiting(k Key) bool {
	m := b.markOf(k)
	return m != nil && (m.dirty || m.owed) && !m.flying
}

// board takes rows out of the queue for a batch.
func (b *Book) board(batch *Batch, keys ...Key) {
	for _, key := range keys {
		m := b.markOf(key)
		m.ticket, m.flying, m.flight = 0, true, m.changed
		b.queued--
		b.wait(key, -1)
		batch.keys = append(batch.keys, key)
	}
}

// Done says that the table has the batch. Rows that changed meanwhile stay dirty.
func (b *Book) Done(batch Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes++
	for _, scope := range batch.births {
		b.frontiers[scope].stored = true
	}
	for i, key := range batch.keys {
		m := b.markOf(key)
		m.flying = false
		if e := b.rows[key]; e != nil {
			var s *shadow
			if batch.shadow != nil {
				s = batch.shadow[i]
			}
			e.wrote(&batch.Rows[len(batch.births)+i], s)
		}
		if p := b.people[key.Member]; key.Scope == 0 {
			p.noted = p.noted || p.sent
		}
		if key.Member == 0 {
			b.frontiers[key.Scope].stored = true
		}
		if m.changed != m.flight {
			m.since = b.now()
			b.queue = append(b.queue, b.seat(m, key))
			continue
		}
		m.dirty, m.since = false, 0
		if f := b.frontiers[key.Scope]; f != nil {
			delete(f.lifted, key.Member)
		}
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
	var back []place
	for _, key := range batch.keys {
		m := b.markOf(key)
		m.flying = false
		back = append(back, b.seat(m, key))
	}
	b.queue = append(back, b.queue...)
}

// admitOwed takes rows in that the budget refused. Their values come back with the next events.
func (b *Book) admitOwed() {
	for len(b.owed) > 0 && b.queued < b.limits.Backlog {
		key := b.owed[0]
		b.owed = b.owed[1:]
		m := b.markOf(key)
		if m == nil || !m.owed {
			continue
		}
		m.owed, m.dirty = false, true
		b.wait(key, -1)
		b.queue = append(b.queue, b.seat(m, key))
		b.restored = append(b.restored, key)
	}
}

// Restored reports that rows wait to be shown again: apply a commit, if need be without events.
func (b *Book) Restored() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.restored) > 0
}
