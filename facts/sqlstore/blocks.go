package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// blockStatements are those of one revision set: both sets have a table of the same shape.
type blockStatements struct {
	load, counts, write, remove, trim *statement
}

func blockTable(table string) blockStatements {
	return blockStatements{
		load: query("load "+table, 2,
			`SELECT b.scope, b.block, b.count, b.bits FROM {keys} k CROSS JOIN `+table+` b
  WHERE b.scope = k.k1 AND b.block = k.k2`),
		counts: query("load counts of "+table, 1,
			`SELECT b.scope, b.block, b.count FROM {keys} k CROSS JOIN `+table+` b
  WHERE b.scope = k.k1 ORDER BY b.scope, b.block`),
		write: insert("write "+table, insertion{
			table: table, columns: list("scope block count bits"), keys: 2,
			update: list("count bits"),
		}),
		remove: remove("remove "+table, table, "scope", "block"),
		trim: query("trim "+table, 2, `DELETE FROM `+table+` WHERE (scope, block) IN (
  SELECT b.scope, b.block FROM {keys} k CROSS JOIN `+table+` b
  WHERE b.scope = k.k1 AND b.block < k.k2)`),
	}
}

var blockTables = [...]blockStatements{
	facts.RemovedSet:  blockTable("scope_removed_blocks"),
	facts.EveryoneSet: blockTable("scope_everyone_blocks"),
}

func bindBlock(args []any, b *facts.BlockRow) []any {
	return append(args, number(b.Scope), number(b.Block), number(b.Count), packBits(&b.Bits))
}

func bindBlockKey(args []any, k facts.BlockKey) []any {
	return append(args, number(k.Scope), number(k.Block))
}

func bindBlockRowKey(args []any, b *facts.BlockRow) []any {
	return append(args, number(b.Scope), number(b.Block))
}

// blocksOf splits keys or rows by their set.
func blocksOf[T any](all []T, set facts.BlockSet, setOf func(*T) facts.BlockSet) []T {
	var out []T
	for i := range all {
		if setOf(&all[i]) == set {
			out = append(out, all[i])
		}
	}
	return out
}

func (s *session) Blocks(ctx context.Context, keys []facts.BlockKey) ([]facts.BlockRow, error) {
	var out []facts.BlockRow
	setOf := func(k *facts.BlockKey) facts.BlockSet { return k.Set }
	for set := range facts.BlockSet(len(blockTables)) {
		of := blocksOf(keys, set, setOf)
		err := eachKey(ctx, s, blockTables[set].load, of, bindBlockKey, func(r *record) error {
			row := facts.BlockRow{
				BlockKey: facts.BlockKey{
					Set: set, Scope: readstate.ScopeKey(r.uint()), Block: r.uint(),
				},
				Count: r.uint(),
			}
			bits, err := unpackBits(r.bytes())
			row.Bits = bits
			out = append(out, row)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// blockCounts returns the sizes of all blocks of one set in each scope, ascending by block.
func (s *session) blockCounts(
	ctx context.Context, set facts.BlockSet, scopes []readstate.ScopeKey,
) (map[readstate.ScopeKey][]readstate.BlockCount, error) {
	out := make(map[readstate.ScopeKey][]readstate.BlockCount)
	st := blockTables[set].counts
	err := eachKey(ctx, s, st, scopes, bindNumber, func(r *record) error {
		scope := readstate.ScopeKey(r.uint())
		out[scope] = append(out[scope], readstate.BlockCount{Block: r.uint(), Count: r.uint()})
		return nil
	})
	return out, err
}

// Blocks wholly within the interval count without their bits.
var selectRemovedBetween = query("count removed", 0, `SELECT b.block, b.count,
    CASE WHEN b.block = ? OR b.block = ? THEN b.bits END
  FROM scope_removed_blocks b WHERE b.scope = ? AND b.block >= ? AND b.block <= ?`)

// RemovedBetween implements facts.View.
func (s *session) RemovedBetween(
	ctx context.Context, scope readstate.ScopeKey, low, high readstate.Revision,
) (n uint64, err error) {
	if high <= low {
		return 0, nil
	}
	first, last := readstate.BlockOf(low), readstate.BlockOf(high)
	args := []any{number(first), number(last), number(scope), number(first), number(last)}
	err = s.each(ctx, selectRemovedBetween, 0, args, func(r *record) error {
		block, count := r.uint(), r.uint()
		if block != first && block != last {
			n += count
			return nil
		}
		bits, err := unpackBits(r.bytes())
		if block == last {
			count = bits.CountThrough(high)
		}
		if block == first {
			count -= bits.CountThrough(low)
		}
		n += count
		return err
	})
	return n, err
}

func (s *session) writeBlocks(ctx context.Context, rows []facts.BlockRow) error {
	for set := range facts.BlockSet(len(blockTables)) {
		full := blocksOf(rows, set, func(b *facts.BlockRow) facts.BlockSet {
			if b.Count == 0 {
				return facts.BlockSet(len(blockTables))
			}
			return b.Set
		})
		if err := execRows(ctx, s, blockTables[set].write, full, bindBlock); err != nil {
			return err
		}
		empty := blocksOf(rows, set, func(b *facts.BlockRow) facts.BlockSet {
			if b.Count > 0 {
				return facts.BlockSet(len(blockTables))
			}
			return b.Set
		})
		err := execRows(ctx, s, blockTables[set].remove, empty, bindBlockRowKey)
		if err != nil {
			return err
		}
	}
	return nil
}
