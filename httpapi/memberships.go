package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/readstate"
)

// ScopeMember is a member of a scope. What they chose for themselves is shown to them and to
// services only.
type ScopeMember struct {
	Member
	Notification string     `json:"notification,omitempty" enum:"all,mentions,none,inherit"`
	Until        *time.Time `json:"until,omitempty"`
	Visible      *bool      `json:"visible,omitempty"`
	// Watching is said of members of a task who chose to be told of everything in it.
	Watching bool `json:"watching,omitempty"`
}

// Roster is a page of a scope's members.
type Roster struct {
	Members []ScopeMember `json:"members"`
	Next    string        `json:"next,omitempty"`
}

type rosterParams struct {
	scopeParams
	memberParam
	paging
}

type leaveParams struct {
	scopeParams
	M readstate.MemberID `path:"m" id:"member"`
}

type membershipParams struct {
	leaveParams
	Create string `query:"create" enum:"members" doc:"Services: make unknown members"`
}

// MembershipBody joins a member, or changes a membership; see PUT of a scope's member.
type MembershipBody struct {
	Notification  string          `json:"notification,omitempty" enum:"all,mentions,none,inherit"`
	Until         *strict.Time    `json:"until,omitempty"`
	Visible       *bool           `json:"visible,omitempty"`
	EffectiveFrom *strict.Counter `json:"effectiveFrom,omitempty"`
	ReadRevision  *strict.Counter `json:"readRevision,omitempty"`
}

func (b *MembershipBody) op(s readstate.ScopeID, m readstate.MemberID) facts.PutMembership {
	op := facts.PutMembership{
		Scope: s, Member: m, Until: b.Until.Milliseconds(), Visible: b.Visible,
		Effective: revision(b.EffectiveFrom), Read: revision(b.ReadRevision),
	}
	if level, ok := readstate.ParseLevel(b.Notification); ok {
		op.Level = &level
	}
	return op
}

func revision(c *strict.Counter) *readstate.Revision {
	if c == nil {
		return nil
	}
	r := readstate.Revision(*c)
	return &r
}

type membershipItem struct {
	ID string `json:"id"`
	MembershipBody
}

type membershipBatch struct {
	Members []membershipItem `json:"members" maxItems:"1000"`
}

type membershipBatchParams struct {
	scopeParams
	Create string `query:"create" enum:"members" doc:"Make unknown members"`
}

type followBody struct {
	Following bool `json:"following"`
}

func (s *Server) addMemberships() {
	add(s, route{
		method: http.MethodGet, path: scopesPath + "/{s}/members", id: "listScopeMembers",
		tag: "memberships", about: "The members of a scope.",
	}, listRoster)
	add(s, route{
		method: http.MethodPut, path: scopesPath + "/{s}/members/{m}", id: "putMembership",
		tag: "memberships", about: "Join a member, or change a membership.",
	}, putMembership)
	add(s, route{
		method: http.MethodPost, path: scopesPath + "/{s}/members:batch", id: "putMemberships",
		tag: "memberships", role: RoleService, limit: MaxBatchBody, about: "Join members.",
	}, putMemberships)
	add(s, route{
		method: http.MethodDelete, path: scopesPath + "/{s}/members/{m}", id: "leaveScope",
		tag: "memberships", role: RoleService, about: "End a membership.",
	}, func(c *call, p *leaveParams, _ *none) (Done, error) {
		set, err := c.ws.Leave(c.ctx(), facts.Leave{Scope: p.S, Member: p.M})
		return done(set), err
	})
	add(s, route{
		method: http.MethodPut, path: scopesPath + "/{s}/follow", id: "follow",
		tag: "memberships", about: "Follow a thread, or stop following it.",
	}, func(c *call, p *scopeMemberParams, b *followBody) (Done, error) {
		m, err := c.subject(p.Member)
		if err != nil {
			return Done{}, err
		}
		set, err := c.ws.SetFollow(c.ctx(), facts.SetFollow{
			Scope: p.S, Member: m, Following: b.Following, Trusted: c.trusted(),
		})
		return done(set), err
	})
}

func listRoster(c *call, p *rosterParams, _ *none) (Roster, error) {
	scope, err := c.seen(p.S, p.Member)
	if err != nil {
		return Roster{}, err
	}
	list := "roster " + string(p.S)
	from, err := p.memberKey(list)
	if err != nil {
		return Roster{}, err
	}
	rows, err := c.ws.Roster(c.ctx(), p.S, from, p.limit()+1)
	if err != nil {
		return Roster{}, err
	}
	rows, more := cut(rows, p.limit())
	out := Roster{Members: make([]ScopeMember, len(rows))}
	for i := range rows {
		m := ScopeMember{Member: newMember(&rows[i].Info)}
		if c.trusted() || rows[i].Info.ID == c.who.Member {
			row := &rows[i].Row
			m.Notification, m.Visible = row.Level.String(), &row.Visible
			if row.Until != 0 {
				at := time.UnixMilli(row.Until).UTC()
				m.Until = &at
			}
		}
		m.Watching = scope.Info.Type == readstate.Task && rows[i].Row.Follow == readstate.FollowExplicit
		out.Members[i] = m
	}
	if more {
		out.Next = keyToken(list, rows[len(rows)-1].Member)
	}
	return out, nil
}

// memberKey decodes a page token that holds a member key.
func (p *paging) memberKey(list string) (readstate.MemberKey, error) {
	after, err := p.after(list)
	if after == "" || err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(after, 10, 64)
	if err != nil {
		return 0, refuse(CodeInvalidRequest, "pageToken is none of this list")
	}
	return readstate.MemberKey(n), nil
}

func keyToken(list string, k readstate.MemberKey) string {
	return pageToken(list, strconv.FormatUint(uint64(k), 10))
}

func putMembership(c *call, p *membershipParams, b *MembershipBody) (Done, error) {
	m, err := c.subject(p.M)
	if err != nil {
		return Done{}, err
	}
	op := b.op(p.S, m)
	if op.CreateMember, err = c.mayCreate(p.Create); err != nil {
		return Done{}, err
	}
	op.Trusted = c.trusted()
	if !c.trusted() {
		if b.Visible != nil || b.EffectiveFrom != nil || b.ReadRevision != nil {
			return Done{}, refuse(CodeForbidden,
				"only a service sets visible, effectiveFrom and readRevision")
		}
		op.MustBeJoined = true
	}
	set, err := c.ws.PutMembership(c.ctx(), op)
	return done(set), err
}

func putMemberships(c *call, p *membershipBatchParams, b *membershipBatch) (results[Done], error) {
	batch := c.ws.Batch()
	for i := range b.Members {
		item := &b.Members[i]
		if err := facts.CheckID("member", item.ID); err != nil {
			return results[Done]{}, err
		}
		op := item.op(p.S, readstate.MemberID(item.ID))
		op.CreateMember, op.Trusted = p.Create == "members", true
		batch.PutMembership(op)
	}
	return c.settingsBatch(batch)
}
