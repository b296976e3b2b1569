package snapshot

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// maxGap bounds how many entries a scope may miss at once.
const maxGap = 1 << 22

// Needs lists what Apply of the events will look at and the book does not have.
func (b *Book) Needs(events []readstate.Event) []Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []Key
	want := func(k Key) {
		if (k.Member == 0 && b.frontiers[k.Scope] == nil || k.Member != 0 && !b.rows[k].settled()) &&
			!slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for _, ev := range events {
		scope, members := touches(ev)
		if scope == 0 {
			continue
		}
		want(Key{Scope: scope})
		for _, m := range members {
			if m != 0 {
				want(Key{scope, m})
			}
		}
	}
	return keys
}

// touches names the scope and the rows that an event looks at.
func touches(ev readstate.Event) (readstate.ScopeKey, []readstate.MemberKey) {
	switch ev := ev.(type) {
	case readstate.MessageEvent:
		if ev.Revision == 0 {
			return ev.Scope, nil
		}
		return ev.Scope, slices.Concat(
			[]readstate.MemberKey{ev.Author, ev.Principal}, ev.Named, ev.Recipients)
	case readstate.RemovalEvent:
		return ev.Scope, slices.Concat(
			[]readstate.MemberKey{ev.Author, ev.Principal}, ev.Named, ev.Recipients)
	case readstate.EditEvent:
		return ev.Scope, slices.Concat([]readstate.MemberKey{ev.Author, ev.Principal},
			ev.NamedBefore, ev.NamedAfter, ev.Recipients)
	case readstate.ActivityEvent:
		return ev.Scope, append(slices.Clone(ev.Recipients), ev.Actor)
	case readstate.FloorEvent:
		return ev.Scope, nil
	case readstate.GapEvent:
		return ev.Scope, nil
	case readstate.ScopeEvent:
		return ev.Info.Key, nil
	case readstate.MemberEvent:
		return ev.Scope, nil
	case readstate.RowGoneEvent:
		return ev.Scope, []readstate.MemberKey{ev.Member}
	}
	return 0, nil
}

// Apply takes the events of one commit in and returns them as memory can take them: those that
// were told before are left out, missed entries are filled in, and rows that an event would take
// below zero come whole and withheld instead.
func (b *Book) Apply(lsn readstate.LSN, events []readstate.Event) ([]readstate.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lsn = lsn
	out := make([]readstate.Event, 0, len(events)+len(b.restored))
	for _, key := range b.restored {
		if e := b.rows[key]; e != nil && !e.absent {
			out = append(out, readstate.MemberEvent{MemberRow: b.shown(e)})
		}
	}
	b.restored = b.restored[:0]
	for _, ev := range events {
		var err error
		if out, err = b.apply(out, lsn, ev); err != nil {
			return nil, fmt.Errorf("snapshot of %d: %w", lsn, err)
		}
	}
	for _, key := range b.fetched {
		if e := b.rows[key]; e != nil && !e.dirty && !e.owed {
			b.retire(key, &e.mark)
		}
	}
	b.fetched = b.fetched[:0]
	return out, nil
}

func (b *Book) apply(
	out []readstate.Event, lsn readstate.LSN, ev readstate.Event,
) ([]readstate.Event, error) {
	switch ev := ev.(type) {
	case readstate.MessageEvent:
		return b.applyMessage(out, lsn, ev)
	case readstate.RemovalEvent:
		return b.applyRemoval(out, lsn, ev)
	case readstate.EditEvent:
		return b.applyEdit(out, lsn, ev)
	case readstate.ActivityEvent:
		return b.applyActivity(out, lsn, ev)
	case readstate.FloorEvent:
		return b.applyFloor(out, lsn, ev)
	case readstate.GapEvent:
		f := b.frontiers[ev.Scope]
		if f == nil {
			return nil, unknown(ev.Scope)
		}
		return b.gap(out, lsn, f, ev.Head, ev.Doubt)
	case readstate.ScopeEvent:
		return append(out, b.applyScope(lsn, ev)), nil
	case readstate.MemberEvent:
		return b.applyMember(out, lsn, ev)
	case readstate.RowGoneEvent:
		return b.applyGone(out, ev), nil
	case readstate.PrincipalEvent, readstate.RowFoundEvent:
		return append(out, ev), nil
	}
	return nil, fmt.Errorf("event %T: %w", ev, ErrUnsupported)
}

// gap fills in entries that nobody told of, as entries that count for nobody.
func (b *Book) gap(
	out []readstate.Event, lsn readstate.LSN, f *frontier, head, doubt readstate.Revision,
) ([]readstate.Event, error) {
	head = max(head, f.ranks.Head)
	if head-f.ranks.Head > maxGap {
		return nil, fmt.Errorf("scope %d: %d entries are missing after %d, at most %d can be: %w",
			f.info.Key, head-f.ranks.Head, f.ranks.Head, maxGap, ErrUnsupported)
	}
	for r := f.ranks.Head + 1; r <= head; r++ {
		f.removed.add(r)
	}
	b.stats.Lost += uint64(head - f.ranks.Head)
	b.stats.Gaps++
	f.ranks.Head, f.ranks.Doubt, f.ranks.LastLSN = head, max(f.ranks.Doubt, doubt), lsn
	b.touch(&f.mark, Key{Scope: f.info.Key})
	return append(out, readstate.GapEvent{Scope: f.info.Key, Head: head, Doubt: f.ranks.Doubt}), nil
}

// part is a row that an event names, with what its member is to the message.
type part struct {
	entry   *entry
	key     Key
	was, is readstate.Role
	row     readstate.Row // before the event
	writer  readstate.Writer
}

// parts gathers the rows that a message names and that exist, and the damaged ones, which memory
// must leave alone.
func (b *Book) parts(
	s readstate.ScopeKey, author, principal readstate.MemberKey,
	before, after, recipients []readstate.MemberKey,
) (parts, damaged []part, missing error) {
	at := func(m readstate.MemberKey) *part {
		key := Key{s, m}
		i := slices.IndexFunc(parts, func(p part) bool { return p.key == key })
		if i >= 0 {
			return &parts[i]
		}
		e := b.rows[key]
		switch {
		case m == 0:
			return nil
		case !e.settled():
			missing = fmt.Errorf("scope %d, member %d: %w", s, m, ErrNotLoaded)
			return nil
		case e.broken:
			damaged = append(damaged, part{entry: e, key: key})
			return nil
		case e.absent:
			return nil
		}
		parts = append(parts, part{
			entry: e, key: key, row: e.row.Row, writer: e.row.Writer,
		})
		return &parts[len(parts)-1]
	}
	set := func(m readstate.MemberKey, set func(p *part)) {
		if p := at(m); p != nil {
			set(p)
		}
	}
	set(author, func(p *part) { p.was.Author, p.is.Author = true, true })
	if principal != author {
		set(principal, func(p *part) { p.was.Principal, p.is.Principal = true, true })
	}
	for _, m := range before {
		set(m, func(p *part) { p.was.Named = true })
	}
	for _, m := range after {
		set(m, func(p *part) { p.is.Named = true })
	}
	for _, m := range recipients {
		set(m, func(p *part) { p.was.Recipient, p.is.Recipient = true, true })
	}
	return parts, damaged, missing
}

func (b *Book) applyMessage(
	out []readstate.Event, lsn readstate.LSN, ev readstate.MessageEvent,
) (_ []readstate.Event, err error) {
	f := b.frontiers[ev.Scope]
	if f == nil {
		return nil, unknown(ev.Scope)
	}
	if ev.Revision != 0 && ev.Revision <= f.ranks.Head || ev.Seq <= f.ranks.LatestSeq {
		b.stats.Repeated++
		return out, nil
	}
	if ev.Revision > f.ranks.Head+1 {
		if out, err = b.gap(out, lsn, f, ev.Revision-1, ev.Revision-1); err != nil {
			return nil, err
		}
	}
	parts, damaged, err := b.parts(
		ev.Scope, ev.Author, ev.Principal, nil, ev.Named, ev.Recipients)
	if err != nil && ev.Revision != 0 {
		return nil, err
	}
	for _, p := range damaged {
		ev.Author, ev.Principal = except(ev.Author, p), except(ev.Principal, p)
		ev.Named, ev.Recipients = without(ev.Named, p), without(ev.Recipients, p)
	}
	f.sure = true
	k := &f.ranks
	k.LatestSeq, k.LastActivityAt, k.LastLSN = ev.Seq, ev.At, lsn
	k.Latest = readstate.Latest{ID: ev.ID, At: ev.At}
	b.touch(&f.mark, Key{Scope: ev.Scope})
	out = append(out, ev)
	if ev.Revision == 0 {
		return out, nil
	}
	k.Head = ev.Revision
	k.Replies++
	if ev.Everyone {
		f.everyone.add(ev.Revision)
	}
	m := readstate.Message{Revision: ev.Revision, Everyone: ev.Everyone}
	for _, p := range parts {
		w := &p.entry.row.Writer
		if p.is.Author {
			w.AuthorHead = ev.AuthorRank
		}
		if p.is.Principal {
			w.PrincipalHead = ev.PrincipalRank
		}
		p.entry.row.Row.Point.Post(f.info.Type, m, p.is)
		out = b.changed(out, p)
	}
	return out, nil
}

// changed makes a row dirty if the event changed it; where the budget refuses it, its values are
// withheld.
func (b *Book) changed(out []readstate.Event, p part) []readstate.Event {
	if p.entry.row.Row == p.row && p.entry.row.Writer == p.writer {
		return out
	}
	was := p.entry.owed
	if b.touch(&p.entry.mark, p.key) && !was {
		out = append(out, readstate.MemberEvent{MemberRow: b.shown(p.entry)})
	}
	return out
}

// settle takes the changed points over. Rows whose counters went below zero, because what the
// event takes back was never counted in them, are withheld: their members are returned.
func (b *Book) settle(parts []part, points []readstate.Point) (broken []part) {
	for i := range parts {
		p := &points[i]
		if max(p.OwnRemoved, p.OwnEveryone, p.Direct, p.Targets) > readstate.MaxCounter {
			e := parts[i].entry
			e.row.Row.Serving = readstate.Behind
			e.row.Row.Point.OwnRemoved, e.row.Row.Point.OwnEveryone = 0, 0
			e.row.Row.Point.Direct, e.row.Row.Point.Targets = 0, 0
			broken = append(broken, parts[i])
			b.stats.Contradictions++
			continue
		}
		parts[i].entry.row.Row.Point = *p
	}
	return broken
}

func (b *Book) applyRemoval(
	out []readstate.Event, lsn readstate.LSN, ev readstate.RemovalEvent,
) ([]readstate.Event, error) {
	f := b.frontiers[ev.Scope]
	if f == nil {
		return nil, unknown(ev.Scope)
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
	parts, damaged, err := b.parts(
		ev.Scope, ev.Author, ev.Principal, nil, ev.Named, ev.Recipients)
	if err != nil {
		return nil, err
	}
	f.removed.add(ev.Revision)
	ev.Everyone = f.everyone.remove(ev.Revision)
	m := readstate.Message{Revision: ev.Revision, Everyone: ev.Everyone}
	points := make([]readstate.Point, len(parts))
	for i, p := range parts {
		points[i] = p.entry.row.Row.Point
		points[i].Remove(f.info.Type, f.ranks.Floor, m, p.is)
	}
	broken := b.settle(parts, points)
	for _, p := range append(damaged, broken...) {
		ev.Author, ev.Principal = except(ev.Author, p), except(ev.Principal, p)
		ev.Named, ev.Recipients = without(ev.Named, p), without(ev.Recipients, p)
	}
	return b.told(append(out, ev), parts, broken), nil
}

func except(m readstate.MemberKey, p part) readstate.MemberKey {
	if m == p.key.Member {
		return 0
	}
	return m
}

func without(list []readstate.MemberKey, p part) []readstate.MemberKey {
	return slices.DeleteFunc(slices.Clone(list), func(m readstate.MemberKey) bool {
		return m == p.key.Member
	})
}

// told makes the rows of an event dirty, and sends those whole that memory must not derive.
func (b *Book) told(out []readstate.Event, parts, broken []part) []readstate.Event {
	for _, p := range parts {
		out = b.changed(out, p)
	}
	for _, p := range broken {
		out = append(out, readstate.MemberEvent{MemberRow: b.shown(p.entry)})
	}
	return out
}

func (b *Book) applyEdit(
	out []readstate.Event, lsn readstate.LSN, ev readstate.EditEvent,
) ([]readstate.Event, error) {
	f := b.frontiers[ev.Scope]
	if f == nil {
		return nil, unknown(ev.Scope)
	}
	if ev.Revision > f.ranks.Head || ev.Revision != 0 && f.removed.has(ev.Revision) {
		b.stats.Repeated++
		return out, nil
	}
	f.ranks.LastLSN = lsn
	if ev.Revision == 0 || ev.Revision <= f.ranks.Floor {
		return append(out, ev), nil
	}
	parts, damaged, err := b.parts(
		ev.Scope, ev.Author, ev.Principal, ev.NamedBefore, ev.NamedAfter, ev.Recipients)
	if err != nil {
		return nil, err
	}
	if ev.EveryoneBefore = f.everyone.has(ev.Revision); ev.EveryoneBefore != ev.EveryoneAfter {
		b.touch(&f.mark, Key{Scope: ev.Scope})
	}
	if ev.EveryoneAfter {
		f.everyone.add(ev.Revision)
	} else {
		f.everyone.remove(ev.Revision)
	}
	before := readstate.Message{Revision: ev.Revision, Everyone: ev.EveryoneBefore}
	after := readstate.Message{Revision: ev.Revision, Everyone: ev.EveryoneAfter}
	points := make([]readstate.Point, len(parts))
	for i, p := range parts {
		points[i] = p.entry.row.Row.Point
		points[i].Edit(f.info.Type, f.ranks.Floor, before, after, p.was, p.is)
	}
	broken := b.settle(parts, points)
	for _, p := range append(damaged, broken...) {
		ev.Author, ev.Principal = except(ev.Author, p), except(ev.Principal, p)
		ev.NamedBefore, ev.NamedAfter = without(ev.NamedBefore, p), without(ev.NamedAfter, p)
		ev.Recipients = without(ev.Recipients, p)
	}
	return b.told(append(out, ev), parts, broken), nil
}
