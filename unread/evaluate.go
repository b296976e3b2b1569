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
}

func (st *state) standing(e int32, now int64) standing {
	en := st.entries.at(e)
	sc := st.scopes.at(en.scope)
	var s standing
	s.own = readstate.Standing{
		Joined: en.row.Joined, Visible: en.row.Visible, Archived: sc.info.Archived,
		Manual: en.row.Manual.Set,
		Busy:   sc.info.Type == readstate.Session && sc.info.Active && sc.info.Thinking,
	}
	s.archived = sc.info.Archived
	s.visible = en.row.Joined && en.row.Visible
	var parent *readstate.Standing
	var level *readstate.Notification
	same := true
	if sc.info.Type == readstate.Thread {
		parent = &s.parent
		same = false
		if p := st.parentOf(e); p != none {
			pe := st.entries.at(p)
			s.parent = readstate.Standing{
				Joined: pe.row.Joined, Visible: pe.row.Visible,
				Archived: st.scopes.at(pe.scope).info.Archived,
			}
			same = en.row.ParentEpoch == pe.row.Epoch
			level = &pe.row.Notification
		}
		s.archived = s.archived || s.parent.Archived
		s.visible = s.visible && same && s.parent.Joined && s.parent.Visible
	}
	s.own.Level = readstate.LevelAt(now, en.row.Notification, level)
	s.counts = s.own.Counts(parent, same)
	return s
}

// terms gathers the ranks that the formulas need.
func (st *state) terms(e int32) (readstate.Terms, error) {
	en := st.entries.at(e)
	sc := st.scopes.at(en.scope)
	base := en.row.Point.Base(sc.ranks.Floor)
	t := readstate.Terms{
		Type: sc.info.Type, Head: sc.ranks.Head, Floor: sc.ranks.Floor,
		SignalHead: sc.ranks.SignalHead,
		Point:      en.row.Point, Activity: en.row.Activity, Writer: en.writer,
	}
	var err error
	if t.Removed, err = sc.removed.above(base); err != nil {
		return t, fmt.Errorf("removed set: %w", err)
	}
	if t.Everyone, err = sc.everyone.above(base); err != nil {
		return t, fmt.Errorf("everyone set: %w", err)
	}
	t.Blocked = st.blockedTerms(e, base)
	return t, nil
}

func (st *state) evaluate(e int32, now int64) (value, error) {
	v := value{standing: st.standing(e, now)}
	t, err := st.terms(e)
	if err == nil {
		v.values, err = t.Values()
	}
	if err != nil {
		return v, st.broken(e, err)
	}
	v.presented = v.standing.own.Present(v.standing.counts, v.values)
	return v, nil
}

// broken names the row whose numbers contradict each other.
func (st *state) broken(e int32, err error) error {
	en := st.entries.at(e)
	key := st.scopes.at(en.scope).info.Key
	who := st.members.at(en.member).info.Key
	if !errors.Is(err, ErrInvariant) {
		err = fmt.Errorf("%w: %w", ErrInvariant, err)
	}
	return fmt.Errorf("scope %d, member %d, lsn %d: %w", key, who, st.lsn, err)
}

// visible reports that the member may see the row.
func (st *state) visible(e int32) bool {
	return st.standing(e, st.now).visible
}

// fold sums the member's candidates. Clean says that every one of them is unread and that no
// pending work was seen: nothing is left to tidy. The sum itself is right only then, or after
// settle.
func (st *state) fold(m int32, now int64) (badge readstate.Badge, clean bool, err error) {
	mb := st.members.at(m)
	clean = !st.awaits(m) && (mb.nextUntil == 0 || now < mb.nextUntil)
	for e := st.lists.at(mb.candidate).head; e != none; e = st.entries.at(e).next {
		st.checks.Add(1)
		v, err := st.evaluate(e, now)
		if err != nil {
			return badge, false, err
		}
		clean = clean && v.presented.Shown
		badge.Add(v.presented)
	}
	return badge, clean, nil
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
	en := st.entries.at(e)
	sc := st.scopes.at(en.scope)
	return Row{
		Scope: sc.info, Ranks: sc.ranks, Row: en.row,
		Level: v.standing.own.Level, Archived: v.standing.archived,
		Values: v.values, Presented: v.presented,
		State: Ready, LSN: st.lsn,
	}
}
