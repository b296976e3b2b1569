package snapshot

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// frontier is where a scope stands: all that memory must never lose between two flushes.
type frontier struct {
	info     readstate.ScopeInfo
	ranks    readstate.ScopeRanks
	removed  revisions
	everyone revisions
	gens     Generations
	// since is the head at which the scope's first roster was read: nothing up to it is
	// counted for a member of that roster who has no row.
	since     readstate.Revision
	baselined bool // rows of the first roster are written, or about to be
	// sure says that an event of this process told where the scope stands.
	sure bool
	// missed are the entries of a scope that counts deliveries, and missedActs the activities, of
	// which nobody told although later ones are known: they may be told yet.
	missed     revisions
	missedActs revisions
	// late are those that were told at last: memory has them as taken back still, as it does no harm
	// where deliveries count.
	late revisions
	// lifted are the members whose rows moved up to a floor, and how far. Until a row is written, the
	// table may have the scope with that floor and the row from before it.
	lifted map[readstate.MemberKey]readstate.Revision
	floor  readstate.LSN // of the commit that raised the floor last
	// birth is where the scope began; it is all that matters until the table has the scope.
	birth  readstate.ScopeRanks
	stored bool
	// assumed says that the table has no sound frontier: a row told of the scope.
	assumed bool
	// writers are the members whom somebody blocks, as far as they wrote or acted here.
	writers map[readstate.MemberKey]*writer
	tail    tail
	read    uint64        // the book's reads when one of them last looked here
	recent  *list.Element // among all scopes, by use
	tailed  *list.Element // among those whose tail is not empty
	mark
}

// mark is what the dirty queue knows of a row.
type mark struct {
	dirty   bool
	owed    bool   // dirty, and refused by the budget of the queue
	flying  bool   // dirty, and on its way to the table
	ticket  uint64 // of its place in the queue
	changed uint64 // counts changes
	flight  uint64 // the change that is being written
	written uint64 // when it was written last, by the book's count of writes
	since   int64  // dirty since, milliseconds
}

func decodeFrontier(r *Row, names Names) (*frontier, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.Ranks == nil || r.Notification != frontierLevel ||
		(r.Visibility != frontierOpen && r.Visibility != frontierArchived) {
		return nil, fmt.Errorf("%w: frontier %q %q", ErrDamaged, r.Notification, r.Visibility)
	}
	var d frontierDetail
	if err := decodeJSON(r.Detail, &d); err != nil {
		return nil, err
	}
	kind, ok := readstate.ParseScopeType(d.Type)
	if !ok {
		return nil, fmt.Errorf("%w: scope type %q", ErrDamaged, d.Type)
	}
	f := &frontier{
		info: readstate.ScopeInfo{
			Key: names.ScopeKey(r.Scope), ID: r.Scope, Type: kind, Name: d.Name,
			ParentID: d.Parent, RootMessage: d.Root, Tags: d.Tags,
			Archived: r.Visibility == frontierArchived, Active: d.Active, Thinking: d.Thinking,
			PendingInput: d.Input, PendingPermission: d.Permit,
		},
		ranks: readstate.ScopeRanks{
			LatestSeq: d.Seq, Head: readstate.Revision(r.Ranks.Head),
			Floor: readstate.Revision(r.Ranks.Floor), SignalHead: uint64(r.Ranks.SignalHead),
			LatestActivity: readstate.Seq(r.ActivityAccounted),
			Latest:         readstate.Latest{ID: d.Latest, At: d.LatestAt},
			LastActivityAt: d.ActiveAt, Replies: d.Replies, LastLSN: d.LSN,
		},
		gens: r.Generations, since: readstate.Revision(d.Since), baselined: d.Baselined,
	}
	if d.Shared {
		f.info.History = readstate.HistoryShared
	}
	if d.Parent != "" {
		f.info.Parent = names.ScopeKey(d.Parent)
	}
	var err error
	if f.removed, err = unpackRevisions(d.Removed); err == nil {
		f.everyone, err = unpackRevisions(d.Everyone)
	}
	if err == nil {
		f.missed, err = unpackRevisions(d.Missed)
	}
	if err == nil {
		f.missedActs, err = unpackRevisions(d.MissedActs)
	}
	if err == nil {
		f.writers, err = decodeWriters(d.Writers, names)
	}
	for _, x := range d.Lifted {
		f.lift(names.MemberKey(x.ID), x.To)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if !f.removed.within(f.ranks.Head) || !f.everyone.within(f.ranks.Head) ||
		f.ranks.Floor > f.ranks.Head {
		return nil, fmt.Errorf("%w: frontier ends at %d", ErrDamaged, f.ranks.Head)
	}
	f.tail.forget(&f.ranks)
	f.stored = true
	return f, nil
}

// encodeBirth is the frontier as it began, for rows that go to the table before it does.
func encodeBirth(f *frontier, names Names) Row {
	begun := frontier{info: f.info, ranks: f.birth}
	row := encodeFrontier(&begun, names)
	row.IfAbsent = true
	return row
}

func encodeFrontier(f *frontier, names Names) Row {
	seen := frontierOpen
	if f.info.Archived {
		seen = frontierArchived
	}
	k := &f.ranks
	d := frontierDetail{
		Type: f.info.Type.String(), Name: f.info.Name, Parent: f.info.ParentID,
		Root: f.info.RootMessage, Shared: f.info.History == readstate.HistoryShared,
		Tags: f.info.Tags, Active: f.info.Active, Thinking: f.info.Thinking,
		Input: f.info.PendingInput, Permit: f.info.PendingPermission,
		Seq: k.LatestSeq, Latest: k.Latest.ID, LatestAt: k.Latest.At, ActiveAt: k.LastActivityAt,
		Replies: k.Replies, LSN: k.LastLSN, Removed: f.removed.pack(), Everyone: f.everyone.pack(),
		Since: uint64(f.since), Baselined: f.baselined, Writers: encodeWriters(f.writers, names),
		Missed: f.missed.pack(), MissedActs: f.missedActs.pack(),
		Lifted: encodeLifted(f.lifted, names),
	}
	return Row{
		Scope: f.info.ID, Notification: frontierLevel, Visibility: seen,
		MessageAccounted: int64(k.Head), ActivityAccounted: int64(k.LatestActivity),
		Generations: f.gens,
		Ranks: &Ranks{
			Head: int64(k.Head), Floor: int64(k.Floor), SignalHead: int64(k.SignalHead),
		},
		Detail: encodeJSON(d),
	}
}

// lift notes that the table may have a member's row from before a floor.
func (f *frontier) lift(m readstate.MemberKey, to readstate.Revision) {
	if f.lifted == nil {
		f.lifted = map[readstate.MemberKey]readstate.Revision{}
	}
	f.lifted[m] = to
}

// liftedDetail is a member whose row was not written yet when its scope was.
type liftedDetail struct {
	ID readstate.MemberID `json:"id"`
	To readstate.Revision `json:"to"`
}

func encodeLifted(
	lifted map[readstate.MemberKey]readstate.Revision, names Names,
) (out []liftedDetail) {
	for m, to := range lifted {
		out = append(out, liftedDetail{names.Member(m), to})
	}
	slices.SortFunc(out, func(a, b liftedDetail) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// values evaluates a row. The error wraps readstate.ErrNegative when the row contradicts the
// frontier.
func (f *frontier) values(row *readstate.MemberRow) (readstate.Values, error) {
	base := row.Row.Point.Base(f.ranks.Floor)
	t := readstate.Terms{
		Type: f.info.Type, Head: f.ranks.Head, Floor: f.ranks.Floor,
		Removed: f.removed.above(base), Everyone: f.everyone.above(base),
		SignalHead: f.ranks.SignalHead, Point: row.Row.Point, Activity: row.Row.Activity,
		Writer: row.Writer,
	}
	for i := range row.Pairs {
		t.Blocked = append(t.Blocked, row.Pairs[i].Pair(f.info.Type, row.Member, base))
	}
	return t.Values()
}

// writerDetail is what a scope notes of one writer, in its row.
type writerDetail struct {
	ID     readstate.MemberID `json:"id"`
	Posts  string             `json:"posts,omitempty"`
	Below  uint64             `json:"below,omitempty"` // the rank below all posts
	Acts   string             `json:"acts,omitempty"`
	Under  uint64             `json:"under,omitempty"` // the rank below all acts
	Behalf []behalfDetail     `json:"behalf,omitempty"`
}

type behalfDetail struct {
	Revision readstate.Revision `json:"r"`
	Of       readstate.MemberID `json:"of"`
}

func encodeWriters(writers map[readstate.MemberKey]*writer, names Names) []writerDetail {
	var out []writerDetail
	for x, w := range writers {
		d := writerDetail{
			ID: names.Member(x), Posts: w.posts.set.pack(), Below: w.posts.offset,
			Acts: w.acts.set.pack(), Under: w.acts.offset,
		}
		for r, m := range w.behalf {
			d.Behalf = append(d.Behalf, behalfDetail{r, names.Member(m)})
		}
		slices.SortFunc(d.Behalf, func(a, b behalfDetail) int {
			return cmp.Compare(a.Revision, b.Revision)
		})
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b writerDetail) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func decodeWriters(
	list []writerDetail, names Names,
) (map[readstate.MemberKey]*writer, error) {
	if len(list) == 0 {
		return nil, nil
	}
	writers := map[readstate.MemberKey]*writer{}
	for i := range list {
		d := &list[i]
		w := newWriter()
		w.posts.offset, w.acts.offset = d.Below, d.Under
		var err error
		if w.posts.set, err = unpackRevisions(d.Posts); err == nil {
			w.acts.set, err = unpackRevisions(d.Acts)
		}
		if err != nil {
			return nil, err
		}
		if d.ID == "" || max(d.Below, d.Under) > readstate.MaxCounter {
			return nil, errRuns
		}
		for _, b := range d.Behalf {
			w.behalf[b.Revision] = names.MemberKey(b.Of)
		}
		writers[names.MemberKey(d.ID)] = w
	}
	return writers, nil
}

// pointFor finds the point from which a number of messages is unread, for a row that has its
// count alone: removed revisions in between count for nobody.
func (f *frontier) pointFor(head readstate.Revision, unread uint64) (readstate.Revision, error) {
	e := head
	for unread > 0 {
		if e == 0 {
			return 0, fmt.Errorf("%w: %d unread below revision %d", ErrDamaged, unread, head)
		}
		if !f.removed.has(e) {
			unread--
		}
		e--
	}
	return max(e, f.ranks.Floor), nil
}
