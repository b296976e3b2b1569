package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// inboxes is the newly-unread badge at work.
type inboxes struct {
	*inbox.Inbox
	ended chan error
}

// startInboxes begins to project what is addressed to members.
func startInboxes(
	ctx context.Context, engine *tidemark.Engine, limits inbox.Limits, summary inbox.Summary,
	now func() time.Time,
	log *slog.Logger,
) (*inboxes, error) {
	var box atomic.Pointer[inbox.Inbox] // commits may come before it is there
	port, err := engine.Inboxes(ctx, func(changes []facts.InboxChange) {
		b := box.Load()
		if b == nil {
			return
		}
		members := make([]readstate.MemberKey, len(changes))
		for i, c := range changes {
			members[i] = c.Member
		}
		b.Poke(members...)
	})
	if err != nil {
		return nil, err
	}
	b, err := inbox.New(inbox.Options{
		Store: port.Store, Terms: port.Terms, Changed: port.Changed, Summary: summary,
		Limits: limits, Now: now, Log: log,
	})
	if err != nil {
		return nil, err
	}
	box.Store(b)
	i := &inboxes{Inbox: b, ended: make(chan error, 1)}
	go func() { i.ended <- b.Run(context.WithoutCancel(ctx)) }()
	return i, nil
}

// stop ends the worker and waits for it.
func (i *inboxes) stop() error {
	i.Close()
	if err := <-i.ended; err != nil {
		return fmt.Errorf("inbox: %w", err)
	}
	return nil
}
