package snapshot

import (
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

func (b *Book) applyActivity(
	out []readstate.Event, lsn readstate.LSN, ev readstate.ActivityEvent,
) ([]readstate.Event, error) {
	f := b.frontiers[ev.Scope]
	if f == nil {
		return nil, unknown(ev.Scope)
	}
	if ev.Seq <= f.ranks.LatestActivity {
		b.stats.Repeated++
		return out, nil
	}
	f.ranks.LatestActivity, f.ranks.LastActivityAt, f.ranks.LastLSN = ev.Seq, ev.At, lsn
	b.touch(&f.mark, Key{Scope: ev.Scope})
	if !ev.HighSignal {
		return append(out, ev), nil
	}
	f.ranks.SignalHead = ev.SignalRank
	parts, damaged, err := b.parts(ev.Scope, ev.Actor, 0, nil, nil, ev.Recipients)
	if err != nil {
		return nil, err
	}
	for _, p := range damaged {
		ev.Actor, ev.Recipients = except(ev.Actor, p), without(ev.Recipients, p)
	}
	out = append(out, ev)
	for _, p := range parts {
		if p.is.Author {
			p.entry.row.Writer.ActorHead = ev.ActorRank
		}
		p.entry.row.Row.Activity.PostActivity(f.info.Type, true, p.is.Recipient, p.is.Author)
		out = b.changed(out, p)
	}
	return out, nil
}

func (b *Book) applyFloor(
	out []readstate.Event, lsn readstate.LSN, ev readstate.FloorEvent,
) ([]readstate.Event, error) {
	f := b.frontiers[ev.Scope]
	if f == nil {
		return nil, unknown(ev.Scope)
	}
	if ev.Floor <= f.ranks.Floor || ev.Floor > f.ranks.Head {
		b.stats.Repeated++
		return out, nil
	}
	f.ranks.Floor, f.ranks.LastLSN = ev.Floor, lsn
	f.ranks.Replies, f.ranks.Latest = ev.Replies, ev.Latest
	f.removed.trim(ev.Floor)
	f.everyone.trimBelow(ev.Floor)
	ev.Removed, ev.Everyone = f.removed.at(ev.Floor), f.everyone.at(ev.Floor)
	for _, w := range ev.Writers {
		if e := b.rows[Key{ev.Scope, w.Member}]; e != nil && !e.absent {
			e.row.Writer.AuthorAtFloor = w.AuthorAtFloor
			e.row.Writer.PrincipalAtFloor = w.PrincipalAtFloor
		}
	}
	b.touch(&f.mark, Key{Scope: ev.Scope})
	return append(out, ev), nil
}

// Begin makes a scope known that neither book nor table has, at the place where it stands now.
// Sure says that this place is the scope's own, and not where the first one to speak of it was. It
// reports that it did.
func (b *Book) Begin(info readstate.ScopeInfo, ranks readstate.ScopeRanks, sure bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frontiers[info.Key] != nil {
		return false
	}
	f := &frontier{info: info, ranks: ranks, sure: sure}
	b.frontiers[info.Key] = f
	b.touch(&f.mark, Key{Scope: info.Key})
	return true
}

// applyScope takes a description over. A scope that nobody knew begins here.
func (b *Book) applyScope(lsn readstate.LSN, ev readstate.ScopeEvent) readstate.Event {
	f := b.frontiers[ev.Info.Key]
	if f == nil {
		f = &frontier{sure: true}
		b.frontiers[ev.Info.Key] = f
	}
	f.info, f.ranks.LastLSN = ev.Info, lsn
	b.touch(&f.mark, Key{Scope: ev.Info.Key})
	return ev
}

func (b *Book) applyMember(
	out []readstate.Event, lsn readstate.LSN, ev readstate.MemberEvent,
) ([]readstate.Event, error) {
	f := b.frontiers[ev.Scope]
	if f == nil {
		return nil, unknown(ev.Scope)
	}
	if len(ev.Pairs) > 0 {
		return nil, fmt.Errorf("scope %d, member %d: pairs: %w", ev.Scope, ev.Member, ErrUnsupported)
	}
	key := Key{ev.Scope, ev.Member}
	e := b.rows[key]
	if e == nil {
		e = &entry{}
		b.put(key, e)
	}
	e.row, e.absent, e.broken, e.ifAbsent = ev.MemberRow, false, false, false
	e.row.Removed, e.row.Everyone = readstate.BlockBits{}, readstate.BlockBits{}
	if e.row.StateLSN == 0 {
		e.row.StateLSN = lsn
	}
	b.touch(&e.mark, key)
	return append(out, readstate.MemberEvent{MemberRow: b.shown(e)}), nil
}

// applyGone has no row to delete: what stays says that the member left.
func (b *Book) applyGone(out []readstate.Event, ev readstate.RowGoneEvent) []readstate.Event {
	key := Key{ev.Scope, ev.Member}
	e, f := b.rows[key], b.frontiers[ev.Scope]
	if e != nil && !e.absent && f != nil {
		e.row.Row.Joined = false
		e.row.Row.Point.MoveToHead(f.ranks.Head, e.row.Writer)
		b.touch(&e.mark, key)
	}
	return append(out, ev)
}
