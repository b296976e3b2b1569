//go:build !race

package fanout_test

import (
	"testing"

	"github.com/tidemark-im/tidemark/internal/bench/fanout"
	"github.com/tidemark-im/tidemark/internal/bench/profile"
)

// The baseline spends its time on what it is: at least four fifths of a message's cost are
// increments. Under the race detector most of it is the detector's.
func TestProfileIsIncrements(t *testing.T) {
	c := fanout.New()
	for m := range 100_000 {
		c.Join("c", person(m))
	}
	share, samples, err := profile.Share(t.Context(), "fanout.increment", func() {
		for range 100 {
			c.Post("c", "u1")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f %% of %d samples are increments", 100*share, samples)
	if share < 0.8 {
		t.Errorf("%.1f %% of the profile are increments, want at least 80 %%", 100*share)
	}
}
