package snapshot

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

func (b *Book) applyActivity(
	out []readstate.Event, lsn readstate.LSN, ev readstate.ActivityEvent,
) ([]readstate.Event, error) {
	f, err := b.frontier(ev.Scope)
	if err != nil {
		return nil, err
	}
	late := f.missedActs.has(readstate.Revision(ev.Seq))
	if ev.Seq <= f.ranks.LatestActivity && !late {
		b.stats.Repeated++
		if !ev.HighSignal || !f.info.Type.Targeted() {
			return out, nil
		}
	}
	a := Act{Seq: ev.Seq, Actor: ev.Actor, High: ev.HighSignal, Recipients: ev.Recipients}
	var parts, damaged []part
	if ev.HighSignal {
		if parts, damaged, err = b.parts(ev.Scope, ev.Actor, 0, nil, nil, ev.Recipients); err != nil {
			return nil, err
		}
	}
	parts, known := b.fresh(f, parts, func(p *part) bool {
		return p.entry.got.freshAct(ev.Seq, p.row.Activity.Read)
	})
	if late || ev.Seq <= f.ranks.LatestActivity { // a row may have lost what its scope was told
		return b.lateAct(out, f, a, parts, late), nil
	}
	if f.info.Type.Targeted() && ev.Seq-f.ranks.LatestActivity <= MaxGap {
		for q := f.ranks.LatestActivity + 1; q < ev.Seq; q++ {
			f.missedActs.add(readstate.Revision(q))
		}
	}
	f.ranks.LatestActivity, f.ranks.LastActivityAt, f.ranks.LastLSN = ev.Seq, ev.At, lsn
	b.touch(&f.mark, Key{Scope: ev.Scope})
	if !ev.HighSignal {
		b.act(f, a)
		return append(out, ev), nil
	}
	f.ranks.SignalHead = ev.SignalRank
	for _, p := range append(damaged, known...) {
		ev.Actor, ev.Recipients = except(ev.Actor, p), without(ev.Recipients, p)
	}
	out = b.begin(out, f, a.Actor)
	b.act(f, a)
	out = b.instead(append(out, ev), f, a.Actor, ev.Actor)
	for _, p := range parts {
		if p.is.Author {
			p.entry.row.Writer.ActorHead = ev.ActorRank
		}
		b.deliverAct(f, &p, a)
		out = b.changed(out, p)
	}
	return out, nil
}

// deliverAct counts an activity in the row of a recipient, as deliver does.
func (b *Book) deliverAct(f *frontier, p *part, a Act) {
	base := p.entry.got.baseActs
	before := p.entry.row.Row.Activity.Targets
	p.entry.row.Row.Activity.PostActivity(f.info.Type, true, p.is.Recipient, p.is.Author)
	if p.entry.row.Row.Activity.Targets == before {
		return
	}
	p.entry.got.addAct(a.Seq)
	p.entry.got.apply(&p.entry.row.Row)
	if b.people[p.key.Member].pairsWith(a.Actor) {
		c := p.entry.pairs.get(a.Actor)
		c.acts++
		p.entry.pairs = p.entry.pairs.put(c)
	}
	p.anew = p.entry.got.baseActs != base
}

// lateAct takes an activity in of which nobody told in its turn, or that is told again.
func (b *Book) lateAct(
	out []readstate.Event, f *frontier, a Act, parts []part, late bool,
) []readstate.Event {
	if late {
		f.missedActs.remove(readstate.Revision(a.Seq))
		b.touch(&f.mark, Key{Scope: f.info.Key})
	}
	for _, p := range parts {
		if !a.High || a.Seq <= p.row.Activity.Read {
			continue
		}
		if b.deliverAct(f, &p, a); p.entry.row.Row != p.row || p.anew {
			b.touch(&p.entry.mark, p.key)
			out = append(out, readstate.MemberEvent{MemberRow: b.shown(p.entry)})
		}
	}
	return out
}

// act moves the scope to its next activity.
func (b *Book) act(f *frontier, a Act) {
	before := f.tail.size()
	f.tail.addActivity(a, b.limits.Held)
	b.count(f, before)
	if w := f.writers[a.Actor]; w != nil && a.High {
		w.acts.append(readstate.Revision(a.Seq))
	}
}

func (b *Book) applyFloor(
	out []readstate.Event, lsn readstate.LSN, ev readstate.FloorEvent,
) ([]readstate.Event, error) {
	f, err := b.frontier(ev.Scope)
	if err != nil {
		return nil, err
	}
	k := &f.ranks
	same := ev.Floor == k.Floor && ev.Latest == k.Latest && ev.Replies == k.Replies
	if ev.Floor < k.Floor || ev.Floor > k.Head || same { // entries without a revision raise no floor
		b.stats.Repeated++
		return out, nil
	}
	k.Floor, k.LastLSN, k.Replies, k.Latest = ev.Floor, lsn, ev.Replies, ev.Latest
	f.floor = lsn
	f.removed.trim(ev.Floor)
	f.everyone.trimBelow(ev.Floor)
	before := f.tail.size()
	f.tail.trim(ev.Floor)
	b.count(f, before)
	f.missed.trimBelow(ev.Floor)
	for x, w := range f.writers {
		w.trim(ev.Floor)
		ev.Writers = append(ev.Writers, readstate.FloorWriter{
			Member: x, AuthorAtFloor: w.posts.offset,
		})
	}
	ev.Removed, ev.Everyone = f.removed.at(ev.Floor), f.everyone.at(ev.Floor)
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
	f := &frontier{info: info, ranks: ranks, birth: ranks, sure: sure}
	f.tail.forget(&ranks)
	b.addFrontier(f)
	b.touch(&f.mark, Key{Scope: info.Key})
	return true
}

// applyScope takes a description over. A scope that nobody knew begins here.
func (b *Book) applyScope(lsn readstate.LSN, ev readstate.ScopeEvent) readstate.Event {
	f := b.frontiers[ev.Info.Key]
	if f == nil {
		f = &frontier{info: ev.Info, sure: true}
		b.addFrontier(f)
	}
	b.use(f)
	if f.info.Type != ev.Info.Type {
		b.retype(f, ev.Info.Type)
	}
	f.info, f.ranks.LastLSN = ev.Info, lsn
	if f.assumed && f.info.Type.Targeted() {
		f.mayMiss()
	}
	b.touch(&f.mark, Key{Scope: ev.Info.Key})
	return ev
}

// retype withholds the rows of a scope that count in another way from now on. Those of an older
// program, which did not say what it counted, are read as what they turn out to be.
func (b *Book) retype(f *frontier, to readstate.ScopeType) {
	counted := f.assumed && to.Targeted()
	for key, e := range b.rows {
		if key.Scope != f.info.Key || !e.settled() || e.absent {
			continue
		}
		v, err := f.values(&e.row)
		switch {
		case counted && !e.broken && err == nil:
			e.recount(f, v)
			b.touch(&e.mark, key)
		case e.row.Row.Point.E < f.ranks.Head:
			e.row.Row.Serving = max(e.row.Row.Serving, readstate.Behind)
			b.touch(&e.mark, key)
		}
	}
}

// recount makes a row that came with numbers alone one that counts deliveries.
func (e *entry) recount(f *frontier, v readstate.Values) {
	k := &e.row.Row
	k.Point = readstate.Point{E: k.EffectivePoint(f.ranks.Floor), Targets: v.Unread}
	k.Activity.Targets = v.Activity
	e.got = deliveries{
		base: v.Unread, baseTo: f.ranks.Head, baseActs: v.Activity,
		baseActsTo: f.ranks.LatestActivity, entriesTo: f.ranks.Head,
		actsTo: f.ranks.LatestActivity,
	}
}

// applyMember takes a row over whole, with those of its pairs that are not empty.
func (b *Book) applyMember(
	out []readstate.Event, lsn readstate.LSN, ev readstate.MemberEvent,
) ([]readstate.Event, error) {
	f, err := b.frontier(ev.Scope)
	if err != nil {
		return nil, err
	}
	p := b.people[ev.Member]
	if p == nil {
		return nil, fmt.Errorf("member %d: %w", ev.Member, ErrNotLoaded)
	}
	key := Key{ev.Scope, ev.Member}
	e := b.rows[key]
	if e == nil {
		e = &entry{}
		b.put(key, e)
	}
	known := e.settled() && !e.absent && !e.broken && e.row.Row.Epoch == ev.Row.Epoch
	if floor := f.ranks.Floor; f.floor == lsn && known &&
		e.row.Row.Point.E < floor && ev.Row.Point.E >= floor {
		f.lift(ev.Member, floor)
	}
	was, point := &e.row.Row, e.row.Row.Point.E
	// The lists go down to where the row was, and those of the scope to where its tail begins.
	listed := known && ev.Row.Point.E >= min(was.Point.E, f.tail.low) &&
		ev.Row.Activity.Read >= min(was.Activity.Read, f.tail.lowSeq)
	e.row, e.absent, e.broken, e.ifAbsent = ev.MemberRow, false, false, false
	e.unpaired = false
	e.row.Removed, e.row.Everyone = readstate.BlockBits{}, readstate.BlockBits{}
	e.row.Pairs, e.pairs = nil, nil
	for i := range ev.Pairs {
		c := &ev.Pairs[i]
		if p.pairsWith(c.Blocked) {
			e.pairs = e.pairs.put(pair{
				with: c.Blocked, overlap: c.Overlap, direct: c.Direct, targets: c.Targets,
				acts: c.ActivityTargets,
			})
		}
	}
	if e.row.StateLSN == 0 {
		e.row.StateLSN = lsn
	}
	if f.info.Type.Targeted() {
		if known && point != ev.Row.Point.E {
			e.got.base = 0 // it was counted anew, or nobody knows
		}
		if e.got.moved(&e.row, &f.tail); listed {
			e.got.apply(&e.row.Row)
		}
		e.got.check(&e.row)
		if len(p.blocks) > 0 && e.got.beyond(f.ranks.Head) {
			e.row.Row.Serving = max(e.row.Row.Serving, readstate.Behind) // by whom, nobody knows
		}
	}
	for _, x := range slices.Concat(p.blocks, p.becoming) {
		if f.tail.holds(x) {
			out = b.begin(out, f, x)
		}
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
		e.pairs, e.got = nil, e.got.none()
		b.touch(&e.mark, key)
	}
	return append(out, ev)
}
