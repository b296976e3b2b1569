package inbox

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Ack is one intended acknowledgement.
type Ack struct {
	OpID     string // the caller's, for this one
	Snapshot string // the id that Open gave
}

// Receipt answers an acknowledgement, and every repetition of it, with what was acknowledged once it
// was done. That may be less than what is acknowledged now.
type Receipt struct {
	Acknowledged facts.Position
	Duplicate    bool // it was done before
}

// Acknowledge says that the overview which a snapshot was issued for has been looked at: everything it
// showed is new no more, and nothing else. It never lowers what is acknowledged.
//
// An unknown snapshot is facts.ErrNotFound, one that was issued to somebody else facts.ErrForbidden,
// an operation id used for another snapshot facts.ErrMismatch.
func (b *Inbox) Acknowledge(ctx context.Context, a Access, ack Ack) (Receipt, error) {
	out, err := b.acknowledge(ctx, a, ack)
	if err != nil {
		return Receipt{}, fmt.Errorf("acknowledge inbox of %q: %w", a.Member, err)
	}
	if !out.Duplicate {
		b.metrics.acknowledged.Add(1)
		b.Changed(a.Workspace, a.Member)
	}
	return out, nil
}

func (b *Inbox) acknowledge(ctx context.Context, a Access, ack Ack) (out Receipt, err error) {
	if err := a.check(); err != nil {
		return out, err
	}
	if err := facts.CheckID("opId", ack.OpID); err != nil {
		return out, err
	}
	if err := facts.CheckID("snapshotId", ack.Snapshot); err != nil {
		return out, err
	}
	key, err := b.workspace(ctx, a.Workspace)
	if err != nil {
		return out, err
	}
	err = b.write(ctx, key, func(t facts.InboxTx) error {
		info, err := owner(ctx, t, key, a.Member)
		if err != nil {
			return err
		}
		out, err = b.raise(ctx, t, info.Key, ack)
		return err
	})
	return out, err
}

// raise sets A to the greater of itself and the snapshot's boundary, and keeps the receipt.
func (b *Inbox) raise(
	ctx context.Context, t facts.InboxTx, m readstate.MemberKey, ack Ack,
) (Receipt, error) {
	rows, err := t.Inboxes(ctx, []readstate.MemberKey{m}) // locks it
	if err != nil {
		return Receipt{}, err
	}
	done, found, err := t.Ack(ctx, m, ack.OpID)
	switch {
	case err != nil:
		return Receipt{}, err
	case found && done.Snapshot != ack.Snapshot:
		return Receipt{}, fmt.Errorf("operation %q: %w", ack.OpID, facts.ErrMismatch)
	case found:
		return Receipt{Acknowledged: done.Acknowledged, Duplicate: true}, nil
	}
	shown, found, err := t.Snapshot(ctx, ack.Snapshot)
	switch {
	case err != nil:
		return Receipt{}, err
	case !found:
		return Receipt{}, fmt.Errorf("snapshot %q: %w", ack.Snapshot, facts.ErrNotFound)
	case shown.Member != m:
		return Receipt{}, fmt.Errorf("snapshot %q: %w: it was issued to somebody else",
			ack.Snapshot, facts.ErrForbidden)
	}
	var row facts.InboxRow
	if len(rows) > 0 {
		row = rows[0]
	}
	if shown.Boundary > row.Accepted {
		return Receipt{}, fmt.Errorf("%w: snapshot through %d, the inbox reaches %d",
			ErrGap, shown.Boundary, row.Accepted)
	}
	if shown.Boundary > row.Acknowledged {
		row.Acknowledged = shown.Boundary
		if err := t.Acknowledge(ctx, m, row.Acknowledged); err != nil {
			return Receipt{}, err
		}
	}
	return Receipt{Acknowledged: row.Acknowledged}, t.AddAck(ctx, facts.InboxAck{
		Member: m, OpID: ack.OpID, Snapshot: ack.Snapshot, Acknowledged: row.Acknowledged,
		CreatedAt: b.Now().UnixMilli(),
	})
}
