package inbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Opening is an inbox as it was opened, and the snapshot that proves what it showed.
type Opening struct {
	Snapshot string         // its id, for Acknowledge
	Observed facts.Position // everything up to here was shown
	Senders  []readstate.MemberID
	// Items are the newest ones above what was acknowledged, ascending, at most Limits.OpenItems.
	// The senders are complete in any case.
	Items []Item
}

// Item is something that was addressed to the member. What it says is left out where the member may
// not read it any more, or where it is not kept any more.
type Item struct {
	Position  facts.Position
	Sender    readstate.MemberID
	Scope     readstate.ScopeID // empty for what was sent to the inbox itself
	MessageID string
	Text      string // of what was sent to the inbox itself
	Payload   []byte // of a message, JSON
	CreatedAt int64  // milliseconds
}

// Open shows an inbox and stores what it has shown, in one transaction. It acknowledges nothing.
func (b *Inbox) Open(ctx context.Context, a Access) (Opening, error) {
	var out Opening
	err := b.caughtUp(ctx, a, func(key facts.WorkspaceKey) (m readstate.MemberKey, err error) {
		err = b.write(ctx, key, func(t facts.InboxTx) error {
			info, err := owner(ctx, t, key, a.Member)
			if err != nil {
				return err
			}
			m = info.Key
			out, err = b.open(ctx, t, m)
			return err
		})
		return m, err
	})
	if err != nil {
		return Opening{}, fmt.Errorf("open inbox of %q: %w", a.Member, err)
	}
	b.metrics.opened.Add(1)
	return out, nil
}

func (b *Inbox) open(
	ctx context.Context, t facts.InboxTx, m readstate.MemberKey,
) (Opening, error) {
	r, err := b.read(ctx, t, m)
	if err != nil {
		return Opening{}, err
	}
	out := Opening{
		Snapshot: b.NewID(), Observed: r.row.Accepted, Senders: r.badge().Senders,
	}
	items, err := t.NewestItems(ctx, m, r.row.Acknowledged, b.Limits.OpenItems)
	if err != nil {
		return out, err
	}
	slices.Reverse(items)
	if out.Items, err = describe(ctx, t, m, items); err != nil {
		return out, err
	}
	return out, t.AddSnapshot(ctx, facts.InboxSnapshot{
		ID: out.Snapshot, Member: m, Boundary: r.row.Accepted, CreatedAt: b.Now().UnixMilli(),
	})
}

// described is what items refer to.
type described struct {
	members  map[readstate.MemberKey]readstate.MemberID
	messages map[facts.Place]facts.MessageRow
	scopes   map[readstate.ScopeKey]facts.ScopeRow
	seen     map[readstate.ScopeKey]bool
	texts    map[facts.Position]facts.InboxText
}

// describe says what items are about, in a number of statements that does not grow with them.
func describe(
	ctx context.Context, r facts.InboxReader, m readstate.MemberKey, items []facts.InboxItem,
) ([]Item, error) {
	if len(items) == 0 {
		return nil, nil
	}
	d := described{
		members: map[readstate.MemberKey]readstate.MemberID{}, seen: map[readstate.ScopeKey]bool{},
		messages: map[facts.Place]facts.MessageRow{}, texts: map[facts.Position]facts.InboxText{},
		scopes: map[readstate.ScopeKey]facts.ScopeRow{},
	}
	if err := d.load(ctx, r, m, items); err != nil {
		return nil, err
	}
	out := make([]Item, len(items))
	for i, item := range items {
		out[i] = d.item(item)
	}
	return out, nil
}

func (d *described) item(item facts.InboxItem) Item {
	out := Item{
		Position: item.Position, Sender: d.members[item.Sender], CreatedAt: item.CreatedAt,
	}
	if item.Message.Scope == 0 {
		text := d.texts[item.Position]
		out.MessageID, out.Text = text.ID, text.Text
		return out
	}
	scope, ok := d.scopes[item.Message.Scope]
	if !ok || !d.seen[scopeSeen(&scope)] {
		return out
	}
	out.Scope = scope.Info.ID
	message := d.messages[item.Message] // the zero row once it is trimmed
	out.MessageID, out.Payload = message.ID, message.Payload
	return out
}

// scopeSeen is the scope that has to be seen for something in a scope to be read.
func scopeSeen(s *facts.ScopeRow) readstate.ScopeKey {
	if s.Info.Type == readstate.Thread {
		return s.Info.Parent
	}
	return s.Info.Key
}

func (d *described) load(
	ctx context.Context, r facts.InboxReader, m readstate.MemberKey, items []facts.InboxItem,
) error {
	var senders []readstate.MemberKey
	var places []facts.Place
	var scopes []readstate.ScopeKey
	var sent []facts.Position
	for _, item := range items {
		senders = append(senders, item.Sender)
		if item.Message.Scope == 0 {
			sent = append(sent, item.Position)
			continue
		}
		places = append(places, item.Message)
		scopes = append(scopes, item.Message.Scope)
	}
	infos, err := r.Members(ctx, distinct(senders))
	if err != nil {
		return err
	}
	for _, i := range infos {
		d.members[i.Key] = i.ID
	}
	texts, err := r.Texts(ctx, m, sent)
	if err != nil {
		return err
	}
	for _, t := range texts {
		d.texts[t.Position] = t
	}
	messages, err := r.MessagesAt(ctx, places)
	if err != nil {
		return err
	}
	for _, row := range messages {
		d.messages[row.Place] = row
	}
	return d.loadScopes(ctx, r, m, distinct(scopes))
}

func (d *described) loadScopes(
	ctx context.Context, r facts.InboxReader, m readstate.MemberKey, keys []readstate.ScopeKey,
) error {
	scopes, err := r.Scopes(ctx, keys)
	if err != nil {
		return err
	}
	var rows []facts.RowKey
	for i := range scopes {
		d.scopes[scopes[i].Info.Key] = scopes[i]
		rows = append(rows, facts.RowKey{Scope: scopeSeen(&scopes[i]), Member: m})
	}
	states, err := r.States(ctx, rows)
	for _, s := range states {
		d.seen[s.Scope] = s.Row.Joined && s.Row.Visible
	}
	return err
}

func distinct[K ~uint64](keys []K) []K {
	slices.Sort(keys)
	return slices.Compact(keys)
}
