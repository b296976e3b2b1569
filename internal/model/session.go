package model

func (w *World) addSession(s *scope, owner MemberID) {
	s.kind, s.owner = Session, owner
	w.scopes[s.id] = s
	w.startEpoch(s, owner, 1)
}

// settle is the rule of sessions that clients compare revisions: where nothing is
// unread any more, the cursor stands at the head.
func (w *World) settle(s *scope) {
	if s.kind != Session || s.replacedBy != 0 {
		return
	}
	if w.Values(s.owner, s.id).Unread == 0 {
		r := s.rows[s.owner]
		r.read = max(r.read, s.head())
	}
}

func (w *World) runState(op Op) (Outcome, error) {
	s, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	if s.kind != Session {
		return Outcome{}, ErrInvalid
	}
	changed := s.active != op.Active || s.thinking != op.Thinking
	s.active, s.thinking = op.Active, op.Thinking
	return Outcome{Changed: changed}, nil
}

// merge appends a session to another of the same owner and retires it.
func (w *World) merge(op Op) (Outcome, error) {
	from, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	to, err := w.open(op.To)
	if err != nil {
		return Outcome{}, err
	}
	if from == to || from.kind != Session || to.kind != Session || from.owner != to.owner {
		return Outcome{}, ErrInvalid
	}
	source, target := from.rows[from.owner], to.rows[to.owner]
	first := to.head() + 1
	mark := first // where the source's X arrives
	for _, e := range from.entries {
		if e.trimmed {
			continue
		}
		n := *e
		n.seq = to.latestSeq() + 1
		n.revision = 0
		if e.revision > 0 && source.reaches(e) {
			n.revision = to.head() + 1
			if e.revision < source.manualFrom {
				mark = n.revision + 1
			}
		}
		to.entries = append(to.entries, &n)
	}
	if source.manual {
		target.manual = true
		if x := target.manualFrom; source.manualFrom > 0 && (x == 0 || mark < x) {
			target.manualFrom = mark
		}
	}
	target.version = max(target.version, source.version) + 1
	from.replacedBy = to.id
	from.rows = map[MemberID]*row{}
	w.settle(to)
	return Outcome{Changed: true, Seq: to.latestSeq(), Revision: to.head()}, nil
}

// fork copies what is live as history that nobody has to read.
func (w *World) fork(op Op) (Outcome, error) {
	from, err := w.open(op.Scope)
	if err != nil {
		return Outcome{}, err
	}
	switch {
	case from.kind != Session || op.To < 1:
		return Outcome{}, ErrInvalid
	case w.scopes[op.To] != nil:
		return Outcome{}, ErrMismatch
	}
	to := &scope{id: op.To, rows: map[MemberID]*row{}}
	w.addSession(to, from.owner)
	for _, e := range from.entries {
		if !e.live || e.trimmed {
			continue
		}
		n := *e
		n.seq = to.latestSeq() + 1
		n.revision = 0
		to.entries = append(to.entries, &n)
	}
	return Outcome{Changed: true, Seq: to.latestSeq()}, nil
}
