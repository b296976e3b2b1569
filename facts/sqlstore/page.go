package sqlstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const (
	defaultPage = 200
	maxPage     = 500
)

var (
	selectRecentRows = query("page: recent rows", 0, `SELECT j.scope, s.parent
  FROM scope_memberships j CROSS JOIN scopes s
  WHERE j.member = ? AND j.joined = 1 AND s.scope = j.scope
  ORDER BY s.last_activity_at DESC, s.last_lsn DESC, j.scope LIMIT ?`)
	selectRowsAfter = query("page: rows after", 0, `SELECT j.scope, s.parent
  FROM scope_memberships j CROSS JOIN scopes s
  WHERE j.member = ? AND j.joined = 1 AND j.scope > ? AND s.scope = j.scope
  ORDER BY j.scope LIMIT ?`)
	selectLastLeft = query("page: last left", 0, `SELECT membership_lsn FROM scope_memberships
  WHERE member = ? AND joined = 0 ORDER BY membership_lsn DESC LIMIT 1`)
	selectParents = query("page: parents", 1,
		`SELECT s.scope, s.parent FROM {keys} k CROSS JOIN scopes s WHERE s.scope = k.k1`)
	selectPageRows = query("page: rows", 2,
		`SELECT `+stateColumns+`, w.author_head, w.principal_head, w.actor_head,
    w.author_at_floor, w.principal_at_floor
  FROM {keys} k CROSS JOIN conversation_member_states c `+stateParts+`
  LEFT JOIN scope_writer_totals w ON w.scope = c.scope AND w.member = c.member
  WHERE c.member = k.k2 AND c.scope = k.k1 AND j.scope = c.scope AND j.member = c.member`)
	selectBlockedWriters = query("page: blocked writers", 2,
		`SELECT w.scope, w.member, w.author_head, w.principal_head, w.actor_head,
    w.author_at_floor, w.principal_at_floor
  FROM {keys} k CROSS JOIN member_blocks b CROSS JOIN scope_writer_totals w
  WHERE b.member = k.k2 AND b.other <> k.k2 AND w.scope = k.k1 AND w.member = b.other`)
)

// pageReader gathers one page. Every step is a fixed number of statements over all rows.
type pageReader struct {
	s     *session
	q     facts.PageQuery
	page  readstate.Page
	order []readstate.ScopeKey // the rows asked for
	all   []readstate.ScopeKey // those and the parents, each once
	// parents maps the scopes asked for to their parents, zero for none.
	parents map[readstate.ScopeKey]readstate.ScopeKey
	scopes  map[readstate.ScopeKey]*readstate.PageScope
	rows    map[readstate.ScopeKey]*readstate.MemberRow
}

func (s *session) Page(ctx context.Context, q facts.PageQuery) (readstate.Page, error) {
	if q.Limit <= 0 {
		q.Limit = defaultPage
	}
	q.Limit = min(q.Limit, maxPage)
	p := &pageReader{
		s: s, q: q, parents: make(map[readstate.ScopeKey]readstate.ScopeKey),
		scopes: make(map[readstate.ScopeKey]*readstate.PageScope),
		rows:   make(map[readstate.ScopeKey]*readstate.MemberRow),
	}
	steps := [...]func(context.Context) error{
		p.principal, p.choose, p.loadScopes, p.loadRows, p.loadCounts, p.loadBits, p.loadPairs,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return readstate.Page{}, err
		}
	}
	p.assemble()
	return p.page, nil
}

// principal reads what belongs to the member as a whole.
func (p *pageReader) principal(ctx context.Context) error {
	args := []any{number(p.q.Workspace)}
	err := p.s.each(ctx, selectWorkspaceLSN, 0, args, func(r *record) error {
		p.page.LSN = readstate.LSN(r.uint())
		return nil
	})
	if err != nil {
		return err
	}
	members, err := p.s.Members(ctx, []readstate.MemberKey{p.q.Member})
	if err != nil {
		return err
	}
	if len(members) > 0 {
		p.page.Member = members[0]
	}
	err = p.s.each(ctx, selectLastLeft, 0, []any{number(p.q.Member)}, func(r *record) error {
		p.page.LeftLSN = readstate.LSN(r.uint())
		return nil
	})
	if err != nil {
		return err
	}
	blocked, err := p.s.BlockedBy(ctx, []readstate.MemberKey{p.q.Member})
	for _, b := range blocked {
		p.page.Blocks = append(p.page.Blocks, b.Other)
	}
	return err
}

// choose decides which rows the page has, and where the next one starts.
func (p *pageReader) choose(ctx context.Context) error {
	read := func(r *record) error {
		scope, parent := readstate.ScopeKey(r.uint()), readstate.ScopeKey(r.uint())
		p.order = append(p.order, scope)
		p.parents[scope] = parent
		return nil
	}
	member, limit := number(p.q.Member), int64(p.q.Limit+1)
	var err error
	switch {
	case len(p.q.Only) > 0:
		err = eachKey(ctx, p.s, selectParents, distinct(p.q.Only), bindNumber, read)
	case p.q.Cursor == "":
		err = p.s.each(ctx, selectRecentRows, 0, []any{member, limit}, read)
	default:
		after, e := strconv.ParseUint(p.q.Cursor, 10, 63)
		if e != nil {
			return fmt.Errorf("page: cursor %q: %w", p.q.Cursor, facts.ErrInvalid)
		}
		err = p.s.each(ctx, selectRowsAfter, 0, []any{member, int64(after), limit}, read)
	}
	if err != nil {
		return err
	}
	if len(p.q.Only) == 0 && len(p.order) > p.q.Limit {
		p.order = p.order[:p.q.Limit]
		p.page.Next = "0"
		if p.q.Cursor != "" {
			p.page.Next = strconv.FormatUint(uint64(p.order[p.q.Limit-1]), 10)
		}
	}
	return nil
}

func distinct[K comparable](keys []K) []K {
	seen := make(map[K]bool, len(keys))
	var out []K
	for _, k := range keys {
		if !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}

func (p *pageReader) loadScopes(ctx context.Context) error {
	p.all = append(p.all, p.order...)
	for _, s := range p.order {
		if parent := p.parents[s]; parent != 0 {
			p.all = append(p.all, parent)
		}
	}
	p.all = distinct(p.all)
	rows, err := p.s.Scopes(ctx, p.all)
	for i := range rows {
		p.scopes[rows[i].Info.Key] = &readstate.PageScope{
			Info: rows[i].Info, Ranks: rows[i].Ranks,
		}
	}
	return err
}

func (p *pageReader) loadRows(ctx context.Context) error {
	bind := func(args []any, s readstate.ScopeKey) []any {
		return append(args, number(s), number(p.q.Member))
	}
	return eachKey(ctx, p.s, selectPageRows, p.all, bind, func(r *record) error {
		row := readState(r)
		p.rows[row.Scope] = &readstate.MemberRow{
			Scope: row.Scope, Member: row.Member, MemberID: p.page.Member.ID, Row: row.Row,
			Writer: readWriter(r), StateLSN: row.StateLSN,
		}
		return nil
	})
}

func (p *pageReader) loadCounts(ctx context.Context) error {
	removed, err := p.s.blockCounts(ctx, facts.RemovedSet, p.all)
	if err != nil {
		return err
	}
	everyone, err := p.s.blockCounts(ctx, facts.EveryoneSet, p.all)
	for key, s := range p.scopes {
		s.Removed, s.Everyone = removed[key], everyone[key]
	}
	return err
}

// base returns the point above which a row's values count.
func (p *pageReader) base(row *readstate.MemberRow) readstate.Revision {
	return row.Row.Point.Base(p.floor(row.Scope))
}

func (p *pageReader) floor(scope readstate.ScopeKey) readstate.Revision {
	if s := p.scopes[scope]; s != nil {
		return s.Ranks.Floor
	}
	return 0
}

// loadBits reads the two blocks that hold the base of each row.
func (p *pageReader) loadBits(ctx context.Context) error {
	var keys []facts.BlockKey
	for _, scope := range p.all {
		row := p.rows[scope]
		if row == nil {
			continue
		}
		block := readstate.BlockOf(p.base(row))
		row.Removed.Block, row.Everyone.Block = block, block
		keys = append(keys,
			facts.BlockKey{Set: facts.RemovedSet, Scope: scope, Block: block},
			facts.BlockKey{Set: facts.EveryoneSet, Scope: scope, Block: block})
	}
	blocks, err := p.s.Blocks(ctx, keys)
	for i := range blocks {
		b := &blocks[i]
		if b.Set == facts.RemovedSet {
			p.rows[b.Scope].Removed.Bits = &b.Bits
		} else {
			p.rows[b.Scope].Everyone.Bits = &b.Bits
		}
	}
	return err
}

func (p *pageReader) loadPairs(ctx context.Context) error {
	if len(p.page.Blocks) == 0 {
		return nil
	}
	var bases []pairBase
	var keys []facts.RowKey
	for _, scope := range p.all {
		row := p.rows[scope]
		if row == nil || p.scopes[scope] == nil {
			continue
		}
		key := facts.RowKey{Scope: scope, Member: row.Member}
		keys = append(keys, key)
		bases = append(bases, pairBase{
			RowKey: key, scopeType: p.scopes[scope].Info.Type, base: p.base(row),
			floor: p.floor(scope), activity: row.Row.Activity.Read,
		})
	}
	var writers []facts.WriterRow
	err := eachKey(ctx, p.s, selectBlockedWriters, keys, bindRowKey, func(r *record) error {
		writers = append(writers, facts.WriterRow{RowKey: readRowKey(r), Writer: readWriter(r)})
		return nil
	})
	if err != nil {
		return err
	}
	pairs, err := p.s.pairs(ctx, bases, writers)
	for scope, of := range pairs {
		p.rows[scope].Pairs = of
	}
	return err
}

// assemble puts the rows in the order in which they were chosen.
func (p *pageReader) assemble() {
	listed := make(map[readstate.ScopeKey]bool)
	show := func(scope readstate.ScopeKey) {
		if s := p.scopes[scope]; s != nil && !listed[scope] {
			listed[scope] = true
			p.page.Scopes = append(p.page.Scopes, *s)
		}
	}
	for _, scope := range p.order {
		row := p.rows[scope]
		if row == nil {
			continue
		}
		show(scope)
		out := readstate.PageRow{MemberRow: *row}
		if parent := p.parents[scope]; parent != 0 {
			show(parent)
			if of := p.rows[parent]; of != nil {
				own := *of
				out.Parent = &own
			}
		}
		p.page.Rows = append(p.page.Rows, out)
	}
}
