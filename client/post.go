package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// NewMessage is what somebody wrote.
type NewMessage struct {
	// ID names it: posting it again under the same id posts nothing more, so that whoever got no
	// answer repeats the call. Anything unique will do, as a UUID.
	ID string `json:"-"`
	// Kind says what it is; empty is a text. In a session the owner's own words are a "prompt".
	Kind string `json:"kind,omitempty"`
	// Mentions are members whom it names, in a scope of the hub.
	Mentions []string `json:"mentions,omitempty"`
	// Payload is any JSON, at most 64 KiB.
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Post appends a message to a session. It waits for the server and keeps nothing: after a
// RefusedError that is Final it was not posted and cannot be; after any other error it may or may not
// have been posted, and is repeated with the same ID.
func (c *Client) Post(ctx context.Context, session string, m NewMessage) error {
	return c.post(ctx, session, struct {
		LocalID string `json:"localId"`
		NewMessage
	}{m.ID, m})
}

// PostToScope appends a message to a scope of the hub, as Post does to a session.
func (c *Client) PostToScope(ctx context.Context, scope string, m NewMessage) error {
	return c.post(ctx, scopeTarget(scope), struct {
		OpID string `json:"opId"`
		NewMessage
	}{m.ID, m})
}

func (c *Client) post(ctx context.Context, target string, body any) error {
	if err := checkTarget(target); err != nil {
		return fmt.Errorf("post: %s: %w", nameTarget(target), err)
	}
	if _, err := c.authorize(ctx); err != nil { // a scope's path has the namespace in it
		return fmt.Errorf("post: %s: %w", nameTarget(target), err)
	}
	r, err := c.request(ctx, http.MethodPost, c.targetPath(target, "/messages"), body)
	if err != nil {
		return fmt.Errorf("post: %s: %w", nameTarget(target), err)
	}
	if r.status == http.StatusOK || r.status == http.StatusCreated {
		var posted struct {
			MessageID string `json:"messageId"`
		}
		if json.Unmarshal(r.body, &posted) != nil || posted.MessageID == "" {
			return fmt.Errorf("post: %s: %w", nameTarget(target), errOther) // a page of somebody else
		}
		return nil
	}
	return fmt.Errorf("post: %s: %w", nameTarget(target), r.refusal())
}
