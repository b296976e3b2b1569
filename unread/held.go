package unread

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// Unheld returns those of the scopes of which memory has nothing and waits for nothing. It is for a
// source that keeps scopes of its own for as long as they are in use.
func (r *Runtime) Unheld(
	id readstate.WorkspaceID, scopes []readstate.ScopeKey,
) []readstate.ScopeKey {
	ws, err := r.workspace(id)
	if err != nil {
		return scopes
	}
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	asked := map[readstate.ScopeKey]bool{}
	for _, j := range ws.jobs {
		for _, s := range j.only {
			asked[s] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(scopes), func(s readstate.ScopeKey) bool {
		return asked[s] || ws.st.scopeByKey[s] != none
	})
}

// Hinted reports that some row of a member is a hint that is shown, or that the member is being
// loaded.
func (r *Runtime) Hinted(id readstate.WorkspaceID, member readstate.MemberID) bool {
	ws, err := r.workspace(id)
	if err != nil {
		return false
	}
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	if ws.jobs[member] != nil {
		return true
	}
	m := ws.st.memberNamed(member)
	if m == none {
		return false
	}
	x := ws.st.members.At(m).run()
	for e := x.at; e < x.at+x.n; e++ {
		if f := ws.st.rows.load(e); ws.st.serving(e, &f) == readstate.Hint {
			return true
		}
	}
	return false
}
