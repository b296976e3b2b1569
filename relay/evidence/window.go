package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Bounds of what is kept.
const (
	MaxEvents    = 4096
	MaxBytes     = 8 << 20 // of the JSON of events
	MaxStructure = 1024
	MaxDecisions = 4096
)

// ErrOverflow says that the window was full and has been cleared.
var ErrOverflow = errors.New("too many messages to keep; a refresh reads them again")

// Channel is a channel of the roster.
type Channel struct {
	ID   string
	Type string // stream, forum, dm; "" while it is not known
}

// FollowKey names a thread that somebody follows, or does not.
type FollowKey struct{ Channel, Root string }

// Window is the evidence of one viewer. The zero value is of no use; see New.
type Window struct {
	viewer     nostrx.PubKey
	relay      nostrx.PubKey   // "" while it is not known
	moderators []nostrx.PubKey // whose removals count
	roster     map[string]Channel
	follows    map[FollowKey]bool

	events  map[string]nostrx.Event
	bytes   int
	deleted map[string]bool

	// By channel, as far as they were asked for since something changed.
	read map[string][]frontier.Message
	own  map[string]ownThreads

	structure bounded[string, nostrx.Event]
	decisions bounded[lookupKey, Decision]
}

// New returns an empty window.
func New(viewer nostrx.PubKey) *Window {
	w := &Window{viewer: viewer, roster: make(map[string]Channel), follows: make(map[FollowKey]bool)}
	w.structure.limit, w.decisions.limit = MaxStructure, MaxDecisions
	w.clear()
	return w
}

// clear forgets messages, and neither structure nor decisions.
func (w *Window) clear() {
	w.events, w.bytes = make(map[string]nostrx.Event), 0
	w.deleted = make(map[string]bool)
	w.changed()
}

func (w *Window) changed() {
	w.read = make(map[string][]frontier.Message)
	w.own = make(map[string]ownThreads)
}

// Reset forgets everything but the roster.
func (w *Window) Reset() {
	w.structure.clear()
	w.decisions.clear()
	w.clear()
}

// Len returns how many events are kept, and how many bytes they have.
func (w *Window) Len() (events, bytes int) { return len(w.events), w.bytes }

// Trust says which key the relay signs with, and whose removals count besides its own.
func (w *Window) Trust(relay nostrx.PubKey, moderators []nostrx.PubKey) {
	w.relay, w.moderators = relay, slices.Clone(moderators)
	w.changed()
}

// Follow sets what the viewer chose for threads, whole.
func (w *Window) Follow(choices map[FollowKey]bool) {
	w.follows = maps.Clone(choices)
	w.changed()
}

// SetRoster sets the channels that the viewer is a confirmed member of, and tells whether access to one
// of them changed. What is kept of others is forgotten at once.
func (w *Window) SetRoster(channels []Channel) (changed bool) {
	next := make(map[string]Channel, len(channels))
	for _, c := range channels {
		next[c.ID] = c
		if _, had := w.roster[c.ID]; !had {
			changed = true
		}
	}
	for id := range w.roster {
		if _, has := next[id]; !has {
			changed = true
			w.forget(id)
		}
	}
	w.roster = next
	w.changed()
	return changed
}

// forget drops everything of a channel.
func (w *Window) forget(channel string) {
	var gone []string // all of them, before what tells where they belong is gone itself
	for id, e := range w.events {
		if slices.Contains(w.channelsOf(e, 0), channel) {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		w.bytes -= len(w.events[id].Encode())
		delete(w.events, id)
		delete(w.deleted, id)
	}
	w.structure.drop(func(_ string, e nostrx.Event) bool { return ParseRefs(e).Channel == channel })
	w.decisions.drop(func(k lookupKey, _ Decision) bool { return k.channel == channel })
}

// Access tells whether the viewer is a confirmed member of a channel.
func (w *Window) Access(channel string) bool {
	_, ok := w.roster[channel]
	return ok
}

// DM tells whether a channel is a dm; false when that is not known.
func (w *Window) DM(channel string) (dm, known bool) {
	c := w.roster[channel]
	return c.Type == "dm", c.Type != ""
}

// Add takes verified events, in any order. Those that do not belong here are passed over. When they are
// too many the window is cleared, and ErrOverflow says so.
func (w *Window) Add(events ...nostrx.Event) (added int, err error) {
	// What speaks of others comes after what it speaks of.
	events = slices.SortedFunc(slices.Values(events), func(a, b nostrx.Event) int {
		return cmp.Or(
			cmp.Compare(class(a), class(b)), cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, e := range events {
		if _, known := w.events[string(e.ID)]; known || !w.admits(e) {
			continue
		}
		size := len(e.Encode())
		if len(w.events) == MaxEvents || w.bytes+size > MaxBytes {
			w.clear()
			return 0, fmt.Errorf("%w: at most %d events and %d bytes", ErrOverflow, MaxEvents, MaxBytes)
		}
		w.events[string(e.ID)] = e
		w.bytes += size
		w.delete(e)
		w.joined(e)
		added++
	}
	if added > 0 {
		w.changed()
	}
	return added, nil
}

func class(e nostrx.Event) int {
	if nostrx.Auxiliary(e.Kind) {
		return 1
	}
	return 0
}

// admits tells whether an event belongs into the window.
func (w *Window) admits(e nostrx.Event) bool {
	if e.CreatedAt > int64(frontier.MaxTime) {
		return false // no frontier could ever read it
	}
	if Content(e.Kind) {
		return w.Access(ParseRefs(e).Channel)
	}
	if !nostrx.Auxiliary(e.Kind) {
		return false
	}
	channels := w.channelsOf(e, 0)
	return len(channels) > 0 && !slices.ContainsFunc(channels, func(c string) bool { return !w.Access(c) })
}

// channelsOf returns the channels of an event: a message's own one, and for what speaks of others those
// of all that it names. It is nil when one of them is not here, or when there is no end to it.
func (w *Window) channelsOf(e nostrx.Event, hops int) []string {
	if Content(e.Kind) {
		if c := ParseRefs(e).Channel; c != "" {
			return []string{c}
		}
		return nil
	}
	channels := e.Values("h")
	for _, id := range e.Values("e") {
		target, ok := w.events[id]
		if !ok || hops == maxHops {
			return nil
		}
		of := w.channelsOf(target, hops+1)
		if of == nil {
			return nil
		}
		channels = append(channels, of...)
	}
	return channels
}

// delete carries a deletion out, if its author may delete everything that it names.
func (w *Window) delete(e nostrx.Event) {
	if e.Kind != nostrx.KindDelete && e.Kind != nostrx.KindModeratorDelete {
		return
	}
	authority := e.Kind == nostrx.KindModeratorDelete &&
		(e.PubKey == w.relay && w.relay != "" || slices.Contains(w.moderators, e.PubKey))
	ids := e.Values("e")
	for _, id := range ids {
		target := w.events[id] // admitted, so it is here
		if !authority && (e.Kind != nostrx.KindDelete || target.PubKey != e.PubKey) {
			return
		}
	}
	for _, id := range ids {
		w.deleted[id] = true
		w.left(w.events[id])
	}
}

// Messages returns the messages of a channel as they are judged, deleted ones included; false when the
// viewer has no access to it. The slice is not to be changed.
func (w *Window) Messages(channel string) ([]frontier.Message, bool) {
	if !w.Access(channel) {
		return nil, false
	}
	if m, ok := w.read[channel]; ok {
		return m, true
	}
	messages := []frontier.Message{}
	own := w.ownThreads(channel)
	for id, e := range w.events {
		refs := ParseRefs(e)
		if Content(e.Kind) && refs.Channel == channel {
			messages = append(messages, w.message(id, e, refs, own))
		}
	}
	slices.SortFunc(messages, frontier.CompareShown)
	w.read[channel] = messages
	return messages, true
}

// Message returns one message; false when it is not here.
func (w *Window) Message(id string) (frontier.Message, bool) {
	e, ok := w.events[id]
	refs := ParseRefs(e)
	if !ok || !Content(e.Kind) {
		return frontier.Message{}, false
	}
	return w.message(id, e, refs, w.ownThreads(refs.Channel)), true
}

func (w *Window) message(id string, e nostrx.Event, refs Refs, own ownThreads) frontier.Message {
	dm, _ := w.DM(refs.Channel)
	m := frontier.Message{
		ID: id, Channel: refs.Channel, At: frontier.Time(e.CreatedAt), Millis: millis(e), Reply: refs.Reply,
		DM: dm, Own: e.PubKey == w.viewer, Quiet: quiet(e), Deleted: w.deleted[id],
		Mentioned: mentions(e, w.viewer, w.relay), Broadcast: broadcast(e),
	}
	if !m.Reply {
		return m
	}
	m.Root, _ = w.Root(refs)
	if dm && m.Root == "" {
		m.Root = refs.Root
	}
	m.Belongs = w.belongs(refs, m.Root, own)
	return m
}

// Root returns the canonical root of a reply; false while it is not known.
func (w *Window) Root(refs Refs) (string, bool) {
	at := refs.Root
	for range maxHops {
		e, ok := w.lookUp(at)
		next := ParseRefs(e)
		if !ok || next.Channel != refs.Channel {
			return "", false
		}
		if !next.Reply {
			return at, true
		}
		at = next.Root
	}
	return "", false
}

// lookUp finds a message, among those kept and among those fetched for their structure.
func (w *Window) lookUp(id string) (nostrx.Event, bool) {
	if e, ok := w.events[id]; ok {
		return e, Content(e.Kind)
	}
	return w.structure.get(id)
}

// Latest returns the latest message of a channel that is left, own and read ones included.
func (w *Window) Latest(channel string) (frontier.Message, bool) {
	messages, _ := w.Messages(channel)
	return frontier.Latest(messages)
}
