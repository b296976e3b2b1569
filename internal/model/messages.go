package model

import "slices"

// post appends an entry, and for a broadcast reply its twin in the parent.
func (w *World) post(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	if err := checkPost(s, op); err != nil {
		return Outcome{}, err
	}
	if op.Revision > s.head() {
		return Outcome{}, ErrFuture
	}
	w.posted++
	draft := entry{
		message: w.posted, author: op.Member, principal: op.Other,
		mentions: set(op.Mentions), everyone: op.Everyone,
		expires: op.Expires, recipients: set(op.Recipients),
	}
	if draft.principal == draft.author {
		draft.principal = 0
	}
	readable := !op.Unreadable && !op.Baseline
	e := w.append(s, draft, readable)
	out := Outcome{Changed: true, Seq: e.seq, Revision: e.revision}
	if op.Broadcast {
		parent := w.scopes[s.parent]
		twin := w.append(parent, draft, readable)
		e.twinScope, e.twinSeq = parent.id, twin.seq
		twin.twinScope, twin.twinSeq = s.id, e.seq
		out.CopySeq, out.CopyRevision = twin.seq, twin.revision
	}
	if r := s.rows[op.Member]; op.Revision > 0 && r != nil && w.inReach(s, op.Member) {
		r.read = max(r.read, op.Revision)
		r.activityRead = max(r.activityRead, s.seenWith(op.Revision))
		w.settle(s)
	}
	return out, nil
}

func checkPost(s *scope, op Op) error {
	switch {
	case op.Member < 1, op.Other < 0, badIDs(op.Mentions), badIDs(op.Recipients):
		return ErrInvalid
	case op.Everyone && s.kind == Task:
		return ErrInvalid
	case op.Broadcast && s.kind != Thread:
		return ErrInvalid
	case len(op.Recipients) > 0 && !s.addressed():
		return ErrInvalid
	case op.Expires < 0, op.Revision < 0:
		return ErrInvalid
	}
	return nil
}

// append puts a copy of the draft at the end of the log; a readable one gets the
// next revision and makes people follow a thread.
func (w *World) append(s *scope, draft entry, readable bool) *entry {
	e := draft
	e.seq = s.latestSeq() + 1
	e.live = true
	e.revision = 0
	if readable {
		e.revision = s.head() + 1
	}
	s.entries = append(s.entries, &e)
	if readable && s.planned {
		w.deliver(s, &e)
	}
	if readable && s.kind == Thread {
		if root := w.scopes[s.parent].entry(s.root); root != nil && !root.moved {
			w.autoFollow(s, root.author, e.revision)
		}
		w.autoFollow(s, e.author, e.revision)
		for _, m := range e.mentions {
			w.autoFollow(s, m, e.revision)
		}
	}
	return &e
}

// edit replaces the names of an entry and of its twin.
func (w *World) edit(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	e := s.entry(op.Seq)
	if e == nil || !e.live {
		return Outcome{}, ErrNotFound
	}
	if badIDs(op.Mentions) || (op.Everyone && s.kind == Task) {
		return Outcome{}, ErrInvalid
	}
	names := set(op.Mentions)
	if slices.Equal(names, e.mentions) && op.Everyone == e.everyone {
		return Outcome{}, nil
	}
	w.rename(s, e, names, op.Everyone)
	if ts, twin := w.twin(e); twin != nil {
		w.rename(ts, twin, names, op.Everyone)
	}
	return Outcome{Changed: true}, nil
}

func (w *World) rename(s *scope, e *entry, names []MemberID, everyone bool) {
	before := e.mentions
	e.mentions, e.everyone = names, everyone
	if s.kind != Thread || e.revision == 0 {
		return
	}
	for _, m := range names {
		if !slices.Contains(before, m) {
			w.autoFollow(s, m, e.revision)
		}
	}
}

// twin returns the other entry of a broadcast reply while it is live and retained.
func (w *World) twin(e *entry) (*scope, *entry) {
	if e.twinScope == 0 {
		return nil, nil
	}
	s := w.scopes[e.twinScope]
	twin := s.entry(e.twinSeq)
	if twin == nil || !twin.live {
		return nil, nil
	}
	return s, twin
}

func (w *World) remove(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	e := s.entry(op.Seq)
	if e == nil {
		return Outcome{}, ErrNotFound
	}
	if !e.live {
		return Outcome{}, nil
	}
	w.drop(s, e)
	w.settle(s)
	return Outcome{Changed: true}, nil
}

// drop makes a live entry, with its twin, a tombstone.
func (w *World) drop(s *scope, e *entry) {
	ts, twin := w.twin(e)
	w.bury(s, e)
	if twin != nil {
		w.bury(ts, twin)
	}
}

// bury also archives the threads that hang on the entry.
func (w *World) bury(s *scope, e *entry) {
	e.live = false
	for _, t := range w.scopes {
		if t.kind == Thread && t.parent == s.id && t.root == e.seq {
			t.archived = true
		}
	}
}

func (w *World) rewind(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	if op.Seq < 0 {
		return Outcome{}, ErrInvalid
	}
	changed := false
	for _, e := range slices.Backward(s.entries) {
		if e.seq > op.Seq && e.live && !e.trimmed {
			w.drop(s, e)
			changed = true
		}
	}
	if changed {
		w.settle(s)
	}
	return Outcome{Changed: changed}, nil
}

func (w *World) trim(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	if op.Seq < 0 {
		return Outcome{}, ErrInvalid
	}
	changed := false
	for _, e := range s.entries {
		if e.seq <= op.Seq && !e.trimmed {
			e.trimmed = true
			changed = true
		}
	}
	if changed {
		w.settle(s)
	}
	return Outcome{Changed: changed}, nil
}

// expire advances the clock and, unless it is only the clock, sweeps.
func (w *World) expire(op Op) (Outcome, error) {
	if op.Advance < 0 {
		return Outcome{}, ErrInvalid
	}
	w.clock += op.Advance
	if op.Kind == OpAdvanceClock {
		return Outcome{}, nil
	}
	changed := false
	for _, id := range w.ScopeIDs() {
		s := w.scopes[id]
		swept := false
		for _, e := range s.entries {
			if e.live && !e.trimmed && e.expires != 0 && e.expires <= w.clock {
				w.drop(s, e)
				swept = true
			}
		}
		if swept {
			w.settle(s)
		}
		changed = changed || swept
	}
	return Outcome{Changed: changed}, nil
}

// move removes entries here and appends them there.
func (w *World) move(op Op) (Outcome, error) {
	from, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	to, err := w.open(op.To)
	if err != nil {
		return Outcome{}, err
	}
	if err := checkMove(from, to, op); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Changed: true}
	for _, q := range set(op.Seqs) {
		e := from.entry(q)
		draft := entry{
			message: e.message, author: e.author, principal: e.principal,
			expires: e.expires, recipients: set(op.Recipients),
		}
		readable := op.Count && e.revision > 0
		if readable {
			draft.mentions, draft.everyone = e.mentions, e.everyone
		}
		w.drop(from, e)
		e.moved = true
		if e.twinScope != 0 {
			if twin := w.scopes[e.twinScope].entry(e.twinSeq); twin != nil {
				twin.moved = true
			}
		}
		n := w.append(to, draft, readable)
		out.Seq, out.Revision = n.seq, n.revision
	}
	return out, nil
}

func checkMove(from, to *scope, op Op) error {
	switch {
	case from == to, len(op.Seqs) == 0, badIDs(op.Recipients):
		return ErrInvalid
	case from.kind == Session, to.kind == Session:
		return ErrInvalid
	case !to.addressed() && len(op.Recipients) > 0:
		return ErrInvalid
	}
	for _, q := range op.Seqs {
		e := from.entry(q)
		if e == nil || !e.live {
			return ErrNotFound
		}
		for _, there := range to.entries {
			if there.message == e.message && there.live {
				return ErrMismatch // a broadcast reply moves to its own channel
			}
		}
		if to.kind == Task && op.Count && e.revision > 0 && e.everyone {
			return ErrInvalid
		}
	}
	return nil
}
