package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Rebuild throws the projection of an inbox away and derives it again from what is kept: greatest
// positions and P are reset in one transaction, to what vouches for the history below the floor, and
// the worker replays the rest. Reads are exact meanwhile. Since is the position from which somebody
// needs the replay: below the floor it is ErrBelowFloor, and nothing is done.
func (b *Inbox) Rebuild(ctx context.Context, a Access, since facts.Position) error {
	key, err := b.workspace(ctx, a.Workspace)
	if err != nil {
		return err
	}
	var m readstate.MemberKey
	err = b.write(ctx, key, func(t facts.InboxTx) error {
		rows, err := t.MembersByID(ctx, key, []readstate.MemberID{a.Member})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("member %q: %w", a.Member, facts.ErrNotFound)
		}
		m = rows[0].Key
		if err := reset(ctx, t, m, since); err != nil || b.OnProject == nil {
			return err
		}
		return b.OnProject(ctx)
	})
	if err != nil {
		return fmt.Errorf("rebuild inbox of %q: %w", a.Member, err)
	}
	b.pending.refresh(m)
	return nil
}

func reset(
	ctx context.Context, t facts.InboxTx, m readstate.MemberKey, since facts.Position,
) error {
	inboxes, err := t.Inboxes(ctx, []readstate.MemberKey{m})
	if err != nil || len(inboxes) == 0 {
		return err
	}
	row := inboxes[0]
	if since < row.Floor {
		return fmt.Errorf("%w: replay begins at %d, not at %d", ErrBelowFloor, row.Floor, since)
	}
	if err := t.DropProjection(ctx, m); err != nil || row.Floor == 0 {
		return err
	}
	below, err := t.Vouched(ctx, m, row.Floor)
	if err != nil {
		return err
	}
	return t.Project(ctx, m, below, row.Floor)
}

// dropsAtOnce bounds what one transaction drops of each kind.
const dropsAtOnce = 500

// upkeep drops what retention does not keep, each kind by its own time.
func (b *Inbox) upkeep(ctx context.Context) error {
	l := b.Limits
	if min(l.KeepItems, l.KeepSnapshots, l.KeepReceipts) >= KeepForever {
		return nil
	}
	spaces := map[facts.WorkspaceKey]bool{}
	err := b.each(ctx, func(w facts.WorkspaceKey, r facts.InboxLag) error {
		spaces[w] = true
		return b.trimInbox(ctx, w, r.Member)
	})
	if err != nil {
		return err
	}
	for w := range spaces {
		if err := b.forget(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// before is the time before which something is not kept any more; false keeps it for ever.
func (b *Inbox) before(days int) (int64, bool) {
	return b.Now().AddDate(0, 0, -days).UnixMilli(), days < KeepForever
}

// forget drops snapshots and receipts of a workspace.
func (b *Inbox) forget(ctx context.Context, w facts.WorkspaceKey) error {
	snapshots, some := b.before(b.Limits.KeepSnapshots)
	receipts, others := b.before(b.Limits.KeepReceipts)
	for more := some || others; more; {
		more = false
		err := b.write(ctx, w, func(t facts.InboxTx) error {
			for _, kind := range []struct {
				on     bool
				before int64
				drop   func(context.Context, facts.WorkspaceKey, int64, int) (int, error)
			}{{some, snapshots, t.ForgetSnapshots}, {others, receipts, t.ForgetAcks}} {
				if !kind.on {
					continue
				}
				n, err := kind.drop(ctx, w, kind.before, dropsAtOnce)
				if err != nil {
					return err
				}
				more = more || n == dropsAtOnce
			}
			return nil
		})
		if err != nil {
			return notOurs(err)
		}
	}
	return nil
}

func notOurs(err error) error {
	if errors.Is(err, facts.ErrNotOwner) {
		return nil
	}
	return err
}

// trimInbox raises the floor of an inbox over items that are old and projected.
func (b *Inbox) trimInbox(ctx context.Context, w facts.WorkspaceKey, m readstate.MemberKey) error {
	before, on := b.before(b.Limits.KeepItems)
	for more := on; more; {
		err := b.write(ctx, w, func(t facts.InboxTx) (err error) {
			more, err = trimOld(ctx, t, m, before)
			return err
		})
		if err != nil {
			return notOurs(err)
		}
	}
	return nil
}

// trimOld trims one batch and says whether there may be more.
func trimOld(
	ctx context.Context, t facts.InboxTx, m readstate.MemberKey, before int64,
) (bool, error) {
	inboxes, err := t.Inboxes(ctx, []readstate.MemberKey{m})
	if err != nil || len(inboxes) == 0 {
		return false, err
	}
	row := inboxes[0]
	through, err := t.Projected(ctx, m)
	if err != nil {
		return false, err
	}
	items, err := t.Items(ctx, m, row.Floor, dropsAtOnce)
	if err != nil {
		return false, err
	}
	floor := row.Floor
	for _, item := range items {
		if item.CreatedAt >= before || item.Position > through {
			break
		}
		floor = item.Position
	}
	if floor == row.Floor {
		return false, nil
	}
	stays, err := t.Vouched(ctx, m, floor)
	if err != nil {
		return false, err
	}
	keep := map[facts.Position]bool{}
	for _, s := range stays {
		keep[s.Position] = s.Position > row.Acknowledged
	}
	gone, err := goneBelow(ctx, t, m, floor, keep)
	if err != nil {
		return false, err
	}
	return len(items) == dropsAtOnce, t.TrimItems(ctx, m, gone, floor)
}

// goneBelow lists what is retained at or below a floor and vouches for nobody.
func goneBelow(
	ctx context.Context, t facts.InboxTx, m readstate.MemberKey, floor facts.Position,
	keep map[facts.Position]bool,
) (gone []facts.Position, err error) {
	for after := facts.Position(0); ; {
		items, err := t.Items(ctx, m, after, page)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if item.Position > floor {
				return gone, nil
			}
			if after = item.Position; !keep[after] {
				gone = append(gone, after)
			}
		}
		if len(items) < page {
			return gone, nil
		}
	}
}
