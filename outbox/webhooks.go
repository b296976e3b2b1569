package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Webhook tells an address of members' badges. Threshold, where it is not zero, fires once when a
// badge's messages reach it from below, and again only after they were below it. Idle, where it
// is not zero, fires once when something has been unread for so long without a read. At least
// one of them is set.
type Webhook struct {
	ID        string
	Endpoint  Endpoint
	Members   []readstate.MemberID // at most MaxWebhookMembers
	Threshold uint64
	Idle      time.Duration // whole seconds, at most MaxIdle
}

// WebhookInfo is a webhook as it is stored.
type WebhookInfo struct {
	ID        string
	Members   []readstate.MemberID
	Threshold uint64
	Idle      time.Duration
	Endpoint  EndpointState
	CreatedAt int64 // milliseconds
}

func (h *Webhook) check() error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{facts.ErrInvalid}, args...)...)
	}
	if err := facts.CheckID("webhook", h.ID); err != nil {
		return err
	}
	switch {
	case h.Threshold == 0 && h.Idle == 0:
		return refuse("a webhook needs a threshold or an idle time")
	case h.Threshold > readstate.MaxCounter:
		return refuse("threshold is above %d", uint64(readstate.MaxCounter))
	case h.Idle < 0 || h.Idle > MaxIdle || h.Idle%time.Second != 0:
		return refuse("idle time must be whole seconds up to %v", MaxIdle)
	case len(h.Members) == 0:
		return refuse("a webhook needs members")
	case len(h.Members) > MaxWebhookMembers:
		return refuse("a webhook has at most %d members", MaxWebhookMembers)
	}
	return nil
}

// PutWebhook makes or changes a webhook. Of members it had before it remembers what it has fired;
// a new member's badge counts from the first look on: one that is above the threshold already has
// not reached it. facts.ErrLimit means that there are too many.
func (b *Outbox) PutWebhook(ctx context.Context, w readstate.WorkspaceID, h Webhook) error {
	secret, err := b.checkEndpoint(h.Endpoint)
	if err == nil {
		err = h.check()
	}
	if err == nil {
		err = b.find(ctx, w, func(v facts.View, p place) error {
			row, err := b.webhookRow(ctx, v, p, h, secret)
			if err != nil {
				return err
			}
			return b.storeWebhook(ctx, p, row)
		})
	}
	if err != nil {
		return fmt.Errorf("put webhook %q: %w", h.ID, err)
	}
	return nil
}

func (b *Outbox) storeWebhook(ctx context.Context, p place, row facts.WebhookRow) error {
	most := b.Limits.Webhooks
	if n := b.hooks.count(); n >= b.Limits.AllWebhooks {
		most = 0 // those that are there may still be changed
	}
	stored, err := b.Store.PutWebhook(ctx, facts.PutWebhook{
		Term: p.term, Now: b.now(), Most: most, Row: row,
	})
	if err != nil {
		return err
	}
	b.hooks.changed(stored.Key)
	b.sends.set()
	return nil
}

// webhookRow finds the members.
func (b *Outbox) webhookRow(
	ctx context.Context, v facts.View, p place, h Webhook, secret []byte,
) (facts.WebhookRow, error) {
	row := facts.WebhookRow{
		Workspace: p.key, ID: h.ID, Threshold: h.Threshold, Idle: h.Idle.Milliseconds(),
		Endpoint: facts.EndpointRow{URL: h.Endpoint.URL, Secret: secret},
	}
	seen := map[readstate.MemberKey]struct{}{}
	for _, id := range h.Members {
		m, ok, err := v.Member(ctx, p.key, id)
		if err != nil {
			return row, err
		}
		if !ok || m.Erased {
			return row, fmt.Errorf("member %q: %w", id, facts.ErrNotFound)
		}
		if _, twice := seen[m.Key]; twice {
			continue
		}
		seen[m.Key] = struct{}{}
		row.Members = append(row.Members, facts.WebhookState{Member: m.Key})
	}
	return row, nil
}

// RemoveWebhook drops a webhook and what waits for it. One that does not exist is
// facts.ErrNotFound.
func (b *Outbox) RemoveWebhook(ctx context.Context, w readstate.WorkspaceID, id string) error {
	err := b.find(ctx, w, func(_ facts.View, p place) error {
		key, found, err := b.findWebhook(ctx, p, id)
		if err == nil && found {
			found, err = b.Store.RemoveWebhook(ctx, p.term, p.key, id)
			b.hooks.changed(key)
		}
		if err == nil && !found {
			err = facts.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remove webhook %q: %w", id, err)
	}
	return nil
}

func (b *Outbox) findWebhook(
	ctx context.Context, p place, id string,
) (facts.WebhookKey, bool, error) {
	rows, err := b.webhookRows(ctx, p.key)
	for i := range rows {
		if rows[i].ID == id {
			return rows[i].Key, true, err
		}
	}
	return 0, false, err
}

// webhookRows are those of a workspace, of which there are few.
func (b *Outbox) webhookRows(
	ctx context.Context, w facts.WorkspaceKey,
) ([]facts.WebhookRow, error) {
	var all []facts.WebhookRow
	const page = 16
	for after := facts.WebhookKey(0); ; {
		rows, err := b.Store.Webhooks(ctx, w, after, page)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		if len(rows) < page {
			return all, nil
		}
		after = rows[len(rows)-1].Key
	}
}

// Webhooks returns the webhooks of a workspace.
func (b *Outbox) Webhooks(
	ctx context.Context, w readstate.WorkspaceID,
) ([]WebhookInfo, error) {
	var out []WebhookInfo
	err := b.find(ctx, w, func(_ facts.View, p place) error {
		rows, err := b.webhookRows(ctx, p.key)
		for i := range rows {
			h := &rows[i]
			info := WebhookInfo{
				ID: h.ID, Threshold: h.Threshold, Idle: time.Duration(h.Idle) * time.Millisecond,
				Endpoint: stateOf(&h.Endpoint), CreatedAt: h.CreatedAt,
			}
			for _, m := range h.Members {
				info.Members = append(info.Members, m.MemberID)
			}
			out = append(out, info)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	return out, nil
}
