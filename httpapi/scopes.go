package httpapi

import (
	"net/http"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Scope is anything with its own log and cursors.
type Scope struct {
	ID              string     `json:"id"`
	Type            string     `json:"type" enum:"channel,dm,thread,task,session"`
	Name            string     `json:"name,omitempty"`
	Parent          string     `json:"parent,omitempty"`
	RootMessage     string     `json:"rootMessage,omitempty"`
	History         string     `json:"history" enum:"joined,shared"`
	Archived        bool       `json:"archived"`
	Tags            []string   `json:"tags,omitempty"`
	ContentRevision uint64     `json:"contentRevision"`
	LatestSeq       uint64     `json:"latestSeq"`
	CreatedAt       *time.Time `json:"createdAt,omitempty"`
}

func newScope(s *facts.ScopeRow) Scope {
	out := Scope{
		ID: string(s.Info.ID), Type: s.Info.Type.String(), Name: s.Info.Name,
		Parent: string(s.Info.ParentID), RootMessage: s.Info.RootMessage,
		History: s.Info.History.String(), Archived: s.Info.Archived, Tags: s.Info.Tags,
		ContentRevision: uint64(s.Ranks.Head), LatestSeq: uint64(s.Ranks.LatestSeq),
	}
	if s.CreatedAt != 0 {
		at := time.UnixMilli(s.CreatedAt).UTC()
		out.CreatedAt = &at
	}
	return out
}

// ScopeList is a page of scopes.
type ScopeList struct {
	Scopes []Scope `json:"scopes"`
	Next   string  `json:"next,omitempty"`
}

// ScopeDone answers a change of a scope.
type ScopeDone struct {
	Scope
	Done
}

type scopeParams struct {
	workspaceParams
	S readstate.ScopeID `path:"s" id:"scope"`
}

type scopeMemberParams struct {
	scopeParams
	memberParam
}

type scopeListParams struct {
	workspaceParams
	memberParam
	paging
	Type   string            `query:"type" enum:"channel,dm,thread,task" doc:"Only scopes of this type"`
	Parent readstate.ScopeID `query:"parent" id:"scope" doc:"Only threads of this scope"`
}

// ScopeBody creates a scope, or changes one.
type ScopeBody struct {
	Type        string    `json:"type" enum:"channel,dm,thread,task"`
	Name        *string   `json:"name,omitempty"`
	Parent      string    `json:"parent,omitempty"`
	RootMessage string    `json:"rootMessage,omitempty"`
	History     string    `json:"history,omitempty" enum:"joined,shared"`
	Archived    *bool     `json:"archived,omitempty"`
	Tags        *[]string `json:"tags,omitempty" maxItems:"32"`
}

func (b *ScopeBody) op(id readstate.ScopeID) (facts.PutScope, error) {
	kind, _ := readstate.ParseScopeType(b.Type)
	op := facts.PutScope{
		ID: id, Type: kind, Name: b.Name, Parent: readstate.ScopeID(b.Parent),
		RootMessage: b.RootMessage, Archived: b.Archived, Tags: b.Tags,
	}
	if b.History != "" {
		history := readstate.HistoryJoined
		if b.History == "shared" {
			history = readstate.HistoryShared
		}
		op.History = &history
	}
	if err := checkIDs("parent", b.Parent); err != nil {
		return op, err
	}
	return op, checkIDs("rootMessage", b.RootMessage)
}

type scopeItem struct {
	ID string `json:"id"`
	ScopeBody
}

type scopeBatch struct {
	Scopes []scopeItem `json:"scopes" maxItems:"1000"`
}

const scopesPath = "/api/v1/workspaces/{ws}/scopes"

func (s *Server) addScopes() {
	add(s, route{
		method: http.MethodGet, path: scopesPath, id: "listScopes", tag: "scopes",
		about: "The scopes that the caller sees, by id.",
	}, listScopes)
	add(s, route{
		method: http.MethodGet, path: scopesPath + "/{s}", id: "getScope", tag: "scopes",
		about: "A scope.",
	}, func(c *call, p *scopeMemberParams, _ *none) (Scope, error) {
		row, err := c.seen(p.S, p.Member)
		return newScope(&row), err
	})
	add(s, route{
		method: http.MethodPut, path: scopesPath + "/{s}", id: "putScope", tag: "scopes",
		role: RoleService, about: "Create or change a scope.",
	}, putScope)
	add(s, route{
		method: http.MethodPost, path: scopesPath + ":batch", id: "putScopes", tag: "scopes",
		role: RoleService, limit: MaxBatchBody, about: "Create or change scopes.",
	}, putScopes)
}

// seen finds a scope that the caller, or the member a service names, may see.
func (c *call) seen(s readstate.ScopeID, named readstate.MemberID) (facts.ScopeRow, error) {
	if c.trusted() && named == "" {
		return c.ws.Scope(c.ctx(), s)
	}
	m, err := c.subject(named)
	if err != nil {
		return facts.ScopeRow{}, err
	}
	return c.ws.Seen(c.ctx(), m, s)
}

func listScopes(c *call, p *scopeListParams, _ *none) (ScopeList, error) {
	m := p.Member // empty: a service sees all of them
	if !c.trusted() {
		var err error
		if m, err = c.subject(m); err != nil {
			return ScopeList{}, err
		}
	}
	list := "scopes " + p.Type + " " + string(p.Parent)
	after, err := p.after(list)
	if err != nil {
		return ScopeList{}, err
	}
	kind, _ := readstate.ParseScopeType(p.Type)
	f := tidemark.ScopeFilter{
		SeenBy: m, Type: kind, Parent: p.Parent, After: readstate.ScopeID(after),
		Limit: p.limit() + 1,
	}
	rows, err := c.ws.Scopes(c.ctx(), f)
	if err != nil {
		return ScopeList{}, err
	}
	rows, more := cut(rows, p.limit())
	out := ScopeList{Scopes: make([]Scope, len(rows))}
	for i := range rows {
		out.Scopes[i] = newScope(&rows[i])
	}
	if more {
		out.Next = pageToken(list, string(rows[len(rows)-1].Info.ID))
	}
	return out, nil
}

func putScope(c *call, p *scopeParams, b *ScopeBody) (ScopeDone, error) {
	op, err := b.op(p.S)
	if err != nil {
		return ScopeDone{}, err
	}
	set, err := c.ws.PutScope(c.ctx(), op)
	if err != nil {
		return ScopeDone{}, err
	}
	row, err := c.ws.Scope(c.ctx(), p.S)
	return ScopeDone{newScope(&row), done(set)}, err
}

func putScopes(c *call, _ *workspaceParams, b *scopeBatch) (results[Done], error) {
	batch := c.ws.Batch()
	for i := range b.Scopes {
		if err := facts.CheckID("scope", b.Scopes[i].ID); err != nil {
			return results[Done]{}, err
		}
		op, err := b.Scopes[i].op(readstate.ScopeID(b.Scopes[i].ID))
		if err != nil {
			return results[Done]{}, err
		}
		batch.PutScope(op)
	}
	return c.settingsBatch(batch)
}
