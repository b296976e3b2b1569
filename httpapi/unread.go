package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Totals is a member's badge divided into groups. Groups with nothing unread may be left out.
type Totals struct {
	Groups map[string]GroupBadge `json:"groups"`
}

// GroupBadge is the fold of one group's shown scopes.
type GroupBadge struct {
	Messages      uint64 `json:"messages"`
	Conversations uint64 `json:"conversations"`
	Attention     uint64 `json:"attention"`
}

// FirstUnread is where reading goes on. What is left out does not exist.
type FirstUnread struct {
	FirstUnread    *MessagePlace `json:"firstUnread,omitempty"`
	FirstAttention *MessagePlace `json:"firstAttention,omitempty"`
}

// MessagePlace names a message by its place.
type MessagePlace struct {
	MessageID       string `json:"messageId"`
	Seq             uint64 `json:"seq"`
	ContentRevision uint64 `json:"contentRevision"`
}

// Explanation derives a count term by term; describe.txt says which of them are subtracted.
type Explanation struct {
	Unread    uint64   `json:"unread"`
	Attention uint64   `json:"attention"`
	E         uint64   `json:"e"`
	Base      uint64   `json:"base"`
	Head      uint64   `json:"head"`
	Removed   uint64   `json:"removed"`
	Own       uint64   `json:"own"`
	Blocked   uint64   `json:"blocked"`
	Direct    uint64   `json:"direct"`
	Everyone  uint64   `json:"everyone"`
	Level     string   `json:"level" enum:"all,mentions,none"`
	Manual    bool     `json:"manual"`
	State     string   `json:"state" enum:"ready,snapshot_serving"`
	LSN       uint64   `json:"lsn"`
	Messages  []string `json:"messages"`
}

// Receipts is a page of who has read through a revision.
type Receipts struct {
	Receipts []Receipt `json:"receipts"`
	Next     string    `json:"next,omitempty"`
}

// Receipt is one reader.
type Receipt struct {
	Member       string `json:"member"`
	ReadRevision uint64 `json:"readRevision"`
}

// MemberPages answers a query of many members, in the order of the request.
type MemberPages struct {
	Members []memberPage `json:"members"`
}

// memberPage is what is known of one member: their rows, why they are withheld, or a refusal.
type memberPage struct{ body any }

// MemberError stands for a member who cannot be answered for.
type MemberError struct {
	Member string   `json:"member"`
	Error  *Problem `json:"error"`
}

// MarshalJSON implements json.Marshaler.
func (m memberPage) MarshalJSON() ([]byte, error) { return json.Marshal(m.body) }

// Schema implements huma.SchemaProvider.
func (memberPage) Schema(r huma.Registry) *huma.Schema {
	return oneOf(r, reflect.TypeFor[live.Page](), reflect.TypeFor[live.Withheld](),
		reflect.TypeFor[MemberError]())
}

type unreadParams struct {
	memberedParams
	paging
}

type totalsParams struct {
	memberedParams
	GroupBy string `query:"groupBy" enum:"parent,tag,type" doc:"What divides the badge; needed"`
}

type receiptParams struct {
	scopeMemberParams
	paging
	Revision strict.Counter `query:"revision" doc:"Who has read through here; needed"`
}

type unreadQuery struct {
	Members []string  `json:"members" maxItems:"200"`
	Scopes  *[]string `json:"scopes,omitempty" maxItems:"5000"`
}

func (s *Server) addUnread() {
	const path = "/api/v1/workspaces/{ws}/unread"
	add(s, route{
		method: http.MethodGet, path: path, id: "listUnread", tag: "unread",
		about: "The bootstrap: a member's scopes, unread and recent ones first, with the badge.",
	}, listUnread)
	add(s, route{
		method: http.MethodGet, path: path + "/totals", id: "unreadTotals", tag: "unread",
		about: "The badge by groups of scopes.",
	}, unreadTotals)
	add(s, route{
		method: http.MethodPost, path: path + ":query", id: "queryUnread", tag: "unread",
		role: RoleService, about: "The unread state of many members.",
	}, queryUnread)
	add(s, route{
		method: http.MethodGet, path: scopesPath + "/{s}/unread/first", id: "firstUnread",
		tag: "unread", about: "Where reading goes on.",
	}, firstUnread)
	add(s, route{
		method: http.MethodGet, path: scopesPath + "/{s}/unread/explain", id: "explainUnread",
		tag: "unread", about: "Why a count is what it is.",
	}, explainUnread)
	add(s, route{
		method: http.MethodGet, path: scopesPath + "/{s}/receipts", id: "listReceipts",
		tag: "unread", about: "Who has read through a revision, and lets others know.",
	}, listReceipts)
}

func listUnread(c *call, p *unreadParams, _ *none) (servable[written[live.Page]], error) {
	m, err := c.subject(p.Member)
	if err != nil {
		return servable[written[live.Page]]{}, err
	}
	b := takeBuffer()
	write := func(page *unread.LinePage) { b.data = live.AppendPage(b.data, page, "") }
	state, err := c.ws.UnreadLines(c.ctx(), m, p.PageToken, p.limit(), write)
	if err != nil {
		b.release()
	}
	return serve(written[live.Page]{b}, err, func() unread.State { return state })
}

func unreadTotals(c *call, p *totalsParams, _ *none) (servable[Totals], error) {
	m, err := c.subject(p.Member)
	if err != nil {
		return servable[Totals]{}, err
	}
	if p.GroupBy == "" {
		return servable[Totals]{}, refuse(CodeInvalidRequest, "groupBy is missing")
	}
	groups, err := c.ws.Totals(c.ctx(), m, unread.Group(p.GroupBy))
	out := Totals{Groups: make(map[string]GroupBadge, len(groups))}
	for name, b := range groups {
		out.Groups[name] = GroupBadge{b.Messages, b.Conversations, b.Attention}
	}
	return serve(out, err, c.state(m))
}

func firstUnread(c *call, p *scopeMemberParams, _ *none) (FirstUnread, error) {
	m, err := c.subject(p.Member)
	if err != nil {
		return FirstUnread{}, err
	}
	first, err := c.ws.First(c.ctx(), m, p.S)
	if err != nil {
		return FirstUnread{}, err
	}
	return FirstUnread{placeOf(first.Unread), placeOf(first.Attention)}, nil
}

func placeOf(m *facts.Message) *MessagePlace {
	if m == nil {
		return nil
	}
	return &MessagePlace{m.ID, uint64(m.Seq), uint64(m.Revision)}
}

func explainUnread(c *call, p *scopeMemberParams, _ *none) (Explanation, error) {
	m, err := c.subject(p.Member)
	if err != nil {
		return Explanation{}, err
	}
	x, err := c.ws.Explain(c.ctx(), m, p.S)
	if err != nil {
		return Explanation{}, err
	}
	out := Explanation{
		Unread: x.Row.Values.Unread, Attention: x.Row.Values.Attention,
		E: uint64(x.E), Base: uint64(x.Base), Head: uint64(x.Head), Removed: x.Removed,
		Own: x.Own, Blocked: x.Blocked, Direct: x.Direct, Everyone: x.Everyone,
		Level: x.Row.Level.String(), Manual: x.Row.Row.Manual.Set, State: string(x.Row.State),
		LSN: uint64(x.Row.LSN), Messages: x.Messages,
	}
	if out.Messages == nil {
		out.Messages = []string{}
	}
	return out, nil
}

func listReceipts(c *call, p *receiptParams, _ *none) (Receipts, error) {
	scope, err := c.seen(p.S, p.Member)
	if err != nil {
		return Receipts{}, err
	}
	through := readstate.Revision(p.Revision)
	if through == 0 || through > scope.Ranks.Head {
		return Receipts{}, refuse(CodeRevisionInFuture, "revision: from 1 to %d", scope.Ranks.Head)
	}
	list := "receipts " + string(p.S)
	from, err := p.memberKey(list)
	if err != nil {
		return Receipts{}, err
	}
	rows, err := c.ws.Roster(c.ctx(), p.S, from, p.limit()+1)
	if err != nil {
		return Receipts{}, err
	}
	rows, more := cut(rows, p.limit())
	out := Receipts{Receipts: []Receipt{}}
	for i := range rows {
		r := &rows[i]
		if r.Row.Read < through || r.Info.Private && r.Info.ID != c.who.Member {
			continue
		}
		out.Receipts = append(out.Receipts, Receipt{string(r.Info.ID), uint64(r.Row.Read)})
	}
	if more {
		out.Next = keyToken(list, rows[len(rows)-1].Member)
	}
	return out, nil
}

func queryUnread(c *call, _ *workspaceParams, b *unreadQuery) (MemberPages, error) {
	perMember := 0
	if b.Scopes != nil {
		perMember = len(*b.Scopes)
	}
	if len(b.Members)*perMember > MaxQueryRows {
		return MemberPages{}, refuse(CodeInvalidRequest, "at most %d rows", MaxQueryRows)
	}
	if b.Scopes != nil {
		slices.Sort(*b.Scopes)
		*b.Scopes = slices.Compact(*b.Scopes)
	}
	for _, id := range b.Members {
		if err := facts.CheckID("member", id); err != nil {
			return MemberPages{}, err
		}
		c.ws.HasUnread(readstate.MemberID(id)) // cold members are loaded beside each other
	}
	out := MemberPages{Members: make([]memberPage, 0, len(b.Members))}
	left := MaxQueryRows
	for _, id := range b.Members {
		page, rows, err := c.memberPage(readstate.MemberID(id), b.Scopes, left)
		left -= rows
		if err == nil {
			out.Members = append(out.Members, memberPage{page})
			continue
		}
		switch p := problemOf(err); {
		case errors.Is(err, unread.ErrNotServable):
			w := live.NewWithheld(c.state(readstate.MemberID(id))())
			w.Member = id
			out.Members = append(out.Members, memberPage{w})
		case p.Code == CodeNotFound:
			out.Members = append(out.Members, memberPage{MemberError{id, p}})
		default:
			return MemberPages{}, err
		}
	}
	return out, nil
}

// memberPage reads one member's rows: the first ones, as many as are left, or those asked for. It
// returns a live.Page and how many rows it has.
func (c *call) memberPage(
	m readstate.MemberID, scopes *[]string, left int,
) (body json.RawMessage, rows int, err error) {
	if scopes != nil {
		return c.rowsOf(m, *scopes)
	}
	limit := max(1, min(left, MaxPage))
	_, err = c.ws.UnreadLines(c.ctx(), m, "", limit, func(page *unread.LinePage) {
		body, rows = live.AppendPage(nil, page, string(m)), page.Len()
	})
	return body, rows, err
}

// rowsOf encodes a member's rows of some scopes, those that there are.
func (c *call) rowsOf(
	m readstate.MemberID, scopes []string,
) (body json.RawMessage, n int, err error) {
	sum, err := c.ws.Summary(c.ctx(), m)
	if err != nil {
		return nil, 0, err
	}
	sum.Complete = false // the rows left out were not asked for
	var rows []unread.Row
	for _, id := range scopes {
		if err := facts.CheckID("scope", id); err != nil {
			return nil, 0, err
		}
		row, err := c.ws.Row(c.ctx(), m, readstate.ScopeID(id))
		switch {
		case err == nil:
			rows = append(rows, row)
		case !errors.Is(err, unread.ErrNoRow):
			return nil, 0, err
		}
	}
	return live.AppendRows(nil, &sum, rows, string(m)), len(rows), nil
}
