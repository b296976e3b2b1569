package intake

import (
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// take turns an event whose needs are in memory into changes of rows and scopes, and applies
// them.
func (s *space) take(sc *scope, next told) {
	ev := next.Event
	s.at = next.at
	s.intake.metrics.events.Add(1)
	sc.taken++
	if ev, ok := ev.(BlocksChanged); ok {
		s.blocks(ev)
		return
	}
	s.begin(sc, ev)
	if sc.lost {
		sc.lost = false
		s.doubt(sc)
	}
	if s.tooFar(sc, ev) {
		sc.lose()
		return
	}
	s.retype(sc, ev)
	switch ev := ev.(type) {
	case MessageStored:
		s.message(sc, ev)
	case MessageRewound:
		s.rewound(sc, ev)
	case MessageEdited:
		s.edited(sc, ev)
	case ScopeTrimmed:
		s.trimmed(sc, ev)
	case NonMessageActivityStored:
		s.activity(sc, ev)
	case ScopeStateChanged:
		s.state(sc, ev)
	case EventLost:
		s.intake.metrics.frontiers.Add(1)
		s.doubt(sc)
	default:
		s.member(sc, ev)
	}
}

// retype corrects the type of a scope that began with an event which did not tell it. Rows are
// counted in another way from then on, and memory reads them again.
func (s *space) retype(sc *scope, ev Event) {
	var kind readstate.ScopeType
	switch ev := ev.(type) {
	case MessageStored:
		kind = ev.Type
	case NonMessageActivityStored:
		kind = ev.Type
	case ScopeStateChanged:
		kind = ev.Type
	}
	at, _ := s.book.Scope(sc.key)
	if kind == 0 || kind == at.Info.Type || kind == readstate.Thread || at.Info.Parent != 0 {
		return // a thread is one because of its parent
	}
	info := at.Info
	info.Type = kind
	s.commit(readstate.ScopeEvent{Info: info})
	s.reread()
}

// tooFar reports a revision so far above the head that no loss explains it. Nothing is filled in up
// to there: the event is left out.
func (s *space) tooFar(sc *scope, ev Event) bool {
	var to readstate.Revision
	switch ev := ev.(type) {
	case MessageStored:
		to = ev.Revision
	case ReadCursorAdvanced:
		to = max(ev.Revision, ev.Head)
	case MembershipChanged:
		to = ev.EffectiveFrom
	case ScopeTrimmed:
		to = ev.Floor
	case ScopeStateChanged:
		to = ev.Head
	}
	at, _ := s.book.Scope(sc.key)
	if to <= at.Ranks.Head+snapshot.MaxGap {
		return false
	}
	s.intake.metrics.failures.Add(1)
	s.intake.cfg.Log.Error("an event is too far above what was told of its scope",
		"workspace", s.id, "scope", sc.id, "revision", to, "head", at.Ranks.Head)
	return true
}

// doubt withholds what is exact and counts from below the head.
func (s *space) doubt(sc *scope) {
	at, _ := s.book.Scope(sc.key)
	s.commit(readstate.GapEvent{Scope: sc.key, Head: at.Ranks.Head, Doubt: at.Ranks.Head})
}

// begin makes a scope known that the table does not have, where its first event says it stands:
// what lies below is nobody's.
func (s *space) begin(sc *scope, ev Event) {
	if ev == nil {
		return
	}
	if _, ok := s.book.Scope(sc.key); !ok {
		info := readstate.ScopeInfo{Key: sc.key, ID: sc.id, Type: readstate.Channel}
		var at readstate.ScopeRanks
		sure := false
		kind := readstate.ScopeType(0)
		switch ev := ev.(type) {
		case MessageStored:
			kind, sure = ev.Type, ev.Revision > 0
			at.LatestSeq = ev.Seq - 1
			if ev.Revision > 0 {
				at.Head = ev.Revision - 1
			}
		case NonMessageActivityStored:
			kind = ev.Type
			at.LatestActivity = ev.Seq - 1
		case ReadCursorAdvanced:
			at.Head, sure = max(ev.Revision, ev.Head), ev.Head > 0
		case MembershipChanged:
			if ev.EffectiveFrom > 0 {
				at.Head = ev.EffectiveFrom - 1
			}
		case ScopeStateChanged:
			at.Head, sure, kind = ev.Head, true, ev.Type
			if ev.Parent != "" {
				info.Parent, info.ParentID = s.names.ScopeKey(ev.Parent), ev.Parent
				info.Type = readstate.Thread
			}
		}
		if kind != 0 {
			info.Type = kind
		}
		s.book.Begin(info, at, sure)
		sc.absent = false // it can only be let go once the table has it
	}
}

// rowOf returns a member's row, and whether there is one.
func (s *space) rowOf(
	sc *scope, m readstate.MemberKey,
) (readstate.MemberRow, snapshot.Generations, bool) {
	row, gens, exists, _ := s.book.Row(snapshot.Key{Scope: sc.key, Member: m})
	return row, gens, exists
}

func (s *space) message(sc *scope, ev MessageStored) {
	at, _ := s.book.Scope(sc.key)
	author, principal := s.names.MemberKey(ev.Author), s.names.MemberKey(ev.NotifyPrincipal)
	if principal == author {
		principal = 0
	}
	out := readstate.MessageEvent{
		Scope: sc.key, Seq: ev.Seq, Revision: ev.Revision, ID: ev.ID, At: ev.At,
		Author: author, Principal: principal, Named: s.names.memberKeys(ev.Mentions),
		Recipients: s.names.memberKeys(ev.Recipients), Everyone: ev.Everyone && !at.Info.Type.Targeted(),
	}
	if ev.Revision > 0 {
		if ev.Revision <= at.Ranks.Head {
			s.commit(out) // told before: the book counts it as such
			return
		}
		if row, _, ok := s.rowOf(sc, author); ok {
			out.AuthorRank = row.Writer.AuthorHead + 1
		}
		if row, _, ok := s.rowOf(sc, principal); ok {
			out.PrincipalRank = row.Writer.PrincipalHead + 1
		}
		if ev.Revision > at.Ranks.Head+1 {
			s.intake.metrics.frontiers.Add(1)
		}
	}
	s.commit(out)
	s.book.SetGenerations(sc.key, func(g *snapshot.Generations) {
		g.Message = max(g.Message, int64(ev.Generation), int64(ev.Seq))
	})
	s.baseline(sc)
}

// facts completes what an event says of an entry by what is held of it.
func (s *space) facts(sc *scope, x *MessageFacts) snapshot.Entry {
	if m, ok := s.book.Entry(sc.key, x.Revision); ok {
		return m
	}
	return s.entry(x)
}

func (s *space) entry(x *MessageFacts) snapshot.Entry {
	m := snapshot.Entry{
		Revision: x.Revision, Author: s.names.MemberKey(x.Author),
		Principal: s.names.MemberKey(x.NotifyPrincipal), Named: s.names.memberKeys(x.Mentions),
		Recipients: s.names.memberKeys(x.Recipients), Everyone: x.Everyone,
	}
	if m.Principal == m.Author {
		m.Principal = 0
	}
	return m
}

func (s *space) rewound(sc *scope, ev MessageRewound) {
	at, _ := s.book.Scope(sc.key)
	targeted := at.Info.Type.Targeted() // rows know there what they count
	if !targeted && s.known(at, ev.Generation) {
		return
	}
	var events []readstate.Event
	replies := at.Ranks.Replies
	for i := range ev.Removed {
		x := &ev.Removed[i]
		gone := s.book.Removed(sc.key, x.Revision)
		if x.Revision == 0 || x.Revision > at.Ranks.Head || gone && !targeted {
			continue
		}
		m := s.facts(sc, x)
		if replies > 0 && !gone {
			replies--
		}
		events = append(events, readstate.RemovalEvent{
			Scope: sc.key, Seq: x.Seq, Revision: x.Revision, Author: m.Author,
			Principal: m.Principal, Named: m.Named, Recipients: m.Recipients,
			Everyone: m.Everyone, Latest: at.Ranks.Latest, Replies: replies,
		})
	}
	s.commit(events...)
	s.book.SetGenerations(sc.key, func(g *snapshot.Generations) {
		g.Rewind = max(g.Rewind, int64(ev.Generation))
	})
}

// known reports that a change of entries with this generation was told before.
func (s *space) known(at snapshot.Scope, generation uint64) bool {
	if generation == 0 || int64(generation) > at.Generations.Rewind {
		return false
	}
	s.intake.metrics.repeated.Add(1)
	return true
}

func (s *space) edited(sc *scope, ev MessageEdited) {
	at, _ := s.book.Scope(sc.key)
	if s.known(at, ev.Generation) {
		return
	}
	m := s.facts(sc, &ev.Was)
	after := s.names.memberKeys(ev.Mentions)
	everyone := ev.Everyone && !at.Info.Type.Targeted()
	s.commit(readstate.EditEvent{
		Scope: sc.key, Seq: ev.Was.Seq, Revision: ev.Was.Revision, Author: m.Author,
		Principal: m.Principal, Recipients: m.Recipients, NamedBefore: m.Named,
		NamedAfter: after, EveryoneBefore: m.Everyone, EveryoneAfter: everyone,
	})
	s.book.SetGenerations(sc.key, func(g *snapshot.Generations) {
		g.Rewind = max(g.Rewind, int64(ev.Generation))
	})
}

func (s *space) activity(sc *scope, ev NonMessageActivityStored) {
	at, _ := s.book.Scope(sc.key)
	out := readstate.ActivityEvent{
		Scope: sc.key, Seq: ev.Seq, At: ev.At, HighSignal: ev.HighSignal,
		Actor: s.names.MemberKey(ev.Actor), Recipients: s.names.memberKeys(ev.Recipients),
	}
	if ev.Seq <= at.Ranks.LatestActivity {
		s.commit(out)
		return
	}
	if ev.HighSignal {
		out.SignalRank = at.Ranks.SignalHead + 1
		if row, _, ok := s.rowOf(sc, out.Actor); ok {
			out.ActorRank = row.Writer.ActorHead + 1
		}
	}
	s.commit(out)
	s.book.SetGenerations(sc.key, func(g *snapshot.Generations) {
		g.Activity = max(g.Activity, int64(ev.Seq))
	})
}

func (s *space) state(sc *scope, ev ScopeStateChanged) {
	at, _ := s.book.Scope(sc.key)
	info := at.Info
	info.Archived, info.Name = ev.Archived, ev.Name
	info.Active, info.Thinking = ev.Active, ev.Thinking
	info.PendingInput, info.PendingPermission = ev.PendingInput, ev.PendingPermission
	info.History = readstate.HistoryJoined
	if ev.Shared {
		info.History = readstate.HistoryShared
	}
	var events []readstate.Event
	if ev.Head > at.Ranks.Head {
		s.intake.metrics.frontiers.Add(1)
		events = append(events, readstate.GapEvent{Scope: sc.key, Head: ev.Head, Doubt: ev.Head})
	}
	s.commit(append(events, readstate.ScopeEvent{Info: info})...)
}
