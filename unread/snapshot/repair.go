package snapshot

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// ErrFacts refuses facts that do not fit together, or not to what was told.
var ErrFacts = errors.New("facts do not fit")

// Truth is what a program's facts say of one member in one scope: the row's facts, and everything
// above the point and the activity cursor that follow from them.
type Truth struct {
	// Row has the facts of the row: membership, level, cursors, mark. Its point is left out.
	Row            readstate.Row
	Head           readstate.Revision
	LatestActivity readstate.Seq
	Entries        []Entry // above the row's point, one for each revision up to the head
	Activity       []Act   // high-signal ones above the activity cursor, ascending
}

// point is where the truth's row counts from.
func (t *Truth) point(floor readstate.Revision) readstate.Revision {
	return t.Row.EffectivePoint(floor)
}

// check refuses facts that have gaps, or that are older than what the scope was told.
func (t *Truth) check(f *frontier) error {
	e := t.point(f.ranks.Floor)
	switch {
	case t.Head < f.ranks.Head || t.LatestActivity < f.ranks.LatestActivity:
		return fmt.Errorf("%w: they end at revision %d and activity %d, the scope at %d and %d",
			ErrFacts, t.Head, t.LatestActivity, f.ranks.Head, f.ranks.LatestActivity)
	case t.Head-f.ranks.Head > MaxGap:
		return fmt.Errorf("%w: head %d after %d", ErrFacts, t.Head, f.ranks.Head)
	case uint64(len(t.Entries)) != uint64(t.Head)-uint64(min(e, t.Head)):
		return fmt.Errorf("%w: %d entries above %d up to %d", ErrFacts, len(t.Entries), e, t.Head)
	}
	for i := range t.Entries {
		if r := t.Entries[i].Revision; r != e+1+readstate.Revision(i) {
			return fmt.Errorf("%w: entry %d has revision %d above %d", ErrFacts, i, r, e)
		}
	}
	last := t.Row.Activity.Read
	for _, a := range t.Activity {
		if a.Seq <= last || a.Seq > t.LatestActivity {
			return fmt.Errorf("%w: activity %d after %d", ErrFacts, a.Seq, last)
		}
		last = a.Seq
	}
	return nil
}

// Recount counts entry by entry what a member has not read according to facts: what their row has to
// show. It knows nothing of ranks. The member and the scope were fetched.
func (b *Book) Recount(key Key, t Truth) (readstate.Values, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.recount(key, &t)
}

func (b *Book) recount(key Key, t *Truth) (v readstate.Values, err error) {
	f, p := b.frontiers[key.Scope], b.people[key.Member]
	if f == nil || p == nil {
		return v, unknown(key.Scope)
	}
	if err := t.check(f); err != nil {
		return v, err
	}
	kind := f.info.Type
	blocked := func(x readstate.MemberKey) bool { return slices.Contains(p.blocks, x) }
	for i := range t.Entries {
		m := &t.Entries[i]
		role := m.Role(key.Member)
		if m.Removed || role.Neutral(kind) || blocked(m.Author) ||
			kind.Targeted() && !role.Recipient {
			continue
		}
		v.Unread++
		if kind == readstate.DM || role.Named || m.Everyone {
			v.Attention++
		}
	}
	for _, a := range t.Activity {
		if a.Actor != key.Member && !blocked(a.Actor) &&
			(!kind.Targeted() || slices.Contains(a.Recipients, key.Member)) {
			v.Activity++
		}
	}
	return v, nil
}

// Repair makes a row what the facts say, and the scope as far as the facts tell of it. Memory has
// to be read again afterwards. Facts that fail change nothing.
func (b *Book) Repair(key Key, id readstate.MemberID, t Truth) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	want, err := b.recount(key, &t)
	if err != nil {
		return err
	}
	f := b.frontiers[key.Scope]
	e := b.rows[key]
	if !e.settled() {
		return unknown(key.Scope)
	}
	next := b.truthRow(f, e, key, id, &t)
	b.learn(f, b.people[key.Member], &t)
	for i := range t.Entries {
		if m := &t.Entries[i]; f.info.Type.Targeted() && !m.Removed {
			if role := m.Role(key.Member); role.Recipient && !role.Neutral(f.info.Type) {
				next.got.add(m.Revision, role.Named)
			}
		}
	}
	for _, a := range t.Activity {
		if f.info.Type.Targeted() && a.Actor != key.Member && slices.Contains(a.Recipients, key.Member) {
			next.got.addAct(a.Seq)
		}
	}
	next.got.check(&next.row)
	row := next.row
	row.Pairs = b.pairRows(f, next, b.people[key.Member])
	if got, err := f.values(&row); err != nil || got != want {
		next.row.Row.Serving = readstate.Behind
		err = fmt.Errorf("%w: the row counts %+v, its facts %+v: %w", ErrFacts, got, want, err)
		b.replace(key, e, next)
		return err
	}
	b.replace(key, e, next)
	return nil
}

func (b *Book) replace(key Key, e, next *entry) {
	next.mark, next.kept = e.mark, e.kept
	next.repaired = true
	*e = *next
	b.touch(&e.mark, key)
}

// truthRow is the entry that the facts make.
func (b *Book) truthRow(
	f *frontier, old *entry, key Key, id readstate.MemberID, t *Truth,
) *entry {
	e := &entry{gens: old.gens, got: old.got.none(), row: readstate.MemberRow{
		Scope: key.Scope, Member: key.Member, MemberID: id, Row: t.Row, StateLSN: b.lsn,
	}}
	k := &e.row.Row
	if !old.absent && !old.broken {
		was := &old.row.Row
		e.row.Writer = old.row.Writer
		k.Epoch, k.ParentEpoch, k.Follow = was.Epoch, was.ParentEpoch, was.Follow
		k.Manual.Version = max(k.Manual.Version, was.Manual.Version)
	}
	at := t.point(f.ranks.Floor)
	var held tail
	held.low, held.entries, held.activity = at, t.Entries, t.Activity
	held.lowSeq = k.Activity.Read
	above := held.writer(key.Member)
	w := &e.row.Writer
	w.AuthorHead = max(w.AuthorHead, above.AuthorHead)
	w.PrincipalHead = max(w.PrincipalHead, above.PrincipalHead)
	w.ActorHead = max(w.ActorHead, above.ActorHead)
	k.Point, _ = held.point(f.info.Type, key.Member, at, *w)
	signals := f.ranks.SignalHead
	for _, a := range t.Activity {
		if a.Seq > f.ranks.LatestActivity {
			signals++
		}
	}
	signals = max(signals, uint64(len(t.Activity)))
	k.Activity, _ = held.activityPoint(f.info.Type, key.Member, k.Activity.Read, signals, *w)
	k.Serving = readstate.Exact
	b.eachPair(key.Member, func(x readstate.MemberKey) {
		var entries []Entry
		var acts []Act
		for _, m := range t.Entries {
			if m.Author == x {
				entries = append(entries, m)
			}
		}
		for _, a := range t.Activity {
			if a.Actor == x {
				acts = append(acts, a)
			}
		}
		e.pairs = e.pairs.put(countPair(f.info.Type, key.Member, x, entries, acts))
	})
	return e
}

// learn brings a scope to where the facts are. If that tells it anything, its other rows may have
// missed something that touches them: they are exact no longer.
func (b *Book) learn(f *frontier, p *person, t *Truth) {
	news := t.Head > f.ranks.Head || t.LatestActivity > f.ranks.LatestActivity
	for r := f.ranks.Head + 1; r <= t.Head; r++ {
		f.removed.add(r) // those above the row's point come back below
	}
	for i := range t.Entries {
		m := &t.Entries[i]
		if b.noted(f, m.Author) || p.pairsWith(m.Author) {
			w, _ := b.note(f, m.Author)
			b.recall(w, m)
		}
		news = f.missed.remove(m.Revision) || news
		news = f.removed.put(m.Revision, m.Removed) || news
		news = f.everyone.put(m.Revision, m.Everyone && !m.Removed) || news
	}
	k := &f.ranks
	for _, a := range t.Activity {
		if b.noted(f, a.Actor) || p.pairsWith(a.Actor) {
			w, _ := b.note(f, a.Actor)
			w.acts.recall(readstate.Revision(a.Seq))
		}
		if a.Seq > k.LatestActivity {
			k.SignalHead++
		}
		news = f.missedActs.remove(readstate.Revision(a.Seq)) || news
	}
	k.Head, k.LatestActivity = t.Head, t.LatestActivity
	k.LatestSeq = max(k.LatestSeq, readstate.Seq(t.Head))
	if n := uint64(len(t.Activity)); n > k.SignalHead {
		k.SignalHead, news = n, true
	}
	before := f.tail.size()
	f.tail.forget(k)
	b.count(f, before)
	for key, e := range b.rows {
		switch r := &e.row.Row; {
		case key.Scope != f.info.Key || r.Serving != readstate.Exact:
		case r.Point.Base(k.Floor) < k.Doubt:
			r.Serving = readstate.Behind // as it was shown so far
		case news:
			r.Serving = readstate.Hint
		}
	}
	k.Doubt = 0
	b.touch(&f.mark, Key{Scope: f.info.Key})
}
