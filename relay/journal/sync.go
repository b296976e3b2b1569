package journal

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Debounce is how long nothing more must be saved before a publication: fifty reads in a row are one.
const Debounce = 5 * time.Second

// Capability says what a host can do with synchronised read state.
type Capability string

// The capabilities.
const (
	Unsupported  Capability = "unsupported"   // it cannot read it
	ReadOnly     Capability = "read-only"     // it can read it, and not sign or publish
	FrontierSync Capability = "frontier-sync" // frontiers go both ways
)

// Status says how far the synchronisation of a book has come.
type Status string

// The statuses.
const (
	Loading    Status = "loading"    // what the relay holds has not been read yet
	Local      Status = "local"      // nothing was ever there to be published
	Waiting    Status = "pending"    // something saved is not published yet
	Accepted   Status = "accepted"   // the relay took it, and does not show it yet
	Reconciled Status = "reconciled" // the relay shows everything
	Failed     Status = "error"      // the last attempt failed; nothing tries again by itself
)

// SyncState is what is shown of a synchronisation. Err is of the last attempt to load, else of the last
// to publish, nil after one that succeeded.
type SyncState struct {
	Capability Capability
	Status     Status
	Err        error
}

// Sync publishes a book by itself, after a quiet period, and says how that goes. What failed waits for
// Retry, for a reconnection, or for something new to be saved. It is safe for concurrent use.
type Sync struct {
	book       *Book
	publisher  *Publisher // nil without FrontierSync
	load       func(context.Context) error
	capability Capability
	saved      chan struct{} // has room for one

	mu         sync.Mutex
	loaded     bool
	loadErr    error
	publishErr error
}

// NewSync returns the synchronisation of a book. Load reads what the relay holds and joins it; it is
// nil when the host is not able to. Publisher is nil when it is not able to sign and publish.
func NewSync(b *Book, load func(context.Context) error, p *Publisher) *Sync {
	s := &Sync{book: b, publisher: p, load: load, capability: FrontierSync, saved: make(chan struct{}, 1)}
	switch {
	case load == nil:
		s.capability, s.publisher = Unsupported, nil
	case p == nil:
		s.capability = ReadOnly
	}
	return s
}

// Saved tells that something was saved. It returns at once.
func (s *Sync) Saved() {
	select {
	case s.saved <- struct{}{}:
	default:
	}
}

// Run publishes until the context ends. What was saved by then and not published stays in the journal.
func (s *Sync) Run(ctx context.Context) {
	quiet := time.NewTimer(Debounce)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.saved:
			quiet.Reset(Debounce)
		case <-quiet.C:
			_ = s.publish(ctx) // State tells
		}
	}
}

// Retry loads what the relay holds and publishes what is waiting, at once. It reads no messages. The
// error is that of loading, else that of publication.
func (s *Sync) Retry(ctx context.Context) error {
	return errors.Join(s.Load(ctx), s.publish(ctx))
}

// Load reads what the relay holds.
func (s *Sync) Load(ctx context.Context) error {
	if s.load == nil {
		return nil
	}
	err := s.load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadErr = err
	s.loaded = s.loaded || err == nil
	return err
}

func (s *Sync) publish(ctx context.Context) error {
	if s.publisher == nil {
		return nil
	}
	err := s.publisher.Flush(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishErr = err
	return err
}

// State returns how far it has come. Another process may have finished what failed here: then there is
// nothing left to be told of it. A failure to load is told until loading succeeds.
func (s *Sync) State(ctx context.Context) (SyncState, error) {
	r, err := s.book.Load(ctx)
	if err != nil {
		return SyncState{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.Waiting() {
		s.publishErr = nil
	}
	state := SyncState{Capability: s.capability, Err: s.loadErr}
	if state.Err == nil {
		state.Err = s.publishErr
	}
	switch {
	case s.load == nil:
		state.Status = Local
	case errors.Is(state.Err, ErrUnobserved):
		state.Status = Accepted
	case state.Err != nil:
		state.Status = Failed
	case !s.loaded:
		state.Status = Loading
	case s.publisher != nil && r.Waiting():
		state.Status = Waiting
	case len(r.Own) == 0:
		state.Status = Local
	case s.publisher == nil:
		state.Status = Local // and stays here
	default:
		state.Status = Reconciled
	}
	return state, nil
}
