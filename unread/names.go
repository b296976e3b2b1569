package unread

import "hash/maphash"

// names finds slots by their ids without keeping the ids: the slot's own text decides.
type names struct {
	seed  maphash.Seed
	first map[uint64]int32
	next  map[int32]int32 // of slots whose ids have one hash
}

func newNames() names {
	return names{seed: maphash.MakeSeed(), first: map[uint64]int32{}, next: map[int32]int32{}}
}

// find returns the slot that is the one of the id, none where there is none.
func (n *names) find(id string, is func(slot int32) bool) int32 {
	i := n.first[maphash.String(n.seed, id)]
	for i != none && !is(i) {
		i = n.next[i]
	}
	return i
}

// add gives a slot an id that no slot has.
func (n *names) add(id string, slot int32) {
	h := maphash.String(n.seed, id)
	if other := n.first[h]; other != none {
		n.next[slot] = other
	}
	n.first[h] = slot
}

// remove takes the slot's id away.
func (n *names) remove(id string, slot int32) {
	h := maphash.String(n.seed, id)
	after := n.next[slot]
	delete(n.next, slot)
	if n.first[h] == slot {
		if n.first[h] = after; after == none {
			delete(n.first, h)
		}
		return
	}
	for i := n.first[h]; i != none; i = n.next[i] {
		if n.next[i] == slot {
			if n.next[i] = after; after == none {
				delete(n.next, i)
			}
			return
		}
	}
}
