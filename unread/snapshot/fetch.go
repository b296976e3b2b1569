package snapshot

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// Fetch reads the rows, frontiers and members named, so that Apply finds them. What the table does
// not have is remembered as missing. They stay until the next Apply.
func (b *Book) Fetch(ctx context.Context, store Store, keys []Key) error {
	defer b.beginRead()()
	var scopes []readstate.ScopeID
	by := map[readstate.MemberKey][]readstate.ScopeID{}
	for _, k := range keys {
		id := b.names.Scope(k.Scope)
		if id != "" {
			scopes = append(scopes, id)
		}
		if k.Member != 0 && by[k.Member] == nil {
			by[k.Member] = []readstate.ScopeID{""}
		}
		if k.Member != 0 && id != "" {
			by[k.Member] = append(by[k.Member], id)
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
		b.keep(m, ids[1:], b.takePerson(m, rows, true))
	}
	return nil
}

// keep takes rows in that were read of a member, and notes which of the scopes have none.
func (b *Book) keep(m readstate.MemberKey, ids []readstate.ScopeID, rows []Row) {
	b.mu.Lock()
	defer b.mu.Unlock()
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
}

// LoadMember fetches a page of a member's rows, with their scopes, as Fetch does. It returns the
// scopes, and where the next page begins, empty after the last.
func (b *Book) LoadMember(
	ctx context.Context, store Store, m readstate.MemberKey, after readstate.ScopeID, limit int,
) (scopes []readstate.ScopeID, next readstate.ScopeID, err error) {
	defer b.beginRead()()
	rows, err := store.Load(ctx, Query{
		Workspace: b.workspace, Member: b.names.Member(m), After: after, Limit: limit,
	})
	if err != nil {
		return nil, "", fmt.Errorf("rows of %s: %w", b.names.Member(m), err)
	}
	for i := range rows {
		scopes = append(scopes, rows[i].Scope)
	}
	if err := b.loadFrontiers(ctx, store, scopes); err != nil {
		return nil, "", err
	}
	b.keep(m, nil, rows)
	if len(rows) == limit {
		next = rows[limit-1].Scope
	}
	return scopes, next, nil
}

// Rows lists the scopes in which the book has a row of the member.
func (b *Book) Rows(m readstate.MemberKey) []readstate.ScopeID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.idsOf(b.byMember[m])
}

// idsOf names scopes that are in use.
func (b *Book) idsOf(scopes []readstate.ScopeKey) []readstate.ScopeID {
	var ids []readstate.ScopeID
	for _, s := range scopes {
		if id := b.names.Scope(s); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// loadFrontiers reads those of the scopes that the book lacks.
func (b *Book) loadFrontiers(
	ctx context.Context, store Store, scopes []readstate.ScopeID,
) error {
	var ids []readstate.ScopeID
	b.mu.Lock()
	for _, id := range scopes {
		if f := b.frontiers[b.names.ScopeKey(id)]; f != nil {
			b.use(f)
		} else {
			ids = append(ids, id)
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
		f.ranks.LastLSN = min(f.ranks.LastLSN, b.lsn) // the clock of an earlier process was ahead
		if b.frontiers[f.info.Key] == nil {
			b.addFrontier(f)
		}
	}
	return nil
}

// unknown is the error for a scope or row that was not fetched.
func unknown(s readstate.ScopeKey) error { return fmt.Errorf("scope %d: %w", s, ErrNotLoaded) }
