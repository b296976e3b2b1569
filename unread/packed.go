package unread

import (
	"math/bits"
	"sync/atomic"

	"github.com/tidemark-im/tidemark/readstate"
)

// full is a row as the algebra sees it.
type full struct {
	row      readstate.Row
	writer   readstate.Writer
	stateLSN readstate.LSN
}

// hotWords is what a read of an ordinary row needs, 28 bytes, read and written a word at a time.
type hotWords [7]uint32

// hot is a copy of them. Numbers that do not fit, and those that are not what most rows have, lie
// in a cold record; the hot field is zero then.
type hot struct {
	read       uint32
	effective  uint32
	authorRank uint32
	authorHead uint32
	stateLSN   uint32
	cold       int32 // words of the cold record, none for most rows
	flags      uint16
	direct     uint8
	ownRemoved uint8
}

// Where the words of a row lie; the last one holds flags, direct and ownRemoved from the low end.
const (
	wordRead = iota
	wordEffective
	wordAuthorRank
	wordAuthorHead
	wordStateLSN
	wordCold
	wordFlags
)

// The flags of a row. Spot and generation say which list the row is on.
const (
	flagJoined uint16 = 1 << iota
	flagVisible
	flagManual
	flagParentFirst // the parent's epoch is 1, as a thread's mostly is
	levelShift      = 4
	levelMask       = 3 << levelShift
	followShift     = 6
	followMask      = 3 << followShift
	spotShift       = 8
	spotMask        = 3 << spotShift
	genShift        = 10
	genMask         = (generations - 1) << genShift
	listMask        = spotMask | genMask
	servingShift    = 14 // a readstate.Serving
	servingMask     = 3 << servingShift
)

// The numbers of a row, in the order in which a cold record has them.
const (
	fieldRead = iota
	fieldEffective
	fieldAuthorRank
	fieldAuthorHead
	fieldStateLSN
	fieldDirect
	fieldOwnRemoved
	fieldEpoch
	fieldParentEpoch
	fieldE
	fieldPrincipalRank
	fieldPrincipalHead
	fieldOwnEveryone
	fieldTargets
	fieldManualFrom
	fieldManualVersion
	fieldUntil
	fieldActivityRead
	fieldSignalAt
	fieldActorAt
	fieldActorHead
	fieldActivityTargets
	fieldAuthorAtFloor
	fieldPrincipalAtFloor
	fields
)

// A cold record is a word that says which numbers follow, and these, one word each or, where
// one of them takes more, two words each, the lower first.
const (
	coldUnit = 2
	coldWide = 1 << 31
)

type numbers [fields]uint64

func (f *full) numbers(v *numbers) {
	r, w := &f.row, &f.writer
	*v = numbers{
		fieldRead: uint64(r.Read), fieldEffective: uint64(r.Effective),
		fieldAuthorRank: r.Point.AuthorRank, fieldAuthorHead: w.AuthorHead,
		fieldStateLSN: uint64(f.stateLSN), fieldDirect: r.Point.Direct,
		fieldOwnRemoved: r.Point.OwnRemoved, fieldEpoch: r.Epoch,
		fieldParentEpoch: r.ParentEpoch, fieldE: uint64(r.Point.E),
		fieldPrincipalRank: r.Point.PrincipalRank, fieldPrincipalHead: w.PrincipalHead,
		fieldOwnEveryone: r.Point.OwnEveryone, fieldTargets: r.Point.Targets,
		fieldManualFrom: uint64(r.Manual.From), fieldManualVersion: r.Manual.Version,
		fieldUntil: uint64(r.Until), fieldActivityRead: uint64(r.Activity.Read),
		fieldSignalAt: r.Activity.SignalAt, fieldActorAt: r.Activity.ActorAt,
		fieldActorHead: w.ActorHead, fieldActivityTargets: r.Activity.Targets,
		fieldAuthorAtFloor: w.AuthorAtFloor, fieldPrincipalAtFloor: w.PrincipalAtFloor,
	}
}

func (f *full) set(v *numbers) {
	r, w := &f.row, &f.writer
	r.Read, r.Effective = readstate.Revision(v[fieldRead]), readstate.Revision(v[fieldEffective])
	r.Epoch, r.ParentEpoch = v[fieldEpoch], v[fieldParentEpoch]
	r.Until = int64(v[fieldUntil])
	r.Manual.From = readstate.Revision(v[fieldManualFrom])
	r.Manual.Version = v[fieldManualVersion]
	r.Point = readstate.Point{
		E: readstate.Revision(v[fieldE]), AuthorRank: v[fieldAuthorRank],
		PrincipalRank: v[fieldPrincipalRank], OwnRemoved: v[fieldOwnRemoved],
		OwnEveryone: v[fieldOwnEveryone], Direct: v[fieldDirect], Targets: v[fieldTargets],
	}
	r.Activity = readstate.ActivityPoint{
		Read: readstate.Seq(v[fieldActivityRead]), SignalAt: v[fieldSignalAt],
		ActorAt: v[fieldActorAt], Targets: v[fieldActivityTargets],
	}
	*w = readstate.Writer{
		AuthorHead: v[fieldAuthorHead], PrincipalHead: v[fieldPrincipalHead],
		ActorHead: v[fieldActorHead], AuthorAtFloor: v[fieldAuthorAtFloor],
		PrincipalAtFloor: v[fieldPrincipalAtFloor],
	}
	f.stateLSN = readstate.LSN(v[fieldStateLSN])
}

// plainE is the effective point of a row that nothing has moved away from cursor and join.
func plainE(read, effective uint64) uint64 { return max(read, max(effective, 1)-1) }

// hotOf reads the words of a row; each is whole, all of them are only where nothing changes
// meanwhile.
func (w *hotWords) hotOf() hot {
	flags := atomic.LoadUint32(&w[wordFlags])
	return hot{
		read:       atomic.LoadUint32(&w[wordRead]),
		effective:  atomic.LoadUint32(&w[wordEffective]),
		authorRank: atomic.LoadUint32(&w[wordAuthorRank]),
		authorHead: atomic.LoadUint32(&w[wordAuthorHead]),
		stateLSN:   atomic.LoadUint32(&w[wordStateLSN]),
		cold:       int32(atomic.LoadUint32(&w[wordCold])),
		flags:      uint16(flags), direct: uint8(flags >> 16), ownRemoved: uint8(flags >> 24),
	}
}

func (w *hotWords) put(h *hot) {
	atomic.StoreUint32(&w[wordRead], h.read)
	atomic.StoreUint32(&w[wordEffective], h.effective)
	atomic.StoreUint32(&w[wordAuthorRank], h.authorRank)
	atomic.StoreUint32(&w[wordAuthorHead], h.authorHead)
	atomic.StoreUint32(&w[wordStateLSN], h.stateLSN)
	atomic.StoreUint32(&w[wordCold], uint32(h.cold))
	atomic.StoreUint32(&w[wordFlags],
		uint32(h.flags)|uint32(h.direct)<<16|uint32(h.ownRemoved)<<24)
}

func (r *rows) hotAt(e int32) hot { return r.hot.At(e).hotOf() }

// load reads a row.
func (r *rows) load(e int32) full {
	h := r.hotAt(e)
	var f full
	f.row.Joined = h.flags&flagJoined != 0
	f.row.Visible = h.flags&flagVisible != 0
	f.row.Manual.Set = h.flags&flagManual != 0
	f.row.Level = h.level()
	f.row.Follow = readstate.Follow(h.flags & followMask >> followShift)
	f.row.Serving = readstate.Serving(h.flags & servingMask >> servingShift)
	v := numbers{
		fieldRead: uint64(h.read), fieldEffective: uint64(h.effective),
		fieldAuthorRank: uint64(h.authorRank), fieldAuthorHead: uint64(h.authorHead),
		fieldStateLSN: uint64(h.stateLSN), fieldDirect: uint64(h.direct),
		fieldOwnRemoved: uint64(h.ownRemoved), fieldEpoch: 1,
	}
	if h.flags&flagParentFirst != 0 {
		v[fieldParentEpoch] = 1
	}
	hasE := false
	if h.cold != none {
		hasE = r.thaw(h.cold, &v)
	}
	if !hasE {
		v[fieldE] = plainE(v[fieldRead], v[fieldEffective])
	}
	v[fieldStateLSN] += uint64(r.base)
	f.set(&v)
	return f
}

// raiseAuthor stores the member's author rank by its word alone, where that is the place for it.
func (r *rows) raiseAuthor(e int32, rank uint64) bool {
	w := r.hot.At(e)
	cold := int32(atomic.LoadUint32(&w[wordCold]))
	if rank > 1<<32-1 || cold != none && *r.cold.At(cold)&(1<<fieldAuthorHead) != 0 {
		return false
	}
	atomic.StoreUint32(&w[wordAuthorHead], uint32(rank))
	return true
}

// thaw reads a cold record and reports that it has the effective point.
func (r *rows) thaw(at int32, v *numbers) bool {
	head := *r.cold.At(at)
	words := r.cold.View(at, coldLen(head))[1:]
	for mask := head &^ coldWide; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		v[i] = uint64(words[0])
		words = words[1:]
		if head&coldWide != 0 {
			v[i] |= uint64(words[0]) << 32
			words = words[1:]
		}
	}
	return head&(1<<fieldE) != 0
}

func coldLen(head uint32) int {
	n := bits.OnesCount32(head &^ coldWide)
	if head&coldWide != 0 {
		n *= 2
	}
	return 1 + n
}

// store writes a row; the list it is on stays.
func (r *rows) store(e int32, f *full) {
	var v numbers
	f.numbers(&v)
	v[fieldStateLSN] = uint64(max(f.stateLSN, r.base) - r.base)
	h := r.hotAt(e)
	next := hot{flags: h.flags & listMask, cold: h.cold}
	next.set(flagJoined, f.row.Joined)
	next.set(flagVisible, f.row.Visible)
	next.set(flagManual, f.row.Manual.Set)
	next.flags |= uint16(f.row.Level) << levelShift & levelMask
	next.flags |= uint16(f.row.Follow) << followShift & followMask
	next.flags |= uint16(f.row.Serving) << servingShift & servingMask
	var cold uint32
	if v[fieldE] != plainE(v[fieldRead], v[fieldEffective]) {
		cold |= 1 << fieldE
	}
	cold |= next.keep32(&v)
	if v[fieldDirect] > 255 {
		cold |= 1 << fieldDirect
	} else {
		next.direct = uint8(v[fieldDirect])
	}
	if v[fieldOwnRemoved] > 255 {
		cold |= 1 << fieldOwnRemoved
	} else {
		next.ownRemoved = uint8(v[fieldOwnRemoved])
	}
	if v[fieldEpoch] != 1 {
		cold |= 1 << fieldEpoch
	}
	if next.set(flagParentFirst, v[fieldParentEpoch] == 1); v[fieldParentEpoch] > 1 {
		cold |= 1 << fieldParentEpoch
	}
	for i := fieldPrincipalRank; i < fields; i++ {
		if v[i] != 0 {
			cold |= 1 << i
		}
	}
	next.cold = r.freeze(h.cold, cold, &v)
	r.hot.At(e).put(&next)
}

// keep32 stores the numbers that have 32 bits and returns which do not fit.
func (h *hot) keep32(v *numbers) (cold uint32) {
	for i, p := range [...]*uint32{
		fieldRead: &h.read, fieldEffective: &h.effective, fieldAuthorRank: &h.authorRank,
		fieldAuthorHead: &h.authorHead, fieldStateLSN: &h.stateLSN,
	} {
		if v[i] > 1<<32-1 {
			cold |= 1 << i
		} else {
			*p = uint32(v[i])
		}
	}
	return cold
}

// freeze writes the cold record with the numbers of the mask in place of an old one.
func (r *rows) freeze(old int32, mask uint32, v *numbers) int32 {
	head := mask
	for m := mask; m != 0; m &= m - 1 {
		if v[bits.TrailingZeros32(m)] > 1<<32-1 {
			head |= coldWide
		}
	}
	n := coldLen(head)
	if mask == 0 || old != none && r.cold.Size(n) != r.cold.Size(coldLen(*r.cold.At(old))) {
		r.dropCold(old)
		old = none
	}
	if mask == 0 {
		return none
	}
	if old == none {
		old, _ = r.cold.Take(n)
	}
	words := r.cold.View(old, n)
	atomic.StoreUint32(&words[0], head)
	words = words[1:]
	for m := mask; m != 0; m &= m - 1 {
		x := v[bits.TrailingZeros32(m)]
		atomic.StoreUint32(&words[0], uint32(x))
		words = words[1:]
		if head&coldWide != 0 {
			atomic.StoreUint32(&words[0], uint32(x>>32))
			words = words[1:]
		}
	}
	return old
}

func (r *rows) dropCold(at int32) {
	if at != none {
		r.cold.Drop(at, r.cold.Size(coldLen(*r.cold.At(at))))
	}
}

// forget empties a row.
func (r *rows) forget(e int32) {
	r.dropCold(r.hotAt(e).cold)
	r.hot.At(e).put(&hot{})
}

func (h *hot) set(flag uint16, on bool) {
	h.flags &^= flag
	if on {
		h.flags |= flag
	}
}

func (h *hot) level() readstate.Level {
	return readstate.Level(h.flags & levelMask >> levelShift)
}

func (h *hot) spot() spot { return spot(h.flags & spotMask >> spotShift) }

func (h *hot) gen() uint8 { return uint8(h.flags & genMask >> genShift) }

// place notes the list that a row is on.
func (w *hotWords) place(p spot, gen uint8) {
	flags := w[wordFlags]&^uint32(listMask) | uint32(p)<<spotShift | uint32(gen)<<genShift
	atomic.StoreUint32(&w[wordFlags], flags)
}
