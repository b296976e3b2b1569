package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// DeadLetter is something that was given up.
type DeadLetter struct {
	ID       string      `json:"id"`
	Message  WakeMessage `json:"message"`
	Kind     string      `json:"kind" enum:"row,wake"`
	Overflow bool        `json:"overflow"`
	Attempts int         `json:"attempts"`
	Error    string      `json:"error,omitempty"`
	DiedAt   time.Time   `json:"diedAt"`
}

// DeadLetters is a page of them, the oldest first.
type DeadLetters struct {
	Letters []DeadLetter `json:"letters"`
	Next    string       `json:"next,omitempty"`
}

type deadParams struct {
	workspaceParams
	paging
}

type requeueParams struct {
	workspaceParams
	ID string `path:"id" id:"letter"`
}

func (s *Server) addDeadLetters() {
	const path = "/api/v1/workspaces/{ws}/outbox/dead"
	add(s, route{
		method: http.MethodGet, path: path, id: "listDeadLetters", tag: "outbox",
		role: RoleAdmin, about: "What was given up: too many attempts, too old, or no room.",
	}, listDeadLetters)
	add(s, route{
		method: http.MethodPost, path: path + "/{id}:requeue", id: "requeueDeadLetter",
		tag: "outbox", role: RoleAdmin, about: "Take a dead letter up again, with a new budget.",
	}, func(c *call, p *requeueParams, _ *none) (Requeued, error) {
		id, err := strconv.ParseUint(p.ID, 10, 53)
		if err != nil {
			return Requeued{}, fmt.Errorf("dead letter %q: %w", p.ID, facts.ErrNotFound)
		}
		box, err := c.outbox()
		if err == nil {
			err = box.Requeue(c.ctx(), p.WS, facts.LetterID(id))
		}
		return Requeued{ID: p.ID}, err
	})
}

// Requeued names a letter that is none any more.
type Requeued struct {
	ID string `json:"id"`
}

func listDeadLetters(c *call, p *deadParams, _ *none) (DeadLetters, error) {
	after, err := p.after("dead letters")
	if err != nil {
		return DeadLetters{}, err
	}
	var from uint64
	if after != "" {
		if from, err = strconv.ParseUint(after, 10, 64); err != nil {
			return DeadLetters{}, refuse(CodeInvalidRequest, "pageToken is none of this list")
		}
	}
	box, err := c.outbox()
	if err != nil {
		return DeadLetters{}, err
	}
	letters, err := box.DeadLetters(c.ctx(), p.WS, facts.LetterID(from), p.limit()+1)
	if err != nil {
		return DeadLetters{}, err
	}
	page, more := cut(letters, p.limit())
	out := DeadLetters{Letters: make([]DeadLetter, len(page))}
	for i := range page {
		l := &page[i]
		out.Letters[i] = DeadLetter{
			ID: strconv.FormatUint(uint64(l.ID), 10), Message: WakeMessage(l.Message), Kind: "wake",
			Overflow: l.Overflow, Attempts: l.Attempts, Error: l.Error,
			DiedAt: time.UnixMilli(l.DiedAt).UTC(),
		}
		if l.Row {
			out.Letters[i].Kind = "row"
		}
	}
	if more {
		out.Next = pageToken("dead letters", out.Letters[len(page)-1].ID)
	}
	return out, nil
}
