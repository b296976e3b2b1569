package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

type trim struct{ TrimScope }

func (o *trim) name() string                       { return "trim" }
func (o *trim) rows() int                          { return batchEntries }
func (o *trim) gather(w *workspace, n *needs)      { n.scope(w, o.Scope); n.member(w, o.By.Member) }
func (o *trim) resolve(*group, *workspace, *needs) {}

// run trims one batch of the oldest entries: the members they touch are rebased to the new
// floor, then the rows go. Each batch is correct by itself.
func (o *trim) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if err := CheckID("opId", o.OpID); err != nil {
		return nil, err
	}
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	actor, err := g.actorKey(ctx, w, o.By)
	if err != nil {
		return nil, err
	}
	key, d := OpKey{w.Key, actor, o.OpID}, digest(o.TrimScope)
	if r, found, err := g.repeated(ctx, key, d, w, true); found || err != nil {
		return r, err
	}
	g.touch(w)
	high := min(o.Through, scope.Ranks.LatestSeq)
	entries, err := g.between(ctx, scope.Info.Key, scope.FloorSeq, high, false)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		if scope, err = g.trimEntries(ctx, w, scope, entries); err != nil {
			return nil, err
		}
		if err := g.settle(ctx, w, scope.Info.Key); err != nil {
			return nil, err
		}
		if len(entries) == batchEntries && scope.FloorSeq < high {
			return nil, errAgain
		}
	}
	r := Receipt{Seq: scope.FloorSeq, Revision: scope.Ranks.Floor, LSN: w.LSN}
	return r, g.keep(key, d, r)
}

// reached is what the trimmed entries say about one member: their ranks at the new floor and
// their own rows among the entries.
type reached struct {
	writer  WriterRow
	entries []*MessageRow
	roles   []readstate.Role
}

// trimEntries raises the floor over a batch of entries, which are the oldest of the scope.
func (g *group) trimEntries(
	ctx context.Context, w *workspace, s ScopeRow, entries []*MessageRow,
) (ScopeRow, error) {
	floor := s.Ranks.Floor
	for _, m := range entries {
		floor = max(floor, m.Revision)
	}
	members, order, err := g.reachedBy(ctx, s, entries)
	if err != nil {
		return s, err
	}
	var rebased []StateRow
	for _, k := range order {
		row, ok, err := g.rebase(ctx, s, k, members[k], floor)
		if err != nil {
			return s, err
		}
		if ok {
			rebased = append(rebased, row)
		}
	}
	var writers []readstate.FloorWriter
	for _, k := range order {
		wr := members[k].writer
		g.writers.put(wr.RowKey, wr)
		writers = append(writers, readstate.FloorWriter{
			Member: k, AuthorAtFloor: wr.Writer.AuthorAtFloor,
			PrincipalAtFloor: wr.Writer.PrincipalAtFloor,
		})
	}
	s.Ranks.Floor, s.FloorSeq = floor, entries[len(entries)-1].Seq
	s.Ranks.LastLSN = w.LSN
	for _, m := range entries {
		if m.Live && m.Revision > 0 {
			s.Ranks.Replies--
		}
		if m.ID == s.Ranks.Latest.ID {
			s.Ranks.Latest = readstate.Latest{}
		}
	}
	g.scopes.put(s.Info.Key, s)
	return s, g.emitFloor(ctx, w, s, writers, rebased)
}

// emitFloor writes the trim, so that what follows in the group finds the rows gone, and tells
// memory: the floor first, then every rebased row.
func (g *group) emitFloor(
	ctx context.Context, w *workspace, s ScopeRow, writers []readstate.FloorWriter,
	rebased []StateRow,
) error {
	removed, err := g.bits(ctx, RemovedSet, s.Info.Key, s.Ranks.Floor)
	if err != nil {
		return err
	}
	everyone, err := g.bits(ctx, EveryoneSet, s.Info.Key, s.Ranks.Floor)
	if err != nil {
		return err
	}
	if err := g.flush(ctx); err != nil {
		return err
	}
	g.changes.Trimmed = append(g.changes.Trimmed, Trim{
		Scope: s.Info.Key, Seq: s.FloorSeq, Revision: s.Ranks.Floor,
	})
	if err := g.flush(ctx); err != nil {
		return err
	}
	g.messages.forgetThrough(s.Info.Key, s.FloorSeq)
	w.emit(readstate.FloorEvent{
		Scope: s.Info.Key, Floor: s.Ranks.Floor, Removed: removed, Everyone: everyone,
		Writers: writers, Latest: s.Ranks.Latest, Replies: s.Ranks.Replies,
	})
	for _, row := range rebased {
		if err := g.emitRow(ctx, w, s, row); err != nil {
			return err
		}
	}
	return nil
}

// reachedBy collects the members whom entries touch, in the order of their first entry.
func (g *group) reachedBy(
	ctx context.Context, s ScopeRow, entries []*MessageRow,
) (map[readstate.MemberKey]*reached, []readstate.MemberKey, error) {
	members := map[readstate.MemberKey]*reached{}
	var order []readstate.MemberKey
	var keys []RowKey
	for _, m := range entries {
		if m.Revision == 0 {
			continue
		}
		for _, c := range m.concerned() {
			r := members[c.member]
			if r == nil {
				r = &reached{}
				members[c.member] = r
				order = append(order, c.member)
				keys = append(keys, RowKey{s.Info.Key, c.member})
			}
			r.entries = append(r.entries, m)
			r.roles = append(r.roles, c.role)
		}
	}
	if err := g.loadRows(ctx, keys); err != nil {
		return nil, nil, err
	}
	if err := g.loadWriters(ctx, keys); err != nil {
		return nil, nil, err
	}
	for k, r := range members {
		wr, err := g.writer(ctx, RowKey{s.Info.Key, k})
		if err != nil {
			return nil, nil, err
		}
		for i, m := range r.entries {
			if r.roles[i].Author {
				wr.Writer.AuthorAtFloor = m.AuthorRank
			}
			if r.roles[i].Principal {
				wr.Writer.PrincipalAtFloor = m.PrincipalRank
			}
		}
		r.writer = wr
	}
	return members, order, nil
}

// rebase moves a row whose point lies below the new floor up to it. The entries hold all its
// rows between, since older ones are trimmed already.
func (g *group) rebase(
	ctx context.Context, s ScopeRow, k readstate.MemberKey, r *reached, floor readstate.Revision,
) (StateRow, bool, error) {
	row, exists, err := g.state(ctx, RowKey{s.Info.Key, k})
	if err != nil || !exists || row.Row.Point.E >= floor {
		return row, false, err
	}
	base := row.Row.Point.Base(s.Ranks.Floor)
	var c readstate.Crossed
	for i, m := range r.entries {
		if m.Revision <= base {
			continue
		}
		c.Add(s.Info.Type, readstate.Message{Revision: m.Revision, Everyone: m.Everyone},
			r.roles[i], m.Live)
	}
	span := readstate.Span{Low: row.Row.Point.E, High: floor, Up: true}
	if err := row.Row.Point.Move(span, c, readstate.Ranks{
		Author: r.writer.Writer.AuthorAtFloor, Principal: r.writer.Writer.PrincipalAtFloor,
	}); err != nil {
		return row, false, broken("rebase", err)
	}
	g.states.put(row.RowKey, row)
	return row, true, nil
}
