package unread

import (
	"sync"

	"github.com/tidemark-im/tidemark/readstate"
)

// running is the badge of a connected member with what each scope adds to it, so that a frame
// costs the scopes that changed since the last one and not all that are unread. It is brought up
// to date when it is asked for.
type running struct {
	mu      sync.Mutex // readers share the workspace; innermost, as a watch's
	known   bool       // badge and shown are those of before the changes
	badge   readstate.Badge
	shown   map[int32]readstate.Presented // by scope
	changed []int32                       // scopes, newest last; written under the exclusive lock
}

// maxChanged is beyond how many changes all of the member's candidates are added up again.
const maxChanged = 256

// change notes that what the row adds may have changed.
func (a *running) change(s int32) {
	if n := len(a.changed); !a.known || n > 0 && a.changed[n-1] == s {
		return
	}
	if len(a.changed) == maxChanged {
		a.forget()
		return
	}
	a.changed = append(a.changed, s)
}

// forget is for changes that do not say which rows they concern.
func (a *running) forget() { a.known, a.changed = false, a.changed[:0] }

// sum is the member's badge, by the running one where there is one. It answers errOverdue as
// fold does.
func (st *state) sum(m int32, now int64) (readstate.Badge, error) {
	c := st.connected[m]
	if c == nil || len(st.marks) > 0 { // with marks pending some changes are not noted yet
		return st.fold(m, now)
	}
	if st.members.At(m).overdue(now) {
		return readstate.Badge{}, errOverdue
	}
	c.sum.mu.Lock()
	defer c.sum.mu.Unlock()
	var err error
	if c.sum.known {
		err = st.correct(m, &c.sum, now)
	} else {
		err = st.begin(m, &c.sum, now)
	}
	return c.sum.badge, err
}

// begin adds everything up.
func (st *state) begin(m int32, a *running, now int64) error {
	a.badge, a.shown = readstate.Badge{}, map[int32]readstate.Presented{}
	candidates, clean := candidatesOf(m), true
	for e := range st.considered(m) {
		if err := st.replace(e, st.rows.scope(e), a, now); err != nil {
			return err
		}
		clean = clean && st.listOf(e) == candidates && a.shown[st.rows.scope(e)].Shown
	}
	a.known, a.changed = true, a.changed[:0]
	st.members.At(m).set(untidy, !clean)
	return nil
}

// correct replaces what the changed scopes add.
func (st *state) correct(m int32, a *running, now int64) error {
	for len(a.changed) > 0 {
		s := a.changed[len(a.changed)-1]
		if err := st.replace(st.entryOf(m, s), s, a, now); err != nil {
			return err
		}
		a.changed = a.changed[:len(a.changed)-1]
	}
	return nil
}

// replace puts what a row adds now in the place of what its scope added before.
func (st *state) replace(e, s int32, a *running, now int64) error {
	var next readstate.Presented
	if e != none {
		st.checks.add(st.rows.member(e), 1)
		v, err := st.evaluate(e, now)
		if err != nil {
			return err
		}
		next = v.presented
	}
	a.badge.Remove(a.shown[s])
	a.badge.Add(next)
	if next.Shown {
		a.shown[s] = next
	} else {
		delete(a.shown, s)
	}
	return nil
}
