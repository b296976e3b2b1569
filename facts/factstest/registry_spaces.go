package factstest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

func (c *clubs) put(id, name string) (facts.WorkspaceRow, bool) {
	c.t.Helper()
	row, created, err := c.PutWorkspace(c.t.Context(), facts.PutWorkspace{
		ID: readstate.WorkspaceID(id), Name: name,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return row, created
}

// newWorkspaces: one that is made can be claimed, one that exists is renamed whoever owns it, and what no
// workspace may be called changes nothing.
func newWorkspaces(c *clubs) {
	a := c.enroll("a", long)
	c.claim(a, c.claims())
	before := len(c.survey().Workspaces)
	row, created := c.put(`neu "\ü`, "one")
	if !created || row.Term == 0 || row.Name != "one" {
		c.t.Errorf("created %+v, %v", row, created)
	}
	all := c.survey().Workspaces
	if len(all) != before+1 || all[before].Key != row.Key || all[before].ID != row.ID || all[before].Owner != "" {
		c.t.Fatalf("there are %+v", all)
	}
	if rows := c.claim(a, c.claims()); len(rows) != len(all) || rows[before].Name != "one" {
		c.t.Errorf("claimed %+v", rows)
	}
	again, created := c.put(string(row.ID), "two")
	if created || again.Key != row.Key || again.Name != "two" {
		c.t.Errorf("renamed %+v, %v", again, created)
	}
	if _, created := c.put(string(row.ID), "two"); created {
		c.t.Error("the same once more makes another one")
	}
	if c.owned("a") != len(all) {
		c.t.Errorf("after a new name a owns %d of %d", c.owned("a"), len(all))
	}
	for _, bad := range []facts.PutWorkspace{
		{}, {ID: ".."}, {ID: "a\x00b"}, {ID: readstate.WorkspaceID(strings.Repeat("x", 200))},
		{ID: "fine", Name: "\xff"},
	} {
		if _, _, err := c.PutWorkspace(c.t.Context(), bad); !errors.Is(err, facts.ErrInvalid) {
			c.t.Errorf("%+v: %v", bad, err)
		}
	}
	if n := len(c.survey().Workspaces); n != len(all) {
		c.t.Errorf("refused ones made %d workspaces of %d", n, len(all))
	}
}

// manyMakeWorkspaces: those who make workspaces at the same time get keys of their own, and one id is one
// workspace.
func manyMakeWorkspaces(c *clubs) {
	const makers, each = 4, 4
	before := len(c.survey().Workspaces)
	made := make([]int, makers)
	var wg sync.WaitGroup
	for i := range makers {
		wg.Go(func() {
			for k := range each {
				for _, id := range []string{fmt.Sprint("of", i, "-", k), fmt.Sprint("ours", k)} {
					_, created, err := c.PutWorkspace(c.t.Context(), facts.PutWorkspace{
						ID: readstate.WorkspaceID(id),
					})
					if err != nil {
						c.t.Error(err)
					}
					if created {
						made[i]++
					}
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range made {
		sum += n
	}
	all := c.survey().Workspaces
	if want := makers*each + each; sum != want || len(all)-before != want {
		c.t.Errorf("%d were made, and %d are there more; want %d", sum, len(all)-before, want)
	}
	keys := map[facts.WorkspaceKey]readstate.WorkspaceID{}
	for _, w := range all {
		if other, ok := keys[w.Key]; ok {
			c.t.Errorf("%s and %s have one key", other, w.ID)
		}
		keys[w.Key] = w.ID
	}
}
