package facts

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

type move struct{ Move }

func (o *move) name() string { return "move" }
func (o *move) rows() int    { return 8 * len(o.Messages) }

func (o *move) gather(w *workspace, n *needs) {
	n.scope(w, o.Scope, o.To)
	n.member(w, o.By.Member)
}

func (o *move) resolve(g *group, w *workspace, n *needs) {
	if scope, ok, _ := g.scopeKeys.get(scopeName{w.Key, o.Scope}); ok {
		n.messages[scope] = append(n.messages[scope], o.Messages...)
	}
	if scope, ok, _ := g.scopeKeys.get(scopeName{w.Key, o.To}); ok {
		row, _, _ := g.scopes.get(scope)
		n.audience(g, row)
	}
}

// run moves all of the messages or none. Those who had read them keep that at the source; at
// the target nobody has anything new to read unless the move is counted.
func (o *move) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	from, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	actor, err := g.actorKey(ctx, w, o.By)
	if err != nil {
		return nil, err
	}
	key, d := OpKey{w.Key, actor, o.OpID}, digest(o.Move)
	if r, found, err := g.repeated(ctx, key, d, w, true); found || err != nil {
		return r, err
	}
	to, err := g.scope(ctx, w, o.To)
	if err != nil {
		return nil, err
	}
	for _, s := range []ScopeRow{from, to} {
		if t := s.Info.Type; t == readstate.Session {
			return nil, fmt.Errorf("%w: nothing moves out of or into a %s", ErrInvalid, t)
		}
	}
	entries, err := o.entries(ctx, g, from, to)
	if err != nil {
		return nil, err
	}
	g.touch(w)
	copies := make([]MessageRow, len(entries))
	for i, m := range entries {
		copies[i] = *m
	}
	if err := g.removeEntries(ctx, w, entries); err != nil {
		return nil, err
	}
	if err := g.freeIDs(ctx, entries); err != nil {
		return nil, err
	}
	for _, c := range copies {
		if err := o.arrive(ctx, g, w, to.Info.Key, c); err != nil {
			return nil, err
		}
	}
	r := Receipt{LSN: w.LSN}
	return r, g.keep(key, d, r)
}

// freeIDs gives the tombstones that a move leaves ids of their own: the id goes with the message,
// which may come back some day.
func (g *group) freeIDs(ctx context.Context, entries []*MessageRow) error {
	for _, m := range entries {
		if err := g.keepPost(m); err != nil {
			return err
		}
		g.messages.rename(m, g.newID())
		if m.Peer.Scope == 0 {
			continue
		}
		twin, err := g.messageAt(ctx, m.Peer)
		if err != nil {
			return err
		}
		if twin != nil && !twin.Live {
			g.messages.rename(twin, g.newID())
		}
	}
	return nil
}

// keepPost stores what a message's post was answered with, before the message goes elsewhere.
func (g *group) keepPost(m *MessageRow) error {
	if m.Op.Actor == 0 {
		return nil
	}
	r := Receipt{MessageID: m.ID, Seq: m.Seq, Revision: m.Revision}
	if m.Peer.Scope != 0 {
		r.Channel = &ChannelCopy{Seq: m.Peer.Seq, Revision: m.PeerRevision}
	}
	return g.keep(m.Op, m.OpDigest, r)
}

func (o *move) check() error {
	if err := CheckID("opId", o.OpID); err != nil {
		return err
	}
	if len(o.Messages) == 0 || len(o.Messages) > MaxMoved {
		return fmt.Errorf("%w: 1 to %d messages move at a time", ErrInvalid, MaxMoved)
	}
	if o.Scope == o.To {
		return fmt.Errorf("%w: source and target are one scope", ErrInvalid)
	}
	for i, id := range o.Messages {
		if slices.Contains(o.Messages[:i], id) {
			return fmt.Errorf("%w: message %q is named twice", ErrInvalid, id)
		}
	}
	return nil
}

// entries finds the messages, in order of seq. One that is gone, or whose id is taken at the
// target, refuses the whole move.
func (o *move) entries(
	ctx context.Context, g *group, from, to ScopeRow,
) ([]*MessageRow, error) {
	if err := g.loadMessages(ctx, from.Info.Key, o.Messages); err != nil {
		return nil, err
	}
	if err := g.loadMessages(ctx, to.Info.Key, o.Messages); err != nil {
		return nil, err
	}
	out := make([]*MessageRow, 0, len(o.Messages))
	for _, id := range o.Messages {
		m, err := g.liveMessage(ctx, from.Info.Key, id)
		if err != nil {
			return nil, err
		}
		if p := g.messages.byID[messageName{to.Info.Key, id}]; p != (Place{}) {
			return nil, fmt.Errorf("message %q exists in %q: %w", id, o.To, ErrMismatch)
		}
		if to.Info.Type.Targeted() && o.Counted && m.Revision > 0 && m.Everyone {
			return nil, fmt.Errorf("%w: everyone is not mentioned in a %s", ErrInvalid, to.Info.Type)
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *MessageRow) int { return cmp.Compare(a.Seq, b.Seq) })
	return out, nil
}

// arrive appends one moved message. Uncounted it is history: no revision, nobody is named. A
// task that it comes to delivers it to those who have to know now; it takes no recipients along.
func (o *move) arrive(
	ctx context.Context, g *group, w *workspace, to readstate.ScopeKey, m MessageRow,
) error {
	scope, err := g.scopeByKey(ctx, to)
	if err != nil {
		return err
	}
	readable := o.Counted && m.Revision > 0
	m.Live, m.Peer, m.PeerRevision, m.Thread = true, Place{}, 0, 0
	m.Op, m.OpDigest, m.LocalID = OpKey{}, Digest{}, ""
	m.Revision, m.Recipients = 0, nil
	if !readable {
		m.Named, m.Everyone = nil, false
	} else if scope.Info.Type == readstate.Thread {
		p := post{}
		if err := p.follow(ctx, g, w, &scope, draft{author: m.Author, named: m.Named}); err != nil {
			return err
		}
	}
	_, err = g.appendEntry(ctx, w, scope, m, readable)
	return err
}
