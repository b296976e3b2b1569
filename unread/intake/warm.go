package intake

import (
	"errors"
	"fmt"
	"math"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// errWaits is a thread whose channel has to be served first.
var errWaits = errors.New("events of the channel come first")

// errRoster is a roster that changed while it was read, or one that is behind the messages.
var errRoster = errors.New("roster is not settled")

// warm is the loop of one worker: it reads what the waiting events of a scope need, takes them
// in, and goes on until none is left.
func (f *Intake) warm() {
	for sc := f.jobs.next(); sc != nil; sc = f.jobs.next() {
		err := sc.space.serve(sc)
		if errors.Is(err, errWaits) {
			f.jobs.hold() // its channel queues it again
			continue
		}
		if err != nil {
			if f.ctx.Err() != nil {
				return
			}
			f.metrics.retries.Add(1)
			f.cfg.Log.Warn("a scope's events wait on", "workspace", sc.space.id, "scope", sc.id,
				"error", err)
			f.jobs.later(sc, f.cfg.Runtime.HydrateRetry)
			continue
		}
		f.jobs.done()
	}
}

// serve works a scope's queue off. An error leaves it for a later try.
func (s *space) serve(sc *scope) error {
	for {
		s.mu.Lock()
		s.drain(sc)
		if len(sc.pending) == 0 {
			s.worked(sc)
			s.mu.Unlock()
			return nil
		}
		keys, roster := s.wanted(sc)
		if channel := s.channelOf(sc, sc.pending[0]); channel != nil && len(keys) == 0 && !roster {
			channel.waiters = append(channel.waiters, sc)
			s.mu.Unlock()
			return errWaits
		}
		next := sc.pending[0]
		s.mu.Unlock()
		blocks, isBlocks := next.Event.(BlocksChanged)
		switch {
		case len(keys) > 0:
			if err := s.fetch(keys); err != nil {
				return err
			}
		case isBlocks:
			err := s.block(next, blocks)
			if err != nil && !errors.Is(err, snapshot.ErrNotLoaded) {
				return err // else somebody was let go again, and is read once more
			}
		}
		if roster && len(keys) == 0 {
			if err := s.readRoster(sc); err != nil {
				return err
			}
		}
	}
}

// wanted lists what the first events of the queue lack, and whether the first one waits for a
// roster.
func (s *space) wanted(sc *scope) (keys []snapshot.Key, roster bool) {
	seen := map[snapshot.Key]bool{}
	for i, next := range sc.pending[:min(len(sc.pending), s.intake.cfg.DrainBatch)] {
		for _, key := range s.needs(sc, next.Event) {
			if !seen[key] && !s.has(sc, key) {
				seen[key] = true
				keys = append(keys, key)
			}
		}
		if i == 0 {
			roster = !s.rostered(sc, next.Event)
		}
	}
	return keys, roster
}

// fetch reads rows and frontiers. A scope that the table does not have is marked as absent.
func (s *space) fetch(keys []snapshot.Key) error {
	if err := s.book.Fetch(s.intake.ctx, s.intake.cfg.Store, keys); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if id := s.names.Scope(key.Scope); key.Member == 0 && id != "" && !s.book.Has(key) {
			s.scope(id).absent = true
		}
	}
	return nil
}

// drain takes waiting events in as far as they are ready, at most a batch of them.
func (s *space) drain(sc *scope) {
	taken := 0
	for ; taken < len(sc.pending) && taken < s.intake.cfg.DrainBatch; taken++ {
		if !s.ready(sc, sc.pending[taken]) {
			break
		}
		s.take(sc, sc.pending[taken])
		s.reveal(sc, sc.pending[taken].Event)
	}
	s.taken(sc, taken)
	s.trim()
}

// taken takes events out of a scope's queue.
func (s *space) taken(sc *scope, n int) {
	if n == 0 {
		return
	}
	for _, next := range sc.pending[:n] {
		s.await(next.Event, false)
	}
	clear(sc.pending[:n])
	if sc.pending = sc.pending[n:]; len(sc.pending) == 0 {
		sc.pending = nil
		delete(s.busy, sc)
	}
	for _, thread := range sc.waiters {
		s.intake.jobs.again(thread)
	}
	sc.waiters = nil
	s.intake.queued.Add(-int64(n))
	if s.waiting -= n; s.waiting == 0 {
		clear(s.epochs) // whatever is told from now on is later
	}
}

// readRoster reads a scope's roster page by page. It reads nothing else: rows of members whom the
// table knows are looked at when they are needed.
func (s *space) readRoster(sc *scope) error {
	var members []RosterMember
	var generation uint64
	q := RosterQuery{Workspace: s.id, Scope: sc.id, Limit: s.intake.cfg.Runtime.HydratePageSize}
	for pages := 0; ; pages++ {
		page, err := s.intake.cfg.Roster.Roster(s.intake.ctx, q)
		if err != nil {
			return fmt.Errorf("roster of %s: %w", sc.id, err)
		}
		s.intake.metrics.rosterPages.Add(1)
		if pages > 0 && page.Generation != generation {
			return fmt.Errorf("roster of %s: %w: %d after %d", sc.id, errRoster,
				page.Generation, generation)
		}
		if generation = page.Generation; generation > math.MaxInt64 {
			return fmt.Errorf("roster of %s: %w: generation %d", sc.id, ErrInvalid, generation)
		}
		for i := range page.Members {
			if err := page.Members[i].valid(); err != nil {
				return fmt.Errorf("roster of %s: %w", sc.id, err)
			}
		}
		members = append(members, page.Members...)
		s.intake.metrics.sawRoster(len(members))
		if len(members) > s.intake.cfg.MaxRoster {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refuse(sc)
			return nil
		}
		if q.After = page.Next; page.Next == "" {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ev, ok := sc.pending0().(MessageStored); ok && generation < ev.RosterGeneration {
		return fmt.Errorf("roster of %s: %w: generation %d, a message saw %d", sc.id, errRoster,
			generation, ev.RosterGeneration)
	}
	if sc.roster == rosterComplete && generation <= sc.generation {
		return nil
	}
	sc.roster, sc.generation, sc.late = rosterComplete, generation, members
	s.intake.metrics.rosters.Add(1)
	s.begin(sc, sc.pending0())
	s.baseline(sc)
	return nil
}

func (sc *scope) pending0() Event {
	if len(sc.pending) == 0 {
		return nil
	}
	return sc.pending[0].Event
}

// refuse gives a scope up whose roster is over budget: its events change what is loaded, and
// exact rows are withheld until a cursor settles them.
func (s *space) refuse(sc *scope) {
	sc.roster = rosterRefused
	s.intake.metrics.refusedRosters.Add(1)
	sc.lose()
}

// baseline gives the members of a roster who have no row their first one. Who counts from above
// the head comes in when the head gets there.
func (s *space) baseline(sc *scope) {
	at, ok := s.book.Scope(sc.key)
	if !ok || len(sc.late) == 0 {
		return
	}
	since := at.Ranks.Head
	if at.Baselined {
		since = at.Since
	} else {
		s.book.Baseline(sc.key, since)
	}
	s.book.SetGenerations(sc.key, func(g *snapshot.Generations) { g.Roster = int64(sc.generation) })
	var found []readstate.Event
	later := sc.late[:0]
	for _, m := range sc.late {
		if m.EffectiveFrom > at.Ranks.Head+1 {
			later = append(later, m)
			continue
		}
		s.book.Found(s.firstRow(sc, m, since))
		found = append(found, readstate.RowFoundEvent{
			Scope: sc.key, Member: s.names.MemberKey(m.ID),
		})
	}
	if sc.late = later; len(later) == 0 {
		sc.late = nil
	}
	s.commit(found...)
}

// firstRow counts from the member's first revision, or from where the scope's first roster was
// read: what lies below that is unknown, so that the row is a hint.
func (s *space) firstRow(sc *scope, m RosterMember, since readstate.Revision) readstate.MemberRow {
	row := readstate.MemberRow{
		Scope: sc.key, Member: s.names.MemberKey(m.ID), MemberID: m.ID, StateLSN: s.lsn,
		Row: readstate.Row{
			Joined: true, Visible: !m.Hidden, Epoch: 1,
			Notification: readstate.Notification{Level: m.Level, Until: m.Until},
			Effective:    max(m.EffectiveFrom, since+1),
		},
	}
	if m.EffectiveFrom <= since {
		row.Row.Serving = readstate.Hint
	}
	row.Writer = s.book.WriterOf(sc.key, row.Member)
	e := row.Row.Effective - 1
	if point, _, ok := s.book.PointAt(&row, e); ok {
		row.Row.Point = point
	} else {
		row.Row.Point.E = e // what the member wrote above it is held, or unknown
	}
	return row
}
