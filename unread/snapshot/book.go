package snapshot

import (
	"container/list"
	"errors"
	"sync"

	"github.com/tidemark-im/tidemark/readstate"
)

var (
	// ErrNotLoaded means that events touch rows or scopes that were not fetched first.
	ErrNotLoaded = errors.New("row is not loaded")
	// ErrUnsupported refuses events that need facts which nobody has here.
	ErrUnsupported = errors.New("not kept in snapshots")
)

// Key names a row; Member zero names a scope's frontier, Scope zero a member apart from scopes.
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

	// writing is held from the moment rows are taken for a write until the table has them, so that
	// an older state of a row never follows a newer one.
	writing sync.Mutex

	mu        sync.Mutex
	lsn       readstate.LSN
	frontiers map[readstate.ScopeKey]*frontier
	people    map[readstate.MemberKey]*person
	awaited   map[readstate.MemberKey]int // members whom somebody is about to block
	rows      map[Key]*entry
	byMember  map[readstate.MemberKey][]readstate.ScopeKey
	inScope   map[readstate.ScopeKey]int // rows of members,
	waitingIn map[readstate.ScopeKey]int // and those that are dirty and not on their way
	recent    *list.List                 // of frontiers, the one used last in front
	tailed    *list.List                 // of those with a tail
	held      int                        // entries and activities of all tails
	queue     []place                    // dirty, in the order in which they became so
	queued    int                        // places that are taken
	tickets   uint64
	owed      []Key // refused by the budget of the queue
	restored  []Key // taken back from owed: their rows may be shown again
	fetched   []Key // for the next Apply
	clean     []written
	writes    uint64
	reads     map[uint64]uint64 // writes at the start of every read of the table under way
	readings  uint64
	stats     Stats
}

// entry is a member's row in the book.
type entry struct {
	row      readstate.MemberRow // without bits and pairs
	pairs    pairs
	got      deliveries // in scopes that count them
	gens     Generations
	absent   bool // the table has no such row
	broken   bool // the table's row is damaged: only a whole new one helps
	ifAbsent bool // a first row, which gives way to one that the table has
	unpaired bool // a first row whose pairs nobody looked at
	// actsBehind withholds the row until an activity cursor settles it, as Serving does until a
	// message cursor does.
	actsBehind bool
	kept
	mark
}

// settled reports that the entry is what the row is, and not what it is unless the table has one.
func (e *entry) settled() bool { return e != nil && !e.ifAbsent }

// Limits bound a book. A book has at most so many that something else does not need.
type Limits struct {
	Backlog   int // rows of members that may wait for a flush
	Cached    int // rows of members and of persons beyond which written ones are let go
	Scopes    int // scopes beyond which those are let go that nobody needs
	Held      int // newest entries of a scope, and newest activities
	HeldTotal int // of all scopes, beyond which those of scopes unused for longest go
}

// NewBook makes an empty book whose workspace stands at lsn.
func NewBook(
	w readstate.WorkspaceID, lsn readstate.LSN, names Names, now func() int64, limits Limits,
) *Book {
	return &Book{
		workspace: w, lsn: lsn, names: names, now: now, limits: limits,
		frontiers: map[readstate.ScopeKey]*frontier{}, rows: map[Key]*entry{},
		people:   map[readstate.MemberKey]*person{},
		awaited:  map[readstate.MemberKey]int{},
		byMember: map[readstate.MemberKey][]readstate.ScopeKey{},
		inScope:  map[readstate.ScopeKey]int{}, waitingIn: map[readstate.ScopeKey]int{},
		recent: list.New(), tailed: list.New(), reads: map[uint64]uint64{},
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

// Row returns a row of the book, with those of its pairs that are not empty. Known is false where
// the book has to be asked to fetch it first; exists is false where there is none, or only a
// damaged one.
func (b *Book) Row(key Key) (row readstate.MemberRow, gens Generations, exists, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.rows[key]
	if !e.settled() {
		return row, gens, false, false
	}
	b.firstPairs(e)
	row = e.row
	for _, c := range e.pairs {
		row.Pairs = append(row.Pairs, readstate.PairRow{
			Blocked: c.with, Overlap: c.overlap, Direct: c.direct, Targets: c.targets,
			ActivityTargets: c.acts,
		})
	}
	return row, e.gens, !e.absent && !e.broken, true
}

// SetRowGenerations notes the generations of a row whose event was applied just now.
func (b *Book) SetRowGenerations(key Key, set func(g *Generations)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.rows[key]; e != nil {
		set(&e.gens)
	}
}

// ActsBehind reports that nobody knows a row's activities above its cursor.
func (b *Book) ActsBehind(key Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.rows[key]
	return e != nil && e.actsBehind
}

// SetActsBehind says so, or that they are known again, of a row whose event is applied next.
func (b *Book) SetActsBehind(key Key, behind bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.rows[key]; e != nil && e.actsBehind != behind {
		e.actsBehind = behind
		b.touch(&e.mark, key)
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
		e = &entry{row: row, ifAbsent: e == nil, unpaired: true}
		b.stats.First++
		if f := b.frontiers[row.Scope]; f != nil && f.info.Type.Targeted() {
			e.got.moved(&e.row, &f.tail)
			e.got.check(&e.row)
		}
		b.put(key, e)
		b.touch(&e.mark, key)
	}
}

func (b *Book) put(key Key, e *entry) {
	if b.rows[key] == nil {
		b.byMember[key.Member] = append(b.byMember[key.Member], key.Scope)
		b.inScope[key.Scope]++
	}
	b.rows[key] = e
}

// addFrontier takes a scope in that the book lacks.
func (b *Book) addFrontier(f *frontier) {
	b.frontiers[f.info.Key] = f
	f.recent, f.read = b.recent.PushFront(f), b.readings
}

// use notes that somebody looked at the scope.
func (b *Book) use(f *frontier) {
	f.read = b.readings
	b.recent.MoveToFront(f.recent)
	if f.tailed != nil {
		b.tailed.MoveToFront(f.tailed)
	}
}

// count brings the total of tails up to date after a tail of the given size changed.
func (b *Book) count(f *frontier, before int) {
	b.held += f.tail.size() - before
	switch {
	case f.tail.size() == 0 && f.tailed != nil:
		b.tailed.Remove(f.tailed)
		f.tailed = nil
	case f.tail.size() > 0 && f.tailed == nil:
		f.tailed = b.tailed.PushFront(f)
	}
}

// frontier finds the scope of an event.
func (b *Book) frontier(s readstate.ScopeKey) (*frontier, error) {
	f := b.frontiers[s]
	if f == nil {
		return nil, unknown(s)
	}
	b.use(f)
	return f, nil
}

// shown is an entry's row as it is served.
func (b *Book) shown(e *entry) readstate.MemberRow {
	row := e.row
	p, f := b.people[row.Member], b.frontiers[row.Scope]
	b.firstPairs(e)
	row.Row.Serving = e.row.Row.Serving
	if e.actsBehind {
		row.Row.Serving = max(row.Row.Serving, readstate.Behind)
	}
	if e.owed || e.broken || p != nil && p.broken {
		row.Row.Serving = readstate.Unusable
	}
	if f == nil {
		return row
	}
	base := row.Row.Point.Base(f.ranks.Floor)
	row.Removed, row.Everyone = f.removed.at(base), f.everyone.at(base)
	row.Pairs = b.pairRows(f, e, p)
	if _, err := f.values(&row); err != nil && row.Row.Serving.Servable() {
		b.stats.Contradictions++
		e.row.Row.Serving = readstate.Behind // as it is in the table from the next change on
		row.Row.Serving = readstate.Behind
	}
	return row
}
