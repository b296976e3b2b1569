package snapshot

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// part is a row that an event names, with what its member is to the message.
type part struct {
	entry   *entry
	key     Key
	was, is readstate.Role
	row     readstate.Row // before the event
	writer  readstate.Writer
	pairs   pairs
	// anew says that the row counts something else, of which memory cannot tell what: the numbers
	// may be the same.
	anew bool
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
		case !e.settled() || b.people[m] == nil:
			missing = fmt.Errorf("scope %d, member %d: %w", s, m, ErrNotLoaded)
			return nil
		case e.broken:
			damaged = append(damaged, part{entry: e, key: key})
			return nil
		case e.absent:
			return nil
		}
		parts = append(parts, part{
			entry: e, key: key, row: e.row.Row, writer: e.row.Writer, pairs: slices.Clone(e.pairs),
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

// changed makes a row dirty if the event changed it; where the budget refuses it, its values are
// withheld.
func (b *Book) changed(out []readstate.Event, p part) []readstate.Event {
	if p.entry.row.Row == p.row && p.entry.row.Writer == p.writer &&
		slices.Equal(p.entry.pairs, p.pairs) && !p.anew {
		return out
	}
	was := p.entry.owed
	if b.touch(&p.entry.mark, p.key) && !was || p.anew {
		out = append(out, readstate.MemberEvent{MemberRow: b.shown(p.entry)})
	}
	return out
}

// settle takes the changed points over. Rows whose counters or values went below zero, because what
// the event takes back was never counted in them, are withheld: they are returned.
func (b *Book) settle(f *frontier, parts []part, points []readstate.Point) (broken []part) {
	for i := range parts {
		p, e := &points[i], parts[i].entry
		below := max(p.OwnRemoved, p.OwnEveryone, p.Direct, p.Targets) > readstate.MaxCounter ||
			slices.ContainsFunc(e.pairs, pair.below)
		if !below {
			e.row.Row.Point = *p
			row := e.row
			row.Pairs = b.pairRows(f, e, b.people[row.Member])
			_, err := f.values(&row)
			below = err != nil
		}
		if below {
			if e.row.Row.Serving.Servable() {
				b.stats.Contradictions++
			}
			e.row.Row.Serving = max(e.row.Row.Serving, readstate.Behind)
			e.row.Row.Point.OwnRemoved, e.row.Row.Point.OwnEveryone = 0, 0
			e.row.Row.Point.Direct, e.row.Row.Point.Targets = 0, 0
			e.pairs, e.got.entries, e.got.direct = nil, nil, nil
			broken = append(broken, parts[i])
		}
	}
	return broken
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
