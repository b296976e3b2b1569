package facts

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// Whom a message is addressed to gets an item of their inbox in the message's own transaction: in a
// dm everybody else in it, elsewhere whom it names, in a task whom it is delivered to. An item has
// the next position of its member's inbox and keeps it for ever.

// address gives items to those whom a new readable entry is addressed to.
func (g *group) address(ctx context.Context, w *workspace, m *MessageRow) error {
	s, err := g.scopeByKey(ctx, m.Scope)
	if err != nil {
		return err
	}
	who, err := g.addressees(ctx, s, m)
	if err != nil || len(who) == 0 {
		return err
	}
	if m.Peer.Scope == 0 {
		return g.assign(ctx, w, m, m.Place, who)
	}
	// The channel's entry of a broadcast reply: it is the same message, and whom it names has it.
	at, err := g.addressPlace(ctx, m)
	if err != nil {
		return err
	}
	items, err := g.items(ctx, []Place{at})
	if err != nil {
		return err
	}
	who = slices.DeleteFunc(who, func(a addressee) bool {
		return slices.ContainsFunc(items, func(i InboxItem) bool { return i.Member == a.member })
	})
	return g.assign(ctx, w, m, at, who)
}

// addressee is somebody whom a message is addressed to.
type addressee struct {
	member readstate.MemberKey
	named  bool // on no other ground
}

// addressees finds whom an entry is addressed to, ascending: those who are active and may read it
// now, but not who wrote it or for whom it was written.
func (g *group) addressees(
	ctx context.Context, s ScopeRow, m *MessageRow,
) ([]addressee, error) {
	if s.Info.Type == readstate.Session {
		return nil, nil
	}
	grounds := slices.Clone(m.Recipients)
	if s.Info.Type == readstate.DM {
		members, err := g.everybodyIn(ctx, s.Info.Key)
		if err != nil {
			return nil, err
		}
		grounds = append(grounds, members...)
	}
	slices.Sort(grounds)
	who := slices.Concat(grounds, m.Named)
	slices.Sort(who)
	who = slices.Compact(who)
	who = slices.DeleteFunc(who, func(k readstate.MemberKey) bool {
		return k == m.Author || k == m.Principal
	})
	who, err := g.readers(ctx, s, who)
	out := make([]addressee, len(who))
	for i, k := range who {
		_, other := slices.BinarySearch(grounds, k)
		out[i] = addressee{k, !other}
	}
	return out, err
}

// everybodyIn returns who has joined a dm. In one with more than MaxRecipients members a message is
// addressed to nobody but whom it names, as in a channel.
func (g *group) everybodyIn(
	ctx context.Context, k readstate.ScopeKey,
) ([]readstate.MemberKey, error) {
	r, err := g.rosterOf(ctx, k)
	if err != nil || !r.large {
		return r.members, err
	}
	if err := g.flush(ctx); err != nil {
		return nil, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Joined(ctx, []readstate.ScopeKey{k}, MaxRecipients+1)
	if err != nil {
		return nil, broken("load joined members", err)
	}
	if len(rows) > MaxRecipients {
		return nil, nil
	}
	out := make([]readstate.MemberKey, len(rows))
	for i, row := range rows {
		out[i] = row.Member
	}
	return out, nil
}

// readers keeps those members who are active and see the scope.
func (g *group) readers(
	ctx context.Context, s ScopeRow, members []readstate.MemberKey,
) ([]readstate.MemberKey, error) {
	if len(members) == 0 {
		return nil, nil
	}
	place := s.Info.Key
	if s.Info.Type == readstate.Thread {
		place = s.Info.Parent
	}
	keys := make([]RowKey, len(members))
	for i, m := range members {
		keys[i] = RowKey{place, m}
	}
	if err := g.loadRows(ctx, keys); err != nil {
		return nil, err
	}
	if err := g.loadPrincipals(ctx, members); err != nil {
		return nil, err
	}
	var out []readstate.MemberKey
	for i, m := range members {
		row, exists, err := g.state(ctx, keys[i])
		if err != nil {
			return nil, err
		}
		if !exists || !row.Row.Joined || !row.Row.Visible {
			continue
		}
		info, err := g.principal(ctx, m)
		if err != nil {
			return nil, err
		}
		if info.Active && !info.Erased {
			out = append(out, m)
		}
	}
	return out, nil
}

// addressPlace is the entry that the items of a message refer to: that in the thread, where it has two.
func (g *group) addressPlace(ctx context.Context, m *MessageRow) (Place, error) {
	if m.Peer.Scope == 0 {
		return m.Place, nil
	}
	s, err := g.scopeByKey(ctx, m.Scope)
	if err != nil || s.Info.Type == readstate.Thread {
		return m.Place, err
	}
	return m.Peer, nil
}

// assign gives members the next positions of their inboxes.
func (g *group) assign(
	ctx context.Context, w *workspace, m *MessageRow, at Place, who []addressee,
) error {
	members := make([]readstate.MemberKey, len(who))
	for i, a := range who {
		members[i] = a.member
	}
	if err := g.loadInboxes(ctx, members); err != nil {
		return err
	}
	for _, a := range who {
		item := InboxItem{
			Member: a.member, Message: at, Sender: m.Author, Named: a.named, CreatedAt: g.clock,
		}
		if _, err := g.accept(ctx, w, item); err != nil {
			return err
		}
	}
	return nil
}

// accept stages an item at the next position of its member's inbox, which it returns.
func (g *group) accept(ctx context.Context, w *workspace, item InboxItem) (Position, error) {
	row, err := g.inbox(ctx, item.Member)
	if err != nil {
		return 0, err
	}
	row.Accepted++
	g.inboxes.put(item.Member, row)
	item.Position, item.Live = row.Accepted, true
	g.changes.InboxItems = append(g.changes.InboxItems, item)
	w.inboxes = append(w.inboxes, item.Member)
	g.fanned++
	return item.Position, nil
}

// retract takes the items of messages back that are gone. They keep their positions.
func (g *group) retract(ctx context.Context, w *workspace, gone []*MessageRow) error {
	var places []Place
	for _, m := range gone {
		addressed, err := g.maybeAddressed(ctx, m)
		if err != nil {
			return err
		}
		if !addressed {
			continue
		}
		at, err := g.addressPlace(ctx, m)
		if err != nil {
			return err
		}
		if !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	items, err := g.items(ctx, places)
	if err != nil {
		return err
	}
	return g.setLive(ctx, w, slices.DeleteFunc(items, func(i InboxItem) bool { return !i.Live }), false)
}

// maybeAddressed spares a look for the items of messages that cannot have any: nearly all of those
// in channels.
func (g *group) maybeAddressed(ctx context.Context, m *MessageRow) (bool, error) {
	if m.Revision == 0 {
		return false, nil
	}
	if len(m.Named)+len(m.Recipients) > 0 || m.Peer.Scope != 0 {
		return true, nil
	}
	s, err := g.scopeByKey(ctx, m.Scope)
	return s.Info.Type == readstate.DM, err
}

// setLive retracts items, or brings them back.
func (g *group) setLive(
	ctx context.Context, w *workspace, items []InboxItem, live bool,
) error {
	members := make([]readstate.MemberKey, len(items))
	for i, item := range items {
		members[i] = item.Member
	}
	if err := g.loadPrincipals(ctx, members); err != nil {
		return err
	}
	if err := g.loadInboxes(ctx, members); err != nil {
		return err
	}
	for _, item := range items {
		row, err := g.inbox(ctx, item.Member)
		if err != nil {
			return err
		}
		row.Retractions++
		g.inboxes.put(item.Member, row)
		item.Live = live
		g.flags.set(inboxKey{item.Member, item.Position}, item, true)
		w.inboxes = append(w.inboxes, item.Member)
		g.fanned++
	}
	return nil
}

// items loads the items of messages, seeing what the group has staged.
func (g *group) items(ctx context.Context, places []Place) ([]InboxItem, error) {
	if len(places) == 0 {
		return nil, nil
	}
	if err := g.flush(ctx); err != nil {
		return nil, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	items, err := tx.InboxItems(ctx, places)
	if err != nil {
		return nil, broken("load inbox items", err)
	}
	return items, nil
}

// loadAddressees names the rows and inboxes of those whom messages of dms and tasks may be addressed
// to.
func (g *group) loadAddressees(ctx context.Context, n *needs) error {
	var members []readstate.MemberKey
	for _, s := range n.dms {
		r, _, _ := g.rosters.get(s)
		for _, m := range r.members {
			n.rows = append(n.rows, RowKey{s, m})
		}
		members = append(members, r.members...)
	}
	for _, s := range n.tasks {
		watchers, _, _ := g.watchers.get(s)
		n.inboxes = append(n.inboxes, watchers...)
	}
	n.inboxes = append(n.inboxes, members...)
	return g.loadPrincipals(ctx, members)
}

// inbox returns a member's row of inboxes.
func (g *group) inbox(ctx context.Context, m readstate.MemberKey) (InboxRow, error) {
	row, _, known := g.inboxes.get(m)
	if !known {
		if err := g.loadInboxes(ctx, []readstate.MemberKey{m}); err != nil {
			return row, err
		}
		row, _, _ = g.inboxes.get(m)
	}
	row.Member = m
	return row, nil
}

func (g *group) loadInboxes(ctx context.Context, members []readstate.MemberKey) error {
	members = unknown(g.inboxes, members, g.madeMember)
	if len(members) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.Inboxes(ctx, members)
	if err != nil {
		return broken("load inboxes", err)
	}
	for _, r := range rows {
		g.inboxes.loaded(r.Member, r, true)
	}
	for _, m := range members {
		g.inboxes.loaded(m, InboxRow{}, false)
	}
	return nil
}
