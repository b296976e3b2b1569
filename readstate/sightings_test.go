package readstate_test

import (
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// sightings are states that the histories have to reach, or agreeing on them proves little.
var sightings = map[string]func(s *scope, m member, r *readstate.Row) bool{
	"a point below the floor with something unread": func(s *scope, m member, r *readstate.Row) bool {
		return r.Point.E < s.floor && s.unread(m) > 0
	},
	"ranks at the floor at a point above it": func(s *scope, m member, r *readstate.Row) bool {
		w := s.written(m)
		return r.Point.E > s.floor && w.AuthorAtFloor > 0 && r.Point.AuthorRank == w.AuthorAtFloor &&
			w.AuthorHead > w.AuthorAtFloor
	},
	"a principal's rank between zero and the head": func(s *scope, m member, r *readstate.Row) bool {
		return r.Point.PrincipalRank > 0 && r.Point.PrincipalRank < s.written(m).PrincipalHead
	},
	"own removed above the point": func(s *scope, _ member, r *readstate.Row) bool {
		return r.Point.E > s.floor && r.Point.OwnRemoved > 0
	},
	"own everyone above the point": func(s *scope, _ member, r *readstate.Row) bool {
		return r.Point.E > s.floor && r.Point.OwnEveryone > 0
	},
	"a name in a task": func(s *scope, _ member, r *readstate.Row) bool {
		return s.kind == readstate.Task && r.Point.Direct > 0 && r.Point.Targets > r.Point.Direct
	},
	"attention in a session": func(s *scope, m member, r *readstate.Row) bool {
		return s.kind == readstate.Session && r.Point.Direct > 0 && s.everyone.above(r.Point.E) > 0
	},
	"a mark that shows more": func(s *scope, _ member, r *readstate.Row) bool {
		return r.Manual.Set && r.Point.E < r.Read && r.Point.E > s.floor
	},
	"a mark that starts above the cursor": func(_ *scope, _ member, r *readstate.Row) bool {
		return r.Manual.Set && r.Manual.From > r.Read+1
	},
	"a row that was left and is kept up": func(s *scope, m member, r *readstate.Row) bool {
		return !r.Joined && s.unread(m) > 0 && r.Point.Direct > 0
	},
	"a thread row of an older epoch": func(s *scope, m member, r *readstate.Row) bool {
		return s.parent != nil && s.parent.rows[m] != nil && s.parent.rows[m].Epoch != r.ParentEpoch
	},
	"a second epoch that is read in part": func(s *scope, _ member, r *readstate.Row) bool {
		return r.Epoch > 1 && r.Point.E > r.Effective && r.Point.E < s.head
	},
	"an overlap": func(s *scope, m member, _ *readstate.Row) bool {
		return anyPair(s, m, func(p *readstate.Pair) bool { return p.Overlap > 0 && p.AuthorAt > 0 })
	},
	"a blocked author's removed entry": func(s *scope, m member, _ *readstate.Row) bool {
		return anyPair(s, m, func(p *readstate.Pair) bool { return p.Removed > 0 && p.AuthorAt > 0 })
	},
	"a blocked author's names and everyone": func(s *scope, m member, _ *readstate.Row) bool {
		return anyPair(s, m, func(p *readstate.Pair) bool { return p.Direct > 0 && p.Everyone > 0 })
	},
	"a blocked author's delivery": func(s *scope, m member, _ *readstate.Row) bool {
		return anyPair(s, m, func(p *readstate.Pair) bool { return p.Targets > 0 })
	},
	"a blocked actor below and above the cursor": func(s *scope, m member, _ *readstate.Row) bool {
		return anyPair(s, m, func(p *readstate.Pair) bool { return p.ActorAt > 0 && p.ActorHead > p.ActorAt })
	},
	"a blocked actor's delivery": func(s *scope, m member, _ *readstate.Row) bool {
		return anyPair(s, m, func(p *readstate.Pair) bool { return p.ActivityTargets > 0 })
	},
	"two blocked authors in one scope": func(s *scope, m member, _ *readstate.Row) bool {
		return len(s.pairs[m]) > 1
	},
	"a pair whose row is below the floor": func(s *scope, m member, r *readstate.Row) bool {
		return r.Point.E < s.floor && anyPair(s, m, func(p *readstate.Pair) bool { return p.AuthorAt > 0 })
	},
	"own activity below and above the cursor": func(s *scope, m member, r *readstate.Row) bool {
		return r.Activity.ActorAt > 0 && s.written(m).ActorHead > r.Activity.ActorAt
	},
}

func anyPair(s *scope, m member, ok func(*readstate.Pair) bool) bool {
	for _, p := range s.pairs[m] {
		if ok(p) {
			return true
		}
	}
	return false
}

// TestHistoriesMeetTheCases fails when a change of the generator leaves a state out.
func TestHistoriesMeetTheCases(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(60) {
		w, world := newMachine(), model.New()
		for _, op := range randomOps(seed, 1, 80, model.FullMix()) {
			out, verdict := world.Apply(op)
			if err := w.apply(op, out, verdict); err != nil {
				t.Fatal(err)
			}
			for _, s := range w.scopes {
				for m, r := range s.rows {
					for name, seen := range sightings {
						if seen(s, m, r) {
							met[name]++
						}
					}
				}
			}
		}
	}
	for name := range sightings {
		if met[name] == 0 {
			t.Errorf("no history had %s", name)
		}
		t.Logf("%6d  %s", met[name], name)
	}
}
