package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tidemark-im/tidemark/readstate"
)

var (
	// ErrNotLoaded means that events touch rows or scopes that were not fetched first.
	ErrNotLoaded = errors.New("row is not loaded")
	// ErrUnsupported refuses events that need facts which nobody has here, as blocks do.
	ErrUnsupported = errors.New("not kept in snapshots")
)

// Key names a row; Member zero names a scope's frontier.
type Key struct {
	Scope  readstate.ScopeKey
	Member readstate.MemberKey
}

// Book is one workspace between its events and its snapshot rows: the frontiers of its scopes,
// and the rows that changed and are not written yet, with some that are. What is in the book is
// newer than what the table has, or equal to it; what is not in the book, the table has. It is
// safe for concurrent use, but Apply and Fetch belong to one goroutine at a time.
type Book struct {
	workspace readstate.WorkspaceID
	names     Names
	now       func() int64
	limits    Limits

	mu        sync.Mutex
	lsn       readstate.LSN
	frontiers map[readstate.ScopeKey]*frontier
	rows      map[Key]*entry
	byMember  map[readstate.MemberKey][]readstate.ScopeKey
	queue     []Key // dirty, in the order in which they became so
	owed      []Key // refused by the budget of the queue
	restored  []Key // taken back from owed: their rows may be shown again
	fetched   []Key // for the next Apply
	clean     []written
	writes    uint64
	reads     []uint64 // writes at the start of every read of the table under way
	stats     Stats
}

// entry is a member's row in the book.
type entry struct {
	row      readstate.MemberRow // without bits and pairs
	gens     Generations
	cursor   uint64
	absent   bool // the table has no such row
	broken   bool // the table's row is damaged: only a whole new one helps
	ifAbsent bool // a first row, which gives way to one that the table has
	mark
}

// settled reports that the entry is what the row is, and not what it is unless the table has one.
func (e *entry) settled() bool { return e != nil && !e.ifAbsent }

type written struct {
	key Key
	at  uint64
}

// Limits bound a book.
type Limits struct {
	Backlog int // rows of members that may wait for a flush
	Cached  int // rows of members in the book beyond which written ones are let go
}

// NewBook makes an empty book whose workspace stands at lsn.
func NewBook(
	w readstate.WorkspaceID, lsn readstate.LSN, names Names, now func() int64, limits Limits,
) *Book {
	return &Book{
		workspace: w, lsn: lsn, names: names, now: now, limits: limits,
		frontiers: map[readstate.ScopeKey]*frontier{}, rows: map[Key]*entry{},
		byMember: map[readstate.MemberKey][]readstate.ScopeKey{},
	}
}

// Workspace returns the id.
func (b *Book) Workspace() readstate.WorkspaceID { return b.workspace }

// Scope is what a book knows of a scope.
type Scope struct {
	Info        readstate.ScopeInfo
	Ranks       readstate.ScopeRanks
	Generations Generations
	// Since is the head at which the scope's first roster was read.
	Since     readstate.Revision
	Baselined bool
	// Sure says that an event of this process told where the scope stands.
	Sure bool
}

// Scope returns a scope whose frontier is loaded.
func (b *Book) Scope(key readstate.ScopeKey) (Scope, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[key]
	if f == nil {
		return Scope{}, false
	}
	return Scope{
		Info: f.info, Ranks: f.ranks, Generations: f.gens, Since: f.since,
		Baselined: f.baselined, Sure: f.sure,
	}, true
}

// Removed reports that a revision counts for nobody any more.
func (b *Book) Removed(key readstate.ScopeKey, r readstate.Revision) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[key]
	return f != nil && f.removed.has(r)
}

// Facts are the generations of a row's facts, zero for unknown.
type Facts struct {
	Generations Generations
	Cursor      uint64
}

// Row returns a row of the book. Known is false where the book has to be asked to fetch it
// first; exists is false where there is none, or only a damaged one.
func (b *Book) Row(key Key) (row readstate.MemberRow, facts Facts, exists, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.rows[key]
	if !e.settled() {
		return row, facts, false, false
	}
	return e.row, Facts{e.gens, e.cursor}, !e.absent && !e.broken, true
}

// SetFacts notes the generations of a row whose event was applied just now, and those of its
// scope.
func (b *Book) SetFacts(key Key, set func(f *Facts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.rows[key]; e != nil {
		f := Facts{e.gens, e.cursor}
		set(&f)
		e.gens, e.cursor = f.Generations, f.Cursor
	}
}

// SetGenerations notes where a scope's facts stand.
func (b *Book) SetGenerations(key readstate.ScopeKey, set func(g *Generations)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[key]
	if f == nil {
		return
	}
	before := f.gens
	if set(&f.gens); f.gens != before {
		b.touch(&f.mark, Key{Scope: key})
	}
}

// Baseline notes the head at which the scope's first roster was read: whoever is on it counts
// from there, unless they have a row.
func (b *Book) Baseline(scope readstate.ScopeKey, since readstate.Revision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[scope]
	if f == nil || f.baselined {
		return
	}
	f.since, f.baselined = since, true
	b.touch(&f.mark, Key{Scope: scope})
}

// Found keeps the first row of a member of a roster, which gives way to one that the table turns
// out to have: it is written only where there is none, and looked at only after the table was.
func (b *Book) Found(row readstate.MemberRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := Key{row.Scope, row.Member}
	if e := b.rows[key]; e == nil || e.absent {
		e = &entry{row: row, ifAbsent: e == nil}
		b.stats.First++
		b.put(key, e)
		b.touch(&e.mark, key)
	}
}

func (b *Book) put(key Key, e *entry) {
	if b.rows[key] == nil {
		b.byMember[key.Member] = append(b.byMember[key.Member], key.Scope)
	}
	b.rows[key] = e
}

// touch makes a row dirty. It reports that the budget of the queue refuses it.
func (b *Book) touch(m *mark, key Key) bool {
	m.changed++
	if m.dirty || m.owed {
		return m.owed
	}
	if m.since == 0 {
		m.since = b.now()
	}
	if key.Member != 0 && len(b.queue) >= b.limits.Backlog {
		m.owed = true
		b.owed = append(b.owed, key)
		b.stats.Refused++
		return true
	}
	m.dirty = true
	b.queue = append(b.queue, key)
	return false
}

func (b *Book) markOf(key Key) *mark {
	if key.Member == 0 {
		if f := b.frontiers[key.Scope]; f != nil {
			return &f.mark
		}
		return nil
	}
	if e := b.rows[key]; e != nil {
		return &e.mark
	}
	return nil
}

// shown is an entry's row as it is served.
func (b *Book) shown(e *entry) readstate.MemberRow {
	row := e.row
	if e.owed || e.broken {
		row.Row.Serving = readstate.Unusable
	}
	if f := b.frontiers[row.Scope]; f != nil {
		base := row.Row.Point.Base(f.ranks.Floor)
		row.Removed, row.Everyone = f.removed.at(base), f.everyone.at(base)
	}
	return row
}

// beginRead registers a read of the table: rows written after its start are kept until it ends.
func (b *Book) beginRead() (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.writes
	b.reads = append(b.reads, at)
	return func() {
		if i := slices.Index(b.reads, at); i >= 0 {
			b.reads = slices.Delete(b.reads, i, i+1)
		}
	}
}

// Trim lets written rows go while there are too many. Nothing that the owner of the book has seen
// to be loaded may be relied on after it.
func (b *Book) Trim() {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest := b.writes + 1
	for _, at := range b.reads {
		oldest = min(oldest, at)
	}
	for len(b.rows) > b.limits.Cached && len(b.clean) > 0 && b.clean[0].at < oldest {
		w := b.clean[0]
		b.clean = b.clean[1:]
		e := b.rows[w.key]
		if e == nil || e.dirty || e.owed || e.written != w.at {
			continue
		}
		delete(b.rows, w.key)
		scopes := b.byMember[w.key.Member]
		scopes = slices.DeleteFunc(scopes, func(s readstate.ScopeKey) bool {
			return s == w.key.Scope
		})
		if len(scopes) == 0 {
			delete(b.byMember, w.key.Member)
		} else {
			b.byMember[w.key.Member] = scopes
		}
	}
}

// retire puts a row that the table has, or lacks too, among those that may be let go.
func (b *Book) retire(key Key, m *mark) {
	m.written = b.writes
	b.clean = append(b.clean, written{key, b.writes})
}

// unknown is the error for a scope that was not fetched.
func unknown(s readstate.ScopeKey) error {
	return fmt.Errorf("scope %d: %w", s, ErrNotLoaded)
}
