package agent

import (
	"context"
	"time"

	"github.com/tidemark-im/tidemark/relay/evidence"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// pause is how long the agent waits before it subscribes again to a relay that ended it.
const pause = 5 * time.Second

// listen takes what the relay pushes, until the context ends.
func (a *Agent) listen(ctx context.Context) {
	for ctx.Err() == nil {
		since := nostrx.Whole(a.o.Now().Unix() - evidence.Margin)
		limit := nostrx.Whole(evidence.PageSize)
		sub, err := a.client.Subscribe(ctx,
			nostrx.Filter{
				Kinds: append([]int{nostrx.KindEdit, nostrx.KindDelete, nostrx.KindModeratorDelete}, contentKinds...),
				Since: since, Limit: limit,
			},
			nostrx.Filter{Kinds: []int{kindChannel, kindMembers}, Since: since, Limit: limit},
			nostrx.Filter{
				Kinds: []int{nostrx.KindAppData}, Authors: []nostrx.PubKey{a.o.Key.Public()},
				Tags: map[string][]string{"t": {"read-state"}}, Since: since, Limit: limit,
			})
		if err != nil {
			return // the client is closed
		}
		a.follow(ctx, sub)
		sub.Close()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			a.request(false, true)
		}
	}
}

// follow takes signals until the subscription ends.
func (a *Agent) follow(ctx context.Context, sub *nostrx.Subscription) {
	for {
		s, err := sub.Next(ctx)
		if err != nil {
			return
		}
		switch s.Kind {
		case nostrx.SignalEvent:
			a.arrived(ctx, s.Event)
		case nostrx.SignalGap:
			a.request(false, true)
		case nostrx.SignalRefused:
			return
		case nostrx.SignalCaughtUp: // the relay's word, which proves nothing
		}
	}
}

// arrived takes one event.
func (a *Agent) arrived(ctx context.Context, e nostrx.Event) {
	switch e.Kind {
	case nostrx.KindAppData:
		if err := a.merge(ctx, []nostrx.Event{e}, nil); err != nil {
			a.change(func(c *core) { c.failed = err })
		}
	case kindChannel, kindMembers:
		before := false
		a.change(func(c *core) {
			before = a.hasInfo && e.PubKey == a.info.Self
			if before {
				c.learn([]nostrx.Event{e}, false)
			}
		})
		if before {
			a.request(false, false) // a new channel has messages
		}
	default:
		// An overflow is told by the core.
		a.change(func(c *core) { _ = c.add([]nostrx.Event{e}) })
	}
}
