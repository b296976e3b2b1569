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
	defer b.beginRead()()
	m := b.names.MemberKey(r.Member)
	loaded, scopes, next, err := b.loadRows(ctx, store, m, r)
	if err == nil {
		err = b.loadScopes(ctx, store, m, scopes, loaded)
	}
	if err != nil {
		return readstate.Page{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.people[m]
	page := readstate.Page{
		LSN: b.lsn, Next: next,
		Member: readstate.MemberInfo{Key: m, ID: r.Member, Active: true, MemberLSN: p.lsn},
		Blocks: p.blocks,
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

// loadRows reads the rows of a page and the member apart from scopes.
func (b *Book) loadRows(
	ctx context.Context, store Store, m readstate.MemberKey, r Request,
) (loaded map[Key]*Row, scopes []readstate.ScopeKey, next string, err error) {
	q := Query{
		Workspace: b.workspace, Member: r.Member, After: readstate.ScopeID(r.Cursor),
		Limit: r.Limit,
	}
	unknown := !b.knows(m)
	switch {
	case r.Only != nil:
		q.Only = append([]readstate.ScopeID{}, b.idsOf(r.Only)...)
		if unknown {
			q.Only = append(q.Only, "")
		}
	case r.Cursor == "":
		q.First = true
	case unknown:
		if err := b.loadPerson(ctx, store, r.Member); err != nil {
			return nil, nil, "", err
		}
	}
	rows, err := store.Load(ctx, q)
	if err != nil {
		return nil, nil, "", fmt.Errorf("snapshots of %s: %w", r.Member, err)
	}
	rows = b.takePerson(m, rows, false)
	loaded = map[Key]*Row{}
	for i := range rows {
		loaded[Key{b.names.ScopeKey(rows[i].Scope), m}] = &rows[i]
	}
	scopes, next = b.selectScopes(m, r, rows)
	return loaded, scopes, next, nil
}

// loadPerson reads a member apart from scopes.
func (b *Book) loadPerson(ctx context.Context, store Store, id readstate.MemberID) error {
	rows, err := store.Load(ctx, Query{
		Workspace: b.workspace, Member: id, Only: []readstate.ScopeID{""}, Limit: 1,
	})
	if err != nil {
		return fmt.Errorf("member %s: %w", id, err)
	}
	b.takePerson(b.names.MemberKey(id), rows, false)
	return nil
}

// takePerson takes the row without a scope out of those that were read of a member, and the member
// into the book if the book does not know them. That there is no such row is knowledge, too. One
// who was fetched stays until the next Apply.
func (b *Book) takePerson(m readstate.MemberKey, rows []Row, fetched bool) []Row {
	var own *Row
	if i := slices.IndexFunc(rows, func(r Row) bool { return r.Scope == "" }); i >= 0 {
		row := rows[i]
		own, rows = &row, slices.Delete(rows, i, i+1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.people[m]
	switch key := (Key{Member: m}); {
	case p != nil:
	case fetched:
		p = b.addPerson(m, own)
		b.fetched = append(b.fetched, key)
	default:
		p = b.addPerson(m, own)
		b.retire(key, &p.mark)
	}
	p.read = b.readings
	return rows
}

// knows reports that the book has a member, who stays as long as the read that asks.
func (b *Book) knows(m readstate.MemberKey) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.people[m]
	if p != nil {
		p.read = b.readings
	}
	return p != nil
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
	if err := b.loadFrontiers(ctx, store, b.idsOf(scopes)); err != nil {
		return err
	}
	b.mu.Lock()
	var parents, places []readstate.ScopeID
	for _, s := range scopes {
		f := b.frontiers[s]
		if f == nil || f.info.Parent == 0 || slices.Contains(parents, f.info.ParentID) {
			continue
		}
		parents = append(parents, f.info.ParentID)
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

// describe adds a scope to the page once.
func (b *Book) describe(
	page *readstate.Page, s readstate.ScopeKey, seen map[readstate.ScopeKey]bool,
) {
	if seen[s] {
		return
	}
	seen[s] = true
	f := b.frontiers[s]
	b.use(f)
	page.Scopes = append(page.Scopes, readstate.PageScope{
		Info: f.info, Ranks: f.ranks, Removed: f.removed.counts(), Everyone: f.everyone.counts(),
	})
}
