package snapshot

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// written is a row that the table has, or lacks too.
type written struct {
	key Key
	at  uint64
}

// beginRead registers a read of the table: what it may rely on is kept until it ends.
func (b *Book) beginRead() (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readings++
	id := b.readings
	b.reads[id] = b.writes
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.reads, id)
	}
}

// retire puts a row that the table has, or lacks too, among those that may be let go.
func (b *Book) retire(key Key, m *mark) {
	m.written = b.writes
	if len(b.clean) > 2*(len(b.rows)+len(b.people))+minClean {
		b.clean = slices.DeleteFunc(b.clean, func(w written) bool { return !b.isClean(w) })
	}
	b.clean = append(b.clean, written{key, b.writes})
}

// minClean is how many places of rows that were written again are not worth a look.
const minClean = 64

// isClean reports that a row was not touched since it was written.
func (b *Book) isClean(w written) bool {
	m := b.markOf(w.key)
	return m != nil && !m.dirty && !m.owed && m.written == w.at
}

// Trim lets written rows go while there are too many, and the tails of scopes that were not used
// for longest. Nothing that the owner of the book has seen to be loaded may be relied on after it.
func (b *Book) Trim() {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest := b.writes + 1
	for _, at := range b.reads {
		oldest = min(oldest, at)
	}
	for len(b.rows)+len(b.people) > b.limits.Cached && len(b.clean) > 0 &&
		b.clean[0].at < oldest {
		w := b.clean[0]
		b.clean = b.clean[1:]
		if !b.isClean(w) {
			continue
		}
		if w.key.Scope == 0 {
			b.dropPerson(w.key.Member)
		} else {
			b.dropRow(w.key)
		}
	}
	for b.held > b.limits.HeldTotal && b.tailed.Len() > 0 {
		f := b.tailed.Back().Value.(*frontier)
		before := f.tail.size()
		f.tail.forget(&f.ranks)
		b.count(f, before)
		b.stats.CutTails++
	}
}

// dropRow lets a written row go, and the person with the last of them.
func (b *Book) dropRow(key Key) {
	delete(b.rows, key)
	if b.inScope[key.Scope]--; b.inScope[key.Scope] == 0 {
		delete(b.inScope, key.Scope)
	}
	scopes := slices.DeleteFunc(b.byMember[key.Member], func(s readstate.ScopeKey) bool {
		return s == key.Scope
	})
	if len(scopes) > 0 {
		b.byMember[key.Member] = scopes
		return
	}
	delete(b.byMember, key.Member)
	if p := b.people[key.Member]; p != nil && !p.dirty {
		b.dropPerson(key.Member)
	}
}

// dropPerson lets a written person go whom nothing needs.
func (b *Book) dropPerson(m readstate.MemberKey) {
	p := b.people[m]
	switch {
	case p == nil || len(b.byMember[m]) > 0 || len(p.becoming) > 0:
	case b.reading(p.read):
		b.retire(Key{Member: m}, &p.mark)
	default:
		delete(b.people, m)
	}
}

// reading reports that a read is under way that may have looked at something when the book had
// begun as many reads as at says.
func (b *Book) reading(at uint64) bool {
	for id := range b.reads {
		if id <= at {
			return true
		}
	}
	return false
}

// Idle returns scopes that may be let go, those used least recently first, while there are more
// than the budget has room for. It looks at no more than limit scopes, and at others when it is
// called again.
func (b *Book) Idle(limit int) []readstate.ScopeKey {
	b.mu.Lock()
	defer b.mu.Unlock()
	var idle []readstate.ScopeKey
	for range min(limit, len(b.frontiers)-b.limits.Scopes) {
		f := b.recent.Back().Value.(*frontier)
		b.recent.MoveToFront(f.recent)
		if b.idle(f) {
			idle = append(idle, f.info.Key)
		}
	}
	return idle
}

// idle reports that nothing in the book needs the frontier, and that the table has it.
func (b *Book) idle(f *frontier) bool {
	return !f.dirty && b.inScope[f.info.Key] == 0 && !b.reading(f.read)
}

// Forget lets scopes go that are idle still, and returns them, with those of which the book has
// nothing. They come back from the table.
func (b *Book) Forget(scopes []readstate.ScopeKey) (gone []readstate.ScopeKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range scopes {
		f := b.frontiers[s]
		if f == nil && b.inScope[s] == 0 {
			gone = append(gone, s)
		}
		if f == nil || !b.idle(f) {
			continue
		}
		before := f.tail.size()
		f.tail = tail{}
		b.count(f, before)
		b.recent.Remove(f.recent)
		delete(b.frontiers, s)
		b.stats.Forgotten++
		gone = append(gone, s)
	}
	return gone
}
