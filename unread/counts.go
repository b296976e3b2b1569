package unread

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// Count is what one visible scope says to a member, in numbers alone.
type Count struct {
	Scope       readstate.ScopeKey
	Unread      uint64 // raw, before levels
	Attention   uint64 // raw
	ShownUnread uint64 // the number beside the dot
	Shown       bool   // the dot
}

// Counts appends a count for each scope that the member sees, archived ones included, to dst, in
// no particular order: the cheapest way to have all of a member's numbers at one LSN. It needs
// the whole member, and answers like Summary otherwise.
func (r *Runtime) Counts(
	ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID, dst []Count,
) ([]Count, readstate.LSN, error) {
	var lsn readstate.LSN
	n := len(dst)
	err := r.view(ctx, id, member, whole, func(st *state, m int32, now int64) (err error) {
		lsn = st.lsn
		dst, err = st.counts(m, now, dst[:n])
		return err
	}, nil)
	return dst, lsn, err
}

func (st *state) counts(m int32, now int64, dst []Count) ([]Count, error) {
	x := st.members.At(m).run
	if x.n == 0 {
		return dst, nil
	}
	hots := st.rows.hot.View(x.at, int(x.n))
	scopes := st.rows.scopes.View(x.at, int(x.n))
	for i := range hots {
		sc := st.scopes.At(scopes[i])
		if unread, ok := st.rows.plainUnread(&hots[i], sc); ok {
			attention := unread
			if sc.kind != readstate.DM {
				attention = uint64(hots[i].direct)
			}
			dst = append(dst, Count{
				Scope: sc.key, Unread: unread, Attention: attention,
				ShownUnread: unread, Shown: unread > 0 || sc.signalHead > 0,
			})
			continue
		}
		v, err := st.evaluate(x.at+int32(i), now)
		if err != nil {
			return dst, err
		}
		if v.standing.visible {
			dst = append(dst, Count{
				Scope: sc.key, Unread: v.values.Unread, Attention: v.values.Attention,
				ShownUnread: v.presented.Unread, Shown: v.presented.Shown,
			})
		}
	}
	return dst, nil
}

// plainUnread is the formula for most rows: a row whose cold record has nothing that counts, of
// a member who sees the scope at the level "all", in a channel or dm in which nothing was
// removed, mentions everyone, is archived or written by somebody blocked. Ok is false for every
// other row, and where a term would be negative; evaluate decides then.
func (r *rows) plainUnread(h *hot, sc *scope) (unread uint64, ok bool) {
	if h.flags&plainMask != plainFlags || !sc.plain() {
		return 0, false
	}
	if h.cold != none && *r.cold.At(h.cold)&^idleFields != 0 {
		return 0, false
	}
	base := max(uint64(h.read), max(uint64(h.effective), 1)-1, uint64(sc.floor))
	own := uint64(h.authorHead) - uint64(h.authorRank) - uint64(h.ownRemoved)
	unread = uint64(sc.head) - base - own
	return unread, own <= uint64(h.authorHead) && base+own <= uint64(sc.head)
}

// What plain rows have in their flags: joined, visible, no mark, and the level of a row that
// inherits where there is nothing to inherit from, or "all".
const (
	plainMask  = flagJoined | flagVisible | flagManual | 2<<levelShift
	plainFlags = flagJoined | flagVisible
)

// idleFields do not enter the values of a channel's or dm's row.
const idleFields = 1<<fieldStateLSN | 1<<fieldEpoch | 1<<fieldParentEpoch |
	1<<fieldManualVersion | 1<<fieldActivityRead

// plain scopes are those whose values are ranks and nothing else.
func (sc *scope) plain() bool {
	return sc.kind <= readstate.DM && !sc.archived && !sc.blocked &&
		sc.removed.blocks.n|sc.everyone.blocks.n == 0
}

// plainValue is what follows from a plain row's count.
func plainValue(h *hot, sc *scope, unread uint64) value {
	var v value
	v.standing.own = readstate.Standing{Joined: true, Visible: true, Level: readstate.LevelAll}
	v.standing.visible, v.standing.counts = true, true
	v.values = readstate.Values{Unread: unread, Attention: unread, Activity: sc.signalHead}
	if sc.kind != readstate.DM {
		v.values.Attention = uint64(h.direct)
	}
	v.presented = readstate.Presented{
		Counts: true, Unread: unread, Shown: unread > 0 || sc.signalHead > 0,
	}
	if v.presented.Shown {
		v.presented.Attention = v.values.Attention
	}
	return v
}
