package model

func (w *World) read(op Op) (Outcome, error) {
	if op.Revision < 0 || op.Version < NoVersion {
		return Outcome{}, ErrInvalid
	}
	if op.Version == NoVersion && !op.Service {
		return Outcome{}, ErrInvalid
	}
	s, r, err := w.reachable(op)
	if err != nil {
		return Outcome{}, err
	}
	if op.Revision > s.head() {
		return Outcome{}, ErrFuture
	}
	before := *r
	r.read = max(r.read, op.Revision)
	r.activityRead = max(r.activityRead, s.seenWith(op.Revision))
	mayClear := op.Version == r.version || op.Version == NoVersion
	if mayClear && (r.manualFrom == 0 || op.Revision >= r.manualFrom) {
		r.clearManual()
	}
	if *r == before {
		return Outcome{}, nil
	}
	w.settle(s)
	return Outcome{Changed: true}, nil
}

func (r *row) clearManual() {
	if r.manual {
		r.manual, r.manualFrom = false, 0
		r.version++
	}
}

// readAll is one read per item; a refused item keeps none of the others back.
func (w *World) readAll(op Op) (Outcome, error) {
	if op.Member < 1 {
		return Outcome{}, ErrInvalid
	}
	out := Outcome{Items: make([]ReadResult, len(op.Items))}
	for i, it := range op.Items {
		one, err := w.read(Op{
			Kind: OpRead, Scope: it.Scope, Member: op.Member,
			Revision: it.Revision, Version: it.Version, Service: op.Service,
		})
		out.Items[i] = ReadResult{Changed: one.Changed, Err: err}
		out.Changed = out.Changed || one.Changed
	}
	return out, nil
}

func (w *World) markUnread(op Op) (Outcome, error) {
	if op.From < 0 || op.Version < NoVersion || (op.Version == NoVersion && !op.Service) {
		return Outcome{}, ErrInvalid
	}
	s, r, err := w.reachable(op)
	if err != nil {
		return Outcome{}, err
	}
	switch {
	case op.From > s.head():
		return Outcome{}, ErrFuture
	case op.Version != r.version && op.Version != NoVersion:
		return Outcome{}, ErrConflict
	case r.manual && r.manualFrom == op.From:
		return Outcome{}, nil
	}
	r.manual, r.manualFrom = true, op.From
	r.version++
	w.settle(s)
	return Outcome{Changed: true}, nil
}

func (w *World) readActivity(op Op) (Outcome, error) {
	if op.Activity < 0 {
		return Outcome{}, ErrInvalid
	}
	s, r, err := w.reachable(op)
	if err != nil {
		return Outcome{}, err
	}
	if op.Activity > s.latestActivity() {
		return Outcome{}, ErrFuture
	}
	changed := op.Activity > r.activityRead
	r.activityRead = max(r.activityRead, op.Activity)
	return Outcome{Changed: changed}, nil
}
