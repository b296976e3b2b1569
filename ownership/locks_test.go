package ownership_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// An owner that is paused within a transaction holds the lock of its workspace's row. The server takes it
// away, so that somebody else can claim the workspace; the owner commits nothing when it wakes.
//
// covers: RT-007
func TestPausedWriterKeepsNoLock(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			database := k.New(t).Facts
			founder, err := tidemark.Open(t.Context(), tidemark.Options{Facts: database})
			if err == nil {
				_, err = founder.CreateWorkspace(t.Context(), "w", "")
				err = errors.Join(err, founder.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			open := func() *sqlstore.Store {
				store, err := sqlstore.Open(t.Context(), database, sqlstore.Options{Unsafe: true, Shared: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = store.Close() })
				return store
			}
			paused, other := open(), open()
			survey, err := other.Registry().Survey(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w := survey.Workspaces[0]
			fences, err := paused.Fences(t.Context(), []facts.WorkspaceKey{w.Key})
			if err != nil {
				t.Fatal(err)
			}
			tx, err := paused.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if ok, err := tx.Advance(t.Context(), w.Key, fences[w.Key]); err != nil || !ok {
				t.Fatal(ok, err)
			}
			claimWhileLocked(t, other.Registry(), w)
			if err := tx.Commit(t.Context()); err == nil {
				t.Error("the paused one has committed")
			}
		})
	}
}

// claimWhileLocked claims a workspace until that succeeds, as a keeper does.
func claimWhileLocked(t *testing.T, r facts.Registry, w facts.OwnedRow) {
	t.Helper()
	epoch, err := r.Enroll(t.Context(), facts.NodeInfo{Node: "other"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		rows, err := r.Claim(t.Context(), facts.Seat{Node: "other", Epoch: epoch},
			[]facts.Claim{{Key: w.Key, Term: w.Term}})
		if err == nil && len(rows) == 1 && rows[0].Term == w.Term+1 {
			return
		}
	}
	t.Fatal("it cannot be claimed")
}
