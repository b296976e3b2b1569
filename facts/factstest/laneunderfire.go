package factstest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Many writers, and hardly a commit goes well: everything is done once, in order, and what
// memory was told is what is in the store.
func testUnderFire(t *testing.T, r *rig, f *faulty) {
	r.channel(t)
	const writers, each = 32, 12
	random := rand.New(rand.NewPCG(1, 2)) // of the committing goroutine
	ends := []fault{committed, committed, refused, lost(committed), lost(undone)}
	f.everyCommit(func(tx facts.Tx) error { return ends[random.IntN(len(ends))](f, tx) })
	var wg sync.WaitGroup
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var last readstate.Seq
			for i := range each {
				post := plain(fmt.Sprintf("w%d-%d", w, i), "x")
				res, err := r.lane.Post(t.Context(), testWorkspace, post)
				for errors.Is(err, facts.ErrUnavailable) { // it was aborted twice
					res, err = r.lane.Post(t.Context(), testWorkspace, post)
				}
				if err != nil || res.Seq <= last {
					t.Errorf("writer %d, post %d: %+v, %v; after seq %d", w, i, res, err, last)
					return
				}
				last = res.Seq
			}
		}()
	}
	wg.Wait()
	f.everyCommit(nil)
	r.unread(t, writers*each)
	seq := readstate.Seq(0)
	for _, c := range r.settled(t) {
		for _, e := range c.Events {
			if m, ok := e.(readstate.MessageEvent); ok {
				if seq++; m.Seq != seq {
					t.Fatalf("event of seq %d follows %d", m.Seq, seq-1)
				}
			}
		}
	}
	if seq != writers*each {
		t.Errorf("%d messages, want %d", seq, writers*each)
	}
}
