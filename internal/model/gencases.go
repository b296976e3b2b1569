package model

import "slices"

// special performs one of the cases that chance finds too rarely.
func (g *generator) special(step Step) {
	switch step {
	case StepEditNames:
		g.editNames()
	case StepEditEveryone:
		g.editEveryone()
	case StepRunEnds:
		g.runEnds()
	case StepUnblock:
		g.unblock()
	case StepFirstWriter:
		g.firstWriter()
	case StepDMMentions:
		g.dmMentions()
	case StepRejoin:
		g.rejoin()
	case StepThreadEpoch:
		g.threadEpoch()
	case StepManualRemoved:
		g.manualRemoved()
	}
}

// unread draws a scope, a member and a live entry that counts for the member.
func (g *generator) unread() (*scope, MemberID, *entry) {
	s, m, ok := g.row()
	if !ok {
		return nil, 0, nil
	}
	r := s.rows[m]
	e := g.liveEntry(s, func(e *entry) bool { return g.world.verdict(s, m, r, e) == Counts })
	return s, m, e
}

func (g *generator) editNames() {
	s, m, e := g.unread()
	if e == nil || slices.Contains(e.mentions, m) {
		return
	}
	g.emit(Op{
		Kind: OpEdit, Scope: s.id, Seq: e.seq,
		Mentions: set(append(slices.Clone(e.mentions), m)), Everyone: e.everyone,
	})
}

func (g *generator) editEveryone() {
	s, m, e := g.unread()
	if e == nil || s.kind == Task {
		return
	}
	if !g.chance(4) {
		g.emit(Op{Kind: OpSetLevel, Scope: s.id, Member: m, Level: Mentions, Service: true})
	}
	g.emit(Op{
		Kind: OpEdit, Scope: s.id, Seq: e.seq,
		Mentions: e.mentions, Everyone: !e.everyone,
	})
}

func (g *generator) runEnds() {
	s := g.scopeOf(ofKind(Session))
	if s == nil {
		return
	}
	g.emit(Op{Kind: OpRunState, Scope: s.id, Active: true, Thinking: true})
	g.emit(Op{Kind: OpPost, Scope: s.id, Member: g.member(), Mentions: g.names()})
	if g.chance(4) {
		g.emit(Op{Kind: OpRemove, Scope: s.id, Seq: s.latestSeq()})
	}
	g.emit(Op{Kind: OpRunState, Scope: s.id, Active: g.chance(2)})
}

// unblock lifts a block; without one there is a block and a message first.
func (g *generator) unblock() {
	m := g.member()
	blocked := g.world.Blocks(m)
	if len(blocked) > 0 {
		x := blocked[g.draw(len(blocked))]
		g.emit(Op{Kind: OpUnblock, Member: m, Other: x})
		return
	}
	x := g.other(m)
	s := g.scopeOf(func(s *scope) bool { return g.world.inReach(s, m) })
	if s == nil {
		return
	}
	g.emit(Op{Kind: OpBlock, Member: m, Other: x})
	g.post(s, x)
	if g.chance(2) {
		g.emit(Op{Kind: OpUnblock, Member: m, Other: x})
	}
}

// firstWriter has a member blocked by another before it first writes somewhere.
func (g *generator) firstWriter() {
	s, m, ok := g.row()
	if !ok {
		return
	}
	x := g.other(m)
	for range genMembers {
		wrote := func(e *entry) bool { return e.author == x || e.principal == x }
		if x != m && !slices.ContainsFunc(s.entries, wrote) {
			break
		}
		x = x%MemberID(genMembers) + 1
	}
	if x == m {
		return
	}
	g.emit(Op{Kind: OpBlock, Member: m, Other: x})
	g.post(s, x)
	if g.chance(2) {
		g.emit(Op{Kind: OpUnblock, Member: m, Other: x})
	}
}

func (g *generator) dmMentions() {
	s := g.scopeOf(ofKind(DM))
	if s == nil {
		return
	}
	for _, m := range g.reached(s) {
		if !g.chance(3) {
			g.emit(Op{Kind: OpSetLevel, Scope: s.id, Member: m, Level: Mentions, Service: true})
		}
	}
	g.post(s, g.member())
}

func (g *generator) rejoin() {
	s := g.scopeOf(joinable)
	m := g.member()
	g.emit(Op{Kind: OpLeave, Scope: s.id, Member: m})
	g.emit(Op{Kind: OpPost, Scope: s.id, Member: g.other(m), Mentions: []MemberID{m}})
	op := Op{Kind: OpJoin, Scope: s.id, Member: m}
	if g.chance(4) {
		op.From = max(g.revision(s), 1)
	}
	g.emit(op)
	if g.chance(2) {
		g.post(s, g.other(m))
	}
}

// threadEpoch leaves and joins a thread's channel, with replies around it.
func (g *generator) threadEpoch() {
	s := g.scopeOf(ofKind(Thread))
	if s == nil {
		return
	}
	m := g.member()
	x := g.other(m)
	when := g.draw(8)
	reply := Op{Kind: OpPost, Scope: s.id, Member: x, Mentions: []MemberID{m}}
	if when&1 != 0 {
		g.emit(reply)
	}
	g.emit(Op{Kind: OpLeave, Scope: s.parent, Member: m})
	if when&2 != 0 {
		g.emit(reply)
	}
	g.emit(Op{Kind: OpJoin, Scope: s.parent, Member: m})
	if when&4 != 0 {
		g.emit(reply)
	}
}

// manualRemoved marks from a revision on and removes all that is there.
func (g *generator) manualRemoved() {
	s, m, ok := g.row()
	if !ok || s.head() == 0 {
		return
	}
	x := max(s.head()-Revision(g.draw(3)), 1)
	g.emit(Op{
		Kind: OpMarkUnread, Scope: s.id, Member: m, From: x,
		Version: NoVersion, Service: true,
	})
	for _, e := range s.entries {
		if e.revision >= x && e.live && !e.trimmed && !g.spared(s, e) {
			g.emit(Op{Kind: OpRemove, Scope: s.id, Seq: e.seq})
		}
	}
}
