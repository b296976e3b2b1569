package httpapi

import (
	"net/http"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Member is a human or an agent of a workspace.
type Member struct {
	ID          string `json:"id"`
	Kind        string `json:"kind" enum:"human,agent"`
	DisplayName string `json:"displayName,omitempty"`
	Avatar      string `json:"avatar,omitempty"`
	Active      bool   `json:"active"`
}

func newMember(m *readstate.MemberInfo) Member {
	out := Member{
		ID: string(m.ID), Kind: "human", DisplayName: m.DisplayName, Avatar: m.Avatar,
		Active: m.Active,
	}
	if m.Agent {
		out.Kind = "agent"
	}
	return out
}

// MemberList is a page of members.
type MemberList struct {
	Members []Member `json:"members"`
	Next    string   `json:"next,omitempty"`
}

// MemberDone answers a change of a member.
type MemberDone struct {
	Member
	Done
}

// Settings are a member's own.
type Settings struct {
	Badge    string `json:"badge" enum:"messages,conversations,attention"`
	Receipts string `json:"receipts" enum:"public,private"`
}

// SettingsDone answers a change of settings.
type SettingsDone struct {
	Settings
	Done
}

// BlockList names whom a member blocks.
type BlockList struct {
	Blocks []string `json:"blocks"`
}

type memberParams struct {
	workspaceParams
	M readstate.MemberID `path:"m" id:"member"`
}

type memberListParams struct {
	workspaceParams
	paging
}

type blockParams struct {
	memberParams
	Other readstate.MemberID `path:"other" id:"member"`
}

// MemberBody is what a service says of a member. It is exported, as the other bodies that batches
// embed, because the document leaves out fields of embedded types that are not.
type MemberBody struct {
	Kind        string  `json:"kind" enum:"human,agent"`
	DisplayName *string `json:"displayName,omitempty"`
	Avatar      *string `json:"avatar,omitempty"`
	Active      *bool   `json:"active,omitempty"`
}

func (b *MemberBody) op(id readstate.MemberID) facts.PutMember {
	agent := b.Kind == "agent"
	return facts.PutMember{
		ID: id, Agent: &agent, DisplayName: b.DisplayName, Avatar: b.Avatar, Active: b.Active,
	}
}

type memberItem struct {
	ID string `json:"id"`
	MemberBody
}

type memberBatch struct {
	Members []memberItem `json:"members" maxItems:"1000"`
}

type settingsBody struct {
	Badge    string `json:"badge,omitempty" enum:"messages,conversations,attention"`
	Receipts string `json:"receipts,omitempty" enum:"public,private"`
}

const membersPath = "/api/v1/workspaces/{ws}/members"

func (s *Server) addMembers() {
	add(s, route{
		method: http.MethodGet, path: membersPath, id: "listMembers", tag: "members",
		about: "The members by id.",
	}, listMembers)
	add(s, route{
		method: http.MethodPut, path: membersPath + "/{m}", id: "putMember", tag: "members",
		role: RoleService, about: "Create or change a member.",
	}, putMember)
	add(s, route{
		method: http.MethodPost, path: membersPath + ":batch", id: "putMembers", tag: "members",
		role: RoleService, limit: MaxBatchBody, about: "Create or change members.",
	}, putMembers)
	add(s, route{
		method: http.MethodDelete, path: membersPath + "/{m}", id: "eraseMember", tag: "members",
		role: RoleService, about: "Erase an identity: a stable pseudonym stays, counts stay right.",
	}, func(c *call, p *memberParams, _ *none) (Done, error) {
		if err := c.forgetWakes(p.M); err != nil {
			return Done{}, err
		}
		set, err := c.ws.EraseMember(c.ctx(), facts.EraseMember{Member: p.M})
		return done(set), err
	})
	s.addOwn()
}

// addOwn registers what a member decides for itself.
func (s *Server) addOwn() {
	add(s, route{
		method: http.MethodGet, path: membersPath + "/{m}/settings", id: "getSettings",
		tag: "members", about: "A member's own settings.",
	}, func(c *call, p *memberParams, _ *none) (Settings, error) {
		return c.settings(p.M)
	})
	add(s, route{
		method: http.MethodPut, path: membersPath + "/{m}/settings", id: "putSettings",
		tag: "members", about: "Change a member's own settings.",
	}, putSettings)
	add(s, route{
		method: http.MethodGet, path: membersPath + "/{m}/blocks", id: "listBlocks",
		tag: "members", about: "Whom a member blocks.",
	}, listBlocks)
	for method, blocked := range map[string]bool{http.MethodPut: true, http.MethodDelete: false} {
		id, about := "block", "Block a member: their messages count for nothing, reversibly."
		if !blocked {
			id, about = "unblock", "Unblock a member."
		}
		add(s, route{
			method: method, path: membersPath + "/{m}/blocks/{other}", id: id, tag: "members",
			about: about,
		}, func(c *call, p *blockParams, _ *none) (Done, error) {
			m, err := c.subject(p.M)
			if err != nil {
				return Done{}, err
			}
			set, err := c.ws.SetBlock(c.ctx(), facts.SetBlock{
				Member: m, Other: p.Other, Blocked: blocked,
			})
			return done(set), err
		})
	}
}

func listMembers(c *call, p *memberListParams, _ *none) (MemberList, error) {
	if !c.trusted() { // whoever is no member here does not see who is
		if _, err := c.ws.Member(c.ctx(), c.who.Member); err != nil {
			return MemberList{}, err
		}
	}
	after, err := p.after("members")
	if err != nil {
		return MemberList{}, err
	}
	rows, err := c.ws.Members(c.ctx(), readstate.MemberID(after), p.limit()+1)
	if err != nil {
		return MemberList{}, err
	}
	rows, more := cut(rows, p.limit())
	out := MemberList{Members: make([]Member, len(rows))}
	for i := range rows {
		out.Members[i] = newMember(&rows[i])
	}
	if more {
		out.Next = pageToken("members", string(rows[len(rows)-1].ID))
	}
	return out, nil
}

func putMember(c *call, p *memberParams, b *MemberBody) (MemberDone, error) {
	set, err := c.ws.PutMember(c.ctx(), b.op(p.M))
	if err != nil {
		return MemberDone{}, err
	}
	m, err := c.ws.Member(c.ctx(), p.M)
	return MemberDone{newMember(&m), done(set)}, err
}

func putMembers(c *call, _ *workspaceParams, b *memberBatch) (results[Done], error) {
	for i := range b.Members {
		if err := facts.CheckID("member", b.Members[i].ID); err != nil {
			return results[Done]{}, err
		}
	}
	batch := c.ws.Batch()
	for i := range b.Members {
		batch.PutMember(b.Members[i].op(readstate.MemberID(b.Members[i].ID)))
	}
	return c.settingsBatch(batch)
}

// settingsBatch runs a batch of operations that answer with a setting.
func (c *call) settingsBatch(batch *facts.Batch) (results[Done], error) {
	answers, err := batch.Run(c.ctx())
	if err != nil {
		return results[Done]{}, err
	}
	out := results[Done]{Results: make([]either[Done], len(answers))}
	for i, a := range answers {
		out.Results[i] = resultOf(done(a.Setting), a.Err, c.report)
	}
	return out, nil
}

func (c *call) settings(named readstate.MemberID) (Settings, error) {
	m, err := c.subject(named)
	if err != nil {
		return Settings{}, err
	}
	info, err := c.ws.Member(c.ctx(), m)
	out := Settings{Badge: info.Badge.String(), Receipts: "public"}
	if info.Private {
		out.Receipts = "private"
	}
	return out, err
}

func putSettings(c *call, p *memberParams, b *settingsBody) (SettingsDone, error) {
	m, err := c.subject(p.M)
	if err != nil {
		return SettingsDone{}, err
	}
	op := facts.PutSettings{Member: m}
	if display, ok := readstate.ParseBadgeDisplay(b.Badge); ok {
		op.Badge = &display
	}
	if b.Receipts != "" {
		private := b.Receipts == "private"
		op.Private = &private
	}
	set, err := c.ws.PutSettings(c.ctx(), op)
	if err != nil {
		return SettingsDone{}, err
	}
	now, err := c.settings(m)
	return SettingsDone{now, done(set)}, err
}

func listBlocks(c *call, p *memberParams, _ *none) (BlockList, error) {
	m, err := c.subject(p.M)
	if err != nil {
		return BlockList{}, err
	}
	ids, err := c.ws.Blocks(c.ctx(), m)
	out := BlockList{Blocks: make([]string, len(ids))}
	for i, id := range ids {
		out.Blocks[i] = string(id)
	}
	return out, err
}
