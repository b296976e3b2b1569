package unread

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/tidemark-im/tidemark/readstate"
)

// job loads one member: all pages from the first, then single rows that events asked for. There
// is one at most for each member of a workspace; it is guarded by the workspace's lock.
//
//	queued -> reading -> parked -> installed -> queued (next page) or ended
//	            |  page of an LSN not applied yet ^
//	            +-> failed -> queued, after the retry interval
type job struct {
	ws      *workspace
	member  readstate.MemberID
	phase   phase
	whole   bool                 // pages from cursor on are wanted
	cursor  string               // of the next page
	only    []readstate.ScopeKey // rows wanted beside the pages
	asked   []readstate.ScopeKey // those of the page being read
	base    readstate.LSN        // the ring must keep what lies above it
	page    readstate.Page       // while parked
	void    bool                 // memory went while the page was read
	came    bool                 // the member was made or changed while the page was read
	since   int64                // when the job was made, milliseconds
	changed chan struct{}        // closed and replaced at every step forward
	told    bool                 // watches hear of every row: they heard of none going
	err     error                // set when the job ended without success
}

type phase uint8

const (
	queued phase = iota
	reading
	parked
	failed
	ended
)

// queue holds jobs whose next page may be read, in the order in which they came.
type queue struct {
	mu     sync.Mutex
	more   *sync.Cond
	jobs   []*job
	count  int // jobs of the process, in whatever phase
	closed bool
}

func (q *queue) init() { q.more = sync.NewCond(&q.mu) }

func (q *queue) push(j *job) {
	q.mu.Lock()
	q.jobs = append(q.jobs, j)
	q.mu.Unlock()
	q.more.Signal()
}

// next waits for a job; nil once the queue is closed.
func (q *queue) next() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 && !q.closed {
		q.more.Wait()
	}
	if q.closed {
		return nil
	}
	j := q.jobs[0]
	q.jobs[0] = nil
	q.jobs = q.jobs[1:]
	return j
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.more.Broadcast()
}

// admit counts a new job; false when the process has too many.
func (q *queue) admit(limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count >= limit {
		return false
	}
	q.count++
	return true
}

func (q *queue) leave() {
	q.mu.Lock()
	q.count--
	q.mu.Unlock()
}

// hydrate is the loop of one worker: at most HydrateConcurrency pages are read at once.
func (r *Runtime) hydrate() {
	for j := r.queue.next(); j != nil; j = r.queue.next() {
		req, ok := r.beginPage(j)
		if !ok {
			continue
		}
		r.metrics.maxReading.Store(max(r.metrics.maxReading.Load(), r.metrics.reading.Add(1)))
		page, err := r.cfg.Source.Page(r.ctx, req)
		r.metrics.reading.Add(-1)
		r.finishPage(j, page, err)
	}
}

// wantMember finds or makes the member's job. Under the lock.
func (r *Runtime) wantMember(ws *workspace, id readstate.MemberID) (*job, error) {
	if j := ws.jobs[id]; j != nil {
		return j, nil
	}
	if len(ws.jobs) >= r.cfg.MaxWorkspaceHydrations || !r.queue.admit(r.cfg.MaxHydrations) {
		r.metrics.refused.Add(1)
		return nil, fmt.Errorf("hydrate %s: %w: too many members are being loaded", id, ErrBudget)
	}
	return r.newJob(ws, id, true), nil
}

func (r *Runtime) newJob(ws *workspace, id readstate.MemberID, whole bool) *job {
	j := &job{
		ws: ws, member: id, whole: whole, since: ws.st.now, changed: make(chan struct{}),
	}
	ws.jobs[id] = j
	r.queue.push(j)
	return j
}

// registerMissing makes jobs for rows that events named and memory could not make. They are of
// loaded members, whose number bounds them, so that no budget refuses them. Under the lock.
func (r *Runtime) registerMissing(ws *workspace) {
	for _, x := range ws.st.missing {
		if ws.st.memberNamed(x.member) == none {
			continue
		}
		j := ws.jobs[x.member]
		if j == nil {
			r.queue.admit(math.MaxInt)
			j = r.newJob(ws, x.member, false)
		}
		if !slices.Contains(j.only, x.scope) {
			j.only = append(j.only, x.scope)
		}
	}
	ws.st.missing = ws.st.missing[:0]
}

// reloadStale has members read again whose rows went although they are watched, and lets the
// others go. Under the lock.
func (r *Runtime) reloadStale(ws *workspace) {
	for _, id := range ws.st.stale {
		m := ws.st.memberNamed(id)
		if m == none {
			continue
		}
		j := ws.jobs[id]
		switch {
		case j != nil:
			r.restartJob(ws, j)
		case ws.st.connected[m] == nil:
			ws.st.dropMember(m)
			continue
		default:
			r.queue.admit(math.MaxInt)
			j = r.newJob(ws, id, true)
		}
		j.told = true
	}
	ws.st.stale = ws.st.stale[:0]
}

// loadArrived loads members who are watched and were unknown until now. What is under way for
// the erased holder of an id begins anew with the next one. Under the lock.
func (r *Runtime) loadArrived(ws *workspace) {
	for _, id := range ws.st.retaken {
		if j := ws.jobs[id]; j != nil {
			r.restartJob(ws, j)
		}
	}
	for _, id := range ws.st.arrived {
		j, watched := ws.jobs[id], len(ws.watches[id]) > 0
		switch {
		case j != nil:
			j.came = true
			j.told = j.told || watched
		case watched && ws.st.memberNamed(id) == none:
			r.queue.admit(math.MaxInt)
			r.newJob(ws, id, true).told = true
		}
	}
	ws.st.arrived, ws.st.retaken = ws.st.arrived[:0], ws.st.retaken[:0]
}

// beginPage registers the page that the job needs next: from now on the ring keeps every commit
// that the page may lack.
func (r *Runtime) beginPage(j *job) (PageRequest, bool) {
	ws := j.ws
	r.lock(ws)
	defer r.unlock(ws)
	if j.phase != queued {
		return PageRequest{}, false
	}
	j.phase, j.void, j.came, j.base = reading, false, false, ws.st.lsn
	ws.active = append(ws.active, j)
	req := PageRequest{
		Workspace: ws.id, Member: j.member, Cursor: j.cursor, Limit: r.cfg.HydratePageSize,
	}
	j.asked = nil
	if !j.whole {
		j.asked = slices.Clone(j.only[:min(len(j.only), req.Limit)])
		req.Cursor, req.Only = "", slices.Clone(j.asked)
	}
	return req, true
}

// finishPage takes the answer of the source: it is installed if its LSN is applied already, and
// parked otherwise.
func (r *Runtime) finishPage(j *job, page readstate.Page, err error) {
	ws := j.ws
	r.lock(ws)
	defer r.unlock(ws)
	if j.phase != reading {
		return
	}
	switch {
	case j.came && errors.Is(err, ErrNoMember):
		r.again(ws, j) // the page was read before the member was made
	case err != nil && (errors.Is(err, ErrNoMember) || errors.Is(err, context.Canceled)):
		r.endJob(ws, j, fmt.Errorf("hydrate %s: %w", j.member, err))
	case err != nil:
		r.metrics.failures.Add(1)
		r.later(ws, j)
	case j.void:
		r.again(ws, j)
	case page.LSN > ws.st.lsn:
		j.phase, j.base, j.page = parked, page.LSN, page
	default:
		r.install(ws, j, page)
	}
	r.releaseRing(ws)
}

// installParked installs the pages whose LSN is applied by now. Under the lock.
func (r *Runtime) installParked(ws *workspace) {
	ready := func(j *job) bool { return j.phase == parked && j.page.LSN <= ws.st.lsn }
	for i := slices.IndexFunc(ws.active, ready); i >= 0; i = slices.IndexFunc(ws.active, ready) {
		r.install(ws, ws.active[i], ws.active[i].page)
	}
	r.releaseRing(ws)
}

func (r *Runtime) releaseRing(ws *workspace) {
	low := ws.st.lsn
	for _, j := range ws.active {
		low = min(low, j.base)
	}
	ws.ring.release(low)
}

func (r *Runtime) inactive(ws *workspace, j *job) {
	if i := slices.Index(ws.active, j); i >= 0 {
		ws.active = slices.Delete(ws.active, i, i+1)
	}
	j.page = readstate.Page{}
}

// again queues the job for its next page.
func (r *Runtime) again(ws *workspace, j *job) {
	r.inactive(ws, j)
	j.phase = queued
	r.queue.push(j)
}

// later has a failed page read again after the retry interval.
func (r *Runtime) later(ws *workspace, j *job) {
	r.inactive(ws, j)
	j.phase = failed
	r.agenda.retry(ws, j.member, ws.st.now, r.cfg.HydrateRetry)
}

// restart throws the job's page away and begins with the first.
func (r *Runtime) restart(ws *workspace, j *job) {
	r.metrics.restarts.Add(1)
	j.whole, j.cursor, j.only = true, "", nil
	r.again(ws, j)
}

// restartJob starts from the first page, since the rows of earlier ones are gone.
func (r *Runtime) restartJob(ws *workspace, j *job) {
	r.metrics.restarts.Add(1)
	j.whole, j.cursor, j.only = true, "", nil
	switch j.phase {
	case reading:
		j.void = true
	case parked:
		r.again(ws, j)
	}
}

// endJob finishes the job and wakes who waits for it.
func (r *Runtime) endJob(ws *workspace, j *job, err error) {
	if j.phase == ended {
		return
	}
	r.inactive(ws, j)
	j.phase, j.err = ended, err
	delete(ws.jobs, j.member)
	close(j.changed)
	r.queue.leave()
}

func (j *job) announce() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// failure says why the job ended; nil while it goes on, and when it ended well.
func (j *job) failure() error {
	j.ws.mu.RLock()
	defer j.ws.mu.RUnlock()
	return j.err
}
