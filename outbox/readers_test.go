package outbox

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// bubble runs a test in a bubble of its own time, in which an outbox works by itself.
func bubble(t *testing.T, change func(o *Options), f func(w *world, b *Outbox)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.outbox(func(o *Options) {
			o.Now = time.Now
			if change != nil {
				change(o)
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		f(w, b)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.client.CloseIdleConnections()
		w.close()
	})
}

// pass lets the time of a bubble go by.
func pass(d time.Duration) { <-time.NewTimer(d).C }

func (w *world) read(
	b *Outbox, agent readstate.MemberID, after facts.WakeKey, wait time.Duration,
) []Waiting {
	w.t.Helper()
	got, err := b.Wakes(w.t.Context(), space, agent, after, wait, 0)
	w.ok(err)
	return got
}

func names(got []Waiting) []string {
	var out []string
	for _, g := range got {
		out = append(out, g.Message.MessageID)
	}
	return out
}

// A reader gets what waits, waits for what comes, and acknowledges by reading on.
func TestReading(t *testing.T) {
	bubble(t, nil, func(w *world, b *Outbox) {
		began := time.Now()
		if got := w.read(b, "a0", 0, 0); len(got) != 0 || time.Since(began) != 0 {
			t.Errorf("%v after %v", got, time.Since(began))
		}
		if got := w.read(b, "a0", 0, 20*time.Second); len(got) != 0 || time.Since(began) != 20*time.Second {
			t.Errorf("%v after %v", got, time.Since(began))
		}
		answer := make(chan []Waiting, 1)
		go func() { answer <- w.read(b, "a0", 0, time.Minute) }()
		synctest.Wait()
		began = time.Now()
		first := w.post("t")
		b.Poke(1)
		got := <-answer
		if !slices.Equal(names(got), []string{first}) || time.Since(began) > time.Second {
			t.Fatalf("%v after %v", got, time.Since(began))
		}
		if got[0].ID == "" || got[0].Message.Agent != "a0" || got[0].Message.Type != TypeTaskMessage {
			t.Errorf("%+v", got[0])
		}
		// What is not acknowledged comes again.
		second := w.post("t")
		b.Poke(1)
		synctest.Wait()
		again := w.read(b, "a0", 0, time.Minute)
		if !slices.Equal(names(again), []string{first, second}) || again[0] != got[0] {
			t.Fatalf("%v", again)
		}
		if rest := w.read(b, "a0", again[0].Key, time.Minute); !slices.Equal(names(rest), []string{second}) {
			t.Errorf("%v", rest)
		}
		if n := w.waiting("a0"); len(n) != 1 {
			t.Errorf("%v is stored", n)
		}
		if rest := w.read(b, "a0", again[1].Key, 0); len(rest) != 0 {
			t.Errorf("%v", rest)
		}
		// The queue is empty, and its numbers go on.
		third := w.post("t")
		b.Poke(1)
		last := w.read(b, "a0", again[1].Key, time.Minute)
		if !slices.Equal(names(last), []string{third}) || last[0].Key != again[1].Key+1 {
			t.Errorf("%v", last)
		}
		if got := w.waiting("a1"); len(got) != 3 {
			t.Errorf("another agent's wakes: %v", got)
		}
	})
}

// A position that was never given out acknowledges nothing.
func TestReadingTooFar(t *testing.T) {
	w := newWorld(t)
	b := w.outbox()
	id := w.post("t")
	w.rows(b)
	_, err := b.Wakes(t.Context(), space, "a0", 2, 0, 0)
	if !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if got := w.waiting("a0"); !slices.Equal(got, []string{id}) {
		t.Errorf("%v", got)
	}
	if _, err := b.Wakes(t.Context(), space, "h0", 0, 0, 0); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("a human's wakes: %v", err)
	}
	if _, err := b.Wakes(t.Context(), space, "nobody", 0, 0, 0); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("nobody's wakes: %v", err)
	}
}

// Readers are bounded, and end with the outbox.
func TestReadersAreBounded(t *testing.T) {
	bubble(t, func(o *Options) { o.Limits.Readers = 2 }, func(w *world, b *Outbox) {
		ended := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := b.Wakes(w.t.Context(), space, "a0", 0, time.Minute, 0)
				ended <- err
			}()
		}
		synctest.Wait()
		if _, err := b.Wakes(w.t.Context(), space, "a1", 0, time.Minute, 0); !errors.Is(err, facts.ErrLimit) {
			t.Errorf("a third reader: %v", err)
		}
		if s, _ := b.Stats(w.t.Context()); s.Readers != 2 {
			t.Errorf("%d readers", s.Readers)
		}
		b.Close()
		for range 2 {
			if err := <-ended; !errors.Is(err, ErrClosed) {
				t.Errorf("%v", err)
			}
		}
		if _, err := b.Wakes(w.t.Context(), space, "a1", 0, time.Minute, 0); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// The work goes on by itself: what was deferred is tried again, what nobody told of is found, and
// what is old is dropped.
func TestRunByItself(t *testing.T) {
	s := &spy{}
	bubble(t, spied(s), func(w *world, b *Outbox) {
		s.set(StageAccount, ErrPending)
		first := w.post("t")
		b.Poke(1)
		pass(10 * b.Limits.DeferMost)
		if st := w.states()[first]; st.state != facts.EffectDeferred || st.deferrals < 10 ||
			st.deferrals > 25 {
			t.Errorf("%+v", st)
		}
		s.set(0, nil)
		pass(b.Limits.DeferMost)
		if st := w.states()[first]; st.state != facts.EffectDelivered {
			t.Errorf("%+v", st)
		}
		second := w.post("t") // without a word
		pass(b.Limits.Rescan)
		synctest.Wait()
		if st := w.states()[second]; st.state != facts.EffectDelivered {
			t.Errorf("%+v", st)
		}
		pass(b.Limits.KeepDelivered + 2*b.Limits.Rescan)
		synctest.Wait()
		if rows := w.query(`SELECT 1 FROM outbox`); len(rows) != 0 {
			t.Errorf("%d old rows are left", len(rows))
		}
		if rows := w.query(`SELECT 1 FROM outbox_state`); len(rows) != 0 {
			t.Errorf("%d old states are left", len(rows))
		}
		if got := w.waiting("a0"); !slices.Equal(got, []string{first, second}) {
			t.Errorf("wakes went with the rows: %v", got)
		}
	})
}

// Run and Close in any order.
func TestRunAndClose(t *testing.T) {
	w := newWorld(t)
	b := w.outbox()
	b.Close()
	if err := b.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("run after close: %v", err)
	}
	b = w.outbox()
	ended := make(chan error)
	started := make(chan struct{})
	b.OnStep = nil
	go func() {
		close(started)
		ended <- b.Run(context.Background())
	}()
	<-started
	go b.Close()
	if err := <-ended; err != nil && !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	b.Close()
	if err := b.Run(t.Context()); err == nil {
		t.Error("ran twice")
	}
}

// refusing is a network without anybody in it.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errInjected }
