package snapshot

import (
	"context"
	"fmt"
	"math"

	"github.com/tidemark-im/tidemark/readstate"
)

// RowID names a row of the table.
type RowID struct {
	Workspace readstate.WorkspaceID
	Member    readstate.MemberID
	Scope     readstate.ScopeID
}

// Obstacle is a row whose Task columns cannot be brought back into the regular ones.
type Obstacle struct {
	RowID
	Why string
}

// Fold says what the regular columns of protected rows have to be, so that a program that knows no
// others serves what this one would: what the Task columns protect, with such controls of the regular
// columns as are safe. Rows that this program would withhold are obstacles. The rows are of one
// workspace that nobody serves; they ask for their Task columns to be emptied, and were written now,
// in milliseconds. It writes nothing.
func Fold(
	ctx context.Context, store Store, of []RowID, now int64,
) (rows []Row, obstacles []Obstacle, err error) {
	if len(of) == 0 {
		return nil, nil, nil
	}
	names := &numbers{}
	// No event comes, and no commit is too new.
	b := NewBook(of[0].Workspace, math.MaxInt64, names, func() int64 { return now }, Limits{})
	for _, id := range of {
		key := Key{names.ScopeKey(id.Scope), names.MemberKey(id.Member)}
		keys := []Key{{Scope: key.Scope}, {Member: key.Member}, key}
		if err := b.Fetch(ctx, store, keys); err != nil {
			return nil, nil, err
		}
		row, why := b.fold(key)
		if why != "" {
			obstacles = append(obstacles, Obstacle{id, why})
			continue
		}
		rows = append(rows, row)
	}
	return rows, obstacles, nil
}

func (b *Book) fold(key Key) (row Row, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.rows[key]
	switch {
	case key.Scope == 0 || key.Member == 0:
		return row, "no row but that of a member in a scope has Task columns"
	case e == nil || e.absent:
		return row, "it is gone"
	case e.odd:
		return row, "its Task columns are damaged, or of a format that is not known here"
	case e.broken:
		return row, "it is damaged"
	}
	shown := b.shown(e)
	switch {
	case !shown.Row.Serving.Servable() && e.row.Row.Serving.Servable():
		return row, "the member's row is damaged"
	case !shown.Row.Serving.Servable():
		return row, "a cursor stops inside what it protects, or something of it is missing"
	}
	row, _ = b.encodeRow(key, 0)
	row.Workspace, row.UpdatedAt = b.workspace, b.now()
	row.Protect, row.Was = true, e.seen
	return row, ""
}

// ids numbers ids in the order in which they are met, from 1.
type ids[K ~uint64, T ~string] struct {
	keys map[T]K
	all  []T
}

func (n *ids[K, T]) key(id T) K {
	if id == "" {
		return 0
	}
	if n.keys == nil {
		n.keys = map[T]K{}
	}
	if n.keys[id] == 0 {
		n.all = append(n.all, id)
		n.keys[id] = K(len(n.all))
	}
	return n.keys[id]
}

func (n *ids[K, T]) id(k K) T {
	if k == 0 || uint64(k) > uint64(len(n.all)) {
		return ""
	}
	return n.all[k-1]
}

// numbers are the names of rows that are read once.
type numbers struct {
	members ids[readstate.MemberKey, readstate.MemberID]
	scopes  ids[readstate.ScopeKey, readstate.ScopeID]
}

func (n *numbers) Member(k readstate.MemberKey) readstate.MemberID     { return n.members.id(k) }
func (n *numbers) MemberKey(id readstate.MemberID) readstate.MemberKey { return n.members.key(id) }
func (n *numbers) Scope(k readstate.ScopeKey) readstate.ScopeID        { return n.scopes.id(k) }
func (n *numbers) ScopeKey(id readstate.ScopeID) readstate.ScopeKey    { return n.scopes.key(id) }

// String names the row.
func (id RowID) String() string {
	return fmt.Sprintf("%q of %q in %q", id.Member, id.Workspace, id.Scope)
}
