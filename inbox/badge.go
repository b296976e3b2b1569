package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Badge is the number on the bell, exact for the moment at which it was read.
type Badge struct {
	Accepted     facts.Position
	Acknowledged facts.Position
	Projected    facts.Position
	TailRows     int
	Senders      []readstate.MemberID // who counts, ascending; their number is the badge
}

// Badge reads a member's badge. It writes nothing.
func (b *Inbox) Badge(ctx context.Context, a Access) (Badge, error) {
	began := b.Now()
	var out Badge
	err := b.caughtUp(ctx, a, func(key facts.WorkspaceKey) (m readstate.MemberKey, err error) {
		v, err := b.Store.InboxView(ctx)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, v.Close()) }()
		info, err := owner(ctx, v, key, a.Member)
		if err != nil {
			return 0, err
		}
		r, err := b.read(ctx, v, info.Key)
		if err != nil {
			return info.Key, err
		}
		out = r.badge()
		return info.Key, nil
	})
	if err != nil {
		return Badge{}, fmt.Errorf("read badge of %q: %w", a.Member, err)
	}
	b.metrics.badge(out.TailRows, b.Now().Sub(began))
	b.metrics.lag.Store(uint64(out.Accepted - out.Projected))
	return out, nil
}

// caughtUp runs f, and again whenever the worker has moved as long as the tail is too long to be
// read and the caller waits.
func (b *Inbox) caughtUp(
	ctx context.Context, a Access, f func(w facts.WorkspaceKey) (readstate.MemberKey, error),
) error {
	if err := a.check(); err != nil {
		return err
	}
	key, err := b.workspace(ctx, a.Workspace)
	if err != nil {
		return err
	}
	for {
		next := b.moved.next()
		m, err := f(key)
		if !errors.Is(err, ErrBehind) {
			return err
		}
		b.metrics.behind.Add(1)
		b.Poke(m)
		select {
		case <-next:
		case <-b.closed:
			return err
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return err
			}
			return ctx.Err()
		}
	}
}

// reading is everything a badge depends on, of one moment.
type reading struct {
	row     facts.InboxRow
	through facts.Position // P, or the floor where that is higher
	tail    int
	senders []readstate.MemberInfo // who counts, ascending by id
}

func (r *reading) badge() Badge {
	out := Badge{
		Accepted: r.row.Accepted, Acknowledged: r.row.Acknowledged, Projected: r.through,
		TailRows: r.tail, Senders: make([]readstate.MemberID, len(r.senders)),
	}
	for i := range r.senders {
		out.Senders[i] = r.senders[i].ID
	}
	return out
}

// read takes a reading of one inbox.
func (b *Inbox) read(
	ctx context.Context, r facts.InboxReader, m readstate.MemberKey,
) (reading, error) {
	var out reading
	rows, err := r.Inboxes(ctx, []readstate.MemberKey{m})
	if err != nil || len(rows) == 0 {
		return out, err
	}
	out.row = rows[0]
	latest, err := b.prepared(ctx, r, &out)
	if err != nil {
		return out, err
	}
	if out.through > out.row.Accepted {
		return out, fmt.Errorf("%w: the projection reaches %d, the inbox %d",
			ErrGap, out.through, out.row.Accepted)
	}
	want := out.row.Accepted - out.through
	if want > facts.Position(b.Limits.TailRows) {
		return out, fmt.Errorf("%w: %d positions", ErrBehind, want)
	}
	tail := facts.InboxTail{}
	if want > 0 {
		if tail, err = r.Tail(ctx, m, out.through, out.row.Accepted); err != nil {
			return out, err
		}
	}
	if facts.Position(tail.Rows) != want {
		return out, fmt.Errorf("%w: %d of %d above %d", ErrGap, tail.Rows, want, out.through)
	}
	out.tail = tail.Rows
	for _, s := range tail.Senders {
		latest[s.Sender] = max(latest[s.Sender], s.Position)
	}
	maps.DeleteFunc(latest, func(_ readstate.MemberKey, at facts.Position) bool {
		return at <= out.row.Acknowledged
	})
	out.senders, err = eligible(ctx, r, m, latest)
	return out, err
}

// prepared returns the greatest positions of senders up to the reading's through, which it sets: from
// the prepared summary if there is one and it is of this moment, else from the projection.
func (b *Inbox) prepared(
	ctx context.Context, r facts.InboxReader, at *reading,
) (map[readstate.MemberKey]facts.Position, error) {
	m := at.row.Member
	through, err := r.Projected(ctx, m)
	if err != nil {
		return nil, err
	}
	latest := map[readstate.MemberKey]facts.Position{}
	if through < at.row.Floor { // there is no projection: what vouches is all that is known below
		at.through = at.row.Floor
		below, err := r.Vouched(ctx, m, at.row.Floor)
		for _, s := range below {
			latest[s.Sender] = s.Position
		}
		return latest, err
	}
	at.through = through
	if b.summarized(ctx, at, latest) {
		return latest, nil
	}
	maxima, err := r.MaximaAbove(ctx, m, at.row.Acknowledged)
	if err != nil {
		return nil, err
	}
	for _, s := range maxima {
		position := s.Position
		if !s.Vouched {
			if !s.Retained && position > at.row.Floor {
				return nil, fmt.Errorf("%w: position %d", ErrGap, position)
			}
			if position, err = r.Latest(ctx, m, s.Sender, through); err != nil {
				return nil, err
			}
		}
		latest[s.Sender] = position
	}
	return latest, nil
}

// eligible keeps those senders who are active and not blocked.
func eligible(
	ctx context.Context, r facts.InboxReader, m readstate.MemberKey,
	latest map[readstate.MemberKey]facts.Position,
) ([]readstate.MemberInfo, error) {
	if len(latest) == 0 {
		return nil, nil
	}
	infos, err := r.Members(ctx, slices.Sorted(maps.Keys(latest)))
	if err != nil {
		return nil, err
	}
	if len(infos) != len(latest) {
		return nil, fmt.Errorf("%w: %d of %d senders are known", ErrGap, len(infos), len(latest))
	}
	pairs, err := r.BlockedBy(ctx, []readstate.MemberKey{m})
	if err != nil {
		return nil, err
	}
	infos = slices.DeleteFunc(infos, func(s readstate.MemberInfo) bool {
		blocked := slices.ContainsFunc(pairs, func(p facts.BlockedPair) bool { return p.Other == s.Key })
		return !s.Active || s.Erased || blocked
	})
	slices.SortFunc(infos, func(a, b readstate.MemberInfo) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return infos, nil
}

// summaryTime bounds how long a read waits for a prepared summary.
const summaryTime = 100 * time.Millisecond
