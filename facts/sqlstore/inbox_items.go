package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// The items of inboxes, which the lane writes.

const itemColumns = `p.member, p.position, p.scope, p.seq, p.sender, p.named, p.live, p.created_at`

var (
	// In a writing transaction the rows are locked: on the databases that let others write
	// meanwhile, by the dialect.
	selectInboxes = query("load inboxes", 1,
		`SELECT i.member, i.accepted, i.acknowledged, i.retractions, i.floor FROM {keys} k
  CROSS JOIN inboxes i WHERE i.member = k.k1`)
	selectItemsOf = query("load inbox items of messages", 2,
		`SELECT `+itemColumns+` FROM {keys} k
  CROSS JOIN inbox_positions p {index inbox_positions_by_message}
  WHERE p.scope = k.k1 AND p.seq = k.k2`)
	selectItemsBy = query("load inbox items by sender", 0,
		`SELECT `+itemColumns+` FROM inbox_positions p {index inbox_positions_live}
  WHERE p.sender = ? AND p.live = 1 ORDER BY p.member, p.position LIMIT ?`)
	// What is live now, up to where the projection is complete: one seek for each sender.
	selectProjectable = query("load live maxima", 2,
		`SELECT k.k1, k.k2, (SELECT max(p.position)
    FROM inbox_positions p {index inbox_positions_live}
    WHERE p.sender = k.k2 AND p.member = k.k1 AND p.live = 1 AND p.position <= j.through)
  FROM {keys} k CROSS JOIN inbox_projections j WHERE j.member = k.k1`)

	upsertInboxes = insert("write inboxes", insertion{
		table: "inboxes", columns: list("member accepted acknowledged retractions floor"), keys: 1,
		update: list("accepted retractions"),
	})
	insertItems = insert("write inbox items", insertion{
		table:   "inbox_positions",
		columns: list("member position scope seq sender named live created_at"), keys: 2,
	})
	flagItems = update("flag inbox items", change{
		table: "inbox_positions", columns: list("member position live"), keys: 2,
	})
	insertTexts = insert("write inbox texts", insertion{
		table: "inbox_messages", columns: list("member position id text"), keys: 2,
	})
	clearTexts = update("clear inbox texts", change{
		table: "inbox_messages", columns: list("member position text"), keys: 2,
	})
	upsertMaxima = insert("write inbox maxima", insertion{
		table: "inbox_sender_maxima", columns: list("member sender position"), keys: 2,
		update: list("position"),
	})
	removeMaxima = remove("remove inbox maxima", "inbox_sender_maxima", "member", "sender")
	removeItems  = remove("remove inbox items", "inbox_positions", "member", "position")
	removeTexts  = remove("remove inbox texts", "inbox_messages", "member", "position")

	// Whatever else there is of an inbox.
	goneInboxes = [...]*statement{
		remove("remove inboxes", "inboxes", "member"),
		remove("remove inbox projections", "inbox_projections", "member"),
		remove("remove all inbox maxima", "inbox_sender_maxima", "member"),
		remove("remove inbox snapshots", "inbox_snapshots", "member"),
		remove("remove inbox receipts", "inbox_acks", "member"),
	}
)

func bindInbox(args []any, i *facts.InboxRow) []any {
	return append(args, number(i.Member), number(i.Accepted), number(i.Acknowledged),
		number(i.Retractions), number(i.Floor))
}

func bindItem(args []any, i *facts.InboxItem) []any {
	seq := uint64(i.Message.Seq)
	if i.Message.Scope == 0 {
		seq = uint64(i.Position) // so that it is the only one
	}
	return append(args, number(i.Member), number(i.Position), number(i.Message.Scope), number(seq),
		number(i.Sender), flag(i.Named), flag(i.Live), number(i.CreatedAt))
}

func bindItemFlag(args []any, i *facts.InboxItem) []any {
	return append(args, number(i.Member), number(i.Position), flag(i.Live))
}

func bindItemKey(args []any, i *facts.InboxItem) []any {
	return append(args, number(i.Member), number(i.Position))
}

func bindClearedText(args []any, i *facts.InboxItem) []any { return append(bindItemKey(args, i), nil) }

func bindText(args []any, t *facts.InboxText) []any {
	return append(args, number(t.Member), number(t.Position), id(t.ID), optional(t.Text))
}

func bindMember1(args []any, m *readstate.MemberKey) []any { return append(args, number(*m)) }

// maximum is one row of inbox_sender_maxima.
type maximum struct {
	member readstate.MemberKey
	facts.SenderPosition
}

func bindMaximum(args []any, m *maximum) []any {
	return append(args, number(m.member), number(m.Sender), number(m.Position))
}

func bindMaximumKey(args []any, m *maximum) []any {
	return append(args, number(m.member), number(m.Sender))
}

func readItem(r *record) facts.InboxItem {
	item := facts.InboxItem{
		Member: readstate.MemberKey(r.uint()), Position: facts.Position(r.uint()),
		Message: facts.Place{Scope: readstate.ScopeKey(r.uint()), Seq: readstate.Seq(r.uint())},
		Sender:  readstate.MemberKey(r.uint()), Named: r.bool(), Live: r.bool(), CreatedAt: r.int(),
	}
	if item.Message.Scope == 0 {
		item.Message.Seq = 0
	}
	return item
}

func appendItem(to *[]facts.InboxItem) func(r *record) error {
	return func(r *record) error {
		*to = append(*to, readItem(r))
		return nil
	}
}

// writeInboxes writes the rows of inboxes first: on the databases that let others write meanwhile,
// this is what keeps acknowledgements and the projection out until the group ends.
func (s *session) writeInboxes(ctx context.Context, c *facts.Changes) error {
	if err := execRows(ctx, s, upsertInboxes, c.Inboxes, bindInbox); err != nil {
		return err
	}
	if err := execRows(ctx, s, insertItems, c.InboxItems, bindItem); err != nil {
		return err
	}
	if err := execRows(ctx, s, insertTexts, c.InboxTexts, bindText); err != nil {
		return err
	}
	if err := s.flagItems(ctx, c.InboxFlags); err != nil {
		return err
	}
	if err := execRows(ctx, s, removeItems, c.GoneInboxItems, bindItemKey); err != nil {
		return err
	}
	if err := execRows(ctx, s, removeTexts, c.GoneInboxItems, bindItemKey); err != nil {
		return err
	}
	for _, st := range goneInboxes {
		if err := execRows(ctx, s, st, c.GoneInboxes, bindMember1); err != nil {
			return err
		}
	}
	return nil
}

// flagItems makes items live or not, and brings the projection of their senders to what is live.
func (s *session) flagItems(ctx context.Context, items []facts.InboxItem) error {
	if len(items) == 0 {
		return nil
	}
	if err := execRows(ctx, s, flagItems, items, bindItemFlag); err != nil {
		return err
	}
	var texts []facts.InboxItem
	for _, item := range items {
		if item.Message.Scope == 0 && !item.Live {
			texts = append(texts, item)
		}
	}
	if err := execRows(ctx, s, clearTexts, texts, bindClearedText); err != nil {
		return err
	}
	return s.projectAgain(ctx, items)
}

func (s *session) projectAgain(ctx context.Context, items []facts.InboxItem) error {
	type pair struct{ member, sender readstate.MemberKey }
	seen := map[pair]bool{}
	var pairs []pair
	for _, item := range items {
		p := pair{item.Member, item.Sender}
		if !seen[p] {
			seen[p] = true
			pairs = append(pairs, p)
		}
	}
	bind := func(args []any, p pair) []any { return append(args, number(p.member), number(p.sender)) }
	var present, gone []maximum
	err := eachKey(ctx, s, selectProjectable, pairs, bind, func(r *record) error {
		m := maximum{member: readstate.MemberKey(r.uint())}
		m.Sender, m.Position = readstate.MemberKey(r.uint()), facts.Position(r.uint())
		if m.Position == 0 {
			gone = append(gone, m)
		} else {
			present = append(present, m)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := execRows(ctx, s, removeMaxima, gone, bindMaximumKey); err != nil {
		return err
	}
	return execRows(ctx, s, upsertMaxima, present, bindMaximum)
}

// Inboxes implements facts.Tx and facts.InboxReader.
func (s *session) Inboxes(
	ctx context.Context, members []readstate.MemberKey,
) ([]facts.InboxRow, error) {
	var out []facts.InboxRow
	err := eachKey(ctx, s, selectInboxes, members, bindNumber, func(r *record) error {
		out = append(out, facts.InboxRow{
			Member: readstate.MemberKey(r.uint()), Accepted: facts.Position(r.uint()),
			Acknowledged: facts.Position(r.uint()), Retractions: r.uint(),
			Floor: facts.Position(r.uint()),
		})
		return nil
	})
	return out, err
}

// InboxItems implements facts.Tx.
func (s *session) InboxItems(
	ctx context.Context, messages []facts.Place,
) ([]facts.InboxItem, error) {
	bind := func(args []any, p facts.Place) []any {
		return append(args, number(p.Scope), number(p.Seq))
	}
	var out []facts.InboxItem
	err := eachKey(ctx, s, selectItemsOf, messages, bind, appendItem(&out))
	return out, err
}

// InboxItemsBy implements facts.Tx.
func (s *session) InboxItemsBy(
	ctx context.Context, sender readstate.MemberKey, limit int,
) ([]facts.InboxItem, error) {
	var out []facts.InboxItem
	args := []any{number(sender), bounded(limit)}
	err := s.each(ctx, selectItemsBy, 0, args, appendItem(&out))
	return out, err
}
