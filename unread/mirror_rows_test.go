package unread

import (
	"cmp"
	"slices"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// log is what can be counted of a scope: its entries below a limit.
type log struct {
	f       *mirror
	s       model.ScopeID
	kind    readstate.ScopeType
	entries []model.EntryInfo // with a revision, ascending
	floor   readstate.Revision
}

// logOf takes the scope's readable entries, those below limit where it is not zero.
func (f *mirror) logOf(s model.ScopeID, limit model.Revision) log {
	info, _ := f.world.Scope(s)
	l := log{f: f, s: s, kind: readstate.ScopeType(info.Kind), floor: f.floor(s)}
	for _, e := range f.world.Entries(s) {
		if e.Revision > 0 && (limit == 0 || e.Revision < limit) {
			l.entries = append(l.entries, e)
		}
	}
	return l
}

func (l *log) rev(e *model.EntryInfo) readstate.Revision { return l.f.shift(l.s, e.Revision) }

func (l *log) count(f func(e *model.EntryInfo, r readstate.Revision) bool) uint64 {
	var n uint64
	for i := range l.entries {
		if f(&l.entries[i], l.rev(&l.entries[i])) {
			n++
		}
	}
	return n
}

func neutral(kind readstate.ScopeType, e *model.EntryInfo, m model.MemberID) bool {
	return kind.NeutralWriters() && (e.Author == m || e.Principal == m)
}

// named reports a mention row that counts while the entry lives.
func named(kind readstate.ScopeType, e *model.EntryInfo, m model.MemberID) bool {
	if kind.Targeted() && !slices.Contains(e.Recipients, m) {
		return false
	}
	return slices.Contains(e.Mentions, m) && !e.Everyone && !neutral(kind, e, m)
}

func delivered(kind readstate.ScopeType, e *model.EntryInfo, m model.MemberID) bool {
	return kind.Targeted() && slices.Contains(e.Recipients, m) && !neutral(kind, e, m)
}

// point counts what is kept at E.
func (l *log) point(m model.MemberID, e readstate.Revision) readstate.Point {
	base := max(e, l.floor)
	return readstate.Point{
		E: e,
		AuthorRank: l.count(func(x *model.EntryInfo, r readstate.Revision) bool {
			return x.Author == m && r <= e
		}),
		PrincipalRank: l.count(func(x *model.EntryInfo, r readstate.Revision) bool {
			return x.Principal == m && x.Author != m && r <= e
		}),
		OwnRemoved: l.count(func(x *model.EntryInfo, r readstate.Revision) bool {
			return r > base && !x.Live && neutral(l.kind, x, m)
		}),
		OwnEveryone: l.count(func(x *model.EntryInfo, r readstate.Revision) bool {
			return r > base && x.Live && x.Everyone && neutral(l.kind, x, m)
		}),
		Direct: l.count(func(x *model.EntryInfo, r readstate.Revision) bool {
			return r > base && x.Live && named(l.kind, x, m)
		}),
		Targets: l.count(func(x *model.EntryInfo, r readstate.Revision) bool {
			return r > base && x.Live && delivered(l.kind, x, m)
		}),
	}
}

func (l *log) writer(m model.MemberID) readstate.Writer {
	return readstate.Writer{
		AuthorHead: l.count(func(x *model.EntryInfo, _ readstate.Revision) bool {
			return x.Author == m
		}),
		PrincipalHead: l.count(func(x *model.EntryInfo, _ readstate.Revision) bool {
			return x.Principal == m && x.Author != m
		}),
		ActorHead: l.f.signals(l.s, 0, 1<<62, func(a *act) bool { return a.actor == m }),
		AuthorAtFloor: l.count(func(x *model.EntryInfo, r readstate.Revision) bool {
			return x.Author == m && r <= l.floor
		}),
		PrincipalAtFloor: l.count(func(x *model.EntryInfo, r readstate.Revision) bool {
			return x.Principal == m && x.Author != m && r <= l.floor
		}),
	}
}

// signals counts high-signal activities with low < seq <= high.
func (f *mirror) signals(s model.ScopeID, low, high int64, ok func(*act) bool) uint64 {
	var n uint64
	for i := range f.acts[s] {
		a, q := &f.acts[s][i], int64(i+1)
		if !a.low && q > low && q <= high && ok(a) {
			n++
		}
	}
	return n
}

func (f *mirror) activityPoint(
	m model.MemberID, s model.ScopeID, read int64,
) readstate.ActivityPoint {
	info, _ := f.world.Scope(s)
	p := readstate.ActivityPoint{
		Read:     readstate.Seq(read),
		SignalAt: f.signals(s, 0, read, func(*act) bool { return true }),
		ActorAt:  f.signals(s, 0, read, func(a *act) bool { return a.actor == m }),
	}
	if info.Kind == model.Task {
		p.Targets = f.signals(s, read, 1<<62, func(a *act) bool {
			return a.actor != m && slices.Contains(a.recipients, m)
		})
	}
	return p
}

// bits is a block of one of the scope's sets.
func (l *log) bits(base readstate.Revision, in func(*model.EntryInfo) bool) readstate.BlockBits {
	b := readstate.BlockBits{Block: readstate.BlockOf(base)}
	for i := range l.entries {
		r := l.rev(&l.entries[i])
		if readstate.BlockOf(r) == b.Block && in(&l.entries[i]) {
			if b.Bits == nil {
				b.Bits = new(readstate.Bitmap)
			}
			b.Bits.Set(r)
		}
	}
	return b
}

// removedEntry and everyoneEntry say what the sets hold: tombstones stay in a block until the
// floor has passed the block; a trimmed entry is in none.
func removedEntry(e *model.EntryInfo) bool  { return !e.Live }
func everyoneEntry(e *model.EntryInfo) bool { return e.Live && e.Everyone && !e.Trimmed }

func (l *log) counts(in func(*model.EntryInfo) bool) []readstate.BlockCount {
	n := map[uint64]uint64{}
	for i := range l.entries {
		b := readstate.BlockOf(l.rev(&l.entries[i]))
		if b >= readstate.BlockOf(l.floor) && in(&l.entries[i]) {
			n[b]++
		}
	}
	var out []readstate.BlockCount
	for b, c := range n {
		out = append(out, readstate.BlockCount{Block: b, Count: c})
	}
	slices.SortFunc(out, func(a, b readstate.BlockCount) int { return cmp.Compare(a.Block, b.Block) })
	return out
}

// row assembles a member row from a log, E being at e.
func (l *log) row(m model.MemberID, e readstate.Revision) readstate.MemberRow {
	f, s := l.f, l.s
	r, _ := f.world.Row(m, s)
	base := max(e, l.floor)
	mr := readstate.MemberRow{
		Scope: scopeKey(s), Member: memberKey(m), MemberID: memberID(m),
		Row: readstate.Row{
			Joined: r.Joined, Visible: r.Visible,
			Epoch: uint64(r.Epoch), ParentEpoch: uint64(r.ParentEpoch),
			Notification: readstate.Notification{
				Level: readstate.Level(r.Level), Until: int64(r.Until) * 1000,
			},
			Effective: f.shift(s, r.Effective), Read: f.shift(s, r.Read),
			Manual: readstate.Manual{
				Set: r.Manual, From: f.shift(s, r.ManualFrom), Version: uint64(r.Version),
			},
			Point:    l.point(m, e),
			Activity: f.activityPoint(m, s, int64(r.ActivityRead)),
		},
		Writer:   l.writer(m),
		Removed:  l.bits(base, removedEntry),
		Everyone: l.bits(base, everyoneEntry),
		StateLSN: f.stateLSN[rowID{m, s}],
	}
	for _, x := range f.world.Blocks(m) {
		if p, wrote := l.pair(m, x, base, int64(r.ActivityRead)); wrote && x != m {
			mr.Pairs = append(mr.Pairs, p)
		}
	}
	return mr
}

func (l *log) pair(
	m, x model.MemberID, base readstate.Revision, activityRead int64,
) (readstate.PairRow, bool) {
	f, s := l.f, l.s
	by := func(e *model.EntryInfo, r readstate.Revision) bool {
		return e.Author == x && e.Live && r > base
	}
	acted := func(a *act) bool { return a.actor == x }
	p := readstate.PairRow{
		Blocked: memberKey(x),
		AuthorAt: l.count(func(e *model.EntryInfo, r readstate.Revision) bool {
			return e.Author == x && r <= base
		}),
		Overlap: l.count(func(e *model.EntryInfo, r readstate.Revision) bool {
			return by(e, r) && neutral(l.kind, e, m)
		}),
		Direct: l.count(func(e *model.EntryInfo, r readstate.Revision) bool {
			return by(e, r) && named(l.kind, e, m)
		}),
		Targets: l.count(func(e *model.EntryInfo, r readstate.Revision) bool {
			return by(e, r) && delivered(l.kind, e, m)
		}),
		ActorAt: f.signals(s, 0, activityRead, acted),
		Other: readstate.BlockedWriter{
			Member:    memberKey(x),
			ActorHead: f.signals(s, 0, 1<<62, acted),
			AuthorHead: l.count(func(e *model.EntryInfo, _ readstate.Revision) bool {
				return e.Author == x
			}),
		},
	}
	if l.kind.Targeted() {
		p.ActivityTargets = f.signals(s, activityRead, 1<<62, func(a *act) bool {
			return acted(a) && a.actor != m && slices.Contains(a.recipients, m)
		})
	}
	for i := range l.entries {
		e := &l.entries[i]
		r := l.rev(e)
		if e.Author != x || r <= l.floor {
			continue
		}
		if !e.Live {
			p.Other.Removed = append(p.Other.Removed, r)
		} else if e.Everyone {
			p.Other.Everyone = append(p.Other.Everyone, readstate.EveryoneRevision{
				Revision: r, Principal: memberKey(e.Principal),
			})
		}
	}
	return p, p.Other.AuthorHead > 0 || p.Other.ActorHead > 0
}
