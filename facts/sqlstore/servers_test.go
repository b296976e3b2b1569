package sqlstore_test

import (
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/factstest"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/dbtest"
)

func openServer(t *testing.T, name string) *sqlstore.Store {
	t.Helper()
	st, err := sqlstore.Open(t.Context(), name, sqlstore.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// The suite of every store, on a server of each kind.
func TestServerStore(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			open := dbtest.Reused(t, k, openServer)
			factstest.TestFarStore(t, func(t *testing.T) facts.Store { return open(t) })
		})
	}
}

func TestServerOutbox(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			open := dbtest.Reused(t, k, openServer)
			factstest.TestOutbox(t, func(t *testing.T) factstest.OutboxStore { return open(t) })
		})
	}
}

func TestServerRegistry(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			open := dbtest.Reused(t, k, openServer)
			factstest.TestRegistry(t, func(t *testing.T) (facts.Store, facts.Registry) {
				st := open(t)
				return st, st.Registry()
			})
		})
	}
}
