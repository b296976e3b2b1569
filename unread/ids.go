package unread

import (
	"sync/atomic"

	"github.com/tidemark-im/tidemark/internal/slab"
)

// ids keeps the ids of members as words that are read and written atomically: the length in
// bytes, then eight bytes a word.
type ids struct{ words *slab.Runs[uint64] }

func newIDs(m *slab.Memory) ids { return ids{slab.NewRuns[uint64](m, 1)} }

func idWords(n int) int { return 1 + (n+7)/8 }

func (d ids) put(id string) int32 {
	at, _ := d.words.Take(idWords(len(id)))
	for i := 0; i < len(id); i += 8 {
		atomic.StoreUint64(d.words.At(at+1+int32(i/8)), idWord(id[i:]))
	}
	atomic.StoreUint64(d.words.At(at), uint64(len(id)))
	return at
}

// idWord packs up to eight bytes, the first lowest.
func idWord(s string) (w uint64) {
	if len(s) >= 8 {
		return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	}
	for i := len(s) - 1; i >= 0; i-- {
		w = w<<8 | uint64(s[i])
	}
	return w
}

// equal may run while ids change.
func (d ids) equal(at int32, id string) bool {
	if atomic.LoadUint64(d.words.At(at)) != uint64(len(id)) {
		return false
	}
	for i := 0; i < len(id); i += 8 {
		at++
		if atomic.LoadUint64(d.words.At(at)) != idWord(id[i:]) {
			return false
		}
	}
	return true
}

// text is a copy of an id.
func (d ids) text(at int32) string {
	n := int(*d.words.At(at))
	b := make([]byte, 0, n+7)
	for len(b) < n {
		at++
		w := *d.words.At(at)
		for range 8 {
			b = append(b, byte(w))
			w >>= 8
		}
	}
	return string(b[:n])
}

func (d ids) drop(at int32) {
	d.words.Drop(at, d.words.Size(idWords(int(*d.words.At(at)))))
}
