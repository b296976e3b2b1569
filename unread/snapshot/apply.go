package snapshot

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// MaxGap bounds how many entries a scope may miss at once.
const MaxGap = 1 << 22

// Needs lists what Apply of the events will look at and the book does not have.
func (b *Book) Needs(events []readstate.Event) []Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []Key
	want := func(k Key) {
		if !b.has(k) && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for _, ev := range events {
		scope, members := touches(ev)
		if scope != 0 {
			want(Key{Scope: scope})
		}
		for _, m := range members {
			if m == 0 {
				continue
			}
			want(Key{Member: m})
			if scope != 0 {
				want(Key{scope, m})
			}
		}
	}
	return keys
}

// Has reports that a row is in the book, or known to be missing.
func (b *Book) Has(k Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.has(k)
}

func (b *Book) has(k Key) bool {
	switch {
	case k.Member == 0:
		return b.frontiers[k.Scope] != nil
	case k.Scope == 0:
		return b.people[k.Member] != nil
	}
	return b.rows[k].settled()
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
		return ev.Scope, []readstate.MemberKey{ev.Member}
	case readstate.BlockEvent:
		return 0, []readstate.MemberKey{ev.Member, ev.Other}
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
		if m := b.markOf(key); m != nil && !m.dirty && !m.owed {
			b.retire(key, m)
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
		f, err := b.frontier(ev.Scope)
		if err != nil {
			return nil, err
		}
		return b.gap(out, lsn, f, ev.Head, ev.Doubt)
	case readstate.ScopeEvent:
		return append(out, b.applyScope(lsn, ev)), nil
	case readstate.MemberEvent:
		return b.applyMember(out, lsn, ev)
	case readstate.RowGoneEvent:
		return b.applyGone(out, ev), nil
	case readstate.BlockEvent:
		return b.applyBlock(out, lsn, ev)
	case readstate.PrincipalEvent, readstate.RowFoundEvent, readstate.WriterEvent:
		return append(out, ev), nil
	}
	return nil, fmt.Errorf("event %T: %w", ev, ErrUnsupported)
}

// gap fills in entries that nobody told of, as entries that count for nobody.
func (b *Book) gap(
	out []readstate.Event, lsn readstate.LSN, f *frontier, head, doubt readstate.Revision,
) ([]readstate.Event, error) {
	head = max(head, f.ranks.Head)
	if head-f.ranks.Head > MaxGap {
		return nil, fmt.Errorf("scope %d: %d entries are missing after %d, at most %d can be: %w",
			f.info.Key, head-f.ranks.Head, f.ranks.Head, MaxGap, ErrUnsupported)
	}
	for r := f.ranks.Head + 1; r <= head; r++ {
		f.removed.add(r)
		if f.info.Type.Targeted() {
			f.missed.add(r)
		}
	}
	if head > f.ranks.Head {
		before := f.tail.size()
		f.tail.restart(head)
		b.count(f, before)
	}
	b.stats.Lost += uint64(head - f.ranks.Head)
	b.stats.Gaps++
	f.ranks.Head, f.ranks.Doubt, f.ranks.LastLSN = head, max(f.ranks.Doubt, doubt), lsn
	b.touch(&f.mark, Key{Scope: f.info.Key})
	return append(out, readstate.GapEvent{Scope: f.info.Key, Head: head, Doubt: f.ranks.Doubt}), nil
}
