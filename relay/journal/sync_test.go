package journal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/relay/relaytest"
)

func stateOf(t *testing.T, s *Sync) SyncState {
	t.Helper()
	state, err := s.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func expectStatus(t *testing.T, s *Sync, want Status, err error) {
	t.Helper()
	got := stateOf(t, s)
	if got.Status != want || got.Capability != FrontierSync || !errors.Is(got.Err, err) || err == nil && got.Err != nil {
		t.Errorf("%+v, want %s and %v", got, want, err)
	}
}

// Fifty reads in a row are one publication, five seconds after the last of them.
func TestDebounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openIn(t)
		s := newSim(t, j, 1)
		defer s.relay.Close()
		p := s.devices[0]
		load := func(context.Context) error { return s.observe(p) }
		sync := NewSync(p.Book, load, p)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { sync.Run(ctx); close(done) }()

		expectStatus(t, sync, Loading, nil)
		if err := sync.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		expectStatus(t, sync, Local, nil)
		for i := range 50 {
			act(t, p.Book, "a", secs(i))
			sync.Saved()
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(Debounce - 101*time.Millisecond)
		synctest.Wait()
		expectStatus(t, sync, Waiting, nil)
		if s.sent.Load() != 0 {
			t.Errorf("%d publications before the quiet period was over", s.sent.Load())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		expectStatus(t, sync, Reconciled, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if s.sent.Load() != 1 {
			t.Errorf("%d publications", s.sent.Load())
		}

		// What fails is not tried again by itself.
		s.at, s.fault = relaytest.AtEvent, relaytest.Refuse
		act(t, p.Book, "a", secs(60))
		sync.Saved()
		time.Sleep(time.Hour)
		synctest.Wait()
		expectStatus(t, sync, Failed, ErrRefused)
		if s.sent.Load() != 2 {
			t.Errorf("%d publications", s.sent.Load())
		}
		stop()
		<-done
	})
}

// openIn is a journal whose goroutines end before the test does.
func openIn(t *testing.T) *Journal {
	t.Helper()
	return openAt(t, t.TempDir()+"/journal.db", nil)
}

// Each status is reached by what it says, and an error of loading is told until loading succeeds.
// covers: RL-418, RL-419, RL-420, RL-450, RL-451, RL-453
func TestSyncStates(t *testing.T) {
	s := newSim(t, open(t), 1)
	defer s.relay.Close()
	p := s.devices[0]
	broken := errors.New("no markers")
	var loadErr error
	sync := NewSync(p.Book, func(context.Context) error { return loadErr }, p)
	expectStatus(t, sync, Loading, nil)
	loadErr = broken
	if err := sync.Retry(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	expectStatus(t, sync, Failed, broken)
	act(t, p.Book, "a", secs(1))
	if err := sync.Retry(t.Context()); !errors.Is(err, broken) || s.sent.Load() != 1 {
		t.Errorf("%v, %d publications", err, s.sent.Load())
	}
	expectStatus(t, sync, Failed, broken) // though the publication succeeded
	loadErr = nil
	if err := sync.Retry(t.Context()); err != nil || s.sent.Load() != 1 {
		t.Errorf("%v, %d publications", err, s.sent.Load())
	}
	expectStatus(t, sync, Reconciled, nil)

	s.relay.Switch(relaytest.LoseEvents, true)
	act(t, p.Book, "a", secs(2))
	expectStatus(t, sync, Waiting, nil)
	if err := sync.Retry(t.Context()); !errors.Is(err, ErrUnobserved) {
		t.Errorf("%v", err)
	}
	expectStatus(t, sync, Accepted, ErrUnobserved)
	s.relay.Switch(relaytest.LoseEvents, false)
	s.at, s.fault = relaytest.AtEvent, relaytest.Refuse
	if err := sync.Retry(t.Context()); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	expectStatus(t, sync, Failed, ErrRefused)
	s.fault = relaytest.None
	if err := p.Flush(t.Context()); err != nil { // as another process would
		t.Fatal(err)
	}
	expectStatus(t, sync, Reconciled, nil)

	// Without the means, nothing is published, and local marks are saved all the same.
	sent := s.sent.Load()
	for want, less := range map[Capability]*Sync{
		Unsupported: NewSync(p.Book, nil, p), ReadOnly: NewSync(p.Book, func(context.Context) error { return nil }, nil),
	} {
		act(t, p.Book, "a", secs(10+len(want)))
		if _, err := p.Book.MarkUnread(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		if err := less.Retry(t.Context()); err != nil || s.sent.Load() != sent {
			t.Errorf("%s: %v, %d publications", want, err, s.sent.Load()-sent)
		}
		if got := stateOf(t, less); got.Capability != want || got.Status != Local {
			t.Errorf("%+v", got)
		}
	}
}
