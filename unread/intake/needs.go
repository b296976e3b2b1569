package intake

import (
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

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
