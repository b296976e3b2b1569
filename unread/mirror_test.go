package unread

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// mirror is a store of facts for tests: it plays operations on the oracle's world, compares the
// world before and after, and says as events what happened. Pages and rows are counted from the
// world's logs each time; nothing is kept that could be counted, except each row's point, since
// a real store leaves it below the floor where a trim does not concern the row.
type mirror struct {
	mu     sync.Mutex // for play and Page, where pages are read by workers
	world  *model.World
	lsn    readstate.LSN
	rng    *rand.Rand // nil: no variation
	offset map[model.ScopeID]readstate.Revision

	acts      map[model.ScopeID][]act
	points    map[rowID]readstate.Revision
	stateLSN  map[rowID]readstate.LSN
	lastLSN   map[model.ScopeID]readstate.LSN
	lastAt    map[model.ScopeID]int64
	at        map[entryID]int64
	replies   map[model.ScopeID]uint64
	emitted   map[model.ScopeID]model.Seq
	memberLSN map[model.MemberID]readstate.LSN
	leftLSN   map[rowID]readstate.LSN

	failing map[readstate.MemberID]int // pages to fail
	events  []readstate.Event
}

type (
	rowID struct {
		member model.MemberID
		scope  model.ScopeID
	}
	entryID struct {
		scope model.ScopeID
		seq   model.Seq
	}
	act struct {
		actor      model.MemberID
		low        bool
		recipients []model.MemberID
	}
)

const mirrorMembers = 5

func newMirror(rng *rand.Rand) *mirror {
	return &mirror{
		world: model.New(), rng: rng,
		offset: map[model.ScopeID]readstate.Revision{}, acts: map[model.ScopeID][]act{},
		points: map[rowID]readstate.Revision{}, stateLSN: map[rowID]readstate.LSN{},
		lastLSN: map[model.ScopeID]readstate.LSN{}, lastAt: map[model.ScopeID]int64{},
		at: map[entryID]int64{}, replies: map[model.ScopeID]uint64{},
		emitted: map[model.ScopeID]model.Seq{}, memberLSN: map[model.MemberID]readstate.LSN{},
		leftLSN: map[rowID]readstate.LSN{},
		failing: map[readstate.MemberID]int{},
	}
}

func memberKey(m model.MemberID) readstate.MemberKey { return readstate.MemberKey(m) }
func memberID(m model.MemberID) readstate.MemberID   { return readstate.MemberID(m.String()) }
func scopeKey(s model.ScopeID) readstate.ScopeKey    { return readstate.ScopeKey(s) + 100 }
func scopeID(s model.ScopeID) readstate.ScopeID      { return readstate.ScopeID(s.String()) }

func memberKeys(ids []model.MemberID) []readstate.MemberKey {
	keys := make([]readstate.MemberKey, len(ids))
	for i, id := range ids {
		keys[i] = memberKey(id)
	}
	return keys
}

// now is the world's clock in milliseconds.
func (f *mirror) now() int64 { return int64(f.world.Clock()) * 1000 }

// shift carries a revision of the world over. Scopes begin as if many revisions had been
// trimmed before, so that blocks of revision sets end within a history.
func (f *mirror) shift(s model.ScopeID, r model.Revision) readstate.Revision {
	if r == 0 {
		return 0
	}
	return f.offset[s] + readstate.Revision(r)
}

func (f *mirror) floor(s model.ScopeID) readstate.Revision {
	info, _ := f.world.Scope(s)
	return f.offset[s] + readstate.Revision(info.Floor)
}

func (f *mirror) head(s model.ScopeID) readstate.Revision {
	info, _ := f.world.Scope(s)
	return f.offset[s] + readstate.Revision(info.Head)
}

// play carries operations out as one commit. It returns the events, nil when nothing durable
// changed, in which case there is no commit.
func (f *mirror) play(ops ...model.Op) []readstate.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = nil
	f.lsn++
	for _, op := range ops {
		before := f.world.Clone()
		out, err := f.world.Apply(op)
		if err == nil {
			f.diff(before, op, out)
		}
	}
	if f.events == nil {
		f.lsn--
	}
	return f.events
}

func (f *mirror) emit(ev readstate.Event) { f.events = append(f.events, ev) }

// do plays operations written as text, each as a commit of its own, and applies them.
func (f *mirror) do(t *testing.T, r *Runtime, lines ...string) {
	t.Helper()
	for _, line := range lines {
		op, err := model.ParseOp(line)
		if err != nil {
			t.Fatal(err)
		}
		if events := f.play(op); events != nil {
			if err := r.Apply(testSpace, f.lsn, events); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
}

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

func (f *mirror) info(s model.ScopeID) readstate.ScopeInfo {
	i, _ := f.world.Scope(s)
	info := readstate.ScopeInfo{
		Key: scopeKey(s), ID: scopeID(s), Type: readstate.ScopeType(i.Kind),
		Name: "name of " + s.String(), Archived: i.Archived,
		Tags: []string{"odd", "even"}[s%2 : s%2+1], Active: i.Active, Thinking: i.Thinking,
	}
	if i.Shared {
		info.History = readstate.HistoryShared
	}
	if i.Parent != 0 {
		info.Parent, info.ParentID = scopeKey(i.Parent), scopeID(i.Parent)
		info.RootMessage = strconv.Itoa(int(i.Root))
	}
	return info
}

// latest is the newest live entry among those told of so far.
func (f *mirror) latest(s model.ScopeID) readstate.Latest {
	for _, e := range slices.Backward(f.world.Entries(s)) {
		if e.Live && !e.Trimmed && e.Seq <= f.emitted[s] {
			return readstate.Latest{ID: messageID(e.Seq), At: f.at[entryID{s, e.Seq}]}
		}
	}
	return readstate.Latest{}
}

func messageID(q model.Seq) string { return "m" + strconv.Itoa(int(q)) }

func (f *mirror) ranks(s model.ScopeID) readstate.ScopeRanks {
	i, _ := f.world.Scope(s)
	return readstate.ScopeRanks{
		LatestSeq: readstate.Seq(i.LatestSeq), Head: f.head(s), Floor: f.floor(s),
		LatestActivity: readstate.Seq(i.LatestActivity),
		SignalHead:     f.signals(s, 0, 1<<62, func(*act) bool { return true }),
		LastLSN:        f.lastLSN[s], Latest: f.latest(s), LastActivityAt: f.lastAt[s],
		Replies: f.replies[s],
	}
}

// Page reads a page of the world as it is now: the first by recent activity, the others by key.
func (f *mirror) Page(_ context.Context, q PageRequest) (readstate.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing[q.Member] > 0 {
		f.failing[q.Member]--
		return readstate.Page{}, fmt.Errorf("read page of %s: disk on fire", q.Member)
	}
	m := model.MemberID(q.Member[0]-'A') + 1
	if m > mirrorMembers {
		return readstate.Page{}, ErrNoMember
	}
	page := readstate.Page{LSN: f.lsn, Member: readstate.MemberInfo{
		Key: memberKey(m), ID: q.Member, Active: true, MemberLSN: f.memberLSN[m],
	}}
	page.Blocks = memberKeys(f.world.Blocks(m))
	var scopes []model.ScopeID
	for _, s := range f.world.ScopeIDs() {
		if row, ok := f.world.Row(m, s); ok && row.Joined {
			scopes = append(scopes, s)
		} else if ok {
			page.LeftLSN = max(page.LeftLSN, f.leftLSN[rowID{m, s}])
		}
	}
	switch {
	case q.Only != nil:
		scopes = slices.DeleteFunc(scopes, func(s model.ScopeID) bool {
			return !slices.Contains(q.Only, scopeKey(s))
		})
	case q.Cursor == "":
		if len(scopes) > q.Limit {
			slices.SortStableFunc(scopes, func(a, b model.ScopeID) int {
				return cmp.Compare(f.lastLSN[b], f.lastLSN[a])
			})
			scopes, page.Next = scopes[:q.Limit], "0"
		}
	default:
		after, _ := strconv.Atoi(q.Cursor)
		scopes = slices.DeleteFunc(scopes, func(s model.ScopeID) bool { return int(s) <= after })
		if len(scopes) > q.Limit {
			scopes = scopes[:q.Limit]
			page.Next = strconv.Itoa(int(scopes[q.Limit-1]))
		}
	}
	f.fill(&page, m, scopes)
	return page, nil
}

func (f *mirror) fill(page *readstate.Page, m model.MemberID, scopes []model.ScopeID) {
	seen := map[model.ScopeID]bool{}
	add := func(s model.ScopeID) {
		if seen[s] {
			return
		}
		seen[s] = true
		l := f.logOf(s, 0)
		page.Scopes = append(page.Scopes, readstate.PageScope{
			Info: f.info(s), Ranks: f.ranks(s),
			Removed: l.counts(removedEntry), Everyone: l.counts(everyoneEntry),
		})
	}
	for _, s := range scopes {
		add(s)
		l := f.logOf(s, 0)
		row := readstate.PageRow{MemberRow: l.row(m, f.points[rowID{m, s}])}
		info, _ := f.world.Scope(s)
		if info.Parent != 0 {
			add(info.Parent)
			if _, ok := f.world.Row(m, info.Parent); ok {
				lp := f.logOf(info.Parent, 0)
				parent := lp.row(m, f.points[rowID{m, info.Parent}])
				row.Parent = &parent
			}
		}
		page.Rows = append(page.Rows, row)
	}
}
