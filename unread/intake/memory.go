package intake

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// trimStep bounds how many scopes one event looks at to let them go, so that no event waits for
// more. It is above one, so that letting go is faster than filling up.
const trimStep = 8

// trim brings memory back below its budgets. A scope goes when the book needs it no longer, nothing
// of it waits, and the runtime has no row in it.
func (s *space) trim() {
	s.book.Trim()
	idle := slices.DeleteFunc(s.book.Idle(trimStep), func(key readstate.ScopeKey) bool {
		sc := s.scopes[key]
		return sc != nil && !sc.resting()
	})
	if len(idle) > 0 {
		s.letGo(s.intake.runtime.Unheld(s.id, idle))
	}
	if len(s.scopes) > 2*s.swept+minSweep {
		s.sweep()
	}
}

// minSweep is how many scopes without a frontier are not worth a look.
const minSweep = 1_024

// sweep forgets scopes that the table does not have and that never began.
func (s *space) sweep() {
	var void []readstate.ScopeKey
	for key, sc := range s.scopes {
		if sc.resting() && !s.book.Has(snapshot.Key{Scope: key}) {
			void = append(void, key)
		}
	}
	s.letGo(s.intake.runtime.Unheld(s.id, void))
	s.swept = len(s.scopes)
}

// letGo forgets scopes, as far as the book does.
func (s *space) letGo(scopes []readstate.ScopeKey) {
	for _, key := range s.book.Forget(scopes) {
		delete(s.scopes, key)
		s.names.forget(key)
	}
}
