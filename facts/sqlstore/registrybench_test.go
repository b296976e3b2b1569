package sqlstore_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/dbtest"
	"github.com/tidemark-im/tidemark/readstate"
)

// BenchmarkSurvey is what a node asks its registry ten times in a lease.
func BenchmarkSurvey(b *testing.B) {
	for _, k := range dbtest.Kinds {
		for _, n := range []int{100, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", k.Name, n), func(b *testing.B) {
				st := filled(b, k, n)
				for b.Loop() {
					if s, err := st.Registry().Survey(b.Context()); err != nil || len(s.Workspaces) != n {
						b.Fatal(len(s.Workspaces), err)
					}
				}
			})
		}
	}
}

// filled is a store with so many workspaces.
func filled(b *testing.B, k dbtest.Kind, n int) (st *sqlstore.Store) {
	b.Helper()
	st, err := sqlstore.Open(b.Context(), k.New(b).Facts, sqlstore.Options{Unsafe: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	tx, err := st.Begin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var c facts.Changes
	for i := range n {
		c.NewWorkspaces = append(c.NewWorkspaces, facts.WorkspaceRow{
			Key: facts.WorkspaceKey(i + 1), ID: readstate.WorkspaceID(fmt.Sprint("workspace-", i)), Term: 1, LSN: 1,
		})
	}
	if err := tx.Write(b.Context(), &c); err != nil {
		b.Fatal(err)
	}
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
	return st
}
