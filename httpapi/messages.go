package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/readstate"
)

// Posted answers a send.
type Posted struct {
	MessageID       string       `json:"messageId"`
	Seq             uint64       `json:"seq"`
	ContentRevision uint64       `json:"contentRevision,omitempty"`
	Channel         *ChannelCopy `json:"channel,omitempty"`
	LSN             uint64       `json:"lsn"`
	Duplicate       bool         `json:"duplicate"`
}

// ChannelCopy is where a broadcast reply stands in the channel.
type ChannelCopy struct {
	Seq             uint64 `json:"seq"`
	ContentRevision uint64 `json:"contentRevision,omitempty"`
}

func (p Posted) status() int {
	if p.Duplicate {
		return http.StatusOK
	}
	return http.StatusCreated
}

func newPosted(r *facts.Receipt) Posted {
	out := Posted{
		MessageID: r.MessageID, Seq: uint64(r.Seq), ContentRevision: uint64(r.Revision),
		LSN: uint64(r.LSN), Duplicate: r.Duplicate,
	}
	if r.Channel != nil {
		out.Channel = &ChannelCopy{
			Seq: uint64(r.Channel.Seq), ContentRevision: uint64(r.Channel.Revision),
		}
	}
	return out
}

// Changed answers an edit, a removal and other work on messages.
type Changed struct {
	MessageID       string `json:"messageId,omitempty"`
	Seq             uint64 `json:"seq,omitempty"`
	ContentRevision uint64 `json:"contentRevision,omitempty"`
	LSN             uint64 `json:"lsn"`
	Duplicate       bool   `json:"duplicate"`
}

func changed(r facts.Receipt, err error) (Changed, error) {
	return Changed{
		MessageID: r.MessageID, Seq: uint64(r.Seq), ContentRevision: uint64(r.Revision),
		LSN: uint64(r.LSN), Duplicate: r.Duplicate,
	}, err
}

// MessageList is a page of messages, ascending by seq.
type MessageList struct {
	Messages []live.Message `json:"messages"`
	Page     MessagePage    `json:"page"`
}

// MessagePage says what a page means for the reader.
type MessagePage struct {
	HasMore             bool    `json:"hasMore"`
	ReadThroughRevision uint64  `json:"readThroughRevision,omitempty"`
	UnreadBefore        *uint64 `json:"unreadBefore,omitempty"`
}

// MessageBody is a message to append.
type MessageBody struct {
	OpID             string          `json:"opId"`
	Author           string          `json:"author,omitempty"`
	NotifyPrincipal  string          `json:"notifyPrincipal,omitempty"`
	MessageID        string          `json:"messageId,omitempty"`
	Kind             messageKind     `json:"kind,omitempty"`
	Readable         *bool           `json:"readable,omitempty"`
	Mentions         []string        `json:"mentions,omitempty" maxItems:"1000"`
	MentionsEveryone bool            `json:"mentionsEveryone,omitempty"`
	Broadcast        bool            `json:"broadcast,omitempty"`
	ReplyTo          string          `json:"replyTo,omitempty"`
	LocalID          string          `json:"localId,omitempty"`
	Baseline         bool            `json:"baseline,omitempty"`
	Silent           bool            `json:"silent,omitempty"`
	AdvanceCursor    *cursorAdvance  `json:"advanceCursor,omitempty"`
	Payload          json.RawMessage `json:"payload,omitempty"`
	ExpiresAt        *strict.Time    `json:"expiresAt,omitempty"`
}

// messageKind is a kind of entry; facts knows which there are.
type messageKind string

// Schema implements huma.SchemaProvider.
func (messageKind) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{
		"text", "media", "error", "reasoning", "tool", "usage", "metadata", "prompt", "system",
	}}
}

type cursorAdvance struct {
	ObservedRevision strict.Counter `json:"observedRevision"`
}

// op checks who may say what, and turns the body into an operation.
func (b *MessageBody) op(c *call, s readstate.ScopeID, create bool) (facts.Post, error) {
	op := facts.Post{
		Scope: s, OpID: b.OpID, Author: readstate.MemberID(b.Author),
		Principal: readstate.MemberID(b.NotifyPrincipal), MessageID: b.MessageID, Kind: string(b.Kind),
		Readable: b.Readable, Everyone: b.MentionsEveryone, Broadcast: b.Broadcast,
		ReplyTo: b.ReplyTo, LocalID: b.LocalID, Baseline: b.Baseline, Silent: b.Silent,
		Payload: b.Payload, ExpiresAt: b.ExpiresAt.Milliseconds(), CreateMembers: create,
		By: facts.Actor{Trusted: c.trusted()},
	}
	if !c.trusted() {
		self := c.who.Member
		op.By.Member = self
		switch {
		case op.Author == "":
			op.Author = self
		case op.Author != self:
			return op, refuse(CodeForbidden, "a member posts as itself")
		}
		if b.Baseline || op.Principal != "" && op.Principal != self {
			return op, refuse(CodeForbidden, "only a service sets baseline and notifyPrincipal")
		}
	}
	if op.Author == "" {
		return op, refuse(CodeInvalidRequest, "author is missing")
	}
	if b.AdvanceCursor != nil {
		op.AdvanceCursor = revision(&b.AdvanceCursor.ObservedRevision)
	}
	op.Mentions = memberIDs(b.Mentions)
	if err := facts.CheckID("opId", b.OpID); err != nil {
		return op, err
	}
	for _, id := range b.Mentions {
		if err := facts.CheckID("mention", id); err != nil {
			return op, err
		}
	}
	return op, checkIDs("member", b.Author, b.NotifyPrincipal)
}

func memberIDs(ids []string) []readstate.MemberID {
	out := make([]readstate.MemberID, len(ids))
	for i, id := range ids {
		out[i] = readstate.MemberID(id)
	}
	return out
}

type messageItem struct {
	Scope string `json:"scope"`
	MessageBody
}

type messageBatch struct {
	Messages []messageItem `json:"messages" maxItems:"1000"`
}

type postParams struct {
	scopeParams
	Create string `query:"create" enum:"members" doc:"Services: make unknown members"`
}

type postBatchParams struct {
	workspaceParams
	Create string `query:"create" enum:"members" doc:"Make unknown members"`
}

type messageListParams struct {
	scopeMemberParams
	logPage
}

const messagesPath = scopesPath + "/{s}/messages"

func (s *Server) addMessages() {
	add(s, route{
		method: http.MethodPost, path: messagesPath, id: "postMessage", tag: "messages",
		statuses: []int{http.StatusCreated, http.StatusOK}, about: "Append an entry.",
	}, func(c *call, p *postParams, b *MessageBody) (Posted, error) {
		create, err := c.mayCreate(p.Create)
		if err != nil {
			return Posted{}, err
		}
		op, err := b.op(c, p.S, create)
		if err != nil {
			return Posted{}, err
		}
		r, err := c.ws.Post(c.ctx(), op)
		return newPosted(&r), err
	})
	add(s, route{
		method: http.MethodPost, path: "/api/v1/workspaces/{ws}/messages:batch",
		id: "postMessages", tag: "messages", role: RoleService, limit: MaxBatchBody,
		about: "Append entries in order, each by itself.",
	}, postMessages)
	add(s, route{
		method: http.MethodGet, path: messagesPath, id: "listMessages", tag: "messages",
		about: "A page of messages: the newest, or those beside a seq.",
	}, listMessages)
	s.addEdits()
}

func postMessages(c *call, p *postBatchParams, b *messageBatch) (results[Posted], error) {
	batch := c.ws.Batch()
	named := 0
	for i := range b.Messages {
		item := &b.Messages[i]
		if err := facts.CheckID("scope", item.Scope); err != nil {
			return results[Posted]{}, err
		}
		op, err := item.op(c, readstate.ScopeID(item.Scope), p.Create == "members")
		if err != nil {
			return results[Posted]{}, err
		}
		if named += len(op.Mentions); named > facts.MaxNamedPerRequest {
			return results[Posted]{}, refuse(CodeInvalidRequest,
				"a request names at most %d members", facts.MaxNamedPerRequest)
		}
		batch.Post(op)
	}
	answers, err := batch.Run(c.ctx())
	if err != nil {
		return results[Posted]{}, err
	}
	out := results[Posted]{Results: make([]either[Posted], len(answers))}
	for i := range answers {
		out.Results[i] = resultOf(newPosted(&answers[i].Receipt), answers[i].Err, c.report)
	}
	return out, nil
}

func listMessages(c *call, p *messageListParams, _ *none) (MessageList, error) {
	if _, err := c.seen(p.S, p.Member); err != nil {
		return MessageList{}, err
	}
	viewer := c.who.Member
	if c.trusted() {
		viewer = p.Member
	}
	return p.list(c, p.S, viewer)
}

// logPage says which part of a scope's log is asked for.
type logPage struct {
	Before strict.Counter `query:"before" doc:"Messages with a lower seq, the newest of them"`
	After  strict.Counter `query:"after" doc:"Messages with a higher seq, the oldest of them"`
	Limit  int            `query:"limit" max:"500" doc:"At most so many. Default 100"`
}

func (p *logPage) list(
	c *call, s readstate.ScopeID, viewer readstate.MemberID,
) (MessageList, error) {
	if p.Before > 0 && p.After > 0 {
		return MessageList{}, refuse(CodeInvalidRequest, "either before or after, not both")
	}
	f := tidemark.MessageFilter{
		Scope: s, After: readstate.Seq(p.After), Before: readstate.Seq(p.Before),
		Limit: p.Limit, Viewer: viewer,
	}
	if f.Limit == 0 {
		f.Limit = DefaultPage
	}
	page, err := c.ws.Messages(c.ctx(), f)
	if err != nil {
		return MessageList{}, err
	}
	out := MessageList{
		Messages: make([]live.Message, len(page.Messages)),
		Page: MessagePage{
			HasMore: page.HasMore, ReadThroughRevision: uint64(page.ReadThrough),
			UnreadBefore: page.UnreadBefore,
		},
	}
	for i := range page.Messages {
		out.Messages[i] = live.NewMessage(&page.Messages[i])
	}
	return out, nil
}
