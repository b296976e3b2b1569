package tidemark

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/unread/intake"
	"github.com/tidemark-im/tidemark/unread/snapshot"
	"github.com/tidemark-im/tidemark/unread/snapshot/sqlsnap"
)

// Snapshots configures an engine without facts of its own: the program keeps messages, cursors
// and memberships, and tells the engine's [intake.Intake] of each once it is durable. All that the
// engine writes are snapshot rows, by interval; after a restart they are served as hints until
// events settle them. What a program does, as the example of [Open] shows:
//
//  1. Open the engine, then each workspace that this process owns: Engine.Intake().Open. Nothing is
//     read for it.
//  2. After each of its own transactions, [Workspace.Tell] what became durable: the scope with its
//     type and the memberships first, then messages, cursors and marks, one scope's in their order.
//     Tell waits for nothing; Intake.Settle waits until everything told is taken in.
//  3. Read with [Workspace.Row], Unread, Summary, Watch and the others that ask memory, and mind the
//     State of an answer: ready is exact, snapshot_serving may be behind, others come without a
//     number. Operations on facts, such as Post, fail with facts.ErrUnavailable or ErrNotFound.
//  4. Close the engine: what was told is taken in and written, as far as that takes seconds only.
//
// Package intake has the duties in full, and what happens to what is not told.
type Snapshots struct {
	// Store names where the rows are kept: "sqlite:PATH".
	Store string
	// Rows takes the place of Store for rows kept elsewhere. It is closed by the caller, after the
	// engine.
	Rows snapshot.Store
	// Intake holds the budgets, which its FromEnv takes from the environment, and the roster where
	// there is one. Store, Now and Log are the engine's. Of the budgets in Runtime those hold that
	// Options.Runtime leaves at zero.
	Intake intake.Config
}

// drainTime bounds the last flush of an engine that is closed.
const drainTime = 10 * time.Second

// errNoFacts is what every operation on facts answers in snapshot mode.
var errNoFacts = fmt.Errorf("%w: this engine has no facts, the program keeps them", facts.ErrUnavailable)

func openSnapshots(ctx context.Context, opts Options) (*Engine, error) {
	s := opts.Snapshots
	if opts.Facts != "" || (s.Rows == nil) == (s.Store == "") {
		return nil, fmt.Errorf(
			"open: want one of Facts, Snapshots.Store and Snapshots.Rows: %w", facts.ErrInvalid)
	}
	opts = opts.withDefaults()
	none := noFacts{}
	rows := s.Rows
	if rows == nil {
		path, ok := strings.CutPrefix(s.Store, "sqlite:")
		if !ok || path == "" {
			return nil, fmt.Errorf("open: snapshots %q: want sqlite:PATH: %w", s.Store, facts.ErrInvalid)
		}
		store, err := sqlsnap.OpenSQLite(ctx, path, sqlsnap.Options{OnStatement: opts.OnStatement})
		if errors.Is(err, sqlsnap.ErrOwned) {
			err = fmt.Errorf("%w: %w", facts.ErrNotOwner, err)
		}
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", s.Store, err)
		}
		rows, none.close = store, store.Close
	}
	e := &Engine{opts: opts, store: none, feeds: newFeeds(), log: opts.Log, stop: func() {}}
	cfg := s.Intake
	cfg.Store, cfg.Log, cfg.Runtime = rows, opts.Log, opts.Runtime.Or(cfg.Runtime)
	cfg.Now = func() int64 { return opts.Now().UnixMilli() }
	var err error
	if e.intake, err = intake.New(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("open: %w", err), none.Close())
	}
	e.runtime = e.intake.Runtime()
	lc := opts.Lane
	lc.Store, lc.Apply, lc.Dropped = none, e.apply, e.dropped
	lc.Now, lc.NewID, lc.Log = opts.Now, opts.NewID, opts.Log
	if e.lane, err = facts.NewLane(ctx, lc); err != nil {
		e.intake.Abandon()
		return nil, errors.Join(fmt.Errorf("lane: %w", err), none.Close())
	}
	return e, nil
}

// Intake is where a program in snapshot mode tells what it made durable; nil in every other.
// Workspaces are opened there.
func (e *Engine) Intake() *intake.Intake { return e.intake }

// closeIntake writes what is dirty, as far as it can in time.
func (e *Engine) closeIntake() error {
	if e.intake == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := e.intake.Close(ctx); err != nil {
		return fmt.Errorf("last flush of snapshots: %w", err)
	}
	return nil
}

// noFacts is the facts store of an engine that has none.
type noFacts struct{ close func() error }

func (noFacts) Begin(context.Context) (facts.Tx, error)  { return nil, errNoFacts }
func (noFacts) View(context.Context) (facts.View, error) { return nil, errNoFacts }

// TakeOver has no workspaces to take over.
func (noFacts) TakeOver(context.Context) ([]facts.WorkspaceRow, error) { return nil, nil }

func (noFacts) Fences(
	context.Context, []facts.WorkspaceKey,
) (map[facts.WorkspaceKey]facts.Fence, error) {
	return nil, errNoFacts
}

// Close releases the snapshot rows.
func (n noFacts) Close() error {
	if n.close == nil {
		return nil
	}
	return n.close()
}

var _ facts.Store = noFacts{}

// Tell is Intake().Tell for this workspace: see there.
func (w *Workspace) Tell(events ...intake.Event) error {
	if w.engine.intake == nil {
		return fmt.Errorf("tell %q: %w: this engine keeps the facts itself", w.id, facts.ErrInvalid)
	}
	return w.engine.intake.Tell(w.id, events...)
}
