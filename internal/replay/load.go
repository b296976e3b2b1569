package replay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	tidemark "github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/trace"
	"github.com/tidemark-im/tidemark/readstate"
)

// ErrOtherTrace means that the workspace was filled from something else.
var ErrOtherTrace = errors.New("the workspace holds another trace")

// batchRows is how many rows are handed to the lane at once. The lane cuts them into commits of
// its own size; a big batch spares it the wait for the next one.
const batchRows = 8_000

// Loaded says what a load found and did.
type Loaded struct {
	Messages   int // rows of the trace
	Duplicates int // of them, those that were there already
	Changed    bool
}

// Load appends a trace to a workspace, which must exist. Progress, where not nil, is told the
// number of rows that are durable, by one goroutine.
func Load(
	ctx context.Context, w *tidemark.Workspace, rows *trace.Reader, progress func(done int),
) (Loaded, error) {
	var out Loaded
	batches := make(chan *batch, 1) // one is planned while another commits
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(batches)
		return plan(ctx, w, rows, batches)
	})
	group.Go(func() error {
		for b := range batches {
			if err := b.run(ctx, &out); err != nil {
				return err
			}
			if progress != nil {
				progress(out.Messages)
			}
		}
		return nil
	})
	err := group.Wait()
	return out, err
}

// batch is a run of rows as operations. The places of the posts tell them from the rest.
type batch struct {
	ops   *facts.Batch
	first int   // row of the trace
	posts []int // places of the posts among the operations, one a row
}

// plan reads rows until they end or ctx does.
func plan(
	ctx context.Context, w *tidemark.Workspace, rows *trace.Reader, out chan<- *batch,
) error {
	planner := NewPlanner()
	for done := 0; ; {
		b := &batch{ops: w.Batch(), first: done + 1}
		b.ops.Chain() // who counts for whom depends on the order
		err := b.fill(planner, rows)
		if len(b.posts) > 0 {
			done += len(b.posts)
			select {
			case out <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (b *batch) fill(planner *Planner, rows *trace.Reader) error {
	for len(b.posts) < batchRows {
		row, err := rows.Read()
		if err != nil {
			return err
		}
		p := planner.Next(row)
		if p.Channel != nil {
			b.ops.PutScope(*p.Channel)
		}
		for _, join := range p.Joins {
			b.ops.PutMembership(join)
		}
		if p.Thread != nil {
			b.ops.PutScope(*p.Thread)
		}
		b.posts = append(b.posts, b.ops.Len())
		b.ops.Post(p.Post)
	}
	return nil
}

// run commits the batch and adds what it did.
func (b *batch) run(ctx context.Context, out *Loaded) error {
	results, err := b.ops.Run(ctx)
	if err != nil {
		return fmt.Errorf("replay rows from %d: %w", b.first, err)
	}
	row := 0
	for i := range results {
		res := &results[i]
		if res.Err != nil {
			err := res.Err
			if errors.Is(err, facts.ErrMismatch) {
				err = fmt.Errorf("%w: %w", ErrOtherTrace, err)
			}
			return fmt.Errorf("replay row %d: %w", b.first+row, err)
		}
		if row < len(b.posts) && b.posts[row] == i {
			row++
			out.Messages++
			if res.Receipt.Duplicate {
				out.Duplicates++
				continue
			}
			out.Changed = true
		}
		out.Changed = out.Changed || res.Setting.Outcome == readstate.Applied
	}
	return nil
}
