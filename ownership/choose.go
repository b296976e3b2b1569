package ownership

import (
	"hash/fnv"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Chosen returns the node that is to own a workspace: the one with the highest weight among those
// that live and may own it. It is empty where there is none.
func Chosen(nodes []facts.NodeRow, w readstate.WorkspaceID) string {
	chosen, most := "", uint64(0)
	for i := range nodes {
		n := &nodes[i]
		if !eligible(n, w) {
			continue
		}
		if x := weight(n.Node, w); chosen == "" || x > most || x == most && n.Node < chosen {
			chosen, most = n.Node, x
		}
	}
	return chosen
}

func eligible(n *facts.NodeRow, w readstate.WorkspaceID) bool {
	return n.Left > 0 && mayOwn(&n.NodeInfo, w)
}

func mayOwn(n *facts.NodeInfo, w readstate.WorkspaceID) bool {
	return n.Only == nil || slices.Contains(n.Only, w)
}

// weight is the same in every process and release: a change of it moves every workspace.
func weight(node string, w readstate.WorkspaceID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node)) // a hash takes everything
	_, _ = h.Write([]byte{0})    // no name has this byte
	_, _ = h.Write([]byte(w))
	x := h.Sum64() // whose high bits change little with the last byte
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// step is what a node has to do next, as of a survey.
type step struct {
	lost    []readstate.WorkspaceID // held here, and not this process's any more
	release []facts.OwnedRow        // this node's, and better owned by another one
	claim   []facts.Claim
}

// next compares what a process holds, workspaces at their terms, with a survey. Of what another node
// is to own it releases at most moves, and all of what it may not own itself any more.
func next(
	self facts.Seat, me *facts.NodeInfo, held map[readstate.WorkspaceID]uint64, s *facts.Survey,
	moves int,
) step {
	var out step
	lasts := make(map[string]bool, len(s.Nodes)) // leases
	for i := range s.Nodes {
		lasts[s.Nodes[i].Node] = s.Nodes[i].Left > 0
	}
	found := make(map[readstate.WorkspaceID]bool, len(held))
	for i := range s.Workspaces {
		w := &s.Workspaces[i]
		mine := w.Owner == self.Node
		term, here := held[w.ID]
		found[w.ID] = here
		if here && (!mine || term != w.Term) {
			out.lost = append(out.lost, w.ID)
			here = false
		}
		switch chosen := Chosen(s.Nodes, w.ID); {
		case here && !mayOwn(me, w.ID):
			out.release = append(out.release, *w)
		case here && chosen != self.Node && chosen != "" && moves > 0:
			moves--
			out.release = append(out.release, *w)
		case !here && mine && chosen != self.Node: // claimed, and the answer was lost
			out.release = append(out.release, *w)
		case !here && chosen == self.Node && (mine || w.Owner == "" || !lasts[w.Owner]):
			out.claim = append(out.claim, facts.Claim{Key: w.Key, Term: w.Term})
		}
	}
	for w := range held {
		if !found[w] { // it was removed from the store
			out.lost = append(out.lost, w)
		}
	}
	slices.Sort(out.lost)
	return out
}
