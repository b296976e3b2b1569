package chaos

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// durable is what a database holds of one workspace, read with plain statements and none of
// the product's code.
type durable struct {
	term, lsn uint64
	members   map[int64]*memberRow
	scopes    map[int64]*scopeRow
	states    map[cell]*stateRow
	blocks    map[cell]bool     // scope is the one who is blocked
	receipts  map[string]string // operation id -> result
	byOp      map[string]*messageRow

	memberKeys map[string]int64
	scopeKeys  map[string]int64
}

// cell is a member in a scope, by their numbers.
type cell struct{ member, scope int64 }

type memberRow struct {
	key   int64
	id    string
	badge int
}

type scopeRow struct {
	key, parent     int64
	id              string
	kind            int // 1 channel, 2 dm, 3 thread
	archived        bool
	latestSeq, head uint64
	floor, floorSeq uint64
	messages        []*messageRow // ascending by seq
	byID            map[string]*messageRow
	bySeq           map[uint64]*messageRow
	latestID        string
}

type messageRow struct {
	scope             int64
	seq, revision     uint64
	id, op            string
	author, principal int64
	named             []int64
	everyone, live    bool
	peerScope         int64
	peerSeq           uint64
	payload           payload
}

type stateRow struct {
	joined, visible           bool
	effective                 uint64
	epoch, parentEpoch        uint64
	level                     int // 0 inherits, 1 all, 2 mentions, 3 none
	until                     int64
	followed                  int // 1 by choice, 2 stopped
	read, manualFrom, version uint64
	manual                    bool
}

// readDurable reads a database that its server may have open, in one snapshot, and checks it.
func readDurable(t *testing.T, in store) map[string]*durable {
	t.Helper()
	db := in.open(t)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), in.snapshot)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	all := map[string]*durable{}
	r := &reader{ctx: t.Context(), tx: tx, byKey: map[int64]*durable{}}
	r.workspaces(all)
	r.people()
	r.scopes()
	r.messages()
	r.memberships()
	r.rest()
	if r.err != nil {
		t.Fatalf("read %s: %v", in.facts, r.err)
	}
	return all
}

// reader reads tables one after the other. The first error stops it.
type reader struct {
	ctx   context.Context
	tx    *sql.Tx
	byKey map[int64]*durable
	err   error
}

// of returns the workspace that a member or scope number lies in.
func (r *reader) of(key int64) *durable {
	d := r.byKey[key>>32]
	if d == nil {
		r.err = fmt.Errorf("number %d lies in no workspace", key)
		d = &durable{}
	}
	return d
}

// each calls fn for every row, which it scans into the given targets.
func (r *reader) each(query string, fn func(), into ...any) {
	if r.err != nil {
		return
	}
	rows, err := r.tx.QueryContext(r.ctx, query)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", query, err)
		return
	}
	defer rows.Close()
	for rows.Next() && r.err == nil {
		if r.err = rows.Scan(into...); r.err == nil {
			fn()
		}
	}
	if r.err == nil {
		r.err = rows.Err()
	}
}

func (r *reader) workspaces(all map[string]*durable) {
	var key int64
	var id string
	var term, lsn uint64
	r.each("SELECT workspace, id, term, lsn FROM workspaces", func() {
		d := &durable{
			term: term, lsn: lsn, members: map[int64]*memberRow{}, scopes: map[int64]*scopeRow{},
			states: map[cell]*stateRow{}, blocks: map[cell]bool{}, receipts: map[string]string{},
			byOp: map[string]*messageRow{}, memberKeys: map[string]int64{},
			scopeKeys: map[string]int64{},
		}
		all[id], r.byKey[key] = d, d
	}, &key, &id, &term, &lsn)
}

func (r *reader) people() {
	var m memberRow
	r.each("SELECT member, id, badge FROM members", func() {
		row := m
		d := r.of(m.key)
		d.members[m.key], d.memberKeys[m.id] = &row, m.key
	}, &m.key, &m.id, &m.badge)
}

func (r *reader) scopes() {
	var s scopeRow
	r.each(`SELECT scope, id, type, parent, archived, latest_seq, head_revision, floor_revision,
  floor_seq, coalesce(latest_id, '') FROM scopes`, func() {
		row := s
		row.byID, row.bySeq = map[string]*messageRow{}, map[uint64]*messageRow{}
		d := r.of(s.key)
		d.scopes[s.key], d.scopeKeys[s.id] = &row, s.key
	}, &s.key, &s.id, &s.kind, &s.parent, &s.archived, &s.latestSeq, &s.head, &s.floor,
		&s.floorSeq, &s.latestID)
}

func (r *reader) messages() {
	var m messageRow
	var named, text []byte
	r.each(`SELECT scope, seq, coalesce(revision, 0), id, coalesce(op_id, ''), author,
  coalesce(principal, 0), named, everyone, live, peer_scope, peer_seq, payload
  FROM scope_messages ORDER BY scope, seq`, func() {
		row := m
		row.named, row.payload = nil, decodePayload(text)
		for len(named) > 0 {
			local, n := binary.Uvarint(named)
			if n <= 0 {
				r.err = fmt.Errorf("names of %q are damaged", m.id)
				return
			}
			row.named = append(row.named, m.scope>>32<<32|int64(local))
			named = named[n:]
		}
		d := r.of(m.scope)
		s := d.scopes[m.scope]
		s.messages = append(s.messages, &row)
		s.byID[row.id], s.bySeq[row.seq] = &row, &row
		if row.op != "" {
			d.byOp[row.op] = &row
		}
	}, &m.scope, &m.seq, &m.revision, &m.id, &m.op, &m.author, &m.principal, &named, &m.everyone,
		&m.live, &m.peerScope, &m.peerSeq, &text)
}

func (r *reader) memberships() {
	var at cell
	var s stateRow
	r.each(`SELECT m.member, m.scope, joined, visible, eff, epoch, parent_epoch,
  coalesce(level, 0), coalesce(until, 0), coalesce(followed, 0), read_revision, manual_unread,
  manual_unread_from, manual_unread_version
  FROM scope_memberships m JOIN conversation_member_states c USING (member, scope)
  LEFT JOIN scope_notification_settings n USING (member, scope)`, func() {
		row := s
		r.of(at.scope).states[at] = &row
	}, &at.member, &at.scope, &s.joined, &s.visible, &s.effective, &s.epoch, &s.parentEpoch,
		&s.level, &s.until, &s.followed, &s.read, &s.manual, &s.manualFrom, &s.version)
	var rows, whole int
	r.each(`SELECT (SELECT count(*) FROM scope_memberships),
  (SELECT count(*) FROM conversation_member_states)`, func() {}, &rows, &whole)
	for _, d := range r.byKey {
		rows -= len(d.states)
		whole -= len(d.states)
	}
	if r.err == nil && (rows != 0 || whole != 0) {
		r.err = fmt.Errorf("%d memberships and %d read states have no other half", rows, whole)
	}
}

func (r *reader) rest() {
	var at cell
	r.each("SELECT member, other FROM member_blocks", func() {
		r.of(at.member).blocks[at] = true
	}, &at.member, &at.scope)
	var ws int64
	var op, result string
	r.each("SELECT workspace, op_id, result FROM operations", func() {
		r.of(ws << 32).receipts[op] = result
	}, &ws, &op, &result)
}

// scope finds a scope by its id; nil for none.
func (d *durable) scope(id string) *scopeRow { return d.scopes[d.scopeKeys[id]] }

// state finds a member's row in a scope; nil for none.
func (d *durable) state(at placeOf) *stateRow {
	return d.states[cell{d.memberKeys[at.member], d.scopeKeys[at.scope]}]
}

// broken says what no history can lead to, whatever was acknowledged.
func (d *durable) broken() []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(d.scopes)) {
		s := d.scopes[key]
		seq, revision, latest := s.floorSeq, s.floor, ""
		for _, m := range s.messages {
			seq++
			if m.seq != seq {
				out = append(out, fmt.Sprintf("%s: seq %d follows %d", s.id, m.seq, seq-1))
				seq = m.seq
			}
			if m.live {
				latest = m.id
			}
			if m.revision == 0 {
				continue
			}
			revision++
			if m.revision != revision {
				out = append(out, fmt.Sprintf("%s seq %d: revision %d follows %d", s.id, m.seq,
					m.revision, revision-1))
				revision = m.revision
			}
		}
		if seq != s.latestSeq || revision != s.head || latest != s.latestID {
			out = append(out, fmt.Sprintf("%s: the scope says seq %d head %d newest %q, its rows %d %d %q",
				s.id, s.latestSeq, s.head, s.latestID, seq, revision, latest))
		}
	}
	return append(out, d.twice()...)
}

// twice finds operations with more live messages than one and the channel's copy of it.
func (d *durable) twice() []string {
	live := map[string][]*messageRow{}
	for _, s := range d.scopes {
		for _, m := range s.messages {
			if m.live && m.payload.Op != "" {
				live[m.payload.Op] = append(live[m.payload.Op], m)
			}
		}
	}
	var out []string
	for op, rows := range live {
		pair := len(rows) == 2 && rows[0].peerScope == rows[1].scope &&
			rows[0].peerSeq == rows[1].seq && rows[1].peerScope == rows[0].scope
		if len(rows) == 1 || pair {
			continue
		}
		var at []string
		for _, m := range rows {
			at = append(at, fmt.Sprintf("%s %d", d.scopes[m.scope].id, m.seq))
		}
		out = append(out, fmt.Sprintf("operation %s is there %d times: %s", op, len(rows),
			strings.Join(at, ", ")))
	}
	return out
}
