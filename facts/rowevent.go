package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// storeRow stages a row that a command changed, at this commit's LSN, and emits it whole.
func (g *group) storeRow(ctx context.Context, w *workspace, s ScopeRow, row StateRow) error {
	row.StateLSN = w.LSN
	g.states.put(row.RowKey, row)
	return g.emitRow(ctx, w, s, row)
}

// emitRow emits a staged row with everything its reader needs beside it.
func (g *group) emitRow(ctx context.Context, w *workspace, s ScopeRow, row StateRow) error {
	info, err := g.principal(ctx, row.Member)
	if err != nil {
		return err
	}
	wr, err := g.writer(ctx, row.RowKey)
	if err != nil {
		return err
	}
	base := row.Row.Point.Base(s.Ranks.Floor)
	removed, err := g.bits(ctx, RemovedSet, s.Info.Key, base)
	if err != nil {
		return err
	}
	everyone, err := g.bits(ctx, EveryoneSet, s.Info.Key, base)
	if err != nil {
		return err
	}
	pairs, err := g.pairs(ctx, s, row, base)
	if err != nil {
		return err
	}
	w.emit(readstate.MemberEvent{MemberRow: readstate.MemberRow{
		Scope: row.Scope, Member: row.Member, MemberID: info.ID, Row: row.Row,
		Writer: wr.Writer, Removed: removed, Everyone: everyone, Pairs: pairs,
		StateLSN: row.StateLSN,
	}})
	return nil
}

// bits copies the block of a revision set that holds a revision.
func (g *group) bits(
	ctx context.Context, set BlockSet, s readstate.ScopeKey, r readstate.Revision,
) (readstate.BlockBits, error) {
	key := BlockKey{set, s, readstate.BlockOf(r)}
	row, err := g.block(ctx, key)
	out := readstate.BlockBits{Block: key.Block}
	if err == nil && row.Count > 0 {
		bits := row.Bits
		out.Bits = &bits
	}
	return out, err
}

// pairs computes the side records of a row whose owner blocks somebody. It is the one event
// part that needs seeks, so that what is staged is written first.
func (g *group) pairs(
	ctx context.Context, s ScopeRow, row StateRow, base readstate.Revision,
) ([]readstate.PairRow, error) {
	blocked, err := g.blockedOf(ctx, row.Member)
	if err != nil || len(blocked) == 0 {
		return nil, err
	}
	if err := g.flush(ctx); err != nil {
		return nil, err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	pairs, err := tx.Pairs(ctx, row.RowKey, s.Info.Type, base, s.Ranks.Floor,
		row.Row.Activity.Read, blocked)
	if err != nil {
		return nil, broken("pairs", err)
	}
	return pairs, nil
}

// movePoint carries out the move that a command has made due.
func (g *group) movePoint(ctx context.Context, s ScopeRow, row *StateRow) error {
	to := row.Row.EffectivePoint(s.Ranks.Floor)
	span := row.Row.Point.PlanMove(to, s.Ranks.Head)
	if span.Empty() {
		return nil
	}
	if span.AtHead {
		wr, err := g.writer(ctx, row.RowKey)
		if err != nil {
			return err
		}
		row.Row.Point.MoveToHead(to, wr.Writer)
		return nil
	}
	return g.seekMove(ctx, s, row, span)
}

// seekMove is a move that does not end at the head: two rank seeks and the member's own rows
// between.
func (g *group) seekMove(
	ctx context.Context, s ScopeRow, row *StateRow, span readstate.Span,
) error {
	// The seek must see what the group has staged, but not this row's own change.
	if err := g.flush(ctx); err != nil {
		return err
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	low := max(span.Low, s.Ranks.Floor)
	var crossed readstate.Crossed
	if low < span.High {
		if crossed, err = tx.Crossed(ctx, row.RowKey, low, span.High); err != nil {
			return broken("cross", err)
		}
	}
	to := span.High
	if !span.Up {
		to = span.Low
	}
	ranks, err := tx.RanksAt(ctx, row.RowKey, to)
	if err != nil {
		return broken("ranks", err)
	}
	if err := row.Row.Point.Move(span, crossed, ranks); err != nil {
		return broken("move", err)
	}
	return nil
}

// mark adds a revision to a set, or takes it out.
func (g *group) mark(
	ctx context.Context, set BlockSet, s readstate.ScopeKey, r readstate.Revision, in bool,
) error {
	row, err := g.block(ctx, BlockKey{set, s, readstate.BlockOf(r)})
	if err != nil {
		return err
	}
	var changed bool
	if in {
		changed = row.Bits.Set(r)
	} else {
		changed = row.Bits.Clear(r)
	}
	if !changed {
		return nil
	}
	if in {
		row.Count++
	} else {
		row.Count--
	}
	g.blocks.put(row.BlockKey, row)
	return nil
}
