package factstest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// RegistryOpener opens a fresh store with its registry. The suite closes the store.
type RegistryOpener func(t *testing.T) (facts.Store, facts.Registry)

// clubs is a registry over a store with a few workspaces.
type clubs struct {
	facts.Registry
	t     *testing.T
	store facts.Store
}

const long = time.Hour

// TestRegistry is what a registry has to do.
//
// covers: RT-007
func TestRegistry(t *testing.T, open RegistryOpener) {
	for _, part := range []struct {
		name string
		run  func(c *clubs)
	}{
		{"Claims", claimsAreOfOne}, {"Leases", leasesEnd}, {"Names", namesAreKept},
		{"LaterProcess", aLaterProcessHasTheName}, {"Releases", releasesAreOfOwners},
		{"ManyClaim", manyClaimAtOnce}, {"RenewedWhileClaimed", renewedWhileClaimed},
		{"NewWorkspaces", newWorkspaces}, {"ManyMakeWorkspaces", manyMakeWorkspaces},
	} {
		t.Run(part.name, func(t *testing.T) {
			store, registry := open(t)
			r := newRig(t, store, facts.LaneConfig{})
			for i := range 5 {
				id := readstate.WorkspaceID(fmt.Sprint("w", i))
				if _, err := r.lane.PutWorkspace(t.Context(), facts.PutWorkspace{ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			part.run(&clubs{Registry: registry, t: t, store: store})
		})
	}
}

func (c *clubs) enroll(node string, ttl time.Duration) facts.Seat {
	c.t.Helper()
	epoch, err := c.Enroll(c.t.Context(), facts.NodeInfo{Node: node, Address: "http://" + node}, ttl)
	if err != nil {
		c.t.Fatal(err)
	}
	return facts.Seat{Node: node, Epoch: epoch}
}

func (c *clubs) survey() facts.Survey {
	c.t.Helper()
	s, err := c.Survey(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// claims are all workspaces as they are now.
func (c *clubs) claims() (all []facts.Claim) {
	for _, w := range c.survey().Workspaces {
		all = append(all, facts.Claim{Key: w.Key, Term: w.Term})
	}
	return all
}

func (c *clubs) claim(n facts.Seat, claims []facts.Claim) []facts.WorkspaceRow {
	c.t.Helper()
	rows, err := c.Claim(c.t.Context(), n, claims)
	if err != nil {
		c.t.Fatal(err)
	}
	return rows
}

// owned is how many workspaces a node owns.
func (c *clubs) owned(node string) (n int) {
	for _, w := range c.survey().Workspaces {
		if w.Owner == node {
			n++
		}
	}
	return n
}

// ended waits for the end of a lease by the store's clock.
func (c *clubs) ended(node string) {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		for _, n := range c.survey().Nodes {
			if n.Node == node && n.Left <= 0 {
				return
			}
		}
	}
	c.t.Fatalf("the lease of %s does not end", node)
}

func (c *clubs) refused(what string, err error) {
	c.t.Helper()
	if !errors.Is(err, facts.ErrNotOwner) {
		c.t.Errorf("%s: %v", what, err)
	}
}

func claimsAreOfOne(c *clubs) {
	a, b := c.enroll("a", long), c.enroll("b", long)
	all := c.claims()
	before := c.survey().Workspaces
	rows := c.claim(a, all[:3])
	if len(rows) != 3 {
		c.t.Fatalf("a has %+v", rows)
	}
	for i, w := range rows {
		if w.Key != before[i].Key || w.ID != before[i].ID || w.Term != before[i].Term+1 {
			c.t.Errorf("%+v was %+v", w, before[i])
		}
	}
	fences, err := c.store.Fences(c.t.Context(), []facts.WorkspaceKey{rows[0].Key})
	if err != nil || fences[rows[0].Key].Term != rows[0].Term {
		c.t.Errorf("the term is %+v, %v", fences, err)
	}
	if rows := c.claim(b, all); len(rows) != len(all)-3 {
		c.t.Errorf("with old terms b has %+v", rows)
	}
	if rows := c.claim(b, c.claims()); c.owned("a") != 3 || len(rows) != len(all)-3 {
		c.t.Errorf("with new terms b has %+v, which raises them once more", rows)
	}
	if rows := c.claim(a, nil); len(rows) != 0 {
		c.t.Errorf("a claims nothing and has %+v", rows)
	}
	_, err = c.Claim(c.t.Context(), facts.Seat{Node: "nobody", Epoch: 1}, c.claims())
	c.refused("a claim of nobody", err)
}

func leasesEnd(c *clubs) {
	a, b := c.enroll("a", long), c.enroll("b", long)
	c.claim(a, c.claims())
	if rows := c.claim(b, c.claims()); len(rows) != 0 {
		c.t.Errorf("during the lease of a b has %+v", rows)
	}
	if err := c.Renew(c.t.Context(), a, 50*time.Millisecond); err != nil {
		c.t.Fatal(err)
	}
	c.ended("a")
	_, err := c.Claim(c.t.Context(), a, c.claims())
	c.refused("a claim without a lease", err)
	c.refused("a release without a lease", c.Release(c.t.Context(), a, c.claims()))
	if err := c.Renew(c.t.Context(), a, long); err != nil {
		c.t.Errorf("a lease that ended is renewed: %v", err)
	}
	if rows := c.claim(b, c.claims()); len(rows) != 0 {
		c.t.Errorf("when a has renewed b has %+v", rows)
	}
	if err := c.Renew(c.t.Context(), a, 0); err != nil {
		c.t.Error(err)
	}
	if rows := c.claim(b, c.claims()); len(rows) == 0 || c.owned("a") != 0 {
		c.t.Errorf("when the lease of a has ended b has %+v", rows)
	}
}

func namesAreKept(c *clubs) {
	infos := []facts.NodeInfo{
		{Node: " ", Only: []readstate.WorkspaceID{}},
		{Node: "A", Address: "http://[::1]:1"},
		{Node: "a", Only: []readstate.WorkspaceID{"w1", `"w\ü`}},
		{Node: "a ", Address: "x"},
	}
	for _, n := range infos {
		if _, err := c.Enroll(c.t.Context(), n, long); err != nil {
			c.t.Fatal(err)
		}
	}
	nodes := c.survey().Nodes
	if len(nodes) != len(infos) {
		c.t.Fatalf("there are %+v", nodes)
	}
	for i, n := range nodes {
		if !reflect.DeepEqual(n.NodeInfo, infos[i]) || n.Epoch != 1 || n.Left <= 0 || n.Left > long {
			c.t.Errorf("%+v became %+v", infos[i], n)
		}
	}
}

func aLaterProcessHasTheName(c *clubs) {
	first := c.enroll("a", long)
	c.claim(first, c.claims())
	second := c.enroll("a", long)
	if second.Epoch <= first.Epoch || c.owned("a") == 0 {
		c.t.Errorf("%+v follows %+v, and owns %d", second, first, c.owned("a"))
	}
	before := c.survey()
	ctx := c.t.Context()
	c.refused("a renewal", c.Renew(ctx, first, 2*long))
	_, err := c.Claim(ctx, first, c.claims())
	c.refused("a claim", err)
	c.refused("a release", c.Release(ctx, first, c.claims()))
	c.refused("a retirement", c.Retire(ctx, first))
	if after := c.survey(); !reflect.DeepEqual(before.Workspaces, after.Workspaces) ||
		after.Nodes[0].Left > long {
		c.t.Errorf("what was refused changed %+v to %+v", before, after)
	}
	if rows := c.claim(second, c.claims()); len(rows) != len(before.Workspaces) {
		c.t.Errorf("the second has %+v", rows)
	}
}

func releasesAreOfOwners(c *clubs) {
	a, b := c.enroll("a", long), c.enroll("b", long)
	old := c.claims()
	c.claim(a, old)
	ctx := c.t.Context()
	if err := errors.Join(c.Release(ctx, b, c.claims()), c.Release(ctx, a, old)); err != nil {
		c.t.Error(err)
	}
	if n := c.owned("a"); n != len(old) {
		c.t.Errorf("released by others and at other terms: a has %d of %d", n, len(old))
	}
	if err := c.Release(ctx, a, c.claims()[:2]); err != nil || c.owned("a") != len(old)-2 {
		c.t.Errorf("two are released: a has %d of %d, %v", c.owned("a"), len(old), err)
	}
	if rows := c.claim(b, c.claims()); len(rows) != 2 {
		c.t.Errorf("b has %+v", rows)
	}
	if err := c.Retire(ctx, a); err != nil || c.owned("a") != 0 || c.owned("b") != 2 {
		c.t.Errorf("a retires: a has %d, b %d, %v", c.owned("a"), c.owned("b"), err)
	}
	_, err := c.Claim(ctx, a, c.claims())
	c.refused("a claim of the retired", err)
}

func manyClaimAtOnce(c *clubs) {
	const nodes = 6
	all := c.claims()
	won := make([][]facts.WorkspaceRow, nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		seat := c.enroll(fmt.Sprint("n", i), long)
		wg.Go(func() {
			for range 20 {
				rows, err := c.Claim(c.t.Context(), seat, all)
				if err == nil {
					won[i] = rows
					return
				}
				if !errors.Is(err, facts.ErrUnavailable) { // the store gave one of two up
					c.t.Error(err)
					return
				}
			}
			c.t.Error("a claim is always given up")
		})
	}
	wg.Wait()
	owners := map[facts.WorkspaceKey]string{}
	for i, rows := range won {
		for _, w := range rows {
			if other, ok := owners[w.Key]; ok {
				c.t.Errorf("%s is claimed by %s and n%d", w.ID, other, i)
			}
			owners[w.Key] = fmt.Sprint("n", i)
		}
	}
	for i, w := range c.survey().Workspaces {
		if w.Owner == "" || w.Owner != owners[w.Key] || w.Term != all[i].Term+1 {
			c.t.Errorf("%+v was won by %s at term %d", w, owners[w.Key], all[i].Term)
		}
	}
}

// A node that renews a lease which has ended, and then finds that it still owns a workspace, owns it:
// no claim that was under way takes it afterwards.
func renewedWhileClaimed(c *clubs) {
	for range 30 {
		a, b := c.enroll("a", long), c.enroll("b", long)
		mine := c.claim(a, c.claims()[:1])
		if len(mine) != 1 {
			c.t.Fatalf("a has %+v", mine)
		}
		ctx := c.t.Context()
		if err := c.Renew(ctx, a, 0); err != nil {
			c.t.Fatal(err)
		}
		claim := []facts.Claim{{Key: mine[0].Key, Term: mine[0].Term}}
		var taken []facts.WorkspaceRow
		var kept bool
		var wg sync.WaitGroup
		wg.Go(func() { taken, _ = c.Claim(ctx, b, claim) }) // the store may give it up
		wg.Go(func() {
			if c.Renew(ctx, a, long) == nil {
				w := c.survey().Workspaces[0]
				kept = w.Owner == "a" && w.Term == mine[0].Term
			}
		})
		wg.Wait()
		if kept && len(taken) > 0 {
			c.t.Fatal("a found that it owns what b has claimed")
		}
		if err := errors.Join(c.Retire(ctx, a), c.Retire(ctx, b)); err != nil {
			c.t.Fatal(err)
		}
	}
}
