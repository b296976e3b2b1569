package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// Overview is an inbox that was opened: what is new in it, and the proof of what was shown. Opening
// acknowledges nothing, however it ends: whoever shows the overview calls AcknowledgeInbox once it is
// there to be seen.
type Overview struct {
	ObservedThrough uint64
	Senders         []string
	Messages        []InboxMessage // the newest, ascending

	snapshot, op string
}

// InboxMessage is something that was addressed to the member.
type InboxMessage struct {
	Position  uint64          `json:"position"`
	Sender    string          `json:"sender"`
	Scope     string          `json:"scope"`
	MessageID string          `json:"messageId"`
	Text      string          `json:"text"`
	Payload   json.RawMessage `json:"payload"`
}

// InboxBadge returns the badge as it was read last, and what may be made of it. It asks nobody.
func (c *Client) InboxBadge() (readsync.InboxBadge, readsync.InboxState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inbox.Badge()
}

// InboxBoundary is what is acknowledged as far as is known. It never falls.
func (c *Client) InboxBoundary() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inbox.Boundary()
}

// RefreshInbox reads the badge. With an error what InboxBadge returns is stale, or still unavailable.
func (c *Client) RefreshInbox(ctx context.Context) error {
	var answer struct {
		Accepted     uint64   `json:"accepted_through"`
		Acknowledged uint64   `json:"acknowledged_through"`
		Senders      []string `json:"senders"`
	}
	err := c.inboxCall(ctx, http.MethodGet, "/badge", nil, &answer)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.inbox.Failed()
		return fmt.Errorf("read inbox badge: %w", err)
	}
	c.inbox.Answered(readsync.InboxBadge(answer))
	return nil
}

// OpenInbox loads the overview.
func (c *Client) OpenInbox(ctx context.Context) (*Overview, error) {
	var answer struct {
		SnapshotID      string         `json:"snapshotId"`
		ObservedThrough uint64         `json:"observedThrough"`
		Senders         []string       `json:"senders"`
		Messages        []InboxMessage `json:"messages"`
	}
	if err := c.inboxCall(ctx, http.MethodPost, ":open", struct{}{}, &answer); err != nil {
		return nil, fmt.Errorf("open inbox: %w", err)
	}
	return &Overview{
		ObservedThrough: answer.ObservedThrough, Senders: answer.Senders, Messages: answer.Messages,
		snapshot: answer.SnapshotID, op: c.opts.NewID(),
	}, nil
}

// AcknowledgeInbox says that an overview has been looked at. Whoever gets no answer calls it again
// with the same overview, which is then one acknowledgement; a RefusedError is final. What arrived
// after the overview stays new.
func (c *Client) AcknowledgeInbox(ctx context.Context, o *Overview) error {
	var answer struct {
		Through uint64 `json:"acknowledgedThrough"`
	}
	body := map[string]string{"opId": o.op, "snapshotId": o.snapshot}
	if err := c.inboxCall(ctx, http.MethodPost, "/acks", body, &answer); err != nil {
		return fmt.Errorf("acknowledge inbox: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inbox.Receipt(answer.Through)
	return nil
}

// inboxCall makes a request about the member's own inbox.
func (c *Client) inboxCall(ctx context.Context, method, rest string, body, into any) error {
	if _, err := c.authorize(ctx); err != nil { // the path has the namespace in it
		return err
	}
	ns, _ := c.auth.namespace()
	path := workspacePath(ns, "/members/"+url.PathEscape(ns.Member)+"/inbox"+rest)
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	if r.status != http.StatusOK {
		p := r.problem()
		return &RefusedError{Status: r.status, Code: p.Code, Detail: p.Detail}
	}
	return json.Unmarshal(r.body, into)
}
