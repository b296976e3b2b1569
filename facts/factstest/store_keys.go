package factstest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// hostileIDs are all different and look alike to a store that folds, trims, normalises or
// quotes. None holds a NUL byte.
func hostileIDs() []string {
	return []string{
		"a", "A", "á", "a\u0301", "á ", " á", "a ", " a", "a\t", "a\n", "ａ", "ª", "ä", "ae", "æ",
		"ß", "ss", "ẞ", "ı", "i", "I", "İ", "ſ", "s", "K", "\u212a", // Kelvin
		"k",
		"'", "''", `"`, `""`, "`", `\`, `\\`, `\'`, "%", "_", "?", "??", "?1", "$1", ":a", "@a",
		";", "--", "/*", "*/", "'; DROP TABLE members; --", "${x}", "{{x}}", "x'00'", "0x41",
		"1", "01", "1.0", "1e0", "1 ", "+1", "-1", "NULL", "null", "nil", "true", "undefined",
		"\u200b", "\u200d", "\ufeff", "\u202e", "\u2028", "\ufffd", "\U0010ffff", "\ue000",
		"🦭", "🏴\U000e0067\U000e0062\U000e007f", "👩\u200d👩\u200d👧", "🇩🇪", "☃", "☃\ufe0f",
		"\x80", "\xff", "\xff\xfe", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80", "\x7f",
		"\x01", "\x1f", "..", ".", "*", "/", "//", "a/b", "a\\b", "a:b", "a#b", "a?b", "a%2Fb",
		strings.Repeat("x", 128), strings.Repeat("x", 127), strings.Repeat("X", 128),
		strings.Repeat("x", 127) + "y", strings.Repeat("🦭", 32), strings.Repeat("\xff", 128),
		strings.Repeat("'", 128), strings.Repeat(" ", 128), strings.Repeat(" ", 127),
	}
}

// testHostileIDs gives every kind of thing every id and finds each by it, and by it alone.
func testHostileIDs(_ *testing.T, w *world) {
	ids := hostileIDs()
	if len(ids) != len(slices.Compact(slices.Sorted(slices.Values(ids)))) {
		w.Fatal("the ids are not different")
	}
	c := &facts.Changes{}
	home := w.scope()
	for i, s := range ids {
		c.Members = append(c.Members, memberRow(w.member(), s))
		scope := scopeRow(w.scope(), s, readstate.Channel)
		scope.Info.Name, scope.Info.RootMessage, scope.Ranks.Latest.ID = s, s, s
		c.Scopes = append(c.Scopes, scope)
		m := messageRow(home, readstate.Seq(i+1), s)
		m.ReplyTo, m.Op.ID, m.LocalID, m.Payload = s, s, s, []byte(s)
		c.NewMessages = append(c.NewMessages, m)
		c.Operations = append(c.Operations, facts.OperationRow{
			OpKey: facts.OpKey{Workspace: w.key, Actor: m.Author, ID: s}, Result: []byte(s),
			CreatedAt: 1,
		})
	}
	w.write(c)
	w.inTx(func(tx facts.Tx) {
		for i, s := range ids {
			what := fmt.Sprintf("by id %q", s)
			members, err := tx.MembersByID(w.Context(), w.key, []readstate.MemberID{
				readstate.MemberID(s),
			})
			w.ok(err)
			w.same("member "+what, members, []readstate.MemberInfo{c.Members[i].MemberInfo})
			scopes, err := tx.ScopesByID(w.Context(), w.key, []readstate.ScopeID{
				readstate.ScopeID(s),
			})
			w.ok(err)
			w.same("scope "+what, scopes, []facts.ScopeRow{c.Scopes[i]})
			want := []facts.MessageRow{c.NewMessages[i]}
			messages, err := tx.MessagesByID(w.Context(), home, []string{s})
			w.ok(err)
			w.same("message "+what, messages, want)
			messages, err = tx.MessagesByLocalID(w.Context(), home, []string{s})
			w.ok(err)
			w.same("message by local id", messages, want)
			messages, err = tx.MessagesByOp(w.Context(), []facts.OpKey{c.NewMessages[i].Op})
			w.ok(err)
			w.same("message by operation id", messages, want)
			operations, err := tx.Operations(w.Context(), []facts.OpKey{c.Operations[i].OpKey})
			w.ok(err)
			w.same("operation "+what, operations, []facts.OperationRow{c.Operations[i]})
		}
	})
	w.view(func(v facts.View) {
		want := slices.Sorted(slices.Values(ids)) // Go compares bytes too
		var got []string
		for after := readstate.MemberID(""); ; {
			page, err := v.ListMembers(w.Context(), w.key, after, 7)
			w.ok(err)
			for _, m := range page {
				got = append(got, string(m.ID))
				after = m.ID
			}
			if len(page) == 0 {
				break
			}
		}
		w.same("members in order", got, want)
	})
}

// testNoKeys asks for nothing and writes nothing.
func testNoKeys(_ *testing.T, w *world) {
	w.inTx(func(tx facts.Tx) {
		ctx := w.Context()
		answers := map[string]func() (int, error){
			"MembersByID": func() (int, error) { return size(tx.MembersByID(ctx, w.key, nil)) },
			"Members":     func() (int, error) { return size(tx.Members(ctx, nil)) },
			"ScopesByID":  func() (int, error) { return size(tx.ScopesByID(ctx, w.key, nil)) },
			"Scopes":      func() (int, error) { return size(tx.Scopes(ctx, nil)) },
			"States":      func() (int, error) { return size(tx.States(ctx, nil)) },
			"StatesOf":    func() (int, error) { return size(tx.StatesOf(ctx, 1, 0, 0)) },
			"Writers":     func() (int, error) { return size(tx.Writers(ctx, nil)) },
			"MessagesByID": func() (int, error) {
				return size(tx.MessagesByID(ctx, 1, nil))
			},
			"MessagesByOp": func() (int, error) { return size(tx.MessagesByOp(ctx, nil)) },
			"MessagesByLocalID": func() (int, error) {
				return size(tx.MessagesByLocalID(ctx, 1, nil))
			},
			"MessagesAt": func() (int, error) { return size(tx.MessagesAt(ctx, nil)) },
			"Operations": func() (int, error) { return size(tx.Operations(ctx, nil)) },
			"Blocks":     func() (int, error) { return size(tx.Blocks(ctx, nil)) },
			"BlockedBy":  func() (int, error) { return size(tx.BlockedBy(ctx, nil)) },
			"Pairs": func() (int, error) {
				return size(tx.Pairs(ctx, facts.RowKey{}, readstate.DM, 0, 0, 0, nil))
			},
			"Write": func() (int, error) { return 0, tx.Write(ctx, &facts.Changes{}) },
		}
		for name, ask := range answers {
			n, err := ask()
			if n != 0 || err != nil {
				w.Errorf("%s of nothing: %d rows, %v", name, n, err)
			}
		}
	})
	w.view(func(v facts.View) {
		ids, err := v.MemberIDs(w.Context(), nil)
		w.ok(err)
		w.same("ids", len(ids), 0)
	})
}

func size[T any](rows []T, err error) (int, error) { return len(rows), err }

// testManyKeys writes and loads thousands of rows of each kind in one call.
func testManyKeys(_ *testing.T, w *world) {
	n := max(w.turns(3001), 1100) // more than goes into two statements in any case
	c := &facts.Changes{}
	scope, member := w.scope(), w.member()
	for i := range n {
		id := fmt.Sprint(i)
		c.Members = append(c.Members, memberRow(w.member(), id))
		c.Scopes = append(c.Scopes, scopeRow(w.scope(), id, readstate.Task))
		key := c.Scopes[i].Info.Key
		c.States = append(c.States, stateRow(key, member))
		c.Writers = append(c.Writers, facts.WriterRow{
			RowKey: facts.RowKey{Scope: key, Member: member},
			Writer: readstate.Writer{AuthorHead: uint64(i)},
		})
		c.NewMessages = append(c.NewMessages, messageRow(scope, readstate.Seq(i+1), id))
		c.Blocks = append(c.Blocks, facts.BlockRow{
			BlockKey: facts.BlockKey{Scope: scope, Block: uint64(i)}, Count: 1,
		})
		of := facts.RowKey{Scope: scope, Member: c.Members[i].Key}
		c.Mentions = append(c.Mentions, facts.MentionRow{RowKey: of, Revision: 1, Live: true})
		c.Targets = append(c.Targets, facts.TargetRow{RowKey: of, Revision: 1, Live: true})
		c.Block = append(c.Block, facts.BlockedPair{Member: member, Other: c.Members[i].Key})
	}
	w.write(c)
	w.inTx(func(tx facts.Tx) {
		w.manyKeys(tx, c, scope, member)
	})
	gone := &facts.Changes{Unblock: c.Block}
	for i := range c.Blocks {
		c.Blocks[i].Count = 0
		gone.GoneStates = append(gone.GoneStates, c.States[i].RowKey)
		gone.Unmentions = append(gone.Unmentions, c.Mentions[i])
	}
	gone.Blocks = c.Blocks
	w.write(gone)
	w.inTx(func(tx facts.Tx) {
		left, err := tx.StatesOf(w.Context(), member, 0, n)
		w.ok(err)
		blocked, err := tx.BlockedBy(w.Context(), []readstate.MemberKey{member})
		w.ok(err)
		w.same("rows left", len(left)+len(blocked), 0)
	})
}

func (w *world) manyKeys(
	tx facts.Tx, c *facts.Changes, scope readstate.ScopeKey, member readstate.MemberKey,
) {
	ctx := w.Context()
	var memberIDs []readstate.MemberID
	var memberKeys []readstate.MemberKey
	var scopeIDs []readstate.ScopeID
	var scopeKeys []readstate.ScopeKey
	var rows []facts.RowKey
	var ids, locals []string
	var ops []facts.OpKey
	var places []facts.Place
	var blocks []facts.BlockKey
	for i := range c.Members {
		memberIDs = append(memberIDs, c.Members[i].ID)
		memberKeys = append(memberKeys, c.Members[i].Key)
		scopeIDs = append(scopeIDs, c.Scopes[i].Info.ID)
		scopeKeys = append(scopeKeys, c.Scopes[i].Info.Key)
		rows = append(rows, c.States[i].RowKey)
		ids, locals = append(ids, c.NewMessages[i].ID), append(locals, c.NewMessages[i].LocalID)
		ops = append(ops, c.NewMessages[i].Op)
		places = append(places, c.NewMessages[i].Place)
		blocks = append(blocks, c.Blocks[i].BlockKey)
	}
	members, err := tx.MembersByID(ctx, w.key, memberIDs)
	w.ok(err)
	again, err := tx.Members(ctx, memberKeys)
	w.ok(err)
	w.same("members", byKey(members), byKey(again))
	w.same("number of members", len(members), len(memberIDs))
	scopes, err := tx.ScopesByID(ctx, w.key, scopeIDs)
	w.ok(err)
	w.same("scopes", byKey(scopes), c.Scopes)
	scopes, err = tx.Scopes(ctx, scopeKeys)
	w.ok(err)
	w.same("scopes by key", byKey(scopes), c.Scopes)
	states, err := tx.States(ctx, rows)
	w.ok(err)
	w.same("states", byKey(states), c.States)
	states, err = tx.StatesOf(ctx, member, 0, len(rows)+1)
	w.ok(err)
	w.same("states of member", states, c.States)
	writers, err := tx.Writers(ctx, rows)
	w.ok(err)
	w.same("writers", byKey(writers), c.Writers)
	for name, load := range map[string]func() ([]facts.MessageRow, error){
		"id":       func() ([]facts.MessageRow, error) { return tx.MessagesByID(ctx, scope, ids) },
		"local id": func() ([]facts.MessageRow, error) { return tx.MessagesByLocalID(ctx, scope, locals) },
		"op":       func() ([]facts.MessageRow, error) { return tx.MessagesByOp(ctx, ops) },
		"place":    func() ([]facts.MessageRow, error) { return tx.MessagesAt(ctx, places) },
	} {
		messages, err := load()
		w.ok(err)
		w.same("messages by "+name, byKey(messages), c.NewMessages)
	}
	bits, err := tx.Blocks(ctx, blocks)
	w.ok(err)
	w.same("blocks", byKey(bits), c.Blocks)
	blocked, err := tx.BlockedBy(ctx, []readstate.MemberKey{member})
	w.ok(err)
	w.same("number blocked", len(blocked), len(c.Block))
}
