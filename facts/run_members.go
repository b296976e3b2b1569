package facts

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// Operations on memberships and follows.

type putMembership struct{ PutMembership }

func (o *putMembership) name() string { return "put membership" }
func (o *putMembership) rows() int    { return 3 }

func (o *putMembership) gather(w *workspace, n *needs) {
	n.member(w, o.Member)
	n.scope(w, o.Scope)
}

func (o *putMembership) resolve(g *group, w *workspace, n *needs) {
	gatherRow(g, w, n, o.Scope, o.Member)
	gatherRoster(g, w, n, o.Scope)
}

// gatherRoster asks for who has joined a dm.
func gatherRoster(g *group, w *workspace, n *needs, s readstate.ScopeID) {
	scope, _, _ := g.scopeKeys.get(scopeName{w.Key, s})
	if row, ok, _ := g.scopes.get(scope); ok && row.Info.Type == readstate.DM {
		n.dms = append(n.dms, scope)
	}
}

// gatherRow asks for a member's row in a scope, and in the scope above it.
func gatherRow(
	g *group, w *workspace, n *needs, s readstate.ScopeID, m readstate.MemberID,
) {
	scope, ok, _ := g.scopeKeys.get(scopeName{w.Key, s})
	member, known, _ := g.memberKeys.get(memberName{w.Key, m})
	if !ok || !known {
		return
	}
	n.row(scope, member)
	n.blockers = append(n.blockers, member)
	if row, ok, _ := g.scopes.get(scope); ok {
		n.row(row.Info.Parent, member)
	}
}

func (o *putMembership) run(ctx context.Context, g *group, w *workspace) (any, error) {
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	if o.Until < 0 || (o.Until != 0 && (o.Level == nil || *o.Level == readstate.LevelInherit)) {
		return nil, fmt.Errorf("%w: until needs a level of its own", ErrInvalid)
	}
	member, err := g.ensureMember(ctx, w, o.Member, o.CreateMember && !o.MustBeJoined)
	if err != nil {
		return nil, err
	}
	key := RowKey{scope.Info.Key, member.Key}
	row, exists, err := g.state(ctx, key)
	if err != nil {
		return nil, err
	}
	reach, err := g.inReach(ctx, scope, row, exists)
	if err == nil && reach && o.MustBeJoined && !o.Trusted {
		reach, err = g.shows(ctx, scope, row)
	}
	if err != nil {
		return nil, err
	}
	thread := scope.Info.Type == readstate.Thread
	if thread && (o.Effective != nil || o.Read != nil) {
		return nil, fmt.Errorf("%w: a thread is followed, not joined", ErrInvalid)
	}
	if !reach && (o.MustBeJoined || thread) {
		return nil, fmt.Errorf("%q in scope %q: %w", o.Member, o.Scope, ErrNotFound)
	}
	if scope.Info.Type == readstate.Session && (!reach || o.Effective != nil || o.Read != nil) {
		return nil, fmt.Errorf("%w: a session has its owner, nobody joins it", ErrInvalid)
	}
	return o.apply(ctx, g, w, scope, row, exists)
}

// apply joins where there is something to join, and changes what the operation names.
func (o *putMembership) apply(
	ctx context.Context, g *group, w *workspace, scope ScopeRow, row StateRow, exists bool,
) (any, error) {
	ground, err := g.ground(ctx, scope, row.RowKey, row.Row.ParentEpoch)
	if err != nil {
		return nil, err
	}
	before := row.Row
	res, err := row.Row.Join(exists, ground, readstate.JoinCommand{
		Effective: o.Effective, Read: o.Read,
	})
	if err != nil {
		return nil, refusal(err)
	}
	if o.Level != nil {
		row.Row.Notification = readstate.Notification{Level: *o.Level, Until: o.Until}
	}
	set(&row.Row.Visible, o.Visible)
	if exists && row.Row == before {
		return Setting{LSN: w.LSN}, nil
	}
	g.touch(w)
	if row.Row.Point.E != res.To {
		if err := g.movePoint(ctx, scope, &row); err != nil {
			return nil, err
		}
	}
	if row.Row.Notification != before.Notification {
		row.NotificationLSN = w.LSN
	}
	row.MembershipLSN = w.LSN
	scope.RosterGeneration++
	g.scopes.put(scope.Info.Key, scope)
	if err := g.storeRow(ctx, w, scope, row); err != nil {
		return nil, err
	}
	if err := g.setJoined(ctx, scope, row.Member, true); err != nil {
		return nil, err
	}
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}

// inReach reports that a row is one its member has now: joined and, in a thread, of the present
// epoch of a joined parent row.
func (g *group) inReach(
	ctx context.Context, s ScopeRow, row StateRow, exists bool,
) (bool, error) {
	if !exists || !row.Row.Joined {
		return false, nil
	}
	if s.Info.Type != readstate.Thread {
		return true, nil
	}
	_, up, ok, err := g.parent(ctx, s, row.Member)
	return err == nil && ok && up.Row.Joined && up.Row.Epoch == row.Row.ParentEpoch, err
}

// reach finds the row that an operation on read state works on. A member must see it, and the
// parent's, too; a trusted caller need not.
func (g *group) reach(
	ctx context.Context, w *workspace, s readstate.ScopeID, m readstate.MemberID, trusted bool,
) (scope ScopeRow, row StateRow, err error) {
	if scope, err = g.scope(ctx, w, s); err != nil {
		return scope, row, err
	}
	member, err := g.member(ctx, w, m)
	if err != nil {
		return scope, row, err
	}
	row, exists, err := g.state(ctx, RowKey{scope.Info.Key, member.Key})
	if err != nil {
		return scope, row, err
	}
	ok, err := g.inReach(ctx, scope, row, exists)
	if err == nil && ok && !trusted {
		ok, err = g.shows(ctx, scope, row)
	}
	if err == nil && !ok {
		err = fmt.Errorf("%q in scope %q: %w", m, s, ErrNotFound)
	}
	return scope, row, err
}

// shows reports that a row in reach is visible to its member, the parent's included.
func (g *group) shows(ctx context.Context, s ScopeRow, row StateRow) (bool, error) {
	if !row.Row.Visible || s.Info.Type != readstate.Thread {
		return row.Row.Visible, nil
	}
	return g.sees(ctx, s, row.Member)
}

type leave struct{ Leave }

func (o *leave) name() string { return "leave" }
func (o *leave) rows() int    { return 2 }

func (o *leave) gather(w *workspace, n *needs) {
	n.member(w, o.Member)
	n.scope(w, o.Scope)
}

func (o *leave) resolve(g *group, w *workspace, n *needs) {
	gatherRow(g, w, n, o.Scope, o.Member)
	gatherRoster(g, w, n, o.Scope)
}

func (o *leave) run(ctx context.Context, g *group, w *workspace) (any, error) {
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	if t := scope.Info.Type; t == readstate.Thread || t == readstate.Session {
		return nil, fmt.Errorf("%w: a %s is not left", ErrInvalid, t)
	}
	member, err := g.member(ctx, w, o.Member)
	if err != nil {
		return nil, err
	}
	row, exists, err := g.state(ctx, RowKey{scope.Info.Key, member.Key})
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, fmt.Errorf("%q in scope %q: %w", o.Member, o.Scope, ErrNotFound)
	}
	if row.Row.Leave() == readstate.Unchanged {
		return Setting{LSN: w.LSN}, nil
	}
	g.touch(w)
	row.MembershipLSN = w.LSN
	scope.RosterGeneration++
	g.scopes.put(scope.Info.Key, scope)
	if err := g.storeRow(ctx, w, scope, row); err != nil {
		return nil, err
	}
	if err := g.setJoined(ctx, scope, row.Member, false); err != nil {
		return nil, err
	}
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}

type setFollow struct{ SetFollow }

func (o *setFollow) name() string { return "set follow" }
func (o *setFollow) rows() int    { return 3 }

func (o *setFollow) gather(w *workspace, n *needs) {
	n.member(w, o.Member)
	n.scope(w, o.Scope)
}

func (o *setFollow) resolve(g *group, w *workspace, n *needs) {
	gatherRow(g, w, n, o.Scope, o.Member)
	scope, _, _ := g.scopeKeys.get(scopeName{w.Key, o.Scope})
	if row, ok, _ := g.scopes.get(scope); ok && row.Info.Type == readstate.Task {
		n.watched = append(n.watched, scope)
	}
}

func (o *setFollow) run(ctx context.Context, g *group, w *workspace) (any, error) {
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	switch scope.Info.Type {
	case readstate.Task:
		return o.watch(ctx, g, w, scope)
	case readstate.Thread:
	default:
		return nil, fmt.Errorf("%w: a %s is not followed", ErrInvalid, scope.Info.Type)
	}
	member, err := g.member(ctx, w, o.Member)
	if err != nil {
		return nil, err
	}
	_, up, ok, err := g.parent(ctx, scope, member.Key)
	if err != nil {
		return nil, err
	}
	if !ok || !up.Row.Joined || (!up.Row.Visible && !o.Trusted) {
		return nil, fmt.Errorf("%q in the parent of %q: %w", o.Member, o.Scope, ErrNotFound)
	}
	key := RowKey{scope.Info.Key, member.Key}
	row, exists, err := g.state(ctx, key)
	if err != nil {
		return nil, err
	}
	before := row.Row
	if !exists || !row.Row.Joined || row.Row.ParentEpoch != up.Row.Epoch {
		ground, err := g.ground(ctx, scope, key, up.Row.Epoch)
		if err != nil {
			return nil, err
		}
		row.Row.FollowBefore(exists, ground)
	}
	row.Row.SetFollow(o.Following)
	if exists && row.Row == before {
		return Setting{LSN: w.LSN}, nil
	}
	g.touch(w)
	row.MembershipLSN, row.NotificationLSN = w.LSN, w.LSN
	scope.RosterGeneration++
	g.scopes.put(scope.Info.Key, scope)
	if err := g.storeRow(ctx, w, scope, row); err != nil {
		return nil, err
	}
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}
