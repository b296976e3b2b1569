package facts

import "github.com/tidemark-im/tidemark/readstate"

type messageName struct {
	scope readstate.ScopeKey
	id    string
}

// messageSet is the working set of messages of one group: those it appends, and those it loaded
// to change. Nothing of it outlives the group.
type messageSet struct {
	rows    map[Place]*MessageRow
	byID    map[messageName]Place // the zero place where the store has none
	byOp    map[OpKey]Place
	byLocal map[messageName]Place
	added   []Place
	changed []Place
	isNew   map[Place]bool // not yet written
	isDirty map[Place]bool
}

func newMessageSet() *messageSet {
	s := &messageSet{}
	s.reset()
	return s
}

func (s *messageSet) reset() {
	if s.rows != nil && len(s.rows)+len(s.byID) == 0 {
		return
	}
	*s = messageSet{
		rows: map[Place]*MessageRow{}, byID: map[messageName]Place{}, byOp: map[OpKey]Place{},
		byLocal: map[messageName]Place{}, isNew: map[Place]bool{}, isDirty: map[Place]bool{},
	}
}

// loaded takes a row of the store in, unless the group knows a newer one, and returns the one
// that holds.
func (s *messageSet) loaded(row MessageRow) *MessageRow {
	if known, ok := s.rows[row.Place]; ok {
		return known
	}
	return s.index(&row)
}

func (s *messageSet) index(row *MessageRow) *MessageRow {
	s.rows[row.Place] = row
	s.byID[messageName{row.Scope, row.ID}] = row.Place
	if row.Op.Actor != 0 {
		s.byOp[row.Op] = row.Place
	}
	if row.LocalID != "" {
		s.byLocal[messageName{row.Scope, row.LocalID}] = row.Place
	}
	return row
}

// absent remembers that the store was asked for a message in vain.
func (s *messageSet) absent(name messageName) {
	if _, ok := s.byID[name]; !ok {
		s.byID[name] = Place{}
	}
}

// add stages a new row.
func (s *messageSet) add(row MessageRow) *MessageRow {
	s.added = append(s.added, row.Place)
	s.isNew[row.Place] = true
	return s.index(&row)
}

// change stages a row whose fields the caller has just changed.
func (s *messageSet) change(row *MessageRow) {
	if s.isNew[row.Place] || s.isDirty[row.Place] {
		return
	}
	s.isDirty[row.Place] = true
	s.changed = append(s.changed, row.Place)
}

// rename gives a row another id; nothing is found by the old one any more.
func (s *messageSet) rename(row *MessageRow, id string) {
	delete(s.byID, messageName{row.Scope, row.ID})
	row.ID = id
	s.byID[messageName{row.Scope, id}] = row.Place
	s.change(row)
}

// take moves what is staged into the changes of a flush.
func (s *messageSet) take(c *Changes) {
	for _, p := range s.added {
		c.NewMessages = append(c.NewMessages, *s.rows[p])
	}
	for _, p := range s.changed {
		c.Messages = append(c.Messages, *s.rows[p])
	}
	s.added, s.changed = s.added[:0], s.changed[:0]
	clear(s.isNew)
	clear(s.isDirty)
}

// forgetThrough drops what a trim has deleted from the store. Nothing of it is staged any more.
func (s *messageSet) forgetThrough(scope readstate.ScopeKey, seq readstate.Seq) {
	for p, m := range s.rows {
		if p.Scope != scope || p.Seq > seq {
			continue
		}
		delete(s.rows, p)
		delete(s.byID, messageName{scope, m.ID})
		delete(s.byOp, m.Op)
		delete(s.byLocal, messageName{scope, m.LocalID})
	}
}
