package facts_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/factstest"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openSQLite(t *testing.T) facts.Store {
	t.Helper()
	store, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "facts.db"),
		sqlstore.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TIDEMARK_SEEDS is the percentage of the usual number of histories.
// covers: RT-035 RT-036 RT-037
func TestSeededHistories(t *testing.T) {
	histories := 4
	if percent, err := strconv.Atoi(os.Getenv("TIDEMARK_SEEDS")); err == nil && percent > 0 {
		histories = max(1, histories*percent/100)
	}
	factstest.TestHistories(t, openSQLite, histories, 120)
}

func TestLane(t *testing.T) {
	factstest.TestLane(t, openSQLite)
}

func openServer(t *testing.T, name string) facts.Store {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), name, sqlstore.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// The same on servers, where every statement is a journey: one short history but for the soak.
func TestServerHistories(t *testing.T) {
	histories, steps := 1, 40
	if os.Getenv("TIDEMARK_SOAK") != "" {
		histories, steps = 60, 120
	}
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			factstest.TestHistories(t, dbtest.Reused(t, k, openServer), histories, steps)
		})
	}
}

func TestServerLane(t *testing.T) {
	for i, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			factstest.TestFarLane(t, dbtest.Reused(t, k, openServer), i, len(dbtest.Kinds))
		})
	}
}
