package facts

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// Operations on workspaces, members and blocks.

type putWorkspace struct{ PutWorkspace }

func (o *putWorkspace) name() string                         { return "put workspace" }
func (o *putWorkspace) rows() int                            { return 1 }
func (o *putWorkspace) gather(*workspace, *needs)            {}
func (o *putWorkspace) resolve(*group, *workspace, *needs)   {}
func (o *putMember) name() string                            { return "put member" }
func (o *putMember) rows() int                               { return 1 }
func (o *putMember) gather(w *workspace, n *needs)           { n.member(w, o.ID) }
func (o *putMember) resolve(*group, *workspace, *needs)      {}
func (o *putSettings) name() string                          { return "put settings" }
func (o *putSettings) rows() int                             { return 1 }
func (o *putSettings) gather(w *workspace, n *needs)         { n.member(w, o.Member) }
func (o *putSettings) resolve(*group, *workspace, *needs)    {}
func (o *setBlock) name() string                             { return "set block" }
func (o *setBlock) rows() int                                { return 2 }
func (o *setBlock) gather(w *workspace, n *needs)            { n.member(w, o.Member, o.Other) }
func (o *setBlock) resolve(g *group, w *workspace, n *needs) {}
func (o *eraseMember) name() string                          { return "erase member" }
func (o *eraseMember) rows() int                             { return eraseBatch }
func (o *eraseMember) gather(w *workspace, n *needs)         { n.member(w, o.Member) }
func (o *eraseMember) resolve(*group, *workspace, *needs)    {}

// Check refuses an id or a name that no workspace may have, with ErrInvalid.
func (o PutWorkspace) Check() error {
	if err := CheckID("workspace", string(o.ID)); err != nil {
		return err
	}
	return checkText("name", o.Name)
}

func (o *putWorkspace) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if w != nil {
		if w.Name == o.Name {
			return Setting{LSN: w.LSN}, nil
		}
		g.touch(w)
		w.Name = o.Name
		g.changes.Workspaces = append(g.changes.Workspaces, w.WorkspaceRow)
		return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
	}
	key := WorkspaceKey(1)
	for k := range g.byKey {
		key = max(key, k+1)
	}
	w = &workspace{
		WorkspaceRow: WorkspaceRow{Key: key, ID: o.ID, Name: o.Name, Term: 1}, isNew: true,
	}
	g.touch(w)
	g.workspaces[o.ID], g.byKey[key] = w, w
	g.changes.NewWorkspaces = append(g.changes.NewWorkspaces, w.WorkspaceRow)
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}

type putMember struct{ PutMember }

func (o *putMember) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := CheckID("member", string(o.ID)); err != nil {
		return nil, err
	}
	for what, text := range map[string]*string{"displayName": o.DisplayName, "avatar": o.Avatar} {
		if text == nil {
			continue
		}
		if err := checkText(what, *text); err != nil {
			return nil, err
		}
	}
	info, exists, err := g.findMember(ctx, w, o.ID)
	if err != nil {
		return nil, err
	}
	if info.Erased {
		return nil, fmt.Errorf("member %q was erased: %w", o.ID, ErrNotFound)
	}
	before := info
	if !exists {
		info = readstate.MemberInfo{ID: o.ID, Active: true}
	}
	set(&info.Agent, o.Agent)
	set(&info.DisplayName, o.DisplayName)
	set(&info.Avatar, o.Avatar)
	set(&info.Active, o.Active)
	if exists && info == before {
		return Setting{LSN: w.LSN}, nil
	}
	g.touch(w)
	if !exists {
		info = g.newMember(w, info)
	}
	g.storeMember(w, info)
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// newMember gives a member a key. The caller has touched the workspace.
func (g *group) newMember(w *workspace, info readstate.MemberInfo) readstate.MemberInfo {
	w.LastMember++
	info.Key = MemberKeyOf(w.Key, w.LastMember)
	info.MemberLSN = w.LSN
	return info
}

func (g *group) storeMember(w *workspace, info readstate.MemberInfo) {
	g.principals.put(info.Key, info)
	g.memberKeys.staged[memberName{w.Key, info.ID}] = slot[readstate.MemberKey]{info.Key, true}
	w.emit(readstate.PrincipalEvent{Info: info})
}

// ensureMember finds a member, or makes one where the operation allows it. The workspace is
// touched only in the latter case.
func (g *group) ensureMember(
	ctx context.Context, w *workspace, id readstate.MemberID, create bool,
) (readstate.MemberInfo, error) {
	if err := CheckID("member", string(id)); err != nil {
		return readstate.MemberInfo{}, err
	}
	info, exists, err := g.findMember(ctx, w, id)
	if err != nil || exists {
		return info, err
	}
	if !create || info.Erased {
		return info, fmt.Errorf("member %q: %w", id, ErrNotFound)
	}
	g.touch(w)
	info = g.newMember(w, readstate.MemberInfo{ID: id, Active: true})
	g.storeMember(w, info)
	return info, nil
}

type putSettings struct{ PutSettings }

func (o *putSettings) run(ctx context.Context, g *group, w *workspace) (any, error) {
	info, err := g.member(ctx, w, o.Member)
	if err != nil {
		return nil, err
	}
	before := info
	set(&info.Badge, o.Badge)
	set(&info.Private, o.Private)
	if info == before {
		return Setting{LSN: w.LSN}, nil
	}
	g.touch(w)
	info.MemberLSN = w.LSN
	g.storeMember(w, info)
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}

type setBlock struct{ SetBlock }

func (o *setBlock) run(ctx context.Context, g *group, w *workspace) (any, error) {
	info, err := g.member(ctx, w, o.Member)
	if err != nil {
		return nil, err
	}
	other, err := g.member(ctx, w, o.Other)
	if err != nil {
		return nil, err
	}
	if info.Key == other.Key {
		return nil, fmt.Errorf("%w: a member cannot block themself", ErrInvalid)
	}
	blocked, err := g.blockedOf(ctx, info.Key)
	if err != nil {
		return nil, err
	}
	at := slices.Index(blocked, other.Key)
	if (at >= 0) == o.Blocked {
		return Setting{LSN: w.LSN}, nil
	}
	if o.Blocked && len(blocked) >= MaxBlocks {
		return nil, fmt.Errorf("%w: at most %d blocks a member", ErrLimit, MaxBlocks)
	}
	g.touch(w)
	if err := g.flush(ctx); err != nil { // a block and an unblock of one pair keep their order
		return nil, err
	}
	pair := BlockedPair{Member: info.Key, Other: other.Key}
	next := slices.Clone(blocked)
	if o.Blocked {
		next = append(next, other.Key)
		g.changes.Block = append(g.changes.Block, pair)
	} else {
		next = slices.Delete(next, at, at+1)
		g.changes.Unblock = append(g.changes.Unblock, pair)
	}
	g.blockedBy.staged[info.Key] = slot[[]readstate.MemberKey]{next, len(next) > 0}
	info.MemberLSN = w.LSN
	g.storeMember(w, info)
	w.emit(readstate.BlockEvent{
		Member: info.Key, Other: other.Key, Blocked: o.Blocked, MemberLSN: w.LSN,
	})
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}

// eraseBatch is how many rows or payloads one group of an erasure takes.
const eraseBatch = 500

type eraseMember struct {
	EraseMember
	key     readstate.MemberKey // known once the identity is durably gone
	pending readstate.MemberKey
	after   Mark // payloads up to here are durably cleared,
	next    Mark // and up to here with this batch
}

// run renames the identity first, so that nothing points to the person from the first commit
// on. Memberships and payloads go in batches after it.
func (o *eraseMember) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if o.key == 0 {
		info, err := g.member(ctx, w, o.Member)
		if err != nil {
			return nil, err
		}
		g.touch(w)
		g.memberKeys.staged[memberName{w.Key, info.ID}] = slot[readstate.MemberKey]{}
		// The pseudonym is random like a message id: it says nothing about who they were.
		pseudonym := readstate.MemberID("erased-" + g.newID())
		g.storeMember(w, readstate.MemberInfo{
			Key: info.Key, ID: pseudonym, Agent: info.Agent, Private: true,
			MemberLSN: w.LSN, Erased: true,
		})
		o.pending = info.Key
	} else {
		g.touch(w)
	}
	more, err := o.batch(ctx, g, w)
	if err != nil {
		return nil, err
	}
	if more {
		return nil, errAgain
	}
	g.changes.Erased = append(g.changes.Erased, o.pending)
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}

func (o *eraseMember) batch(ctx context.Context, g *group, w *workspace) (bool, error) {
	if err := g.flush(ctx); err != nil {
		return false, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return false, err
	}
	rows, err := tx.StatesOf(ctx, o.pending, 0, eraseBatch)
	if err != nil {
		return false, broken("load rows", err)
	}
	if err := g.loadPlaces(ctx, rows); err != nil {
		return false, err
	}
	for _, r := range rows {
		g.states.drop(r.RowKey)
		g.changes.GoneStates = append(g.changes.GoneStates, r.RowKey)
		w.emit(readstate.RowGoneEvent{Scope: r.Scope, Member: r.Member})
		scope, err := g.scopeByKey(ctx, r.Scope)
		if err != nil {
			return false, err
		}
		scope.RosterGeneration++
		if scope.Info.Type == readstate.Session {
			if err := g.eraseSession(ctx, w, &scope); err != nil {
				return false, err
			}
		}
		g.scopes.put(r.Scope, scope)
		if err := g.forgetRow(ctx, scope, r); err != nil {
			return false, err
		}
	}
	if len(rows) == eraseBatch {
		return true, nil
	}
	messages, err := tx.AuthoredPayloads(ctx, o.pending, o.after, eraseBatch)
	if err != nil {
		return false, broken("load payloads", err)
	}
	for _, m := range messages {
		row := g.messages.loaded(m)
		row.Payload = nil
		g.messages.change(row)
		if m.Revision > 0 {
			o.next = Mark{m.Scope, m.Revision}
		}
	}
	activities, err := tx.ActivityPayloads(ctx, o.pending, eraseBatch)
	if err != nil {
		return false, broken("load payloads", err)
	}
	g.changes.ClearedActivities = append(g.changes.ClearedActivities, activities...)
	if len(messages) == eraseBatch || len(activities) == eraseBatch {
		return true, nil
	}
	return g.eraseInbox(ctx, w, o.pending)
}

// loadPlaces loads the scopes of rows, and what is known of whom they are delivered to.
func (g *group) loadPlaces(ctx context.Context, rows []StateRow) error {
	keys := make([]readstate.ScopeKey, len(rows))
	for i, r := range rows {
		keys[i] = r.Scope
	}
	if err := g.loadScopeKeys(ctx, keys); err != nil {
		return err
	}
	n := newNeeds()
	for _, k := range keys {
		switch s, _, _ := g.scopes.get(k); s.Info.Type {
		case readstate.Task:
			n.watched = append(n.watched, k)
		case readstate.DM:
			n.dms = append(n.dms, k)
		}
	}
	return g.loadAudiences(ctx, n)
}

// forgetRow takes the owner of a row that goes out of what is known of the scope.
func (g *group) forgetRow(ctx context.Context, s ScopeRow, r StateRow) error {
	if s.Info.Type == readstate.Task && r.Row.Follow == readstate.FollowExplicit {
		return g.setWatcher(ctx, r.RowKey, false)
	}
	if !r.Row.Joined {
		return nil
	}
	return g.setJoined(ctx, s, r.Member, false)
}

// durable implements durable: the identity is gone, what follows is batches.
func (o *eraseMember) durable() { o.key, o.after = o.pending, o.next }
