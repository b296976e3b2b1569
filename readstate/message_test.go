package readstate_test

import (
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

var everyKind = []readstate.ScopeType{
	readstate.Channel, readstate.DM, readstate.Thread, readstate.Task, readstate.Session,
}

// everyRole is all that a member can be to a message: 16 combinations.
func everyRole() []readstate.Role {
	var all []readstate.Role
	for i := range 16 {
		all = append(all, readstate.Role{
			Author: i&1 != 0, Principal: i&2 != 0, Named: i&4 != 0, Recipient: i&8 != 0,
		})
	}
	return all
}

// share is what one live message adds to a row, written out by cases.
func share(kind readstate.ScopeType, r readstate.Role, everyone bool) readstate.Point {
	mine := r.Author || r.Principal
	switch {
	case kind == readstate.Session && everyone:
		return readstate.Point{}
	case kind == readstate.Session && r.Named:
		return readstate.Point{Direct: 1}
	case kind == readstate.Session:
		return readstate.Point{}
	case mine && everyone:
		return readstate.Point{OwnEveryone: 1}
	case mine:
		return readstate.Point{}
	case kind == readstate.Task && !r.Recipient:
		return readstate.Point{}
	case kind == readstate.Task && r.Named && !everyone:
		return readstate.Point{Direct: 1, Targets: 1}
	case kind == readstate.Task:
		return readstate.Point{Targets: 1}
	case r.Named && !everyone:
		return readstate.Point{Direct: 1}
	}
	return readstate.Point{}
}

func sum(a, b readstate.Point) readstate.Point {
	a.OwnRemoved += b.OwnRemoved
	a.OwnEveryone += b.OwnEveryone
	a.Direct += b.Direct
	a.Targets += b.Targets
	return a
}

// TestEveryRole posts, edits and removes a message for every kind of scope, role and place of
// the message, and crosses it in a move.
func TestEveryRole(t *testing.T) {
	start := readstate.Point{E: 4, OwnRemoved: 7, OwnEveryone: 7, Direct: 7, Targets: 7}
	for _, kind := range everyKind {
		for _, role := range everyRole() {
			for i := range 4 {
				everyone, after := i&1 != 0, i&2 != 0
				m := readstate.Message{Revision: 9, Everyone: everyone}
				has := sum(start, share(kind, role, everyone))
				p := start
				if p.Post(kind, m, role); p != has {
					t.Errorf("post %s %+v everyone %t: %+v, not %+v", kind, role, everyone, p, has)
				}
				is := role
				is.Named = !role.Named
				p.Edit(kind, 0, m, readstate.Message{Revision: 9, Everyone: after}, role, is)
				if want := sum(start, share(kind, is, after)); p != want {
					t.Errorf("edit %s %+v everyone %t to %t: %+v, not %+v", kind, role, everyone, after, p, want)
				}
				p, want := has, start
				if kind != readstate.Session && (role.Author || role.Principal) {
					want.OwnRemoved++
				}
				if p.Remove(kind, 0, m, role); p != want {
					t.Errorf("remove %s %+v everyone %t: %+v, not %+v", kind, role, everyone, p, want)
				}
				var live, dead readstate.Crossed
				live.Add(kind, m, role, true)
				dead.Add(kind, m, role, false)
				of := share(kind, role, everyone)
				if live != (readstate.Crossed{OwnEveryone: of.OwnEveryone, Direct: of.Direct, Targets: of.Targets}) {
					t.Errorf("cross %s %+v everyone %t: %+v", kind, role, everyone, live)
				}
				if dead != (readstate.Crossed{OwnRemoved: want.OwnRemoved - start.OwnRemoved}) {
					t.Errorf("cross removed %s %+v everyone %t: %+v", kind, role, everyone, dead)
				}
			}
		}
	}
}

// TestOnlyAboveTheBase removes and edits at, below and above the point and the floor.
func TestOnlyAboveTheBase(t *testing.T) {
	named, author := readstate.Role{Named: true}, readstate.Role{Author: true}
	for _, c := range []struct {
		e, floor, r readstate.Revision
		counts      bool
	}{
		{4, 0, 3, false}, {4, 0, 4, false}, {4, 0, 5, true},
		{2, 4, 3, false}, {2, 4, 4, false}, {2, 4, 5, true}, {4, 4, 4, false}, {0, 0, 1, true},
	} {
		m := readstate.Message{Revision: c.r}
		start := readstate.Point{E: c.e, Direct: 3}
		p := start
		p.Remove(readstate.Channel, c.floor, m, named)
		p.Remove(readstate.Channel, c.floor, m, author)
		if (p != start) != c.counts || c.counts && (p.Direct != 2 || p.OwnRemoved != 1) {
			t.Errorf("remove %d at point %d, floor %d: %+v", c.r, c.e, c.floor, p)
		}
		p = start
		p.Edit(readstate.Channel, c.floor, m, m, named, readstate.Role{})
		if (p != start) != c.counts || c.counts && p.Direct != 2 {
			t.Errorf("edit %d at point %d, floor %d: %+v", c.r, c.e, c.floor, p)
		}
		pair := readstate.Pair{Direct: 3}
		above := c.r > start.Base(c.floor)
		pair.Remove(readstate.Channel, above, m, named)
		if want := (readstate.Pair{Direct: 2, Removed: 1}); (pair == want) != c.counts {
			t.Errorf("remove %d of a pair at %d, floor %d: %+v", c.r, c.e, c.floor, pair)
		}
	}
}
