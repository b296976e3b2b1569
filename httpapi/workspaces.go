package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Dots are red dots of workspaces that other processes serve.
type Dots interface {
	// Dots says whether something is unread for a member, of the workspaces of which that is known. It
	// waits for a moment at most, and fails by knowing nothing.
	Dots(
		ctx context.Context, m readstate.MemberID, of []readstate.WorkspaceID,
	) map[readstate.WorkspaceID]bool
}

// Workspace is a workspace with the member's dot.
type Workspace struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	HasUnread *bool  `json:"hasUnread,omitempty"`
	State     string `json:"state,omitempty" enum:"ready,snapshot_serving,hydrating,stale,unavailable"`
}

// Workspaces lists workspaces.
type Workspaces struct {
	Workspaces []Workspace `json:"workspaces"`
}

type workspaceParams struct {
	WS readstate.WorkspaceID `path:"ws" id:"workspace"`
}

type memberParam struct {
	Member readstate.MemberID `query:"member" id:"member" doc:"Services: the member to act for"`
}

type workspaceBody struct {
	Name string `json:"name"`
}

func (s *Server) addWorkspaces() {
	add(s, route{
		method: http.MethodGet, path: "/api/v1/workspaces", id: "listWorkspaces",
		tag: "workspaces", management: true, about: "The token's workspace, or all of them, with their dots.",
	}, listWorkspaces)
	add(s, route{
		method: http.MethodPut, path: "/api/v1/workspaces/{ws}", id: "putWorkspace",
		tag: "workspaces", role: RoleAdmin, management: true, about: "Create or rename a workspace.",
	}, func(c *call, p *workspaceParams, b *workspaceBody) (Workspace, error) {
		return c.putWorkspace(p.WS, b.Name)
	})
	add(s, route{
		method: http.MethodPatch, path: "/api/v1/workspaces/{ws}", id: "patchWorkspace",
		tag: "workspaces", role: RoleAdmin, management: true, about: "Rename a workspace.",
	}, func(c *call, p *workspaceParams, b *workspaceBody) (Workspace, error) {
		if _, err := s.workspace(c.ctx(), p.WS); err != nil {
			return Workspace{}, err
		}
		return c.putWorkspace(p.WS, b.Name)
	})
}

func (c *call) putWorkspace(id readstate.WorkspaceID, name string) (Workspace, error) {
	if err := c.server.renameWorkspace(c.ctx(), id, name); err != nil {
		return Workspace{}, err
	}
	return Workspace{ID: string(id), Name: name}, nil
}

func listWorkspaces(c *call, p *memberParam, _ *none) (Workspaces, error) {
	of := p.Member // a service is no member of its own accord
	if !c.trusted() {
		var err error
		if of, err = c.subject(p.Member); err != nil {
			return Workspaces{}, err
		}
	}
	rows, err := c.server.workspaces(c.ctx(), c.who.Workspace)
	if err != nil {
		return Workspaces{}, err
	}
	slices.SortFunc(rows, func(a, b facts.WorkspaceRow) int { return cmp.Compare(a.ID, b.ID) })
	out := Workspaces{Workspaces: make([]Workspace, len(rows))}
	var elsewhere []int // rows of workspaces that another process serves
	for i, row := range rows {
		out.Workspaces[i] = Workspace{ID: string(row.ID), Name: row.Name}
		if of == "" {
			continue
		}
		dot, state := c.server.hasUnread(row.ID, of)
		out.Workspaces[i].HasUnread, out.Workspaces[i].State = &dot, string(state)
		if c.server.central() || c.server.engine.Serves(row.ID) != nil {
			elsewhere = append(elsewhere, i)
		}
	}
	c.dotsFromElsewhere(out.Workspaces, elsewhere, of)
	return out, nil
}

// dotsFromElsewhere puts in the dots that other processes have published. The others stay withheld.
func (c *call) dotsFromElsewhere(list []Workspace, at []int, of readstate.MemberID) {
	if c.server.dots == nil || len(at) == 0 {
		return
	}
	spaces := make([]readstate.WorkspaceID, len(at))
	for i, row := range at {
		spaces[i] = readstate.WorkspaceID(list[row].ID)
	}
	known := c.server.dots.Dots(c.ctx(), of, spaces)
	for i, row := range at {
		if dot, ok := known[spaces[i]]; ok {
			list[row].HasUnread, list[row].State = &dot, string(unread.Ready)
		}
	}
}

// hasUnread is a member's dot, from the memory of this process and from nowhere else: where it does not
// own the workspace the state says that nothing is known.
func (s *Server) hasUnread(w readstate.WorkspaceID, m readstate.MemberID) (bool, unread.State) {
	if s.central() {
		return false, unread.Unavailable
	}
	return s.engine.Workspace(w).HasUnread(m)
}
