package frontier

// Register is a manual mark that clients synchronise: how often the context was marked unread, how
// often that was cleared, and up to where it had been read by then. Each part only grows. The zero
// value is a context that was never marked.
type Register struct {
	Set, Clear uint32
	Baseline   Time
}

const maxCount = 1<<32 - 1

// join takes the greater of each part.
func (r Register) join(o Register) Register {
	return Register{Set: max(r.Set, o.Set), Clear: max(r.Clear, o.Clear), Baseline: max(r.Baseline, o.Baseline)}
}

// Active tells whether the context is marked unread, given the frontier in force (zero when it is
// unknown). As many clears as marks are a clear; reading beyond the baseline ends the mark.
func (r Register) Active(f Time) bool {
	return r.Set > 0 && r.Set > r.Clear && f <= r.Baseline
}

// MarkUnread marks the context at the frontier in force. ErrExhausted says that it was marked as often
// as can be counted.
func (r Register) MarkUnread(f Time) (Register, error) {
	n := max(r.Set, r.Clear)
	if n == maxCount {
		return r, ErrExhausted
	}
	return Register{Set: n + 1, Clear: r.Clear, Baseline: max(r.Baseline, f)}, nil
}

// MarkRead clears the mark after the frontier was raised to f. A context that was never marked has
// nothing to clear. ErrExhausted says that the mark can be neither cleared nor ended by the frontier.
func (r Register) MarkRead(f Time) (Register, error) {
	if r == (Register{}) {
		return r, nil
	}
	n := max(r.Set, r.Clear)
	if n == maxCount {
		if r.Active(f) {
			return r, ErrExhausted
		}
		return r, nil
	}
	r.Clear = n + 1
	return r, nil
}

// canonical is the form in which a register may be published: one that is not active leaves its floor
// only, since two dead registers could otherwise join into a live one.
func (r Register) canonical(f Time) Register {
	if r.Active(f) {
		return r
	}
	return Register{Clear: max(r.Set, r.Clear)}
}

// Canonical returns the state with every register in the form in which it may be published. Floors
// are kept for ever: without them an old copy of a mark would come back to life. Homes says where
// contexts belong.
func (s State) Canonical(homes func(Key) Home) State {
	c := s.Clone()
	for k, r := range s.Overrides {
		f, _ := s.Effective(k, homes(k))
		if r = r.canonical(f); r == (Register{}) {
			delete(c.Overrides, k)
		} else {
			c.Overrides[k] = r
		}
	}
	return c
}
