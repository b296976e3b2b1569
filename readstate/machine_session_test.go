package readstate_test

import (
	"fmt"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// settle is what every operation on a session ends with.
func (s *scope) settle() {
	r := s.rows[s.owner]
	if r == nil {
		return
	}
	terms := s.terms(s.owner)
	unread, err := terms.Unread()
	s.machine.must("settle", err)
	if r.Settle(s.kind, s.head, unread) {
		s.place(s.owner)
	}
}

func (w *machine) runState(op model.Op) (bool, error) {
	s := w.scopes[op.Scope]
	changed := s.active != op.Active || s.thinking != op.Thinking
	s.active, s.thinking = op.Active, op.Thinking
	return changed, nil
}

// merge appends a session to another and retires it.
func (w *machine) merge(op model.Op) (bool, error) {
	from, to := w.scopes[op.Scope], w.scopes[op.To]
	source, target := from.rows[from.owner], to.rows[to.owner]
	sum := from.unread(from.owner) + to.unread(to.owner)
	m := readstate.MergeMap{
		SourceE: source.Point.Base(from.floor), DestinationHead: to.head,
	}
	for _, e := range from.entries {
		n := *e
		to.latest++
		n.seq, n.revision = to.latest, 0
		to.entries = append(to.entries, &n)
		want, counts := m.Revision(e.revision)
		if !counts {
			continue
		}
		to.rank(&n)
		if n.revision != want {
			return false, fmt.Errorf("entry %d arrives at %d, mapped to %d", e.seq, n.revision, want)
		}
		to.arrive(&n)
	}
	target.Manual = readstate.MergeManual(source.Manual, target.Manual, m)
	to.place(to.owner)
	from.retired = true
	from.rows = map[member]*readstate.Row{}
	from.pairs = nil
	if got := to.unread(to.owner); got != sum {
		return false, fmt.Errorf("merged %d unread into %d", sum, got)
	}
	to.settle()
	return true, nil
}

// arrive counts an entry that comes with a merge, removed or not: one that was removed there is
// posted and removed here.
func (s *scope) arrive(e *entry) {
	live := e.live
	e.live = true
	if e.everyone {
		s.everyone.block(e.revision).Set(e.revision)
	}
	for _, m := range e.touched() {
		if r := s.rows[m]; r != nil {
			r.Point.Post(s.kind, e.message(), e.role(m))
		}
	}
	s.pairPost(e)
	if !live {
		s.bury(e)
	}
}

// fork makes a session with the live entries of another as history that nobody has to read.
func (w *machine) fork(op model.Op) (bool, error) {
	from := w.scopes[op.Scope]
	to := w.addScope(op.To, readstate.Session)
	to.owner = from.owner
	_, err := to.join(to.owner, readstate.JoinCommand{})
	w.must("fork", err)
	for _, e := range from.entries {
		if e.live {
			n := *e
			n.seq, n.revision = to.latest+1, 0
			to.latest++
			to.entries = append(to.entries, &n)
		}
	}
	return true, nil
}
