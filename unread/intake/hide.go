package intake

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// hides names the member who may not see the scope after the event.
func hides(ev Event) readstate.MemberID {
	switch ev := ev.(type) {
	case MembershipChanged:
		if !ev.Joined || ev.Hidden {
			return ev.Member
		}
	case MessageVisibilityChanged:
		if !ev.Visible {
			return ev.Member
		}
	}
	return ""
}

// hide takes a row out of memory whose member may see it no longer, before anything is read.
func (s *space) hide(sc *scope, ev Event) {
	member := hides(ev)
	if member == "" {
		return
	}
	key := snapshot.Key{Scope: sc.key, Member: s.names.MemberKey(member)}
	s.hidden[key]++
	s.lsn++ // what the book knows stays as it is: only memory forgets
	gone := readstate.RowGoneEvent{Scope: key.Scope, Member: key.Member}
	if out, err := s.book.Apply(s.lsn, nil); err == nil {
		s.toRuntime(append(out, gone))
	}
}

// reveal ends what hide began: the event is taken in, and the row says itself who may see it.
func (s *space) reveal(sc *scope, ev Event) {
	member := hides(ev)
	if member == "" {
		return
	}
	key := snapshot.Key{Scope: sc.key, Member: s.names.MemberKey(member)}
	if s.hidden[key]--; s.hidden[key] <= 0 {
		delete(s.hidden, key)
		// An event that was told before changed nothing: memory looks at the row again.
		s.commit(readstate.RowFoundEvent{Scope: key.Scope, Member: key.Member})
	}
}

// conceal takes rows out of a page that may not be seen any more, whatever the table says.
func (s *space) conceal(page *readstate.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hidden) == 0 {
		return
	}
	page.Rows = slices.DeleteFunc(page.Rows, func(r readstate.PageRow) bool {
		return s.hidden[snapshot.Key{Scope: r.Scope, Member: r.Member}] > 0
	})
	for i := range page.Rows {
		r := &page.Rows[i]
		if p := r.Parent; p != nil && s.hidden[snapshot.Key{Scope: p.Scope, Member: p.Member}] > 0 {
			r.Parent = nil
		}
	}
}
