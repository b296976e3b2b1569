package tidemark

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/intake"
)

// Options configures an engine. The zero value of each field is its documented default, except
// that one of Facts and Snapshots is required.
type Options struct {
	// Facts names the store: "sqlite:PATH", "postgres://USER:PASSWORD@HOST/DATABASE" or
	// "mysql://USER:PASSWORD@HOST/DATABASE", the last one for TiDB and MariaDB, too.
	Facts string
	// Snapshots is for a program that keeps its own facts, and tells the engine of them.
	Snapshots *Snapshots
	// Shared is set where other processes use the store of Facts, too; nil where this one owns it.
	Shared *Shared
	// Log takes the engine's log; nil discards it.
	Log *slog.Logger
	// Now is the clock: acceptance times, expiry and the end of notification levels. Nil is
	// time.Now. It never orders anything.
	Now func() time.Time
	// NewID makes message ids; nil makes UUIDs of version 7.
	NewID func() string
	// SweepEvery is how often expired messages are looked for. Default one second.
	SweepEvery time.Duration
	// Runtime tunes the memory; its Source and Now are the engine's.
	Runtime unread.Config
	// Lane tunes the group commit; its Store, Apply, Dropped, Now, NewID and Log are the engine's.
	Lane facts.LaneConfig
	// OnStatement observes every SQL statement, for probes in tests; nil costs nothing.
	OnStatement func(ctx context.Context, query string)
}

// Engine is an unread server in a process: one facts store, one lane, one runtime. It is safe
// for concurrent use. Close it to end its goroutines and release the store.
type Engine struct {
	opts    Options
	store   facts.Store
	lane    *facts.Lane
	runtime *unread.Runtime
	feeds   *feeds

	inboxFeeds inboxFeeds
	intake     *intake.Intake // in snapshot mode
	effects    effects
	owned      owned // where the store is shared
	log        *slog.Logger

	keys sync.Map // readstate.WorkspaceID -> facts.WorkspaceKey

	stop context.CancelFunc
	wg   sync.WaitGroup
}

const (
	defaultSweepEvery = time.Second
	// receiptSweeps is how many sweeps pass between two looks for receipts beyond their
	// horizon, which is a month: nobody waits for them to go.
	receiptSweeps = 3600
)

// Open opens the store, takes its ownership and makes it ready to serve. The schema is brought
// up to date. It fails with facts.ErrNotOwner while another process has the store open.
func Open(ctx context.Context, opts Options) (*Engine, error) {
	if opts.Snapshots != nil {
		return openSnapshots(ctx, opts)
	}
	store, err := sqlstore.Open(ctx, opts.Facts, sqlstore.Options{
		OnStatement: opts.OnStatement, Shared: opts.Shared != nil,
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", sqlstore.Shown(opts.Facts), err)
	}
	e, err := OpenStore(ctx, store, opts)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return e, nil
}

// OpenStore is Open on a store that the caller has opened. The engine owns it from now on.
func OpenStore(ctx context.Context, store facts.Store, opts Options) (*Engine, error) {
	if opts.Shared != nil && opts.Shared.Serving == nil {
		return nil, fmt.Errorf("%w: Shared needs Serving", facts.ErrInvalid)
	}
	opts = opts.withDefaults()
	e := &Engine{opts: opts, store: store, feeds: newFeeds(), log: opts.Log}
	rc := opts.Runtime
	rc.Source = source{e}
	rc.Now = func() int64 { return opts.Now().UnixMilli() }
	runtime, err := unread.New(rc)
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	e.runtime = runtime
	lc := opts.Lane
	lc.Store, lc.Apply, lc.Dropped = store, e.apply, e.dropped
	lc.Now, lc.NewID, lc.Log = opts.Now, opts.NewID, opts.Log
	if opts.Shared != nil {
		lc.Shared, lc.Serving, lc.Released = true, opts.Shared.Serving, e.released
	}
	if e.lane, err = facts.NewLane(ctx, lc); err != nil {
		runtime.Close()
		return nil, fmt.Errorf("lane: %w", err)
	}
	sweepCtx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.wg.Add(1)
	go e.sweep(sweepCtx)
	return e, nil
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = newMessageID
	}
	if o.SweepEvery == 0 {
		o.SweepEvery = defaultSweepEvery
	}
	return o
}

// newMessageID returns a UUID that sorts by time. It is unique, not secret.
func newMessageID() string {
	id, err := uuid.NewV7()
	if err != nil {
		panic(fmt.Sprintf("no randomness: %v", err)) // the system cannot make ids at all
	}
	return id.String()
}

// Close answers what was taken, ends every goroutine and releases the store.
func (e *Engine) Close() error {
	e.stop()
	e.wg.Wait()
	e.lane.Close()
	e.feeds.close()
	e.inboxFeeds.close()
	flushed := e.closeIntake()
	e.runtime.Close()
	if err := e.store.Close(); err != nil {
		return errors.Join(flushed, fmt.Errorf("close store: %w", err))
	}
	return flushed
}

// apply brings a durable commit into memory. The lane calls it from one goroutine, in order.
func (e *Engine) apply(c facts.Commit) {
	err := e.runtime.Apply(c.Workspace, c.LSN, c.Events)
	if errors.Is(err, unread.ErrNoWorkspace) {
		// The commit made the workspace: nobody's rows can be in memory yet.
		e.runtime.Open(c.Workspace, c.LSN)
	} else if err != nil {
		e.log.Error("apply failed; memory of the workspace is read again",
			"workspace", c.Workspace, "lsn", c.LSN, "error", err)
	}
	e.feeds.publish(c.Workspace, c.Messages)
	e.inboxFeeds.publish(c.Workspace, c.Inboxes)
	e.effects.commit(&c)
}

// dropped makes memory of a workspace start anew at lsn.
func (e *Engine) dropped(w readstate.WorkspaceID, lsn readstate.LSN) {
	e.runtime.Drop(w)
	e.runtime.Open(w, lsn)
	e.adopted(w)
}

// sweep removes expired messages, and receipts beyond their horizon.
func (e *Engine) sweep(ctx context.Context) {
	defer e.wg.Done()
	ticker := time.NewTicker(e.opts.SweepEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if n%receiptSweeps == 0 {
			if err := e.finishErasures(ctx); err != nil && ctx.Err() == nil {
				e.log.Warn("an erasure is not finished; a later sweep goes on", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := e.Sweep(ctx)
		if err == nil && n%receiptSweeps == receiptSweeps-1 {
			err = e.forgetReceipts(ctx)
		}
		if err != nil && ctx.Err() == nil {
			e.log.Warn("sweep failed; the next one tries again", "error", err)
		}
	}
}

// finishErasures goes on with erasures that a crash has broken off.
func (e *Engine) finishErasures(ctx context.Context) error {
	view, err := e.store.View(ctx)
	if err != nil {
		return err
	}
	half, err := view.HalfErased(ctx)
	if err = errors.Join(err, view.Close()); err != nil {
		return err
	}
	for _, m := range half {
		if err := e.lane.FinishErasure(ctx, m); err != nil && !e.away(err) {
			return err
		}
	}
	return nil
}

func (e *Engine) forgetReceipts(ctx context.Context) error {
	all, err := e.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range all {
		if e.Serves(w.ID) == nil {
			return e.lane.Forget(ctx, w.ID) // receipts of every workspace go together
		}
	}
	return nil
}

// Sweep removes every message that has expired by now, in all workspaces.
func (e *Engine) Sweep(ctx context.Context) error {
	due, err := e.expiring(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, w := range due { // one that fails keeps none of the others
		for {
			n, err := e.lane.Expire(ctx, w)
			if err != nil {
				failed = append(failed, fmt.Errorf("expire in workspace %q: %w", w, err))
			}
			if n == 0 {
				break
			}
		}
	}
	return errors.Join(failed...)
}

// expiring returns the workspaces that hold an expired message.
func (e *Engine) expiring(ctx context.Context) ([]readstate.WorkspaceID, error) {
	view, err := e.store.View(ctx)
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	defer func() { _ = view.Close() }() // read only: nothing to lose
	due, err := view.Expiring(ctx, e.opts.Now().UnixMilli())
	return e.ours(due), err
}

// Ping reports whether the facts store answers.
func (e *Engine) Ping(ctx context.Context) error {
	view, err := e.store.View(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = view.Close() }()
	_, err = view.Workspaces(ctx)
	return err
}

// Stats returns the runtime's figures.
func (e *Engine) Stats() unread.Stats { return e.runtime.Stats() }

// LaneStats returns the figures of the lane.
func (e *Engine) LaneStats() facts.LaneStats { return e.lane.Stats() }

// Workspaces returns every workspace, ascending by id.
func (e *Engine) Workspaces(ctx context.Context) ([]facts.WorkspaceRow, error) {
	view, err := e.store.View(ctx)
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	defer func() { _ = view.Close() }()
	return view.Workspaces(ctx)
}

// CreateWorkspace creates a workspace, or renames it. Where other processes use the store, too, any of
// them may do so, and the one that is to own a new workspace finds it with its next survey.
func (e *Engine) CreateWorkspace(
	ctx context.Context, id readstate.WorkspaceID, name string,
) (facts.Setting, error) {
	if e.opts.Shared != nil {
		return e.putShared(ctx, facts.PutWorkspace{ID: id, Name: name})
	}
	return e.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: id, Name: name})
}

// Workspace returns a handle on a workspace. It costs nothing and checks nothing: operations on
// a workspace that does not exist answer facts.ErrNotFound.
func (e *Engine) Workspace(id readstate.WorkspaceID) *Workspace {
	return &Workspace{engine: e, id: id}
}

// source is the runtime's way to durable facts.
type source struct{ engine *Engine }

// Page implements unread.Source.
func (s source) Page(ctx context.Context, r unread.PageRequest) (readstate.Page, error) {
	view, err := s.engine.store.View(ctx)
	if err != nil {
		return readstate.Page{}, err
	}
	defer func() { _ = view.Close() }()
	w, ok, err := view.Workspace(ctx, r.Workspace)
	if err != nil {
		return readstate.Page{}, err
	}
	if !ok {
		return readstate.Page{}, fmt.Errorf("workspace %q: %w", r.Workspace, unread.ErrNoMember)
	}
	m, ok, err := view.Member(ctx, w.Key, r.Member)
	if err != nil {
		return readstate.Page{}, err
	}
	if !ok {
		return readstate.Page{}, fmt.Errorf("member %q: %w", r.Member, unread.ErrNoMember)
	}
	return view.Page(ctx, facts.PageQuery{
		Workspace: w.Key, Member: m.Key, Cursor: r.Cursor, Limit: r.Limit, Only: r.Only,
	})
}
