package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/outbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// Agent is Otto, who waits for wakes as a program of somebody else would, and answers those who
// name him in a task. It belongs to one goroutine.
type Agent struct {
	w        *tidemark.Workspace
	box      *outbox.Outbox
	patience time.Duration // of one look
}

// NewAgent makes an agent that has not looked yet.
func NewAgent(engine *tidemark.Engine, box *outbox.Outbox) *Agent {
	return &Agent{w: engine.Workspace(Workspace), box: box, patience: outbox.MaxWait}
}

// Run answers until ctx ends, which is no error, or until something fails.
func (a *Agent) Run(ctx context.Context) error {
	for after := facts.WakeKey(0); ; {
		wakes, err := a.box.Wakes(ctx, Workspace, Otto, after, a.patience, 0)
		for i := range wakes {
			if err == nil {
				err = a.answer(ctx, &wakes[i])
				after = wakes[i].Key // whoever asks on has done what it was told
			}
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // its end is what broke off the answer
		}
		if errors.Is(err, outbox.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("demo agent: %w", err)
		}
	}
}

// answer says that he was woken. The operation is named by the wake: one that comes twice is
// answered once.
func (a *Agent) answer(ctx context.Context, wake *outbox.Waiting) error {
	m := &wake.Message
	if m.Type != outbox.TypeTaskMessage {
		return nil
	}
	page, err := a.w.Messages(ctx, tidemark.MessageFilter{
		Scope: readstate.ScopeID(m.Scope), Before: readstate.Seq(m.Seq) + 1, Limit: 1,
	})
	if err != nil || len(page.Messages) == 0 {
		return err
	}
	asked := &page.Messages[0]
	if asked.ID != m.MessageID || !slices.Contains(asked.Mentions, Otto) {
		return nil
	}
	_, err = a.w.Post(ctx, facts.Post{
		Scope: readstate.ScopeID(m.Scope), OpID: wake.ID, Author: Otto, ReplyTo: asked.ID,
		Mentions: []readstate.MemberID{asked.Author},
		Payload:  payload(fmt.Sprintf("@%s I was woken for your message and am on it.", asked.Author)),
	})
	return err
}
