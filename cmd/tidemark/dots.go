package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/rueidis"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/substrate"
	"github.com/tidemark-im/tidemark/substrate/redisdots"
)

// dots are the red dots that this process publishes, and those of others that it shows.
type dots struct {
	store     *redisdots.Dots
	publisher *substrate.Publisher
	reader    *substrate.Reader
	end       context.CancelFunc
	running   sync.WaitGroup
}

// startDots begins to publish those of an engine, if there is one, and to listen; nil where there is no
// substrate. Whether the substrate can be reached does not matter.
func startDots(
	ctx context.Context, url string, engine *tidemark.Engine, metrics *prometheus.Registry,
	log *slog.Logger,
) (*dots, error) {
	if url == "" {
		return nil, nil
	}
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("--substrate: %w", err)
	}
	d := &dots{store: redisdots.New(option)}
	source := substrate.Nobody
	if engine != nil {
		source = substrate.Engine(engine)
	}
	d.publisher, err = substrate.NewPublisher(substrate.PublisherOptions{
		Store: d.store, Source: source, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if d.reader, err = substrate.NewReader(substrate.ReaderOptions{Store: d.store}); err != nil {
		return nil, err
	}
	if err := d.register(metrics); err != nil {
		return nil, err
	}
	ctx, d.end = context.WithCancel(context.WithoutCancel(ctx)) // stop ends it
	if engine != nil {
		d.running.Go(func() { d.publisher.Run(ctx) })
	}
	d.running.Go(func() { d.reader.Run(ctx) })
	return d, nil
}

// stop ends what startDots began. A nil d is none.
func (d *dots) stop() {
	if d != nil {
		d.end()
		d.running.Wait()
		d.store.Close()
	}
}

// lists is d as lists of workspaces ask it.
func (d *dots) lists() httpapi.Dots {
	if d == nil {
		return nil
	}
	return listedDots{d.reader}
}

type listedDots struct{ reader *substrate.Reader }

// Dots implements httpapi.Dots.
func (l listedDots) Dots(
	ctx context.Context, m readstate.MemberID, of []readstate.WorkspaceID,
) map[readstate.WorkspaceID]bool {
	known := l.reader.Dots(ctx, m, of)
	out := make(map[readstate.WorkspaceID]bool, len(known))
	for w := range known {
		dot := known[w]
		out[w] = dot.Unread
	}
	return out
}

// register adds the figures of the substrate to those of the server.
func (d *dots) register(to *prometheus.Registry) error {
	var errs []error
	count := func(name, help string, value func() uint64) {
		errs = append(errs, to.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "tidemark_dots_" + name + "_total", Help: help},
			func() float64 { return float64(value()) })))
	}
	gauge := func(name, help string, value func() float64) {
		errs = append(errs, to.Register(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "tidemark_dots_" + name, Help: help}, value)))
	}
	p, r := d.publisher.Stats, d.reader.Stats
	count("published", "Dots that the substrate took.", func() uint64 { return p().Published })
	count("refused", "Dots that were older than what the substrate had.",
		func() uint64 { return p().Refused })
	count("failures", "Exchanges with the substrate that failed.",
		func() uint64 { return p().Failed + r().Failed })
	count("over_budget", "Wishes for dots beyond a limit.",
		func() uint64 { return p().Dropped + r().Refused })
	count("found", "Dots of lists that were known.", func() uint64 { return r().Found })
	count("missing", "Dots of lists that were withheld.", func() uint64 { return r().Missing })
	count("malformed", "Values in the substrate that were not understood.", d.store.Malformed)
	gauge("members", "Members whose dots are published.", func() float64 { return float64(p().Members) })
	gauge("workspaces", "Workspaces of which dots are published.",
		func() float64 { return float64(p().Workspaces) })
	gauge("followed", "Dots that are followed here.", func() float64 { return float64(r().Followed) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}
