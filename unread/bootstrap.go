package unread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-im/tidemark/readstate"
)

// ErrCursor means that a cursor is none that Rows gave out.
var ErrCursor = errors.New("not a cursor")

// rank is a row's place in the bootstrap: what is shown first, then the most recent activity.
type rank struct {
	shown bool
	at    int64
	key   readstate.ScopeKey
}

func compareRank(a, b rank) int {
	if a.shown != b.shown {
		if a.shown {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.key, b.key))
}

// place is where the next page starts. Pages go down the ranks first. Ranks change while a
// client pages, so rows that changed since the first page follow once more, by scope key, and
// none is missed.
type place struct {
	started readstate.LSN // applied at the first page
	changed bool          // in the second pass
	after   rank
}

const restart = "r" // begin again, because rows were missing that may come first

func (p place) String() string {
	kind := "n"
	switch {
	case p.changed:
		kind = "c"
	case p.after.shown:
		kind = "s"
	}
	return fmt.Sprintf("%s.%d.%d.%d", kind, p.started, p.after.at, p.after.key)
}

func parsePlace(s string) (place, error) {
	bad := fmt.Errorf("cursor %q: %w", s, ErrCursor)
	f := strings.Split(s, ".")
	if len(f) != 4 || !slices.Contains([]string{"n", "c", "s"}, f[0]) {
		return place{}, bad
	}
	started, err1 := strconv.ParseUint(f[1], 10, 64)
	at, err2 := strconv.ParseInt(f[2], 10, 64)
	key, err3 := strconv.ParseUint(f[3], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return place{}, bad
	}
	return place{
		started: readstate.LSN(started), changed: f[0] == "c",
		after: rank{shown: f[0] == "s", at: at, key: readstate.ScopeKey(key)},
	}, nil
}

// Rows answers one page of the member's visible rows, archived ones included and marked: those
// shown first, then by recent activity. The totals on every page are of that page's LSN. While
// the member is loaded only in part, the page holds the first rows of what is there, with
// Complete false, and its cursor begins again. A row may come twice; the one of the higher LSN
// is right. ErrCursor refuses a cursor.
func (r *Runtime) Rows(
	ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID,
	cursor string, limit int,
) (RowPage, error) {
	var page RowPage
	var p picked
	err := r.viewPage(ctx, id, member, cursor, limit, &p, func(st *state) error {
		slices.SortFunc(p.rows, compareRanked)
		page = RowPage{Summary: p.Summary, Next: p.next, Rows: make([]Row, len(p.rows))}
		for i, at := range p.rows {
			page.Rows[i] = st.present(at.entry, p.value(at.entry))
		}
		return nil
	})
	if err != nil {
		return RowPage{Summary: Summary{State: stateOf(err)}}, err
	}
	return page, nil
}

// picked is which rows a page has, in no order.
type picked struct {
	Summary
	next   string
	rows   []ranked
	values []value // of the member's rows, as they lie in memory, some of which are picked
	first  int32   // the row whose value is the first one
}

func (p *picked) value(e int32) *value { return &p.values[e-p.first] }

// ranked is a row with its place in the bootstrap.
type ranked struct {
	rank
	entry int32
	scope int32
}

func compareRanked(a, b ranked) int { return compareRank(a.rank, b.rank) }

// viewPage picks the rows of a page and runs fn, once at most, on the memory that they were picked
// in.
func (r *Runtime) viewPage(
	ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID,
	cursor string, limit int, p *picked, fn func(*state) error,
) error {
	var from *place
	if cursor != "" && cursor != restart {
		at, err := parsePlace(cursor)
		if err != nil {
			return err
		}
		from = &at
	}
	full := func(st *state, m int32, now int64) error {
		if err := st.pick(m, now, from, max(1, limit), p); err != nil {
			return err
		}
		return fn(st)
	}
	part := func(st *state, m int32, now int64) error {
		if err := st.pick(m, now, nil, max(1, limit), p); err != nil {
			return err
		}
		p.next = restart
		return fn(st)
	}
	return r.view(ctx, id, member, whole, full, part)
}

// pick evaluates the member's rows and takes those of the page that begins at from, nil for the
// first one. The totals are their sum: whatever there is to tidy, every row is looked at.
func (st *state) pick(m int32, now int64, from *place, limit int, p *picked) error {
	here := place{started: st.lsn}
	if from != nil {
		here = *from
	}
	x := st.members.At(m).run()
	p.next, p.rows, p.first = "", p.rows[:0], x.at
	p.values = slices.Grow(p.values[:0], int(x.n))[:x.n]
	var badge readstate.Badge
	words, scopes := st.rows.hot.View(x.at, int(x.n)), st.rows.scopes.View(x.at, int(x.n))
	for i, s := range scopes {
		e, v, sc := x.at+int32(i), &p.values[i], st.scopes.At(s)
		if !v.plain(st, &words[i], sc) {
			var err error
			if *v, err = st.evaluateWhole(e, now); err != nil {
				return err
			}
		}
		badge.Add(v.presented)
		if !v.standing.visible || here.changed && !st.changedSince(e, here.started) {
			continue
		}
		at := rank{shown: v.presented.Shown, at: sc.lastActivityAt, key: sc.key}
		if here.changed {
			at = rank{key: sc.key}
		}
		if from == nil || compareRank(at, here.after) > 0 {
			p.rows = append(p.rows, ranked{at, e, s})
		}
	}
	p.Summary = st.summarize(m, badge)
	switch {
	case len(p.rows) > limit:
		slices.SortFunc(p.rows, compareRanked)
		p.rows = p.rows[:limit]
		here.after = p.rows[limit-1].rank
		p.next = here.String()
	case from != nil && !here.changed && st.lsn > here.started:
		p.next = place{started: here.started, changed: true}.String()
	}
	return nil
}

// plain evaluates a row by the short formula, where that is enough.
func (v *value) plain(st *state, words *hotWords, sc *scope) bool {
	var g glance
	if !g.look(&st.rows, words, sc) {
		return false
	}
	unread, shown := g.presented()
	*v = value{
		values:    readstate.Values{Unread: g.unread, Attention: g.attention, Activity: g.signals},
		presented: readstate.Presented{Counts: true, Shown: shown, Unread: unread},
	}
	v.standing.visible, v.standing.counts = true, true
	v.standing.own = readstate.Standing{
		Joined: true, Visible: true, Level: g.level, Manual: g.manual,
	}
	if shown {
		v.presented.Attention = g.attention
	}
	return true
}

// changedSince reports that a row may look different from how it looked at lsn.
func (st *state) changedSince(e int32, lsn readstate.LSN) bool {
	f := st.rows.load(e)
	sc := st.scopes.At(st.rows.scope(e))
	if sc.lastLSN > lsn || f.stateLSN > lsn || f.row.Until != 0 {
		return true
	}
	if sc.parent == none {
		return false
	}
	if st.scopes.At(sc.parent).lastLSN > lsn {
		return true
	}
	p := st.parentOf(e)
	if p == none {
		return false
	}
	pf := st.rows.load(p)
	return pf.stateLSN > lsn || (f.row.Level == readstate.LevelInherit && pf.row.Until != 0)
}

// Changed answers what a stream that has seen everything up to since has to be told. Whole means
// that only a snapshot will do: the member's own settings or blocks changed, or since is of
// another database. It needs the whole member.
func (r *Runtime) Changed(
	ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID,
	since readstate.LSN,
) (Changes, error) {
	var c Changes
	err := r.view(ctx, id, member, whole, func(st *state, m int32, now int64) (err error) {
		c, err = st.changes(m, now, since)
		return err
	}, nil)
	return c, err
}

func (st *state) changes(m int32, now int64, since readstate.LSN) (Changes, error) {
	mb := st.members.At(m)
	c := Changes{LSN: st.lsn}
	if mb.memberLSN > since || mb.gone > since || since > st.lsn || since < st.began {
		c.Whole = true
		return c, nil
	}
	s, err := st.peek(m, now)
	if err != nil {
		return c, err
	}
	id := st.memberID(m)
	x := mb.run()
	for e := x.at; e < x.at+x.n; e++ {
		if !st.changedSince(e, since) {
			continue
		}
		v, err := st.evaluate(e, now)
		if err != nil {
			return c, err
		}
		d := Delta{Member: id, Scope: st.scopeID(st.rows.scope(e)), Summary: s}
		if v.standing.visible {
			d.Row = st.present(e, &v)
		} else if d.Removed = st.leftSince(e, since); !d.Removed {
			continue
		}
		c.Deltas = append(c.Deltas, d)
	}
	return c, nil
}

// leftSince reports that an invisible row may have been visible at lsn.
func (st *state) leftSince(e int32, lsn readstate.LSN) bool {
	if st.rows.load(e).stateLSN > lsn {
		return true
	}
	p := st.parentOf(e)
	return p != none && st.rows.load(p).stateLSN > lsn
}
