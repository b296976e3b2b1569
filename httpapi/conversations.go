package httpapi

import (
	"encoding/binary"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Conversation is one scope in a member's list.
type Conversation struct {
	Scope string `json:"scope"`
	// SortAt is what the list is sorted by: of a task, when something was last delivered to the
	// member, else when something was last written.
	SortAt time.Time       `json:"sortAt"`
	Row    conversationRow `json:"row"`
}

// conversationRow is a row as everywhere else.
type conversationRow struct{ *unread.Row }

// MarshalJSON implements json.Marshaler.
func (r conversationRow) MarshalJSON() ([]byte, error) { return live.AppendRow(nil, r.Row), nil }

// Schema implements huma.SchemaProvider.
func (conversationRow) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[live.Row](), true, "Row")
}

// Conversations is a page of them. A filter may leave a page short, or empty: only a page without
// next is the last one.
type Conversations struct {
	Conversations []Conversation `json:"conversations"`
	Next          string         `json:"next,omitempty"`
}

type conversationParams struct {
	workspaceParams
	memberParam
	paging
	Kind   string `query:"kind" enum:"channel,dm,thread,task" doc:"Only conversations of this type"`
	Unread string `query:"unread" enum:"true,false" doc:"Only those with a dot"`
}

func (s *Server) addConversations() {
	add(s, route{
		method: http.MethodGet, path: "/api/v1/workspaces/{ws}/conversations",
		id: "listConversations", tag: "unread",
		about: "The member's conversations, the newest first: channels, dms and threads in which " +
			"something was written, and the tasks that something was delivered from.",
	}, listConversations)
}

func listConversations(
	c *call, p *conversationParams, _ *none,
) (servable[Conversations], error) {
	none := servable[Conversations]{}
	m, err := c.subject(p.Member)
	if err != nil {
		return none, err
	}
	list := "conversations " + strconv.Quote(p.Kind) + p.Unread
	f := tidemark.RecentFilter{Member: m, Shown: p.Unread == "true", Limit: p.limit()}
	f.Kind, _ = readstate.ParseScopeType(p.Kind)
	after, err := p.after(list)
	if err != nil {
		return none, err
	}
	if f.Before, err = parseMark(after); err != nil {
		return none, err
	}
	page, err := c.ws.Recent(c.ctx(), f)
	out := Conversations{Conversations: make([]Conversation, len(page.Conversations))}
	for i := range page.Conversations {
		at := &page.Conversations[i]
		out.Conversations[i] = Conversation{
			Scope: string(at.Scope.ID), SortAt: time.UnixMilli(at.SortAt).UTC(),
			Row: conversationRow{&at.Row},
		}
	}
	if page.More {
		out.Next = pageToken(list, markText(page.Next))
	}
	return serve(out, err, func() unread.State { return page.State })
}

// markText is a place in the list within a page token.
func markText(m unread.RecentMark) string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(m.At))
	return string(binary.BigEndian.AppendUint64(raw, uint64(m.Scope)))
}

func parseMark(text string) (unread.RecentMark, error) {
	switch len(text) {
	case 0:
		return unread.RecentMark{}, nil
	case 16:
		return unread.RecentMark{
			At:    int64(binary.BigEndian.Uint64([]byte(text[:8]))),
			Scope: readstate.ScopeKey(binary.BigEndian.Uint64([]byte(text[8:]))),
		}, nil
	}
	return unread.RecentMark{}, refuse(CodeInvalidRequest, "pageToken is none of this list")
}
