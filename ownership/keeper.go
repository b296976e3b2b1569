package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// ErrExpelled means that another process has enrolled under the name of this one's node. What it
// owned is dropped, and nothing will be owned again: the process has to end.
var ErrExpelled = errors.New("another process goes by the name of this node")

// Engine is what serves and commits. Its methods are called from one goroutine. They fail only when
// the engine is closed.
type Engine interface {
	// Adopt begins to serve a workspace from its term and LSN on. Its memory begins empty.
	Adopt(ctx context.Context, w facts.WorkspaceRow) error
	// Release ends it: when it returns, nothing of the workspace is answered or written any more, and
	// the commits under way have ended, whatever came of them.
	Release(ctx context.Context, id readstate.WorkspaceID) error
}

// Options configures a keeper. Registry, Engine and Self.Node are required.
type Options struct {
	Registry facts.Registry
	Engine   Engine
	Self     facts.NodeInfo

	TTL   time.Duration // of the lease; DefaultTTL
	Every time.Duration // between surveys; a tenth of TTL
	Moves int           // workspaces released to other nodes at once; DefaultMoves
	Clock Clock         // nil: the system's
	Log   *slog.Logger  // nil: nothing is logged
}

// DefaultMoves is how many workspaces a node releases to better owners in one survey.
const DefaultMoves = 16

// Clock is time as a keeper sees it. Now has to be monotonic.
type Clock interface {
	Now() time.Time
	// After returns a channel that receives once after d.
	After(d time.Duration) <-chan time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Keeper holds a node's lease and its workspaces. Run does the work; all other methods are safe for
// concurrent use and never wait.
type Keeper struct {
	opts  Options
	lease *lease
	view  atomic.Pointer[Picture]
	drain chan struct{}
	once  sync.Once

	// Of the goroutine of Run:
	seat  facts.Seat
	held  map[readstate.WorkspaceID]uint64 // terms
	sent  time.Time                        // when the last renewal that succeeded was sent
	renew time.Time                        // when the next one is due
}

// Picture is who owns what, as of the last survey. It does not change any more.
type Picture struct {
	Nodes  []facts.NodeRow
	Owners map[readstate.WorkspaceID]string // nodes
	Terms  map[readstate.WorkspaceID]uint64 // of every workspace
	At     time.Time
}

// New makes a keeper that holds nothing.
func New(opts Options) (*Keeper, error) {
	if opts.Registry == nil || opts.Engine == nil || opts.Self.Node == "" {
		return nil, fmt.Errorf("%w: a keeper needs Registry, Engine and Self.Node", facts.ErrInvalid)
	}
	if opts.TTL == 0 {
		opts.TTL = DefaultTTL
	}
	if opts.Every == 0 {
		opts.Every = opts.TTL / 10
	}
	if opts.Moves == 0 {
		opts.Moves = DefaultMoves
	}
	if opts.Clock == nil {
		opts.Clock = systemClock{}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.TTL < 0 || opts.Every < 0 || opts.Moves < 0 || opts.Every > opts.TTL/renewParts {
		return nil, fmt.Errorf("%w: a lease of %v with a survey every %v", facts.ErrInvalid, opts.TTL,
			opts.Every)
	}
	k := &Keeper{
		opts: opts, lease: newLease(opts.Clock.Now()), drain: make(chan struct{}),
		held: map[readstate.WorkspaceID]uint64{},
	}
	k.view.Store(&Picture{})
	return k, nil
}

// Serving reports that this process may answer and commit now.
func (k *Keeper) Serving() bool { return k.lease.holds(k.opts.Clock.Now()) }

// Left is for how long it may, zero or less for not at all.
func (k *Keeper) Left() time.Duration { return k.lease.left(k.opts.Clock.Now()) }

// Picture returns who owns what, as of the last survey.
func (k *Keeper) Picture() *Picture { return k.view.Load() }

// Owner returns where the owner of a workspace is reached, as of the last survey; false where it has
// none, or one that is reached nowhere.
func (p *Picture) Owner(w readstate.WorkspaceID) (address string, ok bool) {
	name := p.Owners[w]
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Node == name && name != "" && n.Left > 0 {
			return n.Address, n.Address != ""
		}
	}
	return "", false
}

// Drain has Run give up everything and return. It may be called more than once.
func (k *Keeper) Drain() { k.once.Do(func() { close(k.drain) }) }

// Run enrolls the node and keeps its lease and its workspaces until it has drained (nil), the context
// ends (its error: the lease is left to end by itself), or the node was taken by another process
// (ErrExpelled). When it returns, everything is dropped.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.dropAll(ctx)
	defer k.lease.end()
	for {
		err := k.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrExpelled):
			return err
		case err != nil:
			k.opts.Log.Warn("the registry of nodes does not answer", "error", err,
				"serving", k.lease.left(k.opts.Clock.Now()))
		case k.draining() && len(k.held) == 0:
			return k.opts.Registry.Retire(ctx, k.seat)
		}
		wait := k.opts.Clock.After(k.opts.Every)
		drain := k.drain
		if k.draining() {
			drain = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-drain:
		case <-wait:
		}
	}
}

func (k *Keeper) draining() bool {
	select {
	case <-k.drain:
		return true
	default:
		return false
	}
}

func (k *Keeper) dropAll(ctx context.Context) {
	for w := range k.held {
		k.drop(ctx, w)
	}
}

// drop is carried through, also when ctx has ended.
func (k *Keeper) drop(ctx context.Context, w readstate.WorkspaceID) {
	delete(k.held, w)
	if err := k.opts.Engine.Release(context.WithoutCancel(ctx), w); err != nil {
		k.opts.Log.Warn("a workspace was not released", "workspace", w, "error", err)
	}
}

// turn renews the lease when that is due, looks around and does what follows from it.
func (k *Keeper) turn(ctx context.Context) error {
	if err := k.keepLease(ctx); err != nil {
		return err
	}
	s, err := k.opts.Registry.Survey(ctx)
	if err != nil {
		return fmt.Errorf("survey: %w", err)
	}
	k.show(&s)
	self := k.opts.Self
	if k.draining() {
		self.Only = []readstate.WorkspaceID{} // none
	}
	now := next(k.seat, &self, k.held, &s, k.opts.Moves)
	for _, w := range now.lost {
		k.opts.Log.Warn("a workspace is owned by somebody else now", "workspace", w)
		k.drop(ctx, w)
	}
	// Only now: a lease that had ended was renewed, and others may have claimed meanwhile.
	k.lease.renewed(k.sent, k.opts.TTL)
	if err := k.release(ctx, now.release); err != nil {
		return err
	}
	if k.draining() || len(now.claim) == 0 {
		return nil
	}
	return k.claim(ctx, now.claim)
}

// keepLease enrolls at first, and renews from then on. The time is that of sending: the store begins
// to count when the renewal arrives.
func (k *Keeper) keepLease(ctx context.Context) error {
	sent := k.opts.Clock.Now()
	switch {
	case k.seat.Epoch == 0:
		epoch, err := k.opts.Registry.Enroll(ctx, k.opts.Self, k.opts.TTL)
		if err != nil {
			return fmt.Errorf("enroll: %w", err)
		}
		k.seat = facts.Seat{Node: k.opts.Self.Node, Epoch: epoch}
	case sent.Before(k.renew):
		return nil
	default:
		err := k.opts.Registry.Renew(ctx, k.seat, k.opts.TTL)
		if errors.Is(err, facts.ErrNotOwner) {
			return fmt.Errorf("%w: %w", ErrExpelled, err)
		}
		if err != nil {
			return fmt.Errorf("renew: %w", err)
		}
	}
	k.sent, k.renew = sent, sent.Add(k.opts.TTL/renewParts)
	return nil
}

func (k *Keeper) show(s *facts.Survey) { k.view.Store(picture(s, k.opts.Clock.Now())) }

// release drops before it gives up: whoever claims finds nobody at work.
func (k *Keeper) release(ctx context.Context, rows []facts.OwnedRow) error {
	if len(rows) == 0 {
		return nil
	}
	claims := make([]facts.Claim, len(rows))
	for i := range rows {
		claims[i] = facts.Claim{Key: rows[i].Key, Term: rows[i].Term}
		if _, held := k.held[rows[i].ID]; held {
			k.drop(ctx, rows[i].ID)
		}
	}
	// If the answer is lost they are found to be owned by this node and held by nobody: either
	// another one claims them, or this one does again.
	if err := k.opts.Registry.Release(ctx, k.seat, claims); err != nil {
		return k.refused("release", err)
	}
	return nil
}

func (k *Keeper) claim(ctx context.Context, claims []facts.Claim) error {
	rows, err := k.opts.Registry.Claim(ctx, k.seat, claims)
	if err != nil {
		return k.refused("claim", err)
	}
	for _, row := range rows {
		if err := k.opts.Engine.Adopt(ctx, row); err != nil {
			return fmt.Errorf("adopt: %w", err) // it is this node's, and held by nobody
		}
		k.held[row.ID] = row.Term
	}
	return nil
}

// refused has the next turn renew first, which finds out whether the lease is merely over.
func (k *Keeper) refused(what string, err error) error {
	k.renew = time.Time{}
	return fmt.Errorf("%s: %w", what, err)
}
