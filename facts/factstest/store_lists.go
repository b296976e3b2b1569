package factstest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// testLists pages through what a view lists.
func testLists(_ *testing.T, w *world) {
	me, other := w.member(), w.member()
	c := &facts.Changes{Members: []facts.MemberChange{memberRow(me, "me"), memberRow(other, "o")}}
	add := func(id string, t readstate.ScopeType, parent readstate.ScopeKey) readstate.ScopeKey {
		row := scopeRow(w.scope(), id, t)
		row.Info.Parent = parent
		for _, p := range c.Scopes {
			if p.Info.Key == parent {
				row.Info.ParentID = p.Info.ID
			}
		}
		c.Scopes = append(c.Scopes, row)
		return row.Info.Key
	}
	join := func(s readstate.ScopeKey, m readstate.MemberKey, joined, visible bool, epoch uint64) {
		row := stateRow(s, m)
		row.Row.Joined, row.Row.Visible, row.Row.Epoch, row.Row.ParentEpoch = joined, visible, epoch, 4
		c.States = append(c.States, row)
	}
	b := add("b", readstate.Channel, 0)
	a := add("a", readstate.DM, 0)
	hidden := add("hidden", readstate.Channel, 0)
	left := add("left", readstate.Channel, 0)
	t1, t2 := add("t1", readstate.Thread, b), add("t2", readstate.Thread, b)
	t3 := add("t3", readstate.Thread, hidden)
	t4 := add("t4", readstate.Thread, left)
	join(b, me, true, true, 4)
	join(a, me, true, true, 9) // its epoch matters to no thread
	join(hidden, me, true, false, 4)
	join(left, me, false, true, 4)
	for _, s := range []readstate.ScopeKey{t1, t2, t3, t4} {
		join(s, me, s != t2, true, 1)
		join(s, other, true, true, 1)
	}
	join(b, other, true, false, 3) // another epoch than that of the threads
	w.write(c)
	check := func(what string, q facts.ScopeQuery, want ...string) {
		w.Helper()
		q.Workspace = w.key
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []string
			q.Limit, q.After = limit, ""
			w.view(func(v facts.View) {
				for {
					page, err := v.ListScopes(w.Context(), q)
					w.ok(err)
					for _, row := range page {
						i := slices.IndexFunc(c.Scopes, func(s facts.ScopeRow) bool {
							return s.Info.Key == row.Info.Key
						})
						w.same("scope", row, c.Scopes[i])
						got = append(got, string(row.Info.ID))
						q.After = row.Info.ID
					}
					if len(page) < limit {
						break
					}
				}
			})
			w.same(fmt.Sprintf("%s, %d a page", what, limit), got, want)
		}
	}
	check("all", facts.ScopeQuery{}, "a", "b", "hidden", "left", "t1", "t2", "t3", "t4")
	check("dms", facts.ScopeQuery{Type: readstate.DM}, "a")
	check("channels", facts.ScopeQuery{Type: readstate.Channel}, "b", "hidden", "left")
	check("threads of b", facts.ScopeQuery{Parent: b}, "t1", "t2")
	check("tasks of b", facts.ScopeQuery{Parent: b, Type: readstate.Task})
	check("mine", facts.ScopeQuery{Member: me}, "a", "b", "t1")
	check("my threads", facts.ScopeQuery{Member: me, Type: readstate.Thread}, "t1")
	check("mine under b", facts.ScopeQuery{Member: me, Parent: b}, "t1")
	check("the other's", facts.ScopeQuery{Member: other})
	w.roster(c, b, me, other)
}

func (w *world) roster(
	c *facts.Changes, scope readstate.ScopeKey, members ...readstate.MemberKey,
) {
	w.Helper()
	var want []facts.RosterRow
	for _, m := range members {
		row := facts.RosterRow{}
		for _, s := range c.States {
			if s.RowKey == (facts.RowKey{Scope: scope, Member: m}) {
				row.StateRow = s
			}
		}
		for _, change := range c.Members {
			if change.Key == m {
				row.Info = change.MemberInfo
			}
		}
		want = append(want, row)
	}
	w.view(func(v facts.View) {
		all, err := v.ListRoster(w.Context(), scope, 0, 10)
		w.ok(err)
		w.same("roster", all, want)
		first, err := v.ListRoster(w.Context(), scope, 0, 1)
		w.ok(err)
		w.same("first of the roster", first, want[:1])
		rest, err := v.ListRoster(w.Context(), scope, first[0].Member, 10)
		w.ok(err)
		w.same("rest of the roster", rest, want[1:])
	})
}
