package intake

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// held is the tail of a scope's entries, as far as this process was told of them: all of those
// above low, up to the head. From it a member's point can be counted anew at any revision from
// low on.
type held struct {
	low      readstate.Revision
	entries  []message // ascending by revision
	lowSeq   readstate.Seq
	activity []act
}

type message struct {
	revision   readstate.Revision
	author     readstate.MemberKey
	principal  readstate.MemberKey
	named      []readstate.MemberKey
	recipients []readstate.MemberKey
	everyone   bool
	removed    bool
}

type act struct {
	seq        readstate.Seq
	actor      readstate.MemberKey
	high       bool
	recipients []readstate.MemberKey
}

func (m *message) role(k readstate.MemberKey) readstate.Role {
	return readstate.Role{
		Author: k == m.author, Principal: k == m.principal && k != m.author,
		Named: slices.Contains(m.named, k), Recipient: slices.Contains(m.recipients, k),
	}
}

func (h *held) add(m message, limit int) {
	h.entries = append(h.entries, m)
	if len(h.entries) > limit {
		h.low = h.entries[0].revision
		h.entries = slices.Delete(h.entries, 0, 1)
	}
}

// restart forgets everything: the scope goes on after head.
func (h *held) restart(head readstate.Revision) { h.low, h.entries = head, nil }

func (h *held) find(r readstate.Revision) *message {
	i, found := slices.BinarySearchFunc(h.entries, r, func(m message, r readstate.Revision) int {
		return int(int64(m.revision) - int64(r))
	})
	if !found {
		return nil
	}
	return &h.entries[i]
}

// trim forgets what lies at or below the floor.
func (h *held) trim(floor readstate.Revision) {
	h.low = max(h.low, floor)
	h.entries = slices.DeleteFunc(h.entries, func(m message) bool { return m.revision <= floor })
}

// point counts a member's point at e, given the heads of the member's ranks; false where e lies
// below what is held.
func (h *held) point(
	t readstate.ScopeType, k readstate.MemberKey, e readstate.Revision, w readstate.Writer,
) (readstate.Point, bool) {
	if e < h.low {
		return readstate.Point{}, false
	}
	p := readstate.Point{E: e, AuthorRank: w.AuthorHead, PrincipalRank: w.PrincipalHead}
	for i := range h.entries {
		m := &h.entries[i]
		if m.revision <= e {
			continue
		}
		role := m.role(k)
		if role.Author {
			p.AuthorRank--
		}
		if role.Principal {
			p.PrincipalRank--
		}
		var c readstate.Crossed
		c.Add(t, readstate.Message{Revision: m.revision, Everyone: m.everyone}, role, !m.removed)
		p.OwnRemoved += c.OwnRemoved
		p.OwnEveryone += c.OwnEveryone
		p.Direct += c.Direct
		p.Targets += c.Targets
	}
	return p, true
}

func (h *held) addActivity(a act, limit int) {
	h.activity = append(h.activity, a)
	if len(h.activity) > limit {
		h.lowSeq = h.activity[0].seq
		h.activity = slices.Delete(h.activity, 0, 1)
	}
}

// activityPoint is the same for activities.
func (h *held) activityPoint(
	t readstate.ScopeType, k readstate.MemberKey, q readstate.Seq,
	signals uint64, w readstate.Writer,
) (readstate.ActivityPoint, bool) {
	if q < h.lowSeq {
		return readstate.ActivityPoint{}, false
	}
	p := readstate.ActivityPoint{Read: q, SignalAt: signals, ActorAt: w.ActorHead}
	for i := range h.activity {
		a := &h.activity[i]
		if a.seq <= q || !a.high {
			continue
		}
		p.SignalAt--
		if a.actor == k {
			p.ActorAt--
		}
		p.PostActivity(t, true, slices.Contains(a.recipients, k), a.actor == k)
	}
	return p, true
}
