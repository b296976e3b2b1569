package intake

import (
	"slices"
	"sync"

	"github.com/tidemark-im/tidemark/readstate"
)

// hints remembers since when members are served what came back from the table, longest first.
type hints struct {
	mu      sync.Mutex
	since   []hinted
	known   map[readstate.MemberID]bool
	compact int // how many there may be before those are looked for that are hints no longer
}

type hinted struct {
	member readstate.MemberID
	at     int64 // milliseconds
}

// minHints is how many members are not worth a look.
const minHints = 256

// add notes that a page of the member has hints. Still says of whom that is true.
func (h *hints) add(m readstate.MemberID, now int64, still func(m readstate.MemberID) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known[m] {
		return
	}
	if h.known == nil {
		h.known = map[readstate.MemberID]bool{}
	}
	if len(h.since) >= max(h.compact, minHints) {
		h.since = slices.DeleteFunc(h.since, func(x hinted) bool {
			gone := !still(x.member)
			if gone {
				delete(h.known, x.member)
			}
			return gone
		})
		h.compact = 2 * len(h.since)
	}
	h.known[m] = true
	h.since = append(h.since, hinted{m, now})
}

// oldest returns how long the member who is served a hint for longest has been, in milliseconds.
func (h *hints) oldest(now int64, still func(m readstate.MemberID) bool) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.since) > 0 {
		if x := h.since[0]; still(x.member) {
			return max(0, now-x.at)
		}
		delete(h.known, h.since[0].member)
		h.since = h.since[1:]
	}
	return 0
}
