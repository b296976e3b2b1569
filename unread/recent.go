package unread

import (
	"cmp"
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// RecentQuery asks for a member's scopes by when something happened in them last.
type RecentQuery struct {
	Types  []readstate.ScopeType // of the scopes to sort
	Shown  bool                  // only those with a dot
	Before RecentMark            // the last one of the page before, the zero value to begin
	Limit  int
	// Also are scopes whose rows are wanted beside the sorted ones, for a caller who sorts them
	// by something else.
	Also []readstate.ScopeKey
}

// RecentMark is a place in the order of recent scopes: the newest first, of equal times the
// higher key first.
type RecentMark struct {
	At    int64 // milliseconds
	Scope readstate.ScopeKey
}

// Compare says whether a comes before (-1) or after (1) b in the order of recent scopes.
func (a RecentMark) Compare(b RecentMark) int {
	return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.Scope, a.Scope))
}

// Recent is the answer to a RecentQuery, all of one LSN.
type Recent struct {
	Rows  []Row // sorted
	Also  []Row // in the order of the query; what the member does not see is left out
	More  bool  // further rows come after the last of Rows
	State State
}

// Recent answers which of a member's scopes something happened in last, with their values. Scopes
// in which nothing was ever written are left out, as are rows that cannot be served. It needs the
// whole member, and looks at each of the member's rows.
func (r *Runtime) Recent(
	ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID, q RecentQuery,
) (Recent, error) {
	var out Recent
	err := r.view(ctx, id, member, whole, func(st *state, m int32, now int64) error {
		out = Recent{State: st.stateOfMember(m)}
		if st.members.At(m).overdue(now) {
			return errOverdue
		}
		if err := st.recent(m, now, &q, &out); err != nil {
			return err
		}
		return st.also(m, now, &q, &out)
	}, nil)
	if err != nil {
		return Recent{State: stateOf(err)}, err
	}
	return out, nil
}

func (st *state) recent(m int32, now int64, q *RecentQuery, out *Recent) error {
	type place struct {
		RecentMark
		entry int32
		value value
	}
	var found []place
	x := st.members.At(m).run()
	for e := x.at; e < x.at+x.n; e++ {
		sc := st.scopes.At(st.rows.scope(e))
		at := RecentMark{sc.lastActivityAt, sc.key}
		if sc.latestSeq == 0 && sc.latestActivity == 0 || !slices.Contains(q.Types, sc.kind) ||
			q.Before != (RecentMark{}) && at.Compare(q.Before) <= 0 {
			continue
		}
		v, err := st.evaluate(e, now)
		if err != nil {
			return err
		}
		if !v.standing.visible || !v.serving.Servable() || q.Shown && !v.presented.Shown {
			continue
		}
		found = append(found, place{at, e, v})
	}
	slices.SortFunc(found, func(a, b place) int { return a.Compare(b.RecentMark) })
	if out.More = len(found) > q.Limit; out.More {
		found = found[:q.Limit]
	}
	for i := range found {
		out.Rows = append(out.Rows, st.present(found[i].entry, &found[i].value))
	}
	return nil
}

func (st *state) also(m int32, now int64, q *RecentQuery, out *Recent) error {
	for _, key := range q.Also {
		e := st.entryOf(m, st.scopeByKey[key])
		if e == none {
			continue
		}
		v, err := st.evaluate(e, now)
		if err != nil {
			return err
		}
		if v.standing.visible && v.serving.Servable() && (!q.Shown || v.presented.Shown) {
			out.Also = append(out.Also, st.present(e, &v))
		}
	}
	return nil
}
