package chaos

import (
	"slices"
	"time"
)

// seen is a row as a member is served it.
type seen struct {
	Type, Notification      string
	Archived                bool
	Unread, Attention       uint64
	Activity                uint64
	Manual, Shown           bool
	ShownUnread             uint64
	Head, Replies           uint64
	Latest                  string
	Read, Version, FromMark uint64
}

// board is everything that a member is served.
type board struct {
	HasUnread bool
	Badge     badge
	Scopes    map[string]seen
}

type badge struct {
	Messages      uint64 `json:"messages"`
	Conversations uint64 `json:"conversations"`
	Attention     uint64 `json:"attention"`
	Display       uint64 `json:"display"`
}

var (
	typeNames  = []string{1: "channel", 2: "dm", 3: "thread"}
	levelNames = []string{1: "all", 2: "mentions", 3: "none"}
)

// recount says what a member must be served, by looking at every message of every scope.
func (d *durable) recount(member int64, now time.Time) board {
	out := board{Scopes: map[string]seen{}}
	for _, s := range d.scopes {
		if row, ok := d.recountScope(member, s, now); ok {
			out.Scopes[s.id] = row
			if row.Shown {
				out.HasUnread = true
				out.Badge.Conversations++
				out.Badge.Messages += row.ShownUnread
				out.Badge.Attention += row.Attention
			}
		}
	}
	out.Badge.Display = []uint64{
		out.Badge.Messages, out.Badge.Conversations, out.Badge.Attention,
	}[d.members[member].badge]
	return out
}

// recountScope counts one scope; false when the member is not to see it.
func (d *durable) recountScope(member int64, s *scopeRow, now time.Time) (seen, bool) {
	st := d.states[cell{member, s.key}]
	if st == nil || !st.joined || !st.visible {
		return seen{}, false
	}
	level, archived := st.levelAt(now), s.archived
	if s.kind == 3 {
		up := d.states[cell{member, s.parent}]
		if up == nil || !up.joined || !up.visible || up.epoch != st.parentEpoch {
			return seen{}, false
		}
		archived = archived || d.scopes[s.parent].archived
		if level == 0 {
			level = up.levelAt(now)
		}
	}
	if level == 0 {
		level = 1
	}
	row := seen{
		Type: typeNames[s.kind], Notification: levelNames[level], Archived: archived,
		Manual: st.manual, Head: s.floor, Read: st.read, Version: st.version,
		FromMark: st.manualFrom,
	}
	for _, m := range s.messages {
		row.Head = max(row.Head, m.revision)
		if m.live {
			row.Latest = m.id
		}
		if s.kind == 3 && m.live && m.revision > 0 {
			row.Replies++
		}
		if !d.counts(member, s, st, m) {
			continue
		}
		row.Unread++
		if s.kind == 2 || m.everyone || slices.Contains(m.named, member) {
			row.Attention++
		}
	}
	if archived || level == 3 {
		return row, true
	}
	row.ShownUnread = row.Unread
	if level == 2 {
		row.ShownUnread = row.Attention
	}
	row.Shown = row.ShownUnread > 0 || st.manual
	return row, true
}

// counts says whether one message is unread for one member.
func (d *durable) counts(member int64, s *scopeRow, st *stateRow, m *messageRow) bool {
	switch {
	case !m.live, m.revision == 0, m.revision <= s.floor, m.revision < st.effective:
		return false
	case m.author == member, m.principal == member:
		return false
	case d.blocks[cell{member, m.author}]:
		return false
	case m.revision > st.read:
		return true
	}
	return st.manual && st.manualFrom > 0 && m.revision >= st.manualFrom
}

// levelAt is the level that the member chose here and that holds now; zero for none.
func (st *stateRow) levelAt(now time.Time) int {
	if st.until != 0 && now.UnixMilli() >= st.until {
		return 1
	}
	return st.level
}
