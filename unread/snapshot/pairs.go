package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// pair is what a row counts of somebody whom its member blocks, beside the ranks that the scope
// notes of them: live entries above the row's point that touch the member. A row without one has
// none of these.
type pair struct {
	with    readstate.MemberKey
	overlap uint64
	direct  uint64
	targets uint64
	acts    uint64 // activities delivered to the member above the cursor
}

func (p *pair) empty() bool { return p.overlap|p.direct|p.targets|p.acts == 0 }

func (p *pair) counts() readstate.Pair {
	return readstate.Pair{Overlap: p.overlap, Direct: p.direct, Targets: p.targets}
}

func (p *pair) set(c readstate.Pair) { p.overlap, p.direct, p.targets = c.Overlap, c.Direct, c.Targets }

// pairs are those of a row that are not empty, in no order.
type pairs []pair

func (l pairs) find(x readstate.MemberKey) *pair {
	for i := range l {
		if l[i].with == x {
			return &l[i]
		}
	}
	return nil
}

// get returns a copy to change and put back.
func (l pairs) get(x readstate.MemberKey) pair {
	if p := l.find(x); p != nil {
		return *p
	}
	return pair{with: x}
}

// put stores what has become of a pair.
func (l pairs) put(p pair) pairs {
	at := l.find(p.with)
	switch {
	case at != nil && p.empty():
		return slices.DeleteFunc(l, func(o pair) bool { return o.with == p.with })
	case at != nil:
		*at = p
	case !p.empty():
		return append(l, p)
	}
	return l
}

// below reports that a counter was taken below zero.
func (p pair) below() bool {
	return max(p.overlap, p.direct, p.targets, p.acts) > readstate.MaxCounter
}

// pairRows are the pairs of a row as memory takes them: one for each member whom the row's own
// blocks and of whom the scope keeps something.
func (b *Book) pairRows(f *frontier, e *entry, p *person) []readstate.PairRow {
	if p == nil || f == nil || len(p.blocks) == 0 || len(f.writers) == 0 {
		return nil
	}
	var out []readstate.PairRow
	base := e.row.Row.Point.Base(f.ranks.Floor)
	for _, x := range p.blocks {
		w := f.writers[x]
		if w == nil {
			continue
		}
		c := e.pairs.get(x)
		out = append(out, readstate.PairRow{
			Blocked: x, AuthorAt: w.posts.at(base), Overlap: c.overlap, Direct: c.direct,
			Targets: c.targets, ActorAt: w.acts.at(readstate.Revision(e.row.Row.Activity.Read)),
			ActivityTargets: c.acts, Other: f.record(x),
		})
	}
	return out
}

// Written is what the program knows of entries and activities of some writers in one scope.
type Written struct {
	Entries  []Entry // ascending, each once
	Activity []Act   // likewise
}

// Sorted returns what has been gathered in the order that is wanted.
func (w Written) Sorted() Written {
	slices.SortStableFunc(w.Entries, func(a, b Entry) int {
		return cmp.Compare(a.Revision, b.Revision)
	})
	slices.SortStableFunc(w.Activity, func(a, b Act) int { return cmp.Compare(a.Seq, b.Seq) })
	return Written{
		Entries: slices.CompactFunc(w.Entries, func(a, b Entry) bool {
			return a.Revision == b.Revision
		}),
		Activity: slices.CompactFunc(w.Activity, func(a, b Act) bool { return a.Seq == b.Seq }),
	}
}

// Await notes what members write from now on, since a change of blocks that concerns them waits; or
// ends that. What they wrote before is for the program to say.
func (b *Book) Await(others []readstate.MemberKey, on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range others {
		if on {
			b.awaited[x]++
		} else if b.awaited[x]--; b.awaited[x] <= 0 {
			delete(b.awaited, x)
		}
	}
}

// Blocking begins to keep pairs for members whom m is about to block, and to note what these
// write. Both sides were fetched.
func (b *Book) Blocking(m readstate.MemberKey, others []readstate.MemberKey) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.people[m]
	for _, x := range others {
		o := b.people[x]
		if p == nil || o == nil {
			return fmt.Errorf("member %d: %w", x, ErrNotLoaded)
		}
		if !p.pairsWith(x) {
			p.becoming = append(p.becoming, x)
		}
		if !o.blocked {
			o.blocked = true
			b.touch(&o.mark, Key{Member: x})
		}
	}
	return nil
}

// Pair gives the loaded rows of m in the scopes the pairs that they need for others, whom m is
// about to block. Known is what the program says that they wrote in a scope; whole says that this
// is all of it, above the row's point. It returns events for memory, and the scopes whose rows have to
// be fetched again since they were let go. A row above whose point something may have been written
// that nobody knows is withheld.
func (b *Book) Pair(
	m readstate.MemberKey, others []readstate.MemberKey, scopes []readstate.ScopeID,
	known func(s readstate.ScopeKey) Written, whole bool,
) (out []readstate.Event, gone []readstate.ScopeID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range scopes {
		s := b.names.ScopeKey(id)
		e, f := b.rows[Key{s, m}], b.frontiers[s]
		if !e.settled() || f == nil {
			gone = append(gone, id)
			continue
		}
		if e.absent || e.broken {
			continue
		}
		before, acts := e.row.Row.Serving, e.actsBehind
		was := slices.Clone(e.pairs)
		for _, x := range others {
			out = b.pairUp(out, f, e, x, known(s), whole)
		}
		// A pair that the book has may have been left out of the table while nobody was blocked.
		has := slices.ContainsFunc(others, func(x readstate.MemberKey) bool {
			return e.pairs.find(x) != nil
		})
		if has || e.row.Row.Serving != before || e.actsBehind != acts || !slices.Equal(was, e.pairs) {
			b.touch(&e.mark, Key{s, m})
		}
	}
	return out, gone
}

// pairUp makes the pair of one row for one writer.
func (b *Book) pairUp(
	out []readstate.Event, f *frontier, e *entry, x readstate.MemberKey, known Written, whole bool,
) []readstate.Event {
	k := &e.row.Row
	entries, ok := f.writtenBy(x, k.Point.Base(f.ranks.Floor), known.Entries, whole)
	acts, sure := f.actedBy(x, k.Activity.Read, known.Activity, whole)
	v, err := f.values(&e.row)
	if !ok && (err != nil || !f.silent(&e.row, v)) {
		k.Serving = max(k.Serving, readstate.Behind)
	}
	if none := err == nil && v.Activity == 0; !sure && !none {
		e.actsBehind = true
	}
	if len(entries)+len(acts) == 0 && f.writers[x] == nil {
		e.pairs = e.pairs.put(pair{with: x})
		return out
	}
	w, told := b.note(f, x)
	before := w.posts.set.above(0) + w.acts.set.above(0)
	for i := range entries {
		if !entries[i].Removed { // others who block x may not know of it, and need not
			b.recall(w, &entries[i])
		}
	}
	for i := range acts {
		w.acts.recall(readstate.Revision(acts[i].Seq))
	}
	e.pairs = e.pairs.put(countPair(f.info.Type, e.row.Member, x, entries, acts))
	if told || w.posts.set.above(0)+w.acts.set.above(0) != before {
		b.touch(&f.mark, Key{Scope: f.info.Key})
		out = append(out, readstate.WriterEvent{Scope: f.info.Key, Other: f.record(x)})
	}
	return out
}

// silent reports that nobody else wrote anything above the row's point that is still there: nothing
// counts, and nothing was written on the member's behalf, which does not count either.
func (f *frontier) silent(row *readstate.MemberRow, v readstate.Values) bool {
	return v.Unread+v.Attention == 0 && (f.info.Type.Targeted() ||
		row.Row.Point.PrincipalRank == row.Writer.PrincipalHead)
}

// countPair counts what touches a member among what x wrote and did above the member's point.
func countPair(
	t readstate.ScopeType, member, x readstate.MemberKey, entries []Entry, acts []Act,
) pair {
	c := pair{with: x}
	for i := range entries {
		if m := &entries[i]; !m.Removed {
			n := c.counts()
			n.Post(t, m.message(), m.Role(member))
			c.set(n)
		}
	}
	for i := range acts {
		if t.Targeted() && slices.Contains(acts[i].Recipients, member) {
			c.acts++
		}
	}
	return c
}

// firstPairs gives a first row its pairs, as far as the scope's tail tells what those wrote whom
// its member blocks. Otherwise the row is withheld.
func (b *Book) firstPairs(e *entry) {
	p, f := b.people[e.row.Member], b.frontiers[e.row.Scope]
	if !e.unpaired || p == nil || f == nil {
		return
	}
	e.unpaired = false
	v, err := f.values(&e.row)
	if err != nil {
		return // withheld for that
	}
	for _, x := range p.blocks {
		entries, all := f.writtenBy(x, e.row.Row.Point.Base(f.ranks.Floor), nil, false)
		acts, sure := f.actedBy(x, e.row.Row.Activity.Read, nil, false)
		lacks := f.writers[x] == nil
		if !f.silent(&e.row, v) && (!all || lacks && len(entries) > 0) {
			e.row.Row.Serving = max(e.row.Row.Serving, readstate.Behind)
			entries = nil
		}
		if v.Activity > 0 && (!sure || lacks && len(acts) > 0) {
			e.actsBehind, acts = true, nil
		}
		e.pairs = e.pairs.put(countPair(f.info.Type, e.row.Member, x, entries, acts))
	}
}

// writtenBy lists the entries of x above base. It is false where there may be others.
func (f *frontier) writtenBy(
	x readstate.MemberKey, base readstate.Revision, known []Entry, whole bool,
) (list []Entry, all bool) {
	for i := range known {
		m := known[i]
		if m.Author != x || m.Revision <= base || m.Revision > f.tail.low {
			continue // newer ones are held, with what has become of them
		}
		m.Removed = f.removed.has(m.Revision)
		m.Everyone = f.everyone.has(m.Revision)
		list = append(list, m)
	}
	for _, m := range f.tail.above(max(base, f.tail.low)) {
		if m.Author == x {
			list = append(list, m)
		}
	}
	return list, base >= f.tail.low || whole && f.toldAll(x, base, list)
}

// toldAll reports that everything that is noted of x above base, and held no longer, is in a list.
func (f *frontier) toldAll(x readstate.MemberKey, base readstate.Revision, list []Entry) bool {
	w := f.writers[x]
	if w == nil {
		return true
	}
	all := true
	w.posts.set.each(func(r readstate.Revision) {
		if r > base && r <= f.tail.low && !f.removed.has(r) {
			all = all && slices.ContainsFunc(list, func(m Entry) bool { return m.Revision == r })
		}
	})
	return all
}

// actedBy does the same for high-signal activities above q.
func (f *frontier) actedBy(
	x readstate.MemberKey, q readstate.Seq, known []Act, whole bool,
) (list []Act, all bool) {
	for _, a := range known {
		if a.Actor == x && a.Seq > q && a.Seq <= f.tail.lowSeq && a.High {
			list = append(list, a)
		}
	}
	for _, a := range f.tail.acts(max(q, f.tail.lowSeq)) {
		if a.Actor == x && a.High {
			list = append(list, a)
		}
	}
	all = q >= f.tail.lowSeq || whole
	if w := f.writers[x]; all && w != nil {
		w.acts.set.each(func(r readstate.Revision) {
			if s := readstate.Seq(r); s > q && s <= f.tail.lowSeq {
				all = all && slices.ContainsFunc(list, func(a Act) bool { return a.Seq == s })
			}
		})
	}
	return list, all
}
