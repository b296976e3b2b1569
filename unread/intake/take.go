package intake

import (
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// take turns an event whose needs are in memory into changes of rows and scopes, and applies
// them.
func (s *space) take(sc *scope, ev Event) {
	s.intake.metrics.events.Add(1)
	s.begin(sc, ev)
	if sc.lost {
		sc.lost = false
		s.doubt(sc)
	}
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
	}
	if !sc.started {
		at, _ := s.book.Scope(sc.key)
		sc.started = true
		sc.held.restart(at.Ranks.Head)
		sc.held.lowSeq = at.Ranks.LatestActivity
	}
}

// rowOf returns a member's row, and whether there is one.
func (s *space) rowOf(sc *scope, m readstate.MemberKey) (readstate.MemberRow, snapshot.Facts, bool) {
	row, facts, exists, _ := s.book.Row(snapshot.Key{Scope: sc.key, Member: m})
	return row, facts, exists
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
			sc.held.restart(ev.Revision - 1)
		}
	}
	s.commit(out)
	if ev.Revision > 0 {
		sc.held.add(message{
			revision: ev.Revision, author: author, principal: principal, named: out.Named,
			recipients: out.Recipients, everyone: out.Everyone,
		}, s.intake.cfg.MaxHeld)
	}
	s.book.SetGenerations(sc.key, func(g *snapshot.Generations) {
		g.Message = max(g.Message, int64(ev.Generation), int64(ev.Seq))
	})
	s.baseline(sc)
}

// facts completes what an event says of an entry by what is held of it.
func (s *space) facts(sc *scope, x *MessageFacts) message {
	if m := sc.held.find(x.Revision); m != nil {
		return *m
	}
	m := message{
		revision: x.Revision, author: s.names.MemberKey(x.Author),
		principal: s.names.MemberKey(x.NotifyPrincipal), named: s.names.memberKeys(x.Mentions),
		recipients: s.names.memberKeys(x.Recipients), everyone: x.Everyone,
	}
	if m.principal == m.author {
		m.principal = 0
	}
	return m
}

func (s *space) rewound(sc *scope, ev MessageRewound) {
	at, _ := s.book.Scope(sc.key)
	if s.known(at, ev.Generation) {
		return
	}
	var events []readstate.Event
	replies := at.Ranks.Replies
	for i := range ev.Removed {
		x := &ev.Removed[i]
		if x.Revision == 0 || x.Revision > at.Ranks.Head || s.book.Removed(sc.key, x.Revision) {
			continue
		}
		m := s.facts(sc, x)
		if replies > 0 {
			replies--
		}
		events = append(events, readstate.RemovalEvent{
			Scope: sc.key, Seq: x.Seq, Revision: x.Revision, Author: m.author,
			Principal: m.principal, Named: m.named, Recipients: m.recipients,
			Everyone: m.everyone, Latest: at.Ranks.Latest, Replies: replies,
		})
	}
	s.commit(events...)
	for i := range ev.Removed {
		if m := sc.held.find(ev.Removed[i].Revision); m != nil {
			m.removed = true
		}
	}
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
		Scope: sc.key, Seq: ev.Was.Seq, Revision: ev.Was.Revision, Author: m.author,
		Principal: m.principal, Recipients: m.recipients, NamedBefore: m.named,
		NamedAfter: after, EveryoneBefore: m.everyone, EveryoneAfter: everyone,
	})
	if x := sc.held.find(ev.Was.Revision); x != nil {
		x.named, x.everyone = after, everyone
	}
	s.book.SetGenerations(sc.key, func(g *snapshot.Generations) {
		g.Rewind = max(g.Rewind, int64(ev.Generation))
	})
}

// trimmed raises the floor and moves the rows that the trimmed entries name up to it.
func (s *space) trimmed(sc *scope, ev ScopeTrimmed) {
	at, _ := s.book.Scope(sc.key)
	if ev.Floor <= at.Ranks.Floor || ev.Floor > at.Ranks.Head {
		s.intake.metrics.repeated.Add(1)
		return
	}
	crossed := map[readstate.MemberKey]*readstate.Crossed{}
	ranks := map[readstate.MemberKey]readstate.Ranks{}
	replies := at.Ranks.Replies
	var order []readstate.MemberKey
	for i := range ev.Trimmed {
		x := &ev.Trimmed[i]
		m := s.facts(sc, x)
		live := !s.book.Removed(sc.key, x.Revision)
		if x.Revision > ev.Floor || x.Revision <= at.Ranks.Floor {
			continue
		}
		if live && replies > 0 {
			replies--
		}
		for _, k := range m.touched() {
			row, _, ok := s.rowOf(sc, k)
			if !ok || x.Revision <= row.Row.Point.E {
				continue
			}
			if crossed[k] == nil {
				crossed[k] = new(readstate.Crossed)
				ranks[k] = readstate.Ranks{
					Author: row.Row.Point.AuthorRank, Principal: row.Row.Point.PrincipalRank,
				}
				order = append(order, k)
			}
			role, r := m.role(k), ranks[k]
			if role.Author {
				r.Author++
			}
			if role.Principal {
				r.Principal++
			}
			ranks[k] = r
			crossed[k].Add(at.Info.Type,
				readstate.Message{Revision: x.Revision, Everyone: m.everyone}, role, live)
		}
	}
	events := []readstate.Event{readstate.FloorEvent{
		Scope: sc.key, Floor: ev.Floor, Latest: at.Ranks.Latest, Replies: replies,
	}}
	for _, k := range order {
		row, _, _ := s.rowOf(sc, k)
		p := &row.Row.Point
		if err := p.Move(p.PlanMove(ev.Floor, at.Ranks.Head), *crossed[k], ranks[k]); err != nil {
			row.Row.Serving = readstate.Behind
			p.E = max(p.E, ev.Floor)
		}
		row.StateLSN = 0
		events = append(events, readstate.MemberEvent{MemberRow: row})
	}
	s.commit(events...)
	sc.held.trim(ev.Floor)
}

// touched lists the members whom an entry names, each once.
func (m *message) touched() []readstate.MemberKey {
	var keys []readstate.MemberKey
	add := func(k readstate.MemberKey) {
		for _, x := range keys {
			if x == k {
				return
			}
		}
		if k != 0 {
			keys = append(keys, k)
		}
	}
	add(m.author)
	add(m.principal)
	for _, k := range m.named {
		add(k)
	}
	for _, k := range m.recipients {
		add(k)
	}
	return keys
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
	sc.held.addActivity(act{
		seq: ev.Seq, actor: out.Actor, high: ev.HighSignal, recipients: out.Recipients,
	}, s.intake.cfg.MaxHeld)
	s.book.SetGenerations(sc.key, func(g *snapshot.Generations) {
		g.Activity = max(g.Activity, int64(ev.Seq))
	})
}

func (s *space) state(sc *scope, ev ScopeStateChanged) {
	at, _ := s.book.Scope(sc.key)
	info := at.Info
	info.Archived, info.Name = ev.Archived, ev.Name
	info.History = readstate.HistoryJoined
	if ev.Shared {
		info.History = readstate.HistoryShared
	}
	var events []readstate.Event
	if ev.Head > at.Ranks.Head {
		sc.held.restart(ev.Head)
		s.intake.metrics.frontiers.Add(1)
		events = append(events, readstate.GapEvent{Scope: sc.key, Head: ev.Head, Doubt: ev.Head})
	}
	s.commit(append(events, readstate.ScopeEvent{Info: info})...)
}
