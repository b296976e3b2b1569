package facts

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// readdress follows an edit: whom it newly names gets an item, or has an old one back; whom the
// message named and does not name any more loses it, unless it is theirs on another ground.
func (g *group) readdress(
	ctx context.Context, w *workspace, s ScopeRow, m *MessageRow, before, after []readstate.MemberKey,
) error {
	if s.Info.Type == readstate.Session {
		return nil
	}
	newly, gone := without(after, before), without(before, after)
	if len(newly)+len(gone) == 0 {
		return nil
	}
	newly = slices.DeleteFunc(newly, func(k readstate.MemberKey) bool {
		return k == m.Author || k == m.Principal
	})
	newly, err := g.readers(ctx, s, newly)
	if err != nil {
		return err
	}
	at, err := g.addressPlace(ctx, m)
	if err != nil {
		return err
	}
	items, err := g.items(ctx, []Place{at})
	if err != nil {
		return err
	}
	others, err := g.otherGrounds(ctx, s, m)
	if err != nil {
		return err
	}
	var back, lost []InboxItem
	for _, item := range items {
		switch {
		case slices.Contains(newly, item.Member):
			if !item.Live {
				back = append(back, item)
			}
			newly = slices.DeleteFunc(newly, func(k readstate.MemberKey) bool { return k == item.Member })
		case item.Live && item.Named && slices.Contains(gone, item.Member) &&
			!slices.Contains(others, item.Member):
			lost = append(lost, item)
		}
	}
	if err := g.setLive(ctx, w, back, true); err != nil {
		return err
	}
	if err := g.setLive(ctx, w, lost, false); err != nil {
		return err
	}
	who := make([]addressee, len(newly))
	for i, k := range newly {
		who[i] = addressee{k, true}
	}
	return g.assign(ctx, w, m, at, who)
}

// otherGrounds are those to whom a message is addressed because its other entry is in a dm.
func (g *group) otherGrounds(
	ctx context.Context, s ScopeRow, m *MessageRow,
) ([]readstate.MemberKey, error) {
	if m.Peer.Scope == 0 {
		return nil, nil
	}
	if s.Info.Type == readstate.Thread {
		var err error
		if s, err = g.scopeByKey(ctx, m.Peer.Scope); err != nil {
			return nil, err
		}
	}
	if s.Info.Type != readstate.DM {
		return nil, nil
	}
	return g.everybodyIn(ctx, s.Info.Key)
}

// without returns the members of a that are not in b, ascending and each once.
func without(a, b []readstate.MemberKey) []readstate.MemberKey {
	out := slices.Clone(a)
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(k readstate.MemberKey) bool { return slices.Contains(b, k) })
}
