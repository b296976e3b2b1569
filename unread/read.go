package unread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// need says how much of a member a read wants loaded.
type need func(st *state, m int32) bool

func whole(st *state, m int32) bool { return st.members.At(m).is(complete) }

// view runs fn on the member's memory once it suffices, under the shared lock: fn must change
// nothing. A cold member is loaded, for which view waits up to HydrateWait or the context's end;
// after that it runs partial, where the member is loaded in part and the caller has one, or
// answers ErrNotServable.
func (r *Runtime) view(
	ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID,
	enough need, fn, partial func(st *state, m int32, now int64) error,
) error {
	ws, err := r.workspace(id)
	if err != nil {
		return err
	}
	var timer *time.Timer
	for {
		done, err := r.tryView(ws, member, enough, fn)
		if done {
			return err
		}
		j, changed, err := r.await(ws, member, enough)
		if err != nil {
			return err
		}
		if j == nil {
			continue
		}
		if timer == nil {
			timer = time.NewTimer(r.cfg.HydrateWait)
			defer timer.Stop()
		}
		select {
		case <-changed:
			if err := j.failure(); err != nil {
				return err
			}
			continue
		case <-timer.C:
		case <-ctx.Done():
		case <-r.ctx.Done():
			return fmt.Errorf("runtime closed: %w", ErrNotServable)
		}
		if partial != nil && ctx.Err() == nil {
			anything := func(st *state, m int32) bool { return st.members.At(m).n.Load() > 0 }
			if done, err := r.tryView(ws, member, anything, partial); done {
				return err
			}
		}
		r.metrics.suppressed.Add(1)
		return fmt.Errorf("member %s is being loaded: %w", member, ErrNotServable)
	}
}

// tryView runs fn if the member's memory suffices now.
func (r *Runtime) tryView(
	ws *workspace, member readstate.MemberID, enough need,
	fn func(st *state, m int32, now int64) error,
) (bool, error) {
	ws.mu.RLock()
	st := ws.st
	m := st.memberNamed(member)
	if m == none || ws.dropped || !enough(st, m) {
		ws.mu.RUnlock()
		return false, nil
	}
	mb := st.members.At(m)
	if mb.is(erased) {
		ws.mu.RUnlock()
		return true, fmt.Errorf("member %s: %w", member, ErrNoMember)
	}
	mb.use()
	untidy, err := func() (bool, error) {
		defer ws.mu.RUnlock() // whatever happens to a caller's function
		err := fn(st, m, max(st.now, r.now()))
		return mb.is(untidy), err
	}()
	if errors.Is(err, errOverdue) {
		return r.dueView(ws, member, enough, fn)
	}
	if untidy {
		r.tidy(ws, member)
	}
	if errors.Is(err, ErrInvariant) {
		r.lock(ws)
		if ws.st == st {
			r.alarm(ws)
		}
		r.unlock(ws)
	}
	return true, err
}

// tidy puts the member's clean candidates back to wait, so that later reads need not look at
// them. What a read says does not depend on it: when others have the workspace, it is left to a
// later read.
func (r *Runtime) tidy(ws *workspace, member readstate.MemberID) {
	if !r.tryLock(ws) {
		return
	}
	defer r.unlock(ws)
	m := ws.st.memberNamed(member)
	if m == none || ws.dropped {
		return
	}
	ws.st.members.At(m).set(untidy, false)
	if _, err := ws.st.total(m); err != nil {
		r.alarm(ws)
	}
}

// errOverdue is how a read under the shared lock says that memory has to change first, because
// the end of a level has passed.
var errOverdue = errors.New("the end of a level has passed")

// dueView looks at what has passed and runs fn.
func (r *Runtime) dueView(
	ws *workspace, member readstate.MemberID, enough need,
	fn func(st *state, m int32, now int64) error,
) (bool, error) {
	r.lock(ws)
	defer r.unlock(ws)
	st := ws.st
	m := st.memberNamed(member)
	if m == none || ws.dropped || !enough(st, m) {
		return false, nil
	}
	if st.members.At(m).is(erased) {
		return true, fmt.Errorf("member %s: %w", member, ErrNoMember)
	}
	_, err := st.total(m)
	if err == nil {
		err = fn(st, m, st.now)
	}
	if errors.Is(err, ErrInvariant) {
		r.alarm(ws)
	}
	return true, err
}

// await finds or makes the member's job and returns it with what closes at its next step; nil
// when the memory suffices after all.
func (r *Runtime) await(
	ws *workspace, member readstate.MemberID, enough need,
) (*job, <-chan struct{}, error) {
	r.lock(ws)
	defer r.unlock(ws)
	if ws.dropped {
		return nil, nil, fmt.Errorf("%w %q", ErrNoWorkspace, ws.id)
	}
	if m := ws.st.memberNamed(member); m != none && enough(ws.st, m) {
		return nil, nil, nil
	}
	j, err := r.wantMember(ws, member)
	if err != nil {
		r.metrics.suppressed.Add(1)
		return nil, nil, fmt.Errorf("%w: %w", ErrNotServable, err)
	}
	return j, j.changed, nil
}

// stateOf names the state of an answer that has no value.
func stateOf(err error) State {
	switch {
	case err == nil:
		return Ready
	case errors.Is(err, ErrBudget), errors.Is(err, ErrNoWorkspace), errors.Is(err, ErrCursor),
		errors.Is(err, ErrInvariant), errors.Is(err, ErrNoMember), errors.Is(err, ErrNoRow):
		return Unavailable
	}
	return Hydrating
}

// Row answers one scope for one member. ErrNoRow means that the member has no row there or may
// not see it. Only a servable State comes with values.
func (r *Runtime) Row(
	ctx context.Context, id readstate.WorkspaceID,
	member readstate.MemberID, scope readstate.ScopeID,
) (Row, error) {
	var row Row
	err := r.viewRow(ctx, id, member, scope, func(st *state, e int32, now int64) (err error) {
		if row, err = st.row(e, now); err == nil {
			err = withheld(row.State)
		}
		return err
	})
	if err != nil {
		if row.State == "" || row.State.Servable() {
			row.State = stateOf(err)
		} else {
			r.metrics.suppressed.Add(1)
		}
		return Row{State: row.State}, err
	}
	return row, nil
}

// viewRow runs fn on a row that the member may see.
func (r *Runtime) viewRow(
	ctx context.Context, id readstate.WorkspaceID,
	member readstate.MemberID, scope readstate.ScopeID,
	fn func(st *state, e int32, now int64) error,
) error {
	enough := func(st *state, m int32) bool {
		return whole(st, m) || st.entryOf(m, st.scopeNamed(scope)) != none
	}
	return r.view(ctx, id, member, enough, func(st *state, m int32, now int64) error {
		e := st.entryOf(m, st.scopeNamed(scope))
		if e == none || !st.standing(e, now).visible {
			return fmt.Errorf("scope %q of member %q: %w", scope, member, ErrNoRow)
		}
		return fn(st, e, now)
	}, nil)
}

// Summary answers a member's totals.
func (r *Runtime) Summary(
	ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID,
) (Summary, error) {
	var s Summary
	take := func(st *state, m int32, now int64) (err error) {
		s, err = st.peek(m, now)
		return err
	}
	if err := r.view(ctx, id, member, whole, take, take); err != nil {
		return Summary{State: stateOf(err)}, err
	}
	return s, nil
}

// peek is the member's summary, without a change of memory, or errOverdue.
func (st *state) peek(m int32, now int64) (Summary, error) {
	badge, err := st.sum(m, now)
	if err != nil {
		return Summary{}, err
	}
	return st.summarize(m, badge), nil
}

// summary is the same under the exclusive lock.
func (st *state) summary(m int32) (Summary, error) {
	badge, err := st.total(m)
	if err != nil {
		return Summary{}, err
	}
	return st.summarize(m, badge), nil
}

func (st *state) summarize(m int32, badge readstate.Badge) Summary {
	mb := st.members.At(m)
	return Summary{
		HasUnread: badge.Conversations > 0, Badge: badge, Display: mb.badge(),
		Complete: mb.is(complete), State: st.stateOfMember(m), LSN: st.lsn,
	}
}

// HasUnread is the dot of a workspace. It waits for nothing: a cold member is Hydrating, and is
// loaded from now on. True is final; false is only said with Ready. An erased member is
// Unavailable.
func (r *Runtime) HasUnread(id readstate.WorkspaceID, member readstate.MemberID) (bool, State) {
	ws, err := r.workspace(id)
	if err != nil {
		r.metrics.suppressed.Add(1)
		return false, Unavailable
	}
	var dot bool
	if !r.cfg.Hints && r.glimpse(ws, func(g *glimpse) (result outcome) {
		dot, result = g.hasUnread(member)
		return result
	}) {
		return dot, Ready
	}
	if !r.cfg.Hints && r.firstCandidate(ws, member) {
		return true, Ready
	}
	if !r.tryLock(ws) { // there may be something to tidy, which can wait
		if dot, state := r.dot(ws, member); state != "" {
			return dot, state
		}
		r.lock(ws)
	}
	defer r.unlock(ws)
	m := ws.st.memberNamed(member)
	if m != none {
		mb := ws.st.members.At(m)
		if mb.is(erased) {
			r.metrics.suppressed.Add(1)
			return false, Unavailable
		}
		mb.use()
		unread, err := ws.st.anyUnread(m)
		switch {
		case err != nil:
			r.alarm(ws)
			return false, Unavailable
		case unread:
			return true, ws.st.stateOfMember(m)
		case mb.is(complete):
			return false, ws.st.stateOfMember(m)
		}
	}
	r.metrics.suppressed.Add(1)
	if ws.dropped {
		return false, Unavailable
	}
	if _, err := r.wantMember(ws, member); err != nil {
		return false, Unavailable
	}
	return false, Hydrating
}

// firstCandidate answers under the shared lock when the member's first candidate is unread, as
// it is after every earlier hit that nobody read meanwhile.
func (r *Runtime) firstCandidate(ws *workspace, member readstate.MemberID) bool {
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	st := ws.st
	m := st.memberNamed(member)
	if m == none || st.members.At(m).is(erased) {
		return false
	}
	st.members.At(m).use()
	e := st.members.At(m).first
	if e == none {
		return false
	}
	hit, err := st.shown(m, e, max(st.now, r.now()))
	return hit && err == nil
}

// dot answers under the shared lock where memory suffices and need not change; the state is
// empty where it does not.
func (r *Runtime) dot(ws *workspace, member readstate.MemberID) (dot bool, state State) {
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	st := ws.st
	m := st.memberNamed(member)
	if m == none || ws.dropped || st.members.At(m).is(erased) {
		return false, ""
	}
	dot, err := st.dot(m, max(st.now, r.now()))
	if err != nil || !dot && !st.members.At(m).is(complete) {
		return false, ""
	}
	return dot, st.stateOfMember(m)
}

// Applied returns the commit at which memory of a workspace stands; false where it has none.
func (r *Runtime) Applied(id readstate.WorkspaceID) (readstate.LSN, bool) {
	ws, err := r.workspace(id)
	if err != nil {
		return 0, false
	}
	return readstate.LSN(ws.applied.Load()), true
}

// Visible reports from memory alone whether the member sees the scope. Known is false where
// memory cannot say, for what is not loaded or is being read again: that is neither yes nor no.
func (r *Runtime) Visible(
	id readstate.WorkspaceID, member readstate.MemberID, scope readstate.ScopeID,
) (visible, known bool) {
	ws, err := r.workspace(id)
	if err != nil {
		return false, false
	}
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	m := ws.st.memberNamed(member)
	if m == none || ws.dropped {
		return false, false
	}
	mb := ws.st.members.At(m)
	if mb.is(erased) {
		return false, true
	}
	e := none
	if s := ws.st.scopeNamed(scope); s != none {
		e = ws.st.entryOf(m, s)
	}
	if e == none {
		return false, mb.is(complete)
	}
	return ws.st.visible(e), true
}
