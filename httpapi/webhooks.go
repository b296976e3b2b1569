package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/outbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// Webhook tells an address of members' badges.
type Webhook struct {
	ID          string       `json:"id"`
	On          []string     `json:"on"`
	Members     []string     `json:"members"`
	Threshold   uint64       `json:"threshold,omitempty"`
	IdleSeconds uint64       `json:"idleSeconds,omitempty"`
	Endpoint    WakeEndpoint `json:"endpoint"`
	CreatedAt   time.Time    `json:"createdAt"`
}

// Webhooks are those of a workspace.
type Webhooks struct {
	Webhooks []Webhook `json:"webhooks"`
}

// webhookBody is a webhook to set. Each event that it names needs its number.
type webhookBody struct {
	URL         string         `json:"url"`
	Secret      string         `json:"secret"`
	On          []webhookEvent `json:"on" maxItems:"2"`
	Members     []string       `json:"members" maxItems:"1000"`
	Threshold   strict.Counter `json:"threshold,omitempty"`
	IdleSeconds strict.Counter `json:"idleSeconds,omitempty"`
}

// webhookEvent is what a webhook can tell of.
type webhookEvent string

// Schema implements huma.SchemaProvider.
func (webhookEvent) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{
		outbox.TypeUnreadThreshold, outbox.TypeUnreadIdle,
	}}
}

type webhookParams struct {
	workspaceParams
	ID string `path:"id" id:"webhook"`
}

func (b *webhookBody) webhook(id string) (outbox.Webhook, error) {
	h := outbox.Webhook{ID: id, Endpoint: outbox.Endpoint{URL: b.URL, Secret: b.Secret}}
	for _, m := range b.Members {
		if err := facts.CheckID("member", m); err != nil {
			return h, err
		}
		h.Members = append(h.Members, readstate.MemberID(m))
	}
	var threshold, idle bool
	for _, on := range b.On {
		threshold = threshold || on == outbox.TypeUnreadThreshold
		idle = idle || on == outbox.TypeUnreadIdle
	}
	if !threshold && !idle {
		return h, refuse(CodeInvalidRequest, "on names no event")
	}
	if threshold != (b.Threshold > 0) {
		return h, refuse(CodeInvalidRequest, "threshold goes with the event %s", outbox.TypeUnreadThreshold)
	}
	if idle != (b.IdleSeconds > 0) {
		return h, refuse(CodeInvalidRequest, "idleSeconds goes with the event %s", outbox.TypeUnreadIdle)
	}
	if b.IdleSeconds > strict.Counter(outbox.MaxIdle/time.Second) {
		return h, refuse(CodeInvalidRequest, "idleSeconds is above %d", outbox.MaxIdle/time.Second)
	}
	h.Threshold, h.Idle = uint64(b.Threshold), time.Duration(b.IdleSeconds)*time.Second
	return h, nil
}

const webhooksPath = "/api/v1/workspaces/{ws}/webhooks"

func (s *Server) addWebhooks() {
	add(s, route{
		method: http.MethodGet, path: webhooksPath, id: "listWebhooks", tag: "webhooks",
		role: RoleAdmin, about: "The webhooks of a workspace.",
	}, func(c *call, p *workspaceParams, _ *none) (Webhooks, error) {
		all, err := c.webhooks(p)
		return Webhooks{all}, err
	})
	add(s, route{
		method: http.MethodPut, path: webhooksPath + "/{id}", id: "putWebhook", tag: "webhooks",
		role:  RoleAdmin,
		about: "Tell an address when badges reach a number, or are left unread for long.",
	}, func(c *call, p *webhookParams, b *webhookBody) (Webhook, error) {
		box, err := c.outbox()
		if err != nil {
			return Webhook{}, err
		}
		h, err := b.webhook(p.ID)
		if err == nil {
			err = box.PutWebhook(c.ctx(), p.WS, h)
		}
		if err != nil {
			return Webhook{}, err
		}
		all, err := c.webhooks(&p.workspaceParams)
		for i := range all {
			if all[i].ID == p.ID {
				return all[i], err
			}
		}
		return Webhook{}, errors.Join(err, facts.ErrNotFound)
	})
	add(s, route{
		method: http.MethodDelete, path: webhooksPath + "/{id}", id: "removeWebhook",
		tag: "webhooks", role: RoleAdmin, about: "Drop a webhook and what waits for it.",
	}, func(c *call, p *webhookParams, _ *none) (Removed, error) {
		box, err := c.outbox()
		if err == nil {
			err = box.RemoveWebhook(c.ctx(), p.WS, p.ID)
		}
		return Removed{p.ID}, err
	})
}

// Removed names what is gone.
type Removed struct {
	ID string `json:"id"`
}

func (c *call) webhooks(p *workspaceParams) ([]Webhook, error) {
	box, err := c.outbox()
	if err != nil {
		return nil, err
	}
	all, err := box.Webhooks(c.ctx(), p.WS)
	out := make([]Webhook, len(all))
	for i := range all {
		h := &all[i]
		out[i] = Webhook{
			ID: h.ID, On: []string{}, Members: []string{}, Threshold: h.Threshold,
			IdleSeconds: uint64(h.Idle / time.Second), Endpoint: newWakeEndpoint(&h.Endpoint),
			CreatedAt: time.UnixMilli(h.CreatedAt).UTC(),
		}
		if h.Threshold > 0 {
			out[i].On = append(out[i].On, outbox.TypeUnreadThreshold)
		}
		if h.Idle > 0 {
			out[i].On = append(out[i].On, outbox.TypeUnreadIdle)
		}
		for _, m := range h.Members {
			out[i].Members = append(out[i].Members, string(m))
		}
	}
	return out, err
}
