package intake

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// crossing is what a member's point passes when it moves up to a new floor.
type crossing struct {
	row     readstate.MemberRow
	crossed readstate.Crossed
	ranks   readstate.Ranks
}

// trimmed raises the floor and moves the rows that the trimmed entries name up to it.
func (s *space) trimmed(sc *scope, ev ScopeTrimmed) {
	at, _ := s.book.Scope(sc.key)
	if ev.Floor <= at.Ranks.Floor {
		s.intake.metrics.repeated.Add(1)
		return
	}
	if ev.Floor > at.Ranks.Head {
		s.intake.metrics.frontiers.Add(1)
		s.commit(readstate.GapEvent{Scope: sc.key, Head: ev.Floor, Doubt: ev.Floor})
		at, _ = s.book.Scope(sc.key)
	}
	seen := at.Ranks.Floor
	moves := map[readstate.MemberKey]*crossing{}
	replies := at.Ranks.Replies
	var order []readstate.MemberKey
	for i := range ev.Trimmed {
		x := &ev.Trimmed[i]
		m := s.facts(sc, x)
		live := !s.book.Removed(sc.key, x.Revision)
		if x.Revision > ev.Floor || x.Revision <= at.Ranks.Floor {
			continue
		}
		if x.Revision == seen+1 {
			seen = x.Revision
		}
		if live && replies > 0 {
			replies--
		}
		for _, k := range touched(&m) {
			c := moves[k]
			if c == nil {
				row, _, ok := s.rowOf(sc, k)
				if !ok {
					continue
				}
				p := &row.Row.Point
				c = &crossing{row: row, ranks: readstate.Ranks{
					Author: p.AuthorRank, Principal: p.PrincipalRank,
				}}
				moves[k] = c
				order = append(order, k)
			}
			if x.Revision > c.row.Row.Point.E {
				c.pass(at.Info.Type, k, &m, live)
			}
		}
	}
	var events []readstate.Event
	if seen < ev.Floor {
		// Something else was trimmed, of which nobody knows whose it was.
		s.intake.metrics.frontiers.Add(1)
		events = append(events, readstate.GapEvent{
			Scope: sc.key, Head: at.Ranks.Head, Doubt: ev.Floor + 1,
		})
	}
	events = append(events, readstate.FloorEvent{
		Scope: sc.key, Floor: ev.Floor, Latest: at.Ranks.Latest, Replies: replies,
	})
	for _, k := range order {
		if moves[k].row.Row.Point.E < ev.Floor {
			events = append(events, moves[k].moved(ev.Floor, at.Ranks.Head))
		}
	}
	s.commit(events...)
}

// pass takes one entry above the member's point into account.
func (c *crossing) pass(
	t readstate.ScopeType, k readstate.MemberKey, m *snapshot.Entry, live bool,
) {
	role := m.Role(k)
	if role.Author {
		c.ranks.Author++
	}
	if role.Principal {
		c.ranks.Principal++
	}
	message := readstate.Message{Revision: m.Revision, Everyone: m.Everyone}
	c.crossed.Add(t, message, role, live)
	i := slices.IndexFunc(c.row.Pairs, func(p readstate.PairRow) bool {
		return p.Blocked == m.Author
	})
	if i < 0 || !live {
		return
	}
	p := &c.row.Pairs[i]
	n := readstate.Pair{Overlap: p.Overlap, Direct: p.Direct, Targets: p.Targets}
	n.Remove(t, true, message, role) // it is above the point no longer
	p.Overlap, p.Direct, p.Targets = n.Overlap, n.Direct, n.Targets
}

// moved is the row on the floor.
func (c *crossing) moved(floor, head readstate.Revision) readstate.Event {
	p := &c.row.Row.Point
	err := p.Move(p.PlanMove(floor, head), c.crossed, c.ranks)
	for i := range c.row.Pairs {
		n := &c.row.Pairs[i]
		if max(n.Overlap, n.Direct, n.Targets) > readstate.MaxCounter {
			err = readstate.ErrNegative
		}
	}
	if err != nil {
		c.row.Row.Serving, c.row.Pairs = readstate.Behind, nil
		p.E = max(p.E, floor)
	}
	c.row.StateLSN = 0
	return readstate.MemberEvent{MemberRow: c.row}
}

// touched lists the members whom an entry names, each once.
func touched(m *snapshot.Entry) []readstate.MemberKey {
	var keys []readstate.MemberKey
	add := func(k readstate.MemberKey) {
		if k != 0 && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	add(m.Author)
	add(m.Principal)
	for _, k := range m.Named {
		add(k)
	}
	for _, k := range m.Recipients {
		add(k)
	}
	return keys
}
