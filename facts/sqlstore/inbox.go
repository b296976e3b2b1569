package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var _ facts.InboxStore = (*Store)(nil)

// What is asked of inboxes: all of it by the member, none of it over a whole history but where an
// empty projection says so.
var (
	selectProjected = query("inbox: load projected position", 0,
		`SELECT j.through FROM inbox_projections j WHERE j.member = ?`)
	selectTail = query("inbox: sum up a tail", 0,
		`SELECT p.sender, max(CASE WHEN p.live = 1 THEN p.position ELSE 0 END), count(*)
  FROM inbox_positions p WHERE p.member = ? AND p.position > ? AND p.position <= ?
  GROUP BY p.sender`)
	selectMaximaAbove = query("inbox: load maxima above a position", 0,
		`SELECT x.sender, x.position, CASE WHEN p.position IS NULL THEN 0 ELSE 1 END,
    CASE WHEN p.live = 1 AND p.sender = x.sender THEN 1 ELSE 0 END
  FROM inbox_sender_maxima x {index inbox_sender_maxima_by_position}
  LEFT JOIN inbox_positions p ON p.member = x.member AND p.position = x.position
  WHERE x.member = ? AND x.position > ?`)
	selectLatestOf = query("inbox: seek a sender's newest item", 0,
		`SELECT max(p.position) FROM inbox_positions p {index inbox_positions_live}
  WHERE p.sender = ? AND p.member = ? AND p.live = 1 AND p.position <= ?`)
	selectItems = query("inbox: load items", 0,
		`SELECT `+itemColumns+` FROM inbox_positions p
  WHERE p.member = ? AND p.position > ? ORDER BY p.position LIMIT ?`)
	selectNewestItems = query("inbox: load newest items", 0,
		`SELECT `+itemColumns+` FROM inbox_positions p CROSS JOIN members s
  WHERE p.member = ? AND p.position > ? AND p.live = 1
    AND s.member = p.sender AND s.active = 1 AND s.erased = 0
    AND NOT EXISTS (SELECT 1 FROM member_blocks b
      WHERE b.member = p.member AND b.other = p.sender)
  ORDER BY p.position DESC LIMIT ?`)
	selectTexts = query("inbox: load texts", 2,
		`SELECT m.member, m.position, m.id, m.text FROM {keys} k CROSS JOIN inbox_messages m
  WHERE m.member = k.k1 AND m.position = k.k2`)
	selectSnapshot = query("inbox: load a snapshot", 0,
		`SELECT s.id, s.member, s.boundary, s.created_at FROM inbox_snapshots s WHERE s.id = ?`)
	selectAck = query("inbox: load a receipt", 0,
		`SELECT a.member, a.op_id, a.snapshot, a.acknowledged, a.created_at FROM inbox_acks a
  WHERE a.member = ? AND a.op_id = ?`)
	selectInboxPage = query("inbox: list inboxes", 0,
		`SELECT i.member, i.accepted, i.floor,
    coalesce((SELECT j.through FROM inbox_projections j WHERE j.member = i.member), 0)
  FROM inboxes i WHERE i.member > ? ORDER BY i.member LIMIT ?`)
)

// InboxView implements facts.InboxStore.
func (st *Store) InboxView(ctx context.Context) (facts.InboxView, error) {
	v, err := st.View(ctx)
	if err != nil {
		return nil, err
	}
	return v.(*view), nil
}

// InboxTx implements facts.InboxStore.
func (st *Store) InboxTx(
	ctx context.Context, w facts.WorkspaceKey, term uint64, f func(t facts.InboxTx) error,
) error {
	return st.inTx(ctx, "inbox", func(t *tx) (bool, error) {
		if err := t.fenced(ctx, w, term); err != nil {
			return false, err
		}
		in := &inboxTx{tx: t, workspace: w}
		err := f(in)
		return in.changed, err
	})
}

// InboxesAfter implements facts.InboxStore.
func (st *Store) InboxesAfter(
	ctx context.Context, after readstate.MemberKey, limit int,
) (out []facts.InboxLag, err error) {
	err = st.inView(ctx, "list inboxes", func(s *session) error {
		args := []any{number(after), bounded(limit)}
		return s.each(ctx, selectInboxPage, 0, args, func(r *record) error {
			lag := facts.InboxLag{Member: readstate.MemberKey(r.uint())}
			accepted, floor, through := r.uint(), r.uint(), r.uint()
			lag.Behind = accepted - min(accepted, max(floor, through))
			out = append(out, lag)
			return nil
		})
	})
	return out, err
}

// Projected implements facts.InboxReader.
func (s *session) Projected(
	ctx context.Context, member readstate.MemberKey,
) (through facts.Position, err error) {
	err = s.each(ctx, selectProjected, 0, []any{number(member)}, func(r *record) error {
		through = facts.Position(r.uint())
		return nil
	})
	return through, err
}

// Tail implements facts.InboxReader.
func (s *session) Tail(
	ctx context.Context, member readstate.MemberKey, after, through facts.Position,
) (tail facts.InboxTail, err error) {
	args := []any{number(member), number(after), number(through)}
	err = s.each(ctx, selectTail, 0, args, func(r *record) error {
		at := facts.SenderPosition{
			Sender: readstate.MemberKey(r.uint()), Position: facts.Position(r.uint()),
		}
		tail.Rows += int(r.int())
		if at.Position > 0 {
			tail.Senders = append(tail.Senders, at)
		}
		return nil
	})
	return tail, err
}

// MaximaAbove implements facts.InboxReader.
func (s *session) MaximaAbove(
	ctx context.Context, member readstate.MemberKey, above facts.Position,
) (out []facts.SenderMaximum, err error) {
	args := []any{number(member), number(above)}
	err = s.each(ctx, selectMaximaAbove, 0, args, func(r *record) error {
		out = append(out, facts.SenderMaximum{
			SenderPosition: readSenderPosition(r), Retained: r.bool(), Vouched: r.bool(),
		})
		return nil
	})
	return out, err
}

func readSenderPosition(r *record) facts.SenderPosition {
	return facts.SenderPosition{
		Sender: readstate.MemberKey(r.uint()), Position: facts.Position(r.uint()),
	}
}

// Latest implements facts.InboxReader.
func (s *session) Latest(
	ctx context.Context, member, sender readstate.MemberKey, through facts.Position,
) (at facts.Position, err error) {
	args := []any{number(sender), number(member), number(through)}
	err = s.each(ctx, selectLatestOf, 0, args, func(r *record) error {
		at = facts.Position(r.uint())
		return nil
	})
	return at, err
}

// Items implements facts.Tx and facts.InboxReader.
func (s *session) Items(
	ctx context.Context, member readstate.MemberKey, after facts.Position, limit int,
) (out []facts.InboxItem, err error) {
	args := []any{number(member), number(after), bounded(limit)}
	err = s.each(ctx, selectItems, 0, args, appendItem(&out))
	return out, err
}

// NewestItems implements facts.InboxReader.
func (s *session) NewestItems(
	ctx context.Context, member readstate.MemberKey, above facts.Position, limit int,
) (out []facts.InboxItem, err error) {
	args := []any{number(member), number(above), bounded(limit)}
	err = s.each(ctx, selectNewestItems, 0, args, appendItem(&out))
	return out, err
}

// Texts implements facts.InboxReader.
func (s *session) Texts(
	ctx context.Context, member readstate.MemberKey, at []facts.Position,
) (out []facts.InboxText, err error) {
	bind := func(args []any, p facts.Position) []any {
		return append(args, number(member), number(p))
	}
	err = eachKey(ctx, s, selectTexts, at, bind, func(r *record) error {
		out = append(out, facts.InboxText{
			Member: readstate.MemberKey(r.uint()), Position: facts.Position(r.uint()),
			ID: r.string(), Text: r.string(),
		})
		return nil
	})
	return out, err
}

// Snapshot implements facts.InboxReader.
func (s *session) Snapshot(
	ctx context.Context, snapshot string,
) (row facts.InboxSnapshot, ok bool, err error) {
	err = s.each(ctx, selectSnapshot, 0, []any{id(snapshot)}, func(r *record) error {
		row, ok = facts.InboxSnapshot{
			ID: r.string(), Member: readstate.MemberKey(r.uint()),
			Boundary: facts.Position(r.uint()), CreatedAt: r.int(),
		}, true
		return nil
	})
	return row, ok, err
}

// Ack implements facts.InboxReader.
func (s *session) Ack(
	ctx context.Context, member readstate.MemberKey, opID string,
) (row facts.InboxAck, ok bool, err error) {
	err = s.each(ctx, selectAck, 0, []any{number(member), id(opID)}, func(r *record) error {
		row, ok = facts.InboxAck{
			Member: readstate.MemberKey(r.uint()), OpID: r.string(), Snapshot: r.string(),
			Acknowledged: facts.Position(r.uint()), CreatedAt: r.int(),
		}, true
		return nil
	})
	return row, ok, err
}
