package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Subscription says what a stream carries.
type Subscription struct {
	Workspace *tidemark.Workspace
	// Members are those whose unread state is sent: one, or with Many any number up to
	// MaxMembers. Streams of many name the member in every frame and take watch frames.
	Members []readstate.MemberID
	Many    bool
	// Scopes are those whose message changes are sent, at most MaxScopes. Unless Trusted, the
	// one member must be allowed to see each of them, now and whenever a change is sent.
	Scopes  []readstate.ScopeID
	Trusted bool
	// Sessions makes it a stream of the one member's sessions and their messages: its frames are
	// of sessions, and nothing else of the member is sent.
	Sessions bool
	// Inbox reads the badge that goes with a hint, which may be nil. Where there is no function no hint
	// is sent.
	Inbox func(ctx context.Context, m readstate.MemberID) any
	// Resume is the id of the last frame of an earlier stream, empty for none.
	Resume string
	// Spend takes the cost of a client's frame off a budget: one, and one for each scope to look
	// up. Nil is no budget.
	Spend func(n int) bool
	// Expires ends the stream with the token that opened it; zero never.
	Expires time.Time
}

// Stream is one connection. It belongs to one goroutine, which waits most of the time; a courier
// writes what the watch has while it does. Whoever works on the stream holds its lock.
type Stream struct {
	// What couriers go by comes first, in as few cache lines as it takes: they find it cold.
	queued atomic.Bool // for a courier
	news   atomic.Bool // the watch has something that no courier could carry
	mu     sync.Mutex
	over   bool // nobody writes any more
	watch  *unread.Watch
	sink   sink
	ctx    context.Context // of the connection
	hub    *Hub
	debts  []debt // members who are owed their state, served one after the other
	// waiting are those whose values could not be shown, to be tried again.
	waiting []readstate.MemberID
	sub     Subscription

	couriers *couriers
	failed   error         // what a courier met with
	bell     chan struct{} // wakes the goroutine of the stream
	times    times

	id      string
	members map[readstate.MemberID]struct{}         // of a stream of many
	feed    *tidemark.Feed                          // nil until there is a scope
	inbox   *tidemark.InboxFeed                     // nil where no hints are sent
	parents map[readstate.ScopeID]readstate.ScopeID // of the subscribed threads
	resumed bool
	told    map[readstate.MemberID]unread.State
	whole   bool          // the debts are of all members, nothing has been left out before
	from    readstate.LSN // then: the commit of the first page
}

// debt is what a member is owed: what changed after since, or with zero a snapshot.
type debt struct {
	member readstate.MemberID
	since  readstate.LSN
}

// sink writes frames, each within the hub's write timeout.
type sink interface {
	write(ctx context.Context, f Frame) error
	beat(ctx context.Context) error
}

// Errors of a stream that is open. They end it.
var (
	errGone     = errors.New("the client has left")
	errSlow     = errors.New("the client does not read")
	errOverrun  = errors.New("message changes were dropped")
	errExpired  = errors.New("the token expired")
	errProtocol = errors.New("a frame of the client makes no sense")
	errMoved    = errors.New("another process may serve the workspace by now")
)

// Open makes a stream ready to be served. Its errors are still answered in plain HTTP: unknown
// members and scopes as facts.ErrNotFound or unread.ErrNoMember, too many of either as
// facts.ErrInvalid, ErrDraining, or what the runtime refuses with. A stream that is resumed or
// whose member is warm costs no statement.
func (h *Hub) Open(ctx context.Context, sub Subscription) (*Stream, error) {
	if len(sub.Members) > MaxMembers || len(sub.Scopes) > MaxScopes {
		return nil, fmt.Errorf("%w: at most %d members and %d scopes a stream",
			facts.ErrInvalid, MaxMembers, MaxScopes)
	}
	if err := h.enter(); err != nil {
		return nil, err
	}
	s := &Stream{
		hub: h, couriers: &h.couriers, sub: sub, id: h.opts.NewID(), bell: make(chan struct{}, 1),
		parents: map[readstate.ScopeID]readstate.ScopeID{},
		told:    map[readstate.MemberID]unread.State{},
	}
	if err := s.prepare(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return s, nil
}

// prepare opens the watch and the feed and finds out whether the stream can be resumed.
func (s *Stream) prepare(ctx context.Context) error {
	slices.Sort(s.sub.Members)
	s.sub.Members = slices.Compact(s.sub.Members)
	var err error
	if s.watch, err = s.sub.Workspace.Watch(s.sub.Members...); err != nil {
		return err
	}
	if s.sub.Many {
		s.members = make(map[readstate.MemberID]struct{}, len(s.sub.Members))
		for _, m := range s.sub.Members {
			s.members[m] = struct{}{}
		}
	}
	if s.sub.Inbox != nil && !s.sub.Sessions {
		s.inbox = s.sub.Workspace.InboxFeed(s.sub.Members...)
	}
	if s.sub.Sessions {
		s.feed = s.sub.Workspace.Feed()
		s.feed.SubscribeSessions(s.sub.Members[0])
	}
	for _, scope := range s.sub.Scopes {
		if err := s.subscribe(ctx, scope); err != nil {
			return err
		}
	}
	since, err := s.resume(ctx)
	if err != nil {
		return err
	}
	s.owe(since, s.sub.Members...)
	s.whole = !s.resumed
	if !s.sub.Many && !s.resumed {
		// The member must exist; a stream of many says so for each of them instead.
		_, err := s.sub.Workspace.Summary(ctx, s.sub.Members[0])
		if err != nil && !errors.Is(err, unread.ErrNotServable) {
			return err
		}
	}
	return nil
}

// Close releases what Open took. Serve does it too; a second time does nothing.
func (s *Stream) Close() {
	if s.hub == nil {
		return
	}
	if s.watch != nil {
		s.watch.Close()
	}
	if s.feed != nil {
		s.feed.Close()
	}
	if s.inbox != nil {
		s.inbox.Close()
	}
	s.hub.leave()
	s.hub = nil
}

// resumeProbes bounds the members of whom a stream of many asks whether it can be resumed.
const resumeProbes = 16

// resume finds out whether the token is a position to go on from. One that is not ours, or lies
// ahead of this database, is not, and brings a snapshot. A stream of many goes on if one of its
// first members can.
func (s *Stream) resume(ctx context.Context) (readstate.LSN, error) {
	since := position(s.sub.Resume)
	if since == 0 {
		return 0, nil
	}
	for _, m := range s.sub.Members[:min(len(s.sub.Members), resumeProbes)] {
		c, err := s.sub.Workspace.Changed(ctx, m, since)
		switch {
		case errors.Is(err, unread.ErrNotServable), s.sub.Many && isUnknown(err):
			continue
		case err != nil:
			return 0, err
		case c.Whole && s.sub.Many:
			continue // another one may go on
		}
		s.resumed = !c.Whole
		break
	}
	if !s.resumed {
		return 0, nil
	}
	return since, nil
}

// position reads a token; zero for a text that is none of ours.
func position(token string) readstate.LSN {
	n, err := strconv.ParseUint(token, 10, 64)
	if err != nil {
		return 0
	}
	return readstate.LSN(n)
}

func isUnknown(err error) bool {
	return errors.Is(err, unread.ErrNoMember) || errors.Is(err, facts.ErrNotFound)
}

// serve runs the stream until it ends.
func (s *Stream) serve(ctx context.Context, to sink, commands <-chan *command) error {
	if err := s.begin(ctx, to); err != nil {
		return err
	}
	defer s.stop()
	return s.attend(ctx, commands)
}

// attend waits for whatever comes next, except for what couriers carry. Debts are served between
// events, one member at a time, so that a stream of many stays attentive.
//
// There are as many goroutines in here as there are connections, nearly all of them waiting. What
// is not needed while they wait is done in calls, which keeps their stacks small.
func (s *Stream) attend(ctx context.Context, commands <-chan *command) error {
	for {
		var c *command
		select {
		case <-ctx.Done():
			return s.cause(ctx.Err())
		case <-s.hub.draining:
			return ErrDraining
		case <-s.times.rings:
			s.times.rings = nil // it rings once
		case <-s.watch.Lost():
		case <-s.bell:
		case <-s.feedReady():
		case <-s.inboxReady():
		case c = <-commands:
		case <-closedIf(len(s.debts) > 0):
		}
		if err := s.turn(ctx, c); err != nil {
			return err
		}
	}
}

// begin says hello and lets couriers in.
func (s *Stream) begin(ctx context.Context, to sink) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink = to
	hello := Hello{
		Connection: s.id, Resumed: s.resumed,
		HeartbeatSeconds: int(s.hub.opts.Heartbeat / time.Second),
	}
	if s.resumed {
		s.hub.counts.resumed.Add(1)
	}
	if err := s.write(ctx, Frame{Event: EventHello, Data: hello}); err != nil {
		return err
	}
	clock := s.hub.opts.Clock
	s.ctx = ctx
	s.times.beat, s.times.end = clock.Now().Add(s.hub.opts.Heartbeat), s.sub.Expires
	s.times.set(clock)
	s.watch.OnReady(s.ready)
	return nil
}

// stop keeps couriers out. Those who come later find that it is over.
func (s *Stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.times.stop()
}

// turn does whatever there is to do.
func (s *Stream) turn(ctx context.Context, c *command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.failed
	if err == nil {
		err = s.served()
	}
	if err == nil {
		err = s.onTime(ctx)
	}
	if err == nil && isClosed(s.watch.Lost()) {
		if err = s.again(); err == nil {
			s.watch.OnReady(s.ready)
		}
	}
	if err == nil && s.news.Swap(false) {
		err = s.deltas(ctx)
	}
	if err == nil && s.feed != nil {
		err = s.messages(ctx)
	}
	if err == nil && s.inbox != nil {
		err = s.hints(ctx)
	}
	if err == nil && c != nil {
		err = s.obey(ctx, *c)
	}
	if err == nil && len(s.debts) > 0 {
		err = s.pay(ctx)
	}
	s.plan()
	return err
}

// served ends the stream of a workspace that this process does not answer for any more: what memory of it
// has may be old.
func (s *Stream) served() error {
	if err := s.sub.Workspace.Serves(); err != nil {
		s.hub.counts.moved.Add(1)
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return nil
}

// onTime does what is due.
func (s *Stream) onTime(ctx context.Context) error {
	now := s.hub.opts.Clock.Now()
	if passed(s.times.end, now) {
		return s.expire(ctx)
	}
	if passed(s.times.retry, now) {
		owed := s.waiting
		s.waiting = nil
		s.owe(0, owed...)
	}
	if !passed(s.times.beat, now) {
		return nil
	}
	s.times.beat = now.Add(s.hub.opts.Heartbeat)
	return s.sink.beat(ctx)
}

// plan says when the next turn is due if nothing happens.
func (s *Stream) plan() {
	clock := s.hub.opts.Clock
	switch {
	case len(s.waiting) == 0:
		s.times.retry = time.Time{}
	case s.times.retry.IsZero():
		s.times.retry = clock.Now().Add(s.hub.opts.Retry)
	}
	s.times.set(clock)
}

// ready is called when the watch may have something.
func (s *Stream) ready() {
	if s.queued.CompareAndSwap(false, true) {
		s.couriers.send(s)
	}
}

// carry writes some of what the watch has; when there is more, the watch is ready again. A stream
// that is at work looks at the watch itself when it is done.
func (s *Stream) carry() {
	s.queued.Store(false) // what comes from here on brings a courier again
	if !s.mu.TryLock() {
		s.news.Store(true)
		s.wake()
		return
	}
	defer s.mu.Unlock()
	if s.over {
		return
	}
	defer func() {
		if p := recover(); p != nil { // here nobody else would stop it from ending the process
			s.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	err := s.served()
	if err == nil {
		err = s.deltas(s.ctx)
	}
	if err != nil {
		s.fail(err)
	}
}

// fail leaves an error to the goroutine of the stream.
func (s *Stream) fail(err error) {
	s.over, s.failed = true, err
	s.wake()
}

// cause is why a connection is over: the HTTP server gives it up when a write fails, and the one
// who was writing may know more.
func (s *Stream) cause(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	return err
}

func (s *Stream) wake() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

func (s *Stream) feedReady() <-chan struct{} {
	if s.feed == nil {
		return nil
	}
	return s.feed.Ready()
}

var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// closedIf is a channel that is always ready, or never.
func closedIf(ready bool) <-chan struct{} {
	if ready {
		return always
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *Stream) expire(ctx context.Context) error {
	s.hub.counts.expired.Add(1)
	if err := s.write(ctx, Frame{Event: EventExpired, Data: Expired{}}); err != nil {
		return err
	}
	return errExpired
}

func (s *Stream) write(ctx context.Context, f Frame) error {
	if err := s.sink.write(ctx, f); err != nil {
		return err
	}
	s.hub.counts.frames.Add(1)
	return nil
}

// deltas writes some of what changed, the values taken right before they are written. When more
// is left, the watch is ready again.
func (s *Stream) deltas(ctx context.Context) error {
	taken := lists.Get().(*[]unread.Delta)
	*taken = s.watch.AppendNext((*taken)[:0], deltasAtOnce)
	err := s.sendDeltas(ctx, *taken)
	clear(*taken) // what they refer to is not kept for their sake
	lists.Put(taken)
	return err
}

// What deltas are taken into on their way, and how they are told: no stream needs to keep that.
var (
	lists   = sync.Pool{New: func() any { return new([]unread.Delta) }}
	changes = sync.Pool{New: func() any { return new(change) }}
)

// sendDeltas writes deltas. The last one carries an id if nothing older is left to be sent, and
// nobody is owed anything.
func (s *Stream) sendDeltas(ctx context.Context, deltas []unread.Delta) error {
	if s.sub.Sessions {
		return s.sendSessions(ctx, deltas)
	}
	_, settled := s.watch.Settled()
	body := changes.Get().(*change)
	defer changes.Put(body)
	for i := range deltas {
		d := &deltas[i]
		body.LSN, body.delta = uint64(d.Summary.LSN), d
		if body.Member = ""; s.sub.Many {
			body.Member = string(d.Member)
		}
		f := Frame{Event: EventUnread, Data: body}
		if settled && s.even() && i == len(deltas)-1 {
			f.ID = strconv.FormatUint(body.LSN, 10)
		}
		if err := s.write(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// again starts anew after the workspace's memory went.
func (s *Stream) again() error {
	s.watch.Close()
	members := s.sub.Members
	if s.sub.Many {
		members = slices.Sorted(maps.Keys(s.members))
	}
	watch, err := s.sub.Workspace.Watch(members...)
	if moved := s.served(); err != nil && moved != nil {
		return moved
	}
	if err != nil {
		return fmt.Errorf("watch again: %w", err)
	}
	s.watch, s.waiting, s.debts = watch, nil, nil
	s.whole, s.from = true, 0
	s.owe(0, members...)
	return nil
}
