package unread

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// Runtime answers what members have not read, from memory, for the workspaces that are open in
// it. Its methods are safe for concurrent use. Close it to end its goroutines.
type Runtime struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup

	spaces spaces

	latest  atomic.Int64 // the present as of the last look at the clock
	memory  slab.Memory
	used    atomic.Int64 // bytes of all states, as of their last change
	queue   queue
	agenda  agenda
	metrics metrics
	pages   sync.Pool // of *LinePage
}

// workspace is one namespace's memory with everything that is under way for it.
type workspace struct {
	id readstate.WorkspaceID

	// seq is odd while memory changes under mu; the next two are what readers without a lock see
	// of st.
	seq     atomic.Uint64
	current atomic.Pointer[state]
	applied atomic.Uint64 // st.lsn

	mu      sync.RWMutex
	st      *state
	ring    ring
	jobs    map[readstate.MemberID]*job
	active  []*job // whose pages are being read, or wait for their LSN to be applied
	watches map[readstate.MemberID][]*Watch
	hand    int32 // where eviction goes on
	bytes   int64 // of st, as counted in Runtime.used
	dropped bool
}

// replace takes another state into use.
func (ws *workspace) replace(st *state) {
	ws.st = st
	ws.current.Store(st)
	ws.applied.Store(uint64(st.lsn))
}

// New starts a runtime without workspaces.
func New(cfg Config) (*Runtime, error) {
	r, err := newRuntime(cfg)
	if err != nil {
		return nil, err
	}
	for range r.cfg.HydrateConcurrency {
		r.workers.Go(r.hydrate)
	}
	r.workers.Go(r.attend)
	return r, nil
}

// newRuntime is New without the goroutines, for tests that carry out every step themselves.
func newRuntime(cfg Config) (*Runtime, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Runtime{cfg: cfg}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.spaces.init()
	r.queue.init()
	r.agenda.init()
	return r, nil
}

// Close drops every workspace, ends all waiting reads and returns when the goroutines have
// ended. It is safe to call twice.
func (r *Runtime) Close() {
	r.cancel()
	r.queue.close()
	r.workers.Wait()
	for _, ws := range r.spaces.all() {
		r.Drop(ws.id)
	}
}

// Open starts answering for a workspace whose facts stand at lsn. Opening an open workspace
// drops its memory first.
func (r *Runtime) Open(id readstate.WorkspaceID, lsn readstate.LSN) {
	r.Drop(id)
	ws := &workspace{
		id: id, jobs: map[readstate.MemberID]*job{},
		watches: map[readstate.MemberID][]*Watch{},
	}
	ws.replace(r.freshState(lsn))
	ws.ring.reset(lsn)
	r.spaces.put(ws)
}

// Drop stops answering for a workspace. Its watches are lost; reads that wait for it end with
// ErrNoWorkspace.
func (r *Runtime) Drop(id readstate.WorkspaceID) {
	ws := r.spaces.take(id)
	if ws == nil {
		return
	}
	r.lock(ws)
	ws.dropped = true
	r.forget(ws, ws.st.lsn)
	for _, j := range ws.jobs {
		r.endJob(ws, j, fmt.Errorf("%w %q", ErrNoWorkspace, id))
	}
	ws.current.Store(nil)
	r.unlock(ws)
	r.agenda.removeAll(ws)
}

func (r *Runtime) freshState(lsn readstate.LSN) *state {
	st := newState(&r.memory, r.cfg.MaxFirePerTick, &r.metrics.checks)
	if st.hints = r.cfg.Hints; st.hints {
		st.began, st.rows.base = lsn, lsn
	}
	st.lsn = lsn
	st.now = r.now()
	return st
}

// workspace finds an open workspace.
func (r *Runtime) workspace(id readstate.WorkspaceID) (*workspace, error) {
	ws := r.spaces.find(id)
	if ws == nil {
		return nil, fmt.Errorf("%w %q", ErrNoWorkspace, id)
	}
	return ws, nil
}

// now is the present by the clock, which never goes back here: a level that any read has seen to
// end stays ended.
func (r *Runtime) now() int64 {
	now := r.cfg.Now()
	for {
		latest := r.latest.Load()
		if now <= latest {
			return latest
		}
		if r.latest.CompareAndSwap(latest, now) {
			return now
		}
	}
}

// lock takes the workspace for a change and brings its clock up to date.
func (r *Runtime) lock(ws *workspace) {
	ws.mu.Lock()
	r.begin(ws)
}

// tryLock does the same where nobody has the workspace.
func (r *Runtime) tryLock(ws *workspace) bool {
	if !ws.mu.TryLock() {
		return false
	}
	r.begin(ws)
	return true
}

func (r *Runtime) begin(ws *workspace) {
	ws.seq.Add(1)
	ws.st.now = r.now()
}

// unlock releases the workspace, then wakes those whom the change concerns.
func (r *Runtime) unlock(ws *workspace) {
	noted, untils := ws.st.noted, ws.st.untils
	ws.st.noted, ws.st.untils = nil, nil
	work := !ws.dropped && ws.st.pending()
	for _, id := range untils {
		if m := ws.st.memberNamed(id); m != none && !ws.dropped {
			r.agenda.set(ws, id, levelEnds, ws.st.members.At(m).nextUntil.Load())
		}
	}
	ws.applied.Store(uint64(ws.st.lsn))
	r.account(ws)
	ws.seq.Add(1)
	ws.mu.Unlock()
	for _, w := range noted {
		w.wake()
	}
	if work {
		r.agenda.work(ws)
	}
}

// account brings the process's total up to date. Under the lock.
func (r *Runtime) account(ws *workspace) {
	bytes := ws.st.bytes()
	if ws.dropped {
		bytes = 0
	}
	r.used.Add(bytes - ws.bytes)
	ws.bytes = bytes
}

// Apply takes the events of one commit in. It is called for every commit of the workspace, in
// the order of LSN, also for those without events; the events must not be changed afterwards.
// A commit at or below the applied one changes nothing. A gap drops the workspace's memory and
// goes on from lsn. ErrInvariant means that the events contradicted memory, which was dropped;
// the commit counts as applied. Apply waits for nothing.
func (r *Runtime) Apply(
	id readstate.WorkspaceID, lsn readstate.LSN, events []readstate.Event,
) error {
	ws, err := r.workspace(id)
	if err != nil {
		return fmt.Errorf("apply %d: %w", lsn, err)
	}
	r.agenda.stir()
	r.lock(ws)
	defer r.unlock(ws)
	if ws.dropped {
		return fmt.Errorf("apply %d: %w %q", lsn, ErrNoWorkspace, id)
	}
	if lsn <= ws.st.lsn {
		r.metrics.repeated.Add(1)
		return nil
	}
	if lsn > ws.st.lsn+1 {
		r.metrics.gaps.Add(1)
		r.forget(ws, lsn)
		r.installParked(ws)
		return nil
	}
	ws.st.lsn = lsn
	r.metrics.dropped.Add(ws.ring.add(lsn, events, r.cfg.RingEvents))
	for _, ev := range events {
		if err = ws.st.apply(lsn, ev); err != nil {
			r.alarm(ws)
			r.installParked(ws)
			return fmt.Errorf("apply %d: %w", lsn, err)
		}
	}
	r.reloadStale(ws)
	r.registerMissing(ws)
	r.loadArrived(ws)
	r.installParked(ws)
	return nil
}

// alarm is the answer to a broken invariant: nothing of the memory can be trusted any more.
func (r *Runtime) alarm(ws *workspace) {
	r.metrics.alarms.Add(1)
	r.forget(ws, ws.st.lsn)
}

// forget empties the memory. It stands at lsn afterwards; pages of an older LSN will not do.
func (r *Runtime) forget(ws *workspace, lsn readstate.LSN) {
	ws.replace(r.freshState(lsn))
	ws.ring.reset(lsn)
	ws.hand = 0
	for _, list := range ws.watches {
		for _, w := range list {
			w.lose()
		}
	}
	clear(ws.watches)
	for _, j := range ws.jobs {
		r.restartJob(ws, j)
	}
}
