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
	var from *place
	if cursor != "" && cursor != restart {
		p, err := parsePlace(cursor)
		if err != nil {
			return RowPage{Summary: Summary{State: Unavailable}}, err
		}
		from = &p
	}
	limit = max(1, limit)
	var page RowPage
	full := func(st *state, m int32, now int64) (err error) {
		page, err = st.bootstrap(m, now, from, limit)
		return err
	}
	part := func(st *state, m int32, now int64) (err error) {
		if page, err = st.bootstrap(m, now, nil, limit); err == nil {
			page.Next = restart
		}
		return err
	}
	if err := r.view(ctx, id, member, whole, full, part); err != nil {
		return RowPage{Summary: Summary{State: stateOf(err)}}, err
	}
	return page, nil
}

type ranked struct {
	rank
	entry int32
	value value
}

func (st *state) bootstrap(m int32, now int64, from *place, limit int) (RowPage, error) {
	s, err := st.peek(m, now)
	if err != nil {
		return RowPage{}, err
	}
	page := RowPage{Summary: s}
	here := place{started: st.lsn}
	if from != nil {
		here = *from
	}
	var rows []ranked
	x := st.members.At(m).run()
	for e := x.at; e < x.at+x.n; e++ {
		if from != nil && here.changed && !st.changedSince(e, here.started) {
			continue
		}
		v, err := st.evaluate(e, now)
		if err != nil {
			return RowPage{}, err
		}
		if !v.standing.visible {
			continue
		}
		sc := st.scopes.At(st.rows.scope(e))
		at := rank{shown: v.presented.Shown, at: sc.lastActivityAt, key: sc.key}
		if here.changed {
			at = rank{key: sc.key}
		}
		if from != nil && compareRank(at, here.after) <= 0 {
			continue
		}
		rows = append(rows, ranked{at, e, v})
	}
	slices.SortFunc(rows, func(a, b ranked) int { return compareRank(a.rank, b.rank) })
	more := len(rows) > limit
	rows = rows[:min(limit, len(rows))]
	for i := range rows {
		page.Rows = append(page.Rows, st.present(rows[i].entry, &rows[i].value))
	}
	switch {
	case more:
		here.after = rows[len(rows)-1].rank
		page.Next = here.String()
	case from != nil && !here.changed && st.lsn > here.started:
		page.Next = place{started: here.started, changed: true}.String()
	}
	return page, nil
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
