package tidemark_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/factstest"
	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// engineDoer runs operations on an engine's workspace.
type engineDoer struct {
	*tidemark.Workspace
	engine *tidemark.Engine
}

func (d engineDoer) Read(ctx context.Context, op facts.MarkRead) error {
	_, err := d.MarkRead(ctx, op)
	return err
}

func (d engineDoer) Unread(ctx context.Context, op facts.MarkUnread) error {
	_, err := d.MarkUnread(ctx, op)
	return err
}

func (d engineDoer) Newest(
	ctx context.Context, s readstate.ScopeID, limit int,
) ([]facts.Message, error) {
	page, err := d.Messages(ctx, tidemark.MessageFilter{Scope: s, Limit: limit})
	return page.Messages, err
}

func (d engineDoer) Expire(ctx context.Context) error { return d.engine.Sweep(ctx) }

// table is an engine on a fresh store with an oracle beside it.
type table struct {
	engine *tidemark.Engine
	ws     *tidemark.Workspace
	driver *factstest.Driver
}

func newTable(t *testing.T) *table {
	t.Helper()
	tb := &table{}
	var ids atomic.Int64
	var clock atomic.Pointer[time.Time]
	start := factstest.Time(0)
	clock.Store(&start)
	engine, err := tidemark.Open(t.Context(), tidemark.Options{
		Facts:      "sqlite:" + filepath.Join(t.TempDir(), "facts.db"),
		Now:        func() time.Time { return *clock.Load() },
		NewID:      func() string { return fmt.Sprintf("id-%d", ids.Add(1)) },
		SweepEvery: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := engine.CreateWorkspace(t.Context(), "w", "test"); err != nil {
		t.Fatal(err)
	}
	tb.engine, tb.ws = engine, engine.Workspace("w")
	tb.driver, err = factstest.NewDriver(t.Context(), clockedDoer{
		engineDoer{tb.ws, engine}, func() { now := tb.driver.Clock(); clock.Store(&now) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// clockedDoer sets the engine's clock to the oracle's before what depends on it.
type clockedDoer struct {
	engineDoer
	tick func()
}

func (d clockedDoer) Expire(ctx context.Context) error {
	d.tick()
	return d.engineDoer.Expire(ctx)
}

func (d clockedDoer) Tick() { d.tick() }

// compare checks every member's served values, totals and pages against the oracle.
func (tb *table) compare(ctx context.Context) (int, error) {
	compared := 0
	for m := model.MemberID(1); m <= 5; m++ {
		id := factstest.Member(m)
		for _, s := range tb.driver.World.ScopeIDs() {
			if err := tb.compareRow(ctx, m, s); err != nil {
				return compared, err
			}
			compared++
		}
		summary, err := tb.ws.Summary(ctx, id)
		if err != nil {
			return compared, fmt.Errorf("summary of %s: %w", id, err)
		}
		want := tb.driver.World.Badge(m)
		if summary.Badge.Messages != uint64(want.Messages) ||
			summary.Badge.Conversations != uint64(want.Conversations) ||
			summary.Badge.Attention != uint64(want.Attention) ||
			summary.HasUnread != tb.driver.World.HasUnread(m) {
			return compared, fmt.Errorf("summary of %s: got %+v, want %+v hasUnread=%t",
				id, summary, want, tb.driver.World.HasUnread(m))
		}
	}
	return compared, nil
}

func (tb *table) compareRow(ctx context.Context, m model.MemberID, s model.ScopeID) error {
	row, err := tb.ws.Row(ctx, factstest.Member(m), tb.driver.Scope(s))
	if err != nil && !errors.Is(err, unread.ErrNoRow) {
		return fmt.Errorf("row of %s in %s: %w", m, s, err)
	}
	got := factstest.Evaluated{
		Row: row.Row, Values: row.Values, Presented: row.Presented, Present: err == nil,
	}
	if err == nil && row.State != unread.Ready {
		return fmt.Errorf("row of %s in %s is %s", m, s, row.State)
	}
	if d := factstest.Differs(got, err == nil, tb.driver.World.Values(m, s)); d != "" {
		return fmt.Errorf("%s in %s: %s\n%s", m, s, d, tb.driver.World.Explain(m, s))
	}
	return nil
}

// seeded is how many histories to play: usual, or that many percent of it that TIDEMARK_SEEDS says.
func seeded(usual int) int {
	if percent, err := strconv.Atoi(os.Getenv("TIDEMARK_SEEDS")); err == nil && percent > 0 {
		return max(1, usual*percent/100)
	}
	return usual
}

// covers: RT-062 RT-069 RT-100
func TestSeededHistoriesAreServedExactly(t *testing.T) {
	total := 0
	for seed := range uint64(seeded(8)) {
		tb := newTable(t)
		ops := model.RandomOps(rand.New(rand.NewPCG(seed, 2)), 150, model.FactsMix())
		for i, op := range ops {
			err := tb.driver.Apply(t.Context(), op)
			if err == nil {
				var n int
				n, err = tb.compare(t.Context())
				total += n
			}
			if err != nil {
				t.Fatalf("seed %d, operation %d: %s\n%v\nhistory:\n%s",
					seed, i, op, err, model.FormatOps(ops[:i+1]))
			}
		}
	}
	t.Logf("%d served values compared with the oracle", total)
}
