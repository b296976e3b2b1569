package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

var (
	// ErrOpen refuses to open a workspace twice in a process.
	ErrOpen = errors.New("workspace is open already")
	// ErrClosed is the answer after Close.
	ErrClosed = errors.New("intake is closed")
	// ErrInvalid refuses an event that names nobody or nothing.
	ErrInvalid = errors.New("invalid event")
)

// Intake is a process's UnreadRuntime in snapshot mode. It is safe for concurrent use. Close it to
// write what is dirty and end its goroutines.
type Intake struct {
	cfg     Config
	runtime *unread.Runtime
	flusher *snapshot.Flusher
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup
	queued  atomic.Int64 // events that wait
	metrics metrics

	mu        sync.RWMutex
	spaces    map[readstate.WorkspaceID]*space
	closed    bool
	abandoned bool

	jobs jobs
}

// New starts an intake without workspaces.
func New(cfg Config) (*Intake, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, err
	}
	f := &Intake{cfg: cfg, spaces: map[readstate.WorkspaceID]*space{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	rc := cfg.Runtime
	rc.Source = source{f}
	if f.runtime, err = unread.New(rc); err != nil {
		f.cancel()
		return nil, fmt.Errorf("intake: %w", err)
	}
	if f.flusher, err = snapshot.NewFlusher(cfg.Flush, f.books, f.flushed); err != nil {
		f.cancel()
		f.runtime.Close()
		return nil, fmt.Errorf("intake: %w", err)
	}
	f.jobs.init()
	for range cfg.Runtime.HydrateConcurrency {
		f.workers.Go(f.warm)
	}
	return f, nil
}

// Runtime is where values are read: Row, Rows, Summary, HasUnread, Counts, Watch.
func (f *Intake) Runtime() *unread.Runtime { return f.runtime }

// Open makes a workspace's events welcome. Nothing is read for it now.
func (f *Intake) Open(id readstate.WorkspaceID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("open %q: %w", id, ErrClosed)
	}
	if f.spaces[id] != nil {
		return fmt.Errorf("open %q: %w", id, ErrOpen)
	}
	n := newNames()
	// A position of an earlier process lies below, as long as that took in fewer than a million
	// events a second and the clock did not go back by as long as that ran: a stream that resumes
	// there begins anew.
	begin := readstate.LSN(max(1, min(f.cfg.Now(), maxClock)) * 1000)
	s := &space{
		intake: f, id: id, names: n, lsn: begin,
		scopes: map[readstate.ScopeKey]*scope{}, idle: make(chan struct{}),
		hidden: map[snapshot.Key]int{},
		people: &scope{}, busy: map[*scope]bool{}, epochs: map[snapshot.Key]uint64{},
		book: snapshot.NewBook(id, begin, n, f.cfg.Now, f.cfg.Limits),
	}
	s.people.space = s
	close(s.idle)
	f.runtime.Open(id, s.lsn)
	f.spaces[id] = s
	return nil
}

// maxClock is the last millisecond of which positions are made; they go on from there.
const maxClock = readstate.MaxCounter / 2000

func (f *Intake) space(id readstate.WorkspaceID) (*space, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return nil, ErrClosed
	}
	s := f.spaces[id]
	if s == nil {
		return nil, fmt.Errorf("%w %q", unread.ErrNoWorkspace, id)
	}
	return s, nil
}

func (f *Intake) all() []*space {
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make([]*space, 0, len(f.spaces))
	for _, s := range f.spaces {
		all = append(all, s)
	}
	return all
}

func (f *Intake) books() []*snapshot.Book {
	var books []*snapshot.Book
	for _, s := range f.all() {
		books = append(books, s.book)
	}
	return books
}

// flushed gives rows their values back that waited for room in the backlog.
func (f *Intake) flushed(b *snapshot.Book) {
	if !b.Restored() {
		return
	}
	s, err := f.space(b.Workspace())
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit()
}

// Tell takes events in that are durable already, in the order in which they became so. It waits
// for nothing: an event for which a row or a roster has to be read first waits in memory, with
// those of its scope that come after it. An event that no budget has room for is counted as
// dropped, and what it may have changed is withheld; that is no error. ErrInvalid names the first
// event that makes no sense; those before it are taken in.
func (f *Intake) Tell(id readstate.WorkspaceID, events ...Event) error {
	s, err := f.space(id)
	if err != nil {
		return fmt.Errorf("tell: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, ev := range events {
		if err := s.tell(ev); err != nil {
			return fmt.Errorf("tell %T %d of %d: %w", ev, i+1, len(events), err)
		}
	}
	return nil
}

// Settle waits until no event of the workspace waits any more, and no worker reads for one. It is for
// programs that come to rest, and for tests; a store that does not answer makes it wait for ctx.
func (f *Intake) Settle(ctx context.Context, id readstate.WorkspaceID) error {
	s, err := f.space(id)
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	for {
		s.mu.Lock()
		jobs, idle := s.jobs, s.idle
		s.mu.Unlock()
		if jobs == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		case <-f.ctx.Done():
			return fmt.Errorf("settle: %w", ErrClosed)
		}
	}
}

// Flush writes what is dirty now. The interval does it by itself; this is for an operator. After
// Close or Abandon it fails with ErrClosed: somebody else may own the rows.
func (f *Intake) Flush(ctx context.Context) error {
	err := f.flusher.Flush(ctx)
	if errors.Is(err, snapshot.ErrStopped) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

// Close takes no more events, takes those in that wait as long as what they wait for can be read,
// ends every goroutine and flushes once more, all as far as the context allows: half of its time is
// for events, the rest for the flush. The store stays open. After Abandon it does nothing.
func (f *Intake) Close(ctx context.Context) error {
	f.mu.Lock()
	abandoned, again := f.abandoned, f.closed
	f.closed = true
	f.mu.Unlock()
	if abandoned {
		return nil
	}
	if !again {
		f.drain(ctx)
	}
	f.end()
	return f.flusher.Close(ctx)
}

// drain waits until no event waits any more, or all that do have failed to be read.
func (f *Intake) drain(ctx context.Context) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	select {
	case <-f.jobs.drained():
	case <-ctx.Done():
	}
}

// Abandon ends every goroutine and writes nothing: what a crash leaves.
func (f *Intake) Abandon() {
	f.mu.Lock()
	f.abandoned = true
	f.mu.Unlock()
	f.end()
	f.flusher.Abandon()
}

func (f *Intake) end() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.jobs.close()
	f.workers.Wait()
	f.runtime.Close()
}

// source answers the runtime's pages from the books.
type source struct{ intake *Intake }

func (s source) Page(ctx context.Context, r unread.PageRequest) (readstate.Page, error) {
	sp, err := s.intake.space(r.Workspace)
	if err != nil {
		return readstate.Page{}, err
	}
	page, err := sp.book.Page(ctx, s.intake.cfg.Store, snapshot.Request{
		Member: r.Member, Cursor: r.Cursor, Limit: r.Limit, Only: r.Only,
	})
	if err == nil {
		sp.conceal(&page)
		if slices.ContainsFunc(page.Rows, func(r readstate.PageRow) bool {
			return r.Row.Serving == readstate.Hint
		}) {
			sp.hints.add(r.Member, s.intake.cfg.Now(), sp.hinted)
		}
	}
	return page, err
}

// hinted reports that a member is served a hint.
func (s *space) hinted(m readstate.MemberID) bool { return s.intake.runtime.Hinted(s.id, m) }

// jobs holds scopes for which something has to be read, each once, in the order in which they
// came.
type jobs struct {
	mu     sync.Mutex
	more   *sync.Cond
	scopes []*scope
	timers map[*scope]*time.Timer
	count  int
	closed bool
	// empty, where it is not nil, is closed once nothing is queued or being read: what is left has
	// failed, and waits for its next try or for what does.
	empty chan struct{}
	held  int // scopes that wait for another one
}

// drained returns a channel that is closed when only failures are left, or nothing.
func (q *jobs) drained() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	empty := make(chan struct{})
	q.empty = empty
	q.look()
	return empty
}

// look closes what drained gave out, if the time has come. Under the lock.
func (q *jobs) look() {
	if q.empty != nil && q.count <= len(q.timers)+q.held {
		close(q.empty)
		q.empty = nil
	}
}

func (q *jobs) init() {
	q.more = sync.NewCond(&q.mu)
	q.timers = map[*scope]*time.Timer{}
}

// admit queues a new job; false when there are too many.
func (q *jobs) admit(s *scope, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.count >= limit {
		return false
	}
	q.count++
	q.scopes = append(q.scopes, s)
	q.more.Signal()
	return true
}

func (q *jobs) next() *scope {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.scopes) == 0 && !q.closed {
		q.more.Wait()
	}
	if q.closed {
		return nil
	}
	s := q.scopes[0]
	q.scopes[0] = nil
	q.scopes = q.scopes[1:]
	return s
}

// hold notes that a job waits for another scope.
func (q *jobs) hold() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held++
	q.look()
}

// again queues a job that was on hold.
func (q *jobs) again(s *scope) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held--
	if !q.closed {
		q.scopes = append(q.scopes, s)
		q.more.Signal()
	}
}

// later queues a failed job again.
func (q *jobs) later(s *scope, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.timers[s] = time.AfterFunc(after, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.timers, s)
		if !q.closed {
			q.scopes = append(q.scopes, s)
			q.more.Signal()
		}
	})
	q.look()
}

func (q *jobs) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count--
	q.look()
}

func (q *jobs) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, t := range q.timers {
		t.Stop()
	}
	q.more.Broadcast()
}
