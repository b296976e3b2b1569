package intake

import (
	"slices"
	"sync"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// space is one workspace: its events are taken in one after the other, under its lock.
type space struct {
	intake *Intake
	id     readstate.WorkspaceID
	names  *names
	book   *snapshot.Book
	hints  hints

	mu      sync.Mutex
	lsn     readstate.LSN
	scopes  map[readstate.ScopeKey]*scope
	people  *scope          // where changes of blocks wait
	swept   int             // scopes after the last sweep
	busy    map[*scope]bool // those of which events wait
	waiting int             // events of all scopes that wait
	jobs    int             // scopes that a worker has, or will have
	told    uint64          // events
	at      uint64          // of the event being taken in, by told
	// epochs is when memberships began while events waited: a thread's membership that was told
	// before belongs to the one before.
	epochs map[snapshot.Key]uint64
	// hidden rows may not be seen any more; the events that say so wait.
	hidden map[snapshot.Key]int
	idle   chan struct{} // closed when nothing waits and no worker has a scope
}

// rosterState says how much a scope knows of its roster.
type rosterState uint8

const (
	rosterCold rosterState = iota
	rosterComplete
	rosterRefused // too large
)

// told is an event that waits, with its place in the order of all of the workspace.
type told struct {
	Event
	at uint64
}

// scope is what there is of a scope beside the book.
type scope struct {
	space  *space
	key    readstate.ScopeKey
	id     readstate.ScopeID
	absent bool   // the table was asked: it has no such scope
	taken  uint64 // events

	roster     rosterState
	generation uint64         // of the complete roster
	late       []RosterMember // whose first revision lies above the head

	pending []told
	waiters []*scope // threads whose events wait for those of their channel
	lost    bool     // an event was dropped
	queued  bool     // a job is on its way
}

func (s *space) scope(id readstate.ScopeID) *scope {
	key := s.names.ScopeKey(id)
	sc := s.scopes[key]
	if sc == nil {
		sc = &scope{space: s, key: key, id: id}
		s.scopes[key] = sc
	}
	return sc
}

// tell takes one event in, or lets it wait.
func (s *space) tell(ev Event) error {
	if err := valid(ev); err != nil {
		return err
	}
	sc := s.people
	if id := ev.place(); id != "" {
		sc = s.scope(id)
	}
	s.told++
	next := told{ev, s.told}
	if s.book.Full() && !safety(ev) {
		s.drop(sc)
		return nil
	}
	if (len(sc.pending) == 0 || s.passes(sc, ev)) && s.ready(sc, next) {
		s.take(sc, next)
		s.drain(sc)
		return nil
	}
	s.hide(sc, ev)
	if s.wait(sc, next) {
		s.await(ev, true)
	}
	s.unremember(sc)
	return nil
}

// drop refuses an event that no budget has room for.
func (s *space) drop(sc *scope) {
	s.intake.metrics.dropped.Add(1)
	sc.lose()
	s.unremember(sc)
}

// unremember forgets a scope of which there is nothing, since what was told of it was refused.
func (s *space) unremember(sc *scope) {
	if sc != s.people && sc.resting() && !s.has(sc, snapshot.Key{Scope: sc.key}) {
		s.letGo([]readstate.ScopeKey{sc.key})
	}
}

// passes reports an event that owes nothing to the order of those that wait: what is archived is
// hidden at once, and the next change of the roster may be what they wait for. It never overtakes an
// event about the same thing.
func (s *space) passes(sc *scope, ev Event) bool {
	switch ev := ev.(type) {
	case ScopeStateChanged:
		return ev.Head == 0 && !slices.ContainsFunc(sc.pending, func(x told) bool {
			_, same := x.Event.(ScopeStateChanged)
			return same
		})
	case MembershipChanged:
		at, ok := s.book.Scope(sc.key)
		return ok && sc.roster == rosterComplete && ev.RosterGeneration == sc.generation+1 &&
			ev.EffectiveFrom <= at.Ranks.Head+1 && (!ev.Joined || ev.EffectiveFrom > 0) &&
			!slices.ContainsFunc(sc.pending, func(x told) bool { return concerns(x.Event, ev.Member) })
	}
	return false
}

// concerns reports an event about one member's row.
func concerns(ev Event, m readstate.MemberID) bool {
	switch ev := ev.(type) {
	case ReadCursorAdvanced:
		return ev.Member == m
	case ActivityReadCursorAdvanced:
		return ev.Member == m
	case ManualUnreadSet:
		return ev.Member == m
	case ManualUnreadCleared:
		return ev.Member == m
	case NotificationPolicyChanged:
		return ev.Member == m
	case MembershipChanged:
		return ev.Member == m
	case MessageVisibilityChanged:
		return ev.Member == m
	}
	return false
}

// wait puts an event at the end of its scope's queue and sees to it that what it needs is read. It is
// false where a budget refuses the event.
func (s *space) wait(sc *scope, next told) bool {
	m, cfg := &s.intake.metrics, &s.intake.cfg
	full := len(sc.pending) >= cfg.MaxPendingEvents ||
		s.intake.queued.Load() >= int64(cfg.MaxQueuedEvents)
	if full && !safety(next.Event) {
		m.dropped.Add(1)
		sc.lose()
		return false
	}
	if !sc.queued {
		if !s.intake.jobs.admit(sc, cfg.MaxWarmScopes) {
			m.dropped.Add(1)
			sc.lose()
			return false
		}
		sc.queued = true
		if s.jobs++; s.jobs == 1 {
			s.idle = make(chan struct{})
		}
	}
	sc.pending = append(sc.pending, next)
	s.busy[sc] = true
	s.intake.queued.Add(1)
	s.waiting++
	return true
}

// worked notes that a worker is done with a scope. A scope whose events wait has a job, so that
// nothing waits any more when the last one ends.
func (s *space) worked(sc *scope) {
	sc.queued = false
	if s.jobs--; s.jobs == 0 {
		close(s.idle)
	}
}

// safety reports an event that must not be dropped, since it ends somebody's access. There is at
// most a handful of these for each member.
func safety(ev Event) bool {
	if state, ok := ev.(ScopeStateChanged); ok {
		return state.Archived
	}
	return hides(ev) != ""
}

// lose notes that the scope missed something. What is exact now counts as behind as soon as the
// next event of the scope is taken in.
func (sc *scope) lose() {
	if !sc.lost {
		sc.lost = true
		sc.space.intake.metrics.frontiers.Add(1)
	}
}

// resting reports that nothing waits for the scope.
func (sc *scope) resting() bool { return !sc.queued && len(sc.pending) == 0 }

// commit applies events as one change of the workspace.
func (s *space) commit(events ...readstate.Event) {
	s.lsn++
	out, err := s.book.Apply(s.lsn, events)
	if err != nil {
		// Something of the events is in the book and not in memory, or the reverse: the rows
		// are read again, and the scope is in doubt.
		s.intake.metrics.failures.Add(1)
		s.intake.cfg.Log.Error("events refused; memory of the workspace is read again",
			"workspace", s.id, "error", err)
		s.intake.runtime.Open(s.id, s.lsn)
		return
	}
	s.toRuntime(out)
}

func (s *space) toRuntime(events []readstate.Event) {
	if err := s.intake.runtime.Apply(s.id, s.lsn, events); err != nil {
		s.intake.metrics.failures.Add(1)
		s.intake.cfg.Log.Error("apply failed; memory of the workspace is read again",
			"workspace", s.id, "error", err)
	}
}
