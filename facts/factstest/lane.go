package factstest

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// Opener opens a fresh store, which the suite closes.
type Opener func(t *testing.T) facts.Store

// rig is a lane on a fresh store, with a workspace and an oracle beside it.
type rig struct {
	store   facts.Store
	lane    *facts.Lane
	driver  *Driver
	key     facts.WorkspaceKey
	commits []facts.Commit // owned by the applier until the lane is closed, like
	dropped []forgotten
	made    atomic.Int64       // ids asked for: posts without one of their own that have run
	onApply func(facts.Commit) // set by a test before the operation that it waits for
}

// forgotten is what a lane says of memory that has to go.
type forgotten struct {
	workspace readstate.WorkspaceID
	lsn       readstate.LSN
}

func newRig(t *testing.T, store facts.Store, cfg facts.LaneConfig) *rig {
	t.Helper()
	ctx := t.Context()
	r := &rig{store: store}
	cfg.Store = store
	cfg.NewID = func() string { return fmt.Sprintf("id-%d", r.made.Add(1)) }
	cfg.Now = func() time.Time {
		if r.driver == nil {
			return Time(0)
		}
		return r.driver.Clock()
	}
	cfg.Apply = func(c facts.Commit) {
		r.commits = append(r.commits, c)
		if r.onApply != nil {
			r.onApply(c)
		}
	}
	cfg.Dropped = func(w readstate.WorkspaceID, lsn readstate.LSN) {
		r.dropped = append(r.dropped, forgotten{w, lsn})
	}
	lane, err := facts.NewLane(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.lane = lane
	t.Cleanup(func() {
		lane.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := lane.PutWorkspace(ctx, facts.PutWorkspace{ID: testWorkspace}); err != nil {
		t.Fatal(err)
	}
	driver, err := NewDriver(ctx, laneDoer{lane, store})
	if err != nil {
		t.Fatal(err)
	}
	r.driver = driver
	view, err := store.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	row, ok, err := view.Workspace(ctx, testWorkspace)
	if err != nil || !ok {
		t.Fatalf("workspace: %v, found %t", err, ok)
	}
	r.key = row.Key
	return r
}

// compare evaluates every member's durable rows against the oracle.
func (r *rig) compare(t *testing.T, limit int) (compared int, diff string) {
	t.Helper()
	ctx := t.Context()
	view, err := r.store.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	now := r.driver.Clock().UnixMilli()
	for m := model.MemberID(1); m <= 5; m++ {
		info, ok, err := view.Member(ctx, r.key, Member(m))
		if err != nil || !ok {
			t.Fatalf("member %s: %v, found %t", m, err, ok)
		}
		got, err := Evaluate(ctx, view, r.key, info, limit, now)
		if err != nil {
			return compared, err.Error()
		}
		var badge readstate.Badge
		for _, s := range r.driver.World.ScopeIDs() {
			e, known := got[r.driver.Scope(s)]
			if d := Differs(e, known, r.driver.World.Values(m, s)); d != "" {
				return compared, fmt.Sprintf("%s in %s: %s\n%s", m, s, d,
					r.driver.World.Explain(m, s))
			}
			badge.Add(e.Presented)
			compared++
		}
		want := r.driver.World.Badge(m)
		if badge.Messages != uint64(want.Messages) ||
			badge.Conversations != uint64(want.Conversations) ||
			badge.Attention != uint64(want.Attention) {
			return compared, fmt.Sprintf("badge of %s: got %+v, want %+v", m, badge, want)
		}
	}
	for _, s := range r.driver.World.ScopeIDs() {
		scope, ok, err := view.Scope(ctx, r.key, r.driver.Scope(s))
		if err != nil || !ok {
			t.Fatalf("scope %s: %v, found %t", s, err, ok)
		}
		if err := r.driver.Activities(ctx, view, scope, s); err != nil {
			return compared, err.Error()
		}
	}
	return compared, ""
}

// TestHistories runs random histories through a lane and compares, after every operation, what
// the durable rows say with the oracle.
func TestHistories(t *testing.T, open Opener, histories, steps int) {
	t.Helper()
	total := 0
	for seed := range uint64(histories) {
		total += playHistory(t, open(t), seed, steps)
	}
	t.Logf("%d values compared with the oracle", total)
}

func playHistory(t *testing.T, store facts.Store, seed uint64, steps int) int {
	t.Helper()
	r := newRig(t, store, facts.LaneConfig{})
	ops := model.RandomOps(rand.New(rand.NewPCG(seed, 1)), steps, model.FactsMix())
	total := 0
	for i, op := range ops {
		err := r.driver.Apply(t.Context(), op)
		n, diff := r.compare(t, 3)
		total += n
		if err != nil || diff != "" {
			t.Fatalf("seed %d, operation %d: %s\nerror: %v\n%s\nhistory:\n%s",
				seed, i, op, err, diff, model.FormatOps(ops[:i+1]))
		}
	}
	return total
}
