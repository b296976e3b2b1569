package snapshot

import (
	"github.com/tidemark-im/tidemark/readstate"
)

// firstRank is where the ranks of a noted writer begin. Entries from before it was noted may turn
// up later, and take ranks below.
const firstRank = 1 << 32

// ranks numbers the entries of one writer in one scope, or the acts of one: how many there are at
// or below a place. Only differences mean anything, and only above places at which all of the
// writer's entries are known.
type ranks struct {
	set    revisions
	offset uint64 // the rank below everything in set
}

// head is the highest rank.
func (k *ranks) head() uint64 { return k.offset + k.set.above(0) }

// at returns the rank at a place.
func (k *ranks) at(r readstate.Revision) uint64 {
	return k.offset + k.set.above(0) - k.set.above(r)
}

// append adds the writer's next entry.
func (k *ranks) append(r readstate.Revision) { k.set.add(r) }

// recall adds an entry from before the writer was noted. The ranks above it stay as they are.
func (k *ranks) recall(r readstate.Revision) {
	if k.set.add(r) {
		k.offset--
	}
}

// trim forgets what lies at or below the floor.
func (k *ranks) trim(floor readstate.Revision) {
	k.offset = k.at(floor)
	k.set.trimBelow(floor)
}

// writer is what a scope notes of somebody whom somebody blocks. Who blocks them may come and go,
// and is never looked at here.
type writer struct {
	posts ranks
	acts  ranks // high-signal activities, numbered by their seqs
	// behalf holds for the posts that mention everyone on whose behalf they were written, where
	// that is not the writer.
	behalf map[readstate.Revision]readstate.MemberKey
}

func newWriter() *writer {
	return &writer{
		posts: ranks{offset: firstRank}, acts: ranks{offset: firstRank},
		behalf: map[readstate.Revision]readstate.MemberKey{},
	}
}

// noteEveryone remembers on whose behalf a post speaks to everyone.
func (w *writer) noteEveryone(r readstate.Revision, on bool, principal readstate.MemberKey) {
	if on && principal != 0 {
		w.behalf[r] = principal
	} else {
		delete(w.behalf, r)
	}
}

func (w *writer) trim(floor readstate.Revision) {
	w.posts.trim(floor)
	for r := range w.behalf {
		if r <= floor {
			delete(w.behalf, r)
		}
	}
}

// record is what memory needs to know of the writer.
func (f *frontier) record(x readstate.MemberKey) readstate.BlockedWriter {
	w := f.writers[x]
	out := readstate.BlockedWriter{
		Member: x, AuthorHead: w.posts.head(), ActorHead: w.acts.head(), Low: firstRank,
	}
	w.posts.set.common(&f.removed, func(r readstate.Revision) {
		out.Removed = append(out.Removed, r)
	})
	w.posts.set.common(&f.everyone, func(r readstate.Revision) {
		out.Everyone = append(out.Everyone, readstate.EveryoneRevision{
			Revision: r, Principal: w.behalf[r],
		})
	})
	return out
}

// note finds what the scope keeps of a writer whom somebody blocks, or begins with it: told says
// that memory has to hear of that before anything else.
func (b *Book) note(f *frontier, x readstate.MemberKey) (w *writer, told bool) {
	if w = f.writers[x]; w != nil {
		return w, false
	}
	w = newWriter()
	if f.writers == nil {
		f.writers = map[readstate.MemberKey]*writer{}
	}
	f.writers[x] = w
	for i := range f.tail.entries {
		if m := &f.tail.entries[i]; m.Author == x {
			b.recall(w, m)
		}
	}
	for i := range f.tail.activity {
		if a := &f.tail.activity[i]; a.Actor == x && a.High {
			w.acts.recall(readstate.Revision(a.Seq))
		}
	}
	b.touch(&f.mark, Key{Scope: f.info.Key})
	return w, true
}

// recall adds an entry that was written before.
func (b *Book) recall(w *writer, m *Entry) {
	w.posts.recall(m.Revision)
	w.noteEveryone(m.Revision, m.Everyone && !m.Removed, m.Principal)
}

// noted reports that what the member writes is to be noted in the scope.
func (b *Book) noted(f *frontier, x readstate.MemberKey) bool {
	if f.writers[x] != nil || b.awaited[x] > 0 {
		return true
	}
	p := b.people[x]
	return p != nil && p.blocked
}
