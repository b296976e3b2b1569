package sqlstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/factstest"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(ownerEnv); path != "" {
		fmt.Fprintln(os.Stderr, runOwner(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, o sqlstore.Options) (*sqlstore.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "facts.db")
	st, err := sqlstore.OpenSQLite(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return st, path
}

func TestStore(t *testing.T) {
	factstest.TestStore(t, func(t *testing.T) facts.Store {
		st, _ := open(t, sqlstore.Options{Unsafe: true})
		return st
	})
}
