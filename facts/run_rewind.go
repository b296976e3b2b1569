package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

type rewind struct {
	Rewind
	upper, next readstate.Seq // batches go down from upper; zero before the first
}

func (o *rewind) name() string                       { return "rewind" }
func (o *rewind) rows() int                          { return batchEntries }
func (o *rewind) gather(w *workspace, n *needs)      { n.scope(w, o.Scope); n.member(w, o.By.Member) }
func (o *rewind) resolve(*group, *workspace, *needs) {}
func (o *rewind) durable()                           { o.upper = o.next }

// run removes one batch from the newest entry down. What is appended after the first batch is
// not the rewind's to remove.
func (o *rewind) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := CheckID("opId", o.OpID); err != nil {
		return nil, err
	}
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	actor, err := g.actorKey(ctx, w, o.By)
	if err != nil {
		return nil, err
	}
	key, d := OpKey{w.Key, actor, o.OpID}, digest(o.Rewind)
	if r, found, err := g.repeated(ctx, key, d, w, true); found || err != nil {
		return r, err
	}
	upper := o.upper
	if upper == 0 {
		upper = scope.Ranks.LatestSeq
	}
	g.touch(w)
	low := max(o.Through, scope.FloorSeq)
	entries, err := g.between(ctx, scope.Info.Key, low, upper, true)
	if err != nil {
		return nil, err
	}
	if err := g.removeEntries(ctx, w, entries); err != nil {
		return nil, err
	}
	if len(entries) == batchEntries {
		if o.next = entries[len(entries)-1].Seq - 1; o.next > low {
			return nil, errAgain
		}
	}
	r := Receipt{Seq: scope.Ranks.LatestSeq, Revision: scope.Ranks.Head, LSN: w.LSN}
	return r, g.keep(key, d, r)
}

// between loads a batch of entries, seeing what the group has staged.
func (g *group) between(
	ctx context.Context, s readstate.ScopeKey, low, high readstate.Seq, descending bool,
) ([]*MessageRow, error) {
	if low >= high {
		return nil, nil
	}
	if err := g.flush(ctx); err != nil {
		return nil, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.MessagesBetween(ctx, s, low, high, descending, batchEntries)
	if err != nil {
		return nil, broken("load messages", err)
	}
	out := make([]*MessageRow, len(rows))
	for i, r := range rows {
		out[i] = g.messages.loaded(r)
	}
	return out, nil
}
