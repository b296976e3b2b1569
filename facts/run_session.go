package facts

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

type putSession struct{ PutSession }

func (o *putSession) name() string { return "put session" }
func (o *putSession) rows() int    { return 6 }

func (o *putSession) gather(w *workspace, n *needs) {
	n.member(w, o.Owner)
	if o.ID != "" {
		n.scope(w, SessionScope(o.Owner, o.ID))
	}
}

func (o *putSession) resolve(g *group, w *workspace, n *needs) {
	gatherRow(g, w, n, SessionScope(o.Owner, o.ID), o.Owner)
}

func (o *putSession) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.ID == "" {
		return o.create(ctx, g, w, g.newID())
	}
	name := SessionScope(o.Owner, o.ID)
	if err := checkScopeID(name); err != nil {
		return nil, err
	}
	scope, exists, err := g.findScope(ctx, w, name)
	switch {
	case err != nil:
		return nil, err
	case !exists && o.Create:
		return o.create(ctx, g, w, o.ID)
	case !exists:
		return nil, notFound("session", o.ID)
	}
	x, err := g.present(ctx, scope)
	if err != nil {
		return nil, err
	}
	if o.Create {
		if o.Title != nil && *o.Title != scope.Info.Name {
			return nil, fmt.Errorf("session %q exists: %w", o.ID, ErrMismatch)
		}
		return g.sessionReceipt(ctx, w, scope, x)
	}
	before := sessionFacts(&scope.Info)
	o.apply(&scope.Info)
	if sessionFacts(&scope.Info) == before {
		return g.sessionReceipt(ctx, w, scope, x)
	}
	g.touch(w)
	scope.Ranks.LastLSN = w.LSN
	g.storeScope(w, scope)
	x.UpdatedAt = max(x.UpdatedAt, g.clock)
	g.sessions.put(x.Scope, x)
	r, err := g.sessionReceipt(ctx, w, scope, x)
	r.Outcome = readstate.Applied
	return r, err
}

func (o *putSession) check() error {
	if o.Title != nil {
		if err := checkText("title", *o.Title); err != nil {
			return err
		}
	}
	if !o.Create && o.ID == "" {
		return fmt.Errorf("%w: session is missing", ErrInvalid)
	}
	return nil
}

func (o *putSession) apply(info *readstate.ScopeInfo) {
	set(&info.Name, o.Title)
	set(&info.Active, o.Active)
	set(&info.Thinking, o.Thinking)
	set(&info.PendingInput, o.PendingInput)
	set(&info.PendingPermission, o.PendingPermission)
	set(&info.Archived, o.Archived)
}

// sessionFacts are the parts of a scope that an operation on its session changes.
func sessionFacts(i *readstate.ScopeInfo) [6]any {
	return [...]any{
		i.Name, i.Active, i.Thinking, i.PendingInput, i.PendingPermission, i.Archived,
	}
}

func (o *putSession) create(ctx context.Context, g *group, w *workspace, id string) (any, error) {
	name := SessionScope(o.Owner, id)
	if err := checkScopeID(name); err != nil {
		return nil, err
	}
	owner, err := g.ensureMember(ctx, w, o.Owner, o.CreateOwner)
	if err != nil {
		return nil, err
	}
	info := readstate.ScopeInfo{ID: name, Type: readstate.Session}
	o.apply(&info)
	g.touch(w)
	scope, x, err := g.newSession(ctx, w, owner, info)
	if err != nil {
		return nil, err
	}
	r, err := g.sessionReceipt(ctx, w, scope, x)
	r.Outcome, r.Created = readstate.Applied, true
	return r, err
}

// newSession stages a session with its owner's row, who has read everything there is: nothing.
func (g *group) newSession(
	ctx context.Context, w *workspace, owner readstate.MemberInfo, info readstate.ScopeInfo,
) (ScopeRow, SessionRow, error) {
	w.LastScope++
	info.Key = ScopeKeyOf(w.Key, w.LastScope)
	scope := ScopeRow{Info: info, Owner: owner.Key, CreatedAt: g.clock, RosterGeneration: 1}
	scope.Ranks.LastLSN, scope.Ranks.LastActivityAt = w.LSN, g.clock
	x := SessionRow{Scope: info.Key, Owner: owner.Key, UpdatedAt: g.clock}
	g.scopeKeys.staged[scopeName{w.Key, info.ID}] = slot[readstate.ScopeKey]{info.Key, true}
	g.storeScope(w, scope)
	g.sessions.put(info.Key, x)
	row := StateRow{RowKey: RowKey{info.Key, owner.Key}, MembershipLSN: w.LSN, NotificationLSN: w.LSN}
	row.Row.Visible = true
	if _, err := row.Row.Join(false, readstate.Ground{}, readstate.JoinCommand{}); err != nil {
		return scope, x, refusal(err)
	}
	return scope, x, g.storeRow(ctx, w, scope, row)
}

func (g *group) sessionReceipt(
	ctx context.Context, w *workspace, s ScopeRow, x SessionRow,
) (SessionReceipt, error) {
	row, _, err := g.state(ctx, RowKey{s.Info.Key, s.Owner})
	return SessionReceipt{Session: NewSession(&s, &x, &row.Row), LSN: w.LSN}, err
}

// present returns what is stored of a session that has not been replaced.
func (g *group) present(ctx context.Context, s ScopeRow) (SessionRow, error) {
	x, err := g.sessionRow(ctx, s.Info.Key)
	if err != nil || x.ReplacedBy == 0 {
		return x, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return x, err
	}
	if err := g.flush(ctx); err != nil { // it may have been replaced in this group
		return x, err
	}
	err = Replaced(ctx, tx, &s)
	if !errors.Is(err, ErrReplaced) {
		err = broken("load sessions", err)
	}
	return x, err
}

// sessionReader is the part of a transaction that Replaced asks.
type sessionReader interface {
	Sessions(ctx context.Context, scopes []readstate.ScopeKey) ([]SessionRow, error)
	Scopes(ctx context.Context, keys []readstate.ScopeKey) ([]ScopeRow, error)
}

// Replaced returns a ReplacedError for a session that was merged away, which names the one that is
// there now. Sessions may be merged one after the other.
func Replaced(ctx context.Context, r sessionReader, s *ScopeRow) error {
	at := s.Info.Key
	for {
		rows, err := r.Sessions(ctx, []readstate.ScopeKey{at})
		if err != nil {
			return err
		}
		if len(rows) == 0 || rows[0].ReplacedBy == 0 {
			break
		}
		at = rows[0].ReplacedBy
	}
	if at == s.Info.Key {
		return nil
	}
	scopes, err := r.Scopes(ctx, []readstate.ScopeKey{at})
	if err != nil {
		return err
	}
	if len(scopes) == 0 {
		return fmt.Errorf("scope %d is referred to and missing", at)
	}
	_, id, _ := SessionOf(s.Info.ID)
	_, by, _ := SessionOf(scopes[0].Info.ID)
	return &ReplacedError{ID: id, By: by}
}

func (g *group) sessionRow(ctx context.Context, s readstate.ScopeKey) (SessionRow, error) {
	x, exists, known := g.sessions.get(s)
	if !known {
		tx, err := g.open(ctx)
		if err != nil {
			return x, err
		}
		rows, err := tx.Sessions(ctx, []readstate.ScopeKey{s})
		if err != nil {
			return x, broken("load sessions", err)
		}
		for _, r := range rows {
			g.sessions.loaded(r.Scope, r, true)
		}
		x, exists, _ = g.sessions.get(s)
	}
	if !exists {
		return x, broken("load sessions", fmt.Errorf("session %d is referred to and missing", s))
	}
	return x, nil
}

// talkSession brings a session to the top of its owner's list.
func (g *group) talkSession(ctx context.Context, s readstate.ScopeKey) error {
	x, err := g.sessionRow(ctx, s)
	if err != nil {
		return err
	}
	x.UpdatedAt = max(x.UpdatedAt, g.clock)
	g.sessions.put(s, x)
	return nil
}

// settle is the last step of whatever may leave a session without anything unread: then its cursor
// goes to the head, since clients compare the two. Nothing else has it.
func (g *group) settle(ctx context.Context, w *workspace, key readstate.ScopeKey) error {
	s, err := g.scopeByKey(ctx, key)
	if err != nil || s.Info.Type != readstate.Session {
		return err
	}
	row, exists, err := g.state(ctx, RowKey{key, s.Owner})
	if err != nil || !exists || row.Row.Read >= s.Ranks.Head {
		return err
	}
	unread, err := g.unreadOf(ctx, s, row)
	if err != nil || !row.Row.Settle(s.Info.Type, s.Ranks.Head, unread) {
		return err
	}
	g.touch(w)
	if err := g.movePoint(ctx, s, &row); err != nil {
		return err
	}
	return g.storeRow(ctx, w, s, row)
}

// unreadOf counts what is unread in a session.
func (g *group) unreadOf(ctx context.Context, s ScopeRow, row StateRow) (uint64, error) {
	base := row.Row.Point.Base(s.Ranks.Floor)
	pairs, err := g.pairs(ctx, s, row, base)
	if err != nil {
		return 0, err
	}
	if err := g.flush(ctx); err != nil {
		return 0, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return 0, err
	}
	removed, err := tx.RemovedBetween(ctx, s.Info.Key, base, s.Ranks.Head)
	if err != nil {
		return 0, broken("removed revisions", err)
	}
	terms := readstate.Terms{
		Type: s.Info.Type, Head: s.Ranks.Head, Floor: s.Ranks.Floor, Point: row.Row.Point,
		Removed: removed,
	}
	for i := range pairs {
		terms.Blocked = append(terms.Blocked, pairs[i].Pair(s.Info.Type, row.Member, base))
	}
	n, err := terms.Unread()
	if err != nil {
		return 0, broken("unread of a session", err)
	}
	return n, nil
}

// eraseSession takes what its owner chose out of a session's names. The caller stores the scope.
func (g *group) eraseSession(ctx context.Context, w *workspace, s *ScopeRow) error {
	owner, err := g.principal(ctx, s.Owner)
	if err != nil {
		return err
	}
	g.scopeKeys.staged[scopeName{w.Key, s.Info.ID}] = slot[readstate.ScopeKey]{}
	s.Info.Name, s.Info.ID = "", SessionScope(owner.ID, g.newID())
	g.changes.Renamed = append(g.changes.Renamed, ScopeName{s.Info.Key, s.Info.ID})
	return nil
}
