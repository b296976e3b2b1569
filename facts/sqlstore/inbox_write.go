package sqlstore

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var (
	selectMaxima = query("inbox: load maxima", 2,
		`SELECT x.sender, x.position FROM {keys} k CROSS JOIN inbox_sender_maxima x
  WHERE x.member = k.k1 AND x.sender = k.k2`)
	selectVouched = query("inbox: load what vouches", 0,
		`SELECT p.sender, max(p.position) FROM inbox_positions p
  WHERE p.member = ? AND p.position <= ? AND p.live = 1 GROUP BY p.sender`)
	selectOldSnapshots = query("inbox: find old snapshots", 0,
		`SELECT s.id FROM inbox_snapshots s {index inbox_snapshots_by_age}
  WHERE s.created_at < ? AND s.member >= ? AND s.member < ? ORDER BY s.created_at LIMIT ?`)
	selectOldAcks = query("inbox: find old receipts", 0,
		`SELECT a.member, a.op_id FROM inbox_acks a {index inbox_acks_by_age}
  WHERE a.created_at < ? AND a.member >= ? AND a.member < ? ORDER BY a.created_at LIMIT ?`)

	acknowledgeInbox = update("inbox: acknowledge", change{
		table: "inboxes", columns: list("member acknowledged"), keys: 1,
	})
	raiseInboxFloor = update("inbox: raise the floor", change{
		table: "inboxes", columns: list("member floor"), keys: 1,
	})
	upsertProjection = insert("inbox: write projected position", insertion{
		table: "inbox_projections", columns: list("member through"), keys: 1,
		update: list("through"),
	})
	insertSnapshot = insert("inbox: write a snapshot", insertion{
		table: "inbox_snapshots", columns: list("id member boundary created_at"), keys: 1,
	})
	insertAck = insert("inbox: write a receipt", insertion{
		table:   "inbox_acks",
		columns: list("member op_id snapshot acknowledged created_at"), keys: 2,
	})
	dropProjection  = remove("inbox: drop a projection", "inbox_projections", "member")
	dropMaxima      = remove("inbox: drop maxima", "inbox_sender_maxima", "member")
	removeSnapshots = remove("inbox: remove snapshots", "inbox_snapshots", "id")
	removeAcks      = remove("inbox: remove receipts", "inbox_acks", "member", "op_id")
)

// inboxTx is a transaction over inboxes of one workspace.
type inboxTx struct {
	*tx
	workspace facts.WorkspaceKey
	changed   bool
}

// keyed checks that a member is of the transaction's workspace: the fence is of no other.
func (t *inboxTx) keyed(member readstate.MemberKey) error {
	if workspaceOf(member) != t.workspace {
		return fmt.Errorf("member %d: %w: another workspace", member, facts.ErrNotOwner)
	}
	t.changed = true
	return nil
}

// AddSnapshot implements facts.InboxTx.
func (t *inboxTx) AddSnapshot(ctx context.Context, s facts.InboxSnapshot) error {
	if err := t.keyed(s.Member); err != nil {
		return err
	}
	bind := func(args []any, s *facts.InboxSnapshot) []any {
		return append(args, id(s.ID), number(s.Member), number(s.Boundary), number(s.CreatedAt))
	}
	return execRows(ctx, t.session, insertSnapshot, []facts.InboxSnapshot{s}, bind)
}

// AddAck implements facts.InboxTx.
func (t *inboxTx) AddAck(ctx context.Context, a facts.InboxAck) error {
	if err := t.keyed(a.Member); err != nil {
		return err
	}
	bind := func(args []any, a *facts.InboxAck) []any {
		return append(args, number(a.Member), id(a.OpID), id(a.Snapshot), number(a.Acknowledged),
			number(a.CreatedAt))
	}
	return execRows(ctx, t.session, insertAck, []facts.InboxAck{a}, bind)
}

// memberPosition is a row that sets one position of a member.
type memberPosition struct {
	member readstate.MemberKey
	at     facts.Position
}

func bindMemberPosition(args []any, m *memberPosition) []any {
	return append(args, number(m.member), number(m.at))
}

func (t *inboxTx) setPosition(
	ctx context.Context, st *statement, member readstate.MemberKey, at facts.Position,
) error {
	if err := t.keyed(member); err != nil {
		return err
	}
	return execRows(ctx, t.session, st, []memberPosition{{member, at}}, bindMemberPosition)
}

// Acknowledge implements facts.InboxTx.
func (t *inboxTx) Acknowledge(
	ctx context.Context, member readstate.MemberKey, through facts.Position,
) error {
	return t.setPosition(ctx, acknowledgeInbox, member, through)
}

// Maxima implements facts.InboxTx.
func (t *inboxTx) Maxima(
	ctx context.Context, member readstate.MemberKey, senders []readstate.MemberKey,
) (out []facts.SenderPosition, err error) {
	bind := func(args []any, s readstate.MemberKey) []any {
		return append(args, number(member), number(s))
	}
	err = eachKey(ctx, t.session, selectMaxima, senders, bind, func(r *record) error {
		out = append(out, readSenderPosition(r))
		return nil
	})
	return out, err
}

// Project implements facts.InboxTx.
func (t *inboxTx) Project(
	ctx context.Context, member readstate.MemberKey, senders []facts.SenderPosition,
	through facts.Position,
) error {
	rows := make([]maximum, len(senders))
	for i, s := range senders {
		rows[i] = maximum{member, s}
	}
	if err := execRows(ctx, t.session, upsertMaxima, rows, bindMaximum); err != nil {
		return err
	}
	return t.setPosition(ctx, upsertProjection, member, through)
}

// DropProjection implements facts.InboxTx.
func (t *inboxTx) DropProjection(ctx context.Context, member readstate.MemberKey) error {
	if err := t.keyed(member); err != nil {
		return err
	}
	one := []readstate.MemberKey{member}
	if err := execRows(ctx, t.session, dropMaxima, one, bindMember1); err != nil {
		return err
	}
	return execRows(ctx, t.session, dropProjection, one, bindMember1)
}

// Vouched implements facts.InboxReader.
func (s *session) Vouched(
	ctx context.Context, member readstate.MemberKey, floor facts.Position,
) (out []facts.SenderPosition, err error) {
	args := []any{number(member), number(floor)}
	err = s.each(ctx, selectVouched, 0, args, func(r *record) error {
		out = append(out, readSenderPosition(r))
		return nil
	})
	return out, err
}

// TrimItems implements facts.InboxTx.
func (t *inboxTx) TrimItems(
	ctx context.Context, member readstate.MemberKey, gone []facts.Position, floor facts.Position,
) error {
	rows := make([]memberPosition, len(gone))
	for i, at := range gone {
		rows[i] = memberPosition{member, at}
	}
	for _, st := range [...]*statement{removeItems, removeTexts} {
		if err := execRows(ctx, t.session, st, rows, bindMemberPosition); err != nil {
			return err
		}
	}
	return t.setPosition(ctx, raiseInboxFloor, member, floor)
}

// ForgetSnapshots implements facts.InboxTx.
func (t *inboxTx) ForgetSnapshots(
	ctx context.Context, w facts.WorkspaceKey, before int64, limit int,
) (int, error) {
	var old []string
	err := t.each(ctx, selectOldSnapshots, 0, oldArgs(w, before, limit), func(r *record) error {
		old = append(old, r.string())
		return nil
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	t.changed = true
	bind := func(args []any, s *string) []any { return append(args, id(*s)) }
	return len(old), execRows(ctx, t.session, removeSnapshots, old, bind)
}

// ForgetAcks implements facts.InboxTx.
func (t *inboxTx) ForgetAcks(
	ctx context.Context, w facts.WorkspaceKey, before int64, limit int,
) (int, error) {
	var old []facts.InboxAck
	err := t.each(ctx, selectOldAcks, 0, oldArgs(w, before, limit), func(r *record) error {
		old = append(old, facts.InboxAck{Member: readstate.MemberKey(r.uint()), OpID: r.string()})
		return nil
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	t.changed = true
	bind := func(args []any, a *facts.InboxAck) []any {
		return append(args, number(a.Member), id(a.OpID))
	}
	return len(old), execRows(ctx, t.session, removeAcks, old, bind)
}

func oldArgs(w facts.WorkspaceKey, before int64, limit int) []any {
	return []any{before, int64(w) << 32, int64(w+1) << 32, bounded(limit)}
}
