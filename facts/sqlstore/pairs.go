package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Keys are (scope, writer, base, activity cursor) for seeks, (scope, writer, floor) for the
// lists of a writer, and (scope, member, base) for the member's own rows, which are counted
// per writer in one pass.
var (
	seekPairs = query("seek pair ranks", 4, `SELECT k.k1, k.k2,
  (SELECT m.author_rank FROM scope_messages m
    WHERE m.scope = k.k1 AND m.author = k.k2 AND m.revision <= k.k3
    ORDER BY m.revision DESC LIMIT 1),
  (SELECT a.actor_rank FROM scope_activity_events a
    WHERE a.scope = k.k1 AND a.actor = k.k2 AND a.seq <= k.k4 AND a.actor_rank IS NOT NULL
    ORDER BY a.seq DESC LIMIT 1)
  FROM {keys} k WHERE k.k1 IS NOT NULL`)
	selectRemovedBy = query("list removed entries of writers", 3,
		`SELECT m.scope, m.author, m.revision FROM {keys} k CROSS JOIN scope_messages m
  WHERE m.scope = k.k1 AND m.author = k.k2 AND m.revision > k.k3 AND m.live = 0
  ORDER BY m.scope, m.author, m.revision`)
	selectEveryoneBy = query("list everyone entries of writers", 3,
		`SELECT v.scope, v.author, v.revision, v.principal
  FROM {keys} k CROSS JOIN scope_everyone v
  WHERE v.scope = k.k1 AND v.author = k.k2 AND v.revision > k.k3
  ORDER BY v.scope, v.author, v.revision`)
	countOverlap = query("count pair overlap", 3,
		`SELECT m.scope, m.author, count(*) FROM {keys} k CROSS JOIN scope_messages m
  WHERE m.scope = k.k1 AND m.principal = k.k2 AND m.revision > k.k3 AND m.live = 1
  GROUP BY m.scope, m.author`)
	countDirect = query("count pair mentions", 3,
		`SELECT t.scope, t.author, count(*) FROM {keys} k CROSS JOIN message_mentions t
  WHERE t.scope = k.k1 AND t.member = k.k2 AND t.revision > k.k3 AND t.live = 1
    AND t.neutral = 0 AND t.everyone = 0
  GROUP BY t.scope, t.author`)
	countTargets = query("count pair deliveries", 3,
		`SELECT t.scope, t.author, count(*) FROM {keys} k CROSS JOIN message_targets t
  WHERE t.scope = k.k1 AND t.member = k.k2 AND t.revision > k.k3 AND t.live = 1
  GROUP BY t.scope, t.author`)
	countActivityTargets = query("count pair activities", 3,
		`SELECT t.scope, t.actor, count(*) FROM {keys} k CROSS JOIN activity_targets t
  WHERE t.scope = k.k1 AND t.member = k.k2 AND t.activity_seq > k.k3
  GROUP BY t.scope, t.actor`)
)

// pairBase is a row whose owner blocks somebody, with where its intervals start.
type pairBase struct {
	facts.RowKey
	scopeType readstate.ScopeType
	base      readstate.Revision
	floor     readstate.Revision
	activity  readstate.Seq
}

// pairs computes the side records of one member's rows against the blocked writers of their
// scopes, in a number of statements that grows with neither. Writers are named by (scope,
// writer); one who neither wrote nor acted has no pair.
func (s *session) pairs(
	ctx context.Context, rows []pairBase, writers []facts.WriterRow,
) (map[readstate.ScopeKey][]readstate.PairRow, error) {
	p := newPairSet(rows, writers)
	if len(p.keys) == 0 {
		return nil, nil
	}
	if err := p.seek(ctx, s); err != nil {
		return nil, err
	}
	if err := p.lists(ctx, s); err != nil {
		return nil, err
	}
	if err := p.counts(ctx, s); err != nil {
		return nil, err
	}
	out := make(map[readstate.ScopeKey][]readstate.PairRow)
	for i, k := range p.keys {
		out[k.Scope] = append(out[k.Scope], p.pairs[i])
	}
	return out, nil
}

// pairSet collects the pairs of several rows; keys[i] is (scope, writer) of pairs[i].
type pairSet struct {
	bases map[readstate.ScopeKey]pairBase
	keys  []facts.RowKey
	pairs []readstate.PairRow
	index map[facts.RowKey]int
}

func newPairSet(rows []pairBase, writers []facts.WriterRow) *pairSet {
	p := &pairSet{
		bases: make(map[readstate.ScopeKey]pairBase, len(rows)),
		index: make(map[facts.RowKey]int),
	}
	for _, r := range rows {
		p.bases[r.Scope] = r
	}
	slices.SortFunc(writers, func(a, b facts.WriterRow) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Member, b.Member))
	})
	for _, w := range writers {
		if w.Writer.AuthorHead == 0 && w.Writer.ActorHead == 0 {
			continue
		}
		p.index[w.RowKey] = len(p.keys)
		p.keys = append(p.keys, w.RowKey)
		p.pairs = append(p.pairs, readstate.PairRow{
			Blocked: w.Member,
			// What lies at or below the floor counts even when it is trimmed.
			AuthorAt: w.Writer.AuthorAtFloor,
			Other: readstate.BlockedWriter{
				Member: w.Member, AuthorHead: w.Writer.AuthorHead, ActorHead: w.Writer.ActorHead,
			},
		})
	}
	return p
}

func (p *pairSet) at(r *record) *readstate.PairRow {
	i, ok := p.index[readRowKey(r)]
	if !ok {
		return nil
	}
	return &p.pairs[i]
}

func (p *pairSet) seek(ctx context.Context, s *session) error {
	bind := func(args []any, k facts.RowKey) []any {
		b := p.bases[k.Scope]
		return append(args, number(k.Scope), number(k.Member), number(b.base), number(b.activity))
	}
	return eachKey(ctx, s, seekPairs, p.keys, bind, func(r *record) error {
		pair := p.at(r)
		if pair == nil {
			return nil
		}
		if r.null() {
			r.skip(1)
		} else {
			pair.AuthorAt = r.uint()
		}
		pair.ActorAt = r.uint()
		return nil
	})
}

func (p *pairSet) lists(ctx context.Context, s *session) error {
	bind := func(args []any, k facts.RowKey) []any {
		return append(args, number(k.Scope), number(k.Member), number(p.bases[k.Scope].floor))
	}
	err := eachKey(ctx, s, selectRemovedBy, p.keys, bind, func(r *record) error {
		if pair := p.at(r); pair != nil {
			pair.Other.Removed = append(pair.Other.Removed, readstate.Revision(r.uint()))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachKey(ctx, s, selectEveryoneBy, p.keys, bind, func(r *record) error {
		if pair := p.at(r); pair != nil {
			pair.Other.Everyone = append(pair.Other.Everyone, readstate.EveryoneRevision{
				Revision: readstate.Revision(r.uint()), Principal: readstate.MemberKey(r.uint()),
			})
		}
		return nil
	})
}

// counts reads the member's own rows above the base of every row that has a pair.
func (p *pairSet) counts(ctx context.Context, s *session) error {
	var all, neutral, targeted []pairBase
	seen := make(map[readstate.ScopeKey]bool)
	for _, k := range p.keys {
		if seen[k.Scope] {
			continue
		}
		seen[k.Scope] = true
		b := p.bases[k.Scope]
		all = append(all, b)
		if b.scopeType.NeutralWriters() {
			neutral = append(neutral, b)
		}
		if b.scopeType.Targeted() {
			targeted = append(targeted, b)
		}
	}
	byRevision := func(args []any, b pairBase) []any {
		return append(args, number(b.Scope), number(b.Member), number(b.base))
	}
	byActivity := func(args []any, b pairBase) []any {
		return append(args, number(b.Scope), number(b.Member), number(b.activity))
	}
	steps := [...]struct {
		st   *statement
		rows []pairBase
		bind func([]any, pairBase) []any
		to   func(*readstate.PairRow) *uint64
	}{
		{countDirect, all, byRevision, func(p *readstate.PairRow) *uint64 { return &p.Direct }},
		{countOverlap, neutral, byRevision, func(p *readstate.PairRow) *uint64 { return &p.Overlap }},
		{countTargets, targeted, byRevision, func(p *readstate.PairRow) *uint64 { return &p.Targets }},
		{countActivityTargets, targeted, byActivity, func(p *readstate.PairRow) *uint64 {
			return &p.ActivityTargets
		}},
	}
	for _, step := range steps {
		err := eachKey(ctx, s, step.st, step.rows, step.bind, func(r *record) error {
			if pair := p.at(r); pair != nil {
				*step.to(pair) = r.uint()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
