package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const (
	// A failing store is asked again after pauses between these.
	storeRetryFirst = 100 * time.Millisecond
	storeRetryMost  = 5 * time.Second
	// settleTries is how often a settlement is tried before its leases are left to run out.
	settleTries = 4
)

// rowLoop takes rows through their stages until ctx ends.
func (b *Outbox) rowLoop(ctx context.Context) {
	failed := 0
	rescan := int64(0) // when to look everywhere
	for ctx.Err() == nil {
		now := b.now()
		if now >= rescan {
			if err := b.rescan(ctx); err != nil {
				b.complain(ctx, "looking for outbox rows failed", err)
			} else {
				rescan = now + b.Limits.Rescan.Milliseconds()
			}
		}
		done, next, err := b.workRows(ctx)
		switch {
		case err != nil:
			failed++
			b.complain(ctx, "working off outbox rows failed", err)
			b.pause(ctx, backoff(b.Rand, storeRetryFirst, storeRetryMost, failed))
			continue
		case done > 0:
			failed = 0
			continue
		}
		failed = 0
		if next == 0 || rescan < next {
			next = rescan
		}
		timer := b.until(next, b.Limits.Rescan)
		select {
		case <-ctx.Done():
		case <-b.rows:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (b *Outbox) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		b.Log.Warn(what+"; it is tried again", "error", err)
	}
}

// pause waits; false when ctx ended first.
func (b *Outbox) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// rescan frees what earlier owners held and finds the workspaces with rows of which nobody told.
func (b *Outbox) rescan(ctx context.Context) error {
	n, err := b.Store.ReleaseLeases(ctx, b.Terms, b.now())
	if err != nil {
		return err
	}
	if n > 0 {
		b.metrics.released.Add(uint64(n))
		b.sends.set()
	}
	fresh, err := b.Store.FreshEffects(ctx)
	if err != nil {
		return err
	}
	for _, w := range fresh {
		if _, owned := b.Terms(w); owned {
			b.fresh.add(w)
		}
	}
	return nil
}

// workRows claims some rows and takes each as far as it goes. It returns how many there were, and
// when the next is due.
func (b *Outbox) workRows(ctx context.Context) (n int, next int64, err error) {
	fresh := b.fresh.take(b.Limits.BatchRows)
	claim := facts.EffectClaim{
		Terms: b.Terms, Lease: b.lease(), Now: b.now(), Fresh: fresh,
		FreshRows: b.Limits.FreshRows, Rows: b.Limits.BatchRows,
		Recipients: b.Limits.BatchRecipients, BehindFor: behindFor.Milliseconds(),
	}
	batch, err := b.Store.ClaimEffects(ctx, claim)
	if err != nil {
		b.fresh.add(fresh...)
		return 0, 0, err
	}
	b.fresh.add(batch.Left...)
	if len(batch.Effects) == 0 {
		if len(batch.Left) > 0 {
			b.rows.set()
		}
		return 0, batch.NextDue, nil
	}
	b.metrics.claimed.Add(uint64(len(batch.Effects)))
	outcomes := b.stageAll(ctx, claim.Lease, batch.Effects)
	return len(batch.Effects), batch.NextDue, b.settleRows(ctx, claim.Lease, outcomes)
}

// stageAll takes rows through the stages before the wakes, several at once. What is not reached
// in half the time of the lease is put back.
func (b *Outbox) stageAll(
	ctx context.Context, lease facts.Lease, effects []facts.Effect,
) []facts.EffectOutcome {
	outcomes := make([]facts.EffectOutcome, len(effects))
	latest := lease.Until - b.Limits.LeaseFor.Milliseconds()/2
	one := func(i int) {
		e := &effects[i]
		if now := b.now(); now >= latest || ctx.Err() != nil {
			outcomes[i] = facts.EffectOutcome{Effect: e, State: facts.EffectDeferred, DueAt: now}
			return
		}
		outcomes[i] = b.stage(ctx, e)
	}
	if b.Projection == nil && !b.RequireBarrier {
		for i := range effects { // nothing in it waits
			one(i)
		}
		return outcomes
	}
	var all sync.WaitGroup
	turns := make(chan struct{}, b.Limits.Stages)
	for i := range effects {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			one(i)
		})
	}
	all.Wait()
	return outcomes
}

// stage takes one row to where its wakes may be queued, or as far as it goes.
func (b *Outbox) stage(ctx context.Context, e *facts.Effect) facts.EffectOutcome {
	if e.Version > facts.PayloadVersion {
		return b.failed(e, fmt.Errorf("payload version %d is not known", e.Version))
	}
	if err := b.around(ctx, StageProjection, e, b.project); err != nil {
		if errors.Is(err, ErrPending) {
			return b.deferred(e, StageProjection, err)
		}
		return b.failed(e, fmt.Errorf("%s: %w", StageProjection, err))
	}
	if e.Version < facts.PayloadVersion { // RT-223: it has no recipients of its own
		return facts.EffectOutcome{Effect: e, State: facts.EffectDelivered}
	}
	if err := b.around(ctx, StageAccount, e, b.account); err != nil {
		return b.deferred(e, StageAccount, err)
	}
	if err := b.around(ctx, StageUpsert, e, b.upsert); err != nil {
		return b.deferred(e, StageUpsert, err)
	}
	return facts.EffectOutcome{Effect: e, State: facts.EffectDelivered}
}

// around runs a stage within its time, between the two moments that a probe sees.
func (b *Outbox) around(
	ctx context.Context, s Stage, e *facts.Effect,
	run func(ctx context.Context, e *facts.Effect) error,
) error {
	if err := b.step(ctx, s, false, &e.OutboxRow); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, b.Limits.StageTimeout)
	defer stop()
	if err := run(ctx, e); err != nil {
		return err
	}
	return b.step(ctx, s, true, &e.OutboxRow)
}

func (b *Outbox) step(ctx context.Context, s Stage, done bool, row *facts.OutboxRow) error {
	if b.OnStep == nil {
		return nil
	}
	return b.OnStep(ctx, Step{Stage: s, Done: done, Row: row})
}

func (b *Outbox) project(ctx context.Context, e *facts.Effect) error {
	if b.Projection == nil {
		return nil
	}
	return b.Projection.Project(ctx, e.WorkspaceID, &e.OutboxRow)
}

func (b *Outbox) account(ctx context.Context, e *facts.Effect) error {
	if b.Accounting == nil {
		return errNoRuntime
	}
	return b.Accounting.Accounted(ctx, e.WorkspaceID, e.Key.LSN(), e.Scope, e.Humans)
}

var (
	errNoRuntime = fmt.Errorf("%w: there is no runtime", ErrPending)
	errNoBarrier = fmt.Errorf("%w: there is no barrier", ErrPending)
)

// upsert is the barrier, where counts are not durable already. It is the one caller that a
// Barrier has.
func (b *Outbox) upsert(ctx context.Context, e *facts.Effect) error {
	switch {
	case !b.RequireBarrier:
		return nil
	case b.Barrier == nil:
		return errNoBarrier
	case len(e.Humans) == 0:
		return nil
	}
	b.metrics.barriers.Add(1)
	return b.Barrier.Upsert(ctx, e.WorkspaceID, &e.OutboxRow)
}

func (b *Outbox) deferred(e *facts.Effect, s Stage, err error) facts.EffectOutcome {
	wait := backoff(b.Rand, b.Limits.DeferFirst, b.Limits.DeferMost, e.Deferrals)
	return facts.EffectOutcome{
		Effect: e, State: facts.EffectDeferred, DueAt: b.now() + wait.Milliseconds(),
		Error: short(fmt.Errorf("%s: %w", s, err)),
	}
}

func (b *Outbox) failed(e *facts.Effect, err error) facts.EffectOutcome {
	o := facts.EffectOutcome{Effect: e, State: facts.EffectFailed, Error: short(err)}
	if e.Failures+1 >= b.Limits.RowAttempts {
		o.State = facts.EffectDead
		return o
	}
	wait := backoff(b.Rand, b.Limits.RetryFirst, b.Limits.RetryMost, e.Failures)
	o.DueAt = b.now() + wait.Milliseconds()
	return o
}

// settleRows records the outcomes of a claim, in transactions that are not too large.
func (b *Outbox) settleRows(
	ctx context.Context, lease facts.Lease, outcomes []facts.EffectOutcome,
) error {
	// What is known by now is recorded also when everything is being closed.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.Limits.LeaseFor/2)
	defer stop()
	held := map[readstate.MemberKey]struct{}{}
	for len(outcomes) > 0 {
		n, wakes := 0, 0
		for n < len(outcomes) && (n == 0 || wakes+wakesOf(&outcomes[n]) <= b.Limits.CommitWakes) {
			wakes += wakesOf(&outcomes[n])
			n++
		}
		s := facts.EffectSettlement{
			Terms: b.Terms, Lease: lease, Now: b.now(), Outcomes: outcomes[:n], Held: held,
			QueueLimit: b.Limits.Queue, BehindFor: behindFor.Milliseconds(),
		}
		if err := b.settlePart(ctx, s); err != nil {
			return err
		}
		outcomes = outcomes[n:]
	}
	return nil
}

func wakesOf(o *facts.EffectOutcome) int {
	if o.State != facts.EffectDelivered {
		return 0
	}
	return len(o.Effect.Agents)
}

// settlePart records one transaction's outcomes. It is tried again, since nothing else is known of
// the rows: if it happened unnoticed, the leases are found to be gone.
func (b *Outbox) settlePart(ctx context.Context, s facts.EffectSettlement) error {
	var settled facts.EffectsSettled
	for try := 0; ; try++ {
		err := b.settleSteps(ctx, s, false)
		if err == nil {
			settled, err = b.Store.SettleEffects(ctx, s)
		}
		if err == nil {
			err = b.settleSteps(ctx, s, true)
		}
		if err == nil {
			break
		}
		if try+1 == settleTries || errors.Is(err, facts.ErrNotOwner) {
			return err
		}
		wait := backoff(b.Rand, storeRetryFirst, storeRetryMost, try)
		if !b.pause(ctx, wait) {
			return err
		}
	}
	b.count(s, settled)
	b.readers.wake(settled.Woken)
	for i, state := range settled.States {
		if state == 0 { // perhaps it happened unnoticed
			for _, m := range s.Outcomes[i].Effect.Agents {
				b.readers.wake([]facts.Recipient{facts.AgentRecipient(m)})
			}
		}
	}
	b.sends.set()
	if settled.Freed {
		b.rows.set()
	}
	return nil
}

// settleSteps tells a probe of the two last stages of every row that is to be delivered.
func (b *Outbox) settleSteps(ctx context.Context, s facts.EffectSettlement, done bool) error {
	if b.OnStep == nil {
		return nil
	}
	stages := [...]Stage{StageWake}
	if done {
		stages[0] = StageDelivered
	}
	for i := range s.Outcomes {
		if s.Outcomes[i].State != facts.EffectDelivered {
			continue
		}
		if err := b.step(ctx, stages[0], done, &s.Outcomes[i].Effect.OutboxRow); err != nil {
			return err
		}
	}
	return nil
}

func (b *Outbox) count(s facts.EffectSettlement, settled facts.EffectsSettled) {
	m := &b.metrics
	for i, state := range settled.States {
		switch state {
		case facts.EffectDelivered:
			m.delivered.Add(1)
		case facts.EffectDeferred:
			m.deferred.Add(1)
		case facts.EffectFailed:
			m.failed.Add(1)
		case facts.EffectBehind:
			m.behind.Add(1)
		case facts.EffectDead:
			m.dead.Add(1)
			b.Log.Warn("an outbox row is given up", "event", EventID(&s.Outcomes[i].Effect.OutboxRow),
				"error", s.Outcomes[i].Error)
		default:
			m.lostRows.Add(1)
		}
	}
	m.wakes.Add(uint64(settled.Wakes))
	m.overflow.Add(uint64(settled.Overflow))
}
