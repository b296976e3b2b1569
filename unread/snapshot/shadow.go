package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// ErrProtected refuses a barrier that would take back what an earlier one protects, or whose row
// somebody else changed in a way that nobody can bring together with what it counts.
var ErrProtected = errors.New("snapshot row is protected")

// ErrUnaccounted refuses a barrier for somebody who has no row in the scope, or a damaged one: what it
// would make durable was never counted for them.
var ErrUnaccounted = errors.New("there is no snapshot row that counts it")

// source says what a row of the table is restored from: its Task columns where they protect something
// that the regular ones do not know of, else the regular ones.
func (k *kept) source(r *Row, own *Row, d *rowDetail) (from Row, shadowed bool) {
	s := k.protected
	if s == nil || own.Ranks != nil && d.Barrier == s.Barrier {
		return *own, false
	}
	return s.row(r), true
}

// overlay brings what regular columns say of a row, which somebody wrote without knowing what it
// counts, over the entry. Their counts and how far they were brought prove nothing and are left
// alone: a larger frontier does not say which entries it counted. Membership, level and mark are
// taken over where their generation is newer; a cursor where it covers everything that the entry
// counts, up to the place where it was brought. One that stops inside that leaves a number that
// nobody knows: the entry is withheld until a cursor settles it.
func (e *entry) overlay(f *frontier, r *Row, own *rowDetail) error {
	seen, ok := visibilities[r.Visibility]
	level, err := parseNotification(r.Notification)
	if err = errors.Join(r.check(), err); err != nil || !ok {
		return fmt.Errorf("%w: regular columns beside protected ones: %w", ErrDamaged, err)
	}
	k, g := &e.row.Row, &r.Generations
	if g.Membership > e.gens.Membership {
		k.Joined, k.Visible, e.gens.Membership = seen[0], seen[1], g.Membership
	}
	if g.Notification > e.gens.Notification {
		k.Notification, e.gens.Notification = level, g.Notification
	}
	if g.Manual > e.gens.Manual {
		k.Manual = readstate.Manual{
			Set: r.ManualUnread == 1, Version: max(k.Manual.Version+1, own.Version),
		}
		if k.Manual.Set && own.ManualFrom <= readstate.MaxCounter {
			k.Manual.From = readstate.Revision(own.ManualFrom)
		}
		e.gens.Manual = g.Manual
	}
	e.overlayCursors(f, r)
	return nil
}

func (e *entry) overlayCursors(f *frontier, r *Row) {
	k := &e.row.Row
	through, actThrough := e.through(f)
	read, from := readstate.Revision(r.MessageRead), readstate.Revision(r.EffectiveFrom)
	partial := false
	take := func(at readstate.Revision) bool {
		covers := at >= through
		partial = partial || !covers && k.Point.Targets > 0
		return covers || k.Point.Targets == 0
	}
	if read > k.Read && take(read) {
		k.Read = read
	}
	if from > k.Effective && from-1 > k.Point.E && take(from-1) {
		k.Effective = from
	}
	to := k.EffectivePoint(f.ranks.Floor)
	partial = partial || to < k.Point.Base(f.ranks.Floor) // what is there is known no longer
	if to > k.Point.E {
		partial = !e.moveTo(to, to >= through) || partial
	}
	if partial {
		k.Serving = readstate.Behind
	}
	acts := readstate.Seq(r.ActivityRead)
	switch {
	case acts <= k.Activity.Read:
	case acts >= actThrough || k.Activity.Targets == 0:
		k.Activity = readstate.ActivityPoint{
			Read: acts, SignalAt: f.ranks.SignalHead, ActorAt: e.row.Writer.ActorHead,
		}
		e.got.acts, e.got.baseActs = nil, 0
		for i := range e.pairs {
			e.pairs[i].acts = 0
		}
		e.pairs = slices.DeleteFunc(e.pairs, func(p pair) bool { return p.empty() })
	default:
		e.actsBehind = true
	}
}

// moveTo moves the point up. Whole says that nothing above it counts; otherwise the list has to say
// what does, and it is false where that is not to be told.
func (e *entry) moveTo(to readstate.Revision, whole bool) bool {
	p, w, d := &e.row.Row.Point, &e.row.Writer, &e.got
	if whole {
		d.entries, d.direct = nil, nil
	} else {
		d.entries, d.direct = aboveOf(d.entries, to), aboveOf(d.direct, to)
	}
	known := whole || p.Targets == 0 ||
		!d.opaque && d.base == 0 && (len(d.entries) == 0 || len(e.pairs) == 0)
	d.base = 0
	*p = readstate.Point{
		E: to, AuthorRank: w.AuthorHead, PrincipalRank: w.PrincipalHead,
		Targets: uint64(len(d.entries)), Direct: uint64(len(d.direct)),
	}
	for i := range e.pairs {
		e.pairs[i].overlap, e.pairs[i].direct, e.pairs[i].targets = 0, 0, 0
	}
	e.pairs = slices.DeleteFunc(e.pairs, func(p pair) bool { return p.empty() })
	return known
}

// keeps refuses a row that would take back what the table protects of it: where it was brought to,
// a generation, a cursor, or an entry that it counts no longer although no cursor passed it and
// nobody took it back.
func (b *Book) keeps(f *frontier, e *entry, r *Row) error {
	s := e.protected
	if e.odd {
		return fmt.Errorf("%w: by columns of a format that is not known here", ErrProtected)
	}
	if s == nil || e.repaired {
		return nil
	}
	g, h := &r.Generations, &s.Generations
	other := e.row.Row.Epoch != s.Detail.Epoch || r.EffectiveFrom != s.Effective ||
		g.Membership > h.Membership
	switch {
	case r.MessageAccounted < s.Through || r.ActivityAccounted < s.ActivityThrough:
		return fmt.Errorf("%w: it ends at revision %d and activity %d, the row at %d and %d",
			ErrProtected, s.Through, s.ActivityThrough, r.MessageAccounted, r.ActivityAccounted)
	case g.Roster < h.Roster || g.Message < h.Message || g.Activity < h.Activity ||
		g.Membership < h.Membership || g.Notification < h.Notification ||
		g.Manual < h.Manual || g.Rewind < h.Rewind:
		return fmt.Errorf("%w: its generations are %+v, those of the row %+v", ErrProtected, *h, *g)
	case !other && (r.MessageRead < s.Read || r.ActivityRead < s.ActivityRead):
		return fmt.Errorf("%w: it was read to %d and %d, the row to %d and %d", ErrProtected,
			s.Read, s.ActivityRead, r.MessageRead, r.ActivityRead)
	}
	if err := b.keepsEntries(f, e, s, g.Rewind > h.Rewind); err != nil {
		return err
	}
	return e.keepsActs(s)
}

// keepsEntries compares entry by entry; where one of both has numbers alone, it compares those.
func (b *Book) keepsEntries(f *frontier, e *entry, s *shadow, rewound bool) error {
	entries, err := unpack[readstate.Revision](s.Detail.Entries)
	if err != nil {
		return err
	}
	at := e.row.Row.Point.Base(f.ranks.Floor)
	if e.got.opaque || int64(s.Detail.Base)+int64(len(entries)) != s.Ranks.Targets {
		if at < readstate.Revision(s.Through) && !rewound &&
			int64(e.row.Row.Point.Targets) < s.Ranks.Targets {
			return fmt.Errorf("%w: %d entries count, in the row %d", ErrProtected,
				s.Ranks.Targets, e.row.Row.Point.Targets)
		}
		return nil
	}
	for _, r := range entries {
		if r > at && !e.got.lists(r) && (!f.removed.has(r) || f.missed.has(r)) {
			return fmt.Errorf("%w: entry %d counts, and not in the row", ErrProtected, r)
		}
	}
	return nil
}

func (e *entry) keepsActs(s *shadow) error {
	acts, err := unpack[readstate.Seq](s.Detail.Acts)
	if err != nil {
		return err
	}
	k := &e.row.Row.Activity
	if e.got.opaque || int64(s.Detail.BaseActs)+int64(len(acts)) != s.Ranks.ActivityTargets {
		if k.Read < readstate.Seq(s.ActivityThrough) && int64(k.Targets) < s.Ranks.ActivityTargets {
			return fmt.Errorf("%w: %d activities count, in the row %d", ErrProtected,
				s.Ranks.ActivityTargets, k.Targets)
		}
		return nil
	}
	for _, q := range acts {
		if q > k.Read && !slices.Contains(e.got.acts, q) {
			return fmt.Errorf("%w: activity %d counts, and not in the row", ErrProtected, q)
		}
	}
	return nil
}

// Reconsider looks at the table's rows again of which a barrier found that somebody else wrote them,
// and brings into those of the book what may be. Nothing is served from what it reads. It fails
// with ErrProtected where that leaves a number that nobody knows.
func (b *Book) Reconsider(
	ctx context.Context, store Store, scope readstate.ScopeKey, members []readstate.MemberKey,
) error {
	defer b.beginRead()()
	id := b.names.Scope(scope)
	for _, m := range members {
		rows, err := store.Load(ctx, Query{
			Workspace: b.workspace, Member: b.names.Member(m), Only: []readstate.ScopeID{id},
			Limit: 1,
		})
		if err != nil {
			return fmt.Errorf("look at a row again: %w", err)
		}
		if err := b.reconsider(Key{scope, m}, rows); err != nil {
			return err
		}
	}
	return nil
}

func (b *Book) reconsider(key Key, rows []Row) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, f := b.rows[key], b.frontiers[key.Scope]
	if !e.settled() || e.absent || e.broken || f == nil {
		return nil // there is nothing of the book's to be written
	}
	if len(rows) == 0 {
		e.kept = kept{}
		return nil
	}
	was := e.seen
	if err := e.keep(&rows[0]); err != nil || e.seen == was {
		return err
	}
	own, d, err := rows[0].genuine()
	if err != nil {
		return err
	}
	before, gens, acts := e.row.Row, e.gens, e.actsBehind
	if err := e.overlay(f, &own, &d); err != nil {
		return err
	}
	if e.row.Row != before || e.gens != gens || e.actsBehind != acts {
		b.touch(&e.mark, key)
		b.restored = append(b.restored, key)
	}
	if e.row.Row.Serving == readstate.Behind || e.actsBehind {
		return fmt.Errorf("%w: a cursor stops inside it", ErrProtected)
	}
	return nil
}
