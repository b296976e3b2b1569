package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// Defaults of LaneConfig.
const (
	DefaultGroupRows  = 2000
	DefaultGroupWait  = 10 * time.Millisecond
	DefaultQueueDepth = 4096
	applierDepth      = 4
)

// LaneConfig wires a lane. Store, Apply and NewID are required.
type LaneConfig struct {
	Store Store
	// Apply takes each commit after it is durable and before its callers are answered, in LSN
	// order, from one goroutine. It must not call the lane.
	Apply func(Commit)
	// Dropped says that memory of a workspace can no longer be trusted: its commits may have
	// been missed, or another owner has it now. Where this one goes on, Apply resumes with the
	// given LSN + 1.
	Dropped func(readstate.WorkspaceID, readstate.LSN)
	// Shared says that other processes own workspaces of the same store: the lane begins with none,
	// and has those that Adopt brings until Release, or until it finds that another owner has them.
	Shared bool
	// Released says that a shared lane has a workspace no more: memory of it has to go.
	Released func(readstate.WorkspaceID)
	// Serving says whether a shared lane may write at this moment; nil is always. It is asked before
	// each group begins and before it commits; where it says no, callers get ErrUnavailable.
	Serving func() bool
	Now     func() time.Time
	NewID   func() string // message ids: unique, at most MaxIDBytes
	Log     *slog.Logger

	GroupRows  int           // rows after which a group closes
	GroupWait  time.Duration // age after which a group closes
	QueueDepth int           // operations that may wait; further callers block
}

func (c *LaneConfig) defaults() error {
	if c.Store == nil || c.Apply == nil || c.NewID == nil {
		return fmt.Errorf("%w: a lane needs Store, Apply and NewID", ErrInvalid)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dropped == nil {
		c.Dropped = func(readstate.WorkspaceID, readstate.LSN) {}
	}
	if c.Released == nil {
		c.Released = func(readstate.WorkspaceID) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.GroupRows == 0 {
		c.GroupRows = DefaultGroupRows
	}
	if c.GroupWait == 0 {
		c.GroupWait = DefaultGroupWait
	}
	if c.QueueDepth == 0 {
		c.QueueDepth = DefaultQueueDepth
	}
	if c.GroupRows < 1 || c.GroupWait < 0 || c.QueueDepth < 1 {
		return fmt.Errorf("%w: lane limits must be positive", ErrInvalid)
	}
	return nil
}

// Lane orders and commits the operations of every workspace of one store. It is safe for
// concurrent use. Close ends its goroutines.
type Lane struct {
	cfg     LaneConfig
	queue   chan []*request
	applies chan applied
	stop    chan struct{}
	ended   chan struct{} // closed once nothing will be answered any more
	once    sync.Once
	wg      sync.WaitGroup
	full    atomic.Uint64 // callers who found the queue full

	handovers chan *handover

	group *group // owned by the committing goroutine, like
	crowd crowd  // who is expected soon, and
	cause error  // why the last group broke
}

// request is one operation on its way through the lane. The lane writes result and err, then
// closes done; nobody else touches them before.
type request struct {
	ctx       context.Context
	workspace readstate.WorkspaceID
	op        operation
	after     *request // of a chained batch: what must have succeeded before
	last      bool     // of what its caller waits for
	result    any
	err       error
	done      chan struct{}
}

// applied is a durable group on its way to memory and to its callers.
type applied struct {
	commits  []Commit
	dropped  []WorkspaceRow
	released []readstate.WorkspaceID
	requests []*request
	handover *handover // nil for none
}

// operation is one command, run within a group.
type operation interface {
	// name is for error texts: a verb and its object.
	name() string
	// rows estimates how many rows the operation writes.
	rows() int
	// gather names the ids the operation will look up; resolve names the rows, once the ids
	// are known. Both only save statements: what they forget is loaded when it is needed.
	gather(w *workspace, n *needs)
	resolve(g *group, w *workspace, n *needs)
	// run validates, then stages changes and events. A refusal after a staged change makes
	// the whole group run again, each operation alone.
	run(ctx context.Context, g *group, w *workspace) (any, error)
}

// preparer is implemented by operations with work that needs nothing of the lane. It is done
// before they are queued, by the caller's own goroutine.
type preparer interface{ prepare() }

// errAgain is returned by an operation that has done one batch of a longer work: it is run again
// in the next group, beside whatever has come meanwhile.
var errAgain = errors.New("more to do")

// NewLane takes over every workspace of the store, unless the store is shared, and starts.
func NewLane(ctx context.Context, cfg LaneConfig) (*Lane, error) {
	if err := cfg.defaults(); err != nil {
		return nil, err
	}
	var rows []WorkspaceRow
	if !cfg.Shared {
		var err error
		if rows, err = cfg.Store.TakeOver(ctx); err != nil {
			return nil, fmt.Errorf("take over workspaces: %w", err)
		}
	}
	l := &Lane{
		cfg:       cfg,
		queue:     make(chan []*request, cfg.QueueDepth),
		applies:   make(chan applied, applierDepth),
		handovers: make(chan *handover),
		stop:      make(chan struct{}),
		ended:     make(chan struct{}),
		group:     newGroup(cfg.Store, cfg.Now, cfg.NewID),
	}
	for _, row := range rows {
		l.group.own(row)
		cfg.Dropped(row.ID, row.LSN)
	}
	l.wg.Add(2)
	go l.commitLoop()
	go l.applyLoop()
	return l, nil
}

// Close refuses further operations, answers those already taken, and ends the lane. It does not
// close the store.
func (l *Lane) Close() {
	l.once.Do(func() { close(l.stop) })
	l.wg.Wait()
}

// submit runs operations in order, in as few groups as possible, and returns when every one is
// answered. When ctx ends first it returns its error, and what was already taken may still
// commit. Chained operations are run only if the one before succeeded.
func (l *Lane) submit(
	ctx context.Context, w readstate.WorkspaceID, chained bool, ops ...operation,
) ([]*request, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	requests := make([]*request, len(ops))
	for i, op := range ops {
		if p, ok := op.(preparer); ok {
			p.prepare()
		}
		requests[i] = &request{ctx: ctx, workspace: w, op: op, done: make(chan struct{})}
		if chained && i > 0 {
			requests[i].after = requests[i-1]
		}
	}
	requests[len(ops)-1].last = true
	select {
	case <-l.stop:
		return nil, ErrClosed
	default:
	}
	if len(l.queue) == cap(l.queue) {
		l.full.Add(1)
	}
	select {
	case l.queue <- requests:
	case <-l.stop:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for _, r := range requests {
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.ended:
			select {
			case <-r.done:
			default:
				return nil, ErrClosed
			}
		}
	}
	return requests, nil
}

// do runs one operation and unpacks its answer. The result comes also with ErrConflict.
func do[R any](ctx context.Context, l *Lane, w readstate.WorkspaceID, op operation) (R, error) {
	var zero R
	requests, err := l.submit(ctx, w, false, op)
	if err != nil {
		return zero, fmt.Errorf("%s: %w", op.name(), err)
	}
	result, ok := requests[0].result.(R)
	if !ok {
		result = zero
	}
	return result, requests[0].err
}

// commitLoop is the one writer. It collects what waits, runs it as a group and hands the durable
// result on.
func (l *Lane) commitLoop() {
	defer l.wg.Done()
	defer close(l.applies)
	var backlog []*request
	for {
		var open bool
		if backlog, open = l.wait(backlog); !open {
			return
		}
		if len(backlog) > 0 {
			backlog = l.commitGroup(backlog)
		}
	}
}

// wait returns what there is to commit, after any handover that is due: those come between groups.
// False means that the lane is closed and everything is answered.
func (l *Lane) wait(backlog []*request) ([]*request, bool) {
	if len(backlog) > 0 {
		select {
		case h := <-l.handovers:
			l.take(h)
		default:
		}
		return backlog, true
	}
	select {
	case h := <-l.handovers:
		l.take(h)
	case backlog = <-l.queue:
	case <-l.stop:
		select {
		case backlog = <-l.queue:
		default:
			return nil, false
		}
	}
	return backlog, true
}

// applyLoop brings durable groups into memory in order, then answers their callers.
func (l *Lane) applyLoop() {
	defer l.wg.Done()
	defer close(l.ended)
	for a := range l.applies {
		for _, id := range a.released {
			l.cfg.Released(id)
		}
		for _, row := range a.dropped {
			l.cfg.Dropped(row.ID, row.LSN)
		}
		for _, c := range a.commits {
			l.cfg.Apply(c)
		}
		for _, r := range a.requests {
			close(r.done)
		}
		if a.handover != nil {
			close(a.handover.done)
		}
	}
}
