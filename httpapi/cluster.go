package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/ownership"
	"github.com/tidemark-im/tidemark/readstate"
)

// Cluster is what a server knows of the processes that share its store.
type Cluster struct {
	Registry facts.Registry
	// Owners finds owners, for requests that came to the wrong process. Required, as Registry is.
	Owners *ownership.Lookup
	// Node is the name of this process among them, empty for one that owns nothing.
	Node string
	// Serving says whether the node has its lease; nil for a process that needs none.
	Serving func() bool
	// Central has the server own nothing: it has no engine, answers the management surfaces from the
	// store, and sends everything else on to the owner of the workspace.
	Central facts.Store
	// Transport is how a central server reaches owners; nil makes one.
	Transport http.RoundTripper
}

func (c *Cluster) check(engine bool) error {
	switch {
	case c.Registry == nil || c.Owners == nil:
		return errors.New("httpapi: Cluster needs Registry and Owners")
	case engine == (c.Central != nil):
		return errors.New("httpapi: a server has an engine, or is a central one")
	}
	return nil
}

// ClusterState is who there is and who owns what, as of one moment.
type ClusterState struct {
	Profile    string             `json:"profile" enum:"all,workspace,central"`
	Node       string             `json:"node,omitempty"`
	Serving    bool               `json:"serving"`
	Nodes      []ClusterNode      `json:"nodes"`
	Workspaces []ClusterWorkspace `json:"workspaces"`
}

// ClusterNode is a node with its lease.
type ClusterNode struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	Epoch   uint64 `json:"epoch"`
	Health  string `json:"health" enum:"alive,ended"`
	LeaseMs int64  `json:"leaseMs"`
	Owned   int    `json:"owned"`
}

// ClusterWorkspace is a workspace with its owner.
type ClusterWorkspace struct {
	ID     string `json:"id"`
	Term   uint64 `json:"term"`
	Owner  string `json:"owner,omitempty"`
	Health string `json:"health" enum:"owned,expired,unowned"`
}

const (
	nodeAlive, nodeEnded              = "alive", "ended"
	spaceOwned, spaceExpired, spaceNo = "owned", "expired", "unowned"
)

func (s *Server) addCluster() {
	add(s, route{
		method: http.MethodGet, path: "/api/v1/cluster", id: "cluster", tag: "operations",
		role: RoleAdmin, management: true,
		about: "Which processes share the store, and who owns which workspace.",
	}, func(c *call, _ *noParams, _ *none) (ClusterState, error) { return c.cluster() })
}

func (c *call) cluster() (ClusterState, error) {
	out := ClusterState{
		Profile: "all", Serving: true, Nodes: []ClusterNode{}, Workspaces: []ClusterWorkspace{},
	}
	cl := c.server.cluster
	if cl == nil {
		rows, err := c.server.workspaces(c.ctx(), c.who.Workspace)
		for _, w := range rows {
			out.Workspaces = append(out.Workspaces, ClusterWorkspace{
				ID: string(w.ID), Term: w.Term, Health: spaceOwned,
			})
		}
		return out, err
	}
	out.Profile, out.Node = "workspace", cl.Node
	if cl.Central != nil {
		out.Profile = "central"
	}
	out.Serving = cl.Serving == nil || cl.Serving()
	survey, err := cl.Registry.Survey(c.ctx())
	if err != nil {
		return out, fmt.Errorf("cluster: %w", err)
	}
	out.fill(&survey, c.who.Workspace)
	return out, nil
}

// fill shows a survey to an admin: of one workspace no more than that, and who owns it.
func (out *ClusterState) fill(s *facts.Survey, of readstate.WorkspaceID) {
	owned, lasts := map[string]int{}, map[string]bool{}
	for i := range s.Nodes {
		lasts[s.Nodes[i].Node] = s.Nodes[i].Left > 0
	}
	for _, w := range s.Workspaces {
		if of != AllWorkspaces && of != w.ID {
			continue
		}
		row := ClusterWorkspace{ID: string(w.ID), Term: w.Term, Owner: w.Owner, Health: spaceNo}
		if w.Owner != "" {
			owned[w.Owner]++
			row.Health = spaceExpired
		}
		if lasts[w.Owner] {
			row.Health = spaceOwned
		}
		out.Workspaces = append(out.Workspaces, row)
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if of != AllWorkspaces && owned[n.Node] == 0 {
			continue
		}
		row := ClusterNode{
			Node: n.Node, Address: n.Address, Epoch: n.Epoch, Health: nodeEnded, Owned: owned[n.Node],
		}
		if n.Left > 0 {
			row.Health, row.LeaseMs = nodeAlive, n.Left.Milliseconds()
		}
		out.Nodes = append(out.Nodes, row)
	}
}

// about is the workspace whose data a request is about, empty for none: the one in its path, else that
// of the token.
func (c *call) about(rt *route) readstate.WorkspaceID {
	if rt.public || rt.management {
		return ""
	}
	if id, named := c.path["ws"]; named {
		return readstate.WorkspaceID(id)
	}
	if c.who.Workspace == AllWorkspaces {
		return ""
	}
	return c.who.Workspace
}

// checkOwner refuses requests for the data of workspaces that this process does not serve.
func (s *Server) checkOwner(ctx context.Context, w readstate.WorkspaceID) error {
	if w == "" || s.engine == nil {
		return nil
	}
	return s.whose(ctx, w, s.engine.Serves(w))
}

// whose says of an error that means another owner who that is.
func (s *Server) whose(ctx context.Context, w readstate.WorkspaceID, err error) error {
	if s.cluster == nil || w == "" || !errors.Is(err, facts.ErrNotOwner) {
		return err
	}
	address, err := s.ownerOf(ctx, w, false)
	if err != nil {
		return err
	}
	p := refuse(CodeNotOwner, "workspace %q is served elsewhere", w)
	p.Owner = address
	return p
}

// ownerOf is where the owner of a workspace is reached. A workspace that nobody knows is not found, and
// one that nobody serves at this moment is unavailable.
func (s *Server) ownerOf(ctx context.Context, w readstate.WorkspaceID, fresh bool) (string, error) {
	p, err := s.cluster.Owners.Look(ctx, fresh)
	if err != nil {
		return "", fmt.Errorf("who owns workspace %q: %w", w, err)
	}
	address, ok := p.Owner(w)
	self := s.cluster.Node != "" && p.Owners[w] == s.cluster.Node
	if (!ok || self) && !fresh {
		return s.ownerOf(ctx, w, true) // it may be new, or on its way
	}
	switch {
	case !p.Knows(w):
		return "", refuse(CodeNotFound, "there is nothing at this path")
	case !ok || self:
		return "", refuse(CodeUnavailable, "nobody serves the workspace at this moment")
	}
	return address, nil
}

// central reports that the server owns nothing.
func (s *Server) central() bool { return s.engine == nil }

// workspaces are the rows of a token's workspaces. They ask no owner.
func (s *Server) workspaces(
	ctx context.Context, of readstate.WorkspaceID,
) ([]facts.WorkspaceRow, error) {
	if of != AllWorkspaces {
		row, err := s.workspace(ctx, of)
		return []facts.WorkspaceRow{row}, err
	}
	if !s.central() {
		return s.engine.Workspaces(ctx)
	}
	view, err := s.cluster.Central.View(ctx)
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	defer func() { _ = view.Close() }() // read only: nothing to lose
	return view.Workspaces(ctx)
}

func (s *Server) workspace(
	ctx context.Context, id readstate.WorkspaceID,
) (facts.WorkspaceRow, error) {
	if !s.central() {
		return s.engine.Workspace(id).Info(ctx)
	}
	view, err := s.cluster.Central.View(ctx)
	if err != nil {
		return facts.WorkspaceRow{}, fmt.Errorf("workspace: %w", err)
	}
	defer func() { _ = view.Close() }() // read only: nothing to lose
	row, ok, err := view.Workspace(ctx, id)
	if err == nil && !ok {
		err = fmt.Errorf("workspace %q: %w", id, facts.ErrNotFound)
	}
	return row, err
}

func (s *Server) renameWorkspace(
	ctx context.Context, id readstate.WorkspaceID, name string,
) (err error) {
	if s.central() {
		_, _, err = s.cluster.Registry.PutWorkspace(ctx, facts.PutWorkspace{ID: id, Name: name})
	} else {
		_, err = s.engine.CreateWorkspace(ctx, id, name)
	}
	return err
}

// ping reports whether the facts store answers.
func (s *Server) ping(ctx context.Context) error {
	if !s.central() {
		return s.engine.Ping(ctx)
	}
	_, err := s.cluster.Owners.Look(ctx, true)
	return err
}
