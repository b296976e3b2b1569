package unread

import (
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// standing is what a row is filtered by when it is read.
type standing struct {
	own      readstate.Standing
	parent   readstate.Standing // of a thread
	visible  bool               // the member has joined and sees the scope, and a thread's channel
	archived bool               // the scope or its parent
	counts   bool
}

// value is a row evaluated.
type value struct {
	standing  standing
	values    readstate.Values
	presented readstate.Presented
	serving   readstate.Serving // values are left out where it is not servable
}

func (st *state) standing(e int32, now int64) standing {
	f := st.rows.load(e)
	return st.standingOf(e, &f, now)
}

func (st *state) standingOf(e int32, f *full, now int64) standing {
	sc := st.scopes.At(st.rows.scope(e))
	var s standing
	s.own = readstate.Standing{
		Joined: f.row.Joined, Visible: f.row.Visible, Archived: sc.archived,
		Manual: f.row.Manual.Set, Busy: sc.kind == readstate.Session && sc.busy(),
	}
	s.archived = sc.archived
	s.visible = f.row.Joined && f.row.Visible
	var parent *readstate.Standing
	var level *readstate.Notification
	same := true
	if sc.kind == readstate.Thread {
		parent = &s.parent
		same = false
		if p := st.parentOf(e); p != none {
			pf := st.rows.load(p)
			s.parent = readstate.Standing{
				Joined: pf.row.Joined, Visible: pf.row.Visible,
				Archived: st.scopes.At(sc.parent).archived,
			}
			same = f.row.ParentEpoch == pf.row.Epoch
			level = &pf.row.Notification
		}
		s.archived = s.archived || s.parent.Archived
		s.visible = s.visible && same && s.parent.Joined && s.parent.Visible
	}
	s.own.Level = readstate.LevelAt(now, f.row.Notification, level)
	s.counts = s.own.Counts(parent, same)
	return s
}

// terms gathers the ranks that the formulas need.
func (st *state) terms(e int32, f *full) (readstate.Terms, error) {
	sc := st.scopes.At(st.rows.scope(e))
	base := f.row.Point.Base(sc.floor)
	t := readstate.Terms{
		Type: sc.kind, Head: sc.head, Floor: sc.floor, SignalHead: sc.signalHead,
		Point: f.row.Point, Activity: f.row.Activity, Writer: f.writer,
	}
	var err error
	if t.Removed, err = st.sets.above(&sc.removed, base); err != nil {
		return t, fmt.Errorf("removed set: %w", err)
	}
	if t.Everyone, err = st.sets.above(&sc.everyone, base); err != nil {
		return t, fmt.Errorf("everyone set: %w", err)
	}
	t.Blocked = st.blockedTerms(e, base)
	return t, nil
}

// evaluate computes a row's values, by the short formula where that is enough.
func (st *state) evaluate(e int32, now int64) (value, error) {
	if g, ok := st.glance(st.rows.hot.At(e), st.rows.scope(e)); ok {
		return g.value(), nil
	}
	return st.evaluateWhole(e, now)
}

// evaluateWhole computes them from everything that may matter.
func (st *state) evaluateWhole(e int32, now int64) (value, error) {
	f := st.rows.load(e)
	v := value{standing: st.standingOf(e, &f, now), serving: st.serving(e, &f)}
	if !v.serving.Servable() {
		return v, nil
	}
	t, err := st.terms(e, &f)
	if err == nil {
		v.values, err = t.Values()
	}
	if errors.Is(err, readstate.ErrNegative) && v.serving == readstate.Hint {
		v.values, v.serving = readstate.Values{}, readstate.Behind
		return v, nil // what a hint lacks may be what an event took back
	}
	if err != nil {
		return v, st.broken(e, err)
	}
	v.presented = v.standing.own.Present(v.standing.counts, v.values)
	return v, nil
}

// broken names the row whose numbers contradict each other.
func (st *state) broken(e int32, err error) error {
	key := st.scopes.At(st.rows.scope(e)).key
	who := st.members.At(st.rows.member(e)).key
	if !errors.Is(err, ErrInvariant) {
		err = fmt.Errorf("%w: %w", ErrInvariant, err)
	}
	return fmt.Errorf("scope %d, member %d, lsn %d: %w", key, who, st.lsn, err)
}

// visible reports that the member may see the row.
func (st *state) visible(e int32) bool {
	return st.standing(e, st.now).visible
}

// fold sums the member's candidates and what pending batches have of the member's rows. It
// changes nothing, and notes when there is something to tidy: clean candidates, or rows of
// batches. Where the end of a level has passed, memory has to change first: errOverdue.
func (st *state) fold(m int32, now int64) (badge readstate.Badge, err error) {
	mb := st.members.At(m)
	if mb.overdue(now) {
		return badge, errOverdue
	}
	candidates, clean := candidatesOf(m), true
	for e := range st.considered(m) {
		st.checks.add(m, 1)
		v, err := st.evaluate(e, now)
		if err != nil {
			return badge, err
		}
		clean = clean && v.presented.Shown && st.listOf(e) == candidates
		badge.Add(v.presented)
	}
	mb.set(untidy, !clean)
	return badge, nil
}

// dot reports that some row of the member is shown, as fold would find out, and stops at the
// first.
func (st *state) dot(m int32, now int64) (bool, error) {
	if st.members.At(m).overdue(now) {
		return false, errOverdue
	}
	for e := range st.considered(m) {
		if hit, err := st.shown(m, e, now); hit || err != nil {
			return hit, err
		}
	}
	return false, nil
}

func (st *state) shown(m, e int32, now int64) (bool, error) {
	st.checks.add(m, 1)
	v, err := st.evaluate(e, now)
	return err == nil && v.presented.Shown, err
}

// row is the public form of an evaluated row.
func (st *state) row(e int32, now int64) (Row, error) {
	v, err := st.evaluate(e, now)
	if err != nil {
		return Row{State: Unavailable}, err
	}
	return st.present(e, &v), nil
}

func (st *state) present(e int32, v *value) Row {
	s := st.rows.scope(e)
	return Row{
		Scope: st.info(s), Ranks: st.ranks(s), Row: st.rows.load(e).row,
		Level: v.standing.own.Level, Archived: v.standing.archived,
		Values: v.values, Presented: v.presented,
		State: stateFor(v.serving), LSN: st.lsn,
	}
}
