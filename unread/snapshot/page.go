package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// Request asks for a page of a member's rows, ascending by scope id from Cursor on; Only asks
// for just these scopes.
type Request struct {
	Member readstate.MemberID
	Cursor string
	Limit  int
	Only   []readstate.ScopeKey
}

// Page reads a page of the member's rows: those of the table, with what the book has instead.
// It costs one read of rows, and at most three more of the scopes and parents they need,
// whatever happened in the scopes. Its LSN is the one at which the book stands when it is
// ready. A member of whom nothing is known has an empty page.
func (b *Book) Page(ctx context.Context, store Store, r Request) (readstate.Page, error) {
	end := b.beginRead()
	defer func() {
		b.mu.Lock()
		end()
		b.mu.Unlock()
	}()
	q := Query{
		Workspace: b.workspace, Member: r.Member, After: readstate.ScopeID(r.Cursor), Limit: r.Limit,
	}
	for _, key := range r.Only {
		q.Only = append(q.Only, b.names.Scope(key))
	}
	rows, err := store.Load(ctx, q)
	if err != nil {
		return readstate.Page{}, fmt.Errorf("snapshots of %s: %w", r.Member, err)
	}
	m := b.names.MemberKey(r.Member)
	loaded := map[Key]*Row{}
	for i := range rows {
		loaded[Key{b.names.ScopeKey(rows[i].Scope), m}] = &rows[i]
	}
	scopes, next := b.selectScopes(m, r, rows)
	if err := b.loadScopes(ctx, store, m, scopes, loaded); err != nil {
		return readstate.Page{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	page := readstate.Page{
		LSN: b.lsn, Next: next,
		Member: readstate.MemberInfo{Key: m, ID: r.Member, Active: true},
	}
	seen := map[readstate.ScopeKey]bool{}
	for _, s := range scopes {
		row, ok := b.rowFor(Key{s, m}, loaded)
		if !ok {
			continue
		}
		if !row.Row.Joined {
			page.LeftLSN = max(page.LeftLSN, row.StateLSN, 1)
			continue
		}
		b.describe(&page, s, seen)
		out := readstate.PageRow{MemberRow: row}
		if p := b.frontiers[s].info.Parent; p != 0 && b.frontiers[p] != nil {
			b.describe(&page, p, seen)
			if parent, ok := b.rowFor(Key{p, m}, loaded); ok {
				out.Parent = &parent
			}
		}
		page.Rows = append(page.Rows, out)
	}
	return page, nil
}

// selectScopes merges the scopes of the table's rows with those of the book and cuts the page.
func (b *Book) selectScopes(
	m readstate.MemberKey, r Request, rows []Row,
) (scopes []readstate.ScopeKey, next string) {
	if r.Only != nil {
		return r.Only, ""
	}
	type named struct {
		key readstate.ScopeKey
		id  readstate.ScopeID
	}
	var all []named
	for i := range rows {
		all = append(all, named{b.names.ScopeKey(rows[i].Scope), rows[i].Scope})
	}
	more := len(rows) == r.Limit
	b.mu.Lock()
	for _, s := range b.byMember[m] {
		id := b.names.Scope(s)
		if id <= readstate.ScopeID(r.Cursor) || b.rows[Key{s, m}].absent {
			continue
		}
		if more && id > rows[len(rows)-1].Scope {
			continue
		}
		all = append(all, named{s, id})
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(x, y named) int { return cmp.Compare(x.id, y.id) })
	all = slices.Compact(all)
	if len(all) > r.Limit {
		all, more = all[:r.Limit], true
	}
	for _, n := range all {
		scopes = append(scopes, n.key)
	}
	if more && len(all) > 0 {
		next = string(all[len(all)-1].id)
	}
	return scopes, next
}

// loadScopes brings the frontiers of scopes and of their parents into the book, and the
// member's rows in the parents into loaded.
func (b *Book) loadScopes(
	ctx context.Context, store Store, m readstate.MemberKey,
	scopes []readstate.ScopeKey, loaded map[Key]*Row,
) error {
	if err := b.loadFrontiers(ctx, store, scopes); err != nil {
		return err
	}
	b.mu.Lock()
	var parents []readstate.ScopeKey
	var places []readstate.ScopeID
	for _, s := range scopes {
		f := b.frontiers[s]
		if f == nil || f.info.Parent == 0 || slices.Contains(parents, f.info.Parent) {
			continue
		}
		parents = append(parents, f.info.Parent)
		key := Key{f.info.Parent, m}
		if !b.rows[key].settled() && loaded[key] == nil {
			places = append(places, f.info.ParentID)
		}
	}
	b.mu.Unlock()
	if err := b.loadFrontiers(ctx, store, parents); err != nil {
		return err
	}
	if len(places) == 0 {
		return nil
	}
	rows, err := store.Load(ctx, Query{
		Workspace: b.workspace, Member: b.names.Member(m), Only: places, Limit: len(places),
	})
	if err != nil {
		return fmt.Errorf("snapshots of parents: %w", err)
	}
	for i := range rows {
		loaded[Key{b.names.ScopeKey(rows[i].Scope), m}] = &rows[i]
	}
	return nil
}

// loadFrontiers reads those of the scopes that the book lacks.
func (b *Book) loadFrontiers(
	ctx context.Context, store Store, scopes []readstate.ScopeKey,
) error {
	var ids []readstate.ScopeID
	b.mu.Lock()
	for _, s := range scopes {
		if b.frontiers[s] == nil {
			ids = append(ids, b.names.Scope(s))
		}
	}
	b.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	rows, err := store.Load(ctx, Query{Workspace: b.workspace, Only: ids, Limit: len(ids)})
	if err != nil {
		return fmt.Errorf("frontiers: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range rows {
		f, err := decodeFrontier(&rows[i], b.names)
		if err != nil {
			b.stats.Damaged++
			continue // rows of the scope are served from what they say themselves, or withheld
		}
		if b.frontiers[f.info.Key] == nil {
			b.frontiers[f.info.Key] = f
		}
	}
	return nil
}

// describe adds a scope to the page once.
func (b *Book) describe(
	page *readstate.Page, s readstate.ScopeKey, seen map[readstate.ScopeKey]bool,
) {
	if seen[s] {
		return
	}
	seen[s] = true
	f := b.frontiers[s]
	page.Scopes = append(page.Scopes, readstate.PageScope{
		Info: f.info, Ranks: f.ranks, Removed: f.removed.counts(), Everyone: f.everyone.counts(),
	})
}

// rowFor is a row as it is served: the book's, else what the table has. Where a scope has no
// frontier, the row says what it knows of it.
func (b *Book) rowFor(key Key, loaded map[Key]*Row) (readstate.MemberRow, bool) {
	e := b.rows[key]
	if r := loaded[key]; r != nil && !e.settled() {
		e = b.restore(key, r)
	}
	if e == nil {
		return readstate.MemberRow{}, false
	}
	if e.absent || b.frontiers[key.Scope] == nil {
		return readstate.MemberRow{}, false
	}
	return b.shown(e), true
}

// restore makes an entry of a row of the table. What cannot be trusted is withheld.
func (b *Book) restore(key Key, r *Row) *entry {
	f := b.frontiers[key.Scope]
	if f == nil {
		f = b.assume(key.Scope, r)
	}
	e := &entry{row: readstate.MemberRow{
		Scope: key.Scope, Member: key.Member, MemberID: r.Member,
	}}
	var err error
	e.row.Row, e.row.Writer, err = decodeMember(r)
	if err == nil {
		err = b.point(f, r, &e.row)
	}
	var d rowDetail
	if err == nil {
		err = decodeJSON(r.Detail, &d)
	}
	if err == nil {
		e.gens, e.cursor = r.Generations, d.Cursor
		base := e.row.Row.Point.Base(f.ranks.Floor)
		if r.Ranks != nil && e.row.Row.EffectivePoint(f.ranks.Floor) != base {
			e.row.Row.Serving = readstate.Behind // the facts went where the ranks could not follow
		}
		return e
	}
	b.stats.Damaged++
	seen, ok := visibilities[r.Visibility]
	e.broken = true
	e.row.Row = readstate.Row{Joined: !ok || seen[0], Visible: !ok || seen[1], Epoch: 1}
	e.row.Row.Serving = readstate.Unusable
	e.row.Writer = readstate.Writer{}
	e.row.Row.Point.E = f.ranks.Head
	e.row.Row.Read = f.ranks.Head
	return e
}

// point completes a row that has its counts alone, and holds the result against the scope.
func (b *Book) point(f *frontier, r *Row, row *readstate.MemberRow) error {
	if r.Ranks == nil {
		head := min(readstate.Revision(r.MessageAccounted), f.ranks.Head)
		if uint64(r.MessageUnread) > uint64(head) || uint64(r.ActivityUnread) > f.ranks.SignalHead {
			return fmt.Errorf("%w: %d unread of %d", ErrDamaged, r.MessageUnread, head)
		}
		e, err := f.pointFor(head, uint64(r.MessageUnread))
		if err != nil {
			return err
		}
		row.Row.Point.E = max(e, row.Row.EffectivePoint(f.ranks.Floor))
		row.Row.Activity.SignalAt = f.ranks.SignalHead - uint64(r.ActivityUnread)
		if f.info.Type.Targeted() {
			row.Row.Point.Targets = uint64(r.MessageUnread)
			row.Row.Activity.Targets = uint64(r.ActivityUnread)
		}
	}
	_, err := f.values(row)
	return err
}

// assume makes a frontier of what a row says of its scope: an older program wrote no frontiers.
func (b *Book) assume(s readstate.ScopeKey, r *Row) *frontier {
	f := &frontier{info: readstate.ScopeInfo{Key: s, ID: r.Scope, Type: readstate.Channel}}
	bound := func(n int64) uint64 { return uint64(min(max(n, 0), readstate.MaxCounter)) }
	f.ranks.Head = readstate.Revision(bound(r.MessageAccounted))
	f.ranks.LatestActivity = readstate.Seq(bound(r.ActivityAccounted))
	f.ranks.SignalHead = bound(r.ActivityUnread)
	if k := r.Ranks; k != nil {
		f.ranks.Head = max(f.ranks.Head, readstate.Revision(bound(k.Head)))
		f.ranks.Floor = readstate.Revision(bound(k.Floor))
		f.ranks.SignalHead = bound(k.SignalHead)
	}
	f.ranks.LatestSeq = readstate.Seq(f.ranks.Head)
	b.frontiers[s] = f
	return f
}

// Fetch reads the rows and frontiers named, so that Apply finds them. What the table does not
// have is remembered as missing. They stay until the next Apply.
func (b *Book) Fetch(ctx context.Context, store Store, keys []Key) error {
	end := b.beginRead()
	defer func() {
		b.mu.Lock()
		end()
		b.mu.Unlock()
	}()
	var scopes []readstate.ScopeKey
	by := map[readstate.MemberKey][]readstate.ScopeID{}
	for _, k := range keys {
		scopes = append(scopes, k.Scope)
		if k.Member != 0 {
			by[k.Member] = append(by[k.Member], b.names.Scope(k.Scope))
		}
	}
	if err := b.loadFrontiers(ctx, store, scopes); err != nil {
		return err
	}
	for m, ids := range by {
		rows, err := store.Load(ctx, Query{
			Workspace: b.workspace, Member: b.names.Member(m), Only: ids, Limit: len(ids),
		})
		if err != nil {
			return fmt.Errorf("fetch rows: %w", err)
		}
		b.mu.Lock()
		for i := range rows {
			key := Key{b.names.ScopeKey(rows[i].Scope), m}
			if e := b.rows[key]; !e.settled() {
				restored := b.restore(key, &rows[i])
				if e != nil {
					restored.mark = e.mark // the first row gives way
				}
				b.put(key, restored)
				b.fetched = append(b.fetched, key)
			}
		}
		for _, id := range ids {
			key := Key{b.names.ScopeKey(id), m}
			switch e := b.rows[key]; {
			case e == nil:
				b.put(key, &entry{absent: true})
				b.fetched = append(b.fetched, key)
			case e.ifAbsent:
				e.ifAbsent = false
			}
		}
		b.mu.Unlock()
	}
	return nil
}
