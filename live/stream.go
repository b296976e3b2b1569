package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	// Resume is the id of the last frame of an earlier stream, empty for none.
	Resume string
	// Spend takes the cost of a client's frame off a budget: one, and one for each scope to look
	// up. Nil is no budget.
	Spend func(n int) bool
	// Expires ends the stream with the token that opened it; zero never.
	Expires time.Time
}

// Stream is one connection. It belongs to one goroutine.
type Stream struct {
	hub  *Hub
	sub  Subscription
	id   string
	sink sink

	watch   *unread.Watch
	members map[readstate.MemberID]struct{}
	feed    *tidemark.Feed
	parents map[readstate.ScopeID]readstate.ScopeID // of the subscribed threads
	resumed bool

	debts   []debt               // members who are owed their state, served one after the other
	waiting []readstate.MemberID // those whose values could not be shown, to be tried again
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
		hub: h, sub: sub, id: h.opts.NewID(),
		members: make(map[readstate.MemberID]struct{}, len(sub.Members)),
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
	s.feed = s.sub.Workspace.Feed()
	for _, m := range s.sub.Members {
		s.members[m] = struct{}{}
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

// serve runs the stream until it ends. A nil error means that the server ended it in order.
func (s *Stream) serve(ctx context.Context, to sink, commands <-chan command) error {
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
	return s.loop(ctx, commands)
}

// loop waits for whatever comes next. Everything is written from here. Debts are served between
// events, one member at a time, so that a stream of many stays attentive.
func (s *Stream) loop(ctx context.Context, commands <-chan command) error {
	expired, stop := s.expiry()
	defer stop()
	beat := newAlarm(s.hub.opts.Clock, s.hub.opts.Heartbeat)
	defer beat.stop()
	retry := newAlarm(s.hub.opts.Clock, s.hub.opts.Retry)
	defer retry.stop()
	for {
		busy := closedIf(len(s.debts) > 0)
		beat.arm(true)
		retry.arm(len(s.waiting) > 0)
		var err error
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.hub.draining:
			err = ErrDraining
		case <-expired:
			err = s.expire(ctx)
		case <-beat.rings:
			beat.stop()
			err = s.sink.beat(ctx)
		case <-retry.rings:
			retry.stop()
			owed := s.waiting
			s.waiting = nil
			s.owe(0, owed...)
		case <-s.watch.Lost():
			err = s.again()
		case <-s.watch.Ready():
			err = s.deltas(ctx)
		case <-s.feed.Ready():
			err = s.messages(ctx)
		case c := <-commands:
			err = s.obey(ctx, c)
		case <-busy:
			err = s.pay(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// alarm is a timer that is set again only after it rang or was stopped.
type alarm struct {
	clock Clock
	after time.Duration
	rings <-chan time.Time // nil while not set
	off   func()
}

func newAlarm(c Clock, after time.Duration) *alarm { return &alarm{clock: c, after: after} }

func (a *alarm) arm(wanted bool) {
	if wanted && a.rings == nil {
		a.rings, a.off = a.clock.NewTimer(a.after)
	}
}

func (a *alarm) stop() {
	if a.rings != nil {
		a.off()
		a.rings = nil
	}
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

// expiry is when the token ends.
func (s *Stream) expiry() (<-chan time.Time, func()) {
	if s.sub.Expires.IsZero() {
		return nil, func() {}
	}
	clock := s.hub.opts.Clock
	return clock.NewTimer(s.sub.Expires.Sub(clock.Now()))
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
	return s.sendDeltas(ctx, s.watch.Next(deltasAtOnce))
}

// sendDeltas writes deltas. The last one carries an id if nothing older is left to be sent, and
// nobody is owed anything.
func (s *Stream) sendDeltas(ctx context.Context, deltas []unread.Delta) error {
	_, settled := s.watch.Settled()
	for i := range deltas {
		d := &deltas[i]
		body := newDelta(d)
		if s.sub.Many {
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
	members := make([]readstate.MemberID, 0, len(s.members))
	for m := range s.members {
		members = append(members, m)
	}
	slices.Sort(members)
	watch, err := s.sub.Workspace.Watch(members...)
	if err != nil {
		return fmt.Errorf("watch again: %w", err)
	}
	s.watch, s.waiting, s.debts = watch, nil, nil
	s.whole, s.from = true, 0
	s.owe(0, members...)
	return nil
}
