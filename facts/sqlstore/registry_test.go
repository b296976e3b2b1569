package sqlstore_test

import (
	"path/filepath"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/factstest"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
)

func TestRegistry(t *testing.T) {
	factstest.TestRegistry(t, func(t *testing.T) (facts.Store, facts.Registry) {
		st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "facts.db"),
			sqlstore.Options{Unsafe: true})
		if err != nil {
			t.Fatal(err)
		}
		return st, st.Registry()
	})
}
