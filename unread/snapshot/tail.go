package snapshot

import (
	"cmp"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// tail is the newest entries of a scope, as far as this process was told of them: all of those
// above low, up to the head. From it a member's point can be counted anew at any revision from
// low on. It is memory alone: a scope that comes back from the table has an empty one.
type tail struct {
	low      readstate.Revision
	entries  []Entry // ascending by revision
	lowSeq   readstate.Seq
	activity []Act // ascending by seq
}

// Entry is one readable entry of a scope: who it touches, and whether it is still there.
type Entry struct {
	Revision   readstate.Revision
	Author     readstate.MemberKey
	Principal  readstate.MemberKey // zero where it is the author
	Named      []readstate.MemberKey
	Recipients []readstate.MemberKey
	Everyone   bool
	Removed    bool
}

// Act is one activity of a scope.
type Act struct {
	Seq        readstate.Seq
	Actor      readstate.MemberKey
	High       bool
	Recipients []readstate.MemberKey
}

// Role is what a member is to the entry.
func (m *Entry) Role(k readstate.MemberKey) readstate.Role {
	return readstate.Role{
		Author: k == m.Author, Principal: k == m.Principal && k != m.Author,
		Named: slices.Contains(m.Named, k), Recipient: slices.Contains(m.Recipients, k),
	}
}

// message is what counting needs to know of the entry.
func (m *Entry) message() readstate.Message {
	return readstate.Message{Revision: m.Revision, Everyone: m.Everyone}
}

// size is how many entries and activities the tail has.
func (t *tail) size() int { return len(t.entries) + len(t.activity) }

func (t *tail) add(m Entry, limit int) {
	t.entries = append(t.entries, m)
	if over := len(t.entries) - limit; over > 0 {
		t.low = t.entries[over-1].Revision
		t.entries = dropFront(t.entries, over)
	}
}

func (t *tail) addActivity(a Act, limit int) {
	t.activity = append(t.activity, a)
	if over := len(t.activity) - limit; over > 0 {
		t.lowSeq = t.activity[over-1].Seq
		t.activity = dropFront(t.activity, over)
	}
}

// dropFront forgets the first n items. What they pointed to can be collected at once, their places
// when the slice grows next.
func dropFront[T any](s []T, n int) []T {
	clear(s[:n])
	return s[n:]
}

// restart forgets every entry: the scope goes on after head.
func (t *tail) restart(head readstate.Revision) { t.low, t.entries = head, nil }

// forget leaves nothing but the place where the scope stands.
func (t *tail) forget(k *readstate.ScopeRanks) {
	*t = tail{low: k.Head, lowSeq: k.LatestActivity}
}

func (t *tail) find(r readstate.Revision) *Entry {
	i, found := slices.BinarySearchFunc(t.entries, r, func(m Entry, r readstate.Revision) int {
		return cmp.Compare(m.Revision, r)
	})
	if !found {
		return nil
	}
	return &t.entries[i]
}

// trim forgets what lies at or below the floor.
func (t *tail) trim(floor readstate.Revision) {
	t.low = max(t.low, floor)
	t.entries = slices.DeleteFunc(t.entries, func(m Entry) bool { return m.Revision <= floor })
}

// above returns the entries above e, which is not below low.
func (t *tail) above(e readstate.Revision) []Entry {
	i, _ := slices.BinarySearchFunc(t.entries, e+1, func(m Entry, r readstate.Revision) int {
		return cmp.Compare(m.Revision, r)
	})
	return t.entries[i:]
}

// acts returns the activities above q, which is not below lowSeq.
func (t *tail) acts(q readstate.Seq) []Act {
	i, _ := slices.BinarySearchFunc(t.activity, q+1, func(a Act, q readstate.Seq) int {
		return cmp.Compare(a.Seq, q)
	})
	return t.activity[i:]
}

// point counts a member's point at e, given the heads of the member's ranks; false where e lies
// below what is there.
func (t *tail) point(
	of readstate.ScopeType, k readstate.MemberKey, e readstate.Revision, w readstate.Writer,
) (readstate.Point, bool) {
	if e < t.low {
		return readstate.Point{}, false
	}
	p := readstate.Point{E: e, AuthorRank: w.AuthorHead, PrincipalRank: w.PrincipalHead}
	entries := t.above(e)
	for i := range entries {
		m := &entries[i]
		role := m.Role(k)
		if role.Author {
			p.AuthorRank--
		}
		if role.Principal {
			p.PrincipalRank--
		}
		var c readstate.Crossed
		c.Add(of, m.message(), role, !m.Removed)
		p.OwnRemoved += c.OwnRemoved
		p.OwnEveryone += c.OwnEveryone
		p.Direct += c.Direct
		p.Targets += c.Targets
	}
	return p, true
}

// activityPoint is the same for activities.
func (t *tail) activityPoint(
	of readstate.ScopeType, k readstate.MemberKey, q readstate.Seq,
	signals uint64, w readstate.Writer,
) (readstate.ActivityPoint, bool) {
	if q < t.lowSeq {
		return readstate.ActivityPoint{}, false
	}
	p := readstate.ActivityPoint{Read: q, SignalAt: signals, ActorAt: w.ActorHead}
	for _, a := range t.acts(q) {
		if !a.High {
			continue
		}
		p.SignalAt--
		if a.Actor == k {
			p.ActorAt--
		}
		p.PostActivity(of, true, slices.Contains(a.Recipients, k), a.Actor == k)
	}
	return p, true
}

// holds reports that the member wrote or did something that is there.
func (t *tail) holds(x readstate.MemberKey) bool {
	return slices.ContainsFunc(t.entries, func(m Entry) bool { return m.Author == x }) ||
		slices.ContainsFunc(t.activity, func(a Act) bool { return a.High && a.Actor == x })
}

// writer counts what is there of a member who had no row when they wrote.
func (t *tail) writer(k readstate.MemberKey) readstate.Writer {
	var w readstate.Writer
	for i := range t.entries {
		role := t.entries[i].Role(k)
		if role.Author {
			w.AuthorHead++
		}
		if role.Principal {
			w.PrincipalHead++
		}
	}
	for i := range t.activity {
		if t.activity[i].High && t.activity[i].Actor == k {
			w.ActorHead++
		}
	}
	return w
}

// Entry returns one of the scope's newest entries, if it is held. Its slices are shared.
func (b *Book) Entry(s readstate.ScopeKey, r readstate.Revision) (Entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[s]
	if f == nil {
		return Entry{}, false
	}
	m := f.tail.find(r)
	if m == nil {
		return Entry{}, false
	}
	return *m, true
}

// PointAt counts a member's point at e from the scope's newest entries, with the pairs that belong
// to it: they replace those of the row in everything but activities. It is false where e lies below
// what is held.
func (b *Book) PointAt(
	row *readstate.MemberRow, e readstate.Revision,
) (p readstate.Point, of []readstate.PairRow, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[row.Scope]
	if f == nil {
		return p, nil, false
	}
	if p, ok = f.tail.point(f.info.Type, row.Member, e, row.Writer); !ok {
		return b.pointOfList(row, e)
	}
	b.eachPair(row.Member, func(x readstate.MemberKey) {
		entries, _ := f.writtenBy(x, e, nil, true)
		c := countPair(f.info.Type, row.Member, x, entries, nil)
		of = append(of, readstate.PairRow{
			Blocked: x, Overlap: c.overlap, Direct: c.direct, Targets: c.targets,
		})
	})
	return p, keepActs(of, row.Pairs), true
}

// ActivityPointAt does the same for activities, and their pairs.
func (b *Book) ActivityPointAt(
	row *readstate.MemberRow, q readstate.Seq,
) (p readstate.ActivityPoint, of []readstate.PairRow, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[row.Scope]
	if f == nil {
		return p, nil, false
	}
	p, ok = f.tail.activityPoint(f.info.Type, row.Member, q, f.ranks.SignalHead, row.Writer)
	if !ok {
		d := b.listOf(row)
		p = readstate.ActivityPoint{Read: q}
		if ok = d != nil && q >= row.Row.Activity.Read; ok {
			p.Targets = uint64(len(aboveOf(d.acts, q)))
		}
		return p, row.Pairs, ok
	}
	of = slices.Clone(row.Pairs)
	for i := range of {
		of[i].ActivityTargets = 0
	}
	b.eachPair(row.Member, func(x readstate.MemberKey) {
		acts, _ := f.actedBy(x, q, nil, true)
		c := countPair(f.info.Type, row.Member, x, nil, acts)
		of = keepActs(of, []readstate.PairRow{{Blocked: x, ActivityTargets: c.acts}})
	})
	return p, of, true
}

// eachPair calls f for everybody with whom rows of the member have pairs.
func (b *Book) eachPair(m readstate.MemberKey, f func(x readstate.MemberKey)) {
	if p := b.people[m]; p != nil {
		for _, x := range slices.Concat(p.blocks, p.becoming) {
			f(x)
		}
	}
}

// PairsAtHead are pairs of a row whose point moves to the head: nothing is above it but activities.
func PairsAtHead(of []readstate.PairRow) []readstate.PairRow { return keepActs(nil, of) }

// keepActs takes the activities of pairs over into others.
func keepActs(of, from []readstate.PairRow) []readstate.PairRow {
	for i := range from {
		if from[i].ActivityTargets == 0 {
			continue
		}
		at := slices.IndexFunc(of, func(p readstate.PairRow) bool {
			return p.Blocked == from[i].Blocked
		})
		if at < 0 {
			of = append(of, readstate.PairRow{Blocked: from[i].Blocked})
			at = len(of) - 1
		}
		of[at].ActivityTargets = from[i].ActivityTargets
	}
	return of
}

// WriterOf counts what a member wrote and did in a scope before they had a row there, as far as it
// is held.
func (b *Book) WriterOf(s readstate.ScopeKey, m readstate.MemberKey) readstate.Writer {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[s]
	if f == nil {
		return readstate.Writer{}
	}
	return f.tail.writer(m)
}
