package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// What tasks and dms need beside the rows of a group. It is never asked for where a group has
// neither.

// loadAudiences loads the facts and the watchers of tasks, and names the rows of those who may
// have to be told.
func (g *group) loadAudiences(ctx context.Context, n *needs) error {
	if err := g.loadRosters(ctx, n.dms); err != nil {
		return err
	}
	if err := g.loadWatchers(ctx, n.watched); err != nil || len(n.tasks) == 0 {
		return err
	}
	if err := g.loadTasks(ctx, n.tasks); err != nil {
		return err
	}
	if err := g.loadWatchers(ctx, n.tasks); err != nil {
		return err
	}
	var members []readstate.MemberKey
	seen := map[readstate.ScopeKey]bool{}
	for _, s := range n.tasks {
		if seen[s] {
			continue
		}
		seen[s] = true
		watchers, _, _ := g.watchers.get(s)
		task, _, _ := g.tasks.get(s)
		for _, m := range append(watchers[:len(watchers):len(watchers)], task.Assignee) {
			if m != 0 {
				n.rows = append(n.rows, RowKey{s, m})
				members = append(members, m)
			}
		}
	}
	return g.loadPrincipals(ctx, members)
}

func (g *group) loadTasks(ctx context.Context, scopes []readstate.ScopeKey) error {
	scopes = unknown(g.tasks, scopes, g.madeScope)
	if len(scopes) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.Tasks(ctx, scopes)
	if err != nil {
		return broken("load tasks", err)
	}
	for _, r := range rows {
		g.tasks.loaded(r.Scope, r, true)
	}
	for _, s := range scopes {
		g.tasks.loaded(s, TaskRow{}, false)
	}
	return nil
}

func (g *group) loadWatchers(ctx context.Context, scopes []readstate.ScopeKey) error {
	scopes = unknown(g.watchers, scopes, g.madeScope)
	if len(scopes) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.Watchers(ctx, scopes)
	if err != nil {
		return broken("load watchers", err)
	}
	lists := byScope(rows)
	for _, s := range scopes {
		g.watchers.loaded(s, lists[s], len(lists[s]) > 0)
	}
	return nil
}

func (g *group) loadRosters(ctx context.Context, scopes []readstate.ScopeKey) error {
	scopes = unknown(g.rosters, scopes, g.madeScope)
	if len(scopes) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.Joined(ctx, scopes, MaxIndexedDM+1)
	if err != nil {
		return broken("load joined members", err)
	}
	lists := byScope(rows)
	for _, s := range scopes {
		g.rosters.loaded(s, rosterFrom(lists[s]), true)
	}
	return nil
}

// byScope collects the members of rows, in their order.
func byScope(rows []RowKey) map[readstate.ScopeKey][]readstate.MemberKey {
	out := map[readstate.ScopeKey][]readstate.MemberKey{}
	for _, r := range rows {
		out[r.Scope] = append(out[r.Scope], r.Member)
	}
	return out
}

func (g *group) loadPrincipals(ctx context.Context, members []readstate.MemberKey) error {
	members = unknown(g.principals, members, g.madeMember)
	if len(members) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.Members(ctx, members)
	if err != nil {
		return broken("load members", err)
	}
	for _, r := range rows {
		g.principals.loaded(r.Key, r, true)
	}
	return nil
}
