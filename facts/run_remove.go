package facts

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// batchEntries is how many entries one group of a rewind, trim or sweep takes.
const batchEntries = 500

type remove struct{ Remove }

func (o *remove) name() string { return "remove" }
func (o *remove) rows() int    { return 6 }

func (o *remove) gather(w *workspace, n *needs) {
	n.scope(w, o.Scope)
	n.member(w, o.By.Member)
}

func (o *remove) resolve(g *group, w *workspace, n *needs) {
	gatherMessage(g, w, n, o.Scope, o.Message, o.By, o.OpID)
}

// gatherMessage asks for a message to change and for what its operation id was used for.
func gatherMessage(
	g *group, w *workspace, n *needs, s readstate.ScopeID, id string, by Actor, opID string,
) {
	if scope, ok, _ := g.scopeKeys.get(scopeName{w.Key, s}); ok {
		n.messages[scope] = append(n.messages[scope], id)
	}
	actor := MemberKeyOf(w.Key, 0)
	if m, ok, _ := g.memberKeys.get(memberName{w.Key, by.Member}); ok {
		actor = m
	}
	n.receipts = append(n.receipts, OpKey{w.Key, actor, opID})
}

func (o *remove) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := CheckID("opId", o.OpID); err != nil {
		return nil, err
	}
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	actor, err := g.actorKey(ctx, w, o.By)
	if err != nil {
		return nil, err
	}
	key, d := OpKey{w.Key, actor, o.OpID}, digest(o.Remove)
	if r, found, err := g.repeated(ctx, key, d, w, true); found || err != nil {
		return r, err
	}
	m, err := g.ownMessage(ctx, w, scope, o.Message, o.By)
	if err != nil {
		return nil, err
	}
	g.touch(w)
	if err := g.removeEntries(ctx, w, []*MessageRow{m}); err != nil {
		return nil, err
	}
	r := Receipt{MessageID: m.ID, Seq: m.Seq, Revision: m.Revision, LSN: w.LSN}
	return r, g.keep(key, d, r)
}

// ownMessage finds a message that the actor may change, tombstones included.
func (g *group) ownMessage(
	ctx context.Context, w *workspace, s ScopeRow, id string, by Actor,
) (*MessageRow, error) {
	if err := CheckID("message", id); err != nil {
		return nil, err
	}
	m, err := g.message(ctx, s.Info.Key, id)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, notFound("message", id)
	}
	if by.Trusted || by.Member == "" {
		return m, nil
	}
	info, ok, err := g.findMember(ctx, w, by.Member)
	if err != nil {
		return nil, err
	}
	if sees, err := g.sees(ctx, s, info.Key); err != nil || !ok || !sees {
		return nil, firstError(err, notFound("message", id))
	}
	if m.Author != info.Key {
		return nil, forbidden("message", id, "it was written by somebody else")
	}
	return m, nil
}

// removeEntries takes live entries back, with the other entry of a broadcast reply, and archives
// the threads that hang on them. Entries that are tombstones already stay as they are.
func (g *group) removeEntries(ctx context.Context, w *workspace, entries []*MessageRow) error {
	gone, err := g.takeBack(ctx, w, entries)
	if err != nil {
		return err
	}
	settled := map[readstate.ScopeKey]bool{}
	for _, m := range gone {
		if settled[m.Scope] {
			continue
		}
		settled[m.Scope] = true
		if err := g.settle(ctx, w, m.Scope); err != nil {
			return err
		}
	}
	return nil
}

// takeBack is removeEntries without the last step of a session. It returns what it took back.
func (g *group) takeBack(
	ctx context.Context, w *workspace, entries []*MessageRow,
) ([]*MessageRow, error) {
	gone, err := g.withTwins(ctx, entries)
	if err != nil {
		return nil, err
	}
	newestGone := map[readstate.ScopeKey]bool{}
	for _, m := range gone {
		scope, err := g.scopeByKey(ctx, m.Scope)
		if err != nil {
			return nil, err
		}
		newestGone[m.Scope] = newestGone[m.Scope] || scope.Ranks.Latest.ID == m.ID
		if err := g.stageRemoval(ctx, w, scope, m); err != nil {
			return nil, err
		}
	}
	for _, m := range gone {
		if err := g.renew(ctx, m.Scope, newestGone); err != nil {
			return nil, err
		}
		if err := g.emitRemoval(ctx, w, m); err != nil {
			return nil, err
		}
	}
	return gone, g.retract(ctx, w, gone)
}

// withTwins returns the live ones of the entries, each followed by its live twin.
func (g *group) withTwins(
	ctx context.Context, entries []*MessageRow,
) ([]*MessageRow, error) {
	var gone []*MessageRow
	for _, m := range entries {
		if !m.Live || slices.Contains(gone, m) {
			continue
		}
		gone = append(gone, m)
		if m.Peer.Scope == 0 {
			continue
		}
		twin, err := g.messageAt(ctx, m.Peer)
		if err != nil {
			return nil, err
		}
		if twin != nil && twin.Live && !slices.Contains(gone, twin) {
			gone = append(gone, twin)
		}
	}
	return gone, nil
}

// stageRemoval turns an entry into a tombstone and takes back what it counted.
func (g *group) stageRemoval(
	ctx context.Context, w *workspace, s ScopeRow, m *MessageRow,
) error {
	m.Live, m.Payload = false, nil
	g.messages.change(m)
	s.Ranks.LastLSN = w.LSN
	if m.Thread != 0 {
		if err := g.archiveThread(ctx, w, m.Thread); err != nil {
			return err
		}
	}
	if m.Revision == 0 {
		g.scopes.put(s.Info.Key, s)
		return nil
	}
	s.Ranks.Replies--
	g.scopes.put(s.Info.Key, s)
	if err := g.mark(ctx, RemovedSet, m.Scope, m.Revision, true); err != nil {
		return err
	}
	if m.Everyone {
		g.setEveryone(m, false)
		if err := g.mark(ctx, EveryoneSet, m.Scope, m.Revision, false); err != nil {
			return err
		}
	}
	return g.countRemoved(ctx, s, m)
}

// countRemoved takes an entry back from the rows it touched.
func (g *group) countRemoved(ctx context.Context, s ScopeRow, m *MessageRow) error {
	t := s.Info.Type
	msg := readstate.Message{Revision: m.Revision, Everyone: m.Everyone}
	concerned := m.concerned()
	if err := g.loadConcerned(ctx, m.Scope, concerned); err != nil {
		return err
	}
	for _, c := range concerned {
		key := RowKey{m.Scope, c.member}
		if c.role.Named && (!t.Targeted() || c.role.Recipient) {
			g.putMention(t, m, c, false)
		}
		if c.role.Recipient && !c.role.Neutral(t) {
			g.targets.set(mentionKey{key, m.Revision}, TargetRow{
				RowKey: key, Revision: m.Revision, Author: m.Author,
			}, true)
		}
		state, exists, err := g.state(ctx, key)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		before := state.Row.Point
		state.Row.Point.Remove(t, s.Ranks.Floor, msg, c.role)
		if state.Row.Point != before {
			g.states.put(key, state)
		}
	}
	return nil
}

// loadConcerned loads the rows of everyone concerned in one statement.
func (g *group) loadConcerned(
	ctx context.Context, s readstate.ScopeKey, concerned []concern,
) error {
	keys := make([]RowKey, len(concerned))
	for i, c := range concerned {
		keys[i] = RowKey{s, c.member}
	}
	return g.loadRows(ctx, keys)
}

// archiveThread hides a thread whose root is gone: nothing leads to its replies any more.
func (g *group) archiveThread(ctx context.Context, w *workspace, key readstate.ScopeKey) error {
	thread, err := g.scopeByKey(ctx, key)
	if err != nil || thread.Info.Archived {
		return err
	}
	thread.Info.Archived = true
	thread.Ranks.LastLSN = w.LSN
	g.storeScope(w, thread)
	return nil
}

// renew finds a scope's newest live message again, once, when it was removed.
func (g *group) renew(
	ctx context.Context, key readstate.ScopeKey, newestGone map[readstate.ScopeKey]bool,
) error {
	if !newestGone[key] {
		return nil
	}
	newestGone[key] = false
	if err := g.flush(ctx); err != nil {
		return err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	latest, err := tx.Newest(ctx, key)
	if err != nil {
		return broken("newest message", err)
	}
	scope, err := g.scopeByKey(ctx, key)
	if err != nil {
		return err
	}
	scope.Ranks.Latest = latest
	g.scopes.put(key, scope)
	return nil
}

func (g *group) emitRemoval(ctx context.Context, w *workspace, m *MessageRow) error {
	scope, err := g.scopeByKey(ctx, m.Scope)
	if err != nil {
		return err
	}
	w.emit(readstate.RemovalEvent{
		Scope: m.Scope, Seq: m.Seq, Revision: m.Revision, Author: m.Author,
		Principal: m.Principal, Named: slices.Clone(m.Named),
		Recipients: slices.Clone(m.Recipients), Everyone: m.Everyone,
		Latest: scope.Ranks.Latest, Replies: scope.Ranks.Replies,
	})
	return g.announce(ctx, w, scope, MessageRemoved, m)
}

type expire struct{}

func (o *expire) name() string                       { return "expire" }
func (o *expire) rows() int                          { return batchEntries }
func (o *expire) gather(*workspace, *needs)          {}
func (o *expire) resolve(*group, *workspace, *needs) {}

// run removes a batch of messages whose time has passed. They were live until now.
func (o *expire) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := g.flush(ctx); err != nil {
		return nil, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Expired(ctx, w.Key, g.clock, batchEntries)
	if err != nil {
		return nil, broken("load expired", err)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	entries := make([]*MessageRow, len(rows))
	for i, r := range rows {
		entries[i] = g.messages.loaded(r)
	}
	g.touch(w)
	return len(entries), g.removeEntries(ctx, w, entries)
}

// receiptHorizon is how long the receipts of operations without a message are kept.
const receiptHorizon = 30 * 24 * 3600 * 1000

type forget struct{}

func (o *forget) name() string                       { return "forget receipts" }
func (o *forget) rows() int                          { return 1 }
func (o *forget) gather(*workspace, *needs)          {}
func (o *forget) resolve(*group, *workspace, *needs) {}

func (o *forget) run(_ context.Context, g *group, w *workspace) (any, error) {
	g.touch(w)
	g.changes.ForgetReceiptsBefore = g.clock - receiptHorizon
	return Setting{LSN: w.LSN}, nil
}
