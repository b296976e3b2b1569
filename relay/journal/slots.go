package journal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

const slotPrefix = "read-state:"

// slotOf returns the slot that an event stands at, if it is read state at all: of the application data
// of one author, everything else belongs to others.
func slotOf(e nostrx.Event) (string, bool) {
	if e.Kind != nostrx.KindAppData {
		return "", false
	}
	coordinates, names, marks := 0, "", 0
	for _, tag := range e.Tags {
		switch {
		case tag.Name() == "d":
			coordinates, names = coordinates+1, tag.At(1)
		case tag.Name() == "t" && tag.At(1) == "read-state":
			marks++
		}
	}
	slot, ok := strings.CutPrefix(names, slotPrefix)
	return slot, ok && coordinates == 1 && marks == 1 && nostrx.IsHex(slot, maxSlotTxt)
}

// ErrSlots says that the relay has no room for the slots that are needed.
var ErrSlots = errors.New("the relay has no room for so many slots of read state")

// page is what one slot is to hold.
type page struct {
	slot   string
	values map[Key]Time
}

// publishable returns what this installation publishes at a moment: the frontiers that it raised
// itself, as far as they still decide something, and never those of messages.
func (r Record) publishable(now Time) map[Key]Time {
	out := make(map[Key]Time)
	for k, t := range r.Own {
		if !k.IsMessage() && int64(t) > int64(now)-frontier.Horizon {
			out[k] = t
		}
	}
	return out
}

// layout spreads what is published over slots. A key stays in the slot that carries it, while it fits
// there; a new one goes to the first slot with room, and to a new slot when there is none. A key that
// has to move goes to a later slot, never to an earlier one, so that there is always an order in which
// slots can be sent without losing one. New slots are added to the record.
func (r *Record) layout(values map[Key]Time, limit int) ([]page, error) {
	l := layout{record: r, limit: limit}
	for _, slot := range r.Slots() {
		if err := l.open(slot); err != nil {
			return nil, err
		}
	}
	keys := slices.Sorted(maps.Keys(values))
	after := make(map[Key]int) // of those that need a place: the slot behind which it is
	for _, k := range keys {
		i := r.carrier(k)
		if i < 0 || !l.put(i, k, values[k]) {
			after[k] = i
		}
	}
	for _, k := range keys {
		if i, ok := after[k]; ok {
			if err := l.place(k, values[k], i+1); err != nil {
				return nil, err
			}
		}
	}
	return l.pages, nil
}

// carrier returns the slot, by its place, that the relay holds a key in; the one with the highest value
// when there are several, -1 when there is none.
func (r Record) carrier(k Key) int {
	at, highest := -1, Time(0)
	for i, slot := range r.Slots() {
		if t, ok := r.Carried[slot][k]; ok && (at < 0 || t > highest) {
			at, highest = i, t
		}
	}
	return at
}

// layout is under construction.
type layout struct {
	record *Record
	limit  int
	pages  []page
	room   []int // bytes that are left in each
}

func (l *layout) open(slot string) error {
	empty, err := frontier.Blob{ClientID: l.record.ClientID}.Encode(l.limit)
	if err != nil {
		return err
	}
	l.pages = append(l.pages, page{slot: slot, values: make(map[Key]Time)})
	l.room = append(l.room, l.limit-len(empty))
	return nil
}

func (l *layout) put(i int, k Key, t Time) bool {
	n := frontier.Cost(k, t)
	if n > l.room[i] {
		return false
	}
	l.pages[i].values[k] = t
	l.room[i] -= n
	return true
}

// place puts a key into the first slot with room from some place on.
func (l *layout) place(k Key, t Time, from int) error {
	for i := from; i < len(l.pages); i++ {
		if l.put(i, k, t) {
			return nil
		}
	}
	if len(l.pages) == maxSlots {
		return fmt.Errorf("%w: %d slots", frontier.ErrCapacity, maxSlots)
	}
	slot := newSlot()
	if err := l.open(slot); err != nil {
		return err
	}
	l.record.Spill = append(l.record.Spill, slot)
	if !l.put(len(l.pages)-1, k, t) {
		return fmt.Errorf("%w: one key is larger than a slot", frontier.ErrCapacity)
	}
	return nil
}

// due returns the pages that the relay has to be sent: those of which it lacks a value, the last slot
// first. What moves, moves to a later slot, so it is there before it leaves the earlier one.
func (r Record) due(pages []page) []page {
	var due []page
	for _, p := range slices.Backward(pages) {
		for k, t := range p.values {
			if held, ok := r.Carried[p.slot][k]; !ok || held < t {
				due = append(due, p)
				break
			}
		}
	}
	return due
}
