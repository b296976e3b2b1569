package chaos

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// register is one setting with the values it may have: the last acknowledged one, or one that was
// sent after it and never answered.
type register[V comparable] struct {
	value V
	known bool
	open  []V
}

func (r *register[V]) note(a *act, v V) {
	if a.unknown() {
		r.open = append(r.open, v)
		return
	}
	r.value, r.known, r.open = v, true, nil
}

func (r *register[V]) allows(v V) bool {
	return !r.known || v == r.value || slices.Contains(r.open, v)
}

// cursor is what is known of a member's read state in a scope. Nobody but its owner moves it.
type cursor struct {
	low, high uint64
	mark      readState
	known     bool
	loose     bool // a new epoch may have cleared the mark
	open      *act // of unknown fate, after the last answer
}

// choices is what the log says about the settings of one workspace.
type choices struct {
	parents  map[string]string
	joined   map[placeOf]*register[bool]
	visible  map[placeOf]*register[bool]
	level    map[placeOf]*register[int]
	follow   map[placeOf]*register[int]
	block    map[placeOf]*register[bool]
	archived map[string]*register[bool]
	display  map[string]*register[int]
	cursors  map[placeOf]*cursor
}

// choicesOf reads the log of one workspace.
func choicesOf(j *journal, w *world) *choices {
	c := &choices{
		parents: w.parents, joined: map[placeOf]*register[bool]{},
		visible: map[placeOf]*register[bool]{}, level: map[placeOf]*register[int]{},
		follow: map[placeOf]*register[int]{}, block: map[placeOf]*register[bool]{},
		archived: map[string]*register[bool]{}, display: map[string]*register[int]{},
		cursors: map[placeOf]*cursor{},
	}
	j.each(func(a *act) {
		if a.Workspace != w.name {
			return
		}
		if a.applied() || a.unknown() {
			c.note(a)
		}
		if a.Answer.ReadState != nil { // a conflict says what is in force, too
			c.noteState(a)
		}
	})
	return c
}

func at[K comparable, V any](m map[K]*V, k K) *V {
	if m[k] == nil {
		m[k] = new(V)
	}
	return m[k]
}

var levelNumbers = map[string]int{"inherit": 0, "all": 1, "mentions": 2, "none": 3}

var displayNumbers = map[string]int{"messages": 0, "conversations": 1, "attention": 2}

func (c *choices) note(a *act) {
	here := placeOf{a.Member, a.Scope}
	switch a.Kind {
	case join:
		c.enter(a)
	case leave:
		at(c.joined, here).note(a, false)
	case level:
		c.enter(a)
		at(c.level, here).note(a, levelNumbers[a.Level])
	case visible:
		c.enter(a)
		at(c.visible, here).note(a, a.On)
	case follow:
		following, level := 2, levelNumbers["mentions"]
		if a.On {
			following, level = 1, levelNumbers["all"]
		}
		at(c.follow, here).note(a, following)
		at(c.level, here).note(a, level)
	case block:
		at(c.block, placeOf{a.Member, a.Other}).note(a, a.On)
	case archive:
		at(c.archived, a.Scope).note(a, a.On)
	case display:
		at(c.display, a.Member).note(a, displayNumbers[a.Level])
	case read, markUnread, post:
		c.noteMove(a)
	}
}

// enter notes that a member joins, which may begin a new epoch here and in the threads below.
func (c *choices) enter(a *act) {
	here := placeOf{a.Member, a.Scope}
	if c.parents[a.Scope] != "" {
		return // only a level was set: a thread is not joined
	}
	r := at(c.joined, here)
	stays := r.known && r.value && len(r.open) == 0
	r.note(a, true)
	if a.Kind == join && a.Revision > 0 {
		cur := at(c.cursors, here)
		cur.low = min(cur.low, a.Revision-1)
	}
	if stays {
		return
	}
	at(c.cursors, here).loose = true
	for thread, parent := range c.parents {
		if parent == a.Scope {
			cur := at(c.cursors, placeOf{a.Member, thread})
			cur.loose, cur.low = true, 0
		}
	}
}

// noteMove notes that a cursor may move.
func (c *choices) noteMove(a *act) {
	cur := at(c.cursors, placeOf{a.Member, a.Scope})
	if a.Kind != markUnread {
		cur.high = max(cur.high, a.Revision)
	}
	if a.applied() && a.Kind == read && a.Answer.ReadState == nil {
		cur.loose = true // read below its channel: the answer did not say what became of a mark
	}
	if a.unknown() && a.Kind != post {
		cur.open = a
		if len(a.Messages) > 0 {
			cur.high = math.MaxUint64 // the server finds out how far
		}
	}
}

func (c *choices) noteState(a *act) {
	s := *a.Answer.ReadState
	*at(c.cursors, placeOf{a.Member, a.Scope}) = cursor{
		low: s.ReadRevision, high: s.ReadRevision, mark: s, known: true,
	}
}

// check holds the rows of a database against the log.
func (c *choices) check(d *durable) []string {
	var out []string
	hold := func(ok bool, what string, key any, reg, got any) {
		if !ok {
			out = append(out, fmt.Sprintf("%s of %v: acknowledged %+v, found %v", what, key, reg, got))
		}
	}
	for k, r := range c.joined {
		st := d.state(k)
		hold(r.allows(st != nil && st.joined), "membership", k, r, st)
	}
	for k, r := range c.visible {
		st := d.state(k)
		hold(st == nil && !r.known || st != nil && r.allows(st.visible), "visibility", k, r, st)
	}
	for k, r := range c.level {
		st := d.state(k)
		hold(st == nil && !r.known || st != nil && r.allows(st.level), "level", k, r, st)
	}
	for k, r := range c.follow {
		st := d.state(k)
		hold(st == nil && !r.known || st != nil && r.allows(st.followed), "follow", k, r, st)
	}
	for k, r := range c.block {
		got := d.blocks[cell{d.memberKeys[k.member], d.memberKeys[k.scope]}]
		hold(r.allows(got), "block", k, r, got)
	}
	for k, r := range c.archived {
		hold(r.allows(d.scope(k).archived), "archive flag", k, r, d.scope(k).archived)
	}
	for k, r := range c.display {
		got := d.members[d.memberKeys[k]].badge
		hold(r.allows(got), "badge", k, r, got)
	}
	for k, cur := range c.cursors {
		st := d.state(k)
		if cur.known {
			hold(st != nil && cur.allows(st), "read state", k, *cur, st)
		}
	}
	slices.Sort(out)
	return out
}

// allows reports that a stored row is one that the answers lead to.
func (c *cursor) allows(st *stateRow) bool {
	if st.read < c.low || st.read > c.high {
		return false
	}
	is := readState{c.mark.ReadRevision, st.manual, st.version, st.manualFrom}
	if c.loose || is == c.mark {
		return true
	}
	if c.open == nil || is.Version != c.mark.Version+1 {
		return false
	}
	if c.open.Kind == read {
		return !is.ManualUnread && is.FromRevision == 0
	}
	return is.ManualUnread && is.FromRevision == c.open.Revision
}

// tally counts what a log holds, for the report.
func (j *journal) tally() string {
	counts := map[kind]int{}
	j.each(func(a *act) { counts[a.Kind]++ })
	out := ""
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		out += fmt.Sprintf(" %s %d,", k, counts[k])
	}
	return out
}
