package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/relay/evidence"
	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// MaxText bounds a message that is written, in bytes.
const MaxText = 16 << 10

// Row is a verified message of a channel as a timeline shows it.
type Row struct {
	ID        string        `json:"id"`
	Author    nostrx.PubKey `json:"author"`
	At        int64         `json:"at"` // seconds since 1970
	Text      string        `json:"text"`
	RootID    string        `json:"rootId,omitempty"`
	ParentID  string        `json:"parentId,omitempty"`
	Own       bool          `json:"own"`
	Mentioned bool          `json:"mentioned"`
	Broadcast bool          `json:"broadcast"`
	Unread    bool          `json:"unread"`
}

// Page returns up to limit messages of a channel before a second (0 for the newest), oldest first, asked
// from the relay and verified. What it returns is evidence from then on: it can be observed. Deleted
// messages are left out.
func (a *Agent) Page(ctx context.Context, channel string, before int64, limit int) ([]Row, error) {
	if _, _, err := a.granted(channel); err != nil {
		return nil, err
	}
	f := nostrx.Filter{
		Kinds: contentKinds, Tags: map[string][]string{"h": {channel}}, Aux: true,
		Limit: nostrx.Whole(int64(min(max(limit, 1), evidence.PageSize))),
	}
	if before > 0 {
		f.Until = nostrx.Whole(before - 1)
	}
	events, err := a.query(ctx, f)
	if err != nil {
		return nil, err
	}
	a.change(func(c *core) { err = c.add(events) })
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.core.window.Access(channel) {
		return nil, ErrDenied
	}
	var messages []frontier.Message
	for _, e := range events {
		if m, ok := a.core.window.Message(string(e.ID)); ok && !m.Deleted && m.Channel == channel {
			messages = append(messages, m)
		}
	}
	slices.SortFunc(messages, frontier.CompareShown)
	rows := make([]Row, 0, len(messages))
	for _, m := range messages {
		e, _ := a.core.window.Event(m.ID)
		refs := evidence.ParseRefs(e)
		rows = append(rows, Row{
			ID: m.ID, Author: e.PubKey, At: e.CreatedAt, Text: e.Content, RootID: cmp.Or(m.Root, refs.Root),
			ParentID: refs.Parent, Own: m.Own, Mentioned: m.Mentioned, Broadcast: m.Broadcast,
			Unread: a.core.view.Verdict(m).Unread(),
		})
	}
	return rows, nil
}

// ErrText says that a message is empty or longer than MaxText.
var ErrText = fmt.Errorf("a message has 1 to %d bytes", MaxText)

// Write signs a message and gives it to the relay. An error after it was sent says that nobody knows
// whether the relay has it.
func (a *Agent) Write(ctx context.Context, channel, text, replyTo string) (string, error) {
	if text == "" || len(text) > MaxText {
		return "", ErrText
	}
	if _, _, err := a.granted(channel); err != nil {
		return "", err
	}
	tags := []nostrx.Tag{{"h", channel}}
	if replyTo != "" {
		a.mu.Lock()
		m, ok := a.core.window.Message(replyTo)
		a.mu.Unlock()
		if !ok || m.Channel != channel || m.Deleted {
			return "", ErrMessage
		}
		tags = append(tags,
			nostrx.Tag{"e", cmp.Or(m.Root, replyTo), "", "root"}, nostrx.Tag{"e", replyTo, "", "reply"})
	}
	e, err := a.o.Key.Sign(nostrx.Event{
		Kind: nostrx.KindChat, CreatedAt: a.o.Now().Unix(), Tags: tags, Content: text,
	})
	if err != nil {
		return "", err
	}
	receipt, err := a.client.Publish(ctx, e)
	if err != nil {
		return "", err
	}
	if !receipt.Accepted {
		return "", errors.Join(nostrx.ErrRefused, errors.New(receipt.Reason))
	}
	a.change(func(c *core) { _ = c.add([]nostrx.Event{e}) })
	return string(e.ID), nil
}
