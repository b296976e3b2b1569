package snapshot

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// TakeThese takes the rows of members in one scope, dirty or not, to be protected. It takes nothing,
// and fails with ErrNotLoaded where the book does not have one of them, with ErrUnaccounted where
// there is none that counts anything, and with ErrProtected where one must not be written.
func (b *Book) TakeThese(
	scope readstate.ScopeKey, members []readstate.MemberKey,
) (batch Batch, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frontiers[scope]
	if f == nil {
		return batch, unknown(scope)
	}
	var keys []Key
	for _, m := range members {
		key := Key{scope, m}
		e := b.rows[key]
		if !e.settled() {
			return batch, unknown(scope)
		}
		if e.absent || e.broken {
			return Batch{}, fmt.Errorf("row of %s: %w", b.names.Member(m), ErrUnaccounted)
		}
		if slices.Contains(keys, key) {
			continue
		}
		row, d := b.encodeRow(key, e.barrier()+1)
		if err := b.keeps(f, e, &row); err != nil {
			return Batch{}, fmt.Errorf("row of %s: %w", row.Member, err)
		}
		s := shadowOf(&row, &d)
		row.protect(s)
		row.Was = e.seen
		keys = append(keys, key)
		batch.shadow, batch.ready = append(batch.shadow, s), append(batch.ready, row)
	}
	for _, key := range keys {
		m := b.markOf(key)
		if m.ticket == 0 { // refused by the backlog, or written before
			if m.owed {
				b.wait(key, -1)
				b.owed = slices.DeleteFunc(b.owed, func(k Key) bool { return k == key })
				b.restored = append(b.restored, key)
			}
			m.dirty, m.owed = true, false
			b.seat(m, key)
		}
	}
	for _, key := range keys {
		batch.births = append(batch.births, b.unborn(&batch, key)...)
	}
	b.board(&batch, keys...)
	b.encode(&batch)
	for i := range batch.Rows {
		batch.Rows[i].Durable = true
	}
	return batch, nil
}

func (b *Book) encode(batch *Batch) {
	now := b.now()
	for _, scope := range batch.births {
		row := encodeBirth(b.frontiers[scope], b.names)
		row.Workspace, row.UpdatedAt = b.workspace, now
		batch.Rows = append(batch.Rows, row)
	}
	for i, key := range batch.keys {
		var row Row
		switch {
		case batch.ready != nil:
			row = batch.ready[i]
		case key.Member == 0:
			row = encodeFrontier(b.frontiers[key.Scope], b.names)
		case key.Scope == 0:
			row = b.encodePerson(batch, key.Member)
		default:
			row, _ = b.encodeRow(key, b.rows[key].barrier())
		}
		row.Workspace, row.UpdatedAt = b.workspace, now
		batch.Rows = append(batch.Rows, row)
	}
}

// encodePerson leaves out blocks of members of whom the table does not say yet that somebody blocks
// them: there are more who block each other than go together. The row stays dirty for them.
func (b *Book) encodePerson(batch *Batch, m readstate.MemberKey) Row {
	p := b.people[m]
	p.sent = p.blocked
	left := false
	row := encodePerson(b.names.Member(m), p, b.names, func(x readstate.MemberKey) bool {
		o := b.people[x]
		out := o != nil && o.blocked && !o.noted && !slices.Contains(batch.keys, Key{Member: x})
		left = left || out
		return out
	})
	if left {
		p.changed++
	}
	return row
}

func (b *Book) encodeRow(key Key, barrier uint64) (Row, rowDetail) {
	e, f, p := b.rows[key], b.frontiers[key.Scope], b.people[key.Member]
	row := e.row
	row.Pairs = b.pairRows(f, e, p)
	// A row that contradicts itself is withheld; what it last said is not worse than what the
	// table has.
	values, err := f.values(&row)
	if err != nil && e.row.Row.Serving.Servable() {
		b.stats.Contradictions++
	}
	return encodeMember(
		b.names.Member(key.Member), e, f, values, encodePairs(e.pairs, p, b.names), barrier)
}
