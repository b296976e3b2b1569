package relaytest

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// store keeps events by id. What was deleted stays, without being found, so that it does not come
// back and so that one still knows which channel a deletion speaks of.
type store struct {
	events  map[nostrx.EventID]nostrx.Event
	deleted map[nostrx.EventID]bool
	heads   map[string]nostrx.EventID // of coordinates
}

func newStore() store {
	return store{
		events:  make(map[nostrx.EventID]nostrx.Event),
		deleted: make(map[nostrx.EventID]bool),
		heads:   make(map[string]nostrx.EventID),
	}
}

// coordinate names what an event replaces, "" when it replaces nothing.
func coordinate(e nostrx.Event) string {
	switch {
	case e.Kind == 0 || e.Kind == 3 || e.Kind >= 10_000 && e.Kind < 20_000:
		return fmt.Sprintf("%d:%s:", e.Kind, e.PubKey)
	case e.Kind >= 30_000 && e.Kind < 40_000:
		return fmt.Sprintf("%d:%s:%s", e.Kind, e.PubKey, e.Value("d"))
	}
	return ""
}

// ephemeral events are pushed and never kept.
func ephemeral(kind int) bool { return kind >= 20_000 && kind < 30_000 }

func (s *store) at(coordinate string) (nostrx.Event, bool) {
	e, ok := s.events[s.heads[coordinate]]
	return e, ok
}

// put keeps an event; false when it is there already, was deleted, or is older than what stands at
// its coordinate.
func (s *store) put(e nostrx.Event) bool {
	if _, known := s.events[e.ID]; known || s.deleted[e.ID] {
		return false
	}
	if at := coordinate(e); at != "" {
		if old, ok := s.at(at); ok {
			if nostrx.Compare(old, e) < 0 {
				return false
			}
			delete(s.events, old.ID)
		}
		s.heads[at] = e.ID
	}
	s.events[e.ID] = e
	return true
}

// remove carries a deletion out on what is here and its author may delete.
func (s *store) remove(by nostrx.Event, moderator bool) {
	for _, id := range by.Values("e") {
		target, ok := s.events[nostrx.EventID(id)]
		if ok && (target.PubKey == by.PubKey || moderator) {
			s.deleted[target.ID] = true
		}
	}
	for _, at := range by.Values("a") {
		target, ok := s.at(at)
		if ok && target.CreatedAt <= by.CreatedAt && (target.PubKey == by.PubKey || moderator) {
			s.deleted[target.ID] = true
		}
	}
}

// find returns the live events that a condition holds for, the newest first.
func (s *store) find(match func(nostrx.Event) bool) []nostrx.Event {
	var found []nostrx.Event
	for id, e := range s.events {
		if !s.deleted[id] && match(e) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, nostrx.Compare)
	return found
}

// channelsOf returns the channels that an event belongs to: those it names, and for auxiliary events
// those of what they speak of, at most 32 steps away.
func (s *store) channelsOf(e nostrx.Event) []string {
	channels := e.Values("h")
	for step, aim := 0, e; nostrx.Auxiliary(aim.Kind) && step < 32; step++ {
		var next *nostrx.Event
		for _, id := range aim.Values("e") {
			if target, ok := s.events[nostrx.EventID(id)]; ok {
				channels = append(channels, target.Values("h")...)
				next = &target
			}
		}
		if next == nil {
			break
		}
		aim = *next
	}
	slices.Sort(channels)
	return slices.Compact(channels)
}

// aims tells whether an auxiliary event speaks of an event that a condition holds for, deleted or not.
func (s *store) aims(e nostrx.Event, match func(nostrx.Event) bool) bool {
	return nostrx.Auxiliary(e.Kind) && slices.ContainsFunc(e.Values("e"), func(id string) bool {
		target, ok := s.events[nostrx.EventID(id)]
		return ok && match(target)
	})
}
