package readstate_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// apply performs an operation that the oracle has judged; out and verdict are its answer.
func (w *machine) apply(op model.Op, out model.Outcome, verdict error) error {
	if outside(verdict) {
		return nil
	}
	changed, err := w.dispatch(op, out)
	if err := agree(changed, err, out.Changed, verdict); err != nil {
		return err
	}
	return w.broken
}

// agree compares what was done, or why it was refused.
func agree(changed bool, err error, wantChanged bool, verdict error) error {
	switch {
	case errors.Is(err, readstate.ErrFuture) && errors.Is(verdict, model.ErrFuture):
	case errors.Is(err, readstate.ErrConflict) && errors.Is(verdict, model.ErrConflict):
	case err != nil || verdict != nil:
		return fmt.Errorf("%s, for the oracle %s", said(err), said(verdict))
	case changed != wantChanged:
		return fmt.Errorf("changed %t, for the oracle %t", changed, wantChanged)
	}
	return nil
}

func said(err error) string {
	if err == nil {
		return "accepted"
	}
	return fmt.Sprintf("refused with %q", err)
}

func (w *machine) dispatch(op model.Op, out model.Outcome) (bool, error) {
	plain := map[model.Kind]func(model.Op) (bool, error){
		model.OpCreate: w.create, model.OpPost: w.post, model.OpEdit: w.edit,
		model.OpRemove: w.remove, model.OpRewind: w.rewind, model.OpTrim: w.trim,
		model.OpMove: w.move, model.OpAdvanceClock: w.expire, model.OpExpire: w.expire,
		model.OpJoin: w.joinOp, model.OpLeave: w.membership, model.OpShow: w.membership,
		model.OpHide: w.membership, model.OpRead: w.read, model.OpMarkUnread: w.markUnread,
		model.OpSetLevel: w.setLevel, model.OpFollow: w.follow, model.OpUnfollow: w.follow,
		model.OpBlock: w.block, model.OpUnblock: w.block, model.OpActivity: w.recordActivity,
		model.OpActivityRead: w.readActivity, model.OpRunState: w.runState,
		model.OpMerge: w.merge, model.OpFork: w.fork,
	}
	switch op.Kind {
	case model.OpReadAll:
		return w.readAll(op, out)
	case model.OpArchive, model.OpUnarchive:
		s := w.scopes[op.Scope]
		before := s.archived
		s.archived = op.Kind == model.OpArchive
		return s.archived != before, nil
	}
	f := plain[op.Kind]
	if f == nil {
		return false, fmt.Errorf("no operation %d", op.Kind)
	}
	return f(op)
}

// terms collects what the formulas need.
func (s *scope) terms(m member) *readstate.Terms {
	r := s.rows[m]
	base := r.Point.Base(s.floor)
	return &readstate.Terms{
		Type: s.kind, Head: s.head, Floor: s.floor,
		Removed: s.removed.above(base), Everyone: s.everyone.above(base),
		SignalHead: s.signalHead, Point: r.Point, Activity: r.Activity,
		Writer: s.written(m), Blocked: s.blockedTerms(m),
	}
}

func (s *scope) unread(m member) uint64 {
	n, err := s.terms(m).Unread()
	s.machine.must("unread", err)
	return n
}

// standing is how a row takes part now.
func (s *scope) standing(m member) readstate.Standing {
	r := s.rows[m]
	if r == nil {
		return readstate.Standing{}
	}
	var parent *readstate.Notification
	if s.parent != nil {
		parent = &readstate.Notification{}
		if p := s.parent.rows[m]; p != nil {
			parent = &p.Notification
		}
	}
	return readstate.Standing{
		Joined: r.Joined, Visible: r.Visible, Archived: s.archived,
		Level:  readstate.LevelAt(s.machine.now, r.Notification, parent),
		Manual: r.Manual.Set, Busy: s.active && s.thinking,
	}
}

// present evaluates a row as a reader does.
func (s *scope) present(m member) (readstate.Values, readstate.Presented, error) {
	values, err := s.terms(m).Values()
	if err != nil {
		return values, readstate.Presented{}, err
	}
	standing := s.standing(m)
	var parent *readstate.Standing
	same := true
	if s.parent != nil {
		of := s.parent.standing(m)
		parent = &of
		p := s.parent.rows[m]
		same = p != nil && p.Epoch == s.rows[m].ParentEpoch
	}
	return values, standing.Present(standing.Counts(parent, same), values), nil
}

// compare holds every value of every member in every scope against the oracle's.
func (w *machine) compare(world *model.World) error {
	members := map[model.MemberID]bool{}
	for _, m := range world.MemberIDs() {
		members[m] = true
	}
	for _, s := range w.scopes {
		for m := range s.rows {
			members[model.MemberID(m)] = true
		}
	}
	for _, m := range slices.Sorted(maps.Keys(members)) {
		var badge readstate.Badge
		for _, id := range world.ScopeIDs() {
			shown, err := w.compareRow(world, m, id)
			if err != nil {
				return fmt.Errorf("%w\n%s", err, world.Explain(m, id))
			}
			badge.Add(shown)
		}
		want := world.Badge(m)
		if badge != (readstate.Badge{
			Messages:      uint64(want.Messages),
			Conversations: uint64(want.Conversations),
			Attention:     uint64(want.Attention),
		}) {
			return fmt.Errorf("badge of %s is %v, for the oracle %v", m, badge, want)
		}
		if has := badge.Conversations > 0; has != world.HasUnread(m) {
			return fmt.Errorf("has unread of %s is %t", m, has)
		}
	}
	return w.broken
}

func (w *machine) compareRow(
	world *model.World, id model.MemberID, in model.ScopeID,
) (readstate.Presented, error) {
	want := world.Values(id, in)
	s, m := w.scopes[in], member(id)
	if s == nil || s.rows[m] == nil {
		if want.Exists {
			return readstate.Presented{}, fmt.Errorf("no row of %s in %s", id, in)
		}
		return readstate.Presented{}, nil
	}
	values, shown, err := s.present(m)
	if err != nil {
		return shown, fmt.Errorf("%s in %s: %w", id, in, err)
	}
	row, _ := world.Row(id, in)
	if have, wanted := s.view(m, values, shown), oracleView(want, row); have != wanted {
		return shown, fmt.Errorf("%s in %s differs\n  have %s\n  want %s\n  row %+v\n  terms %+v",
			id, in, have, wanted, *s.rows[m], *s.terms(m))
	}
	return shown, s.checkPoint(m)
}

// view is what a reader is told of a row and every fact of it, in words of both sides.
type view struct {
	values    readstate.Values
	shown     readstate.Presented // without attention, which the badge sums
	level     readstate.Level
	manual    readstate.Manual
	read      readstate.Revision
	actread   readstate.Seq
	head      readstate.Revision
	joined    bool
	visible   bool
	epoch     uint64
	parent    uint64
	effective readstate.Revision
	follow    readstate.Follow
	stored    readstate.Notification
}

func (s *scope) view(m member, v readstate.Values, p readstate.Presented) view {
	r := s.rows[m]
	p.Attention = 0
	return view{
		values: v, shown: p, level: s.standing(m).Level, manual: r.Manual,
		read: r.Read, actread: r.Activity.Read, head: s.head,
		joined: r.Joined, visible: r.Visible, epoch: r.Epoch, parent: r.ParentEpoch,
		effective: r.Effective, follow: r.Follow, stored: r.Notification,
	}
}

func oracleView(v model.Values, r model.RowInfo) view {
	follow := readstate.FollowAutomatic
	switch r.Follow {
	case model.Explicit:
		follow = readstate.FollowExplicit
	case model.Unfollowed:
		follow = readstate.FollowStopped
	}
	return view{
		values: readstate.Values{
			Unread: uint64(v.Unread), Attention: uint64(v.Attention), Activity: uint64(v.Activity),
		},
		shown: readstate.Presented{
			Counts: v.Counted, Shown: v.Shown, Unread: uint64(v.ShownUnread),
		},
		level:  readstate.Level(v.Level),
		manual: readstate.Manual{Set: v.Manual, From: rev(v.ManualFrom), Version: uint64(v.Version)},
		read:   rev(v.Read), actread: readstate.Seq(v.ActivityRead), head: rev(v.Head),
		joined: r.Joined, visible: r.Visible, epoch: uint64(r.Epoch), parent: uint64(r.ParentEpoch),
		effective: rev(r.Effective), follow: follow,
		stored: readstate.Notification{Level: readstate.Level(r.Level), Until: milliseconds(r.Until)},
	}
}

var followWords = map[readstate.Follow]string{
	readstate.FollowAutomatic: "automatic", readstate.FollowExplicit: "explicit",
	readstate.FollowStopped: "unfollowed",
}

func (v view) String() string {
	return strings.Join([]string{
		fmt.Sprintf("unread=%d attention=%d activity=%d", v.values.Unread, v.values.Attention, v.values.Activity),
		fmt.Sprintf("counted=%t shown=%t shownunread=%d", v.shown.Counts, v.shown.Shown, v.shown.Unread),
		fmt.Sprintf("level=%s manual=%t from=%d v=%d", v.level, v.manual.Set, v.manual.From, v.manual.Version),
		fmt.Sprintf("read=%d actread=%d head=%d", v.read, v.actread, v.head),
		fmt.Sprintf("joined=%t visible=%t epoch=%d parentepoch=%d", v.joined, v.visible, v.epoch, v.parent),
		fmt.Sprintf("effective=%d follow=%s", v.effective, followWords[v.follow]),
		fmt.Sprintf("stored=%s until=%d", v.stored.Level, v.stored.Until),
	}, " ")
}

// checkPoint holds a stored point against one counted anew from the retained entries.
func (s *scope) checkPoint(m member) error {
	r := s.rows[m]
	if base, want := r.Point.Base(s.floor), r.EffectivePoint(s.floor); base != want {
		return fmt.Errorf("%d in %s stands at %d, its facts say %d", m, s.id, base, want)
	}
	have := r.Point
	want := s.recount(m, have.Base(s.floor))
	want.E = have.E
	if have.E < s.floor {
		// No trimmed entry was of the member, so the ranks are the floor's.
		w := s.written(m)
		want.AuthorRank, want.PrincipalRank = w.AuthorAtFloor, w.PrincipalAtFloor
	}
	if have != want {
		return fmt.Errorf("point of %d in %s is %+v, counted %+v", m, s.id, have, want)
	}
	return nil
}

// recount computes a point from the retained entries, with predicates of its own.
func (s *scope) recount(m member, at readstate.Revision) readstate.Point {
	ranks := s.ranks(m, at)
	p := readstate.Point{E: at, AuthorRank: ranks.Author, PrincipalRank: ranks.Principal}
	task, session := s.kind == readstate.Task, s.kind == readstate.Session
	for _, e := range s.entries {
		if e.revision <= at {
			continue
		}
		mine := !session && (e.author == m || e.principal == m)
		delivered := slices.Contains(e.recipients, m)
		named := slices.Contains(e.named, m) && (!task || delivered)
		switch {
		case mine && !e.live:
			p.OwnRemoved++
		case mine && e.everyone:
			p.OwnEveryone++
		case e.live && !mine:
			if named && !e.everyone {
				p.Direct++
			}
			if delivered && task {
				p.Targets++
			}
		}
	}
	return p
}
