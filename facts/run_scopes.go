package facts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/readstate"
)

// Operations on scopes.

type putScope struct{ PutScope }

func (o *putScope) name() string { return "put scope" }
func (o *putScope) rows() int    { return 4 }

func (o *putScope) gather(w *workspace, n *needs) { n.scope(w, o.ID, o.Parent) }

func (o *putScope) resolve(g *group, w *workspace, n *needs) {
	if o.RootMessage == "" {
		return
	}
	if parent, ok, _ := g.scopeKeys.get(scopeName{w.Key, o.Parent}); ok {
		n.messages[parent] = append(n.messages[parent], o.RootMessage)
	}
}

func (o *putScope) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	row, exists, err := g.findScope(ctx, w, o.ID)
	if err != nil {
		return nil, err
	}
	if !exists {
		return o.create(ctx, g, w)
	}
	info := &row.Info
	fixed := (o.Type == 0 || o.Type == info.Type) && (o.Parent == "" || o.Parent == info.ParentID) &&
		(o.RootMessage == "" || o.RootMessage == info.RootMessage)
	if !fixed {
		return nil, fmt.Errorf("scope %q: %w: type, parent and root are fixed", o.ID, ErrMismatch)
	}
	changed := o.apply(info)
	if !changed {
		return Setting{LSN: w.LSN}, nil
	}
	g.touch(w)
	row.Ranks.LastLSN = w.LSN
	g.storeScope(w, row)
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}

// apply copies what the operation names and says whether anything is new.
func (o *putScope) apply(info *readstate.ScopeInfo) bool {
	name, archived, history, tags := info.Name, info.Archived, info.History, info.Tags
	set(&info.Name, o.Name)
	set(&info.Archived, o.Archived)
	set(&info.History, o.History)
	if o.Tags != nil {
		info.Tags = slices.Clone(*o.Tags)
	}
	return name != info.Name || archived != info.Archived || history != info.History ||
		!slices.Equal(tags, info.Tags)
}

func (o *putScope) check() error {
	if err := CheckID("scope", string(o.ID)); err != nil {
		return err
	}
	if o.Name != nil {
		if err := checkText("name", *o.Name); err != nil {
			return err
		}
	}
	if o.Tags != nil {
		if len(*o.Tags) > MaxTags {
			return fmt.Errorf("%w: at most %d tags", ErrInvalid, MaxTags)
		}
		for _, tag := range *o.Tags {
			if err := checkText("tag", tag); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNew refuses a scope that cannot be made.
func (o *putScope) checkNew() error {
	thread := o.Type == readstate.Thread
	switch {
	case o.Type == readstate.Session:
		return fmt.Errorf("%w: scopes of type %s are not made here", ErrInvalid, o.Type)
	case strings.HasPrefix(string(o.ID), ReservedPrefix):
		return fmt.Errorf("%w: ids that begin with %q are sessions'", ErrInvalid, ReservedPrefix)
	case o.Type < readstate.Channel || o.Type > readstate.Session:
		return fmt.Errorf("%w: a new scope needs a type", ErrInvalid)
	case thread && o.Parent == "":
		return fmt.Errorf("%w: a thread needs a parent", ErrInvalid)
	case !thread && (o.Parent != "" || o.RootMessage != ""):
		return fmt.Errorf("%w: only a thread has a parent and a root", ErrInvalid)
	}
	return nil
}

func (o *putScope) create(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := o.checkNew(); err != nil {
		return nil, err
	}
	info := readstate.ScopeInfo{ID: o.ID, Type: o.Type, RootMessage: o.RootMessage}
	var root *MessageRow
	if o.Type == readstate.Thread {
		parent, err := g.scope(ctx, w, o.Parent)
		if err != nil {
			return nil, err
		}
		if t := parent.Info.Type; t != readstate.Channel && t != readstate.DM {
			return nil, fmt.Errorf("%w: a thread hangs under a channel or dm, not a %s", ErrInvalid, t)
		}
		info.Parent, info.ParentID = parent.Info.Key, parent.Info.ID
		if o.RootMessage != "" {
			if root, err = g.liveMessage(ctx, parent.Info.Key, o.RootMessage); err != nil {
				return nil, err
			}
			if root.Thread != 0 {
				return nil, fmt.Errorf("message %q has a thread: %w", o.RootMessage, ErrMismatch)
			}
		}
	}
	o.apply(&info)
	g.touch(w)
	w.LastScope++
	info.Key = ScopeKeyOf(w.Key, w.LastScope)
	row := ScopeRow{Info: info, CreatedAt: g.clock}
	row.Ranks.LastLSN = w.LSN
	row.Ranks.LastActivityAt = g.clock
	g.scopeKeys.staged[scopeName{w.Key, o.ID}] = slot[readstate.ScopeKey]{info.Key, true}
	if root != nil {
		row.Owner = root.Author
	}
	g.storeScope(w, row)
	if root != nil {
		root.Thread = info.Key
		g.messages.change(root)
		followers := append([]readstate.MemberKey{root.Author}, root.Named...)
		if err := g.autoFollow(ctx, w, &row, followers); err != nil {
			return nil, err
		}
		g.scopes.put(info.Key, row)
	}
	return Setting{Outcome: readstate.Applied, LSN: w.LSN}, nil
}

func (g *group) storeScope(w *workspace, row ScopeRow) {
	g.scopes.put(row.Info.Key, row)
	info := row.Info
	info.Tags = slices.Clone(info.Tags)
	w.emit(readstate.ScopeEvent{Info: info})
}

// liveMessage finds a message that has not been removed.
func (g *group) liveMessage(
	ctx context.Context, s readstate.ScopeKey, id string,
) (*MessageRow, error) {
	if err := CheckID("message", id); err != nil {
		return nil, err
	}
	m, err := g.message(ctx, s, id)
	if err != nil {
		return nil, err
	}
	if m == nil || !m.Live {
		return nil, fmt.Errorf("message %q: %w", id, ErrNotFound)
	}
	return m, nil
}

// autoFollow makes members follow a thread from its next revision on, unless they do already,
// chose not to, or are not in the parent. The caller stores the scope row afterwards.
func (g *group) autoFollow(
	ctx context.Context, w *workspace, s *ScopeRow, members []readstate.MemberKey,
) error {
	for i, m := range members {
		if m == 0 || slices.Contains(members[:i], m) {
			continue
		}
		_, up, ok, err := g.parent(ctx, *s, m)
		if err != nil {
			return err
		}
		if !ok || !up.Row.Joined {
			continue
		}
		key := RowKey{s.Info.Key, m}
		row, exists, err := g.state(ctx, key)
		if err != nil {
			return err
		}
		if !row.Row.FollowsByItself(exists, up.Row.Epoch) {
			continue
		}
		ground, err := g.ground(ctx, *s, key, up.Row.Epoch)
		if err != nil {
			return err
		}
		row.Row.FollowBefore(exists, ground)
		row.MembershipLSN = w.LSN
		s.RosterGeneration++
		if err := g.storeRow(ctx, w, *s, row); err != nil {
			return err
		}
	}
	return nil
}

// ground is where a scope stands for a member who joins it.
func (g *group) ground(
	ctx context.Context, s ScopeRow, key RowKey, parentEpoch uint64,
) (readstate.Ground, error) {
	wr, err := g.writer(ctx, key)
	return readstate.Ground{
		Head: s.Ranks.Head, Floor: s.Ranks.Floor, SignalHead: s.Ranks.SignalHead,
		LatestActivity: s.Ranks.LatestActivity, History: s.Info.History, Writer: wr.Writer,
		ParentEpoch: parentEpoch,
	}, err
}
