package readstate_test

import (
	"maps"
	"slices"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

func (w *machine) block(op model.Op) (bool, error) {
	owner, x := member(op.Member), member(op.Other)
	if w.blocks[owner] == nil {
		w.blocks[owner] = map[member]bool{}
	}
	want := op.Kind == model.OpBlock
	changed := w.blocks[owner][x] != want
	if want {
		w.blocks[owner][x] = true
	} else {
		delete(w.blocks[owner], x)
	}
	for _, s := range w.scopes {
		if s.rows[owner] == nil {
			continue
		}
		if want && changed && s.writers[x] != nil {
			s.pair(owner, x)
		}
		if !want {
			delete(s.pairs[owner], x)
			s.forget(x)
		}
	}
	return changed, nil
}

// pairFirst makes the pairs of a member who had no record in the scope: nothing of them lies
// below anybody's point, so they begin at zero.
func (s *scope) pairFirst(x member) {
	for owner := range s.rows {
		if s.machine.blocks[owner][x] {
			s.setPair(owner, x, &readstate.Pair{})
			if s.blocked[x] == nil {
				s.blocked[x] = &readstate.BlockedWriter{Member: x}
			}
		}
	}
}

// repair computes a row's pairs anew after its point or its activity cursor moved.
func (s *scope) repair(owner member) {
	for x := range s.machine.blocks[owner] {
		if s.writers[x] != nil {
			s.pair(owner, x)
		}
	}
}

func (s *scope) setPair(owner, x member, p *readstate.Pair) {
	if s.pairs[owner] == nil {
		s.pairs[owner] = map[member]*readstate.Pair{}
	}
	s.pairs[owner][x] = p
}

// pair computes what x contributes to the row of the member who blocks x, at the row's base.
func (s *scope) pair(owner, x member) {
	r := s.rows[owner]
	base := r.Point.Base(s.floor)
	w := s.written(x)
	p := &readstate.Pair{
		AuthorHead: w.AuthorHead, AuthorAt: s.ranks(x, base).Author,
		ActorHead: w.ActorHead, ActorAt: s.actorAt(x, r.Activity.Read),
	}
	for _, e := range s.entries {
		if e.author != x || e.revision <= base {
			continue
		}
		if e.live {
			p.Post(s.kind, e.message(), e.role(owner))
		} else {
			p.Removed++
		}
	}
	for i, a := range s.activities {
		if readstate.Seq(i+1) > r.Activity.Read && a.actor == x && s.delivered(a, owner) {
			p.ActivityTargets++
		}
	}
	s.setPair(owner, x, p)
	if s.blocked[x] == nil {
		s.blocked[x] = s.record(x)
	}
}

// record computes what the scope keeps of a blocked writer.
func (s *scope) record(x member) *readstate.BlockedWriter {
	w := s.written(x)
	out := &readstate.BlockedWriter{Member: x, AuthorHead: w.AuthorHead, ActorHead: w.ActorHead}
	for _, e := range s.entries {
		switch {
		case e.author != x || e.revision == 0:
		case !e.live:
			out.Removed = append(out.Removed, e.revision)
		case e.everyone:
			out.Everyone = append(out.Everyone,
				readstate.EveryoneRevision{Revision: e.revision, Principal: e.principal})
		}
	}
	return out
}

// forget drops a record to which no pair refers any more.
func (s *scope) forget(x member) {
	for _, of := range s.pairs {
		if of[x] != nil {
			return
		}
	}
	delete(s.blocked, x)
}

// each calls f for every pair about x, with its owner and whether revision r lies above the
// owner's base.
func (s *scope) each(x member, r readstate.Revision, f func(owner member, p *readstate.Pair, above bool)) {
	for owner, of := range s.pairs {
		if p := of[x]; p != nil {
			f(owner, p, r > s.rows[owner].Point.Base(s.floor))
		}
	}
}

func (s *scope) pairPost(e *entry) {
	b := s.blocked[e.author]
	if b == nil {
		return
	}
	b.AuthorHead++
	if e.everyone {
		b.Everyone = append(b.Everyone, readstate.EveryoneRevision{Revision: e.revision, Principal: e.principal})
	}
	s.each(e.author, e.revision, func(owner member, p *readstate.Pair, _ bool) {
		p.AuthorHead++
		p.Post(s.kind, e.message(), e.role(owner))
	})
}

func (s *scope) pairRemove(e *entry) {
	b := s.blocked[e.author]
	if b == nil {
		return
	}
	b.Removed = append(b.Removed, e.revision)
	slices.Sort(b.Removed)
	b.Everyone = without(b.Everyone, e.revision)
	s.each(e.author, e.revision, func(owner member, p *readstate.Pair, above bool) {
		p.Remove(s.kind, above, e.message(), e.role(owner))
	})
}

func (s *scope) pairEdit(before, after *entry) {
	b := s.blocked[before.author]
	if b == nil {
		return
	}
	b.Everyone = without(b.Everyone, before.revision)
	if after.everyone {
		b.Everyone = append(b.Everyone,
			readstate.EveryoneRevision{Revision: after.revision, Principal: after.principal})
	}
	s.each(before.author, before.revision, func(owner member, p *readstate.Pair, above bool) {
		p.Edit(s.kind, above, before.message(), after.message(), before.role(owner), after.role(owner))
	})
}

func without(list []readstate.EveryoneRevision, r readstate.Revision) []readstate.EveryoneRevision {
	return slices.DeleteFunc(list, func(e readstate.EveryoneRevision) bool { return e.Revision == r })
}

func (s *scope) pairActivity(a *activity) {
	b := s.blocked[a.actor]
	if b == nil {
		return
	}
	heads := uint64(1)
	if s.kind.Targeted() {
		heads = 0
	}
	b.ActorHead += heads
	s.each(a.actor, 0, func(owner member, p *readstate.Pair, _ bool) {
		p.ActorHead += heads
		if s.delivered(a, owner) {
			p.ActivityTargets++
		}
	})
}

// pairTrim follows the floor: the lists lose what is trimmed, and the pairs of rows that the
// trim did not touch begin at the floor now.
func (s *scope) pairTrim() {
	for _, b := range s.blocked {
		b.Removed = slices.DeleteFunc(b.Removed, func(r readstate.Revision) bool { return r <= s.floor })
		b.Everyone = slices.DeleteFunc(b.Everyone, func(e readstate.EveryoneRevision) bool {
			return e.Revision <= s.floor
		})
	}
	for owner, of := range s.pairs {
		for x, p := range of {
			p.AuthorAt = max(p.AuthorAt, s.written(x).AuthorAtFloor)
			p.Removed = s.stored(owner, x).Removed
			p.Everyone = s.stored(owner, x).Everyone
		}
	}
}

// stored evaluates a pair in the form in which a store keeps it.
func (s *scope) stored(owner, x member) readstate.Pair {
	p := s.pairs[owner][x]
	row := readstate.PairRow{
		Blocked: x, AuthorAt: p.AuthorAt, Overlap: p.Overlap, Direct: p.Direct,
		Targets: p.Targets, ActorAt: p.ActorAt, ActivityTargets: p.ActivityTargets,
		Other: *s.blocked[x],
	}
	return row.Pair(s.kind, owner, s.rows[owner].Point.Base(s.floor))
}

// terms of the blocked members of a row, in a stable order.
func (s *scope) blockedTerms(owner member) []readstate.Pair {
	var out []readstate.Pair
	for _, x := range slices.Sorted(maps.Keys(s.pairs[owner])) {
		kept, stored := *s.pairs[owner][x], s.stored(owner, x)
		if kept != stored {
			s.machine.fail("%s: pair %d of %d is kept as %+v and stored as %+v",
				s.id, x, owner, kept, stored)
		}
		out = append(out, stored)
	}
	return out
}
