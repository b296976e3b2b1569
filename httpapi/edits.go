package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/readstate"
)

type messageParams struct {
	scopeMemberParams
	ID string `path:"id" id:"message"`
}

type editBody struct {
	OpID             string          `json:"opId"`
	Mentions         *[]string       `json:"mentions,omitempty" maxItems:"1000"`
	MentionsEveryone *bool           `json:"mentionsEveryone,omitempty"`
	Payload          json.RawMessage `json:"payload,omitempty"`
}

type operationBody struct {
	OpID string `json:"opId"`
}

type cutBody struct {
	OpID       string         `json:"opId"`
	ThroughSeq strict.Counter `json:"throughSeq"`
}

type moveBody struct {
	OpID       string   `json:"opId"`
	Messages   []string `json:"messages" maxItems:"100"`
	To         string   `json:"to"`
	CountMoved bool     `json:"countMoved,omitempty"`
}

// addEdits registers what happens to messages after they were posted.
func (s *Server) addEdits() {
	add(s, route{
		method: http.MethodPatch, path: messagesPath + "/{id}", id: "editMessage",
		tag: "messages", about: "Change mentions or payload of one's own message.",
	}, editMessage)
	add(s, route{
		method: http.MethodDelete, path: messagesPath + "/{id}", id: "removeMessage",
		tag: "messages", about: "Delete one's own message.",
	}, func(c *call, p *messageParams, b *operationBody) (Changed, error) {
		by, err := c.actor(p.Member)
		if err != nil {
			return Changed{}, err
		}
		return changed(c.ws.Remove(c.ctx(), facts.Remove{
			Scope: p.S, Message: p.ID, OpID: b.OpID, By: by,
		}))
	})
	add(s, route{
		method: http.MethodPost, path: scopesPath + "/{s}/rewind", id: "rewindScope",
		tag: "messages", role: RoleService, about: "Remove every entry above a seq.",
	}, func(c *call, p *scopeMemberParams, b *cutBody) (Changed, error) {
		by, err := c.actor(p.Member)
		if err != nil {
			return Changed{}, err
		}
		return changed(c.ws.Rewind(c.ctx(), facts.Rewind{
			Scope: p.S, OpID: b.OpID, Through: readstate.Seq(b.ThroughSeq), By: by,
		}))
	})
	add(s, route{
		method: http.MethodPost, path: scopesPath + "/{s}/trim", id: "trimScope",
		tag: "messages", role: RoleService, about: "Retention: drop entries through a seq for good.",
	}, func(c *call, p *scopeMemberParams, b *cutBody) (Changed, error) {
		by, err := c.actor(p.Member)
		if err != nil {
			return Changed{}, err
		}
		return changed(c.ws.Trim(c.ctx(), facts.TrimScope{
			Scope: p.S, OpID: b.OpID, Through: readstate.Seq(b.ThroughSeq), By: by,
		}))
	})
	add(s, route{
		method: http.MethodPost, path: scopesPath + "/{s}/messages:move", id: "moveMessages",
		tag: "messages", role: RoleService, about: "Move messages to another scope.",
	}, moveMessages)
}

func editMessage(c *call, p *messageParams, b *editBody) (Changed, error) {
	by, err := c.actor(p.Member)
	if err != nil {
		return Changed{}, err
	}
	op := facts.Edit{
		Scope: p.S, Message: p.ID, OpID: b.OpID, Everyone: b.MentionsEveryone, By: by,
	}
	if b.Payload != nil {
		op.Payload = &b.Payload
	}
	if b.Mentions != nil {
		for _, id := range *b.Mentions {
			if err := facts.CheckID("mention", id); err != nil {
				return Changed{}, err
			}
		}
		mentions := memberIDs(*b.Mentions)
		op.Mentions = &mentions
	}
	return changed(c.ws.Edit(c.ctx(), op))
}

func moveMessages(c *call, p *scopeMemberParams, b *moveBody) (Changed, error) {
	by, err := c.actor(p.Member)
	if err != nil {
		return Changed{}, err
	}
	if err := facts.CheckID("to", b.To); err != nil {
		return Changed{}, err
	}
	for _, id := range b.Messages {
		if err := facts.CheckID("message", id); err != nil {
			return Changed{}, err
		}
	}
	return changed(c.ws.Move(c.ctx(), facts.Move{
		Scope: p.S, OpID: b.OpID, Messages: b.Messages, To: readstate.ScopeID(b.To),
		Counted: b.CountMoved, By: by,
	}))
}
