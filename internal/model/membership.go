package model

// join makes a member joined, in a new epoch unless shared history keeps the old.
func (w *World) join(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	if s.kind == Thread || s.kind == Session || op.Member < 1 || op.From < 0 || op.Revision < 0 {
		return Outcome{}, ErrInvalid
	}
	head := s.head()
	if op.From > head+1 || op.Revision > head {
		return Outcome{}, ErrFuture
	}
	before, existed := w.Row(op.Member, s.id)
	switch r := s.rows[op.Member]; {
	case r == nil || !r.joined && !s.shared:
		start := head + 1
		if op.From > 0 {
			start = op.From
		}
		w.startEpoch(s, op.Member, start)
	case !r.joined:
		r.joined = true
		if op.From > 0 {
			r.startAt(op.From)
		}
	case op.From > 0 && op.From != r.effective:
		r.startAt(op.From)
	}
	r := s.rows[op.Member]
	r.read = max(r.read, op.Revision)
	after, _ := w.Row(op.Member, s.id)
	return Outcome{Changed: !existed || before != after}, nil
}

// startAt makes a revision the first that may count, even if it had been read.
func (r *row) startAt(first Revision) {
	r.effective = first
	r.read = min(r.read, first-1)
}

// startEpoch begins a new membership at a revision; what was recorded of the old
// one is gone, except choices that the member or a service made.
func (w *World) startEpoch(s *scope, m MemberID, first Revision) {
	r := s.rows[m]
	if r == nil {
		r = &row{visible: true}
		s.rows[m] = r
	}
	r.joined = true
	r.epoch++
	if s.kind == Thread {
		r.parentEpoch = w.scopes[s.parent].rows[m].epoch
	}
	r.startAt(first)
	r.clearManual()
	r.activityRead = s.latestActivity()
}

func (w *World) membership(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	if op.Kind == OpLeave && (s.kind == Thread || s.kind == Session) {
		return Outcome{}, ErrInvalid
	}
	r := s.rows[op.Member]
	if r == nil {
		return Outcome{}, ErrNotFound
	}
	before := *r
	switch op.Kind {
	case OpLeave:
		r.joined = false
	case OpShow:
		r.visible = true
	case OpHide:
		r.visible = false
	}
	return Outcome{Changed: *r != before}, nil
}

// inReach reports whether the row is joined and, in a thread, of the parent row's
// present epoch. Visibility is not looked at.
func (w *World) inReach(s *scope, m MemberID) bool {
	r := s.rows[m]
	if r == nil || !r.joined {
		return false
	}
	if s.kind != Thread {
		return true
	}
	p := w.scopes[s.parent].rows[m]
	return p != nil && p.joined && p.epoch == r.parentEpoch
}

// present reports whether the member sees the row.
func (w *World) present(s *scope, m MemberID) bool {
	if !w.inReach(s, m) || !s.rows[m].visible {
		return false
	}
	return s.kind != Thread || w.scopes[s.parent].rows[m].visible
}

// reachable returns the row that an operation on read state works on.
func (w *World) reachable(op Op) (*scope, *row, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return nil, nil, err
	}
	if ok := w.present(s, op.Member) || op.Service && w.inReach(s, op.Member); !ok {
		return nil, nil, ErrNotFound
	}
	return s, s.rows[op.Member], nil
}

// autoFollow makes a member follow a thread from a revision, unless it does, chose
// not to, or is not in the parent.
func (w *World) autoFollow(s *scope, m MemberID, first Revision) {
	p := w.scopes[s.parent].rows[m]
	if p == nil || !p.joined {
		return
	}
	r := s.rows[m]
	if r != nil && (r.follow == Unfollowed || r.parentEpoch == p.epoch) {
		return
	}
	w.startEpoch(s, m, first)
	if r = s.rows[m]; r.follow == NotFollowing {
		r.follow = Automatic
	}
}

// follow records an explicit choice for or against a thread.
func (w *World) follow(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	if s.planned {
		return w.watch(s, op)
	}
	if s.kind != Thread {
		return Outcome{}, ErrInvalid
	}
	if !w.inReach(w.scopes[s.parent], op.Member) {
		return Outcome{}, ErrNotFound
	}
	before, existed := w.Row(op.Member, s.id)
	if !w.inReach(s, op.Member) {
		w.startEpoch(s, op.Member, s.head()+1)
	}
	r := s.rows[op.Member]
	r.follow, r.level, r.until = Explicit, All, 0
	if op.Kind == OpUnfollow {
		r.follow, r.level = Unfollowed, Mentions
	}
	after, _ := w.Row(op.Member, s.id)
	return Outcome{Changed: !existed || before != after}, nil
}

func (w *World) setLevel(op Op) (Outcome, error) {
	if op.Level > None || op.Until < 0 || (op.Level == Inherit && op.Until != 0) {
		return Outcome{}, ErrInvalid
	}
	_, r, err := w.reachable(op)
	if err != nil {
		return Outcome{}, err
	}
	before := *r
	r.level, r.until = op.Level, op.Until
	return Outcome{Changed: *r != before}, nil
}
