package outbox

import (
	"context"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// upkeepLoop drops what is settled and old, until ctx ends.
func (b *Outbox) upkeepLoop(ctx context.Context) {
	ticker := time.NewTicker(b.Limits.Rescan)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := b.purge(ctx); err != nil {
			b.complain(ctx, "purging the outbox failed", err)
		}
	}
}

func (b *Outbox) purge(ctx context.Context) error {
	for {
		now := b.now()
		n, err := b.Store.Purge(ctx, facts.OutboxPurge{
			Terms:     b.Terms,
			Delivered: now - b.Limits.KeepDelivered.Milliseconds(),
			Dead:      now - b.Limits.KeepDead.Milliseconds(),
			Limit:     dropsAtOnce,
		})
		b.metrics.purged.Add(uint64(n))
		if err != nil || n < dropsAtOnce || ctx.Err() != nil {
			return err
		}
	}
}
