package facts

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// needs collects what the operations of a group will look up, so that each kind is loaded by
// one statement. It only ever saves statements.
type needs struct {
	members  map[WorkspaceKey][]readstate.MemberID
	scopes   map[WorkspaceKey][]readstate.ScopeID
	rows     []RowKey
	writers  []RowKey
	posts    []OpKey // ids of appends, nearly all of them new
	receipts []OpKey // ids of other operations
	messages map[readstate.ScopeKey][]string
	blockers []readstate.MemberKey
	removed  []BlockKey
	tasks    []readstate.ScopeKey // whose watchers and assignee may have to be told
	watched  []readstate.ScopeKey // tasks of which only the watchers are asked for
	dms      []readstate.ScopeKey
	inboxes  []readstate.MemberKey // of whom a message may be addressed to
}

func newNeeds() *needs {
	return &needs{
		members:  map[WorkspaceKey][]readstate.MemberID{},
		scopes:   map[WorkspaceKey][]readstate.ScopeID{},
		messages: map[readstate.ScopeKey][]string{},
	}
}

func (n *needs) member(w *workspace, ids ...readstate.MemberID) {
	for _, id := range ids {
		if id != "" {
			n.members[w.Key] = append(n.members[w.Key], id)
		}
	}
}

func (n *needs) scope(w *workspace, ids ...readstate.ScopeID) {
	for _, id := range ids {
		if id != "" {
			n.scopes[w.Key] = append(n.scopes[w.Key], id)
		}
	}
}

// row asks for a member's row in a scope with the writer totals beside it.
func (n *needs) row(s readstate.ScopeKey, m readstate.MemberKey) {
	if s != 0 && m != 0 {
		n.rows = append(n.rows, RowKey{s, m})
		n.writers = append(n.writers, RowKey{s, m})
	}
}

// audience asks for whom an entry of the scope may have to be delivered to.
func (n *needs) audience(g *group, s ScopeRow) {
	switch s.Info.Type {
	case readstate.Task:
		n.tasks = append(n.tasks, s.Info.Key)
	case readstate.DM:
		n.dms = append(n.dms, s.Info.Key)
	case readstate.Thread: // its broadcast replies are entries of what it hangs under
		if up, ok, _ := g.scopes.get(s.Info.Parent); ok && up.Info.Type == readstate.DM {
			n.dms = append(n.dms, s.Info.Parent)
		}
	}
}

func (n *needs) message(s readstate.ScopeKey, id string) {
	if s != 0 && id != "" {
		n.messages[s] = append(n.messages[s], id)
	}
}

// prepare loads what the requests gather, first by id, then by key.
func (g *group) prepare(ctx context.Context, requests []*request) error {
	n := newNeeds()
	for _, r := range requests {
		if w := g.workspaces[r.workspace]; w != nil {
			r.op.gather(w, n)
		}
	}
	for w, ids := range n.members {
		if err := g.loadMembers(ctx, w, ids); err != nil {
			return err
		}
	}
	for w, ids := range n.scopes {
		if err := g.loadScopes(ctx, w, ids); err != nil {
			return err
		}
	}
	for _, r := range requests {
		if w := g.workspaces[r.workspace]; w != nil {
			r.op.resolve(g, w, n)
		}
	}
	if err := g.loadAudiences(ctx, n); err != nil {
		return err
	}
	if err := g.loadAddressees(ctx, n); err != nil {
		return err
	}
	if err := g.loadRows(ctx, n.rows); err != nil {
		return err
	}
	if err := g.loadWriters(ctx, n.writers); err != nil {
		return err
	}
	if err := g.loadOps(ctx, n.posts, g.careful > 0); err != nil {
		return err
	}
	if err := g.loadOps(ctx, n.receipts, true); err != nil {
		return err
	}
	if err := g.loadBlocks(ctx, n.removed); err != nil {
		return err
	}
	for s, ids := range n.messages {
		if err := g.loadMessages(ctx, s, ids); err != nil {
			return err
		}
	}
	if err := g.loadBlockers(ctx, n.blockers); err != nil {
		return err
	}
	return g.loadInboxes(ctx, n.inboxes)
}

// madeScope reports that the group itself has made the scope: the store has nothing about it but
// what the group knows anyway.
func (g *group) madeScope(k readstate.ScopeKey) bool {
	w := g.byKey[WorkspaceKey(k>>32)]
	return w != nil && uint32(k) > w.before.LastScope
}

// madeMember is madeScope for a member.
func (g *group) madeMember(k readstate.MemberKey) bool {
	w := g.byKey[WorkspaceKey(k>>32)]
	return w != nil && uint32(k) > w.before.LastMember
}

func (g *group) madeRow(k RowKey) bool { return g.madeScope(k.Scope) || g.madeMember(k.Member) }

// unknown keeps the keys that the table has to ask the store for, each once; fresh tells those
// that the store cannot have.
func unknown[K comparable, V any](t *table[K, V], keys []K, fresh func(K) bool) []K {
	var out []K
	seen := map[K]struct{}{}
	for _, k := range keys {
		if _, _, known := t.get(k); known || fresh(k) {
			continue
		}
		if _, ok := seen[k]; !ok {
			seen[k] = struct{}{}
			out = append(out, k)
		}
	}
	return out
}

// never is for keys by name, which the store may have whatever the group has made.
func never[K any](K) bool { return false }

func (g *group) loadMembers(ctx context.Context, w WorkspaceKey, ids []readstate.MemberID) error {
	names := make([]memberName, len(ids))
	for i, id := range ids {
		names[i] = memberName{w, id}
	}
	names = unknown(g.memberKeys, names, never)
	if len(names) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	ask := make([]readstate.MemberID, len(names))
	for i, n := range names {
		ask[i] = n.id
	}
	rows, err := tx.MembersByID(ctx, w, ask)
	if err != nil {
		return broken("load members", err)
	}
	for _, r := range rows {
		g.memberKeys.loaded(memberName{w, r.ID}, r.Key, true)
		g.principals.loaded(r.Key, r, true)
	}
	for _, n := range names {
		g.memberKeys.loaded(n, 0, false)
	}
	return nil
}

func (g *group) loadScopes(ctx context.Context, w WorkspaceKey, ids []readstate.ScopeID) error {
	names := make([]scopeName, len(ids))
	for i, id := range ids {
		names[i] = scopeName{w, id}
	}
	names = unknown(g.scopeKeys, names, never)
	if len(names) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	ask := make([]readstate.ScopeID, len(names))
	for i, n := range names {
		ask[i] = n.id
	}
	rows, err := tx.ScopesByID(ctx, w, ask)
	if err != nil {
		return broken("load scopes", err)
	}
	var parents []readstate.ScopeKey
	for _, r := range rows {
		g.scopeKeys.loaded(scopeName{w, r.Info.ID}, r.Info.Key, true)
		g.scopes.loaded(r.Info.Key, r, true)
		if r.Info.Parent != 0 {
			parents = append(parents, r.Info.Parent)
		}
	}
	for _, n := range names {
		g.scopeKeys.loaded(n, 0, false)
	}
	return g.loadScopeKeys(ctx, parents)
}

func (g *group) loadScopeKeys(ctx context.Context, keys []readstate.ScopeKey) error {
	keys = unknown(g.scopes, keys, g.madeScope)
	if len(keys) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.Scopes(ctx, keys)
	if err != nil {
		return broken("load scopes", err)
	}
	for _, r := range rows {
		g.scopes.loaded(r.Info.Key, r, true)
	}
	return nil
}

func (g *group) loadRows(ctx context.Context, keys []RowKey) error {
	keys = unknown(g.states, keys, g.madeRow)
	if len(keys) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.States(ctx, keys)
	if err != nil {
		return broken("load rows", err)
	}
	for _, r := range rows {
		g.states.loaded(r.RowKey, r, true)
	}
	for _, k := range keys {
		g.states.loaded(k, StateRow{}, false)
	}
	return nil
}

func (g *group) loadWriters(ctx context.Context, keys []RowKey) error {
	keys = unknown(g.writers, keys, g.madeRow)
	if len(keys) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.Writers(ctx, keys)
	if err != nil {
		return broken("load writer totals", err)
	}
	for _, r := range rows {
		g.writers.loaded(r.RowKey, r, true)
	}
	for _, k := range keys {
		g.writers.loaded(k, WriterRow{}, false)
	}
	return nil
}

func (g *group) loadMessages(ctx context.Context, s readstate.ScopeKey, ids []string) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		_, ok := g.messages.byID[messageName{s, id}]
		return ok
	})
	if len(ids) == 0 || g.madeScope(s) {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.MessagesByID(ctx, s, ids)
	if err != nil {
		return broken("load messages", err)
	}
	for _, m := range rows {
		g.messages.loaded(m)
	}
	for _, id := range ids {
		g.messages.absent(messageName{s, id})
	}
	return nil
}

func (g *group) loadBlocks(ctx context.Context, keys []BlockKey) error {
	keys = unknown(g.blocks, keys, func(k BlockKey) bool { return g.madeScope(k.Scope) })
	if len(keys) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.Blocks(ctx, keys)
	if err != nil {
		return broken("load revision blocks", err)
	}
	for _, r := range rows {
		g.blocks.loaded(r.BlockKey, r, true)
	}
	for _, k := range keys {
		g.blocks.loaded(k, BlockRow{BlockKey: k}, false)
	}
	return nil
}

func (g *group) loadBlockers(ctx context.Context, members []readstate.MemberKey) error {
	members = unknown(g.blockedBy, members, g.madeMember)
	if len(members) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	pairs, err := tx.BlockedBy(ctx, members)
	if err != nil {
		return broken("load blocks", err)
	}
	others := map[readstate.MemberKey][]readstate.MemberKey{}
	for _, p := range pairs {
		others[p.Member] = append(others[p.Member], p.Other)
	}
	for _, m := range members {
		g.blockedBy.loaded(m, others[m], len(others[m]) > 0)
	}
	return nil
}
