package model

import (
	"maps"
	"slices"
)

// World is one workspace: every entry and every fact there ever was. The zero value
// is not usable; make one with [New].
type World struct {
	scopes map[ScopeID]*scope
	blocks map[MemberID]map[MemberID]bool // blocker -> blocked
	clock  Seconds
	posted message // the newest
}

// scope is a log with the rows of those who ever had one.
type scope struct {
	id       ScopeID
	kind     ScopeKind
	shared   bool
	archived bool

	planned       bool     // a task that finds its recipients by itself
	assignee      MemberID // of such a task; 0: nobody
	status, title Word

	parent ScopeID // of a thread
	root   Seq     // the thread's root in the parent; 0: none

	owner            MemberID // of a session
	active, thinking bool
	replacedBy       ScopeID // a merged session's destination

	entries    []*entry // by seq, never shortened
	activities []*activity
	rows       map[MemberID]*row
}

// message tells messages apart.
type message int

// entry is one message in one log. It is never taken out of the log.
type entry struct {
	message    message // the same in twins and after a move
	seq        Seq
	revision   Revision // 0: not readable, or baseline
	author     MemberID
	principal  MemberID // 0: none
	mentions   []MemberID
	recipients []MemberID
	everyone   bool
	live       bool
	trimmed    bool
	moved      bool    // a tombstone whose message is elsewhere now
	expires    Seconds // 0: never

	twinScope ScopeID // the other entry of a broadcast reply
	twinSeq   Seq
}

type activity struct {
	seq        ActivitySeq
	actor      MemberID
	low        bool
	recipients []MemberID
	revision   Revision // of the message that it goes with; 0: none
}

// row is what is recorded of one member in one scope.
type row struct {
	joined, visible bool
	epoch           int
	parentEpoch     int // the parent row's epoch when this epoch began; threads only
	effective       Revision
	read            Revision
	manual          bool
	manualFrom      Revision // X; 0: none
	version         Version
	level           Level
	until           Seconds
	follow          Follow
	activityRead    ActivitySeq
}

// New returns an empty world at second 0.
func New() *World {
	return &World{
		scopes: map[ScopeID]*scope{},
		blocks: map[MemberID]map[MemberID]bool{},
	}
}

// Clone returns an independent copy.
func (w *World) Clone() *World {
	c := New()
	c.clock, c.posted = w.clock, w.posted
	for id, s := range w.scopes {
		c.scopes[id] = s.clone()
	}
	for id, set := range w.blocks {
		c.blocks[id] = maps.Clone(set)
	}
	return c
}

func (s *scope) clone() *scope {
	c := *s
	c.entries = slices.Clone(s.entries)
	for i, e := range c.entries {
		ec := *e // name lists are replaced, never changed in place
		c.entries[i] = &ec
	}
	c.activities = slices.Clone(s.activities) // activities never change
	c.rows = make(map[MemberID]*row, len(s.rows))
	for m, r := range s.rows {
		rc := *r
		c.rows[m] = &rc
	}
	return &c
}

// head is the newest revision: found by looking.
func (s *scope) head() Revision {
	for _, e := range slices.Backward(s.entries) {
		if e.revision > 0 {
			return e.revision
		}
	}
	return 0
}

func (s *scope) latestSeq() Seq { return Seq(len(s.entries)) }

func (s *scope) latestActivity() ActivitySeq { return ActivitySeq(len(s.activities)) }

// entry returns the entry at q, nil when there is none or retention took it.
func (s *scope) entry(q Seq) *entry {
	if q < 1 || q > s.latestSeq() || s.entries[q-1].trimmed {
		return nil
	}
	return s.entries[q-1]
}

// Clock returns the world's present second.
func (w *World) Clock() Seconds { return w.clock }

// ScopeIDs returns the ids of all scopes in order, merged sessions included.
func (w *World) ScopeIDs() []ScopeID { return slices.Sorted(maps.Keys(w.scopes)) }

// MemberIDs returns, in order, the members who have or had a row in some scope.
func (w *World) MemberIDs() []MemberID {
	seen := map[MemberID]bool{}
	for _, s := range w.scopes {
		for m := range s.rows {
			seen[m] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// RowMembers returns, in order, the members who have or had a row in the scope.
func (w *World) RowMembers(id ScopeID) []MemberID {
	s := w.scopes[id]
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.rows))
}

// Blocks returns whom the member blocks, in order.
func (w *World) Blocks(m MemberID) []MemberID { return slices.Sorted(maps.Keys(w.blocks[m])) }

// ScopeInfo is what is recorded of a scope.
type ScopeInfo struct {
	Kind             ScopeKind
	Shared, Archived bool
	Planned          bool     // a task that finds its recipients by itself
	Assignee         MemberID // of such a task; 0: nobody
	Status, Title    Word     // likewise
	Parent           ScopeID  // of a thread
	Root             Seq      // of a thread, in its parent; 0: none
	Owner            MemberID
	Active, Thinking bool
	ReplacedBy       ScopeID // 0 unless merged away

	LatestSeq      Seq
	Head           Revision
	Floor          Revision // the newest trimmed revision; nothing at or below it counts
	LatestActivity ActivitySeq
}

// Scope returns the facts of a scope; false when there is none.
func (w *World) Scope(id ScopeID) (ScopeInfo, bool) {
	s := w.scopes[id]
	if s == nil {
		return ScopeInfo{}, false
	}
	info := ScopeInfo{
		Kind: s.kind, Shared: s.shared, Archived: s.archived,
		Planned: s.planned, Assignee: s.assignee, Status: s.status, Title: s.title,
		Parent: s.parent, Root: s.root, Owner: s.owner,
		Active: s.active, Thinking: s.thinking, ReplacedBy: s.replacedBy,
		LatestSeq: s.latestSeq(), Head: s.head(), LatestActivity: s.latestActivity(),
	}
	for _, e := range s.entries {
		if e.trimmed && e.revision > 0 {
			info.Floor = e.revision
		}
	}
	return info, true
}

// EntryInfo is what is recorded of an entry. Its lists belong to the world.
type EntryInfo struct {
	Seq                  Seq
	Revision             Revision // 0: none
	Author, Principal    MemberID
	Mentions, Recipients []MemberID
	Everyone             bool
	Live, Trimmed        bool
	Expires              Seconds
	TwinScope            ScopeID // of a broadcast reply; 0: none
	TwinSeq              Seq
}

// Entries returns the scope's whole log in order, tombstones and trimmed entries
// included.
func (w *World) Entries(id ScopeID) []EntryInfo {
	s := w.scopes[id]
	if s == nil {
		return nil
	}
	out := make([]EntryInfo, len(s.entries))
	for i, e := range s.entries {
		out[i] = EntryInfo{
			Seq: e.seq, Revision: e.revision, Author: e.author, Principal: e.principal,
			Mentions: e.mentions, Recipients: e.recipients, Everyone: e.everyone,
			Live: e.live, Trimmed: e.trimmed, Expires: e.expires,
			TwinScope: e.twinScope, TwinSeq: e.twinSeq,
		}
	}
	return out
}

// RowInfo is what is recorded of one member in one scope.
type RowInfo struct {
	Joined, Visible    bool
	Epoch, ParentEpoch int
	Effective          Revision // the first revision that may count
	Read               Revision // inclusive
	Manual             bool
	ManualFrom         Revision // 0: none
	Version            Version
	Level              Level // as stored
	Until              Seconds
	Follow             Follow
	ActivityRead       ActivitySeq // inclusive
}

// Row returns the member's row in the scope, also when it is left, hidden or of an
// old epoch; false when there never was one.
func (w *World) Row(m MemberID, id ScopeID) (RowInfo, bool) {
	s := w.scopes[id]
	if s == nil || s.rows[m] == nil {
		return RowInfo{}, false
	}
	r := s.rows[m]
	return RowInfo{
		Joined: r.joined, Visible: r.visible, Epoch: r.epoch, ParentEpoch: r.parentEpoch,
		Effective: r.effective, Read: r.read, Manual: r.manual, ManualFrom: r.manualFrom,
		Version: r.version, Level: r.level, Until: r.until, Follow: r.follow,
		ActivityRead: r.activityRead,
	}, true
}

// ActivityInfo is what is recorded of an activity. Its list belongs to the world.
type ActivityInfo struct {
	Seq        ActivitySeq
	Actor      MemberID
	Low        bool
	Recipients []MemberID
	Revision   Revision // of the message that it goes with; 0: none
}

// Activities returns all activities of the scope in order.
func (w *World) Activities(id ScopeID) []ActivityInfo {
	s := w.scopes[id]
	if s == nil {
		return nil
	}
	out := make([]ActivityInfo, len(s.activities))
	for i, a := range s.activities {
		out[i] = ActivityInfo{
			Seq: a.seq, Actor: a.actor, Low: a.low, Recipients: a.recipients, Revision: a.revision,
		}
	}
	return out
}
