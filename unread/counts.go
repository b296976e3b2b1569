package unread

import (
	"context"
	"math/bits"
	"slices"
	"sync/atomic"

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
	ws, err := r.workspace(id)
	if err != nil {
		return dst, 0, err
	}
	var lsn readstate.LSN
	n := len(dst)
	if r.glimpse(ws, func(g *glimpse) (result outcome) {
		lsn = readstate.LSN(g.ws.applied.Load())
		dst, result = g.counts(member, dst[:n])
		return result
	}) {
		return dst, lsn, nil
	}
	err = r.view(ctx, id, member, whole, func(st *state, m int32, now int64) (err error) {
		lsn = st.lsn
		dst, err = st.counts(m, now, dst[:n])
		return err
	}, nil)
	return dst, lsn, err
}

func (st *state) counts(m int32, now int64, dst []Count) ([]Count, error) {
	x := st.members.At(m).run()
	hots, scopes := st.rows.hot.View(x.at, int(x.n)), st.rows.scopes.View(x.at, int(x.n))
	for done := 0; done < len(hots); done++ {
		var n int
		dst, n = st.plainCounts(hots[done:], scopes[done:], dst)
		if done += n; done == len(hots) {
			break
		}
		v, err := st.evaluate(x.at+int32(done), now)
		if err != nil {
			return dst, err
		}
		if v.standing.visible && v.serving.Servable() {
			dst = append(dst, Count{
				Scope: st.scopes.At(scopes[done]).key, Unread: v.values.Unread,
				Attention:   v.values.Attention,
				ShownUnread: v.presented.Unread, Shown: v.presented.Shown,
			})
		}
	}
	return dst, nil
}

// abreast is how many rows are looked at together: their scopes lie anywhere, and loads that do
// not wait for each other take little more time than one.
const abreast = 32

// plainCounts appends the counts of neighbouring rows up to the first one that is not plain, and
// says how many that were. It may run without a lock, as glance.
func (st *state) plainCounts(hots []hotWords, scopes []int32, dst []Count) ([]Count, int) {
	at := len(dst)
	dst = slices.Grow(dst, len(hots))[:at+len(hots)]
	var slots [abreast]*scope
	for from := 0; from < len(hots); from += abreast {
		to := min(from+abreast, len(hots))
		rows, out := hots[from:to], dst[at+from:at+to]
		for j := range scopes[from:to] {
			sc := st.scopes.At(atomic.LoadInt32(&scopes[from+j]))
			atomic.LoadUint32(&sc.plain)
			slots[j%abreast] = sc
		}
		for j := range rows {
			if sc := slots[j%abreast]; !out[j].plainest(&rows[j], sc) {
				var g glance
				if !g.look(&st.rows, &rows[j], sc) {
					return dst[:at+from+j], from + j
				}
				g.count(&out[j])
			}
		}
	}
	return dst, len(hots)
}

// What the plainest rows have in their flags: the level of everything, beside what plain ones have.
const (
	plainestMask = plainMask | uint16(readstate.LevelMentions)<<levelShift // also in LevelNone
	manualBit    = uint32(flagManual)
)

// plainest sets the count of a row that has no cold record and shows everything, as nearly all do:
// what glance would say, without a detour. It says no to every other row.
func (c *Count) plainest(words *hotWords, sc *scope) bool {
	kind := plainness(atomic.LoadUint32(&sc.plain))
	flags := atomic.LoadUint32(&words[wordFlags])
	if kind == notPlain || uint16(flags)&plainestMask != plainFlags ||
		atomic.LoadUint32(&words[wordCold]) != 0 {
		return false
	}
	base := max(
		plainE(uint64(atomic.LoadUint32(&words[wordRead])),
			uint64(atomic.LoadUint32(&words[wordEffective]))),
		atomic.LoadUint64((*uint64)(&sc.floor)))
	written := uint64(atomic.LoadUint32(&words[wordAuthorHead]))
	own := written - uint64(atomic.LoadUint32(&words[wordAuthorRank])) - uint64(flags>>24)
	head := atomic.LoadUint64((*uint64)(&sc.head))
	unread := head - base - own
	attention := unread
	if kind == plainChannel {
		attention = uint64(uint8(flags >> 16))
	}
	c.Scope = readstate.ScopeKey(atomic.LoadUint64((*uint64)(&sc.key)))
	c.Unread, c.Attention, c.ShownUnread = unread, attention, unread
	c.Shown = unread|atomic.LoadUint64(&sc.signalHead)|uint64(flags&manualBit) != 0
	return own <= written && base+own <= head
}

// glance is a row evaluated by the short formula.
type glance struct {
	key       readstate.ScopeKey
	unread    uint64
	attention uint64
	signals   uint64
	level     readstate.Level // all, mentions or none
	manual    bool
}

// presented applies the level, as Standing.Present does to what counts.
func (g *glance) presented() (unread uint64, shown bool) {
	switch g.level {
	case readstate.LevelNone:
		return 0, false
	case readstate.LevelMentions:
		return g.attention, g.attention > 0 || g.manual
	}
	return g.unread, g.unread > 0 || g.signals > 0 || g.manual
}

func (g *glance) count(c *Count) {
	c.Scope, c.Unread, c.Attention = g.key, g.unread, g.attention
	c.ShownUnread, c.Shown = g.presented()
}

// glance evaluates a row by the short formula, where that is enough.
func (st *state) glance(words *hotWords, s int32) (g glance, ok bool) {
	ok = g.look(&st.rows, words, st.scopes.At(s))
	return g, ok
}

// look evaluates most rows: one whose cold record has nothing that counts but its effective
// point, of a member who sees the scope, in a plain scope. It says no to every other row, and
// where a term would be negative; evaluate decides then. It reads whole words only, so that it
// may run without a lock; what it says holds if nothing changed meanwhile.
func (g *glance) look(r *rows, words *hotWords, sc *scope) bool {
	kind := plainness(atomic.LoadUint32(&sc.plain))
	flags := atomic.LoadUint32(&words[wordFlags])
	if kind == notPlain || uint16(flags)&plainMask != plainFlags {
		return false
	}
	h := hot{flags: uint16(flags)}
	e := plainE(uint64(atomic.LoadUint32(&words[wordRead])),
		uint64(atomic.LoadUint32(&words[wordEffective])))
	if cold := atomic.LoadUint32(&words[wordCold]); cold != 0 {
		var idle bool
		if e, idle = r.idle(int32(cold), e); !idle {
			return false
		}
	}
	g.key = readstate.ScopeKey(atomic.LoadUint64((*uint64)(&sc.key)))
	g.signals = atomic.LoadUint64(&sc.signalHead)
	if g.level = h.level(); g.level == readstate.LevelInherit {
		g.level = readstate.LevelAll
	}
	g.manual = h.flags&flagManual != 0
	head, floor := atomic.LoadUint64((*uint64)(&sc.head)), atomic.LoadUint64((*uint64)(&sc.floor))
	base := max(e, floor)
	written := uint64(atomic.LoadUint32(&words[wordAuthorHead]))
	own := written - uint64(atomic.LoadUint32(&words[wordAuthorRank])) - uint64(flags>>24)
	g.unread = head - base - own
	if g.attention = g.unread; kind == plainChannel {
		g.attention = uint64(uint8(flags >> 16))
	}
	return own <= written && base+own <= head
}

// What plain rows have in their flags: joined, visible and exact.
const (
	plainMask  = flagJoined | flagVisible | servingMask
	plainFlags = flagJoined | flagVisible
)

// idleFields do not enter the values of a channel's or dm's row.
const idleFields = 1<<fieldStateLSN | 1<<fieldEpoch | 1<<fieldParentEpoch |
	1<<fieldManualFrom | 1<<fieldManualVersion | 1<<fieldActivityRead

// idle reports that nothing in a cold record counts but the effective point, and returns that,
// or the given one where the record has none.
func (r *rows) idle(cold int32, e uint64) (uint64, bool) {
	head := atomic.LoadUint32(r.cold.At(cold))
	if head&^(idleFields|coldWide) == 0 {
		return e, true
	}
	if head&^(idleFields|1<<fieldE) != 0 {
		return e, false
	}
	at := cold + 1 + int32(bits.OnesCount32(head&(1<<fieldE-1)))
	return uint64(atomic.LoadUint32(r.cold.At(at))), true
}

// plainness says whether the values of a scope's rows are ranks and nothing else: nothing in it
// was removed, mentions everyone or is by a writer whom somebody blocks.
type plainness uint32

const (
	notPlain plainness = iota
	plainChannel
	plainDM
)

// settle is called after whatever may change the scope's plainness.
func (sc *scope) settle() { atomic.StoreUint32(&sc.plain, uint32(sc.plainness())) }

func (sc *scope) plainness() plainness {
	switch {
	case sc.archived || sc.blocked || sc.removed.blocks.n > 0 || sc.everyone.blocks.n > 0,
		sc.doubt > 0:
		return notPlain
	case sc.kind == readstate.Channel:
		return plainChannel
	case sc.kind == readstate.DM:
		return plainDM
	}
	return notPlain
}

// value is what follows from a glance.
func (g *glance) value() value {
	var v value
	v.standing.own = readstate.Standing{
		Joined: true, Visible: true, Level: g.level, Manual: g.manual,
	}
	v.standing.visible, v.standing.counts = true, true
	v.values = readstate.Values{Unread: g.unread, Attention: g.attention, Activity: g.signals}
	v.presented = v.standing.own.Present(true, v.values)
	return v
}
