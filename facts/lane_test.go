package facts_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/factstest"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
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

// covers: RT-035 RT-036 RT-037
func TestHistories(t *testing.T) {
	factstest.TestHistories(t, openSQLite, 30, 120)
}

func TestLane(t *testing.T) {
	factstest.TestLane(t, openSQLite)
}
