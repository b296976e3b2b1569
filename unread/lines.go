package unread

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/tidemark-im/tidemark/readstate"
)

// Line is a row as a list shows it: what Row says, without what only explanations need. Its texts
// lie in memory of the runtime, or in what else the line was made from: they must not be changed,
// and are to be copied where they shall outlast the page.
type Line struct {
	ID             []byte
	Type           readstate.ScopeType
	Name           []byte
	ParentID       []byte // of a thread
	Tags           Tags
	Level          readstate.Level // in force now
	Archived       bool            // the scope or its parent
	Values         readstate.Values
	Presented      readstate.Presented
	State          State
	Head           readstate.Revision
	Replies        uint64 // live readable entries
	Latest         []byte // id of the newest live message, empty for none
	LatestAt       int64  // its time in milliseconds
	LastActivityAt int64  // milliseconds, zero for never
	Read           readstate.Revision
	Manual         readstate.Manual
	ActivityRead   readstate.Seq
	Follow         readstate.Follow // what the member chose, of threads and tasks
}

// Tags are a scope's tags as they lie in memory.
type Tags []byte

// All goes through them.
func (t Tags) All() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		_, rest, _ := bytes.Cut(t, colon) // how many
		for len(rest) > 0 {
			var head []byte
			head, rest, _ = bytes.Cut(rest, colon)
			size, _ := strconv.Atoi(string(head)) // packTags wrote it
			if !yield(rest[:size]) {
				return
			}
			rest = rest[size:]
		}
	}
}

var colon = []byte(":")

// Line is the row's line, its texts appended to scratch.
func (r *Row) Line(scratch []byte) Line {
	text := func(s string) []byte {
		at := len(scratch)
		scratch = append(scratch, s...)
		return scratch[at:len(scratch):len(scratch)]
	}
	return Line{
		ID: text(string(r.Scope.ID)), Type: r.Scope.Type, Name: text(r.Scope.Name),
		ParentID: text(string(r.Scope.ParentID)), Tags: text(packTags(r.Scope.Tags)),
		Level: r.Level, Archived: r.Archived, Values: r.Values, Presented: r.Presented,
		State: r.State, Head: r.Ranks.Head, Replies: r.Ranks.Replies,
		Latest: text(r.Ranks.Latest.ID), LatestAt: r.Ranks.Latest.At,
		LastActivityAt: r.Ranks.LastActivityAt, Read: r.Row.Read, Manual: r.Row.Manual,
		ActivityRead: r.Row.Activity.Read, Follow: r.Row.Follow,
	}
}

// LinePage is a page of the bootstrap while it is read; it has no lines afterwards.
type LinePage struct {
	Summary
	Next string // empty after the last page

	picked picked
	st     *state
	ids    [][]byte // of the picked rows' scopes, in place
	order  []uint64 // sort keys
}

// A page that nobody reads has room for that many rows at most.
const keptRows = 4096

// Lines hands the page that Rows would answer to read, which is called at most once, and not where
// there is an error. Nothing can change until it returns: it should only copy, and must not call
// the runtime. A page has 65,536 lines at most.
func (r *Runtime) Lines(
	ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID,
	cursor string, limit int, read func(*LinePage),
) (State, error) {
	p, ok := r.pages.Get().(*LinePage)
	if !ok {
		p = new(LinePage)
	}
	limit = min(limit, 1<<indexBits)
	err := r.viewPage(ctx, id, member, cursor, limit, &p.picked, func(st *state) error {
		p.begin(st)
		read(p)
		p.end()
		return nil
	})
	state := p.State
	if cap(p.picked.values) <= keptRows {
		r.pages.Put(p) // whoever takes it next writes to it
	}
	if err != nil {
		return stateOf(err), err
	}
	return state, nil
}

func (p *LinePage) begin(st *state) {
	p.Summary, p.Next, p.st = p.picked.Summary, p.picked.next, st
	for _, at := range p.picked.rows {
		p.ids = append(p.ids, st.text.View(st.scopes.At(at.scope).id))
	}
	p.sort()
}

// end lets go of all memory that is not the page's own.
func (p *LinePage) end() {
	clear(p.ids)
	p.st, p.ids, p.order = nil, p.ids[:0], p.order[:0]
}

// Len is how many lines the page has.
func (p *LinePage) Len() int { return len(p.order) }

// Line reads line i, counted from zero in the order of scope ids.
func (p *LinePage) Line(i int, l *Line) {
	i = indexOf(p.order[i])
	st, at := p.st, &p.picked.rows[i]
	e, v, sc := at.entry, p.picked.value(at.entry), st.scopes.At(at.scope)
	l.Type, l.Head, l.Replies = sc.kind, sc.head, sc.replies
	l.ID, l.Name, l.ParentID = p.ids[i], st.text.View(sc.name), st.text.View(sc.parentID)
	l.Tags, l.Latest = st.text.View(sc.tags), st.text.View(sc.latest)
	l.LatestAt, l.LastActivityAt = sc.latestAt, sc.lastActivityAt
	l.Level, l.Archived = v.standing.own.Level, v.standing.archived
	l.Values, l.Presented, l.State = v.values, v.presented, stateFor(v.serving)
	words := st.rows.hot.At(e)
	l.Follow = readstate.Follow(words[wordFlags] & followMask >> followShift)
	if words[wordCold] == uint32(none) {
		l.Read, l.ActivityRead = readstate.Revision(words[wordRead]), 0
		l.Manual = readstate.Manual{Set: v.standing.own.Manual}
	} else {
		row := st.rows.load(e).row
		l.Read, l.ActivityRead, l.Manual = row.Read, row.Activity.Read, row.Manual
	}
}

// sort puts the picked rows into the order of their scopes' ids: by the six bytes that come after
// what all ids begin with, and where these are not enough, by all of them.
func (p *LinePage) sort() {
	from := sharedPrefix(p.ids)
	for i, id := range p.ids {
		p.order = append(p.order, sortKey(id[from:], i))
	}
	slices.Sort(p.order)
	for i := 1; i < len(p.order); i++ {
		if p.order[i]>>indexBits == p.order[i-1]>>indexBits {
			slices.SortFunc(p.order, func(a, b uint64) int {
				return bytes.Compare(p.ids[indexOf(a)], p.ids[indexOf(b)])
			})
			return
		}
	}
}

// sharedPrefix is how many bytes all texts begin with.
func sharedPrefix(texts [][]byte) int {
	if len(texts) == 0 {
		return 0
	}
	prefix := texts[0]
	for _, s := range texts {
		for !bytes.HasPrefix(s, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return len(prefix)
}

// A sort key has the beginning of a text in its upper bits, and whose it is in the lower ones.
const indexBits = 16

func sortKey(text []byte, i int) (key uint64) {
	n := min(len(text), (64-indexBits)/8)
	for _, c := range text[:n] {
		key = key<<8 | uint64(c)
	}
	return key<<(64-8*n) | uint64(i)
}

func indexOf(key uint64) int { return int(key & (1<<indexBits - 1)) }
