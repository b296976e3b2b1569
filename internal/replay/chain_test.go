package replay_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// A load relies on it that nothing of a chained batch happens after something that failed.
func TestChainedBatchEndsAtItsFirstFailure(t *testing.T) {
	e := engine(t, filepath.Join(t.TempDir(), "facts.db"))
	defer shut(t, e)
	w := workspace(t, e)
	for _, chained := range []bool{true, false} {
		b := w.Batch()
		if chained {
			b.Chain()
		}
		b.PutScope(facts.PutScope{ID: "c", Type: readstate.Channel})
		b.PutMembership(facts.PutMembership{Scope: "c", Member: "nobody"})
		b.PutMembership(facts.PutMembership{Scope: "c", Member: "u1", CreateMember: true})
		b.Post(facts.Post{Scope: "c", OpID: "op", Author: "u1"})
		results, err := b.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []error{nil, facts.ErrNotFound, nil, nil}
		if chained {
			want = []error{nil, facts.ErrNotFound, facts.ErrSkipped, facts.ErrSkipped}
		}
		for i := range results {
			if !errors.Is(results[i].Err, want[i]) {
				t.Errorf("chained %v: operation %d: %v, want %v", chained, i, results[i].Err, want[i])
			}
		}
	}
}
