package evidence

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// lookupKey names what a lookup is about: a parent, in the channel that the reply was posted to.
type lookupKey struct{ channel, parent string }

// Decision is what a lookup found out.
type Decision struct {
	Inside bool   // the viewer takes part
	Root   string // of what proves it; "" when the root could not be found
}

// Decide stores what a lookup found out about a parent in a channel. The oldest of many is forgotten,
// and asked for again when it is needed.
func (w *Window) Decide(channel, parent string, d Decision) {
	w.decisions.put(lookupKey{channel, parent}, d)
	w.changed()
}

// AddStructure keeps verified messages that were fetched to know where replies belong. They are never
// counted, and start nothing.
func (w *Window) AddStructure(events ...nostrx.Event) {
	for _, e := range events {
		if Content(e.Kind) && w.Access(ParseRefs(e).Channel) {
			w.structure.put(string(e.ID), e)
		}
	}
	w.changed()
}

// ownThreads are the parents and roots below which the viewer has written, in one channel.
type ownThreads map[string]bool

func (w *Window) ownThreads(channel string) ownThreads {
	if own, ok := w.own[channel]; ok {
		return own
	}
	own := make(ownThreads)
	w.own[channel] = own
	for id, e := range w.events {
		if e.PubKey != w.viewer || !Content(e.Kind) || w.deleted[id] {
			continue
		}
		refs := ParseRefs(e)
		if refs.Channel != channel {
			continue
		}
		own[id] = true
		if refs.Reply {
			own[refs.Parent], own[refs.Root] = true, true
			if root, ok := w.Root(refs); ok {
				own[root] = true
			}
		}
	}
	return own
}

// belongs tells whether a reply is inside a conversation of the viewer: by choice, or because the
// viewer wrote its parent or root, or anything below either.
func (w *Window) belongs(refs Refs, root string, own ownThreads) frontier.Belonging {
	roots := []string{refs.Root}
	if root != "" && root != refs.Root {
		roots = append(roots, root)
	}
	for _, r := range slices.Backward(roots) { // the canonical one first
		if follow, chosen := w.follows[FollowKey{refs.Channel, r}]; chosen {
			if follow {
				return frontier.Inside
			}
			return frontier.Outside
		}
	}
	for _, id := range append(roots, refs.Parent) {
		if own[id] || w.wrote(id, refs.Channel) {
			return frontier.Inside
		}
	}
	d, known := w.decisions.get(lookupKey{refs.Channel, refs.Parent})
	switch {
	case !known:
		return frontier.Undecided
	case d.Inside && d.Root != "" && root != "" && d.Root != root:
		return frontier.Outside // of another thread with the same parent: its own root decides
	case d.Inside:
		return frontier.Inside
	}
	return frontier.Outside
}

// wrote tells whether a fetched message is the viewer's, and of the channel.
func (w *Window) wrote(id, channel string) bool {
	e, ok := w.structure.get(id)
	return ok && e.PubKey == w.viewer && ParseRefs(e).Channel == channel
}

// joined notes that the viewer has written: what was decided before is decided otherwise, and stays so
// when the window forgets the message.
func (w *Window) joined(e nostrx.Event) {
	refs := ParseRefs(e)
	if e.PubKey != w.viewer || !Content(e.Kind) || !refs.Reply {
		return
	}
	root, known := w.Root(refs)
	if !known {
		root = refs.Root
	}
	if d, ok := w.decisions.get(lookupKey{refs.Channel, refs.Parent}); ok && !d.Inside {
		w.decisions.put(lookupKey{refs.Channel, refs.Parent}, Decision{Inside: true, Root: root})
	}
}

// left forgets what was decided about the parent of a message of the viewer that is gone: it is asked
// for again.
func (w *Window) left(e nostrx.Event) {
	if refs := ParseRefs(e); e.PubKey == w.viewer && refs.Reply {
		w.decisions.remove(lookupKey{refs.Channel, refs.Parent})
	}
}

// Following tells whether replies of a thread count for the viewer: the choice, else what is known of
// them having written there. Nothing is known of a channel without access.
func (w *Window) Following(channel, root string) (following, known bool) {
	if !w.Access(channel) {
		return false, false
	}
	if follow, chosen := w.follows[FollowKey{channel, root}]; chosen {
		return follow, true
	}
	if w.ownThreads(channel)[root] || w.wrote(root, channel) {
		return true, true
	}
	d, known := w.decisions.get(lookupKey{channel, root})
	return known && d.Inside, known
}

// Undecided returns the parents of replies that are unread unless a lookup says otherwise, by channel:
// those that a lookup has to be made for. Each stands once.
func (w *Window) Undecided(view frontier.View) map[string][]string {
	found := make(map[string][]string)
	for channel := range w.roster {
		messages, _ := w.Messages(channel)
		for _, m := range messages {
			if !view.Verdict(m).Pending {
				continue
			}
			parent := ParseRefs(w.events[m.ID]).Parent
			if !slices.Contains(found[channel], parent) {
				found[channel] = append(found[channel], parent)
			}
		}
		slices.Sort(found[channel])
		if len(found[channel]) == 0 {
			delete(found, channel)
		}
	}
	return found
}

// Activity is the unread replies of one thread that have attention.
type Activity struct {
	Root    string
	Replies int
	Latest  frontier.Message
}

// ThreadActivity lists threads of a channel with unread replies that have attention, the latest first.
// A reply whose root is not known is in no thread.
func (w *Window) ThreadActivity(channel string, view frontier.View) []Activity {
	messages, _ := w.Messages(channel)
	threads := make(map[string]Activity)
	for _, m := range messages {
		if verdict := view.Verdict(m); !m.Reply || m.Root == "" || !verdict.Counts || m.DM {
			continue
		}
		a := threads[m.Root]
		a.Root, a.Replies = m.Root, a.Replies+1
		a.Latest, _ = frontier.Latest([]frontier.Message{a.Latest, m})
		threads[m.Root] = a
	}
	var list []Activity
	for _, a := range threads {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Activity) int {
		return cmp.Or(cmp.Compare(b.Latest.At, a.Latest.At), strings.Compare(a.Root, b.Root))
	})
	return list
}

// Marked returns the roots that kept replies to a parent name, sorted: a lookup asks for them, and for
// what the viewer wrote below them.
func (w *Window) Marked(channel, parent string) []string {
	var roots []string
	for _, e := range w.events {
		refs := ParseRefs(e)
		if Content(e.Kind) && refs.Channel == channel && refs.Reply && refs.Parent == parent &&
			!slices.Contains(roots, refs.Root) {
			roots = append(roots, refs.Root)
		}
	}
	slices.Sort(roots)
	return roots
}

// Event returns a message as it was signed; false when it is not here.
func (w *Window) Event(id string) (nostrx.Event, bool) {
	e, ok := w.events[id]
	return e, ok && Content(e.Kind)
}

// Knows tells whether a message is here, be it counted or for its structure only.
func (w *Window) Knows(id string) bool {
	_, ok := w.lookUp(id)
	return ok
}
