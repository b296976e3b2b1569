package unread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// gate is a source whose pages wait until the test lets them through.
type gate struct {
	*mirror
	open  chan struct{}
	start time.Time

	mu      sync.Mutex
	log     pages
	refusal error
}

// pages is what a source was asked.
type pages struct {
	now    int             // right now
	most   int             // at once
	asked  []time.Duration // since start
	limits []int
}

func (g *gate) seen() pages {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.log
	c.asked, c.limits = slices.Clone(c.asked), slices.Clone(c.limits)
	return c
}

func (g *gate) refuse(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusal = err
}

func (g *gate) Page(ctx context.Context, q PageRequest) (readstate.Page, error) {
	g.mu.Lock()
	g.log.now++
	g.log.most = max(g.log.most, g.log.now)
	g.log.asked = append(g.log.asked, time.Since(g.start))
	g.log.limits = append(g.log.limits, q.Limit)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.log.now--
		g.mu.Unlock()
	}()
	select {
	case <-g.open:
	case <-ctx.Done():
		return readstate.Page{}, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusal != nil {
		return readstate.Page{}, g.refusal
	}
	return g.mirror.Page(ctx, q)
}

// bubble makes a runtime with goroutines of its own, for use within synctest.Test.
func bubble(t *testing.T, cfg Config) (*gate, *Runtime) {
	t.Helper()
	g := &gate{mirror: newMirror(nil), open: make(chan struct{}), start: time.Now()}
	cfg.Source = g
	cfg.Now = func() int64 { return time.Since(g.start).Milliseconds() }
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.Open(testSpace, 0)
	g.do(t, r, room...)
	g.do(t, r, "post s1 A")
	return g, r
}

// A failed page is read again after the pause, also where the clock is an hour behind by then.
// covers: RT-403
func TestRetryByAClockThatGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{mirror: newMirror(nil), open: make(chan struct{}), start: time.Now()}
		close(g.open)
		var back atomic.Int64 // milliseconds
		r, err := New(Config{Source: g, Now: func() int64 {
			return time.Since(g.start).Milliseconds() + time.Hour.Milliseconds() - back.Load()
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		r.Open(testSpace, 0)
		g.do(t, r, room...)
		g.refuse(errors.New("disk on fire"))
		r.HasUnread(testSpace, "B")
		synctest.Wait()
		back.Store(time.Hour.Milliseconds())
		for range 2 {
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		if asked := g.seen().asked; !slices.Equal(asked, []time.Duration{0, 5 * time.Second, 10 * time.Second}) {
			t.Errorf("pages were read after %v", asked)
		}
	})
}

// covers: RT-403, RT-348
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := bubble(t, Config{})
		close(g.open)
		g.refuse(errors.New("disk on fire"))
		_, state := r.HasUnread(testSpace, "B")
		if state != Hydrating {
			t.Errorf("state %s", state)
		}
		time.Sleep(4999 * time.Millisecond)
		synctest.Wait()
		g.refuse(nil)
		if asked := g.seen().asked; len(asked) != 1 {
			t.Errorf("asked at %v before the interval is over", asked)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if asked := g.seen().asked; len(asked) != 2 || asked[1] != 5*time.Second {
			t.Errorf("asked at %v, want again after 5 s", asked)
		}
		if dot, state := r.HasUnread(testSpace, "B"); !dot || state != Ready {
			t.Errorf("after the retry: %t, %s", dot, state)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked := g.seen().asked; len(asked) != 2 {
			t.Errorf("a page that succeeded is read again: %v", asked)
		}
	})
}

// covers: RT-418, RT-437, RT-324, RT-326, RT-347
func TestHydrateConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := bubble(t, Config{})
		if s := r.Stats(); s.Entries != 0 || s.Members != 0 {
			t.Errorf("a new runtime holds %+v", s)
		}
		for range 100 {
			for m := model.MemberID(1); m <= mirrorMembers; m++ {
				r.HasUnread(testSpace, memberID(m))
			}
		}
		synctest.Wait()
		s := r.Stats()
		if now := g.seen().now; now != 2 || s.Hydrating != mirrorMembers || s.ReadingPages != 2 {
			t.Errorf("%d pages at once, %+v", now, s)
		}
		close(g.open)
		synctest.Wait()
		p := g.seen()
		if p.most != 2 || len(p.asked) != mirrorMembers || r.Stats().MaxReadingPages != 2 {
			t.Errorf("at most %d at once, %d pages in all", p.most, len(p.asked))
		}
	})
}

// covers: RT-438, RT-330
func TestPageSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := bubble(t, Config{})
		for i := 2; i <= 250; i++ {
			g.do(t, r, fmt.Sprintf("create s%d channel", i), fmt.Sprintf("join s%d E", i))
		}
		close(g.open)
		s, err := r.Summary(t.Context(), testSpace, "E")
		if err != nil || !s.Complete {
			t.Fatalf("%+v, %v", s, err)
		}
		p := g.seen()
		if len(p.asked) > 4 || slices.Max(p.limits) != 100 {
			t.Errorf("%d pages for 249 rows of limits %v", len(p.asked), p.limits)
		}
		for range 10 {
			if _, err := r.Rows(t.Context(), testSpace, "E", "", 100); err != nil {
				t.Fatal(err)
			}
		}
		if len(g.seen().asked) != len(p.asked) {
			t.Error("a warm read asks the source")
		}
	})
}

// covers: RT-419, RT-423, RT-428
func TestHydrationBudgets(t *testing.T) {
	for _, cfg := range []Config{{MaxHydrations: 2}, {MaxWorkspaceHydrations: 2}} {
		synctest.Test(t, func(t *testing.T) {
			g, r := bubble(t, cfg)
			r.HasUnread(testSpace, "A")
			r.HasUnread(testSpace, "B")
			if _, state := r.HasUnread(testSpace, "C"); state != Unavailable {
				t.Errorf("a third member is %s", state)
			}
			row, err := r.Row(t.Context(), testSpace, "C", "s1")
			if !errors.Is(err, ErrBudget) || !errors.Is(err, ErrNotServable) ||
				row.State != Unavailable {
				t.Errorf("a third member's row: %s, %v", row.State, err)
			}
			if s := r.Stats(); s.RefusedJobs != 2 || s.Hydrating != 2 || s.Suppressed != 4 {
				t.Errorf("%+v", s)
			}
			close(g.open)
			synctest.Wait()
			if _, err := r.Row(t.Context(), testSpace, "C", "s1"); err != nil {
				t.Errorf("once the others are loaded: %v", err)
			}
		})
	}
}

// covers: RT-376, RT-321, RT-345, RT-428
func TestColdReadsWaitAndWithhold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := bubble(t, Config{HydrateWait: 3 * time.Second})
		start := time.Now()
		row, err := r.Row(t.Context(), testSpace, "B", "s1")
		if !errors.Is(err, ErrNotServable) || row.State != Hydrating ||
			row.Values != (readstate.Values{}) {
			t.Errorf("a cold row: %+v, %v", row, err)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		s, err := r.Summary(ctx, testSpace, "B")
		if !errors.Is(err, ErrNotServable) || s != (Summary{State: Hydrating}) ||
			time.Since(start) != time.Second {
			t.Errorf("a cold summary: %+v, %v after %v", s, err, time.Since(start))
		}
		if page, err := r.Rows(ctx, testSpace, "B", "", 10); err == nil || page.Rows != nil ||
			page.State != Hydrating {
			t.Errorf("cold rows: %+v, %v", page, err)
		}
		if _, err := r.Totals(ctx, testSpace, "B", ByType); !errors.Is(err, ErrNotServable) {
			t.Errorf("cold totals: %v", err)
		}
		if _, err := r.Changed(ctx, testSpace, "B", 1); !errors.Is(err, ErrNotServable) {
			t.Errorf("cold changes: %v", err)
		}
		if asked := g.seen().asked; len(asked) != 1 {
			t.Errorf("asked at %v", asked)
		}
		if n := r.Stats().Suppressed; n != 5 {
			t.Errorf("%d of 5 answers were counted as withheld", n)
		}
		// A read that comes in time is answered as soon as the page is there.
		time.AfterFunc(time.Second, func() { close(g.open) })
		start = time.Now()
		if row, err := r.Row(t.Context(), testSpace, "B", "s1"); err != nil ||
			row.Values.Unread != 1 || time.Since(start) != time.Second {
			t.Errorf("%+v, %v after %v", row.Values, err, time.Since(start))
		}
		if s := r.Stats(); s.OldestHydration != 0 || s.Hydrating != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// covers: RT-428
func TestUnknownMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := bubble(t, Config{})
		close(g.open)
		if _, err := r.Summary(t.Context(), testSpace, "Z"); !errors.Is(err, ErrNoMember) {
			t.Errorf("an unknown member: %v", err)
		}
		if _, err := r.Summary(t.Context(), "elsewhere", "B"); !errors.Is(err, ErrNoWorkspace) {
			t.Errorf("an unknown workspace: %v", err)
		}
		before := r.Stats().Suppressed
		if dot, state := r.HasUnread("elsewhere", "B"); dot || state != Unavailable {
			t.Errorf("an unknown workspace: %t, %s", dot, state)
		}
		if n := r.Stats().Suppressed - before; n != 1 {
			t.Errorf("its dot was withheld %d times", n)
		}
	})
}

// Whoever waits is let go when the workspace or the runtime ends.
func TestDropEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := bubble(t, Config{HydrateWait: time.Hour})
		answer := make(chan error, 1)
		ask := func() {
			_, err := r.Summary(t.Context(), testSpace, "B")
			answer <- err
		}
		go ask()
		synctest.Wait()
		r.Drop(testSpace)
		if err := <-answer; !errors.Is(err, ErrNoWorkspace) {
			t.Errorf("after Drop: %v", err)
		}
		if err := r.Apply(testSpace, 9, nil); !errors.Is(err, ErrNoWorkspace) {
			t.Errorf("Apply after Drop: %v", err)
		}
		r.Open(testSpace, 5)
		go ask()
		synctest.Wait()
		r.Close()
		if err := <-answer; !errors.Is(err, ErrNotServable) && !errors.Is(err, ErrNoWorkspace) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// covers: RT-408, RT-409
func TestConfig(t *testing.T) {
	r, err := newRuntime(Config{Source: newMirror(nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := Config{
		HydratePageSize: 100, HydrateConcurrency: 2, HydrateRetry: 5 * time.Second,
		HydrateWait: 2 * time.Second, MaxHydrations: 20_000, MaxWorkspaceHydrations: 10_000,
		RingEvents: 10_000, MaxEntries: 50_000_000, MaxBytes: 4 << 30,
		MaxFirePerTick: 2_000, MaxWatchMembers: 10_000,
	}
	got := r.cfg
	got.Source, got.Now = nil, nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("defaults are %+v", got)
	}
	for _, bad := range []Config{
		{}, {HydratePageSize: -1}, {HydrateConcurrency: -1}, {HydrateRetry: -1},
		{HydrateWait: -1}, {MaxHydrations: -1}, {MaxWorkspaceHydrations: -1}, {RingEvents: -1},
		{MaxEntries: -1}, {MaxBytes: -1}, {MaxFirePerTick: -1}, {MaxWatchMembers: -1},
	} {
		if fmt.Sprint(bad) != fmt.Sprint(Config{}) {
			bad.Source = newMirror(nil)
		}
		if r, err := New(bad); err == nil {
			r.Close()
			t.Errorf("New takes %+v", bad)
		}
	}
}

// Whoever nobody asks about is not loaded, whatever is said about them.
//
// covers: RT-327
func TestTheIdleAreNotLoaded(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	about := []string{
		"create s2 channel", "join s2 B", "post s1 A @B,C everyone", "post s2 A @B", "edit s1 1 @B",
		"post s1 C as=B", "read s1 B 1 service", "unread s1 B v=0", "level s1 B mentions until=60",
		"hide s1 B", "show s1 B", "block B A", "unblock B A", "activity s1 A", "archive s1",
		"unarchive s1", "leave s1 B", "join s1 B", "remove s1 1", "trim s1 1",
	}
	for _, line := range about {
		d.do(line)
		if s := d.r.Stats(); s.Hydrating != 0 || s.Members != 0 || s.Entries != 0 {
			t.Fatalf("%q has members loaded: %+v", line, s)
		}
	}
	asked := map[string]func(){
		"a dot":     func() { d.r.HasUnread(testSpace, "B") },
		"a page":    func() { _, _ = d.r.Rows(cold(), testSpace, "B", "", 10) },
		"one scope": func() { _, _ = d.r.Row(cold(), testSpace, "B", "s1") },
		"a stream":  func() { d.watch("B").Close() },
	}
	for what, ask := range asked {
		pages := d.r.Stats().Pages
		ask()
		d.pump()
		s := d.r.Stats()
		if s.Members != 1 || s.Pages == pages {
			t.Errorf("%s of B has %d members loaded with %d pages", what, s.Members, s.Pages-pages)
		}
		if !d.r.Forget(testSpace, "B") {
			t.Fatal("B cannot be let go")
		}
	}
	// A member who was let go is idle again.
	for _, line := range []string{"post s1 A @B", "level s1 B all", "leave s1 B"} {
		d.do(line)
		if s := d.r.Stats(); s.Hydrating != 0 || s.Members != 0 {
			t.Errorf("%q has members loaded: %+v", line, s)
		}
	}
}
