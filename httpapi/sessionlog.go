package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/readstate"
)

const sessionEventsPath = "/api/events"

// SessionMessageBody is a message to append to a session.
type SessionMessageBody struct {
	OpID          string          `json:"opId,omitempty"`
	LocalID       string          `json:"localId,omitempty"`
	Author        string          `json:"author,omitempty"`
	MessageID     string          `json:"messageId,omitempty"`
	Kind          messageKind     `json:"kind,omitempty"`
	Readable      *bool           `json:"readable,omitempty"`
	Mentions      []string        `json:"mentions,omitempty" maxItems:"1000"`
	ReplyTo       string          `json:"replyTo,omitempty"`
	Baseline      bool            `json:"baseline,omitempty"`
	Silent        bool            `json:"silent,omitempty"`
	AdvanceCursor *cursorAdvance  `json:"advanceCursor,omitempty"`
	Payload       json.RawMessage `json:"payload,omitempty"`
	ExpiresAt     *strict.Time    `json:"expiresAt,omitempty"`
}

// op turns the body into an operation. The owner's own token may say everything in a session: the
// program that answers uses it, too.
func (b *SessionMessageBody) op(
	c *call, s readstate.ScopeID, owner readstate.MemberID,
) (facts.Post, error) {
	m := MessageBody{
		OpID: b.OpID, Author: b.Author, MessageID: b.MessageID, Kind: b.Kind, Readable: b.Readable,
		Mentions: b.Mentions, ReplyTo: b.ReplyTo, LocalID: b.LocalID, Silent: b.Silent,
		AdvanceCursor: b.AdvanceCursor, Payload: b.Payload, ExpiresAt: b.ExpiresAt,
	}
	switch {
	case b.OpID == "" && b.LocalID == "":
		return facts.Post{}, refuse(CodeInvalidRequest, "opId or localId is missing")
	case b.OpID == "":
		m.OpID = uuid.NewString() // a repeated localId is answered as the first one was
	}
	if m.Author == "" {
		m.Author = string(owner)
	}
	op, err := m.op(c, s, false)
	op.Baseline = b.Baseline
	return op, err
}

type sessionImport struct {
	OpID     string               `json:"opId"`
	Messages []SessionMessageBody `json:"messages" maxItems:"1000"`
}

type sessionLogParams struct {
	sessionParams
	logPage
}

type sessionStreamParams struct {
	memberParam
	Resume string `query:"resume" doc:"The id of the last event seen"`
}

// addSessionLog adds what is written in sessions and what is read of it.
func (s *Server) addSessionLog() {
	const tag = "sessions"
	add(s, route{
		method: http.MethodPost, path: sessionPath + "/messages", id: "postSessionMessage", tag: tag,
		statuses: []int{http.StatusCreated, http.StatusOK}, about: "Append an entry.",
	}, func(c *call, p *sessionParams, b *SessionMessageBody) (Posted, error) {
		scope, owner, err := p.scope(c)
		if err != nil {
			return Posted{}, err
		}
		op, err := b.op(c, scope, owner)
		if err != nil {
			return Posted{}, err
		}
		r, err := c.ws.Post(c.ctx(), op)
		return newPosted(&r), err
	})
	add(s, route{
		method: http.MethodGet, path: sessionPath + "/messages", id: "listSessionMessages", tag: tag,
		about: "A page of messages: the newest, or those beside a seq.",
	}, func(c *call, p *sessionLogParams, _ *none) (MessageList, error) {
		scope, owner, err := p.scope(c)
		if err != nil {
			return MessageList{}, err
		}
		return p.list(c, scope, owner)
	})
	add(s, route{
		method: http.MethodPost, path: sessionPath + "/import", id: "importSession", tag: tag,
		limit: MaxBatchBody, about: "Append history that nobody has to read, in order.",
	}, importSession)
	const state = sessionPath + "/read-state"
	add(s, route{
		method: http.MethodGet, path: state, id: "getSessionReadState", tag: tag,
		about: "What was read of a session, and what is left.",
	}, func(c *call, p *sessionParams, _ *none) (servable[ReadStateView], error) {
		scope, owner, err := p.scope(c)
		if err != nil {
			return servable[ReadStateView]{}, err
		}
		state, err := c.ws.ReadState(c.ctx(), owner, scope)
		return serve(newView(&state), err, c.state(owner))
	})
	add(s, route{
		method: http.MethodPut, path: state, id: "putSessionReadState", tag: tag,
		statuses: []int{http.StatusOK, http.StatusConflict},
		about:    "Read to what was seen, or set the manual mark.",
	}, func(c *call, p *sessionParams, b *readStateBody) (ReadStateDone, error) {
		scope, owner, err := p.scope(c)
		if err != nil {
			return ReadStateDone{}, err
		}
		return b.put(c, scope, owner)
	})
	addStream(s, route{
		method: http.MethodGet, path: sessionEventsPath, id: "sessionEvents", tag: tag,
		about: "Sessions and their messages as they change, as server-sent events.",
	}, func(c *call, p *sessionStreamParams) error {
		if id := c.r.Header.Get("Last-Event-ID"); id != "" {
			p.Resume = id
		}
		owner, err := c.owner(p.Member)
		if err != nil {
			return err
		}
		return c.follow(live.Subscription{
			Workspace: c.ws, Members: []readstate.MemberID{owner}, Sessions: true, Resume: p.Resume,
		}, (*live.Stream).SSE)
	})
}

// importSession appends all messages as history. Each has its own operation id, so that an import
// that broke off goes on where it was.
func importSession(c *call, p *sessionParams, b *sessionImport) (results[Posted], error) {
	var none results[Posted]
	scope, owner, err := p.scope(c)
	if err != nil {
		return none, err
	}
	if err := facts.CheckID("opId", b.OpID); err != nil {
		return none, err
	}
	if _, err := c.ws.Session(c.ctx(), owner, string(p.ID)); err != nil {
		return none, err
	}
	batch := c.ws.Batch()
	mentions := 0
	for i := range b.Messages {
		m := &b.Messages[i]
		if mentions += len(m.Mentions); mentions > facts.MaxNamedPerRequest {
			return none, refuse(CodeInvalidRequest, "a request names at most %d members",
				facts.MaxNamedPerRequest)
		}
		if m.OpID == "" {
			m.OpID = b.OpID + "#" + strconv.Itoa(i)
		}
		op, err := m.op(c, scope, owner)
		if err != nil {
			return none, fmt.Errorf("messages[%d]: %w", i, err)
		}
		op.Baseline = true
		batch.Post(op)
	}
	answers, err := batch.Run(c.ctx())
	if err != nil {
		return none, err
	}
	out := results[Posted]{Results: make([]either[Posted], len(answers))}
	for i := range answers {
		out.Results[i] = resultOf(newPosted(&answers[i].Receipt), answers[i].Err, c.report)
	}
	return out, nil
}
