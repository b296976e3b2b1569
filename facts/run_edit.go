package facts

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

type edit struct{ Edit }

func (o *edit) name() string { return "edit" }
func (o *edit) rows() int    { return 6 }

func (o *edit) gather(w *workspace, n *needs) {
	n.scope(w, o.Scope)
	n.member(w, o.By.Member)
	if o.Mentions != nil {
		n.member(w, *o.Mentions...)
	}
}

func (o *edit) resolve(g *group, w *workspace, n *needs) {
	gatherMessage(g, w, n, o.Scope, o.Message, o.By, o.OpID)
}

func (o *edit) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	actor, err := g.actorKey(ctx, w, o.By)
	if err != nil {
		return nil, err
	}
	key, d := OpKey{w.Key, actor, o.OpID}, digest(o.Edit)
	if r, found, err := g.repeated(ctx, key, d, w, true); found || err != nil {
		return r, err
	}
	m, err := g.ownMessage(ctx, w, scope, o.Message, o.By)
	if err != nil {
		return nil, err
	}
	if !m.Live {
		return nil, notFound("message", o.Message)
	}
	after := mentions{named: m.Named, everyone: m.Everyone}
	if o.Mentions != nil {
		if after.named, err = g.named(ctx, w, *o.Mentions, false); err != nil {
			return nil, err
		}
	}
	set(&after.everyone, o.Everyone)
	if scope.Info.Type.Targeted() && after.everyone {
		return nil, fmt.Errorf("%w: everyone is not mentioned in a %s", ErrInvalid, scope.Info.Type)
	}
	g.touch(w)
	if err := o.apply(ctx, g, w, m, after); err != nil {
		return nil, err
	}
	r := Receipt{MessageID: m.ID, Seq: m.Seq, Revision: m.Revision, LSN: w.LSN}
	return r, g.keep(key, d, r)
}

func (o *edit) check() error {
	if err := CheckID("opId", o.OpID); err != nil {
		return err
	}
	if o.Mentions == nil && o.Everyone == nil && o.Payload == nil {
		return fmt.Errorf("%w: the edit changes nothing", ErrInvalid)
	}
	if o.Mentions != nil && len(*o.Mentions) > MaxMentions {
		return fmt.Errorf("%w: a message names at most %d members", ErrInvalid, MaxMentions)
	}
	if o.Payload == nil {
		return nil
	}
	if len(*o.Payload) == 0 {
		return fmt.Errorf("%w: an edited payload is JSON, null for none", ErrInvalid)
	}
	return checkPayload(*o.Payload)
}

// mentions is the part of a message that an edit can change and counting depends on.
type mentions struct {
	named    []readstate.MemberKey
	everyone bool
}

// apply edits an entry and, for a broadcast reply, its twin.
func (o *edit) apply(
	ctx context.Context, g *group, w *workspace, m *MessageRow, after mentions,
) error {
	entries := []*MessageRow{m}
	if m.Peer.Scope != 0 {
		twin, err := g.messageAt(ctx, m.Peer)
		if err != nil {
			return err
		}
		if twin != nil && twin.Live {
			entries = append(entries, twin)
		}
	}
	for _, e := range entries {
		scope, err := g.scopeByKey(ctx, e.Scope)
		if err != nil {
			return err
		}
		payload := e.Payload
		if o.Payload != nil {
			payload = *o.Payload
		}
		same := sameMembers(e.Named, after.named) && e.Everyone == after.everyone
		if same && slices.Equal(payload, e.Payload) {
			continue
		}
		if !same {
			if scope, err = g.editMentions(ctx, w, scope, e, after); err != nil {
				return err
			}
		}
		e.Payload, e.EditedAt = payload, g.clock
		g.messages.change(e)
		scope.Ranks.LastLSN = w.LSN
		g.scopes.put(scope.Info.Key, scope)
		if err := g.announce(ctx, w, scope, MessageEdited, e); err != nil {
			return err
		}
	}
	return nil
}

func sameMembers(a, b []readstate.MemberKey) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// editMentions changes whom a live entry concerns. An entry without a revision only records it.
func (g *group) editMentions(
	ctx context.Context, w *workspace, s ScopeRow, m *MessageRow, after mentions,
) (ScopeRow, error) {
	before := mentions{named: m.Named, everyone: m.Everyone}
	if m.Revision > 0 {
		if s.Info.Type == readstate.Thread {
			newly := slices.DeleteFunc(slices.Clone(after.named), func(k readstate.MemberKey) bool {
				return slices.Contains(before.named, k)
			})
			if err := g.followFrom(ctx, w, &s, newly, m.Revision); err != nil {
				return s, err
			}
		}
		if err := g.countEdited(ctx, s, m, before, after); err != nil {
			return s, err
		}
		if err := g.readdress(ctx, w, s, m, before.named, after.named); err != nil {
			return s, err
		}
	}
	m.Named, m.Everyone = after.named, after.everyone
	w.emit(readstate.EditEvent{
		Scope: m.Scope, Seq: m.Seq, Revision: m.Revision, Author: m.Author,
		Principal: m.Principal, Recipients: slices.Clone(m.Recipients),
		NamedBefore: slices.Clone(before.named), NamedAfter: slices.Clone(after.named),
		EveryoneBefore: before.everyone, EveryoneAfter: after.everyone,
	})
	return s, nil
}

// followFrom makes members follow a thread from an entry that exists already: they join at the
// head, and then move down to just below the entry.
func (g *group) followFrom(
	ctx context.Context, w *workspace, s *ScopeRow, members []readstate.MemberKey,
	first readstate.Revision,
) error {
	for _, m := range members {
		_, up, ok, err := g.parent(ctx, *s, m)
		if err != nil {
			return err
		}
		key := RowKey{s.Info.Key, m}
		row, exists, err := g.state(ctx, key)
		if err != nil {
			return err
		}
		if !ok || !up.Row.Joined || !row.Row.FollowsByItself(exists, up.Row.Epoch) {
			continue
		}
		ground, err := g.ground(ctx, *s, key, up.Row.Epoch)
		if err != nil {
			return err
		}
		row.Row.FollowBefore(exists, ground)
		row.Row.Effective = first
		row.Row.Read = min(row.Row.Read, first-1)
		if err := g.movePoint(ctx, *s, &row); err != nil {
			return err
		}
		row.MembershipLSN = w.LSN
		s.RosterGeneration++
		if err := g.storeRow(ctx, w, *s, row); err != nil {
			return err
		}
	}
	return nil
}

// countEdited stages what an edit changes beside the entry: rows, mention rows, everyone.
func (g *group) countEdited(
	ctx context.Context, s ScopeRow, m *MessageRow, before, after mentions,
) error {
	t := s.Info.Type
	was := readstate.Message{Revision: m.Revision, Everyone: before.everyone}
	is := readstate.Message{Revision: m.Revision, Everyone: after.everyone}
	concerned := m.concernedWith(before.named, after.named)
	if err := g.loadConcerned(ctx, m.Scope, concerned); err != nil {
		return err
	}
	edited := *m
	edited.Everyone = after.everyone
	for _, c := range concerned {
		key := RowKey{m.Scope, c.member}
		roleWas, roleIs := c.roleWith(before.named), c.roleWith(after.named)
		switch recorded := !t.Targeted() || c.role.Recipient; {
		case recorded && roleIs.Named:
			g.putMention(t, &edited, c, true)
		case recorded && roleWas.Named:
			g.mentions.set(mentionKey{key, m.Revision}, MentionRow{
				RowKey: key, Revision: m.Revision,
			}, false)
		}
		state, exists, err := g.state(ctx, key)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		point := state.Row.Point
		state.Row.Point.Edit(t, s.Ranks.Floor, was, is, roleWas, roleIs)
		if state.Row.Point != point {
			g.states.put(key, state)
		}
	}
	if before.everyone == after.everyone {
		return nil
	}
	g.setEveryone(m, after.everyone)
	return g.mark(ctx, EveryoneSet, m.Scope, m.Revision, after.everyone)
}
