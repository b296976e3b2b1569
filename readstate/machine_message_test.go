package readstate_test

import (
	"slices"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// append puts a copy of the draft at the end of the log. A readable one makes people follow a
// thread first, then counts.
func (s *scope) append(draft entry, readable bool) *entry {
	e := &draft
	s.latest++
	e.seq, e.live, e.revision = s.latest, true, 0
	s.entries = append(s.entries, e)
	if !readable {
		return e
	}
	s.followMessage(e)
	s.rank(e)
	if e.everyone {
		s.everyone.block(e.revision).Set(e.revision)
	}
	for _, m := range e.touched() {
		if r := s.rows[m]; r != nil {
			r.Point.Post(s.kind, e.message(), e.role(m))
		}
	}
	s.pairPost(e)
	return e
}

// rank gives an entry the scope's next revision and its writers their next ranks.
func (s *scope) rank(e *entry) {
	author := s.writer(e.author)
	s.head++
	author.AuthorHead++
	e.revision, e.authorRank = s.head, author.AuthorHead
	if e.principal != 0 {
		principal := s.writer(e.principal)
		principal.PrincipalHead++
		e.principalRank = principal.PrincipalHead
	}
}

func (w *machine) post(op model.Op) (bool, error) {
	s := w.scopes[op.Scope]
	author := member(op.Member)
	r := s.rows[author]
	saw := op.Revision > 0 && r != nil && s.inReach(author)
	if saw {
		// What is refused is refused before anything is written.
		trial := *r
		if _, err := trial.MarkRead(s.head, readstate.ReadCommand{Revision: rev(op.Revision)}); err != nil {
			return false, err
		}
	} else if rev(op.Revision) > s.head {
		return false, readstate.ErrFuture
	}
	draft := entry{
		author: author, principal: member(op.Other), named: keys(op.Mentions),
		recipients: keys(op.Recipients), everyone: op.Everyone, expires: op.Expires,
	}
	if draft.principal == draft.author {
		draft.principal = 0
	}
	readable := !op.Unreadable && !op.Baseline
	e := s.append(draft, readable)
	if op.Broadcast {
		twin := s.parent.append(draft, readable)
		e.twin, e.twinSeq = s.parent, twin.seq
		twin.twin, twin.twinSeq = s, e.seq
	}
	if r = s.rows[author]; op.Revision > 0 && r != nil && s.inReach(author) {
		_, err := r.MarkRead(s.head, readstate.ReadCommand{Revision: rev(op.Revision)})
		w.must("read what was seen", err)
		s.place(author)
		s.settle()
	}
	return true, nil
}

// twinOf returns the other entry of a broadcast reply while it is live and retained.
func (e *entry) twinOf() (*scope, *entry) {
	if e.twin == nil {
		return nil, nil
	}
	twin := e.twin.retained(e.twinSeq)
	if twin == nil || !twin.live {
		return nil, nil
	}
	return e.twin, twin
}

func (w *machine) edit(op model.Op) (bool, error) {
	s := w.scopes[op.Scope]
	e := s.retained(readstate.Seq(op.Seq))
	named := keys(op.Mentions)
	if slices.Equal(named, e.named) && op.Everyone == e.everyone {
		return false, nil
	}
	s.rename(e, named, op.Everyone)
	if ts, twin := e.twinOf(); twin != nil {
		ts.rename(twin, named, op.Everyone)
	}
	return true, nil
}

// rename replaces the names of a live entry. Those whom it newly names follow first.
func (s *scope) rename(e *entry, named []member, everyone bool) {
	before := *e
	after := before
	after.named, after.everyone = named, everyone
	if e.revision == 0 {
		*e = after
		return
	}
	s.followEdit(e, named)
	*e = after
	if everyone != before.everyone {
		block := s.everyone.block(e.revision)
		change := block.Clear
		if everyone {
			change = block.Set
		}
		if !change(e.revision) {
			s.machine.fail("%s: everyone at %d was %t already", s.id, e.revision, everyone)
		}
	}
	touched := append(before.touched(), after.touched()...)
	slices.Sort(touched)
	for _, m := range slices.Compact(touched) {
		if r := s.rows[m]; r != nil {
			r.Point.Edit(s.kind, s.floor, before.message(), after.message(),
				before.role(m), after.role(m))
		}
	}
	s.pairEdit(&before, &after)
}

func (w *machine) remove(op model.Op) (bool, error) {
	s := w.scopes[op.Scope]
	e := s.retained(readstate.Seq(op.Seq))
	if !e.live {
		return false, nil
	}
	s.drop(e)
	s.settle()
	return true, nil
}

// drop makes a live entry, with its twin, a tombstone.
func (s *scope) drop(e *entry) {
	ts, twin := e.twinOf()
	s.bury(e)
	if twin != nil {
		ts.bury(twin)
	}
}

func (s *scope) bury(e *entry) {
	for _, t := range s.machine.scopes {
		if t.parent == s && t.root == e.seq {
			t.archived = true
		}
	}
	e.live = false
	if e.revision == 0 {
		return
	}
	s.removed.block(e.revision).Set(e.revision)
	if e.everyone {
		s.everyone.block(e.revision).Clear(e.revision)
	}
	for _, m := range e.touched() {
		if r := s.rows[m]; r != nil {
			r.Point.Remove(s.kind, s.floor, e.message(), e.role(m))
		}
	}
	s.pairRemove(e)
}

func (w *machine) rewind(op model.Op) (bool, error) {
	s := w.scopes[op.Scope]
	changed := false
	for _, e := range slices.Backward(s.entries) {
		if e.seq > readstate.Seq(op.Seq) && e.live {
			s.drop(e)
			changed = true
		}
	}
	if changed {
		s.settle()
	}
	return changed, nil
}

// trim takes the entries through a seq out of the log. Whoever they concern is moved first; the
// others need nothing.
func (w *machine) trim(op model.Op) (bool, error) {
	s := w.scopes[op.Scope]
	n, floor := 0, s.floor
	concerned := map[member]bool{}
	for n < len(s.entries) && s.entries[n].seq <= readstate.Seq(op.Seq) {
		e := s.entries[n]
		n++
		if e.revision == 0 {
			continue
		}
		floor = e.revision
		for _, m := range e.touched() {
			concerned[m] = true
		}
	}
	if n == 0 {
		return false, nil
	}
	for m := range concerned {
		if r := s.rows[m]; r != nil {
			s.moveTo(m, max(r.Point.E, floor))
		}
	}
	for m, writer := range s.writers {
		if concerned[m] {
			at := s.ranks(m, floor)
			writer.AuthorAtFloor, writer.PrincipalAtFloor = at.Author, at.Principal
		}
	}
	s.floor = floor
	s.entries = s.entries[n:]
	s.pairTrim()
	s.settle()
	return true, nil
}

func (w *machine) expire(op model.Op) (bool, error) {
	w.now += milliseconds(op.Advance)
	if op.Kind == model.OpAdvanceClock {
		return false, nil
	}
	changed := false
	for _, s := range w.scopes {
		swept := false
		for _, e := range s.entries {
			if e.live && e.expires != 0 && milliseconds(e.expires) <= w.now {
				s.drop(e)
				swept = true
			}
		}
		if swept {
			s.settle()
		}
		changed = changed || swept
	}
	return changed, nil
}

// move removes entries here and appends them there.
func (w *machine) move(op model.Op) (bool, error) {
	from, to := w.scopes[op.Scope], w.scopes[op.To]
	for _, q := range op.Seqs {
		e := from.retained(readstate.Seq(q))
		draft := entry{
			author: e.author, principal: e.principal,
			expires: e.expires, recipients: keys(op.Recipients),
		}
		readable := op.Count && e.revision > 0
		if readable {
			draft.named, draft.everyone = e.named, e.everyone
		}
		from.drop(e)
		e.moved = true
		if e.twin != nil {
			if twin := e.twin.retained(e.twinSeq); twin != nil {
				twin.moved = true
			}
		}
		to.append(draft, readable)
	}
	return true, nil
}

func rev(r model.Revision) readstate.Revision { return readstate.Revision(r) }

func milliseconds(s model.Seconds) int64 { return int64(s) * 1000 }

// keys returns the members as a sorted set.
func keys(ids []model.MemberID) []member {
	var out []member
	for _, m := range ids {
		out = append(out, member(m))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
