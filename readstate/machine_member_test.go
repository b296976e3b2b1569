package readstate_test

import (
	"errors"
	"slices"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

func (w *machine) create(op model.Op) (bool, error) {
	if w.scopes[op.Scope] != nil {
		return false, nil // the oracle has said that it is the same one
	}
	s := w.addScope(op.Scope, readstate.ScopeType(op.Type))
	if op.Shared {
		s.history = readstate.HistoryShared
	}
	switch op.Type {
	case model.Thread:
		s.parent = w.scopes[op.To]
		if op.Seq != 0 {
			root := s.parent.retained(readstate.Seq(op.Seq))
			s.root = root.seq
			s.followBefore(root.author)
			for _, m := range root.named {
				s.followBefore(m)
			}
		}
	case model.Session:
		s.owner = member(op.Member)
		s.join(s.owner, readstate.JoinCommand{})
	}
	return true, nil
}

// join makes m's row joined and carries out what that asks for.
func (s *scope) join(m member, c readstate.JoinCommand) (bool, error) {
	had := s.rows[m] != nil
	r, exists := s.row(m)
	res, err := r.Join(exists, s.ground(m), c)
	if err != nil {
		if !had {
			delete(s.rows, m)
		}
		return false, err
	}
	if res.To != r.EffectivePoint(s.floor) {
		s.machine.fail("join of %d in %s leads to %d, the row to %d",
			m, s.id, res.To, r.EffectivePoint(s.floor))
	}
	s.moveTo(m, res.To)
	return res.Outcome == readstate.Applied, nil
}

func (w *machine) joinOp(op model.Op) (bool, error) {
	var c readstate.JoinCommand
	if op.From > 0 {
		from := rev(op.From)
		c.Effective = &from
	}
	if op.Revision > 0 {
		read := rev(op.Revision)
		c.Read = &read
	}
	return w.scopes[op.Scope].join(member(op.Member), c)
}

func (w *machine) membership(op model.Op) (bool, error) {
	r := w.scopes[op.Scope].rows[member(op.Member)]
	before := *r
	switch op.Kind {
	case model.OpLeave:
		return r.Leave() == readstate.Applied, nil
	case model.OpShow:
		r.Visible = true
	case model.OpHide:
		r.Visible = false
	}
	return *r != before, nil
}

// inReach reports that a row is joined, in a thread for the parent row's present epoch.
func (s *scope) inReach(m member) bool {
	r := s.rows[m]
	if r == nil || !r.Joined || s.parent == nil {
		return r != nil && r.Joined
	}
	p := s.parent.rows[m]
	return p != nil && p.Joined && p.Epoch == r.ParentEpoch
}

// mayFollow reports that a message may make m follow the thread.
func (s *scope) mayFollow(m member) bool {
	p := s.parent.rows[m]
	if p == nil || !p.Joined {
		return false
	}
	r, exists := s.rows[m], s.rows[m] != nil
	if !exists {
		r = &readstate.Row{}
	}
	return r.FollowsByItself(exists, p.Epoch)
}

// followBefore makes m follow from the next revision on.
func (s *scope) followBefore(m member) {
	if !s.mayFollow(m) {
		return
	}
	g := s.ground(m)
	r, exists := s.row(m)
	r.FollowBefore(exists, g)
	s.repair(m)
}

// followMessage makes those follow whom a reply concerns, before it counts.
func (s *scope) followMessage(e *entry) {
	if s.parent == nil {
		return
	}
	if root := s.parent.retained(s.root); root != nil && !root.moved {
		s.followBefore(root.author)
	}
	s.followBefore(e.author)
	for _, m := range e.named {
		s.followBefore(m)
	}
}

// followEdit makes those follow whom an edit newly names, from the edited reply on.
func (s *scope) followEdit(e *entry, named []member) {
	if s.parent == nil {
		return
	}
	for _, m := range named {
		if !slices.Contains(e.named, m) && s.mayFollow(m) {
			from := e.revision
			_, err := s.join(m, readstate.JoinCommand{Effective: &from})
			s.machine.must("follow by an edit", err)
		}
	}
}

func (w *machine) follow(op model.Op) (bool, error) {
	s, m := w.scopes[op.Scope], member(op.Member)
	changed := false
	if !s.inReach(m) {
		joined, err := s.join(m, readstate.JoinCommand{})
		w.must("follow", err)
		changed = joined
	}
	out := s.rows[m].SetFollow(op.Kind == model.OpFollow)
	return changed || out == readstate.Applied, nil
}

func (w *machine) setLevel(op model.Op) (bool, error) {
	r := w.scopes[op.Scope].rows[member(op.Member)]
	before := r.Notification
	r.Notification = readstate.Notification{
		Level: readstate.Level(op.Level), Until: milliseconds(op.Until),
	}
	return r.Notification != before, nil
}

func (w *machine) read(op model.Op) (bool, error) {
	s, m := w.scopes[op.Scope], member(op.Member)
	c := readstate.ReadCommand{Revision: rev(op.Revision), Trusted: op.Service}
	if op.Version != model.NoVersion {
		version := uint64(op.Version)
		c.Version = &version
	}
	out, err := s.rows[m].MarkRead(s.head, c)
	if err != nil || out == readstate.Unchanged {
		return false, err
	}
	s.place(m)
	s.settle()
	return true, nil
}

// readAll is one read per item, each with a verdict of its own.
func (w *machine) readAll(op model.Op, verdict model.Outcome) (bool, error) {
	changed := false
	for i, it := range op.Items {
		want := verdict.Items[i]
		if outside(want.Err) {
			continue
		}
		one, err := w.read(model.Op{
			Kind: model.OpRead, Scope: it.Scope, Member: op.Member,
			Revision: it.Revision, Version: it.Version, Service: op.Service,
		})
		if err := agree(one, err, want.Changed, want.Err); err != nil {
			return false, err
		}
		changed = changed || one
	}
	return changed, nil
}

func (w *machine) markUnread(op model.Op) (bool, error) {
	s, m := w.scopes[op.Scope], member(op.Member)
	c := readstate.UnreadCommand{From: rev(op.From)}
	if op.Version != model.NoVersion {
		version := uint64(op.Version)
		c.Version = &version
	}
	out, err := s.rows[m].MarkUnread(s.head, c)
	if err != nil || out == readstate.Unchanged {
		return false, err
	}
	s.place(m)
	s.settle()
	return true, nil
}

func (w *machine) recordActivity(op model.Op) (bool, error) {
	s := w.scopes[op.Scope]
	a := &activity{actor: member(op.Member), high: !op.LowSignal, recipients: keys(op.Recipients)}
	s.activities = append(s.activities, a)
	if !a.high {
		a.signalRank = s.signalHead
		return true, nil
	}
	writer := s.writer(a.actor)
	if !s.kind.Targeted() {
		s.signalHead++
		writer.ActorHead++
		a.actorRank = writer.ActorHead
	}
	a.signalRank = s.signalHead
	for m, r := range s.rows {
		r.Activity.PostActivity(s.kind, a.high, slices.Contains(a.recipients, m), a.actor == m)
	}
	s.pairActivity(a)
	return true, nil
}

func (w *machine) readActivity(op model.Op) (bool, error) {
	s, m := w.scopes[op.Scope], member(op.Member)
	r := s.rows[m]
	to := readstate.Seq(op.Activity)
	c := readstate.ActivityCrossed{Signal: s.signalAt(to), Actor: s.actorAt(m, to)}
	for i, a := range s.activities {
		q := readstate.Seq(i + 1)
		if q > r.Activity.Read && q <= to && s.delivered(a, m) {
			c.Targets++
		}
	}
	out, err := r.MarkActivityRead(to, readstate.Seq(len(s.activities)), c)
	if err != nil {
		return false, err
	}
	s.repair(m)
	return out == readstate.Applied, nil
}

// delivered reports an activity of a task that counts for m.
func (s *scope) delivered(a *activity, m member) bool {
	return s.kind.Targeted() && a.high && a.actor != m && slices.Contains(a.recipients, m)
}

// signalAt seeks the signal rank at q.
func (s *scope) signalAt(q readstate.Seq) uint64 {
	if q == 0 || int(q) > len(s.activities) {
		return 0
	}
	return s.activities[q-1].signalRank
}

// actorAt seeks a member's actor rank at q.
func (s *scope) actorAt(m member, q readstate.Seq) uint64 {
	var rank uint64
	for i, a := range s.activities {
		if readstate.Seq(i+1) <= q && a.actor == m && a.actorRank > 0 {
			rank = a.actorRank
		}
	}
	return rank
}

// outside reports a refusal that the algebra is never asked about.
func outside(err error) bool {
	for _, target := range []error{
		model.ErrInvalid, model.ErrNotFound, model.ErrMismatch, model.ErrReplaced,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
