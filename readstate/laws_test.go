package readstate_test

import (
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// laws checks on the present state what holds whatever was done. It leaves the state as it is;
// n chooses what is tried.
func (w *machine) laws(n int) error {
	for _, s := range w.scopes {
		for m, r := range s.rows {
			for _, law := range []func(*scope, member, int) error{
				staleReadsDoNothing, movesAreReversible,
			} {
				if err := law(s, m, n); err != nil {
					return fmt.Errorf("%d in %s: %w\nrow %+v", m, s.id, err, *r)
				}
			}
		}
	}
	return w.broken
}

// staleReadsDoNothing tries reads at and below the cursor that are not entitled to clear a mark.
func staleReadsDoNothing(s *scope, m member, n int) error {
	r := *s.rows[m]
	wrong := r.Manual.Version + 1
	for _, c := range []readstate.ReadCommand{
		{Revision: r.Read, Version: &wrong},
		{Revision: r.Read / 2, Version: &wrong, Trusted: true},
		{Revision: r.Read},
	} {
		after := r
		out, err := after.MarkRead(s.head, c)
		if err != nil || out != readstate.Unchanged || after != r {
			return fmt.Errorf("a stale read: %s, %w, %+v", out, err, after)
		}
	}
	after := r
	out, err := after.MarkActivityRead(r.Activity.Read, readstate.Seq(len(s.activities)),
		readstate.ActivityCrossed{Signal: 1, Actor: 1})
	if err != nil || out != readstate.Unchanged || after != r {
		return fmt.Errorf("a stale activity read: %s, %w, %+v", out, err, after)
	}
	return nil
}

// movesAreReversible moves a point to every place it could stand at and back again.
func movesAreReversible(s *scope, m member, n int) error {
	start := s.rows[m].Point
	if start.E < s.floor {
		return nil // there is no way back below the floor
	}
	to := s.floor + readstate.Revision(n)%(s.head-s.floor+1)
	point := start
	if err := s.carry(m, &point, to); err != nil {
		return err
	}
	if want := s.recount(m, to); point != want {
		return fmt.Errorf("moved to %+v, counted %+v", point, want)
	}
	if err := s.carry(m, &point, start.E); err != nil {
		return err
	}
	if point != start {
		return fmt.Errorf("to %d and back is %+v", to, point)
	}
	return nil
}

// carry moves a point that is not stored.
func (s *scope) carry(m member, p *readstate.Point, to readstate.Revision) error {
	span := p.PlanMove(to, s.head)
	if span.Up != (to >= p.E) || span.High-span.Low != max(to, p.E)-min(to, p.E) {
		return fmt.Errorf("from %d to %d the plan is %+v", p.E, to, span)
	}
	if span.AtHead {
		p.MoveToHead(s.head, s.written(m))
		return nil
	}
	return p.Move(span, s.crossed(m, span), s.ranks(m, to))
}
