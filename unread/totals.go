package unread

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// Group says how Totals divides a member's scopes.
type Group string

const (
	ByParent Group = "parent" // by channel: a thread counts to its channel, others to themselves
	ByTag    Group = "tag"    // a scope counts to each of its tags
	ByType   Group = "type"   // by the wire name of the scope's type
)

// Totals is a member's badge divided into groups, the same fold over the same rows. Groups
// without anything unread are left out. It needs the whole member.
func (r *Runtime) Totals(
	ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID, group Group,
) (map[string]readstate.Badge, error) {
	var totals map[string]readstate.Badge
	err := r.view(ctx, id, member, whole, func(st *state, m int32, now int64) error {
		if st.members.At(m).overdue(now) {
			return errOverdue
		}
		totals = map[string]readstate.Badge{}
		for e := range st.considered(m) {
			v, err := st.evaluate(e, now)
			if err != nil {
				return err
			}
			if !v.presented.Shown {
				continue
			}
			for _, key := range st.groups(e, group) {
				badge := totals[key]
				badge.Add(v.presented)
				totals[key] = badge
			}
		}
		return nil
	}, nil)
	return totals, err
}

func (st *state) groups(e int32, group Group) []string {
	sc := st.scopes.At(st.rows.scope(e))
	switch group {
	case ByTag:
		return unpackTags(st.text.String(sc.tags))
	case ByType:
		return []string{sc.kind.String()}
	}
	if sc.parentID != 0 {
		return []string{st.text.String(sc.parentID)}
	}
	return []string{st.text.String(sc.id)}
}

// Explain says of which terms a count is made.
func (r *Runtime) Explain(
	ctx context.Context, id readstate.WorkspaceID,
	member readstate.MemberID, scope readstate.ScopeID,
) (Explanation, error) {
	var x Explanation
	err := r.viewRow(ctx, id, member, scope, func(st *state, e int32, now int64) (err error) {
		x, err = st.explain(e, now)
		return err
	})
	if err != nil {
		if x.Row.State == "" {
			x.Row.State = stateOf(err)
		}
		return Explanation{Row: Row{State: x.Row.State}}, err
	}
	return x, nil
}

func (st *state) explain(e int32, now int64) (Explanation, error) {
	row, err := st.row(e, now)
	if err != nil {
		return Explanation{}, err
	}
	if err := withheld(row.State); err != nil {
		return Explanation{Row: row}, err // what is not shown may contradict itself
	}
	f := st.rows.load(e)
	t, err := st.terms(e, &f)
	if err != nil {
		return Explanation{}, st.broken(e, err)
	}
	own, err := t.Own()
	if err != nil {
		return Explanation{}, st.broken(e, err)
	}
	blocked, err := t.BlockedUnread()
	if err != nil {
		return Explanation{}, st.broken(e, err)
	}
	m := st.rows.member(e)
	x := Explanation{
		Row: row,
		E:   f.row.Point.E, Base: f.row.Point.Base(t.Floor), Head: t.Head,
		Removed: t.Removed, Everyone: t.Everyone, Own: own, Blocked: blocked,
		Direct: f.row.Point.Direct, MemberKey: st.members.At(m).key,
	}
	for writer := range st.blocked.writers[st.rows.scope(e)] {
		if st.blocks(m, writer) {
			x.BlockedBy = append(x.BlockedBy, writer)
		}
	}
	slices.Sort(x.BlockedBy)
	return x, nil
}

// ParseGroup knows the three ways to divide; an error for any other word.
func ParseGroup(s string) (Group, error) {
	switch g := Group(s); g {
	case ByParent, ByTag, ByType:
		return g, nil
	}
	return "", fmt.Errorf("group %q is not parent, tag or type", s)
}
