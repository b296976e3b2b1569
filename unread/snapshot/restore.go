package snapshot

import (
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// rowFor is a row as it is served: the book's, else what the table has. Where a scope has no
// frontier, the row says what it knows of it.
func (b *Book) rowFor(key Key, loaded map[Key]*Row) (readstate.MemberRow, bool) {
	e := b.rows[key]
	if r := loaded[key]; r != nil && !e.settled() {
		e = b.restore(key, r)
	}
	if e == nil {
		return readstate.MemberRow{}, false
	}
	if e.absent || b.frontiers[key.Scope] == nil {
		return readstate.MemberRow{}, false
	}
	return b.shown(e), true
}

// restore makes an entry of a row of the table. What cannot be trusted is withheld.
func (b *Book) restore(key Key, r *Row) *entry {
	e := &entry{row: readstate.MemberRow{
		Scope: key.Scope, Member: key.Member, MemberID: r.Member,
	}}
	err := e.keep(r)
	own, d, bad := r.genuine()
	err = errors.Join(err, bad)
	from, shadowed := e.source(r, &own, &d)
	f := b.frontiers[key.Scope]
	if f == nil {
		f = b.assume(key.Scope, &from, e.protected != nil)
	}
	if shadowed = shadowed && f.info.Type.Targeted(); shadowed {
		d = e.protected.Detail
	} else {
		from = own
		e.protected = e.supersede(&own, &d)
	}
	if err == nil {
		e.row.Row, e.row.Writer, err = decodeMember(&from)
	}
	// The row is from before the floor, and what it counts may lie below: a crash came in between.
	behind := d.Behind || from.Ranks != nil && e.row.Row.Point.E < f.lifted[key.Member]
	if err == nil && !behind { // what is withheld may contradict itself
		err = b.point(f, &from, &e.row)
	}
	if err == nil {
		e.pairs, err = decodePairs(d.Pairs, b.names)
	}
	if err == nil {
		err = e.restoreDeliveries(f, &from, &d)
	}
	if err == nil {
		e.actsBehind, e.row.StateLSN = d.ActsBehind, min(d.LSN, b.lsn)
		e.gens, e.unpaired = from.Generations, d.Unpaired || from.Ranks == nil || f.assumed
		if shadowed {
			err = e.overlayOwn(f, &own)
		}
	}
	if err == nil {
		base := e.row.Row.Point.Base(f.ranks.Floor)
		if behind || from.Ranks != nil && e.row.Row.EffectivePoint(f.ranks.Floor) != base {
			e.row.Row.Serving = readstate.Behind // the facts went where the ranks could not follow
		}
		return e
	}
	b.stats.Damaged++
	seen, ok := visibilities[r.Visibility]
	e.broken = true
	e.row.Row = readstate.Row{Joined: !ok || seen[0], Visible: !ok || seen[1], Epoch: 1}
	e.row.Row.Serving = readstate.Unusable
	e.row.Writer = readstate.Writer{}
	e.row.Row.Point.E = f.ranks.Head
	e.row.Row.Read = f.ranks.Head
	return e
}

// point completes a row that has its counts alone, and holds the result against the scope.
func (b *Book) point(f *frontier, r *Row, row *readstate.MemberRow) error {
	if r.Ranks == nil {
		if f.info.Type.Targeted() {
			return pointOfNumbers(f, r, &row.Row)
		}
		head := min(readstate.Revision(r.MessageAccounted), f.ranks.Head)
		if uint64(r.MessageUnread) > uint64(head) || uint64(r.ActivityUnread) > f.ranks.SignalHead {
			return fmt.Errorf("%w: %d unread of %d", ErrDamaged, r.MessageUnread, head)
		}
		e, err := f.pointFor(head, uint64(r.MessageUnread))
		if err != nil {
			return err
		}
		row.Row.Point.E = max(e, row.Row.EffectivePoint(f.ranks.Floor))
		row.Row.Activity.SignalAt = f.ranks.SignalHead - uint64(r.ActivityUnread)
	}
	_, err := f.values(row)
	return err
}

// pointOfNumbers completes a row of a scope that counts deliveries: an older program counted some of
// what lies between its point and its frontier, and nobody knows which.
func pointOfNumbers(f *frontier, r *Row, row *readstate.Row) error {
	if r.MessageUnread > r.MessageAccounted || r.ActivityUnread > r.ActivityAccounted {
		return fmt.Errorf("%w: %d and %d unread of %d and %d", ErrDamaged, r.MessageUnread,
			r.ActivityUnread, r.MessageAccounted, r.ActivityAccounted)
	}
	row.Point.E = row.EffectivePoint(f.ranks.Floor)
	row.Point.Targets, row.Activity.Targets = uint64(r.MessageUnread), uint64(r.ActivityUnread)
	return nil
}

// supersede is what is protected where the regular columns know of the barrier: what has become of it.
func (e *entry) supersede(own *Row, d *rowDetail) *shadow {
	if e.protected == nil || own.Ranks == nil {
		return e.protected
	}
	return shadowOf(own, d)
}

// overlayOwn brings what the regular columns may say over what the Task columns protect.
func (e *entry) overlayOwn(f *frontier, own *Row) error {
	_, d, err := own.genuine()
	if err == nil {
		err = e.overlay(f, own, &d)
	}
	return err
}

// assume makes a frontier of what a row says of its scope: an older program wrote no frontiers. Only
// the rows of tasks are protected.
func (b *Book) assume(s readstate.ScopeKey, r *Row, task bool) *frontier {
	f := &frontier{
		info:    readstate.ScopeInfo{Key: s, ID: r.Scope, Type: readstate.Channel},
		assumed: true,
	}
	if task {
		f.info.Type = readstate.Task
	}
	bound := func(n int64) uint64 { return uint64(min(max(n, 0), readstate.MaxCounter)) }
	f.ranks.Head = readstate.Revision(bound(r.MessageAccounted))
	f.ranks.LatestActivity = readstate.Seq(bound(r.ActivityAccounted))
	f.ranks.SignalHead = bound(r.ActivityUnread)
	if k := r.Ranks; k != nil {
		f.ranks.Head = max(f.ranks.Head, readstate.Revision(bound(k.Head)))
		f.ranks.Floor = readstate.Revision(bound(k.Floor))
		f.ranks.SignalHead = bound(k.SignalHead)
	}
	f.ranks.LatestSeq = readstate.Seq(f.ranks.Head)
	f.tail.forget(&f.ranks)
	if task {
		f.mayMiss()
	}
	b.addFrontier(f)
	return f
}

// mayMiss says that any of the scope's entries may be told yet, since only a row told of them.
func (f *frontier) mayMiss() {
	head, last := f.ranks.Head, f.ranks.LatestActivity
	for r := head - min(head, MaxGap) + 1; r <= head; r++ {
		f.missed.add(r)
		f.removed.add(r)
	}
	for q := last - min(last, MaxGap) + 1; q <= last; q++ {
		f.missedActs.add(readstate.Revision(q))
	}
}

// restoreDeliveries reads what the row counts. A row may be ahead of its scope: edits and removals
// that it knows are not to be carried out again.
func (e *entry) restoreDeliveries(f *frontier, r *Row, d *rowDetail) (err error) {
	if !f.info.Type.Targeted() {
		return nil
	}
	if e.got.entries, err = unpack[readstate.Revision](d.Entries); err != nil {
		return err
	}
	if e.got.direct, err = unpack[readstate.Revision](d.Direct); err != nil {
		return err
	}
	if e.got.acts, err = unpack[readstate.Seq](d.Acts); err != nil {
		return err
	}
	e.got.entriesTo = readstate.Revision(r.MessageAccounted)
	e.got.actsTo = readstate.Seq(r.ActivityAccounted)
	if r.Ranks == nil {
		d.Base, d.BaseTo = uint64(r.MessageUnread), uint64(r.MessageAccounted)
		d.BaseActs, d.BaseActsTo = uint64(r.ActivityUnread), uint64(r.ActivityAccounted)
	}
	if max(d.Base, d.BaseTo, d.BaseActs, d.BaseActsTo) > readstate.MaxCounter {
		return fmt.Errorf("%w: base %d to %d", ErrDamaged, d.Base, d.BaseTo)
	}
	e.got.base, e.got.baseTo = d.Base, readstate.Revision(d.BaseTo)
	e.got.baseActs, e.got.baseActsTo = d.BaseActs, readstate.Seq(d.BaseActsTo)
	e.got.check(&e.row)
	if r.Ranks != nil { // else how far somebody got who does not say what they counted
		f.gens.Rewind = max(f.gens.Rewind, r.Generations.Rewind)
	}
	return nil
}
