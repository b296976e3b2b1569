package unread

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// member is a loaded member. It has no pointers, and takes one cache line: a dot is a look at the
// line and at the member's id.
type member struct {
	key       readstate.MemberKey
	memberLSN readstate.LSN
	gone      readstate.LSN // when a row went of which memory knows nothing
	nextUntil atomic.Int64  // the earliest end of a level not looked at yet, zero for none
	at        atomic.Int32  // the run of the member's rows
	n         atomic.Int32
	size      atomic.Int32
	id        atomic.Int32 // in ids
	first     int32        // of the rows that may be unread: the head of a list, stored atomically
	flags     atomic.Uint32
	name      slab.Ref
	avatar    slab.Ref
}

func (mb *member) run() run { return run{mb.at.Load(), mb.n.Load(), mb.size.Load()} }

// flag is a bit of a member. Readers may set the first two without a lock.
type flag uint32

const (
	// used keeps the member from the next pass of the eviction hand, which clears it.
	used flag = 1 << iota
	// untidy says that candidates were seen that are clean, or rows on batches.
	untidy
	erased
	complete
	agent
	active
	private
	blocks // somebody

	badgeShift = 24 // of a readstate.BadgeDisplay
)

func (mb *member) is(f flag) bool { return mb.flags.Load()&uint32(f) != 0 }

// set writes only what changes: the line stays shared among readers.
func (mb *member) set(f flag, on bool) {
	switch {
	case on && !mb.is(f):
		mb.flags.Or(uint32(f))
	case !on && mb.is(f):
		mb.flags.And(^uint32(f))
	}
}

func (mb *member) use() { mb.set(used, true) }

func (mb *member) badge() readstate.BadgeDisplay {
	return readstate.BadgeDisplay(mb.flags.Load() >> badgeShift)
}

func (mb *member) setBadge(b readstate.BadgeDisplay) {
	mb.flags.And(1<<badgeShift - 1)
	mb.flags.Or(uint32(b) << badgeShift)
}

// overdue reports that the end of some level has passed and was not looked at.
func (mb *member) overdue(now int64) bool {
	until := mb.nextUntil.Load()
	return until != 0 && until <= now
}

func (mb *member) setRun(x run) {
	mb.at.Store(x.at)
	mb.n.Store(x.n)
	mb.size.Store(x.size)
}

// scope is the slot of a scope that some loaded row, or a thread of such a row, needs. It has no
// pointers. It takes three cache lines: an odd number, so that the first ones of many scopes spread
// over all sets of a cache.
type scope struct {
	// What the short formula needs is one cache line, whose words readers without a lock load
	// atomically and the set methods store so.
	head       readstate.Revision
	floor      readstate.Revision
	signalHead uint64
	key        readstate.ScopeKey
	plain      uint32 // a plainness
	removed    revSet
	everyone   revSet
	kind       readstate.ScopeType
	history    readstate.History
	archived   bool
	active     bool

	thinking          bool
	blocked           bool // some writer's record is kept
	pendingInput      bool // sessions: something waits for the owner
	pendingPermission bool
	parentKey         readstate.ScopeKey
	doubt             readstate.Revision // exact rows that count from below it are withheld
	latestSeq         readstate.Seq
	latestActivity    readstate.Seq
	lastLSN           readstate.LSN
	replies           uint64
	latestAt          int64
	lastActivityAt    int64
	id                slab.Ref
	name              slab.Ref
	parentID          slab.Ref
	root              slab.Ref
	tags              slab.Ref // lengths and words
	latest            slab.Ref
	parent            int32 // slot of a thread's channel
	child             int32 // slot of a thread, the others follow as siblings
	before, after     int32 // siblings
	children          int32
	entries           int32 // number of rows that refer to the slot
	waitAll           int32 // lists of rows that were found clean
	waitNamed         int32
}

func (sc *scope) setHead(r readstate.Revision) {
	atomic.StoreUint64((*uint64)(&sc.head), uint64(r))
}

func (sc *scope) setFloor(r readstate.Revision) {
	atomic.StoreUint64((*uint64)(&sc.floor), uint64(r))
}

func (sc *scope) setSignalHead(n uint64) { atomic.StoreUint64(&sc.signalHead, n) }

// busy is a session whose run is thinking.
func (sc *scope) busy() bool { return sc.active && sc.thinking }

func (st *state) memberNamed(id readstate.MemberID) int32 {
	return st.memberByID.find(string(id), func(m int32) bool {
		return st.ids.equal(st.members.At(m).id.Load(), string(id))
	})
}

func (st *state) scopeNamed(id readstate.ScopeID) int32 {
	return st.scopeByID.find(string(id), func(s int32) bool {
		return st.text.Equal(st.scopes.At(s).id, string(id))
	})
}

// memberID is a copy of the member's id.
func (st *state) memberID(m int32) readstate.MemberID {
	if c := st.connected[m]; c != nil {
		return c.id
	}
	return readstate.MemberID(st.ids.text(st.members.At(m).id.Load()))
}

func (st *state) memberInfo(m int32) readstate.MemberInfo {
	mb := st.members.At(m)
	return readstate.MemberInfo{
		Key: mb.key, ID: st.memberID(m), Agent: mb.is(agent), Active: mb.is(active),
		DisplayName: st.text.String(mb.name), Avatar: st.text.String(mb.avatar),
		Badge: mb.badge(), Private: mb.is(private),
		MemberLSN: mb.memberLSN, Erased: mb.is(erased),
	}
}

// setMember takes everything over but the id, under which watches and reads know the member.
func (st *state) setMember(m int32, info *readstate.MemberInfo) {
	mb := st.members.At(m)
	mb.name = st.text.Set(mb.name, info.DisplayName)
	mb.avatar = st.text.Set(mb.avatar, info.Avatar)
	mb.set(agent, info.Agent)
	mb.set(active, info.Active)
	mb.set(private, info.Private)
	mb.set(erased, info.Erased)
	mb.setBadge(info.Badge)
	mb.memberLSN = info.MemberLSN
}

func (st *state) addMember(info readstate.MemberInfo, blocks []readstate.MemberKey) int32 {
	m := st.members.Take()
	mb := st.members.At(m)
	mb.key = info.Key
	mb.id.Store(st.ids.put(string(info.ID)))
	st.setMember(m, &info)
	st.memberByKey[info.Key] = m
	st.memberByID.add(string(info.ID), m)
	for _, b := range blocks {
		st.block(m, b)
	}
	return m
}

// dropMember forgets a member with all rows.
func (st *state) dropMember(m int32) {
	st.dropRows(m)
	for _, b := range slices.Clone(st.blocked.by[m]) {
		st.unblock(m, b)
	}
	mb := st.members.At(m)
	delete(st.memberByKey, mb.key)
	st.memberByID.remove(st.ids.text(mb.id.Load()), m)
	delete(st.connected, m)
	st.ids.drop(mb.id.Load())
	st.text.Drop(mb.name)
	st.text.Drop(mb.avatar)
	st.members.Drop(m)
}

func (st *state) scopeID(s int32) readstate.ScopeID {
	return readstate.ScopeID(st.text.String(st.scopes.At(s).id))
}

// info describes a scope in new memory.
func (st *state) info(s int32) readstate.ScopeInfo {
	sc := st.scopes.At(s)
	return readstate.ScopeInfo{
		Key: sc.key, ID: st.scopeID(s), Type: sc.kind, Name: st.text.String(sc.name),
		Parent: sc.parentKey, ParentID: readstate.ScopeID(st.text.String(sc.parentID)),
		RootMessage: st.text.String(sc.root), History: sc.history, Archived: sc.archived,
		Tags: unpackTags(st.text.String(sc.tags)), Active: sc.active, Thinking: sc.thinking,
		PendingInput: sc.pendingInput, PendingPermission: sc.pendingPermission,
	}
}

// describe takes a scope's description in. Key, type, parent and id never change.
func (st *state) describe(s int32, info *readstate.ScopeInfo) {
	sc := st.scopes.At(s)
	sc.name = st.text.Set(sc.name, info.Name)
	sc.root = st.text.Set(sc.root, info.RootMessage)
	sc.tags = st.text.Set(sc.tags, packTags(info.Tags))
	sc.history, sc.archived = info.History, info.Archived
	sc.active, sc.thinking = info.Active, info.Thinking
	sc.pendingInput, sc.pendingPermission = info.PendingInput, info.PendingPermission
	sc.settle()
}

func (st *state) ranks(s int32) readstate.ScopeRanks {
	sc := st.scopes.At(s)
	return readstate.ScopeRanks{
		LatestSeq: sc.latestSeq, Head: sc.head, Floor: sc.floor,
		LatestActivity: sc.latestActivity, SignalHead: sc.signalHead, LastLSN: sc.lastLSN,
		Latest:         readstate.Latest{ID: st.text.String(sc.latest), At: sc.latestAt},
		LastActivityAt: sc.lastActivityAt, Replies: sc.replies, Doubt: sc.doubt,
	}
}

func (st *state) setRanks(s int32, r *readstate.ScopeRanks) {
	sc := st.scopes.At(s)
	sc.setHead(r.Head)
	sc.setFloor(r.Floor)
	sc.setSignalHead(r.SignalHead)
	sc.latestSeq, sc.latestActivity, sc.lastLSN = r.LatestSeq, r.LatestActivity, r.LastLSN
	sc.lastActivityAt, sc.replies, sc.doubt = r.LastActivityAt, r.Replies, r.Doubt
	st.setLatest(sc, r.Latest)
}

func (st *state) setLatest(sc *scope, latest readstate.Latest) {
	sc.latest = st.text.Set(sc.latest, latest.ID)
	sc.latestAt = latest.At
}

// addScope makes a slot. A thread's parent must be there already if it is to be found.
func (st *state) addScope(
	info *readstate.ScopeInfo, ranks *readstate.ScopeRanks,
) int32 {
	s := st.scopes.Take()
	sc := st.scopes.At(s)
	atomic.StoreUint64((*uint64)(&sc.key), uint64(info.Key))
	sc.parentKey, sc.kind = info.Parent, info.Type
	sc.id = st.text.Put(string(info.ID))
	sc.parentID = st.text.Put(string(info.ParentID))
	st.describe(s, info)
	st.setRanks(s, ranks)
	st.scopeByKey[info.Key] = s
	st.scopeByID.add(string(info.ID), s)
	sc.waitAll = st.newList(list{scope: s, spot: waitingAll})
	sc.waitNamed = st.newList(list{scope: s, spot: waitingNamed})
	if sc.parent = st.scopeByKey[info.Parent]; sc.parent != none {
		p := st.scopes.At(sc.parent)
		if sc.after = p.child; sc.after != none {
			st.scopes.At(sc.after).before = s
		}
		p.child = s
		p.children++
	}
	return s
}

// releaseScope drops the slot if neither a row nor a thread's slot refers to it.
func (st *state) releaseScope(s int32) {
	for s != none {
		sc := st.scopes.At(s)
		if !st.scopes.InUse(s) || sc.entries > 0 || sc.children > 0 {
			return
		}
		parent := sc.parent
		if parent != none {
			st.orphan(sc)
		}
		delete(st.scopeByKey, sc.key)
		st.scopeByID.remove(st.text.String(sc.id), s)
		for _, r := range [...]slab.Ref{sc.id, sc.name, sc.parentID, sc.root, sc.tags, sc.latest} {
			st.text.Drop(r)
		}
		st.lists.Drop(sc.waitAll)
		st.lists.Drop(sc.waitNamed)
		st.sets.drop(&sc.removed)
		st.sets.drop(&sc.everyone)
		delete(st.blocked.writers, s)
		delete(st.audience, s)
		st.marks = slices.DeleteFunc(st.marks, func(b bulkMark) bool { return b.scope == s })
		st.scopes.Drop(s)
		s = parent
	}
}

// orphan takes a thread's slot out of its parent's children.
func (st *state) orphan(sc *scope) {
	p := st.scopes.At(sc.parent)
	p.children--
	if sc.before != none {
		st.scopes.At(sc.before).after = sc.after
	} else {
		p.child = sc.after
	}
	if sc.after != none {
		st.scopes.At(sc.after).before = sc.before
	}
}

// packTags writes words with their lengths before them; nil and none differ.
func packTags(tags []string) string {
	if tags == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(strconv.Itoa(len(tags)))
	b.WriteByte(':')
	for _, t := range tags {
		b.WriteString(strconv.Itoa(len(t)))
		b.WriteByte(':')
		b.WriteString(t)
	}
	return b.String()
}

func unpackTags(s string) []string {
	head, s, found := strings.Cut(s, ":")
	if !found {
		return nil
	}
	n, _ := strconv.Atoi(head) // packTags wrote it
	tags := make([]string, n)
	for i := range tags {
		head, s, _ = strings.Cut(s, ":")
		size, _ := strconv.Atoi(head)
		tags[i], s = s[:size], s[size:]
	}
	return tags
}
