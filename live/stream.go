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
	first   []unread.Delta       // what a resumed stream begins with
	waiting []readstate.MemberID // still owed a snapshot: their values cannot be shown yet
	told    map[readstate.MemberID]unread.State
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
	if err := s.resume(ctx); err != nil {
		return err
	}
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

// resume asks what the member missed since the token. A token that is not ours, or one of a
// newer database than this one, asks for a snapshot.
func (s *Stream) resume(ctx context.Context) error {
	token, err := strconv.ParseUint(s.sub.Resume, 10, 64)
	if s.sub.Resume == "" || err != nil {
		return nil
	}
	since := readstate.LSN(token)
	for _, m := range s.sub.Members {
		c, err := s.sub.Workspace.Changed(ctx, m, since)
		switch {
		case errors.Is(err, unread.ErrNotServable), s.sub.Many && isUnknown(err):
			return nil
		case err != nil:
			return err
		case c.Whole || since > c.LSN:
			s.first = nil
			return nil
		}
		s.first = append(s.first, c.Deltas...)
	}
	s.resumed = true
	return nil
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
	if err := s.write(ctx, Frame{Event: EventHello, Data: hello}); err != nil {
		return err
	}
	if s.resumed {
		s.hub.counts.resumed.Add(1)
		if err := s.sendDeltas(ctx, s.first); err != nil {
			return err
		}
		s.first = nil
	} else if err := s.snapshots(ctx, s.sub.Members); err != nil {
		return err
	}
	return s.loop(ctx, commands)
}

// loop waits for whatever comes next. Everything is written from here.
func (s *Stream) loop(ctx context.Context, commands <-chan command) error {
	clock := s.hub.opts.Clock
	expired, stop := s.expiry()
	defer stop()
	for {
		beat, stopBeat := clock.NewTimer(s.hub.opts.Heartbeat)
		var retry <-chan time.Time
		stopRetry := func() {}
		if len(s.waiting) > 0 {
			retry, stopRetry = clock.NewTimer(s.hub.opts.Retry)
		}
		var err error
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.hub.draining:
			err = ErrDraining
		case <-expired:
			err = s.expire(ctx)
		case <-beat:
			err = s.sink.beat(ctx)
		case <-retry:
			owed := s.waiting
			s.waiting = nil
			err = s.snapshots(ctx, owed)
		case <-s.watch.Lost():
			err = s.again(ctx)
		case <-s.watch.Ready():
			err = s.deltas(ctx)
		case <-s.feed.Ready():
			err = s.messages(ctx)
		case c := <-commands:
			err = s.obey(ctx, c)
		}
		stopBeat()
		stopRetry()
		if err != nil {
			return err
		}
	}
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

// deltas writes what changed, the values taken a few at a time right before they are written.
func (s *Stream) deltas(ctx context.Context) error {
	for {
		taken := s.watch.Next(deltasAtOnce)
		if len(taken) == 0 {
			return nil
		}
		if err := s.sendDeltas(ctx, taken); err != nil {
			return err
		}
	}
}

// sendDeltas writes deltas. The last one carries an id if nothing older is left to be sent.
func (s *Stream) sendDeltas(ctx context.Context, deltas []unread.Delta) error {
	_, settled := s.watch.Settled()
	for i := range deltas {
		d := &deltas[i]
		body := newDelta(d)
		if s.sub.Many {
			body.Member = string(d.Member)
		}
		f := Frame{Event: EventUnread, Data: body}
		if settled && len(s.waiting) == 0 && i == len(deltas)-1 {
			f.ID = strconv.FormatUint(body.LSN, 10)
		}
		if err := s.write(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// again starts anew after the workspace's memory went.
func (s *Stream) again(ctx context.Context) error {
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
	s.watch, s.waiting = watch, nil
	return s.snapshots(ctx, members)
}
