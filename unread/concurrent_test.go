package unread

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// town is a workspace under real concurrency: an applier, readers, streams and evictions, each
// with a goroutine of its own. Every answer is judged by the world of the LSN that it names.
type town struct {
	t     *testing.T
	r     *Runtime
	mu    sync.Mutex // guards facts and worlds
	facts *mirror
	// worlds are by LSN. Clocks stand still, so that they never change.
	worlds []*model.World
	done   atomic.Bool
	checks atomic.Int64
}

func (c *town) Page(ctx context.Context, q PageRequest) (readstate.Page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts.Page(ctx, q)
}

func (c *town) world(lsn readstate.LSN) *model.World {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.worlds[lsn]
}

func (c *town) apply(ops []model.Op) {
	defer c.done.Store(true)
	for _, op := range ops {
		c.mu.Lock()
		events := c.facts.play(op)
		lsn := c.facts.lsn
		if events != nil {
			c.worlds = append(c.worlds, c.facts.world.Clone())
		}
		c.mu.Unlock()
		if events == nil {
			continue
		}
		if err := c.r.Apply(testSpace, lsn, events); err != nil {
			c.t.Error(err)
			return
		}
	}
}

func (c *town) judge(m readstate.MemberID, row Row) {
	id := model.MemberID(m[0]-'A') + 1
	want := c.world(row.LSN).Values(id, model.ScopeID(row.Scope.Key-100))
	c.checks.Add(1)
	if int(row.Values.Unread) != want.Unread || int(row.Values.Attention) != want.Attention ||
		int(row.Values.Activity) != want.Activity || row.Presented.Shown != want.Shown ||
		int(row.Presented.Unread) != want.ShownUnread || !want.Present {
		c.t.Errorf("%s in %s at %d: got %+v %+v, want %v", m, row.Scope.ID, row.LSN, row.Values,
			row.Presented, want)
	}
}

func (c *town) judgeSummary(m readstate.MemberID, s Summary) {
	if !s.Complete {
		return
	}
	b := c.world(s.LSN).Badge(model.MemberID(m[0]-'A') + 1)
	c.checks.Add(1)
	if int(s.Badge.Messages) != b.Messages || int(s.Badge.Attention) != b.Attention ||
		int(s.Badge.Conversations) != b.Conversations || s.HasUnread != (b.Conversations > 0) {
		c.t.Errorf("%s at %d: got %+v, want %+v", m, s.LSN, s, b)
	}
}

func (c *town) read(rng *rand.Rand) {
	for !c.done.Load() {
		m := memberID(model.MemberID(rng.IntN(mirrorMembers)) + 1)
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		var err error
		switch rng.IntN(6) {
		case 0:
			c.r.HasUnread(testSpace, m)
		case 1:
			var s Summary
			if s, err = c.r.Summary(ctx, testSpace, m); err == nil {
				c.judgeSummary(m, s)
			}
		case 2:
			var page RowPage
			if page, err = c.r.Rows(ctx, testSpace, m, "", 1+rng.IntN(20)); err == nil {
				c.judgeSummary(m, page.Summary)
				for _, row := range page.Rows {
					c.judge(m, row)
				}
			}
		case 3:
			var row Row
			s := scopeID(model.ScopeID(rng.IntN(9)) + 1)
			if row, err = c.r.Row(ctx, testSpace, m, s); err == nil {
				c.judge(m, row)
			}
		case 4:
			var changes Changes
			since := readstate.LSN(rng.IntN(50))
			if changes, err = c.r.Changed(ctx, testSpace, m, since); err == nil {
				for _, x := range changes.Deltas {
					if !x.Removed {
						c.judge(m, x.Row)
					}
				}
			}
		case 5:
			c.r.Stats()
			c.r.Forget(testSpace, m)
		}
		cancel()
		if err != nil && !errors.Is(err, ErrNoRow) {
			c.t.Errorf("%s: %v", m, err)
			return
		}
	}
}

func (c *town) follow(rng *rand.Rand) {
	for !c.done.Load() {
		m := memberID(model.MemberID(rng.IntN(mirrorMembers)) + 1)
		w, err := c.r.Watch(testSpace, []readstate.MemberID{m})
		if err != nil {
			c.t.Error(err)
			return
		}
		for range 20 {
			select {
			case <-w.Ready():
			case <-w.Lost():
			case <-time.After(time.Millisecond):
			}
			for _, x := range w.Next(5) {
				c.judgeSummary(m, x.Summary)
				if !x.Removed {
					c.judge(m, x.Row)
				}
			}
			w.Settled()
		}
		w.Close()
	}
}

// Everything at once, under the race detector in CI.
//
// covers: RT-353
func TestConcurrentReaders(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			mix := model.FullMix().Without(model.StepClock, model.StepExpire)
			c := &town{t: t, facts: newMirror(rng), worlds: []*model.World{model.New()}}
			r, err := New(Config{
				Source: c, Now: func() int64 { return 0 }, HydratePageSize: 3,
				HydrateWait: time.Minute, RingEvents: 64, MaxEntries: 20, MaxFirePerTick: 2,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			c.r = r
			r.Open(testSpace, 0)
			var all sync.WaitGroup
			ops := model.RandomOps(rand.New(rand.NewPCG(seed, 8)), 500, mix)
			all.Go(func() { c.apply(ops) })
			for i := range uint64(3) {
				all.Go(func() { c.read(rand.New(rand.NewPCG(seed, 100+i))) })
			}
			all.Go(func() { c.follow(rand.New(rand.NewPCG(seed, 200))) })
			all.Wait()
			if s := r.Stats(); s.Alarms > 0 || c.checks.Load() == 0 {
				t.Errorf("%d checks: %+v", c.checks.Load(), s)
			}
		})
	}
}
