package unread

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// install brings a page up to date on its own side and adds what memory lacks. Under the lock,
// and only once the page's LSN is applied.
func (r *Runtime) install(ws *workspace, j *job, page readstate.Page) {
	commits, whole := ws.ring.after(page.LSN)
	if !whole {
		r.metrics.overruns.Add(1)
		r.again(ws, j)
		return
	}
	side, err := r.bring(ws.st, &page, commits)
	if err != nil {
		// The page contradicts itself or the events. Memory had no part in it.
		r.metrics.alarms.Add(1)
		r.later(ws, j)
		return
	}
	asked := j.asked
	if len(side.stale) > 0 {
		r.again(ws, j) // the member blocked somebody meanwhile: the page lacks the pairs
		return
	}
	if len(side.retaken) > 0 {
		r.restart(ws, j) // the page is of an erased member, whose id was taken meanwhile
		return
	}
	m := r.merge(ws, side, j.member, j.told || !j.whole)
	r.metrics.pages.Add(1)
	if j.whole {
		j.cursor = page.Next
		j.whole = page.Next != ""
	} else {
		j.only = slices.DeleteFunc(j.only, func(k readstate.ScopeKey) bool {
			return slices.Contains(asked, k)
		})
	}
	r.inactive(ws, j)
	r.registerMissing(ws)
	if j.whole || len(j.only) > 0 {
		r.again(ws, j)
		j.announce()
	} else {
		ws.st.members.At(m).set(complete, true)
		ws.st.noted = append(ws.st.noted, ws.st.watchers(m)...)
		r.endJob(ws, j, nil)
	}
	r.evict(ws, m)
	if r.crowded() {
		r.relieve()
	}
}

// bring builds a state from the page alone and applies to it the commits after the page.
func (r *Runtime) bring(
	st *state, page *readstate.Page, commits []commit,
) (*state, error) {
	side := newState(new(slab.Memory), r.cfg.MaxFirePerTick, &r.metrics.checks)
	side.lsn, side.now = page.LSN, st.now
	m := side.addMember(page.Member, page.Blocks)
	side.members.At(m).gone = page.LeftLSN
	for _, threads := range []bool{false, true} {
		for i := range page.Scopes {
			p := &page.Scopes[i]
			if (p.Info.Parent != 0) == threads && side.scopeByKey[p.Info.Key] == none {
				sc := side.scopes.At(side.addScope(&p.Info, &p.Ranks))
				side.sets.fill(&sc.removed, p.Removed)
				side.sets.fill(&sc.everyone, p.Everyone)
				sc.settle()
			}
		}
	}
	for i := range page.Rows {
		p := &page.Rows[i]
		if p.Parent != nil {
			if err := side.load(m, p.Parent); err != nil {
				return nil, err
			}
		}
		if err := side.load(m, &p.MemberRow); err != nil {
			return nil, err
		}
	}
	for _, c := range commits {
		side.lsn = c.lsn
		for _, ev := range c.events {
			if err := side.apply(c.lsn, ev); err != nil {
				return nil, fmt.Errorf("page of %d: %w", page.LSN, err)
			}
		}
	}
	return side, nil
}

// load adds a row of a page.
func (st *state) load(m int32, row *readstate.MemberRow) error {
	s := st.scopeByKey[row.Scope]
	if s == none {
		return fmt.Errorf("%w: page has a row of scope %d and not the scope",
			ErrInvariant, row.Scope)
	}
	if st.entryOf(m, s) != none {
		return nil
	}
	sc := st.scopes.At(s)
	st.sets.learn(&sc.removed, row.Removed)
	st.sets.learn(&sc.everyone, row.Everyone)
	e := st.addEntry(m, s, row)
	st.setPairs(e, row.Pairs)
	return nil
}

// merge adds what side has and memory lacks. Both stand at the applied LSN. What memory has
// stays as it is. Told says that watches hear of the rows added. It returns the member.
func (r *Runtime) merge(
	ws *workspace, side *state, id readstate.MemberID, told bool,
) int32 {
	st := ws.st
	from := side.members.At(1)
	m := st.memberByKey[from.key]
	if m == none {
		info := side.memberInfo(1)
		if other := st.memberNamed(info.ID); other != none {
			st.dropMember(other) // an erased member's id, taken anew
		}
		m = st.addMember(info, side.blocked.by[1])
		st.connect(m, ws.watches[id]...)
	}
	mb := st.members.At(m)
	mb.use()
	mb.gone = max(mb.gone, from.gone)
	slots := st.mergeScopes(side)
	x := from.run()
	lacking := int32(0)
	for e := x.at; e < x.at+x.n; e++ {
		if st.entryOf(m, slots[side.rows.scope(e)]) == none {
			lacking++
		}
	}
	st.reserve(m, lacking)
	for e := x.at; e < x.at+x.n; e++ {
		st.mergeRow(side, e, m, slots, told)
	}
	for _, s := range slots {
		if s != none && st.scopes.At(s).entries == 0 {
			st.releaseScope(s)
		}
	}
	for _, x := range side.missing {
		if st.entryOf(m, st.scopeByKey[x.scope]) == none {
			st.miss(m, x.scope)
		}
	}
	return m
}

// mergeScopes returns the slots of memory by the slots of side.
func (st *state) mergeScopes(side *state) []int32 {
	slots := make([]int32, side.scopes.Top())
	for _, threads := range []bool{false, true} {
		for i := int32(1); i < side.scopes.Top(); i++ {
			from := side.scopes.At(i)
			if !side.scopes.InUse(i) || (from.parentKey != 0) != threads {
				continue
			}
			s := st.scopeByKey[from.key]
			if s == none {
				info, ranks := side.info(i), side.ranks(i)
				s = st.addScope(&info, &ranks)
				sc := st.scopes.At(s)
				st.sets.copy(&sc.removed, &side.sets, &from.removed)
				st.sets.copy(&sc.everyone, &side.sets, &from.everyone)
				sc.settle()
			} else {
				st.sets.adopt(&st.scopes.At(s).removed, &side.sets, &from.removed)
				st.sets.adopt(&st.scopes.At(s).everyone, &side.sets, &from.everyone)
			}
			for x, w := range side.blocked.writers[i] {
				st.learnWriter(s, x, w.clone())
			}
			slots[i] = s
		}
	}
	return slots
}

func (st *state) mergeRow(side *state, from, m int32, slots []int32, told bool) {
	s := slots[side.rows.scope(from)]
	if st.entryOf(m, s) != none {
		return
	}
	f := side.rows.load(from)
	e := st.addEntry(m, s, &readstate.MemberRow{
		Row: f.row, Writer: f.writer, StateLSN: f.stateLSN,
	})
	if pairs := side.blocked.pairs[from]; len(pairs) > 0 {
		st.blocked.pairs[e] = slices.Clone(pairs)
	}
	if told {
		st.markVisible(e, nobody)
	}
}

// evict lets whole members go while rows of members without a watch, or the bytes of the process,
// exceed their budget: members of this workspace that have no watch, that no read asked for since
// the hand passed last, and that are not being loaded. Kept was loaded just now. Under the lock.
func (r *Runtime) evict(ws *workspace, kept int32) {
	st := ws.st
	n := st.members.Top()
	over := func() bool {
		total := r.used.Load() - ws.bytes + st.bytes()
		return st.rows.n-st.watched > r.cfg.MaxEntries || total > int64(r.cfg.MaxBytes)
	}
	for steps := int32(0); steps < 2*n && over(); steps++ {
		ws.hand++
		if ws.hand >= n {
			ws.hand = 1
		}
		m := ws.hand
		mb := st.members.At(m)
		if !st.members.InUse(m) || m == kept || st.connected[m] != nil {
			continue
		}
		if mb.is(used) {
			mb.set(used, false)
			continue
		}
		if ws.jobs[st.memberID(m)] != nil {
			continue
		}
		st.dropMember(m)
		r.metrics.evicted.Add(1)
	}
	r.account(ws)
}

// crowded reports that memory takes more bytes than allowed.
func (r *Runtime) crowded() bool { return r.used.Load() > int64(r.cfg.MaxBytes) }

// relieve has the other workspaces let members go, one after another, each under its own lock.
func (r *Runtime) relieve() {
	for _, ws := range r.spaces.all() {
		r.agenda.work(ws)
	}
}

// Forget lets a member go who has no watch, as eviction does. It reports that the member was
// loaded.
func (r *Runtime) Forget(id readstate.WorkspaceID, member readstate.MemberID) bool {
	ws, err := r.workspace(id)
	if err != nil {
		return false
	}
	r.lock(ws)
	defer r.unlock(ws)
	m := ws.st.memberNamed(member)
	if m == none || ws.st.connected[m] != nil {
		return false
	}
	ws.st.dropMember(m)
	if j := ws.jobs[member]; j != nil {
		r.restartJob(ws, j)
	}
	r.metrics.evicted.Add(1)
	return true
}
