package model

import "slices"

// plan finds who has to know of something in a planned task: those who watch it, whoever it is
// assigned to, and those for whom the thing itself is a ground, as far as they see the task now.
// Those whose act it is are not among them.
func (w *World) plan(s *scope, grounds []MemberID, except ...MemberID) []MemberID {
	who := append([]MemberID{s.assignee}, grounds...)
	for m, r := range s.rows {
		if r.follow == Explicit {
			who = append(who, m)
		}
	}
	return slices.DeleteFunc(set(who), func(m MemberID) bool {
		return slices.Contains(except, m) || !w.present(s, m)
	})
}

// deliver plans the recipients of a new readable entry of a planned task, and appends the
// activity that goes with it and never counts.
func (w *World) deliver(s *scope, e *entry) {
	e.recipients = w.plan(s, e.mentions, e.author, e.principal)
	s.activities = append(s.activities, &activity{
		seq: s.latestActivity() + 1, actor: e.author, low: true, revision: e.revision,
	})
}

// task changes the facts of a planned task. Each change is an activity of its own.
func (w *World) task(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	if !s.planned || op.Member < 1 || op.Other < 0 || op.Status < 0 || op.Title < 0 {
		return Outcome{}, ErrInvalid
	}
	assigned := op.Assigns && op.Other != s.assignee
	if assigned && op.Other != 0 && !w.present(s, op.Other) {
		return Outcome{}, ErrForbidden
	}
	out := Outcome{}
	happen := func(low bool) {
		a := &activity{seq: s.latestActivity() + 1, actor: op.Member, low: low}
		if !low {
			a.recipients = w.plan(s, nil, op.Member)
		}
		s.activities = append(s.activities, a)
		out.Changed, out.Activity, out.Changes = true, a.seq, out.Changes+1
	}
	if assigned {
		s.assignee = op.Other
		happen(false)
	}
	if op.Status != 0 && op.Status != s.status {
		s.status = op.Status
		happen(false)
	}
	if op.Title != 0 && op.Title != s.title {
		s.title = op.Title
		happen(true)
	}
	return out, nil
}

// seenWith returns the newest activity that somebody has seen who has read a planned task through
// a revision.
func (s *scope) seenWith(through Revision) ActivitySeq {
	for _, a := range slices.Backward(s.activities) {
		if a.revision > 0 && a.revision <= through {
			return a.seq
		}
	}
	return 0
}

// watch records a choice for or against being told of everything in a planned task.
func (w *World) watch(s *scope, op Op) (Outcome, error) {
	r := s.rows[op.Member]
	if r == nil || (!r.joined && op.Kind == OpFollow) {
		return Outcome{}, ErrNotFound
	}
	before := r.follow
	r.follow = Explicit
	if op.Kind == OpUnfollow {
		r.follow = Unfollowed
	}
	return Outcome{Changed: r.follow != before}, nil
}
