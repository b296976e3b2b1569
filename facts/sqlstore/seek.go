package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Every statement here has one key, so that each parameter is named once and used wherever it
// is needed.
var (
	selectRanks = query("seek ranks", 3, `SELECT
  coalesce(
    (SELECT m.author_rank FROM scope_messages m
      WHERE m.scope = k.k1 AND m.author = k.k2 AND m.revision <= k.k3
      ORDER BY m.revision DESC LIMIT 1),
    (SELECT w.author_at_floor FROM scope_writer_totals w
      WHERE w.scope = k.k1 AND w.member = k.k2)),
  coalesce(
    (SELECT m.principal_rank FROM scope_messages m
      WHERE m.scope = k.k1 AND m.principal = k.k2 AND m.revision <= k.k3
      ORDER BY m.revision DESC LIMIT 1),
    (SELECT w.principal_at_floor FROM scope_writer_totals w
      WHERE w.scope = k.k1 AND w.member = k.k2))
  FROM {keys} k`)

	// Each count is over the member's own rows of the interval, through an index that holds
	// nothing else.
	selectCrossed = query("count crossed", 4, `SELECT
  (SELECT s.type FROM scopes s WHERE s.scope = k.k1),
  (SELECT count(*) FROM scope_messages m WHERE m.scope = k.k1 AND m.author = k.k2
    AND m.revision > k.k3 AND m.revision <= k.k4 AND m.live = 0),
  (SELECT count(*) FROM scope_messages m WHERE m.scope = k.k1 AND m.principal = k.k2
    AND m.revision > k.k3 AND m.revision <= k.k4 AND m.live = 0),
  (SELECT count(*) FROM scope_everyone v WHERE v.scope = k.k1 AND v.author = k.k2
    AND v.revision > k.k3 AND v.revision <= k.k4),
  (SELECT count(*) FROM scope_everyone v WHERE v.scope = k.k1 AND v.principal = k.k2
    AND v.revision > k.k3 AND v.revision <= k.k4 AND v.principal <> 0),
  (SELECT count(*) FROM message_mentions t WHERE t.scope = k.k1 AND t.member = k.k2
    AND t.revision > k.k3 AND t.revision <= k.k4 AND t.live = 1 AND t.neutral = 0
    AND t.everyone = 0),
  (SELECT count(*) FROM message_targets t WHERE t.scope = k.k1 AND t.member = k.k2
    AND t.revision > k.k3 AND t.revision <= k.k4 AND t.live = 1)
  FROM {keys} k`)

	selectRevisionAt = query("seek revision", 0, `SELECT m.revision FROM scope_messages m
  WHERE m.scope = ? AND m.seq <= ? ORDER BY m.seq DESC LIMIT 1`)
	// Between two readable entries there may be any number that are not. Revisions rise with
	// seq, so a binary search over the revisions finds the last one in a few dozen seeks.
	searchRevision = query("search revision", 2, `WITH RECURSIVE probe (scope, seq, low, high) AS (
  SELECT k.k1, k.k2,
    (SELECT min(m.revision) FROM scope_messages m
      WHERE m.scope = k.k1 AND m.revision IS NOT NULL),
    (SELECT max(m.revision) FROM scope_messages m
      WHERE m.scope = k.k1 AND m.revision IS NOT NULL)
  FROM {keys} k
  UNION ALL
  SELECT p.scope, p.seq,
    CASE WHEN m.seq <= p.seq THEN m.revision ELSE p.low END,
    CASE WHEN m.seq <= p.seq THEN p.high ELSE (p.low + p.high + 1) / 2 - 1 END
  FROM probe p CROSS JOIN scope_messages m
  WHERE p.low < p.high AND m.scope = p.scope AND m.revision = (
    SELECT min(n.revision) FROM scope_messages n
    WHERE n.scope = p.scope AND n.revision >= (p.low + p.high + 1) / 2))
SELECT m.revision FROM probe p CROSS JOIN scope_messages m
  WHERE p.low >= p.high AND m.scope = p.scope AND m.revision = p.low AND m.seq <= p.seq`)
)

// RanksAt implements facts.Seeker.
func (s *session) RanksAt(
	ctx context.Context, key facts.RowKey, q readstate.Revision,
) (ranks readstate.Ranks, err error) {
	args := []any{number(key.Scope), number(key.Member), number(q)}
	err = s.each(ctx, selectRanks, 1, args, func(r *record) error {
		ranks = readstate.Ranks{Author: r.uint(), Principal: r.uint()}
		return nil
	})
	return ranks, err
}

// Crossed implements facts.Seeker. In a scope where nobody is neutral there are no own rows.
func (s *session) Crossed(
	ctx context.Context, key facts.RowKey, low, high readstate.Revision,
) (c readstate.Crossed, err error) {
	args := []any{number(key.Scope), number(key.Member), number(low), number(high)}
	err = s.each(ctx, selectCrossed, 1, args, func(r *record) error {
		neutral := readstate.ScopeType(r.uint()).NeutralWriters()
		removed, everyone := r.uint()+r.uint(), r.uint()+r.uint()
		c = readstate.Crossed{Direct: r.uint(), Targets: r.uint()}
		if neutral {
			c.OwnRemoved, c.OwnEveryone = removed, everyone
		}
		return nil
	})
	return c, err
}

// RevisionThrough implements facts.Seeker.
func (s *session) RevisionThrough(
	ctx context.Context, scope readstate.ScopeKey, seq readstate.Seq,
) (revision readstate.Revision, err error) {
	args := []any{number(scope), number(seq)}
	read := func(r *record) error {
		revision = readstate.Revision(r.uint())
		return nil
	}
	if err = s.each(ctx, selectRevisionAt, 0, args, read); err != nil || revision > 0 {
		return revision, err
	}
	err = s.each(ctx, searchRevision, 1, args, read)
	return revision, err
}

// Pairs implements facts.Seeker.
func (s *session) Pairs(
	ctx context.Context, key facts.RowKey, t readstate.ScopeType,
	base, floor readstate.Revision, activity readstate.Seq, blocked []readstate.MemberKey,
) ([]readstate.PairRow, error) {
	if len(blocked) == 0 {
		return nil, nil
	}
	row := pairBase{
		RowKey: key, scopeType: t, base: max(base, floor), floor: floor, activity: activity,
	}
	var wanted []facts.RowKey
	for _, x := range blocked {
		if x != key.Member {
			wanted = append(wanted, facts.RowKey{Scope: key.Scope, Member: x})
		}
	}
	writers, err := s.Writers(ctx, wanted)
	if err != nil {
		return nil, err
	}
	pairs, err := s.pairs(ctx, []pairBase{row}, writers)
	return pairs[key.Scope], err
}
