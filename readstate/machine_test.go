package readstate_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// machine keeps plain tables and changes every number in them through package readstate alone,
// as a store does. It plays the operations of the oracle, which says beforehand what lies
// outside the algebra: unknown scopes, rows out of reach, senseless operations.
type machine struct {
	now    int64 // milliseconds
	scopes map[model.ScopeID]*scope
	blocks map[member]map[member]bool // blocker, blocked
	broken error                      // the first contradiction the machine met in itself
}

type member = readstate.MemberKey

// scope is one log with its writers, rows and pairs.
type scope struct {
	machine  *machine
	id       model.ScopeID
	kind     readstate.ScopeType
	history  readstate.History
	archived bool
	retired  bool // merged into another session

	parent *scope
	root   readstate.Seq // in the parent, zero for none

	owner            member
	active, thinking bool

	latest   readstate.Seq
	head     readstate.Revision
	floor    readstate.Revision
	entries  []*entry // retained ones, ascending, dense
	removed  revisions
	everyone revisions
	writers  map[member]*readstate.Writer

	activities []*activity
	signalHead uint64

	rows    map[member]*readstate.Row
	pairs   map[member]map[member]*readstate.Pair // owner, blocked
	blocked map[member]*readstate.BlockedWriter   // while a pair refers to it
}

type entry struct {
	seq           readstate.Seq
	revision      readstate.Revision
	author        member
	principal     member
	authorRank    uint64
	principalRank uint64
	named         []member
	recipients    []member
	everyone      bool
	live          bool
	moved         bool // a tombstone whose message is elsewhere now
	expires       model.Seconds

	twin    *scope // of a broadcast reply
	twinSeq readstate.Seq
}

type activity struct {
	high       bool
	actor      member
	signalRank uint64 // of the scope, through this activity
	actorRank  uint64 // of the actor, zero for a low-signal one
	recipients []member
}

// revisions is a set of revisions in blocks.
type revisions map[uint64]*readstate.Bitmap

func (s revisions) block(r readstate.Revision) *readstate.Bitmap {
	b := s[readstate.BlockOf(r)]
	if b == nil {
		b = new(readstate.Bitmap)
		s[readstate.BlockOf(r)] = b
	}
	return b
}

// above counts what is marked above base, without looking at any revision.
func (s revisions) above(base readstate.Revision) uint64 {
	var n uint64
	for block, bits := range s {
		switch {
		case block > readstate.BlockOf(base):
			n += bits.Count()
		case block == readstate.BlockOf(base):
			n += bits.Count() - bits.CountThrough(base)
		}
	}
	return n
}

func newMachine() *machine {
	return &machine{
		scopes: map[model.ScopeID]*scope{},
		blocks: map[member]map[member]bool{},
	}
}

func (w *machine) addScope(id model.ScopeID, kind readstate.ScopeType) *scope {
	s := &scope{
		machine: w, id: id, kind: kind,
		removed: revisions{}, everyone: revisions{},
		writers: map[member]*readstate.Writer{},
		rows:    map[member]*readstate.Row{},
		pairs:   map[member]map[member]*readstate.Pair{},
		blocked: map[member]*readstate.BlockedWriter{},
	}
	w.scopes[id] = s
	return s
}

// fail remembers a contradiction; the history ends with it.
func (w *machine) fail(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

// must is fail for a call that the caller's duties make infallible.
func (w *machine) must(what string, err error) {
	if err != nil {
		w.fail("%s: %w", what, err)
	}
}

// retained returns the entry at q, nil when there is none.
func (s *scope) retained(q readstate.Seq) *entry {
	if len(s.entries) == 0 || q < s.entries[0].seq || q > s.latest {
		return nil
	}
	return s.entries[q-s.entries[0].seq]
}

// writer returns a member's ranks. It makes the record at the first entry or activity, and with
// it the pairs of those who block the member.
func (s *scope) writer(m member) *readstate.Writer {
	w := s.writers[m]
	if w == nil {
		w = &readstate.Writer{}
		s.writers[m] = w
		s.pairFirst(m)
	}
	return w
}

// written is writer without making a record.
func (s *scope) written(m member) readstate.Writer {
	if w := s.writers[m]; w != nil {
		return *w
	}
	return readstate.Writer{}
}

// ranks seeks a member's ranks at a revision: those of the last retained rows at or below it,
// else those of the floor.
func (s *scope) ranks(m member, at readstate.Revision) readstate.Ranks {
	w := s.written(m)
	out := readstate.Ranks{Author: w.AuthorAtFloor, Principal: w.PrincipalAtFloor}
	for _, e := range s.entries {
		if e.revision == 0 || e.revision > at {
			continue
		}
		if e.author == m {
			out.Author = e.authorRank
		}
		if e.principal == m {
			out.Principal = e.principalRank
		}
	}
	return out
}

// message is what the algebra sees of an entry.
func (e *entry) message() readstate.Message {
	return readstate.Message{Revision: e.revision, Everyone: e.everyone}
}

// role is what m is to an entry.
func (e *entry) role(m member) readstate.Role {
	return readstate.Role{
		Author: e.author == m, Principal: e.principal == m,
		Named: slices.Contains(e.named, m), Recipient: slices.Contains(e.recipients, m),
	}
}

// touched returns whom an entry concerns, each once.
func (e *entry) touched() []member {
	set := map[member]bool{e.author: true}
	if e.principal != 0 {
		set[e.principal] = true
	}
	for _, m := range e.named {
		set[m] = true
	}
	for _, m := range e.recipients {
		set[m] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// ground is where a member who joins now starts from.
func (s *scope) ground(m member) readstate.Ground {
	g := readstate.Ground{
		Head: s.head, Floor: s.floor, SignalHead: s.signalHead,
		LatestActivity: readstate.Seq(len(s.activities)), History: s.history, Writer: s.written(m),
	}
	if s.parent != nil {
		g.ParentEpoch = s.parent.rows[m].Epoch
	}
	return g
}

// row returns the row to work on, a new one when there is none; exists tells which.
func (s *scope) row(m member) (r *readstate.Row, exists bool) {
	if r = s.rows[m]; r != nil {
		return r, true
	}
	r = &readstate.Row{}
	s.rows[m] = r
	return r, false
}

// place moves a row's point to where its facts say.
func (s *scope) place(m member) {
	r := s.rows[m]
	s.moveTo(m, r.EffectivePoint(s.floor))
}

// moveTo carries out a move of a row's point, with everything that is kept at it.
func (s *scope) moveTo(m member, to readstate.Revision) {
	p := &s.rows[m].Point
	span := p.PlanMove(to, s.head)
	if !span.Empty() {
		next := *p
		err := next.Move(span, s.crossed(m, span), s.ranks(m, to))
		s.machine.must(fmt.Sprintf("move %d in %s", m, s.id), err)
		if span.AtHead {
			p.MoveToHead(s.head, s.written(m))
			if *p != next {
				s.machine.fail("at the head: %+v by the heads, %+v by the rows", *p, next)
			}
		}
		*p = next
	}
	s.repair(m)
}

// crossed counts the member's rows within a span.
func (s *scope) crossed(m member, span readstate.Span) readstate.Crossed {
	var c readstate.Crossed
	for _, e := range s.entries {
		if e.revision > span.Low && e.revision <= span.High {
			c.Add(s.kind, e.message(), e.role(m), e.live)
		}
	}
	return c
}
