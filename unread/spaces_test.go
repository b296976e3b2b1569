package unread

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// Workspaces are found by readers without a lock while others are opened, dropped and opened again.
func TestSpacesWhileOthersComeAndGo(t *testing.T) {
	var s spaces
	s.init()
	id := func(i int) readstate.WorkspaceID { return readstate.WorkspaceID(fmt.Sprint("w", i)) }
	const staying, passing = 40, 200
	for i := range staying {
		s.put(&workspace{id: id(i)})
	}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for range 20 {
				for i := staying + g; i < staying+passing; i += 4 {
					s.put(&workspace{id: id(i)})
					if ws := s.find(id(i)); ws == nil || ws.id != id(i) {
						t.Errorf("%s was opened, and found is %+v", id(i), ws)
					}
				}
				for i := staying + g; i < staying+passing; i += 4 {
					if ws := s.take(id(i)); ws == nil || ws.id != id(i) {
						t.Errorf("%s was open, and taken is %+v", id(i), ws)
					}
					if ws := s.find(id(i)); ws != nil {
						t.Errorf("%s is still found", id(i))
					}
				}
			}
		})
		all.Go(func() {
			for range 200 {
				for i := range staying {
					if ws := s.find(id(i)); ws == nil || ws.id != id(i) {
						t.Errorf("%s stays, and found is %+v", id(i), ws)
					}
				}
			}
		})
	}
	all.Wait()
	if n := len(s.all()); n != staying {
		t.Errorf("%d are open at the end", n)
	}
	if places := len(*s.places.Load()); places > 2*(staying+passing) {
		t.Errorf("%d places for at most %d workspaces", places, staying+passing)
	}
}

// Opening what is open replaces it.
func TestSpacesReplace(t *testing.T) {
	var s spaces
	s.init()
	first, second := &workspace{id: "w"}, &workspace{id: "w"}
	s.put(first)
	s.put(second)
	if got := s.find("w"); got != second {
		t.Errorf("found %p of %p and %p", got, first, second)
	}
	if s.take("w") != second || s.take("w") != nil || len(s.all()) != 0 {
		t.Error("something is left")
	}
}
