package intake

import (
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// member applies an event that concerns one member's row.
func (s *space) member(sc *scope, ev Event) {
	switch ev := ev.(type) {
	case ReadCursorAdvanced:
		s.cursor(sc, ev)
	case ActivityReadCursorAdvanced:
		s.activityCursor(sc, ev)
	case ManualUnreadSet:
		s.change(sc, ev.Member, ev.Generation, manual, func(r *readstate.Row, x *change) {
			if r.Manual.Set && r.Manual.From == ev.From {
				x.same = true
				return
			}
			r.Manual = readstate.Manual{Set: true, From: ev.From, Version: r.Manual.Version + 1}
		})
	case ManualUnreadCleared:
		s.change(sc, ev.Member, ev.Generation, manual, func(r *readstate.Row, x *change) {
			if !r.Manual.Set {
				x.same = true
				return
			}
			r.Manual = readstate.Manual{Version: r.Manual.Version + 1}
		})
	case NotificationPolicyChanged:
		s.change(sc, ev.Member, ev.Generation, notification, func(r *readstate.Row, x *change) {
			next := readstate.Notification{Level: ev.Level, Until: ev.Until}
			x.same, x.withhold = r.Notification == next && !ev.Unknown, ev.Unknown
			r.Notification = next
		})
	case MessageVisibilityChanged:
		s.change(sc, ev.Member, ev.Generation, membership, func(r *readstate.Row, x *change) {
			x.same = r.Visible == ev.Visible
			r.Visible = ev.Visible
		})
	case MembershipChanged:
		s.membership(sc, ev)
	}
}

// fact says which generation of a row an event has.
type fact func(g *snapshot.Generations) *int64

func manual(g *snapshot.Generations) *int64       { return &g.Manual }
func notification(g *snapshot.Generations) *int64 { return &g.Notification }
func membership(g *snapshot.Generations) *int64   { return &g.Membership }

// change is what a mutation of a row knows beside the row.
type change struct {
	at       snapshot.Scope
	exists   bool
	same     bool // nothing changed
	withhold bool // nobody can say what changed
	sure     bool // the head is known to be the scope's
	acts     bool // nobody knows the activities above the cursor
	row      *readstate.MemberRow
	writer   *readstate.Writer
}

// change mutates a row and moves its point to where it belongs then. An event that is older than
// the row, by its generation, changes nothing.
func (s *space) change(
	sc *scope, id readstate.MemberID, generation uint64, of fact, mutate func(*readstate.Row, *change),
) {
	m := s.names.MemberKey(id)
	row, gens, exists := s.rowOf(sc, m)
	if g := int64(generation); of != nil && g != 0 && exists && g <= *of(&gens) {
		s.intake.metrics.repeated.Add(1)
		return
	}
	at, _ := s.book.Scope(sc.key)
	x := change{at: at, exists: exists, sure: at.Sure}
	if !exists {
		row = s.newRow(sc, m, id, at)
	}
	key := snapshot.Key{Scope: sc.key, Member: m}
	x.row, x.writer, x.acts = &row, &row.Writer, s.book.ActsBehind(key)
	if mutate(&row.Row, &x); x.same && exists {
		return
	}
	s.settle(&row, &x)
	s.book.SetActsBehind(key, x.acts)
	row.StateLSN = 0
	s.commit(readstate.MemberEvent{MemberRow: row})
	if of != nil && generation != 0 {
		s.book.SetRowGenerations(key, func(g *snapshot.Generations) { *of(g) = int64(generation) })
	}
}

// newRow is the row of a member of whom nothing was known: they are in the scope, since something
// of theirs there changed, and what lies below the head is unknown.
func (s *space) newRow(
	sc *scope, m readstate.MemberKey, id readstate.MemberID, at snapshot.Scope,
) readstate.MemberRow {
	row := readstate.MemberRow{
		Scope: sc.key, Member: m, MemberID: id,
		Row: readstate.Row{Joined: true, Visible: true, Epoch: 1, Serving: readstate.Hint},
	}
	row.Writer = s.book.WriterOf(sc.key, m)
	row.Row.Effective = at.Ranks.Head + 1
	row.Row.Point.MoveToHead(at.Ranks.Head, row.Writer)
	row.Row.Activity = readstate.ActivityPoint{
		Read: at.Ranks.LatestActivity, SignalAt: at.Ranks.SignalHead, ActorAt: row.Writer.ActorHead,
	}
	return row
}

// settle moves a row's point. At the head nothing has to be known; among the held entries all is
// counted anew; below them nobody knows, and the row is withheld until a cursor settles it.
func (s *space) settle(row *readstate.MemberRow, x *change) {
	r, head := &row.Row, x.at.Ranks.Head
	if x.withhold {
		r.Serving = readstate.Behind
		return
	}
	to := r.EffectivePoint(x.at.Ranks.Floor)
	if to == r.Point.E && r.Serving != readstate.Behind {
		return
	}
	serving := readstate.Hint
	if r.Serving == readstate.Exact || x.sure && quiet(r, x) {
		serving = readstate.Exact
	}
	if to >= head {
		r.Point.MoveToHead(head, row.Writer)
		row.Pairs = snapshot.PairsAtHead(row.Pairs)
		r.Serving = serving
		return
	}
	point, pairs, ok := s.book.PointAt(row, to)
	if !ok {
		if to != r.Point.E {
			r.Serving = readstate.Behind
		}
		return
	}
	r.Point, row.Pairs, r.Serving = point, pairs, serving
}

// quiet reports that nothing of the row's activities was taken over from a snapshot: there are
// none that count.
func quiet(r *readstate.Row, x *change) bool {
	if x.at.Info.Type.Targeted() {
		return r.Activity.Targets == 0
	}
	return r.Activity.SignalAt+x.writer.ActorHead == x.at.Ranks.SignalHead+r.Activity.ActorAt
}

func (s *space) cursor(sc *scope, ev ReadCursorAdvanced) {
	at, _ := s.book.Scope(sc.key)
	if head := max(ev.Revision, ev.Head); head > at.Ranks.Head {
		s.intake.metrics.frontiers.Add(1)
		s.commit(readstate.GapEvent{Scope: sc.key, Head: head, Doubt: head})
	}
	s.change(sc, ev.Member, 0, nil, func(r *readstate.Row, x *change) {
		x.sure = x.sure || ev.Head > 0
		behind := r.Serving != readstate.Exact && ev.Revision >= x.at.Ranks.Head && x.sure
		if !x.exists {
			r.Effective = 0
		}
		before := *r
		if _, err := r.MarkRead(x.at.Ranks.Head, readstate.ReadCommand{
			Revision: ev.Revision, Trusted: true,
		}); err != nil {
			x.same = true // the head was raised above: this cannot be
			return
		}
		x.same = *r == before && !behind
		if behind {
			r.Serving = readstate.Behind // so that it settles at the head
		}
	})
}

func (s *space) activityCursor(sc *scope, ev ActivityReadCursorAdvanced) {
	s.change(sc, ev.Member, 0, nil, func(r *readstate.Row, x *change) {
		if ev.Seq <= r.Activity.Read {
			x.same = true
			return
		}
		q := min(ev.Seq, x.at.Ranks.LatestActivity)
		point, pairs, ok := s.book.ActivityPointAt(x.row, q)
		switch {
		case q == x.at.Ranks.LatestActivity:
			r.Activity = readstate.ActivityPoint{
				Read: q, SignalAt: x.at.Ranks.SignalHead, ActorAt: x.writer.ActorHead,
			}
			x.acts = false
			for i := range x.row.Pairs {
				x.row.Pairs[i].ActivityTargets = 0
			}
		case ok:
			r.Activity, x.row.Pairs, x.acts = point, pairs, false
		default:
			r.Activity.Read, x.acts = q, true
		}
	})
}

func (s *space) membership(sc *scope, ev MembershipChanged) {
	m := s.names.MemberKey(ev.Member)
	at, _ := s.book.Scope(sc.key)
	parentEpoch := uint64(0)
	if at.Info.Parent != 0 {
		parentEpoch = 1
		key := snapshot.Key{Scope: at.Info.Parent, Member: m}
		if p, _, ok, _ := s.book.Row(key); ok {
			parentEpoch = p.Row.Epoch
		}
		if s.at < s.epochs[key] {
			parentEpoch-- // the membership in the channel began anew since this was told
		}
	}
	if from := ev.EffectiveFrom; from > at.Ranks.Head+1 {
		// Entries below the member's first one were not told of.
		s.intake.metrics.frontiers.Add(1)
		s.commit(readstate.GapEvent{Scope: sc.key, Head: from - 1, Doubt: from - 1})
	}
	s.change(sc, ev.Member, ev.Generation, membership, func(r *readstate.Row, x *change) {
		before := *r
		if ev.Joined {
			s.join(r, x, ev, parentEpoch)
		} else {
			r.Leave()
		}
		r.Visible = !ev.Hidden
		x.same, x.withhold = *r == before && !ev.Unknown, ev.Unknown
	})
	s.rosterChanged(sc, ev.RosterGeneration)
}

// join begins a membership, or goes on with one.
func (s *space) join(r *readstate.Row, x *change, ev MembershipChanged, parentEpoch uint64) {
	g := readstate.Ground{
		Head: x.at.Ranks.Head, Floor: x.at.Ranks.Floor, SignalHead: x.at.Ranks.SignalHead,
		LatestActivity: x.at.Ranks.LatestActivity, History: x.at.Info.History, Writer: *x.writer,
		ParentEpoch: parentEpoch,
	}
	c := readstate.JoinCommand{}
	if ev.EffectiveFrom > 0 {
		c.Effective = &ev.EffectiveFrom
	}
	if !x.exists {
		*r = readstate.Row{}
	}
	res, err := r.Join(x.exists, g, c)
	if err != nil {
		return // the head was raised to meet the first revision
	}
	if res.NewEpoch {
		if s.waiting > 0 {
			s.epochs[snapshot.Key{Scope: x.row.Scope, Member: x.row.Member}] = s.at
		}
		// It owes nothing to what was before: the point and the activity cursor are at the head.
		r.Serving, x.row.Pairs, x.acts = readstate.Exact, nil, false
	}
}

// rosterChanged follows the roster's generation. One that was skipped means that a change was not
// told of: the roster is read again for the next message.
func (s *space) rosterChanged(sc *scope, generation uint64) {
	if sc.roster != rosterComplete || generation <= sc.generation {
		return
	}
	if generation > sc.generation+1 {
		sc.roster = rosterCold
		s.intake.metrics.frontiers.Add(1)
		return
	}
	sc.generation = generation
	s.book.SetGenerations(sc.key, func(g *snapshot.Generations) { g.Roster = int64(generation) })
}
