package unread

import (
	"hash/maphash"
	"sync/atomic"
)

// index finds slots by their ids. It keeps hashes only: the slot's own text decides. One
// goroutine at a time changes it; find may run meanwhile, and answers what was true of each slot
// when it looked, so that its caller has to look at the sequence afterwards.
type index struct {
	seed   maphash.Seed
	shards [indexShards]atomic.Pointer[shard]
}

// shard is an open table of words of 32 bits of the hash and a slot; their number is a power of
// two. Growth replaces one shard at a time.
type shard struct {
	words []uint64
	used  int // words that are not empty, the gone ones included
	live  int
}

const (
	indexShards = 64
	shardLeast  = 8
	slotMask    = 1<<32 - 1
	goneSlot    = 1 << 31 // no slot has this number
)

func newIndex() *index { return &index{seed: maphash.MakeSeed()} }

// find returns the slot that is the one of the id, none where there is none.
func (x *index) find(id string, is func(slot int32) bool) int32 {
	h := maphash.String(x.seed, id)
	t := x.shards[h%indexShards].Load()
	if t == nil {
		return none
	}
	mask := uint64(len(t.words) - 1)
	for i, n := h>>32, 0; n < len(t.words); i, n = i+1, n+1 {
		w := atomic.LoadUint64(&t.words[i&mask])
		if w == 0 {
			return none
		}
		slot := w & slotMask
		if w>>32 == h>>32 && slot != goneSlot && is(int32(slot)) {
			return int32(slot)
		}
	}
	return none
}

// add gives a slot an id that no slot has.
func (x *index) add(id string, slot int32) {
	h := maphash.String(x.seed, id)
	at := &x.shards[h%indexShards]
	t := at.Load()
	if t == nil || (t.used+1)*4 > len(t.words)*3 {
		t = t.grown()
		at.Store(t)
	}
	t.put(h>>32<<32 | uint64(uint32(slot)))
}

// grown returns a table with room for as many again as are live.
func (t *shard) grown() *shard {
	size := shardLeast
	if t != nil {
		for size < 2*(t.live+1) {
			size *= 2
		}
	}
	next := &shard{words: make([]uint64, size)}
	if t != nil {
		for _, w := range t.words {
			if w != 0 && w&slotMask != goneSlot {
				next.put(w)
			}
		}
	}
	return next
}

func (t *shard) put(word uint64) {
	mask := uint64(len(t.words) - 1)
	i := word >> 32
	for t.words[i&mask] != 0 {
		i++
	}
	atomic.StoreUint64(&t.words[i&mask], word)
	t.used++
	t.live++
}

// remove takes the slot's id away.
func (x *index) remove(id string, slot int32) {
	h := maphash.String(x.seed, id)
	t := x.shards[h%indexShards].Load()
	mask := uint64(len(t.words) - 1)
	word := h>>32<<32 | uint64(uint32(slot))
	for i := h >> 32; t.words[i&mask] != 0; i++ {
		if t.words[i&mask] == word {
			atomic.StoreUint64(&t.words[i&mask], h>>32<<32|goneSlot)
			t.live--
			return
		}
	}
}
