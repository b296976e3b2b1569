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

	mu      sync.Mutex
	lsn     readstate.LSN
	scopes  map[readstate.ScopeKey]*scope
	waiting int // events of all scopes that wait
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

// scope is what there is of a scope beside the book.
type scope struct {
	space   *space
	key     readstate.ScopeKey
	id      readstate.ScopeID
	held    held
	started bool // held begins where the frontier stood when it was first looked at
	absent  bool // the table was asked: it has no such scope

	roster     rosterState
	generation uint64         // of the complete roster
	late       []RosterMember // whose first revision lies above the head

	pending []Event
	lost    bool // an event was dropped
	queued  bool // a job is on its way
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
	id := ev.place()
	if id == "" {
		return fmt.Errorf("%w: no scope", ErrInvalid)
	}
	if err := valid(ev); err != nil {
		return err
	}
	sc := s.scope(id)
	if (len(sc.pending) == 0 || s.passes(sc, ev)) && s.ready(sc, ev) {
		s.take(sc, ev)
		s.drain(sc)
		return nil
	}
	s.hide(sc, ev)
	s.wait(sc, ev)
	return nil
}

// passes reports an event that owes nothing to the order of those that wait: what is archived is
// hidden at once, and the next change of the roster may be what they wait for.
func (s *space) passes(sc *scope, ev Event) bool {
	switch ev := ev.(type) {
	case ScopeStateChanged:
		return ev.Head == 0
	case MembershipChanged:
		at, ok := s.book.Scope(sc.key)
		return ok && sc.roster == rosterComplete && ev.RosterGeneration == sc.generation+1 &&
			ev.EffectiveFrom <= at.Ranks.Head+1 && (!ev.Joined || ev.EffectiveFrom > 0)
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

// wait puts an event at the end of its scope's queue and sees to it that what it needs is read.
func (s *space) wait(sc *scope, ev Event) {
	m, cfg := &s.intake.metrics, &s.intake.cfg
	full := len(sc.pending) >= cfg.MaxPendingEvents ||
		s.intake.queued.Load() >= int64(cfg.MaxQueuedEvents)
	if full && !safety(ev) {
		m.dropped.Add(1)
		sc.lose()
		return
	}
	if !sc.queued {
		if !s.intake.jobs.admit(sc, cfg.MaxWarmScopes) {
			m.dropped.Add(1)
			sc.lose()
			return
		}
		sc.queued = true
	}
	sc.pending = append(sc.pending, ev)
	s.intake.queued.Add(1)
	if s.waiting++; s.waiting == 1 {
		s.idle = make(chan struct{})
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

// ready reports that everything an event needs is in memory.
func (s *space) ready(sc *scope, ev Event) bool {
	for _, key := range s.needs(sc, ev) {
		if !s.has(sc, key) {
			return false
		}
	}
	return s.rostered(sc, ev)
}

func (s *space) has(sc *scope, key snapshot.Key) bool {
	if key.Member != 0 {
		_, _, _, known := s.book.Row(key)
		return known
	}
	if _, ok := s.book.Scope(key.Scope); ok {
		return true
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
	keys := []snapshot.Key{{Scope: sc.key}}
	row := func(ids ...readstate.MemberID) {
		for _, m := range s.names.memberKeys(ids) {
			keys = append(keys, snapshot.Key{Scope: sc.key, Member: m})
		}
	}
	facts := func(list []MessageFacts) {
		for i := range list {
			x := &list[i]
			row(x.Author, x.NotifyPrincipal)
			row(x.Mentions...)
			row(x.Recipients...)
			if m := sc.held.find(x.Revision); m != nil {
				for _, k := range m.named {
					keys = append(keys, snapshot.Key{Scope: sc.key, Member: k})
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
			keys = append(keys, snapshot.Key{Scope: x.Info.Parent},
				snapshot.Key{Scope: x.Info.Parent, Member: s.names.MemberKey(ev.Member)})
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
