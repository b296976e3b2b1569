package model

import (
	"fmt"
	"slices"
)

// Reason is the verdict over one entry for one member. Counts is the only one that
// adds to unread.
type Reason uint8

// The verdicts, in the order in which they are looked for.
const (
	Counts        Reason = iota
	NotReadable          // has no revision
	Trimmed              // at or below the retention floor
	Removed              // a tombstone
	BeforeJoin           // below the effective revision
	AlreadyRead          // below or at the cursor, and no manual mark reaches down to it
	Own                  // written by the member
	OnBehalf             // written for the member
	NotDelivered         // a task's entry for others
	AuthorBlocked        // the member blocks the author
)

var reasonNames = []string{
	"counts", "not-readable", "trimmed", "removed", "before-join", "already-read",
	"own", "on-behalf", "not-delivered", "author-blocked",
}

// String returns a word for the verdict.
func (r Reason) String() string { return nameOf(reasonNames, int(r)) }

// reaches reports whether the row starts counting at or before the entry.
func (r *row) reaches(e *entry) bool {
	if e.trimmed || e.revision < r.effective {
		return false
	}
	return e.revision > r.read || r.manual && r.manualFrom > 0 && e.revision >= r.manualFrom
}

// verdict says whether the entry is unread for the member, and why not.
func (w *World) verdict(s *scope, m MemberID, r *row, e *entry) Reason {
	switch {
	case e.revision == 0:
		return NotReadable
	case e.trimmed:
		return Trimmed
	case !e.live:
		return Removed
	case e.revision < r.effective:
		return BeforeJoin
	case !r.reaches(e):
		return AlreadyRead
	case s.kind != Session && e.author == m:
		return Own
	case s.kind != Session && e.principal == m:
		return OnBehalf
	case s.kind == Task && !slices.Contains(e.recipients, m):
		return NotDelivered
	case w.blocks[m][e.author]:
		return AuthorBlocked
	}
	return Counts
}

// directed reports whether an entry that counts is directed at the member.
func directed(s *scope, m MemberID, e *entry) bool {
	return s.kind == DM || e.everyone || slices.Contains(e.mentions, m)
}

// signals reports whether the activity is unread for the member.
func (w *World) signals(s *scope, m MemberID, r *row, a *activity) bool {
	switch {
	case a.low, a.seq <= r.activityRead, a.actor == m, w.blocks[m][a.actor]:
		return false
	}
	return s.kind != Task || slices.Contains(a.recipients, m)
}

// Values is everything that is served about one member in one scope. Two values
// are equal when == says so. The zero value is that of a row that never was.
type Values struct {
	Exists   bool // a row was made once; the numbers below are kept up while it is left
	Present  bool // the member has this row: joined and visible, in a thread also in the parent
	Archived bool // the scope or the thread's parent is archived
	Counted  bool // present and not archived: takes part in totals

	Unread    int
	Attention int
	Activity  int
	Level     Level // now: inherited, and ended, levels resolved; never Inherit

	Manual       bool
	ManualFrom   Revision // X; 0: none
	Version      Version
	Read         Revision
	ActivityRead ActivitySeq
	Head         Revision

	Shown       bool
	ShownUnread int
}

// String prints the numbers on one line, for diffs.
func (v Values) String() string {
	return fmt.Sprintf("exists=%t present=%t archived=%t counted=%t unread=%d attention=%d "+
		"activity=%d level=%s manual=%t from=%d v=%d read=%d actread=%d head=%d shown=%t "+
		"shownunread=%d", v.Exists, v.Present, v.Archived, v.Counted, v.Unread, v.Attention,
		v.Activity, v.Level, v.Manual, v.ManualFrom, v.Version, v.Read, v.ActivityRead, v.Head,
		v.Shown, v.ShownUnread)
}

// Values computes the member's values in the scope by looking at every entry and
// every activity.
func (w *World) Values(m MemberID, id ScopeID) Values {
	s := w.scopes[id]
	if s == nil || s.rows[m] == nil {
		return Values{}
	}
	r := s.rows[m]
	v := Values{
		Exists: true, Present: w.present(s, m), Archived: w.archivedNow(s),
		Level: w.levelNow(s, m), Manual: r.manual, ManualFrom: r.manualFrom,
		Version: r.version, Read: r.read, ActivityRead: r.activityRead, Head: s.head(),
	}
	v.Counted = v.Present && !v.Archived
	for _, e := range s.entries {
		if w.verdict(s, m, r, e) != Counts {
			continue
		}
		v.Unread++
		if directed(s, m, e) {
			v.Attention++
		}
	}
	for _, a := range s.activities {
		if w.signals(s, m, r, a) {
			v.Activity++
		}
	}
	if v.Counted {
		v.ShownUnread = contribution(s, v)
		signal := v.Activity > 0 && v.Level == All
		v.Shown = v.Manual && v.Level != None || v.ShownUnread > 0 || signal
	}
	return v
}

// contribution is what the scope adds to totals at the row's level.
func contribution(s *scope, v Values) int {
	switch {
	case s.kind == Session && s.active && s.thinking:
		return 0
	case v.Level == All:
		return v.Unread
	case v.Level == Mentions:
		return v.Attention
	}
	return 0
}

func (w *World) archivedNow(s *scope) bool {
	return s.archived || s.kind == Thread && w.scopes[s.parent].archived
}

// levelNow resolves ends and inheritance.
func (w *World) levelNow(s *scope, m MemberID) Level {
	r := s.rows[m]
	switch {
	case r == nil, r.until != 0 && w.clock >= r.until:
		return All
	case r.level != Inherit:
		return r.level
	case s.kind == Thread:
		return w.levelNow(w.scopes[s.parent], m)
	}
	return All
}

// Badge is the fold over the scopes that a member is shown.
type Badge struct {
	Messages      int // sum of ShownUnread
	Conversations int // number of shown scopes
	Attention     int // sum of raw attention
}

// Badge folds all scopes of the member.
func (w *World) Badge(m MemberID) Badge {
	var b Badge
	for _, id := range w.ScopeIDs() {
		if v := w.Values(m, id); v.Shown {
			b.Messages += v.ShownUnread
			b.Conversations++
			b.Attention += v.Attention
		}
	}
	return b
}

// HasUnread reports whether any scope is shown to the member.
func (w *World) HasUnread(m MemberID) bool {
	for _, id := range w.ScopeIDs() {
		if w.Values(m, id).Shown {
			return true
		}
	}
	return false
}
