package outbox

import (
	"context"
	"errors"

	"github.com/tidemark-im/tidemark/facts"
)

const (
	// settleAtOnce bounds the outcomes of one transaction.
	settleAtOnce = 256
	// settleQueue is how many outcomes wait for a transaction; whoever has more waits.
	settleQueue = 1024
)

// settler records outcomes of queues. Those that come while a transaction is under way share the
// next one.
type settler struct {
	b     *Outbox
	in    chan settleItem
	ended chan struct{}
}

type settleItem struct {
	outcome facts.WakeOutcome
	done    chan error // nil when nobody waits; has room for one
}

func newSettler(b *Outbox) *settler {
	return &settler{b: b, in: make(chan settleItem, settleQueue), ended: make(chan struct{})}
}

// put hands an outcome on. It waits while too many do.
func (s *settler) put(i settleItem) {
	select {
	case s.in <- i:
	case <-s.ended:
	}
}

// ask records an outcome and waits until it is durable.
func (s *settler) ask(ctx context.Context, o facts.WakeOutcome) error {
	i := settleItem{outcome: o, done: make(chan error, 1)}
	select {
	case s.in <- i:
	case <-s.ended:
		return ErrClosed
	case <-s.b.closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-i.done:
		return err
	case <-s.ended:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run records until ctx ends, and then what is left.
func (s *settler) run(ctx context.Context) {
	defer close(s.ended)
	for {
		select {
		case i := <-s.in:
			s.commit(ctx, s.gather(i))
		case <-ctx.Done():
			for {
				select {
				case i := <-s.in:
					s.commit(ctx, s.gather(i))
				default:
					return
				}
			}
		}
	}
}

// gather takes what waits by now.
func (s *settler) gather(first settleItem) []settleItem {
	all := []settleItem{first}
	for len(all) < settleAtOnce {
		select {
		case i := <-s.in:
			all = append(all, i)
		default:
			return all
		}
	}
	return all
}

// commit records outcomes in one transaction, and tries that some times: what is lost here is
// sent again when the lease has run out.
func (s *settler) commit(ctx context.Context, items []settleItem) {
	b := s.b
	settlement := facts.WakeSettlement{Terms: b.Terms, Outcomes: make([]facts.WakeOutcome, len(items))}
	for i := range items {
		settlement.Outcomes[i] = items[i].outcome
	}
	var settled facts.WakesSettled
	var err error
	for try := range settleTries {
		settlement.Now = b.now()
		settled, err = b.Store.SettleWakes(context.WithoutCancel(ctx), settlement)
		if err == nil || errors.Is(err, facts.ErrNotOwner) {
			break
		}
		b.Log.Warn("settling wakes failed", "error", err, "outcomes", len(items))
		if !b.pause(ctx, backoff(b.Rand, storeRetryFirst, storeRetryMost, try)) {
			break
		}
	}
	if err == nil {
		b.metrics.removed.Add(uint64(settled.Removed - settled.Dead))
		b.metrics.deadWakes.Add(uint64(settled.Dead))
		b.metrics.lostQueues.Add(uint64(settled.Lost))
		b.sends.set() // also for what is due soon: it was leased when somebody looked last
	} else {
		b.metrics.lostQueues.Add(uint64(len(items)))
	}
	for _, i := range items {
		if i.done != nil {
			i.done <- err
		}
		if i.outcome.Disable {
			b.Log.Info("an endpoint is gone", "recipient", int64(i.outcome.Recipient))
			if hook, ok := i.outcome.Recipient.Webhook(); ok {
				b.hooks.changed(hook)
			}
		}
	}
}
