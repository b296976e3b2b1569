package unread

import (
	"sync"
	"sync/atomic"

	"github.com/tidemark-im/tidemark/readstate"
)

// spaces are the open workspaces. They are found without a lock, in the time of one hash and one
// comparison, since every read and every commit begins with it.
type spaces struct {
	mu     sync.Mutex // held by those who change what follows
	byID   *index
	places atomic.Pointer[[]atomic.Pointer[workspace]]
	free   []int32 // none is no place
}

func (s *spaces) init() {
	s.byID = newIndex()
	s.places.Store(&[]atomic.Pointer[workspace]{none: {}})
}

// find returns the open workspace of that id, nil where there is none.
func (s *spaces) find(id readstate.WorkspaceID) (found *workspace) {
	s.byID.find(string(id), func(slot int32) bool {
		places := *s.places.Load()
		if int(slot) >= len(places) {
			return false
		}
		ws := places[slot].Load()
		if ws == nil || ws.id != id {
			return false
		}
		found = ws
		return true
	})
	return found
}

// put opens ws in place of any of the same id.
func (s *spaces) put(ws *workspace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot := s.slot(ws.id); slot != none {
		(*s.places.Load())[slot].Store(ws)
		return
	}
	if len(s.free) == 0 {
		s.grow()
	}
	slot := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	(*s.places.Load())[slot].Store(ws)
	s.byID.add(string(ws.id), slot)
}

// take closes the workspace of that id and returns it, nil where there is none.
func (s *spaces) take(id readstate.WorkspaceID) *workspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slot(id)
	if slot == none {
		return nil
	}
	s.byID.remove(string(id), slot)
	s.free = append(s.free, slot)
	return (*s.places.Load())[slot].Swap(nil)
}

// all are the workspaces that are open now, in no order.
func (s *spaces) all() []*workspace {
	places := *s.places.Load()
	open := make([]*workspace, 0, len(places))
	for i := range places {
		if ws := places[i].Load(); ws != nil {
			open = append(open, ws)
		}
	}
	return open
}

// slot is where an open workspace stands, for the holder of mu.
func (s *spaces) slot(id readstate.WorkspaceID) int32 {
	places := *s.places.Load()
	return s.byID.find(string(id), func(slot int32) bool { return places[slot].Load().id == id })
}

// grow makes as many places again; those of before keep their numbers.
func (s *spaces) grow() {
	old := *s.places.Load()
	grown := make([]atomic.Pointer[workspace], max(4, 2*len(old)))
	for i := range old {
		grown[i].Store(old[i].Load())
	}
	for slot := len(grown) - 1; slot >= len(old); slot-- {
		s.free = append(s.free, int32(slot))
	}
	s.places.Store(&grown)
}
