package unread

import (
	"slices"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// diff says as events what an operation changed.
func (f *mirror) diff(before *model.World, op model.Op, out model.Outcome) {
	var pre, trimmed map[rowID]bool
	for _, s := range f.world.ScopeIDs() {
		f.diffScope(before, s)
	}
	f.diffBlocks(before)
	if op.Kind == model.OpActivity && out.Activity > 0 {
		f.diffActivity(op, out)
	}
	pre, trimmed = map[rowID]bool{}, map[rowID]bool{}
	for _, s := range f.world.ScopeIDs() {
		f.diffEntries(before, s, pre, trimmed)
	}
	for _, s := range f.world.ScopeIDs() {
		for m := model.MemberID(1); m <= mirrorMembers; m++ {
			f.diffRow(before, rowID{m, s}, pre, trimmed)
		}
	}
}

func (f *mirror) diffScope(before *model.World, s model.ScopeID) {
	was, existed := before.Scope(s)
	is, _ := f.world.Scope(s)
	if !existed && f.rng != nil {
		f.offset[s] = []readstate.Revision{
			0, readstate.BlockSize - 4, 3*readstate.BlockSize - 9,
		}[f.rng.IntN(3)]
	}
	if existed && was.Archived == is.Archived &&
		was.Active == is.Active && was.Thinking == is.Thinking {
		return
	}
	f.lastLSN[s] = f.lsn
	f.emit(readstate.ScopeEvent{Info: f.info(s)})
}

func (f *mirror) diffBlocks(before *model.World) {
	for m := model.MemberID(1); m <= mirrorMembers; m++ {
		was, is := before.Blocks(m), f.world.Blocks(m)
		for x := model.MemberID(1); x <= mirrorMembers; x++ {
			if now := slices.Contains(is, x); now != slices.Contains(was, x) {
				f.memberLSN[m] = f.lsn
				f.emit(readstate.BlockEvent{
					Member: memberKey(m), Other: memberKey(x), Blocked: now, MemberLSN: f.lsn,
				})
			}
		}
	}
}

func (f *mirror) diffActivity(op model.Op, out model.Outcome) {
	s := op.Scope
	f.acts[s] = append(f.acts[s], act{op.Member, op.LowSignal, op.Recipients})
	f.lastLSN[s], f.lastAt[s] = f.lsn, int64(f.lsn)
	ev := readstate.ActivityEvent{
		Scope: scopeKey(s), Seq: readstate.Seq(out.Activity), At: int64(f.lsn),
		HighSignal: !op.LowSignal, Actor: memberKey(op.Member),
	}
	if !op.LowSignal {
		ev.SignalRank = f.signals(s, 0, 1<<62, func(*act) bool { return true })
		ev.ActorRank = f.signals(s, 0, 1<<62, func(a *act) bool { return a.actor == op.Member })
		ev.Recipients = memberKeys(op.Recipients)
	}
	f.emit(ev)
}

func (f *mirror) diffEntries(before *model.World, s model.ScopeID, pre, trimmed map[rowID]bool) {
	was, is := before.Entries(s), f.world.Entries(s)
	l := f.logOf(s, 0)
	floor := false
	for i := range is {
		e := &is[i]
		if i >= len(was) {
			f.posted(before, &l, e, pre)
			continue
		}
		old := &was[i]
		switch {
		case e.Trimmed != old.Trimmed:
			floor = true
			if e.Revision > 0 {
				for _, m := range touches(e) {
					trimmed[rowID{m, s}] = true
				}
				if e.Live {
					f.replies[s]--
				}
			}
		case old.Live && !e.Live:
			f.removed(s, e)
		case old.Everyone != e.Everyone || !slices.Equal(old.Mentions, e.Mentions):
			f.lastLSN[s] = f.lsn
			f.emit(readstate.EditEvent{
				Scope: scopeKey(s), Seq: readstate.Seq(e.Seq), Revision: f.shift(s, e.Revision),
				Author: memberKey(e.Author), Principal: memberKey(e.Principal),
				Recipients: memberKeys(e.Recipients), NamedBefore: memberKeys(old.Mentions),
				NamedAfter: memberKeys(e.Mentions), EveryoneBefore: old.Everyone,
				EveryoneAfter: e.Everyone,
			})
		}
	}
	if floor {
		f.trimmedTo(&l)
	}
}

func touches(e *model.EntryInfo) []model.MemberID {
	return slices.Concat([]model.MemberID{e.Author, e.Principal}, e.Mentions, e.Recipients)
}

func (f *mirror) trimmedTo(l *log) {
	s := l.s
	f.lastLSN[s] = f.lsn
	ev := readstate.FloorEvent{
		Scope: scopeKey(s), Floor: l.floor, Latest: f.latest(s), Replies: f.replies[s],
		Removed: l.bits(l.floor, removedEntry), Everyone: l.bits(l.floor, everyoneEntry),
	}
	for m := model.MemberID(1); m <= mirrorMembers; m++ {
		if w := l.writer(m); w.AuthorAtFloor+w.PrincipalAtFloor > 0 {
			ev.Writers = append(ev.Writers, readstate.FloorWriter{
				Member: memberKey(m), AuthorAtFloor: w.AuthorAtFloor,
				PrincipalAtFloor: w.PrincipalAtFloor,
			})
		}
	}
	f.emit(ev)
}

func (f *mirror) removed(s model.ScopeID, e *model.EntryInfo) {
	f.lastLSN[s] = f.lsn
	if e.Revision > 0 {
		f.replies[s]--
	}
	f.emit(readstate.RemovalEvent{
		Scope: scopeKey(s), Seq: readstate.Seq(e.Seq), Revision: f.shift(s, e.Revision),
		Author: memberKey(e.Author), Principal: memberKey(e.Principal),
		Named: memberKeys(e.Mentions), Recipients: memberKeys(e.Recipients),
		Everyone: e.Everyone, Latest: f.latest(s), Replies: f.replies[s],
	})
}

// posted emits a new entry; an entry that arrives as a tombstone is posted and removed.
func (f *mirror) posted(before *model.World, l *log, e *model.EntryInfo, pre map[rowID]bool) {
	s := l.s
	f.lastLSN[s], f.lastAt[s] = f.lsn, int64(f.lsn)
	f.emitted[s], f.at[entryID{s, e.Seq}] = e.Seq, int64(f.lsn)
	ev := readstate.MessageEvent{
		Scope: scopeKey(s), Seq: readstate.Seq(e.Seq), Revision: f.shift(s, e.Revision),
		ID: messageID(e.Seq), At: int64(f.lsn),
		Author: memberKey(e.Author), Principal: memberKey(e.Principal),
		Named: memberKeys(e.Mentions), Recipients: memberKeys(e.Recipients), Everyone: e.Everyone,
	}
	if e.Revision > 0 {
		f.replies[s]++
		upTo := func(x *model.EntryInfo, _ readstate.Revision) bool {
			return x.Revision <= e.Revision && x.Author == e.Author
		}
		ev.AuthorRank = l.count(upTo)
		if e.Principal != 0 && e.Principal != e.Author {
			ev.PrincipalRank = l.count(func(x *model.EntryInfo, _ readstate.Revision) bool {
				return x.Revision <= e.Revision && x.Principal == e.Principal &&
					x.Author != e.Principal
			})
		}
		for m := model.MemberID(1); m <= mirrorMembers; m++ {
			f.followed(before, l, rowID{m, s}, e, pre)
		}
	}
	f.emit(ev)
	if !e.Live {
		f.removed(s, e)
	}
}

// followed makes the row of a member whom the entry made follow before the entry, as a store
// does; every other time it is left to come whole at the end.
func (f *mirror) followed(
	before *model.World, l *log, id rowID, e *model.EntryInfo, pre map[rowID]bool,
) {
	was, existed := before.Row(id.member, id.scope)
	is, exists := f.world.Row(id.member, id.scope)
	if !exists || (existed && was.Epoch == is.Epoch) || is.Effective != e.Revision ||
		f.rng == nil || f.rng.IntN(2) == 0 {
		return
	}
	point := l.f.shift(id.scope, e.Revision) - 1
	if f.target(id) != point {
		return
	}
	earlier := f.logOf(id.scope, e.Revision)
	f.stateLSN[id] = f.lsn
	f.points[id] = point
	f.emit(readstate.MemberEvent{MemberRow: earlier.row(id.member, point)})
	pre[id] = true
}

// target is where the row's point belongs.
func (f *mirror) target(id rowID) readstate.Revision {
	l := f.logOf(id.scope, 0)
	row := l.row(id.member, 0).Row
	return row.EffectivePoint(l.floor)
}

func (f *mirror) diffRow(before *model.World, id rowID, pre, trimmed map[rowID]bool) {
	was, existed := before.Row(id.member, id.scope)
	is, exists := f.world.Row(id.member, id.scope)
	if !exists {
		if existed {
			delete(f.points, id)
			f.emit(readstate.RowGoneEvent{
				Scope: scopeKey(id.scope), Member: memberKey(id.member),
			})
		}
		return
	}
	changed := !existed || was != is
	if !changed && (!trimmed[id] || f.points[id] >= f.floor(id.scope)) {
		return
	}
	if changed && pre[id] {
		return
	}
	f.points[id] = f.target(id)
	f.stateLSN[id] = f.lsn
	if was.Joined && !is.Joined {
		f.leftLSN[id] = f.lsn
	}
	l := f.logOf(id.scope, 0)
	f.emit(readstate.MemberEvent{MemberRow: l.row(id.member, f.points[id])})
}
