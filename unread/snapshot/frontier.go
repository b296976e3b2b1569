package snapshot

import (
	"fmt"

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
	mark
}

// mark is what the dirty queue knows of a row.
type mark struct {
	dirty   bool
	owed    bool   // dirty, and refused by the budget of the queue
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
		},
		ranks: readstate.ScopeRanks{
			LatestSeq: d.Seq, Head: readstate.Revision(r.Ranks.Head),
			Floor: readstate.Revision(r.Ranks.Floor), SignalHead: uint64(r.Ranks.SignalHead),
			LatestActivity: readstate.Seq(r.ActivityAccounted),
			Latest:         readstate.Latest{ID: d.Latest, At: d.LatestAt},
			LastActivityAt: d.ActiveAt, Replies: d.Replies,
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
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return f, nil
}

func encodeFrontier(f *frontier) Row {
	seen := frontierOpen
	if f.info.Archived {
		seen = frontierArchived
	}
	k := &f.ranks
	d := frontierDetail{
		Type: f.info.Type.String(), Name: f.info.Name, Parent: f.info.ParentID,
		Root: f.info.RootMessage, Shared: f.info.History == readstate.HistoryShared,
		Tags: f.info.Tags, Active: f.info.Active, Thinking: f.info.Thinking,
		Seq: k.LatestSeq, Latest: k.Latest.ID, LatestAt: k.Latest.At, ActiveAt: k.LastActivityAt,
		Replies: k.Replies, Removed: f.removed.pack(), Everyone: f.everyone.pack(),
		Since: uint64(f.since), Baselined: f.baselined,
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
	return t.Values()
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
