package facts

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/tidemark-im/tidemark/readstate"
)

// SendInbox sends a text to a member's inbox, outside of any scope. Its operation id belongs to the
// sender; the receipt is kept as those of other operations are, for a month.
type SendInbox struct {
	To     readstate.MemberID
	Sender readstate.MemberID
	OpID   string
	Text   string // 1 to MaxPayloadBytes bytes
	By     Actor
}

type sendInbox struct{ SendInbox }

func (o *sendInbox) name() string { return "send to inbox" }
func (o *sendInbox) rows() int    { return 4 }

func (o *sendInbox) gather(w *workspace, n *needs) { n.member(w, o.To, o.Sender) }

func (o *sendInbox) resolve(g *group, w *workspace, n *needs) {
	if to, ok, _ := g.memberKeys.get(memberName{w.Key, o.To}); ok {
		n.inboxes = append(n.inboxes, to)
	}
	if sender, ok, _ := g.memberKeys.get(memberName{w.Key, o.Sender}); ok {
		n.receipts = append(n.receipts, OpKey{w.Key, sender, o.OpID})
	}
}

func (o *sendInbox) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	sender, err := g.member(ctx, w, o.Sender)
	if err != nil {
		return nil, err
	}
	if !o.By.Trusted && o.By.Member != "" && o.By.Member != sender.ID {
		return nil, forbidden("member", string(sender.ID), "nobody else sends in their name")
	}
	if !sender.Active {
		return nil, forbidden("member", string(sender.ID), "the account is not active")
	}
	key, d := OpKey{w.Key, sender.Key, o.OpID}, digest(o.SendInbox)
	if r, found, err := g.repeated(ctx, key, d, w, true); found || err != nil {
		return r, err
	}
	to, err := g.member(ctx, w, o.To)
	if err != nil {
		return nil, err
	}
	if !to.Active {
		return nil, forbidden("member", string(to.ID), "the account is not active")
	}
	if to.Key == sender.Key {
		return nil, fmt.Errorf("%w: nobody sends to an inbox of their own", ErrInvalid)
	}
	g.touch(w)
	at, err := g.accept(ctx, w, InboxItem{Member: to.Key, Sender: sender.Key, CreatedAt: g.clock})
	if err != nil {
		return nil, err
	}
	id := g.newID()
	g.changes.InboxTexts = append(g.changes.InboxTexts, InboxText{
		Member: to.Key, Position: at, ID: id, Text: o.Text,
	})
	r := Receipt{MessageID: id, Seq: readstate.Seq(at), LSN: w.LSN}
	return r, g.keep(key, d, r)
}

func (o *sendInbox) check() error {
	if err := CheckID("opId", o.OpID); err != nil {
		return err
	}
	switch {
	case o.Text == "":
		return fmt.Errorf("%w: text is missing", ErrInvalid)
	case len(o.Text) > MaxPayloadBytes:
		return fmt.Errorf("%w: text is larger than %d bytes", ErrInvalid, MaxPayloadBytes)
	case !utf8.ValidString(o.Text):
		return fmt.Errorf("%w: text is not valid UTF-8", ErrInvalid)
	}
	return nil
}

// eraseInbox drops one batch of what an erased member was sent, and takes back one batch of what
// they sent to others, whose words go with it. It reports whether there may be more.
func (g *group) eraseInbox(
	ctx context.Context, w *workspace, m readstate.MemberKey,
) (more bool, err error) {
	tx, err := g.open(ctx)
	if err != nil {
		return false, err
	}
	sent, err := tx.InboxItemsBy(ctx, m, eraseBatch)
	if err != nil {
		return false, broken("load inbox items", err)
	}
	if err := g.setLive(ctx, w, sent, false); err != nil {
		return false, err
	}
	had, err := tx.Items(ctx, m, 0, eraseBatch)
	if err != nil {
		return false, broken("load inbox items", err)
	}
	g.changes.GoneInboxItems = append(g.changes.GoneInboxItems, had...)
	if len(sent) == eraseBatch || len(had) == eraseBatch {
		return true, nil
	}
	g.inboxes.drop(m)
	g.changes.GoneInboxes = append(g.changes.GoneInboxes, m)
	return false, nil
}
