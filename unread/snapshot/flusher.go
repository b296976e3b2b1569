package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// Flusher writes the backlog of books to the table, by interval and in batches, from one
// goroutine of its own. Nothing else writes there but barriers.
type Flusher struct {
	cfg   Config
	books func() []*Book
	after func(b *Book)

	turn   chan struct{} // of capacity one: one flush at a time
	stop   context.CancelFunc
	ctx    context.Context
	worker sync.WaitGroup

	flushes  atomic.Uint64
	written  atomic.Uint64
	failures atomic.Uint64
	barriers atomic.Uint64
	deferred atomic.Uint64
}

// NewFlusher starts the loop. Books returns the books there are; after, where it is not nil, is
// called for each book of which something was written, without any lock.
func NewFlusher(cfg Config, books func() []*Book, after func(b *Book)) (*Flusher, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Flusher{cfg: cfg, books: books, after: after, turn: make(chan struct{}, 1)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.worker.Go(w.loop)
	return w, nil
}

// Interval returns the time between two flushes.
func (w *Flusher) Interval() time.Duration { return w.cfg.FlushInterval }

// BatchSize returns how many rows one flush writes at most.
func (w *Flusher) BatchSize() int { return w.cfg.FlushBatchSize }

// FlushStats is what a flusher did.
type FlushStats struct {
	Flushes  uint64 // batches written
	Rows     uint64 // rows written
	Failures uint64 // batches that were not
	Barriers uint64 // deliveries to be made durable at once
	Deferred uint64 // those that were not
}

// Stats returns what was done since the start.
func (w *Flusher) Stats() FlushStats {
	return FlushStats{
		Flushes: w.flushes.Load(), Rows: w.written.Load(), Failures: w.failures.Load(),
		Barriers: w.barriers.Load(), Deferred: w.deferred.Load(),
	}
}

// loop flushes once an interval. A failed flush is tried again sooner, with growing pauses.
func (w *Flusher) loop() {
	pause, retry := w.cfg.FlushInterval, w.cfg.FlushRetry
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-timer.C:
		}
		if err := w.Flush(w.ctx); err == nil {
			pause, retry = w.cfg.FlushInterval, w.cfg.FlushRetry
		} else if w.ctx.Err() == nil {
			w.cfg.Log.Warn("snapshot flush failed; the rows stay dirty", "retry", retry, "error", err)
			pause = retry
			retry = min(2*retry, max(w.cfg.FlushInterval, w.cfg.FlushRetry))
		}
		timer.Reset(pause)
	}
}

// ErrStopped is the answer of a flusher that was closed: the rows may have another owner by now.
var ErrStopped = errors.New("flusher is stopped")

// Flush writes what is dirty now, in batches, and leaves what becomes dirty meanwhile to the
// next one. It is for the loop and operators, never for a request. A stop of the flusher ends it.
func (w *Flusher) Flush(ctx context.Context) error {
	ctx, end := w.untilStop(ctx)
	defer end()
	return w.flush(ctx)
}

// untilStop is a context that ends with the flusher, too.
func (w *Flusher) untilStop(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if w.ctx.Err() != nil {
		cancel(ErrStopped)
	}
	forget := context.AfterFunc(w.ctx, func() { cancel(ErrStopped) })
	return ctx, func() {
		forget()
		cancel(nil)
	}
}

func (w *Flusher) flush(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
	default:
		select {
		case w.turn <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("wait for another flush: %w", context.Cause(ctx))
		}
	}
	defer func() { <-w.turn }()
	if errors.Is(context.Cause(ctx), ErrStopped) {
		return ErrStopped
	}
	var failed []error
	for _, b := range w.books() {
		if err := w.flushBook(ctx, b); err != nil {
			failed = append(failed, err) // one workspace keeps none of the others
		}
	}
	return errors.Join(failed...)
}

func (w *Flusher) flushBook(ctx context.Context, b *Book) error {
	for left := b.Backlog(); left > 0; {
		batch, err := w.put(ctx, b, func() Batch { return b.Take(w.cfg.FlushBatchSize) })
		if len(batch.Rows) == 0 || err != nil {
			return err
		}
		left -= len(batch.keys)
	}
	return nil
}

// Barrier writes the given rows of members in one scope now, whether they are dirty or not, and
// nothing else: what waits for the interval goes on waiting. Only a scope that the table does not
// have yet goes with them, as it began. Once it returns nil, the rows survive a crash as they were
// when it was called, or newer, whatever a program writes that does not know of it. It is for
// deliveries that may only then be called delivered, and waits for at most one write.
// [ErrNotLoaded] asks for the rows to be fetched first, [ErrConflict] for [Book.Reconsider].
func (w *Flusher) Barrier(
	ctx context.Context, b *Book, scope readstate.ScopeKey, members []readstate.MemberKey,
) error {
	w.barriers.Add(1)
	ctx, end := w.untilStop(ctx)
	defer end()
	var refused error
	_, err := w.put(ctx, b, func() (batch Batch) {
		if refused = context.Cause(ctx); refused == nil {
			batch, refused = b.TakeThese(scope, members)
		}
		return batch
	})
	if err = errors.Join(err, refused); err != nil {
		w.deferred.Add(1)
	}
	return err
}

// put writes one batch.
func (w *Flusher) put(ctx context.Context, b *Book, take func() Batch) (Batch, error) {
	b.writing.Lock()
	defer b.writing.Unlock()
	batch := take()
	if len(batch.Rows) == 0 {
		return batch, nil
	}
	if err := w.write(ctx, batch.Rows); err != nil {
		b.Failed(batch)
		w.failures.Add(1)
		return batch, err
	}
	b.Done(batch)
	w.flushes.Add(1)
	w.written.Add(uint64(len(batch.Rows)))
	if w.after != nil {
		w.after(b)
	}
	return batch, nil
}

func (w *Flusher) write(ctx context.Context, rows []Row) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.FlushTimeout)
	defer cancel()
	return w.cfg.Store.Upsert(ctx, rows)
}

// Close ends the loop and what operators flush, and flushes once more, as far as the context allows.
// Nothing is written after it.
func (w *Flusher) Close(ctx context.Context) error {
	w.Abandon()
	return w.flush(ctx)
}

// Abandon ends the loop and writes nothing from then on, as a crash would.
func (w *Flusher) Abandon() {
	w.stop()
	w.worker.Wait()
}
