package factstest

import (
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

func testWorkspaces(_ *testing.T, w *world) {
	member, scope := w.member(), w.scope()
	w.write(&facts.Changes{
		Members:    []facts.MemberChange{memberRow(member, "m"), memberRow(member+40, "far")},
		Scopes:     []facts.ScopeRow{scopeRow(scope, "s", readstate.Channel)},
		Workspaces: []facts.WorkspaceRow{{Key: w.key, ID: "home", Name: "Renamed", Term: 99, LSN: 99}},
	})
	home := facts.WorkspaceRow{
		Key: w.key, ID: "home", Name: "Renamed", Term: w.fence.Term, LSN: w.fence.LSN,
		LastMember: uint32(member + 40), LastScope: uint32(scope),
	}
	next := facts.WorkspaceRow{Key: neighbourKey, ID: "next", Name: "Next", Term: 1, LSN: 5}
	w.view(func(v facts.View) {
		all, err := v.Workspaces(w.Context())
		w.ok(err)
		w.same("workspaces", all, []facts.WorkspaceRow{home, next})
		one, ok, err := v.Workspace(w.Context(), "home")
		w.ok(err)
		w.same("workspace", one, home)
		w.same("found", ok, true)
		_, ok, err = v.Workspace(w.Context(), "Home")
		w.ok(err)
		w.same("found in another case", ok, false)
	})
}

func testMembers(_ *testing.T, w *world) {
	a, b := memberRow(w.member(), "a"), memberRow(w.member(), "b")
	b.MemberInfo = readstate.MemberInfo{Key: b.Key, ID: "b"}
	foreign := memberRow(facts.MemberKeyOf(neighbourKey, 1), "a")
	w.write(&facts.Changes{Members: []facts.MemberChange{a, b, foreign}})
	check := func(want ...readstate.MemberInfo) {
		w.inTx(func(tx facts.Tx) {
			got, err := tx.Members(w.Context(), []readstate.MemberKey{b.Key, 1, a.Key})
			w.ok(err)
			w.same("members", byKey(got), want)
			got, err = tx.MembersByID(w.Context(), w.key,
				[]readstate.MemberID{want[1].ID, "none", want[0].ID})
			w.ok(err)
			w.same("members by id", byKey(got), want)
		})
	}
	check(a.MemberInfo, b.MemberInfo)
	a.MemberInfo = readstate.MemberInfo{Key: a.Key, ID: "erased-1", MemberLSN: 40}
	w.write(&facts.Changes{Members: []facts.MemberChange{a}})
	check(a.MemberInfo, b.MemberInfo)
	w.view(func(v facts.View) {
		_, ok, err := v.Member(w.Context(), w.key, "a")
		w.ok(err)
		w.same("member by an id that was given up", ok, false)
		ids, err := v.MemberIDs(w.Context(), []readstate.MemberKey{a.Key, 5, foreign.Key})
		w.ok(err)
		w.same("ids", ids, map[readstate.MemberKey]readstate.MemberID{
			a.Key: "erased-1", foreign.Key: "a",
		})
	})
}

func testScopes(_ *testing.T, w *world) {
	channel := scopeRow(w.scope(), "c", readstate.Channel)
	thread := scopeRow(w.scope(), "t", readstate.Thread)
	thread.Info.Parent, thread.Info.ParentID = channel.Info.Key, "c"
	bare := facts.ScopeRow{Info: readstate.ScopeInfo{
		Key: w.scope(), ID: "bare", Type: readstate.DM,
	}}
	foreign := scopeRow(facts.ScopeKeyOf(neighbourKey, 1), "c", readstate.Channel)
	foreign.Owner = 0
	w.write(&facts.Changes{Scopes: []facts.ScopeRow{channel, thread, bare, foreign}})
	check := func(want ...facts.ScopeRow) {
		w.inTx(func(tx facts.Tx) {
			got, err := tx.Scopes(w.Context(), []readstate.ScopeKey{
				bare.Info.Key, 3, thread.Info.Key, channel.Info.Key,
			})
			w.ok(err)
			w.same("scopes", byKey(got), want)
			got, err = tx.ScopesByID(w.Context(), w.key,
				[]readstate.ScopeID{"t", "none", "bare", "c"})
			w.ok(err)
			w.same("scopes by id", byKey(got), want)
		})
	}
	check(channel, thread, bare)
	thread.Ranks = readstate.ScopeRanks{LatestSeq: readstate.MaxCounter, Head: readstate.MaxCounter}
	thread.Info.Tags, thread.Info.Name, thread.Info.Archived = nil, "", false
	w.write(&facts.Changes{Scopes: []facts.ScopeRow{thread}})
	check(channel, thread, bare)
	w.view(func(v facts.View) {
		got, ok, err := v.Scope(w.Context(), neighbourKey, "c")
		w.ok(err)
		w.same("found", ok, true)
		w.same("scope of the neighbour", got, foreign)
	})
}

func testStates(_ *testing.T, w *world) {
	member, other := w.member(), w.member()
	channel := scopeRow(w.scope(), "c", readstate.Channel)
	thread := scopeRow(w.scope(), "t", readstate.Thread)
	thread.Info.Parent = channel.Info.Key
	unread := scopeRow(w.scope(), "u", readstate.Thread)
	unread.Info.Parent = channel.Info.Key
	c, t := stateRow(channel.Info.Key, member), stateRow(thread.Info.Key, member)
	zero := facts.StateRow{RowKey: facts.RowKey{Scope: channel.Info.Key, Member: other}}
	w.write(&facts.Changes{
		Scopes: []facts.ScopeRow{channel, thread, unread}, States: []facts.StateRow{t, zero, c},
	})
	check := func(want ...facts.StateRow) {
		w.Helper()
		w.inTx(func(tx facts.Tx) {
			got, err := tx.States(w.Context(), []facts.RowKey{
				c.RowKey, {Scope: thread.Info.Key, Member: other}, t.RowKey, zero.RowKey,
			})
			w.ok(err)
			w.same("states", byKey(got), byKey(want))
		})
	}
	check(c, t, zero)
	c.Row, c.StateLSN = readstate.Row{Epoch: 9, Follow: readstate.FollowExplicit}, 33
	w.write(&facts.Changes{States: []facts.StateRow{c}})
	check(c, t, zero)
	w.inTx(func(tx facts.Tx) {
		got, err := tx.StatesOf(w.Context(), member, 0, 1)
		w.ok(err)
		w.same("first row", got, []facts.StateRow{c})
		got, err = tx.StatesOf(w.Context(), member, c.Scope, 5)
		w.ok(err)
		w.same("rows after it", got, []facts.StateRow{t})
	})
	w.write(&facts.Changes{GoneStates: []facts.RowKey{c.RowKey}})
	check(t, zero)
	w.view(func(v facts.View) {
		_, ok, err := v.State(w.Context(), c.RowKey)
		w.ok(err)
		w.same("row that is gone", ok, false)
		roster, err := v.ListRoster(w.Context(), channel.Info.Key, 0, 10)
		w.ok(err)
		w.same("roster after it", roster, []facts.RosterRow(nil))
	})
}

// testSettings goes back to the default, which must not leave an old choice behind.
func testSettings(_ *testing.T, w *world) {
	row := stateRow(w.scope(), w.member())
	read := func() facts.StateRow {
		var got facts.StateRow
		w.view(func(v facts.View) {
			var err error
			got, _, err = v.State(w.Context(), row.RowKey)
			w.ok(err)
		})
		return got
	}
	for _, n := range []readstate.Notification{
		{Level: readstate.LevelNone, Until: 5}, {}, {Level: readstate.LevelAll},
	} {
		for _, lsn := range []readstate.LSN{0, 30} {
			row.Row.Notification, row.NotificationLSN = n, lsn
			row.Row.Follow = readstate.FollowAutomatic
			w.write(&facts.Changes{States: []facts.StateRow{row}})
			w.same("row", read(), row)
		}
	}
}

func testWriters(_ *testing.T, w *world) {
	key := facts.RowKey{Scope: w.scope(), Member: w.member()}
	row := facts.WriterRow{RowKey: key, Writer: readstate.Writer{
		AuthorHead: 1, PrincipalHead: 2, ActorHead: 3, AuthorAtFloor: 4, PrincipalAtFloor: 5,
	}}
	other := facts.WriterRow{RowKey: facts.RowKey{Scope: key.Scope, Member: w.member()}}
	w.write(&facts.Changes{Writers: []facts.WriterRow{row, other}})
	row.Writer.AuthorHead = 70
	w.write(&facts.Changes{Writers: []facts.WriterRow{row}})
	w.inTx(func(tx facts.Tx) {
		got, err := tx.Writers(w.Context(), []facts.RowKey{
			other.RowKey, key, {Scope: key.Scope + 1, Member: key.Member},
		})
		w.ok(err)
		w.same("writers", byKey(got), []facts.WriterRow{row, other})
	})
	w.view(func(v facts.View) {
		got, ok, err := v.Writer(w.Context(), key)
		w.ok(err)
		w.same("found", ok, true)
		w.same("writer", got, row)
		_, ok, err = v.Writer(w.Context(), facts.RowKey{Scope: key.Scope, Member: 1})
		w.ok(err)
		w.same("found one who never wrote", ok, false)
	})
}

func testOperations(_ *testing.T, w *world) {
	actor := w.member()
	op := func(actor readstate.MemberKey, id string, at int64) facts.OperationRow {
		return facts.OperationRow{
			OpKey:  facts.OpKey{Workspace: w.key, Actor: actor, ID: id},
			Digest: facts.Digest{9, 15: 8}, Result: []byte(`{"lsn":1}`), CreatedAt: at,
		}
	}
	old, young, system := op(actor, "1", 100), op(actor, "2", 200), op(0, "1", 300)
	system.Result = nil
	w.write(&facts.Changes{Operations: []facts.OperationRow{old, young, system}})
	load := func() []facts.OperationRow {
		var got []facts.OperationRow
		w.inTx(func(tx facts.Tx) {
			foreign := old.OpKey
			foreign.Workspace = neighbourKey
			var err error
			got, err = tx.Operations(w.Context(),
				[]facts.OpKey{old.OpKey, young.OpKey, system.OpKey, foreign})
			w.ok(err)
		})
		return byKey(got)
	}
	w.same("operations", load(), byKey([]facts.OperationRow{old, young, system}))
	without := w.member()
	w.inTx(func(tx facts.Tx) {
		have, err := tx.WithReceipts(w.Context(), []readstate.MemberKey{without, actor})
		w.ok(err)
		w.same("actors with receipts", have, []facts.Receipted{{Actor: actor, Operations: true}})
	})
	w.write(&facts.Changes{ForgetReceiptsBefore: 200})
	w.same("younger operations", load(), byKey([]facts.OperationRow{young, system}))
}

func testBlocks(_ *testing.T, w *world) {
	scope := w.scope()
	block := func(set facts.BlockSet, n uint64, revisions ...readstate.Revision) facts.BlockRow {
		b := facts.BlockRow{BlockKey: facts.BlockKey{Set: set, Scope: scope, Block: n}}
		for _, r := range revisions {
			b.Bits.Set(r)
			b.Count++
		}
		return b
	}
	r0 := block(facts.RemovedSet, 0, 1, 4095)
	r1 := block(facts.RemovedSet, 1, 4096, 5000, 8191)
	r2 := block(facts.RemovedSet, 2, 8192)
	e0 := block(facts.EveryoneSet, 0, 2, 63, 64)
	w.write(&facts.Changes{Blocks: []facts.BlockRow{r0, e0, r2, r1}})
	load := func() []facts.BlockRow {
		var got []facts.BlockRow
		w.inTx(func(tx facts.Tx) {
			var err error
			got, err = tx.Blocks(w.Context(), []facts.BlockKey{
				e0.BlockKey, r1.BlockKey, r0.BlockKey, r2.BlockKey,
				{Set: facts.EveryoneSet, Scope: scope, Block: 1},
			})
			w.ok(err)
		})
		return byKey(got)
	}
	w.same("blocks", load(), byKey([]facts.BlockRow{r0, r1, r2, e0}))
	removed := []readstate.Revision{1, 4095, 4096, 5000, 8191, 8192}
	w.view(func(v facts.View) {
		edges := []readstate.Revision{0, 1, 2, 4094, 4095, 4096, 4999, 5000, 8190, 8191, 8192, 9000}
		for _, low := range edges {
			for _, high := range edges {
				var want uint64
				for _, r := range removed {
					if low < r && r <= high {
						want++
					}
				}
				got, err := v.RemovedBetween(w.Context(), scope, low, high)
				w.ok(err)
				if got != want {
					w.Fatalf("removed in (%d, %d]: %d, want %d", low, high, got, want)
				}
			}
		}
	})
	r0 = block(facts.RemovedSet, 0, 7)
	empty := facts.BlockRow{BlockKey: r1.BlockKey}
	w.write(&facts.Changes{Blocks: []facts.BlockRow{r0, empty}})
	w.same("blocks", load(), byKey([]facts.BlockRow{r0, r2, e0}))
}

func testMemberBlocks(_ *testing.T, w *world) {
	a, b, c := w.member(), w.member(), w.member()
	w.write(&facts.Changes{
		Members: []facts.MemberChange{memberRow(a, "a"), memberRow(b, "z"), memberRow(c, "c")},
		Block: []facts.BlockedPair{
			{Member: a, Other: b}, {Member: a, Other: c}, {Member: b, Other: a},
		},
	})
	w.write(&facts.Changes{Block: []facts.BlockedPair{{Member: a, Other: b}}}) // once more
	w.inTx(func(tx facts.Tx) {
		got, err := tx.BlockedBy(w.Context(), []readstate.MemberKey{a, c})
		w.ok(err)
		w.same("blocks", got, []facts.BlockedPair{{Member: a, Other: b}, {Member: a, Other: c}})
	})
	w.view(func(v facts.View) {
		ids, err := v.ListBlocks(w.Context(), a)
		w.ok(err)
		w.same("ids", ids, []readstate.MemberID{"c", "z"})
		keys, err := v.BlockedKeys(w.Context(), a)
		w.ok(err)
		w.same("keys", keys, []readstate.MemberKey{b, c})
	})
	w.write(&facts.Changes{Unblock: []facts.BlockedPair{{Member: a, Other: b}}})
	w.inTx(func(tx facts.Tx) {
		got, err := tx.BlockedBy(w.Context(), []readstate.MemberKey{a, b})
		w.ok(err)
		w.same("blocks", got, []facts.BlockedPair{{Member: a, Other: c}, {Member: b, Other: a}})
	})
}
