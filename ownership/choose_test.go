package ownership

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

func living(names ...string) (nodes []facts.NodeRow) {
	for _, n := range names {
		nodes = append(nodes, facts.NodeRow{NodeInfo: facts.NodeInfo{Node: n}, Left: time.Second})
	}
	return nodes
}

func workspaces(n int) (ids []readstate.WorkspaceID) {
	for i := range n {
		ids = append(ids, readstate.WorkspaceID(fmt.Sprint("w", i)))
	}
	return ids
}

// A node that comes or goes moves what it gets or had, and nothing between the others.
func TestAChangeOfNodesMovesLittle(t *testing.T) {
	three, four := living("a", "b", "c"), living("a", "b", "c", "d")
	shares := map[string]int{}
	for _, w := range workspaces(4000) {
		before, after := Chosen(three, w), Chosen(four, w)
		if after != before && after != "d" {
			t.Errorf("%s goes from %s to %s because d came", w, before, after)
		}
		shares[after]++
	}
	for n, share := range shares {
		if share < 900 || share > 1100 {
			t.Errorf("%s has %d of 4000 workspaces", n, share)
		}
	}
}

// Nodes whose lease has ended, and those that may not own a workspace, are not chosen.
func TestOnlyThoseWhoMayAreChosen(t *testing.T) {
	nodes := living("a", "b", "c")
	nodes[0].Left = 0
	nodes[1].Only = []readstate.WorkspaceID{"w1", "w2"}
	nodes[2].Only = []readstate.WorkspaceID{}
	for w, want := range map[readstate.WorkspaceID]string{"w1": "b", "w2": "b", "w3": ""} {
		if got := Chosen(nodes, w); got != want {
			t.Errorf("%s is for %q, not %q", w, got, want)
		}
	}
}

// Every process and every release has to choose alike: while a cluster is upgraded both are at work.
func TestTheChoiceIsTheSameForEver(t *testing.T) {
	nodes := living("n1", "n2", "n3")
	for w, want := range map[readstate.WorkspaceID]string{
		"acme": "n2", "globex": "n3", "initech": "n3", "übung": "n1",
	} {
		if got := Chosen(nodes, w); got != want {
			t.Errorf("%s is for %s, and was for %s", w, got, want)
		}
	}
}
