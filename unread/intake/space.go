package intake

import (
	"fmt"
	"math"
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
	told    uint64          // events
	at      uint64          // of the event being taken in, by told
	// epochs is when memberships began while events waited: a thread's membership that was told
	// before belongs to the one before.
	epochs map[snapshot.Key]uint64
	// hidden rows may not be seen any more; the events that say so wait.
	hidden map[snapshot.Key]int
	idle   chan struct{}
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
	if (len(sc.pending) == 0 || s.passes(sc, ev)) && s.ready(sc, next) {
		s.take(sc, next)
		s.drain(sc)
		return nil
	}
	s.hide(sc, ev)
	if s.wait(sc, next) {
		s.await(ev, true)
	}
	if sc != s.people && sc.resting() && !s.has(sc, snapshot.Key{Scope: sc.key}) {
		s.letGo([]readstate.ScopeKey{sc.key}) // refused: there is nothing to remember
	}
	return nil
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

// hides names the member who may not see the scope after the event.
func hides(ev Event) readstate.MemberID {
	switch ev := ev.(type) {
	case MembershipChanged:
		if !ev.Joined || ev.Hidden {
			return ev.Member
		}
	case MessageVisibilityChanged:
		if !ev.Visible {
			return ev.Member
		}
	}
	return ""
}

// hide takes a row out of memory whose member may see it no longer, before anything is read.
func (s *space) hide(sc *scope, ev Event) {
	member := hides(ev)
	if member == "" {
		return
	}
	key := snapshot.Key{Scope: sc.key, Member: s.names.MemberKey(member)}
	s.hidden[key]++
	s.lsn++ // what the book knows stays as it is: only memory forgets
	gone := readstate.RowGoneEvent{Scope: key.Scope, Member: key.Member}
	if out, err := s.book.Apply(s.lsn, nil); err == nil {
		s.toRuntime(append(out, gone))
	}
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
	}
	sc.pending = append(sc.pending, next)
	s.busy[sc] = true
	s.intake.queued.Add(1)
	if s.waiting++; s.waiting == 1 {
		s.idle = make(chan struct{})
	}
	return true
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

// ready reports that everything an event needs is in memory.
func (s *space) ready(sc *scope, next told) bool {
	ev := next.Event
	for _, key := range s.needs(sc, ev) {
		if !s.has(sc, key) {
			return false
		}
	}
	if ev, ok := ev.(BlocksChanged); ok {
		added, _ := s.blocksOf(ev)
		return len(added) == 0
	}
	return s.rostered(sc, ev) && s.channelOf(sc, next) == nil
}

// channelOf returns the channel of a thread whose memberships have to come first: those that were told
// before the thread's.
func (s *space) channelOf(sc *scope, next told) *scope {
	if _, ok := next.Event.(MembershipChanged); !ok {
		return nil
	}
	at, _ := s.book.Scope(sc.key)
	channel := s.scopes[at.Info.Parent]
	if channel == nil || len(channel.pending) == 0 || channel.pending[0].at > next.at {
		return nil
	}
	return channel
}

func (s *space) has(sc *scope, key snapshot.Key) bool {
	if key.Member != 0 || s.book.Has(key) {
		return s.book.Has(key)
	}
	if key.Scope == sc.key {
		return sc.absent
	}
	other := s.scopes[key.Scope]
	return other != nil && other.absent
}

// rostered reports that the scope's roster is complete and new enough for an event that counts
// for everybody.
func (s *space) rostered(sc *scope, ev Event) bool {
	if s.intake.cfg.Roster == nil || sc.roster == rosterRefused {
		return true
	}
	var required uint64
	switch ev := ev.(type) {
	case MessageStored:
		if len(ev.Recipients) > 0 {
			return true
		}
		required = ev.RosterGeneration
	case NonMessageActivityStored:
		if len(ev.Recipients) > 0 {
			return true
		}
		required = ev.RosterGeneration
	default:
		return true
	}
	return sc.roster == rosterComplete && sc.generation >= required
}

// needs lists the frontiers and rows that an event looks at.
func (s *space) needs(sc *scope, ev Event) []snapshot.Key {
	if ev, ok := ev.(BlocksChanged); ok {
		return s.needsOfBlocks(ev)
	}
	keys := []snapshot.Key{{Scope: sc.key}}
	member := func(m readstate.MemberKey) {
		keys = append(keys, snapshot.Key{Member: m}, snapshot.Key{Scope: sc.key, Member: m})
	}
	row := func(ids ...readstate.MemberID) {
		for _, m := range s.names.memberKeys(ids) {
			member(m)
		}
	}
	facts := func(list []MessageFacts) {
		for i := range list {
			x := &list[i]
			row(x.Author, x.NotifyPrincipal)
			row(x.Mentions...)
			row(x.Recipients...)
			if m, ok := s.book.Entry(sc.key, x.Revision); ok {
				for _, k := range m.Named {
					member(k)
				}
			}
		}
	}
	switch ev := ev.(type) {
	case MessageStored:
		row(ev.Author, ev.NotifyPrincipal)
		row(ev.Mentions...)
		row(ev.Recipients...)
	case MessageRewound:
		facts(ev.Removed)
	case MessageEdited:
		facts([]MessageFacts{ev.Was})
		row(ev.Mentions...)
	case ScopeTrimmed:
		facts(ev.Trimmed)
	case NonMessageActivityStored:
		row(ev.Actor)
		row(ev.Recipients...)
	case ReadCursorAdvanced:
		row(ev.Member)
	case ActivityReadCursorAdvanced:
		row(ev.Member)
	case ManualUnreadSet:
		row(ev.Member)
	case ManualUnreadCleared:
		row(ev.Member)
	case NotificationPolicyChanged:
		row(ev.Member)
	case MessageVisibilityChanged:
		row(ev.Member)
	case MembershipChanged:
		row(ev.Member)
		if x, ok := s.book.Scope(sc.key); ok && x.Info.Parent != 0 {
			parent := snapshot.Key{Scope: s.names.ScopeKey(x.Info.ParentID)}
			keys = append(keys, parent,
				snapshot.Key{Scope: parent.Scope, Member: s.names.MemberKey(ev.Member)})
		}
	case ScopeStateChanged:
		if ev.Parent != "" {
			keys = append(keys, snapshot.Key{Scope: s.names.ScopeKey(ev.Parent)})
		}
	}
	return keys
}

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

func valid(ev Event) error {
	member := readstate.MemberID("-")
	var revision readstate.Revision
	switch ev := ev.(type) {
	case MessageStored:
		member, revision = ev.Author, ev.Revision
		if ev.Seq == 0 {
			return fmt.Errorf("%w: no seq", ErrInvalid)
		}
	case NonMessageActivityStored:
		member = ev.Actor
		if ev.Seq == 0 {
			return fmt.Errorf("%w: no seq", ErrInvalid)
		}
	case ReadCursorAdvanced:
		member, revision = ev.Member, max(ev.Revision, ev.Head)
	case ActivityReadCursorAdvanced:
		member = ev.Member
	case ManualUnreadSet:
		member, revision = ev.Member, ev.From
	case ManualUnreadCleared:
		member = ev.Member
	case NotificationPolicyChanged:
		member = ev.Member
	case MembershipChanged:
		member, revision = ev.Member, ev.EffectiveFrom
	case MessageVisibilityChanged:
		member = ev.Member
	case ScopeTrimmed:
		revision = ev.Floor
	case ScopeStateChanged:
		revision = ev.Head
	case BlocksChanged:
		return validBlocks(ev)
	}
	if ev.place() == "" {
		return fmt.Errorf("%w: no scope", ErrInvalid)
	}
	if member == "" {
		return fmt.Errorf("%w: no member", ErrInvalid)
	}
	if revision > math.MaxInt64 || uint64(revision) > readstate.MaxCounter {
		return fmt.Errorf("%w: revision %d", ErrInvalid, revision)
	}
	return nil
}

// reveal ends what hide began: the event is taken in, and the row says itself who may see it.
func (s *space) reveal(sc *scope, ev Event) {
	member := hides(ev)
	if member == "" {
		return
	}
	key := snapshot.Key{Scope: sc.key, Member: s.names.MemberKey(member)}
	if s.hidden[key]--; s.hidden[key] <= 0 {
		delete(s.hidden, key)
		// An event that was told before changed nothing: memory looks at the row again.
		s.commit(readstate.RowFoundEvent{Scope: key.Scope, Member: key.Member})
	}
}

// conceal takes rows out of a page that may not be seen any more, whatever the table says.
func (s *space) conceal(page *readstate.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hidden) == 0 {
		return
	}
	page.Rows = slices.DeleteFunc(page.Rows, func(r readstate.PageRow) bool {
		return s.hidden[snapshot.Key{Scope: r.Scope, Member: r.Member}] > 0
	})
	for i := range page.Rows {
		r := &page.Rows[i]
		if p := r.Parent; p != nil && s.hidden[snapshot.Key{Scope: p.Scope, Member: p.Member}] > 0 {
			r.Parent = nil
		}
	}
}
