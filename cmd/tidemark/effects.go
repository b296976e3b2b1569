package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/outbox"
)

// effectFlags say where wakes and webhooks may be sent.
type effectFlags struct {
	WakeAllow     []string `placeholder:"NETWORK" help:"${about_wake_allow}"`
	WakeAllowHTTP bool     `name:"wake-allow-http" help:"Let wakes and webhooks go to addresses without TLS."`

	network outbox.Network
}

const allPrivate = "private"

// Validate reads the networks.
func (f *effectFlags) Validate() error {
	f.network = outbox.Network{AllowHTTP: f.WakeAllowHTTP}
	for _, text := range f.WakeAllow {
		if text == allPrivate {
			f.network.Allow = append(f.network.Allow, outbox.AllowPrivate()...)
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--wake-allow: %q is no network like 10.0.0.0/8, nor %q", text, allPrivate)
		}
		f.network.Allow = append(f.network.Allow, p)
	}
	return nil
}

// effects is an outbox at work.
type effects struct {
	*outbox.Outbox
	ended chan error
}

// startEffects begins to carry out what facts cause.
func startEffects(
	ctx context.Context, engine *tidemark.Engine, network outbox.Network, limits outbox.Limits,
	now func() time.Time, log *slog.Logger,
) (*effects, error) {
	var box atomic.Pointer[outbox.Outbox] // commits may come before it is there
	port, err := engine.Effects(ctx, func(w facts.WorkspaceKey) {
		if b := box.Load(); b != nil {
			b.Poke(w)
		}
	})
	if err != nil {
		return nil, err
	}
	b, err := outbox.New(outbox.Options{
		Store: port.Store, Terms: port.Terms, Accounting: outbox.Applied(port.Applied),
		Badges: outbox.EngineBadges(engine), Network: network, Limits: limits, Now: now, Log: log,
	})
	if err != nil {
		return nil, err
	}
	box.Store(b)
	e := &effects{Outbox: b, ended: make(chan error, 1)}
	go func() { e.ended <- b.Run(context.WithoutCancel(ctx)) }()
	return e, nil
}

// stop lets requests under way end, and waits for everything.
func (e *effects) stop() error {
	e.Close()
	if err := <-e.ended; err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}
