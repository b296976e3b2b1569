package inbox

import (
	"context"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Summary keeps a copy of projections elsewhere, where it is cheap to read. It may lose everything at
// any time: what it cannot vouch for the store answers. Only the worker writes to it.
type Summary interface {
	// Above returns what is known of an inbox, with the senders whose greatest position lies above
	// one; false where nothing is known, which is not the same as no senders.
	Above(ctx context.Context, m readstate.MemberKey, above facts.Position) (Summarized, bool, error)
	// Put brings what is known of an inbox to s. With Whole set the senders are all there are, else
	// those whose position has risen since From; where what is known is older than that, or of
	// another number of retractions, nothing is taken and false returned.
	Put(ctx context.Context, m readstate.MemberKey, s Summarized) (taken bool, err error)
}

// Summarized is a copy of one projection.
type Summarized struct {
	From        facts.Position // what P was before
	Through     facts.Position // what P is
	Retractions uint64         // the number that the inbox had then
	Senders     []facts.SenderPosition
	Whole       bool
}

// restFor is how long nobody asks for summaries after one could not be read or written: reads shall not
// wait, one after the other, for a server that does not answer.
const restFor = time.Second

func (b *Inbox) summaryRests() bool { return b.Now().UnixMilli() < b.resting.Load() }

func (b *Inbox) summaryFailed() {
	b.metrics.summaryErrors.Add(1)
	b.resting.Store(b.Now().Add(restFor).UnixMilli())
}

// summarized fills in the senders of a reading from the prepared summary, if that is at least as far
// as the projection and nothing was retracted since. Otherwise the worker brings it up to date.
func (b *Inbox) summarized(
	ctx context.Context, at *reading, latest map[readstate.MemberKey]facts.Position,
) bool {
	if b.Summary == nil || b.summaryRests() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, summaryTime)
	defer cancel()
	s, ok, err := b.Summary.Above(ctx, at.row.Member, at.row.Acknowledged)
	if err != nil {
		b.summaryFailed()
		return false
	}
	if !ok || s.Retractions != at.row.Retractions || s.Through < at.through ||
		s.Through > at.row.Accepted {
		b.metrics.summaryMisses.Add(1)
		b.pending.refresh(at.row.Member)
		return false
	}
	b.metrics.summaryHits.Add(1)
	at.through = s.Through
	for _, sender := range s.Senders {
		latest[sender.Sender] = sender.Position
	}
	return true
}
