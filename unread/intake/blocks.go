package intake

import (
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// await has what newly blocked members write noted from the moment the block was told, although it is
// carried out later.
func (s *space) await(ev Event, on bool) {
	if ev, ok := ev.(BlocksChanged); ok {
		s.book.Await(s.names.memberKeys(ev.Blocks), on)
	}
}

// needsOfBlocks lists the persons that a change of blocks looks at: the member first, since they
// tell who is blocked already.
func (s *space) needsOfBlocks(ev BlocksChanged) []snapshot.Key {
	m := s.names.MemberKey(ev.Member)
	keys := []snapshot.Key{{Member: m}}
	if !s.book.Has(keys[0]) {
		return keys
	}
	added, _ := s.blocksOf(ev)
	for _, x := range added {
		keys = append(keys, snapshot.Key{Member: x})
	}
	return keys
}

// blocksOf compares the event with what the book has. A damaged member blocks nobody there, so
// that everything is new. An event that is older than what the book has changes nothing.
func (s *space) blocksOf(ev BlocksChanged) (added, removed []readstate.MemberKey) {
	p, ok := s.book.Person(s.names.MemberKey(ev.Member))
	if !ok || s.blocksAreOld(ev, p) {
		return nil, nil
	}
	next := s.names.memberKeys(ev.Blocks)
	for _, x := range next {
		if _, found := slices.BinarySearch(p.Blocks, x); !found {
			added = append(added, x)
		}
	}
	for _, x := range p.Blocks {
		if !slices.Contains(next, x) {
			removed = append(removed, x)
		}
	}
	return added, removed
}

func (s *space) blocksAreOld(ev BlocksChanged, p snapshot.Person) bool {
	return ev.Generation != 0 && int64(ev.Generation) <= p.Generation
}

// blocks takes a change over that blocks nobody new, or whose rows all have their pairs.
func (s *space) blocks(ev BlocksChanged) {
	m := s.names.MemberKey(ev.Member)
	p, _ := s.book.Person(m)
	if s.blocksAreOld(ev, p) {
		s.intake.metrics.repeated.Add(1)
		return
	}
	added, removed := s.blocksOf(ev)
	var events []readstate.Event
	for _, x := range added {
		events = append(events, readstate.BlockEvent{Member: m, Other: x, Blocked: true})
	}
	for _, x := range removed {
		events = append(events, readstate.BlockEvent{Member: m, Other: x})
	}
	if p.Broken {
		// The rows were withheld, because nobody knew the blocks: memory reads them again.
		events = append(events, readstate.BlockEvent{Member: m, Other: m, Blocked: true})
	}
	s.book.SetBlocks(m, int64(ev.Generation))
	if len(events) > 0 {
		s.commit(events...)
	}
}

// block carries out a change that blocks somebody new: page by page, every row of the member gets
// its pairs, and only then does the block count. Whatever happens meanwhile keeps pairs of its own.
func (s *space) block(next told, ev BlocksChanged) error {
	m := s.names.MemberKey(ev.Member)
	s.mu.Lock()
	added, _ := s.blocksOf(ev)
	err := s.book.Blocking(m, added)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	known := s.writtenBy(ev)
	for after := readstate.ScopeID(""); ; {
		scopes, next, err := s.book.LoadMember(s.intake.ctx, s.intake.cfg.Store, m, after,
			s.intake.cfg.Runtime.HydratePageSize)
		if err == nil {
			err = s.pairPage(ev, added, scopes, known)
		}
		if err != nil {
			return err
		}
		if after = next; after == "" {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pair(ev, added, s.book.Rows(m), known) // those that the table does not have yet
	s.take(s.people, next)
	s.taken(s.people, 1)
	return nil
}

// pairPage gives rows their pairs. Some of them may have been let go since they were read.
func (s *space) pairPage(
	ev BlocksChanged, added []readstate.MemberKey, scopes []readstate.ScopeID,
	known map[readstate.ScopeKey]snapshot.Written,
) error {
	for {
		s.mu.Lock()
		gone := s.pair(ev, added, scopes, known)
		s.trim()
		s.mu.Unlock()
		if len(gone) == 0 {
			return nil
		}
		m := s.names.MemberKey(ev.Member)
		keys := []snapshot.Key{{Member: m}}
		for _, id := range gone {
			at := s.names.ScopeKey(id)
			keys = append(keys, snapshot.Key{Scope: at}, snapshot.Key{Scope: at, Member: m})
		}
		if err := s.book.Fetch(s.intake.ctx, s.intake.cfg.Store, keys); err != nil {
			return err
		}
		scopes = gone
	}
}

func (s *space) pair(
	ev BlocksChanged, added []readstate.MemberKey, scopes []readstate.ScopeID,
	known map[readstate.ScopeKey]snapshot.Written,
) (gone []readstate.ScopeID) {
	events, gone := s.book.Pair(s.names.MemberKey(ev.Member), added, scopes,
		func(at readstate.ScopeKey) snapshot.Written { return known[at] }, ev.Known)
	s.commit(events...)
	return gone
}

// writtenBy puts what the program knows of the blocked members' entries in order.
func (s *space) writtenBy(ev BlocksChanged) map[readstate.ScopeKey]snapshot.Written {
	known := map[readstate.ScopeKey]snapshot.Written{}
	for i := range ev.Written {
		w := &ev.Written[i]
		var out snapshot.Written
		for j := range w.Entries {
			out.Entries = append(out.Entries, s.entry(&w.Entries[j]))
		}
		for _, a := range w.Activities {
			out.Activity = append(out.Activity, snapshot.Act{
				Seq: a.Seq, Actor: s.names.MemberKey(a.Actor), High: true,
				Recipients: s.names.memberKeys(a.Recipients),
			})
		}
		known[s.names.ScopeKey(w.Scope)] = out.Sorted()
	}
	return known
}
