package factstest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// byKey sorts the rows of an answer whose order is the store's own.
func byKey[T any](rows []T) []T {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b T) int { return cmp.Compare(sortKey(a), sortKey(b)) })
	return rows
}

func sortKey(row any) string {
	key := func(a, b, c any) string { return fmt.Sprintf("%020d %020d %v", a, b, c) }
	switch r := row.(type) {
	case readstate.MemberInfo:
		return key(r.Key, 0, 0)
	case facts.ScopeRow:
		return key(r.Info.Key, 0, 0)
	case facts.StateRow:
		return key(r.Scope, r.Member, 0)
	case facts.WriterRow:
		return key(r.Scope, r.Member, 0)
	case facts.MessageRow:
		return key(r.Scope, r.Seq, 0)
	case facts.OperationRow:
		return key(r.Workspace, r.Actor, r.ID)
	case facts.TaskRow:
		return key(r.Scope, 0, 0)
	case facts.RowKey:
		return key(r.Scope, r.Member, 0)
	case facts.BlockRow:
		return key(r.Scope, r.Block, r.Set)
	}
	panic(fmt.Sprintf("no key for %T", row))
}

func testMessages(_ *testing.T, w *world) {
	scope, other := w.scope(), w.scope()
	full := messageRow(scope, 1, "m1")
	bare := facts.MessageRow{
		Place: facts.Place{Scope: scope, Seq: 2}, ID: "m2", Author: full.Author,
	}
	copied := messageRow(other, 1, "m1") // the same id in another scope, and no operation
	copied.Op, copied.OpDigest, copied.LocalID = facts.OpKey{}, facts.Digest{}, ""
	w.write(&facts.Changes{NewMessages: []facts.MessageRow{full, bare, copied}})
	w.inTx(func(tx facts.Tx) {
		ctx := w.Context()
		got, err := tx.MessagesByID(ctx, scope, []string{"m2", "M1", "m1"})
		w.ok(err)
		w.same("by id", byKey(got), []facts.MessageRow{full, bare})
		got, err = tx.MessagesByOp(ctx, []facts.OpKey{
			full.Op, {Workspace: w.key, Actor: full.Author, ID: "none"},
			{Workspace: w.key, Actor: full.Author + 1, ID: full.Op.ID},
		})
		w.ok(err)
		w.same("by operation", got, []facts.MessageRow{full})
		got, err = tx.MessagesByLocalID(ctx, scope, []string{"none", full.LocalID, ""})
		w.ok(err)
		w.same("by local id", got, []facts.MessageRow{full})
		got, err = tx.MessagesAt(ctx, []facts.Place{
			copied.Place, {Scope: scope, Seq: 3}, bare.Place,
		})
		w.ok(err)
		w.same("by place", byKey(got), []facts.MessageRow{bare, copied})
	})
	w.view(func(v facts.View) {
		got, ok, err := v.Message(w.Context(), scope, "m1")
		w.ok(err)
		w.same("found", ok, true)
		w.same("message", got, full)
	})
}

// testMessageUpdates changes what may change and leaves the rest.
func testMessageUpdates(_ *testing.T, w *world) {
	scope := w.scope()
	a, b := messageRow(scope, 1, "a"), messageRow(scope, 2, "b")
	w.write(&facts.Changes{NewMessages: []facts.MessageRow{a, b}})
	ignored := a
	ignored.Kind, ignored.Author, ignored.Revision = "other", 0, 77
	for _, m := range []*facts.MessageRow{&a, &ignored} {
		m.ID = "renamed"
		m.Live, m.Everyone, m.Named, m.EditedAt = false, false, nil, 9
		m.Peer, m.Thread, m.ExpiresAt, m.Payload = facts.Place{}, 0, 0, nil
	}
	w.write(&facts.Changes{Messages: []facts.MessageRow{ignored}})
	w.inTx(func(tx facts.Tx) {
		got, err := tx.MessagesBetween(w.Context(), scope, 0, 10, false, 10)
		w.ok(err)
		w.same("messages", got, []facts.MessageRow{a, b})
		got, err = tx.MessagesByID(w.Context(), scope, []string{"a", "renamed"})
		w.ok(err)
		w.same("message by its new id", got, []facts.MessageRow{a})
	})
}

func testExpiry(_ *testing.T, w *world) {
	scope := w.scope()
	at := func(seq readstate.Seq, id string, expires int64) facts.MessageRow {
		m := messageRow(scope, seq, id)
		m.ExpiresAt = expires
		return m
	}
	never, late, soon, dead := at(1, "n", 0), at(2, "l", 50), at(3, "s", 20), at(4, "d", 10)
	foreign := messageRow(facts.ScopeKeyOf(neighbourKey, 1), 1, "f")
	foreign.ExpiresAt, foreign.Named, foreign.Recipients = 15, nil, nil
	foreign.Op = facts.OpKey{}
	dead.Live = false
	w.write(&facts.Changes{NewMessages: []facts.MessageRow{never, late, soon, dead, foreign}})
	w.inTx(func(tx facts.Tx) {
		for now, want := range map[int64][]facts.MessageRow{
			19: nil, 20: {soon}, 49: {soon}, 50: {soon, late},
		} {
			got, err := tx.Expired(w.Context(), w.key, now, 10)
			w.ok(err)
			w.same(fmt.Sprintf("expired at %d", now), got, want)
		}
		got, err := tx.Expired(w.Context(), w.key, 99, 1)
		w.ok(err)
		w.same("first expired", got, []facts.MessageRow{soon})
	})
	w.view(func(v facts.View) {
		for now, want := range map[int64][]readstate.WorkspaceID{
			14: nil, 15: {"next"}, 20: {"home", "next"},
		} {
			got, err := v.Expiring(w.Context(), now)
			w.ok(err)
			w.same(fmt.Sprintf("workspaces at %d", now), got, want)
		}
	})
}

// testPayloads clears the payloads of an author in batches until none is left, going on after
// the last revision of the batch before or, as after a crash, from the beginning.
func testPayloads(_ *testing.T, w *world) {
	for i, resume := range []bool{false, true} {
		author := facts.MemberKeyOf(w.key, uint32(500+i))
		c := &facts.Changes{}
		for range 3 {
			scope := w.scope()
			c.Scopes = append(c.Scopes, scopeRow(scope, fmt.Sprint("payloads", scope), readstate.Channel))
			c.Writers = append(c.Writers, facts.WriterRow{
				RowKey: facts.RowKey{Scope: scope, Member: author},
				Writer: readstate.Writer{AuthorHead: 2},
			})
			for seq := readstate.Seq(1); seq <= 6; seq++ {
				m := messageRow(scope, seq, fmt.Sprint(seq))
				m.Op.ID = fmt.Sprint(scope, seq)
				if seq%2 == 0 {
					m.Author = author
				}
				if seq == 4 {
					m.Revision = 0
				}
				c.NewMessages = append(c.NewMessages, m)
			}
		}
		w.write(c)
		w.same("messages cleared", clearPayloads(w, author, resume), 9)
	}
}

func clearPayloads(w *world, author readstate.MemberKey, resume bool) (seen int) {
	var after facts.Mark
	for {
		var batch []facts.MessageRow
		w.inTx(func(tx facts.Tx) {
			var err error
			batch, err = tx.AuthoredPayloads(w.Context(), author, after, 4)
			w.ok(err)
		})
		last := after
		for i := range batch {
			w.same("author", batch[i].Author, author)
			batch[i].Payload = nil
			if batch[i].Revision > 0 {
				next := facts.Mark{Scope: batch[i].Scope, Revision: batch[i].Revision}
				if next.Scope < last.Scope || next.Scope == last.Scope && next.Revision <= last.Revision {
					w.Errorf("%v comes after %v", next, last)
				}
				last = next
			}
		}
		if resume {
			after = last
		}
		seen += len(batch)
		if len(batch) == 0 {
			return seen
		}
		w.write(&facts.Changes{Messages: batch})
	}
}

// testErasures tells begun erasures from finished ones.
func testErasures(_ *testing.T, w *world) {
	begun, done := memberRow(w.member(), "begun"), memberRow(w.member(), "done")
	begun.Erased, done.Erased = true, true
	w.write(&facts.Changes{
		Members: []facts.MemberChange{begun, done}, Erased: []readstate.MemberKey{done.Key},
	})
	w.view(func(v facts.View) {
		half, err := v.HalfErased(w.Context())
		w.ok(err)
		w.same("half erased", half, []facts.ErasedMember{{Workspace: "home", Key: begun.Key}})
		member, _, err := v.Member(w.Context(), w.key, "done")
		w.ok(err)
		w.same("member", member, done.MemberInfo)
	})
	w.write(&facts.Changes{Erased: []readstate.MemberKey{begun.Key}})
	w.view(func(v facts.View) {
		half, err := v.HalfErased(w.Context())
		w.ok(err)
		w.same("half erased", len(half), 0)
	})
}

// testTrim deletes a prefix of one scope with everything that hangs on it.
func testTrim(_ *testing.T, w *world) {
	scope, other, member := w.scope(), w.scope(), w.member()
	c := &facts.Changes{}
	for _, s := range []readstate.ScopeKey{scope, other} {
		for i := readstate.Revision(1); i <= 6; i++ {
			m := messageRow(s, readstate.Seq(i), fmt.Sprint(i))
			m.Op.ID = fmt.Sprint(s, i)
			m.Named = []readstate.MemberKey{member}
			c.NewMessages = append(c.NewMessages, m)
			key := facts.RowKey{Scope: s, Member: member}
			c.Mentions = append(c.Mentions, facts.MentionRow{RowKey: key, Revision: i, Live: true})
			c.Targets = append(c.Targets, facts.TargetRow{RowKey: key, Revision: i, Live: true})
			c.NewEveryone = append(c.NewEveryone, facts.EveryoneRow{
				Scope: s, Revision: i, Author: member,
			})
		}
		for block := range uint64(3) {
			row := facts.BlockRow{BlockKey: facts.BlockKey{Scope: s, Block: block}, Count: 1}
			row.Bits.Set(9)
			c.Blocks = append(c.Blocks, row)
		}
		c.Scopes = append(c.Scopes, scopeRow(s, fmt.Sprint(s), readstate.Task))
	}
	w.write(c)
	counts := func(s readstate.ScopeKey) (entries int, crossed readstate.Crossed, blocks int) {
		w.inTx(func(tx facts.Tx) {
			m, err := tx.MessagesBetween(w.Context(), s, 0, 99, false, 99)
			w.ok(err)
			entries = len(m)
			crossed, err = tx.Crossed(w.Context(), facts.RowKey{Scope: s, Member: member}, 0, 99)
			w.ok(err)
			b, err := tx.Blocks(w.Context(), []facts.BlockKey{
				{Scope: s, Block: 0}, {Scope: s, Block: 1}, {Scope: s, Block: 2},
			})
			w.ok(err)
			blocks = len(b)
		})
		return entries, crossed, blocks
	}
	check := func(s readstate.ScopeKey, left, wantBlocks int) {
		w.Helper()
		entries, crossed, blocks := counts(s)
		n := uint64(left)
		w.same("entries", entries, left)
		w.same("rows", crossed, readstate.Crossed{OwnEveryone: n, Direct: n, Targets: n})
		w.same("blocks", blocks, wantBlocks)
	}
	check(scope, 6, 3)
	w.write(&facts.Changes{Trimmed: []facts.Trim{{Scope: scope, Seq: 4, Revision: 4}}})
	check(scope, 2, 3)
	w.write(&facts.Changes{Trimmed: []facts.Trim{{Scope: scope, Seq: 4, Revision: 4094}}})
	check2 := func(want int) {
		w.Helper()
		_, _, blocks := counts(scope)
		w.same("blocks", blocks, want)
	}
	check2(3)
	w.write(&facts.Changes{Trimmed: []facts.Trim{{Scope: scope, Seq: 4, Revision: 4095}}})
	check2(2)
	check(other, 6, 3)
}
