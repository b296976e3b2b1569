package snapshot

import (
	"cmp"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// deliveries are the live entries and the activities that were delivered to a member and that the
// row counts, in scopes that count deliveries. A row may be ahead of its scope in the table, since a
// barrier writes rows alone: what is told again after a crash is found here, and counts once.
type deliveries struct {
	entries []readstate.Revision // above the point, ascending,
	direct  []readstate.Revision // and those of them that name the member
	acts    []readstate.Seq      // above the activity cursor, ascending
	// base and baseActs are what a program counted that kept numbers alone, up to baseTo and
	// baseActsTo. How far it got does not say what it counted: the number goes as soon as an entry
	// up to there is told.
	base       uint64
	baseTo     readstate.Revision
	baseActs   uint64
	baseActsTo readstate.Seq
	// opaque rows lost their lists: they count everything up to where they were brought.
	opaque bool
	// entriesTo and actsTo are where the table's row was brought up to.
	entriesTo readstate.Revision
	actsTo    readstate.Seq
}

// fresh reports that the row does not count the entry yet.
func (d *deliveries) fresh(r, e readstate.Revision) bool {
	if d.opaque {
		return r > max(e, d.entriesTo)
	}
	_, found := slices.BinarySearch(d.entries, r)
	return r > e && !found
}

// freshAct does the same for an activity.
func (d *deliveries) freshAct(q, read readstate.Seq) bool {
	if d.opaque {
		return q > max(read, d.actsTo)
	}
	_, found := slices.BinarySearch(d.acts, q)
	return q > read && !found
}

func insert[T cmp.Ordered](list []T, v T) []T {
	i, found := slices.BinarySearch(list, v)
	if found {
		return list
	}
	return slices.Insert(slices.Clone(list), i, v)
}

func (d *deliveries) add(r readstate.Revision, direct bool) {
	if d.opaque {
		return
	}
	if r <= d.baseTo {
		d.base = 0
	}
	d.entries = insert(d.entries, r)
	if direct {
		d.direct = insert(d.direct, r)
	}
}

func (d *deliveries) addAct(q readstate.Seq) {
	if d.opaque {
		return
	}
	if q <= d.baseActsTo {
		d.baseActs = 0
	}
	d.acts = insert(d.acts, q)
}

// lists reports that the row knows that it counts the entry.
func (d *deliveries) lists(r readstate.Revision) bool {
	_, found := slices.BinarySearch(d.entries, r)
	return found
}

// counts reports that the row counts the entry, so that its removal takes something back.
func (d *deliveries) counts(r readstate.Revision) bool {
	return d.opaque || d.lists(r) || d.base > 0 && r <= d.baseTo
}

// names reports that the row counts the entry as one that names the member.
func (d *deliveries) names(r readstate.Revision) bool {
	_, found := slices.BinarySearch(d.direct, r)
	return found
}

func (d *deliveries) remove(r readstate.Revision) {
	if !d.lists(r) && r <= d.baseTo && d.base > 0 {
		d.base--
	}
	d.entries, d.direct = drop(d.entries, r), drop(d.direct, r)
}

// rename notes whether an entry that the row counts names the member.
func (d *deliveries) rename(r readstate.Revision, direct bool) {
	if d.direct = drop(d.direct, r); direct {
		d.add(r, true)
	}
}

func drop[T cmp.Ordered](list []T, v T) []T {
	i, found := slices.BinarySearch(list, v)
	if !found {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// moved follows the row's point and cursor to where they are now. What the row counted above them it
// counts still, also what its scope does not know of yet; what the scope's tail tells is completed.
func (d *deliveries) moved(row *readstate.MemberRow, t *tail) {
	e, q, m := row.Row.Point.E, row.Row.Activity.Read, row.Member
	if e >= d.baseTo {
		d.base = 0
	}
	if q >= d.baseActsTo {
		d.baseActs = 0
	}
	below := func(r readstate.Revision) bool { return r <= e }
	d.entries = slices.DeleteFunc(slices.Clone(d.entries), below)
	d.direct = slices.DeleteFunc(slices.Clone(d.direct), below)
	d.acts = slices.DeleteFunc(slices.Clone(d.acts), func(s readstate.Seq) bool { return s <= q })
	for _, x := range t.above(max(e, t.low)) {
		role := x.Role(m)
		if role.Recipient && !role.Author && !role.Principal && !x.Removed {
			d.add(x.Revision, role.Named)
		}
	}
	for _, a := range t.acts(max(q, t.lowSeq)) {
		if a.High && a.Actor != m && slices.Contains(a.Recipients, m) {
			d.addAct(a.Seq)
		}
	}
}

// none counts nothing, of what was brought as far.
func (d *deliveries) none() deliveries {
	return deliveries{entriesTo: d.entriesTo, actsTo: d.actsTo}
}

// beyond reports that the row counts something above the scope's head.
func (d *deliveries) beyond(head readstate.Revision) bool {
	return len(d.entries) > 0 && d.entries[len(d.entries)-1] > head
}

// apply puts the numbers of the lists into the row.
func (d *deliveries) apply(row *readstate.Row) {
	if !d.opaque {
		row.Point.Targets = d.base + uint64(len(d.entries))
		row.Point.Direct = uint64(len(d.direct))
		row.Activity.Targets = d.baseActs + uint64(len(d.acts))
	}
}

// check gives lists up that do not agree with their numbers, and takes them up again with a row
// that counts nothing.
func (d *deliveries) check(row *readstate.MemberRow) {
	d.opaque = d.base+uint64(len(d.entries)) != row.Row.Point.Targets ||
		uint64(len(d.direct)) != row.Row.Point.Direct ||
		d.baseActs+uint64(len(d.acts)) != row.Row.Activity.Targets
	if d.opaque {
		d.entries, d.direct, d.acts = nil, nil, nil
		d.base, d.baseActs = 0, 0
	}
}

// aboveOf is the part of a list above a place.
func aboveOf[T ~uint64](list []T, from T) []T {
	i, _ := slices.BinarySearch(list, from+1)
	return list[i:]
}

// listOf returns what a row counts, where it knows that entry by entry and where nobody is blocked, so
// that it does not matter by whom the entries are.
func (b *Book) listOf(row *readstate.MemberRow) *deliveries {
	f, e, p := b.frontiers[row.Scope], b.rows[Key{row.Scope, row.Member}], b.people[row.Member]
	if !f.info.Type.Targeted() || !e.settled() || e.absent || e.broken || e.got.opaque ||
		e.got.base+e.got.baseActs > 0 || p == nil || len(p.blocks)+len(p.becoming) > 0 {
		return nil
	}
	return &e.got
}

// pointOfList moves a row up that knows what it counts. Ranks do not count where deliveries do.
func (b *Book) pointOfList(
	row *readstate.MemberRow, e readstate.Revision,
) (p readstate.Point, of []readstate.PairRow, ok bool) {
	d := b.listOf(row)
	if d == nil || e < row.Row.Point.E || !row.Row.Serving.Servable() {
		return p, nil, false
	}
	return readstate.Point{
		E: e, AuthorRank: row.Writer.AuthorHead, PrincipalRank: row.Writer.PrincipalHead,
		Targets: uint64(len(aboveOf(d.entries, e))), Direct: uint64(len(aboveOf(d.direct, e))),
	}, row.Pairs, true
}

// pack writes a list as runs.
func pack[T ~uint64](list []T) string {
	var s revisions
	for _, v := range list {
		s.add(readstate.Revision(v))
	}
	return s.pack()
}

// maxDeliveries bounds what a damaged row may make of itself.
const maxDeliveries = 1 << 20

func unpack[T ~uint64](text string) (list []T, err error) {
	s, err := unpackRevisions(text)
	if err != nil || s.above(0) > maxDeliveries {
		return nil, errRuns
	}
	s.each(func(r readstate.Revision) { list = append(list, T(r)) })
	return list, nil
}

// Taken reports that an entry and an activity of a scope that counts deliveries were told, each
// unless it is zero: in their turn, or later. It is false where a member's row does not count an
// entry that is held, and should: somebody else wrote the row since.
func (b *Book) Taken(
	s readstate.ScopeKey, r readstate.Revision, q readstate.Seq, members []readstate.MemberKey,
) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[s]
	if f == nil {
		return false
	}
	for _, m := range members {
		e := b.rows[Key{s, m}]
		if x := f.tail.find(r); x == nil || f.removed.has(r) || !e.settled() || e.absent || e.broken {
			continue
		} else if role := x.Role(m); role.Recipient && !role.Author && !role.Principal &&
			r > e.row.Row.Point.E && !e.got.counts(r) {
			return false
		}
	}
	return f.info.Type.Targeted() && r <= f.ranks.Head && !f.missed.has(r) &&
		q <= f.ranks.LatestActivity && !f.missedActs.has(readstate.Revision(q))
}
