package figures

import (
	"context"

	"github.com/tidemark-im/tidemark/internal/bench"
)

// runFlush is the place of the snapshot mode's figure.
func runFlush(_ context.Context, r *bench.Run) error {
	r.Figure(flushRows).Skip("this build has no snapshot mode")
	return nil
}
