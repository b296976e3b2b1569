package snapshot

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

func (b *Book) applyMessage(
	out []readstate.Event, lsn readstate.LSN, ev readstate.MessageEvent,
) (_ []readstate.Event, err error) {
	f, err := b.frontier(ev.Scope)
	if err != nil {
		return nil, err
	}
	if f.missed.has(ev.Revision) {
		return b.applyLate(out, f, ev)
	}
	if ev.Revision != 0 && ev.Revision <= f.ranks.Head || ev.Seq <= f.ranks.LatestSeq {
		b.stats.Repeated++
		if !f.info.Type.Targeted() || ev.Revision == 0 || f.removed.has(ev.Revision) {
			return out, nil
		}
		return b.deliverAgain(out, f, ev) // a row may have lost what its scope was told
	}
	if ev.Revision > f.ranks.Head+1 {
		if out, err = b.gap(out, lsn, f, ev.Revision-1, ev.Revision-1); err != nil {
			return nil, err
		}
	}
	m := Entry{
		Revision: ev.Revision, Author: ev.Author, Principal: ev.Principal, Named: ev.Named,
		Recipients: ev.Recipients, Everyone: ev.Everyone,
	}
	parts, damaged, err := b.parts(
		ev.Scope, ev.Author, ev.Principal, nil, ev.Named, ev.Recipients)
	if err != nil && ev.Revision != 0 {
		return nil, err
	}
	parts, known := b.fresh(f, parts, func(p *part) bool {
		return p.entry.got.fresh(ev.Revision, p.row.Point.E)
	})
	for _, p := range append(damaged, known...) {
		ev.Author, ev.Principal = except(ev.Author, p), except(ev.Principal, p)
		ev.Named, ev.Recipients = without(ev.Named, p), without(ev.Recipients, p)
	}
	f.sure = true
	k := &f.ranks
	k.LatestSeq, k.LastActivityAt, k.LastLSN = ev.Seq, ev.At, lsn
	k.Latest = readstate.Latest{ID: ev.ID, At: ev.At}
	b.touch(&f.mark, Key{Scope: ev.Scope})
	if ev.Revision == 0 {
		return append(out, ev), nil
	}
	out = b.begin(out, f, m.Author)
	out = append(out, ev)
	b.post(f, m)
	out = b.instead(out, f, m.Author, ev.Author)
	for _, p := range parts {
		w := &p.entry.row.Writer
		if p.is.Author {
			w.AuthorHead = ev.AuthorRank
		}
		if p.is.Principal {
			w.PrincipalHead = ev.PrincipalRank
		}
		b.deliver(f, &p, &m)
		out = b.changed(out, p)
	}
	return out, nil
}

// deliver counts an entry in a row that it names.
func (b *Book) deliver(f *frontier, p *part, m *Entry) {
	base := p.entry.got.base
	before := p.entry.row.Row.Point
	p.entry.row.Row.Point.Post(f.info.Type, m.message(), p.is)
	if now := p.entry.row.Row.Point; now.Targets > before.Targets {
		p.entry.got.add(m.Revision, now.Direct > before.Direct)
		p.entry.got.apply(&p.entry.row.Row)
	}
	b.pairWith(p, m.Author, func(c *readstate.Pair) { c.Post(f.info.Type, m.message(), p.is) })
	p.anew = p.entry.got.base != base
}

// fresh leaves out the rows of an event that know its delivery, since they were ahead of their scope
// when they came from the table.
func (b *Book) fresh(
	f *frontier, parts []part, is func(p *part) bool,
) (fresh, known []part) {
	if !f.info.Type.Targeted() {
		return parts, nil
	}
	for _, p := range parts {
		if p.is.Recipient && !p.is.Author && !p.is.Principal && !is(&p) {
			known = append(known, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	return fresh, known
}

// applyLate takes a delivery in of which nobody told in its turn.
func (b *Book) applyLate(
	out []readstate.Event, f *frontier, ev readstate.MessageEvent,
) ([]readstate.Event, error) {
	out, err := b.deliverAgain(out, f, ev)
	if err != nil {
		return nil, err
	}
	f.missed.remove(ev.Revision)
	f.removed.remove(ev.Revision)
	f.late.add(ev.Revision)
	f.ranks.Replies++
	b.touch(&f.mark, Key{Scope: ev.Scope})
	return out, nil
}

// deliverAgain counts a delivery in rows that do not count it, and should.
func (b *Book) deliverAgain(
	out []readstate.Event, f *frontier, ev readstate.MessageEvent,
) ([]readstate.Event, error) {
	parts, _, err := b.parts(ev.Scope, ev.Author, ev.Principal, nil, ev.Named, ev.Recipients)
	if err != nil {
		return nil, err
	}
	m := Entry{
		Revision: ev.Revision, Author: ev.Author, Principal: ev.Principal, Named: ev.Named,
		Recipients: ev.Recipients,
	}
	parts, _ = b.fresh(f, parts, func(p *part) bool {
		return p.entry.got.fresh(ev.Revision, p.row.Point.E)
	})
	for _, p := range parts {
		if ev.Revision <= p.row.Point.E {
			continue
		}
		b.deliver(f, &p, &m)
		if p.entry.row.Row != p.row || p.anew {
			b.touch(&p.entry.mark, p.key)
			out = append(out, readstate.MemberEvent{MemberRow: b.shown(p.entry)})
		}
	}
	return out, nil
}

// begin has memory keep what it needs of a writer whom somebody blocks, from the writer's first
// entry on.
func (b *Book) begin(
	out []readstate.Event, f *frontier, x readstate.MemberKey,
) []readstate.Event {
	if !b.noted(f, x) {
		return out
	}
	if _, told := b.note(f, x); told {
		out = append(out, readstate.WriterEvent{Scope: f.info.Key, Other: f.record(x)})
	}
	return out
}

// instead tells memory of a writer's record as it is now, where the event could not name the
// writer, since the writer's own row is withheld.
func (b *Book) instead(
	out []readstate.Event, f *frontier, x, named readstate.MemberKey,
) []readstate.Event {
	if x == named || f.writers[x] == nil {
		return out
	}
	return append(out, readstate.WriterEvent{Scope: f.info.Key, Other: f.record(x)})
}

// post moves the scope to its next entry.
func (b *Book) post(f *frontier, m Entry) {
	f.ranks.Head = m.Revision
	f.ranks.Replies++
	if m.Everyone {
		f.everyone.add(m.Revision)
	}
	before := f.tail.size()
	f.tail.add(m, b.limits.Held)
	b.count(f, before)
	if w := f.writers[m.Author]; w != nil {
		w.posts.append(m.Revision)
		w.noteEveryone(m.Revision, m.Everyone, m.Principal)
	}
}

// pairWith changes the pair that the row of an event has with its author.
func (b *Book) pairWith(p *part, x readstate.MemberKey, change func(c *readstate.Pair)) {
	if !b.people[p.key.Member].pairsWith(x) {
		return
	}
	c := p.entry.pairs.get(x)
	n := c.counts()
	change(&n)
	c.set(n)
	p.entry.pairs = p.entry.pairs.put(c)
}

func (b *Book) applyRemoval(
	out []readstate.Event, lsn readstate.LSN, ev readstate.RemovalEvent,
) ([]readstate.Event, error) {
	f, err := b.frontier(ev.Scope)
	if err != nil {
		return nil, err
	}
	if f.info.Type.Targeted() && (f.removed.has(ev.Revision) || f.late.has(ev.Revision)) {
		return b.removeAgain(out, f, ev)
	}
	if ev.Revision > f.ranks.Head || ev.Revision != 0 && f.removed.has(ev.Revision) {
		b.stats.Repeated++
		return out, nil
	}
	f.ranks.Latest, f.ranks.Replies, f.ranks.LastLSN = ev.Latest, ev.Replies, lsn
	b.touch(&f.mark, Key{Scope: ev.Scope})
	if ev.Revision == 0 || ev.Revision <= f.ranks.Floor {
		return append(out, ev), nil
	}
	author := ev.Author
	parts, damaged, err := b.parts(ev.Scope, author, ev.Principal, nil, ev.Named, ev.Recipients)
	if err != nil {
		return nil, err
	}
	f.removed.add(ev.Revision)
	ev.Everyone = f.everyone.remove(ev.Revision)
	if w := f.writers[author]; w != nil {
		w.noteEveryone(ev.Revision, false, 0)
	}
	if x := f.tail.find(ev.Revision); x != nil {
		x.Removed = true
	}
	parts, unknown := b.fresh(f, parts, func(p *part) bool { return p.entry.got.counts(ev.Revision) })
	damaged = append(damaged, unknown...)
	m := readstate.Message{Revision: ev.Revision, Everyone: ev.Everyone}
	points := make([]readstate.Point, len(parts))
	for i := range parts {
		p := &parts[i]
		points[i] = p.entry.row.Row.Point
		points[i].Remove(f.info.Type, f.ranks.Floor, m, p.is)
		p.entry.got.remove(ev.Revision)
		above := m.Revision > p.row.Point.Base(f.ranks.Floor)
		b.pairWith(p, author, func(c *readstate.Pair) { c.Remove(f.info.Type, above, m, p.is) })
	}
	broken := b.settle(f, parts, points)
	for _, p := range append(damaged, broken...) {
		ev.Author, ev.Principal = except(ev.Author, p), except(ev.Principal, p)
		ev.Named, ev.Recipients = without(ev.Named, p), without(ev.Recipients, p)
	}
	out = b.instead(append(out, ev), f, author, ev.Author)
	return b.told(out, parts, broken), nil
}

// removeAgain takes a delivery out of rows that count it although memory knows of its removal: a crash
// may have lost that of the row, or the delivery was late.
func (b *Book) removeAgain(
	out []readstate.Event, f *frontier, ev readstate.RemovalEvent,
) ([]readstate.Event, error) {
	parts, _, err := b.parts(ev.Scope, ev.Author, ev.Principal, nil, ev.Named, ev.Recipients)
	if err != nil {
		return nil, err
	}
	switch {
	case f.late.remove(ev.Revision):
		f.removed.add(ev.Revision)
		f.ranks.Replies = ev.Replies
		b.touch(&f.mark, Key{Scope: ev.Scope})
	case f.missed.remove(ev.Revision): // nobody needs to tell of it any more
		b.touch(&f.mark, Key{Scope: ev.Scope})
	default:
		b.stats.Repeated++
	}
	m := readstate.Message{Revision: ev.Revision}
	for i := range parts {
		p := &parts[i]
		if !p.entry.got.lists(ev.Revision) {
			continue
		}
		p.entry.got.remove(ev.Revision)
		points := []readstate.Point{p.entry.row.Row.Point}
		points[0].Remove(f.info.Type, f.ranks.Floor, m, p.is)
		b.pairWith(p, ev.Author, func(c *readstate.Pair) { c.Remove(f.info.Type, true, m, p.is) })
		b.settle(f, parts[i:i+1], points)
		b.touch(&p.entry.mark, p.key)
		out = append(out, readstate.MemberEvent{MemberRow: b.shown(p.entry)})
	}
	return out, nil
}

func (b *Book) applyEdit(
	out []readstate.Event, lsn readstate.LSN, ev readstate.EditEvent,
) ([]readstate.Event, error) {
	f, err := b.frontier(ev.Scope)
	if err != nil {
		return nil, err
	}
	if ev.Revision <= f.ranks.Floor || ev.Revision > f.ranks.Head || f.removed.has(ev.Revision) {
		b.stats.Repeated++ // or of an entry that counts for nobody
		return out, nil
	}
	f.ranks.LastLSN = lsn
	author := ev.Author
	parts, damaged, err := b.parts(
		ev.Scope, author, ev.Principal, ev.NamedBefore, ev.NamedAfter, ev.Recipients)
	if err != nil {
		return nil, err
	}
	b.rename(f, &ev)
	parts, unknown := b.fresh(f, parts, func(p *part) bool {
		got := &p.entry.got
		return got.opaque || got.lists(ev.Revision) && got.names(ev.Revision) == p.was.Named
	})
	damaged = append(damaged, unknown...)
	before := readstate.Message{Revision: ev.Revision, Everyone: ev.EveryoneBefore}
	after := readstate.Message{Revision: ev.Revision, Everyone: ev.EveryoneAfter}
	points := make([]readstate.Point, len(parts))
	for i := range parts {
		p := &parts[i]
		points[i] = p.entry.row.Row.Point
		points[i].Edit(f.info.Type, f.ranks.Floor, before, after, p.was, p.is)
		if p.entry.got.lists(ev.Revision) {
			p.entry.got.rename(ev.Revision, p.is.Named && p.is.Recipient)
		}
		above := ev.Revision > p.row.Point.Base(f.ranks.Floor)
		b.pairWith(p, author, func(c *readstate.Pair) {
			c.Edit(f.info.Type, above, before, after, p.was, p.is)
		})
	}
	broken := b.settle(f, parts, points)
	for _, p := range append(damaged, broken...) {
		ev.Author, ev.Principal = except(ev.Author, p), except(ev.Principal, p)
		ev.NamedBefore, ev.NamedAfter = without(ev.NamedBefore, p), without(ev.NamedAfter, p)
		ev.Recipients = without(ev.Recipients, p)
	}
	out = b.instead(append(out, ev), f, author, ev.Author)
	return b.told(out, parts, broken), nil
}

// rename notes whom an entry mentions now, and completes the event by what it was.
func (b *Book) rename(f *frontier, ev *readstate.EditEvent) {
	ev.EveryoneBefore = f.everyone.has(ev.Revision)
	if ev.EveryoneBefore != ev.EveryoneAfter || !slices.Equal(ev.NamedBefore, ev.NamedAfter) {
		b.touch(&f.mark, Key{Scope: ev.Scope})
	}
	if ev.EveryoneAfter {
		f.everyone.add(ev.Revision)
	} else {
		f.everyone.remove(ev.Revision)
	}
	if w := f.writers[ev.Author]; w != nil {
		w.noteEveryone(ev.Revision, ev.EveryoneAfter, ev.Principal)
	}
	if x := f.tail.find(ev.Revision); x != nil {
		x.Named, x.Everyone = ev.NamedAfter, ev.EveryoneAfter
	}
}
