package substrate

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// PublisherOptions configures a publisher. Store and Source are required.
type PublisherOptions struct {
	Store  Store
	Source Source
	Limits Limits
	Log    *slog.Logger // nil: nothing is logged
}

// Publisher writes the dots that are wanted of the workspaces that are served here. Run does the
// work; Stats is safe for concurrent use.
type Publisher struct {
	opts PublisherOptions
	wake chan struct{}

	mu    sync.Mutex
	heard map[Key]struct{} // said to be wanted, and not looked at yet
	anew  bool             // the store may have lost everything

	// Of the goroutine of Run:
	spaces map[readstate.WorkspaceID]*space
	look   time.Time     // when to ask next what is wanted
	pause  time.Duration // until the next turn

	published, refused, failed, dropped atomic.Uint64
	members, workspaces                 atomic.Int64
}

// space is a workspace of which dots are published.
type space struct {
	following Following
	wanted    map[readstate.MemberID]time.Time // until when
	owed      map[readstate.MemberID]uint8     // to be written, and how often it could not be
	renew     time.Time                        // when all of them are
}

// PublisherStats is what a publisher has done since it was made, and what it holds now.
type PublisherStats struct {
	Published  uint64 // dots that the store took
	Refused    uint64 // dots that were older than what the store had
	Failed     uint64 // exchanges with the store that failed
	Dropped    uint64 // wishes beyond a limit
	Members    int64  // whose dots are published
	Workspaces int64  // of theirs
}

// NewPublisher makes a publisher that does nothing yet.
func NewPublisher(opts PublisherOptions) (*Publisher, error) {
	if opts.Store == nil || opts.Source == nil {
		return nil, errors.New("substrate: Store and Source are required")
	}
	opts.Limits.defaults()
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Publisher{
		opts: opts, wake: make(chan struct{}, 1), heard: map[Key]struct{}{},
		spaces: map[readstate.WorkspaceID]*space{},
	}, nil
}

// Stats returns the publisher's figures.
func (p *Publisher) Stats() PublisherStats {
	return PublisherStats{
		Published: p.published.Load(), Refused: p.refused.Load(), Failed: p.failed.Load(),
		Dropped: p.dropped.Load(), Members: p.members.Load(), Workspaces: p.workspaces.Load(),
	}
}

// Run publishes until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	var listening sync.WaitGroup
	listening.Go(func() {
		keepListening(ctx, p.opts.Store, p.opts.Limits.Every, Ear{Begun: p.begun, Wanted: p.hear}, nil)
	})
	defer listening.Wait()
	defer p.close()
	for ctx.Err() == nil {
		p.turn(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(p.pause):
		case <-p.wake:
			select { // what changes now goes together
			case <-ctx.Done():
			case <-time.After(p.opts.Limits.Coalesce):
			}
		}
	}
}

// keepListening hears for as long as ctx lasts, and tells when it is interrupted.
func keepListening(
	ctx context.Context, store Store, every time.Duration, ear Ear, lost func(),
) {
	for ctx.Err() == nil {
		_ = store.Listen(ctx, ear) // whatever ended it: it is tried again
		if lost != nil {
			lost()
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

// begun has everything written again: the store may be another one, or an empty one.
func (p *Publisher) begun() {
	p.mu.Lock()
	p.anew = true
	p.mu.Unlock()
	p.rouse()
}

func (p *Publisher) hear(keys []Key) {
	p.mu.Lock()
	for _, k := range keys {
		if len(p.heard) >= p.opts.Limits.Keys {
			p.dropped.Add(1) // the next look at what is wanted finds it
			continue
		}
		p.heard[k] = struct{}{}
	}
	p.mu.Unlock()
	p.rouse()
}

func (p *Publisher) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// turn learns what is wanted, and writes what is owed.
func (p *Publisher) turn(ctx context.Context) {
	now := time.Now()
	p.pause = p.opts.Limits.Every
	p.mu.Lock()
	heard, anew := p.heard, p.anew
	p.heard, p.anew = map[Key]struct{}{}, false
	p.mu.Unlock()
	for k := range heard {
		p.want(ctx, k, now)
	}
	due := anew || !now.Before(p.look)
	if due {
		if err := p.survey(ctx, now, anew); err != nil && ctx.Err() == nil {
			p.failed.Add(1)
			p.opts.Log.Debug("what dots are wanted cannot be read", "error", err)
		}
		p.look = now.Add(p.opts.Limits.Every)
	}
	members := 0
	for id, s := range p.spaces {
		if due {
			s.expire(now)
		}
		if len(s.wanted) == 0 || s.following.Lost() {
			s.following.Close()
			delete(p.spaces, id)
			continue
		}
		if anew || !now.Before(s.renew) {
			s.owe(slices.Collect(maps.Keys(s.wanted))...)
			s.renew = now.Add(p.opts.Limits.Keep / 3)
		}
		members += len(s.wanted)
		p.publish(ctx, s)
	}
	p.members.Store(int64(members))
	p.workspaces.Store(int64(len(p.spaces)))
}

// survey asks the store what is wanted: an owner that is new to a workspace has not heard of it.
func (p *Publisher) survey(ctx context.Context, now time.Time, anew bool) error {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Limits.Timeout)
	defer cancel()
	spaces, err := p.opts.Store.Wanted(ctx, p.opts.Limits.Workspaces)
	if err != nil {
		return err
	}
	for _, w := range spaces {
		s := p.space(ctx, w)
		if s == nil || len(s.wanted) > 0 && !anew { // what came since was heard
			continue
		}
		members, err := p.opts.Store.WantedIn(ctx, w, p.opts.Limits.Members)
		if err != nil {
			return err
		}
		for _, m := range members {
			p.want(ctx, Key{w, m}, now)
		}
	}
	return nil
}

// space returns a workspace that is served here, nil for others.
func (p *Publisher) space(ctx context.Context, w readstate.WorkspaceID) *space {
	if s := p.spaces[w]; s != nil {
		return s
	}
	if len(p.spaces) >= p.opts.Limits.Workspaces {
		p.dropped.Add(1)
		return nil
	}
	f, err := p.opts.Source.Follow(ctx, w, p.rouse)
	if err != nil {
		return nil // it is somebody else's, or being taken over
	}
	s := &space{
		following: f, wanted: map[readstate.MemberID]time.Time{},
		owed: map[readstate.MemberID]uint8{},
	}
	p.spaces[w] = s
	return s
}

func (p *Publisher) want(ctx context.Context, k Key, now time.Time) {
	s := p.space(ctx, k.Workspace)
	if s == nil {
		return
	}
	if _, known := s.wanted[k.Member]; !known {
		if len(s.wanted) >= p.opts.Limits.Members || s.following.Add(k.Member) != nil {
			p.dropped.Add(1)
			return
		}
		s.owed[k.Member] = 0
	}
	s.wanted[k.Member] = now.Add(p.opts.Limits.Keep)
}

func (s *space) owe(members ...readstate.MemberID) {
	for _, m := range members {
		if _, wanted := s.wanted[m]; wanted {
			s.owed[m] = 0
		}
	}
}

// expire forgets whom nobody wants any more.
func (s *space) expire(now time.Time) {
	var gone []readstate.MemberID
	for m, until := range s.wanted {
		if !now.Before(until) {
			gone = append(gone, m)
			delete(s.wanted, m)
			delete(s.owed, m)
		}
	}
	if len(gone) > 0 {
		s.following.Remove(gone...)
	}
}

// maxTries is how often a member is looked at who is still being loaded.
const maxTries = 6

// publish writes what is owed. What cannot be known or written now stays owed.
func (p *Publisher) publish(ctx context.Context, s *space) {
	for changed := s.following.Changed(); len(changed) > 0; changed = s.following.Changed() {
		s.owe(changed...)
	}
	var dots []Dot
	for m, tries := range s.owed {
		dot, known := s.following.Dot(ctx, m)
		switch {
		case known:
			dots = append(dots, dot)
		case tries == maxTries: // there may be no such member; the next renewal looks again
			delete(s.owed, m)
		default:
			s.owed[m] = tries + 1
			p.pause = min(p.pause, p.opts.Limits.Coalesce<<tries)
		}
	}
	for part := range slices.Chunk(dots, batch) {
		exchange, cancel := context.WithTimeout(ctx, p.opts.Limits.Timeout)
		refused, err := p.opts.Store.Publish(exchange, part, p.opts.Limits.Keep)
		cancel()
		if err != nil {
			p.failed.Add(1)
			p.opts.Log.Debug("dots cannot be written", "error", err)
			return
		}
		p.published.Add(uint64(len(part) - refused))
		p.refused.Add(uint64(refused))
		for i := range part {
			delete(s.owed, part[i].Member)
		}
	}
}

func (p *Publisher) close() {
	for _, s := range p.spaces {
		s.following.Close()
	}
	clear(p.spaces)
}
