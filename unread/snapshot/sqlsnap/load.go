package sqlsnap

import (
	"context"
	"database/sql"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// maxOnly is how many scopes one statement asks for; more are asked for in turn.
const maxOnly = 512

// Load implements snapshot.Store.
func (s *Store) Load(ctx context.Context, q snapshot.Query) ([]snapshot.Row, error) {
	var rows []snapshot.Row
	if q.First {
		return s.loadFirst(ctx, &q)
	}
	if q.Only == nil {
		err := s.load(ctx, &q, s.page, []any{id(q.After), int64(max(q.Limit, 0))}, &rows)
		return rows, err
	}
	for only := range slices.Chunk(q.Only, maxOnly) {
		args := make([]any, 1<<bits.Len(uint(len(only)-1)))
		for i, o := range only {
			args[i] = id(o) // what is left of the size are NULLs, which equal nothing
		}
		p, err := s.points(ctx, len(args))
		if err == nil {
			err = s.load(ctx, &q, p, args, &rows)
		}
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// loadFirst reads the first page and the row without a scope, which comes before all others.
func (s *Store) loadFirst(ctx context.Context, q *snapshot.Query) ([]snapshot.Row, error) {
	limit := max(q.Limit, 0)
	var rows []snapshot.Row
	if err := s.load(ctx, q, s.begin, []any{int64(limit) + 1}, &rows); err != nil {
		return nil, err
	}
	if len(rows) > limit && rows[0].Scope != "" {
		rows = rows[:limit]
	}
	return rows, nil
}

const (
	beginning = "scope_id >= x'' ORDER BY scope_id LIMIT ?"
	following = "scope_id > ? ORDER BY scope_id LIMIT ?"
)

func selectWhere(where string) string {
	return "SELECT scope_id, task_snapshot_format_version, task_snapshot_json, " +
		strings.Join(columns[keys:], ", ") + " FROM " + name +
		" WHERE workspace_id = ? AND member_id = ? AND " + where
}

// points returns the statement that asks for n scopes.
func (s *Store) points(ctx context.Context, n int) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.only[n]; p != nil {
		return p, nil
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", n), ", ")
	query := selectWhere("scope_id IN (" + marks + ")")
	p, err := s.db.PrepareContext(ctx, query) //nolint:sqlclosecheck // Close closes it
	if err != nil {
		return nil, fmt.Errorf("read snapshots: %w", err)
	}
	s.only[n] = p
	return p, nil
}

func (s *Store) load(
	ctx context.Context, q *snapshot.Query, p *sql.Stmt, args []any, into *[]snapshot.Row,
) error {
	if s.probe != nil {
		where := following
		switch p {
		case s.page:
		case s.begin:
			where = beginning
		default:
			where = "scope_id IN (" + strings.TrimSuffix(strings.Repeat("?, ", len(args)), ", ") + ")"
		}
		s.probe(ctx, selectWhere(where))
	}
	return scanAll(ctx, p, q, args, into)
}

// scanAll reads the rows that a statement finds.
func scanAll(
	ctx context.Context, p *sql.Stmt, q *snapshot.Query, args []any, into *[]snapshot.Row,
) error {
	found, err := p.QueryContext(ctx, append([]any{id(q.Workspace), id(q.Member)}, args...)...)
	if err != nil {
		return fmt.Errorf("read snapshots of %q: %w", q.Member, err)
	}
	defer found.Close()
	for found.Next() {
		row := snapshot.Row{Workspace: q.Workspace, Member: q.Member}
		if err := scan(found, &row); err != nil {
			return fmt.Errorf("read snapshots of %q: %w", q.Member, err)
		}
		*into = append(*into, row)
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("read snapshots of %q: %w", q.Member, err)
	}
	return nil
}

// scan reads a row. Ranks are there if any of their columns is: what is missing among them then
// is a damaged row's zero.
func scan(found *sql.Rows, r *snapshot.Row) error {
	var scope []byte
	var format sql.NullInt64
	var text, task sql.NullString
	ranks := make([]sql.NullInt64, len(places(nil)))
	g := &r.Generations
	targets := []any{
		&scope, &format, &task, &r.MessageUnread, &r.ActivityUnread, &r.ManualUnread,
		&r.MessageRead, &r.ActivityRead, &r.EffectiveFrom, &r.MessageAccounted,
		&r.ActivityAccounted, &r.Notification, &r.Visibility,
		&g.Roster, &g.Message, &g.Activity, &g.Membership, &g.Notification, &g.Manual, &g.Rewind,
	}
	for i := range ranks {
		targets = append(targets, &ranks[i])
	}
	err := found.Scan(append(targets, &text, &r.UpdatedAt)...)
	if err != nil && scope == nil {
		return err
	}
	r.Scope, r.Detail = readstate.ScopeID(scope), text.String
	if err != nil {
		// A column holds what is no number: one damaged row is no reason to lose a page.
		r.MessageUnread = -1
		return nil //nolint:nilerr // the row says it
	}
	if format.Valid {
		r.TaskFormat, r.TaskText = &format.Int64, task.String
	}
	k := new(snapshot.Ranks)
	for i, p := range places(k) {
		if *p = ranks[i].Int64; ranks[i].Valid {
			r.Ranks = k
		}
	}
	return nil
}
