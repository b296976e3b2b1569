package model

// take performs one plain step, or hands over to the cases.
func (g *generator) take(step Step) {
	switch step {
	case StepPost:
		g.post(g.scopeOf(anyScope), g.member())
	case StepEdit, StepRemove, StepRewind, StepTrim, StepMove:
		g.change(step)
	case StepClock:
		g.emit(Op{Kind: OpAdvanceClock, Advance: Seconds(g.draw(5))})
	case StepExpire:
		g.emit(Op{Kind: OpExpire, Advance: Seconds(g.draw(5))})
	case StepJoin:
		g.join()
	case StepLeave, StepVisibility, StepLevel, StepActivityRead:
		g.settings(step)
	case StepRead, StepReadHead, StepReadAll, StepMarkUnread:
		g.reading(step)
	case StepFollow:
		g.follow()
	case StepArchive:
		s := g.scopeOf(anyScope)
		kind := OpArchive
		if s.archived {
			kind = OpUnarchive
		}
		g.emit(Op{Kind: kind, Scope: s.id})
	case StepBlock:
		m := g.member()
		kind, x := OpBlock, g.other(m)
		if g.world.blocks[m][x] {
			kind = OpUnblock
		}
		g.emit(Op{Kind: kind, Member: m, Other: x})
	case StepActivity:
		g.activity()
	case StepTask:
		g.task()
	case StepRunState, StepMerge, StepFork:
		g.session(step)
	case StepRefused:
		g.refused()
	default:
		g.special(step)
	}
}

// post appends something by the member to the scope.
func (g *generator) post(s *scope, m MemberID) Outcome {
	op := Op{Kind: OpPost, Scope: s.id, Member: m, Mentions: g.names()}
	flags := g.draw(256)
	if flags%8 == 7 {
		op.Other = g.other(m)
	}
	op.Everyone = flags/8%4 == 3 && s.kind != Task
	op.Broadcast = flags/32%2 == 1 && s.kind == Thread
	op.Unreadable = flags/64 == 3 && flags%3 == 0
	op.Baseline = flags%51 == 50
	if s.addressed() {
		op.Recipients = g.names()
	}
	switch g.draw(6) {
	case 4:
		op.Expires = g.world.clock + Seconds(1+g.draw(6))
	case 5:
		op.Revision = s.head()
	}
	return g.emit(op)
}

// change edits, removes, trims or moves entries.
func (g *generator) change(step Step) {
	s := g.scopeOf(func(s *scope) bool { return step != StepMove || s.kind != Session })
	if step == StepRewind {
		// A rewind of everything would leave little to look at.
		g.emit(Op{Kind: OpRewind, Scope: s.id, Seq: max(s.latestSeq()-Seq(g.draw(4)), 0)})
		return
	}
	if step == StepTrim {
		g.emit(Op{Kind: OpTrim, Scope: s.id, Seq: g.seq(s)})
		return
	}
	e := g.liveEntry(s, anyEntry)
	if e == nil || step != StepEdit && g.spared(s, e) {
		return
	}
	switch step {
	case StepEdit:
		everyone := g.chance(4) && s.kind != Task
		g.emit(Op{Kind: OpEdit, Scope: s.id, Seq: e.seq, Mentions: g.names(), Everyone: everyone})
	case StepRemove:
		g.emit(Op{Kind: OpRemove, Scope: s.id, Seq: e.seq})
	case StepMove:
		to := g.scopeOf(func(t *scope) bool { return t != s && t.kind != Session })
		op := Op{Kind: OpMove, Scope: s.id, Seqs: []Seq{e.seq}, To: to.id, Count: g.chance(2)}
		if to.addressed() {
			op.Recipients = g.names()
		}
		if next := s.entry(e.seq + 1); next != nil && next.live && g.chance(3) {
			op.Seqs = append(op.Seqs, next.seq)
		}
		g.emit(op)
	}
}

func (g *generator) join() {
	s := g.scopeOf(joinable)
	m := g.member()
	// Somebody who is not in is more interesting.
	if g.world.inReach(s, m) && !g.chance(3) {
		m = m%MemberID(genMembers) + 1
	}
	op := Op{Kind: OpJoin, Scope: s.id, Member: m}
	switch g.draw(5) {
	case 3:
		op.From = max(g.revision(s), 1)
	case 4:
		op.From, op.Revision = max(g.revision(s), 1), g.revision(s)
	}
	g.emit(op)
}

func (g *generator) settings(step Step) {
	s, m, ok := g.row()
	if !ok {
		return
	}
	r := s.rows[m]
	switch step {
	case StepLeave:
		if s.kind == Thread {
			s = g.world.scopes[s.parent]
		}
		if s.kind != Session {
			g.emit(Op{Kind: OpLeave, Scope: s.id, Member: m})
		}
	case StepVisibility:
		kind := OpHide
		if !r.visible {
			kind = OpShow
		}
		g.emit(Op{Kind: kind, Scope: s.id, Member: m})
	case StepLevel:
		op := Op{Kind: OpSetLevel, Scope: s.id, Member: m, Level: Level(g.draw(4)), Service: true}
		if op.Level != Inherit && g.chance(2) {
			op.Until = g.world.clock + Seconds(1+g.draw(6))
		}
		g.emit(op)
	case StepActivityRead:
		back := ActivitySeq(g.draw(3))
		g.emit(Op{
			Kind: OpActivityRead, Scope: s.id, Member: m,
			Activity: max(s.latestActivity()-back, 0), Service: true,
		})
	}
}

func (g *generator) reading(step Step) {
	s, m, ok := g.row()
	if !ok {
		return
	}
	op := Op{Kind: OpRead, Scope: s.id, Member: m, Version: g.version(s, m)}
	switch step {
	case StepRead:
		op.Revision = g.revision(s)
	case StepReadHead:
		op.Revision = s.head()
	case StepReadAll:
		op = Op{Kind: OpReadAll, Member: m, Service: g.chance(3)}
		for _, id := range g.world.ScopeIDs() {
			t := g.world.scopes[id]
			if t.rows[m] == nil || g.chance(3) {
				continue
			}
			it := ReadItem{Scope: id, Revision: t.head(), Version: g.version(t, m)}
			op.Items = append(op.Items, it)
		}
	case StepMarkUnread:
		op.Kind = OpMarkUnread
		if !g.chance(3) {
			op.From = g.revision(s)
		}
	}
	if op.Kind == OpRead && g.chance(4) {
		op.Version, op.Service = NoVersion, true
	}
	g.emit(op)
}

func (g *generator) follow() {
	s := g.scopeOf(ofKind(Thread))
	kind := OpFollow
	if g.chance(2) {
		kind = OpUnfollow
	}
	if s != nil {
		g.emit(Op{Kind: kind, Scope: s.id, Member: g.member()})
	}
}

func (g *generator) activity() {
	s := g.scopeOf(anyScope)
	op := Op{Kind: OpActivity, Scope: s.id, Member: g.member(), LowSignal: g.chance(4)}
	if s.addressed() {
		op.Recipients = g.names()
	}
	g.emit(op)
}

// task changes who is told of what happens in a planned task, and now and then what it says.
func (g *generator) task() {
	s := g.scopeOf(func(s *scope) bool { return s.planned })
	if s == nil {
		return
	}
	m := g.member()
	op := Op{Kind: OpTask, Scope: s.id, Member: m}
	switch g.draw(9) {
	case 0, 1:
		op.Kind = OpFollow
	case 6, 7: // with what else has happened before it
		in := g.reached(s)
		if len(in) == 0 {
			return
		}
		op = Op{
			Kind: OpRead, Scope: s.id, Member: in[g.draw(len(in))], Revision: g.revision(s),
			Version: NoVersion, Service: true,
		}
	case 2:
		op.Kind = OpUnfollow
	case 3:
		op.Assigns, op.Other = true, g.other(m)
		if g.chance(3) {
			op.Status = Word(1 + g.draw(3))
		}
	case 4:
		op.Assigns = true
		op.Title = Word(g.draw(3))
	default:
		op.Status = Word(1 + g.draw(3))
	}
	g.emit(op)
}

func (g *generator) session(step Step) {
	s := g.scopeOf(ofKind(Session))
	if s == nil {
		return
	}
	switch step {
	case StepRunState:
		bits := g.draw(4)
		g.emit(Op{Kind: OpRunState, Scope: s.id, Active: bits&1 != 0, Thinking: bits&2 != 0})
	case StepMerge:
		to := g.scopeOf(func(t *scope) bool { return t.kind == Session && t != s })
		if to != nil {
			g.emit(Op{Kind: OpMerge, Scope: s.id, To: to.id})
		}
	case StepFork:
		if next := ScopeID(len(g.world.scopes)) + 1; next <= maxScopes && g.world.scopes[next] == nil {
			g.emit(Op{Kind: OpFork, Scope: s.id, To: next})
		}
	}
}

// refused tries what must not work, or must change nothing.
func (g *generator) refused() {
	s, m, ok := g.row()
	if !ok {
		return
	}
	op := Op{Kind: OpRead, Scope: s.id, Member: m, Version: s.rows[m].version, Service: true}
	switch g.draw(6) {
	case 0:
		op.Revision = s.head() + 1
	case 1: // stale
		op.Revision, op.Version = max(s.rows[m].read-1, 0), NoVersion
	case 2:
		op.Kind, op.Version = OpMarkUnread, s.rows[m].version+1
	case 3:
		op.Kind, op.From = OpMarkUnread, s.head()+1
	case 4:
		op = Op{Kind: OpRemove, Scope: s.id, Seq: s.latestSeq() + 1}
	case 5:
		op.Version, op.Service = NoVersion, false
	}
	g.emit(op)
}
