package httpapi

import (
	"net/http"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/readstate"
)

// Session is a session of the caller.
type Session struct {
	ID                string         `json:"id"`
	Title             string         `json:"title"`
	Active            bool           `json:"active"`
	Thinking          bool           `json:"thinking"`
	PendingInput      bool           `json:"pendingInput"`
	PendingPermission bool           `json:"pendingPermission"`
	ContentRevision   uint64         `json:"contentRevision"`
	ReadState         live.ReadState `json:"readState"`
	Unread            bool           `json:"unread"`
	UpdatedAt         time.Time      `json:"updatedAt"`
	CreatedAt         time.Time      `json:"createdAt"`
}

func newSession(x *facts.Session) Session {
	return Session{
		ID: x.ID, Title: x.Title, Active: x.Active, Thinking: x.Thinking,
		PendingInput: x.PendingInput, PendingPermission: x.PendingPermission,
		ContentRevision: uint64(x.Head), ReadState: live.NewReadState(&x.Row), Unread: x.Unread(),
		UpdatedAt: time.UnixMilli(x.UpdatedAt).UTC(), CreatedAt: time.UnixMilli(x.CreatedAt).UTC(),
	}
}

// SessionDone answers what makes or changes a session.
type SessionDone struct {
	Session
	Status    string `json:"status" enum:"applied,unchanged"`
	LSN       uint64 `json:"lsn"`
	Duplicate bool   `json:"duplicate"`
	created   bool
}

func (d SessionDone) status() int {
	if d.created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func newSessionDone(r facts.SessionReceipt, err error) (SessionDone, error) {
	return SessionDone{
		Session: newSession(&r.Session), Status: r.Outcome.String(), LSN: uint64(r.LSN),
		Duplicate: r.Duplicate, created: r.Created,
	}, err
}

// SessionList is a page of sessions, the most recently touched first.
type SessionList struct {
	Sessions []Session `json:"sessions"`
	Next     string    `json:"next,omitempty"`
}

type newSessionBody struct {
	ID    string  `json:"id,omitempty"`
	Title *string `json:"title,omitempty"`
}

type sessionBody struct {
	Title             *string `json:"title,omitempty"`
	Active            *bool   `json:"active,omitempty"`
	Thinking          *bool   `json:"thinking,omitempty"`
	PendingInput      *bool   `json:"pendingInput,omitempty"`
	PendingPermission *bool   `json:"pendingPermission,omitempty"`
}

type forkBody struct {
	OpID  string  `json:"opId"`
	ID    string  `json:"id,omitempty"`
	Title *string `json:"title,omitempty"`
}

type mergeBody struct {
	OpID string `json:"opId"`
	Into string `json:"into"`
}

type newSessionParams struct {
	memberParam
	Create string `query:"create" enum:"members" doc:"Services: make an unknown member"`
}

type sessionListParams struct {
	memberParam
	paging
}

type sessionParams struct {
	ID readstate.ScopeID `path:"id" id:"session"`
	memberParam
}

const (
	sessionsPath = "/api/sessions"
	sessionPath  = sessionsPath + "/{id}"
)

// owner is whose sessions the call is about. The namespace is that of the token: its workspace and
// the member.
func (c *call) owner(named readstate.MemberID) (readstate.MemberID, error) {
	if c.who.Workspace == AllWorkspaces {
		return "", refuse(CodeForbidden, "a token of all workspaces has no sessions")
	}
	c.ws = c.server.engine.Workspace(c.who.Workspace)
	m, err := c.subject(named)
	if err == nil {
		err = facts.CheckID("member", string(m))
	}
	return m, err
}

// scope is the scope of the session that the path names.
func (p *sessionParams) scope(c *call) (readstate.ScopeID, readstate.MemberID, error) {
	owner, err := c.owner(p.Member)
	return facts.SessionScope(owner, string(p.ID)), owner, err
}

func (s *Server) addSessions() {
	const tag = "sessions"
	add(s, route{
		method: http.MethodPost, path: sessionsPath, id: "postSession", tag: tag,
		statuses: []int{http.StatusCreated, http.StatusOK},
		about:    "Make a session. One that exists already is answered as it is.",
	}, func(c *call, p *newSessionParams, b *newSessionBody) (SessionDone, error) {
		owner, err := c.owner(p.Member)
		if err != nil {
			return SessionDone{}, err
		}
		create, err := c.mayCreate(p.Create)
		if err != nil {
			return SessionDone{}, err
		}
		return newSessionDone(c.ws.PutSession(c.ctx(), facts.PutSession{
			Owner: owner, ID: b.ID, Title: b.Title, Create: true, CreateOwner: create,
		}))
	})
	add(s, route{
		method: http.MethodGet, path: sessionsPath, id: "listSessions", tag: tag,
		about: "The sessions, the most recently touched first.",
	}, listSessions)
	add(s, route{
		method: http.MethodGet, path: sessionPath, id: "getSession", tag: tag,
		about: "One session.",
	}, func(c *call, p *sessionParams, _ *none) (Session, error) {
		owner, err := c.owner(p.Member)
		if err != nil {
			return Session{}, err
		}
		x, err := c.ws.Session(c.ctx(), owner, string(p.ID))
		return newSession(&x), err
	})
	add(s, route{
		method: http.MethodPatch, path: sessionPath, id: "patchSession", tag: tag,
		about: "Say what the session's run does, what it waits for, or another title.",
	}, func(c *call, p *sessionParams, b *sessionBody) (SessionDone, error) {
		owner, err := c.owner(p.Member)
		if err != nil {
			return SessionDone{}, err
		}
		return newSessionDone(c.ws.PutSession(c.ctx(), facts.PutSession{
			Owner: owner, ID: string(p.ID), Title: b.Title, Active: b.Active,
			Thinking: b.Thinking, PendingInput: b.PendingInput,
			PendingPermission: b.PendingPermission,
		}))
	})
	s.addSessionCopies()
	s.addSessionLog()
}

func listSessions(c *call, p *sessionListParams, _ *none) (SessionList, error) {
	owner, err := c.owner(p.Member)
	if err != nil {
		return SessionList{}, err
	}
	after, err := p.after("sessions")
	if err != nil {
		return SessionList{}, err
	}
	mark, err := parseMark(after)
	if err != nil {
		return SessionList{}, err
	}
	page, err := c.ws.Sessions(c.ctx(), tidemark.SessionFilter{
		Owner: owner, Before: facts.ConversationMark{SortAt: mark.At, Scope: mark.Scope},
		Limit: p.limit(),
	})
	out := SessionList{Sessions: make([]Session, len(page.Sessions))}
	for i := range page.Sessions {
		out.Sessions[i] = newSession(&page.Sessions[i])
	}
	if page.More {
		mark.At, mark.Scope = page.Next.SortAt, page.Next.Scope
		out.Next = pageToken("sessions", markText(mark))
	}
	return out, err
}

// addSessionCopies adds what makes sessions out of sessions.
func (s *Server) addSessionCopies() {
	const tag = "sessions"
	add(s, route{
		method: http.MethodPost, path: sessionPath + "/fork", id: "forkSession", tag: tag,
		statuses: []int{http.StatusCreated, http.StatusOK},
		about:    "Copy a session to a new one, as history that nobody has to read.",
	}, func(c *call, p *sessionParams, b *forkBody) (SessionDone, error) {
		owner, err := c.owner(p.Member)
		if err != nil {
			return SessionDone{}, err
		}
		return newSessionDone(c.ws.ForkSession(c.ctx(), facts.ForkSession{
			Owner: owner, From: string(p.ID), To: b.ID, Title: b.Title, OpID: b.OpID,
		}))
	})
	add(s, route{
		method: http.MethodPost, path: sessionPath + "/merge", id: "mergeSession", tag: tag,
		about: "Append a session to another one and retire it. What was unread stays unread.",
	}, func(c *call, p *sessionParams, b *mergeBody) (SessionDone, error) {
		owner, err := c.owner(p.Member)
		if err != nil {
			return SessionDone{}, err
		}
		return newSessionDone(c.ws.MergeSession(c.ctx(), facts.MergeSession{
			Owner: owner, From: string(p.ID), Into: b.Into, OpID: b.OpID,
		}))
	})
	add(s, route{
		method: http.MethodPost, path: sessionPath + "/rewind", id: "rewindSession", tag: tag,
		about: "Remove every entry with a higher seq.",
	}, func(c *call, p *sessionParams, b *cutBody) (Changed, error) {
		scope, owner, err := p.scope(c)
		if err != nil {
			return Changed{}, err
		}
		return changed(c.ws.Rewind(c.ctx(), facts.Rewind{
			Scope: scope, OpID: b.OpID, Through: readstate.Seq(b.ThroughSeq),
			By: facts.Actor{Member: owner, Trusted: true},
		}))
	})
}
