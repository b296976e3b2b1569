package factstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Rows of tasks, activities and conversations.
var taskParts = []storePart{
	{"Tasks", testTasks},
	{"Activities", testActivities},
	{"ActivityOperations", testActivityOperations},
	{"ActivityPayloads", testActivityPayloads},
	{"ActivitySeeks", testActivitySeeks},
	{"Watchers", testWatchers},
	{"Joined", testJoined},
	{"Conversations", testConversations},
	{"ConversationRandom", testConversationRandom},
}

func testTasks(_ *testing.T, w *world) {
	a := facts.TaskRow{
		Scope: w.scope(), Assignee: w.member(), Status: "in \x00 'progress'", Title: "ship\nit 🦭",
		TaskLSN: 9,
	}
	b := facts.TaskRow{Scope: w.scope(), TaskLSN: 1}
	none := w.scope()
	check := func(want ...facts.TaskRow) {
		w.Helper()
		keys := []readstate.ScopeKey{b.Scope, none, a.Scope}
		w.inTx(func(tx facts.Tx) {
			got, err := tx.Tasks(w.Context(), keys)
			w.ok(err)
			w.same("tasks", byKey(got), byKey(want))
		})
		w.view(func(v facts.View) {
			got, err := v.Tasks(w.Context(), keys)
			w.ok(err)
			w.same("tasks of a view", byKey(got), byKey(want))
		})
	}
	check()
	w.write(&facts.Changes{Tasks: []facts.TaskRow{a, b}})
	check(a, b)
	a.Assignee, a.Status, a.Title, a.TaskLSN = 0, "", "x", 10
	w.write(&facts.Changes{Tasks: []facts.TaskRow{a}})
	check(a, b)
}

// activityRow is an activity with every column set.
func activityRow(scope readstate.ScopeKey, seq readstate.Seq, id string) facts.ActivityRow {
	actor := facts.MemberKeyOf(homeKey, 1)
	return facts.ActivityRow{
		ActivityPlace: facts.ActivityPlace{Scope: scope, Seq: seq}, ID: id, Type: "file_shared",
		HighSignal: true, SignalRank: 5, ActorRank: 4, Actor: actor,
		Recipients: []readstate.MemberKey{
			facts.MemberKeyOf(homeKey, 2), facts.MemberKeyOf(homeKey, 1<<32-1),
		},
		RefType: "file", RefID: "f'\u2028", Subject: facts.MemberKeyOf(homeKey, 3), Revision: 7,
		Op:       facts.OpKey{Workspace: homeKey, Actor: actor, ID: "op " + id},
		OpDigest: facts.Digest{3, 15: 1}, CreatedAt: 1 << 40, Payload: []byte(`{"a":"\u0000"}`),
	}
}

func testActivities(_ *testing.T, w *world) {
	scope := w.scope()
	var all, timeline []facts.ActivityRow
	for seq := readstate.Seq(1); seq <= 9; seq++ {
		a := activityRow(scope, seq, fmt.Sprint(seq))
		switch seq % 3 {
		case 1:
			a = facts.ActivityRow{
				ActivityPlace: a.ActivityPlace, ID: a.ID, Type: "x", Actor: a.Actor,
			}
		case 2:
			a.RefType = facts.RefTaskEvent
			timeline = append(timeline, a)
		}
		all = append(all, a)
	}
	// The same places among the messages are another log.
	messages := []facts.MessageRow{messageRow(scope, 1, "1"), messageRow(scope, 2, "2")}
	w.write(&facts.Changes{
		Activities: append(all[3:], all[:3]...), NewMessages: messages,
	})
	all = slices.SortedFunc(slices.Values(all), func(a, b facts.ActivityRow) int {
		return int(a.Seq) - int(b.Seq)
	})
	w.view(func(v facts.View) {
		for _, c := range []struct {
			q    facts.ActivityQuery
			want []facts.ActivityRow
		}{
			{facts.ActivityQuery{Limit: 100}, all},
			{facts.ActivityQuery{Limit: 3}, all[6:]},
			{facts.ActivityQuery{After: 2, Limit: 3}, all[2:5]},
			{facts.ActivityQuery{Before: 6, Limit: 3}, all[2:5]},
			{facts.ActivityQuery{After: 9, Limit: 3}, nil},
			{facts.ActivityQuery{Before: 1, Limit: 3}, nil},
			{facts.ActivityQuery{Timeline: true, Limit: 100}, timeline},
			{facts.ActivityQuery{Timeline: true, Limit: 2}, timeline[1:]},
			{facts.ActivityQuery{Timeline: true, After: 2, Limit: 1}, timeline[1:2]},
			{facts.ActivityQuery{Timeline: true, Before: 8, Limit: 1}, timeline[1:2]},
			{facts.ActivityQuery{Limit: -1}, nil},
		} {
			c.q.Scope = scope
			got, err := v.Activities(w.Context(), c.q)
			w.ok(err)
			w.same(fmt.Sprintf("activities %+v", c.q), got, c.want)
		}
		got, err := v.Messages(w.Context(), facts.MessageQuery{Scope: scope, Limit: 100})
		w.ok(err)
		w.same("messages", got, messages)
	})
}

func testActivityOperations(_ *testing.T, w *world) {
	scope, actor, other := w.scope(), w.member(), w.member()
	a := activityRow(scope, 1, "a")
	a.Actor, a.Op.Actor = actor, actor
	bare := activityRow(scope, 2, "b")
	bare.Actor, bare.Op, bare.OpDigest = other, facts.OpKey{}, facts.Digest{}
	w.write(&facts.Changes{
		Activities: []facts.ActivityRow{a, bare},
		Operations: []facts.OperationRow{{
			OpKey: facts.OpKey{Workspace: w.key, Actor: other, ID: "x"}, Digest: facts.Digest{1},
		}},
	})
	w.inTx(func(tx facts.Tx) {
		wrong := a.Op
		wrong.ID = "other"
		foreign := a.Op
		foreign.Actor = other
		got, err := tx.ActivitiesByOp(w.Context(), []facts.OpKey{wrong, a.Op, foreign})
		w.ok(err)
		w.same("by operation", got, []facts.ActivityRow{a})
		have, err := tx.WithReceipts(w.Context(), []readstate.MemberKey{other, w.member(), actor})
		w.ok(err)
		slices.SortFunc(have, func(a, b facts.Receipted) int { return int(a.Actor) - int(b.Actor) })
		w.same("actors with receipts", have, []facts.Receipted{
			{Actor: actor, Activities: true}, {Actor: other, Operations: true},
		})
	})
}

func testActivityPayloads(_ *testing.T, w *world) {
	scope, actor := w.scope(), w.member()
	var rows []facts.ActivityRow
	var places []facts.ActivityPlace
	for seq := readstate.Seq(1); seq <= 5; seq++ {
		a := activityRow(scope, seq, fmt.Sprint(seq))
		a.Op.Actor = 0
		a.Op, a.OpDigest = facts.OpKey{}, facts.Digest{}
		switch {
		case seq == 2:
			a.Payload = nil
		case seq != 4: // which is somebody else's
			a.Actor = actor
			places = append(places, a.ActivityPlace)
		}
		rows = append(rows, a)
	}
	w.write(&facts.Changes{Activities: rows})
	left := func(limit int) (got []facts.ActivityPlace) {
		w.inTx(func(tx facts.Tx) {
			var err error
			got, err = tx.ActivityPayloads(w.Context(), actor, limit)
			w.ok(err)
		})
		return got
	}
	w.same("two", left(2), places[:2])
	w.write(&facts.Changes{ClearedActivities: places[:2]})
	w.same("the rest", left(9), places[2:])
	rows[0].Payload, rows[2].Payload = nil, nil
	w.view(func(v facts.View) {
		got, err := v.Activities(w.Context(), facts.ActivityQuery{Scope: scope, Limit: 9})
		w.ok(err)
		w.same("activities", got, rows)
	})
}

// testActivitySeeks compares every answer with looking at all activities.
func testActivitySeeks(_ *testing.T, w *world) {
	rng := rand.New(rand.NewPCG(5, 5))
	scope, neighbour := w.scope(), w.scope()
	members := []readstate.MemberKey{w.member(), w.member(), w.member()}
	var rows []facts.ActivityRow
	var targets []facts.ActivityTargetRow
	heads := map[readstate.MemberKey]uint64{}
	var signal uint64
	revision := readstate.Revision(0)
	const n = 60
	for seq := readstate.Seq(1); seq <= n; seq++ {
		a := facts.ActivityRow{
			ActivityPlace: facts.ActivityPlace{Scope: scope, Seq: seq}, ID: fmt.Sprint(seq), Type: "x",
			Actor: members[rng.IntN(3)],
		}
		switch rng.IntN(3) {
		case 0:
			revision++
			a.Revision = revision
		case 1:
			signal++
			heads[a.Actor]++
			a.HighSignal, a.SignalRank, a.ActorRank = true, signal, heads[a.Actor]
			for _, m := range members {
				if m != a.Actor && rng.IntN(2) == 0 {
					a.Recipients = append(a.Recipients, m)
					targets = append(targets, facts.ActivityTargetRow{
						RowKey: facts.RowKey{Scope: scope, Member: m}, Seq: seq, Actor: a.Actor,
					})
				}
			}
		}
		rows = append(rows, a)
		next := activityRow(neighbour, seq, a.ID)
		next.Op, next.OpDigest, next.Revision = facts.OpKey{}, facts.Digest{}, 0
		rows = append(rows, next)
	}
	w.write(&facts.Changes{Activities: rows, ActivityTargets: targets})
	w.view(func(v facts.View) {
		for low := readstate.Seq(0); low <= n; low += 7 {
			for high := low; high <= n+1; high += 3 {
				for _, m := range members {
					key := facts.RowKey{Scope: scope, Member: m}
					got, err := v.ActivityAt(w.Context(), key, low, high)
					w.ok(err)
					w.same(fmt.Sprintf("of %d in (%d, %d]", m, low, high), got,
						activityAt(rows, key, low, high))
				}
			}
		}
		for r := readstate.Revision(0); r <= revision+1; r++ {
			var want readstate.Seq
			for _, a := range rows {
				if a.Scope == scope && a.Revision > 0 && a.Revision <= r {
					want = a.Seq
				}
			}
			got, err := v.PairedActivity(w.Context(), scope, r)
			w.ok(err)
			w.same(fmt.Sprint("paired with ", r), got, want)
		}
	})
}

func activityAt(
	rows []facts.ActivityRow, key facts.RowKey, low, high readstate.Seq,
) (c readstate.ActivityCrossed) {
	for _, a := range rows {
		if a.Scope != key.Scope || a.Seq > high {
			continue
		}
		if a.HighSignal {
			c.Signal = a.SignalRank
			if a.Actor == key.Member {
				c.Actor = a.ActorRank
			}
		}
		if a.Seq > low && slices.Contains(a.Recipients, key.Member) {
			c.Targets++
		}
	}
	return c
}

func testWatchers(_ *testing.T, w *world) {
	a, b, none := w.scope(), w.scope(), w.scope()
	var want []facts.RowKey
	c := &facts.Changes{}
	for i := range 6 {
		row := stateRow(a, w.member())
		if i == 5 {
			row.Scope = b
		}
		row.Row.Joined = i%2 == 0
		row.Row.Follow = []readstate.Follow{
			readstate.FollowExplicit, readstate.FollowExplicit, readstate.FollowStopped,
			readstate.FollowAutomatic, readstate.FollowExplicit, readstate.FollowExplicit,
		}[i]
		if row.Row.Follow == readstate.FollowExplicit {
			want = append(want, row.RowKey)
		}
		c.States = append(c.States, row)
	}
	w.write(c)
	check := func() {
		w.Helper()
		w.inTx(func(tx facts.Tx) {
			got, err := tx.Watchers(w.Context(), []readstate.ScopeKey{b, none, a})
			w.ok(err)
			w.same("watchers", got, want)
		})
	}
	check()
	// Whoever is gone watches nothing.
	w.write(&facts.Changes{GoneStates: want[:1]})
	want = want[1:]
	check()
}

func testJoined(_ *testing.T, w *world) {
	a, b, none := w.scope(), w.scope(), w.scope()
	in := map[readstate.ScopeKey][]facts.RowKey{}
	c := &facts.Changes{}
	for i := range 40 {
		row := stateRow(a, w.member())
		if i%4 == 0 {
			row.Scope = b
		}
		if row.Row.Joined = i%3 != 0; row.Row.Joined {
			in[row.Scope] = append(in[row.Scope], row.RowKey)
		}
		c.States = append(c.States, row)
	}
	w.write(c)
	w.inTx(func(tx facts.Tx) {
		for limit := range 30 {
			var want []facts.RowKey
			for _, s := range []readstate.ScopeKey{a, b} {
				want = append(want, in[s][:min(limit, len(in[s]))]...)
			}
			got, err := tx.Joined(w.Context(), []readstate.ScopeKey{none, b, a}, limit)
			w.ok(err)
			w.same(fmt.Sprintf("joined, at most %d", limit), byKey(got), byKey(want))
		}
	})
}

// conversation is a member's row in a scope that they have joined and see, with its conversation.
func conversation(
	c *facts.Changes, s facts.ScopeRow, m readstate.MemberKey, at int64,
) facts.Conversation {
	row := stateRow(s.Info.Key, m)
	c.States = append(c.States, row)
	talk := facts.ConversationRow{
		RowKey: row.RowKey, Kind: s.Info.Type, SortAt: at, MessageSeq: 3, ActivitySeq: 4,
		UpdatedLSN: 5,
	}
	c.Conversations = append(c.Conversations, talk)
	return facts.Conversation{ConversationRow: talk, ScopeRow: s}
}

func testConversations(_ *testing.T, w *world) {
	me, other := w.member(), w.member()
	task := scopeRow(w.scope(), "task", readstate.Task)
	dm := scopeRow(w.scope(), "dm", readstate.DM)
	left := scopeRow(w.scope(), "left", readstate.DM)
	hidden := scopeRow(w.scope(), "hidden", readstate.Task)
	c := &facts.Changes{Scopes: []facts.ScopeRow{task, dm, left, hidden}}
	first, second := conversation(c, task, me, 50), conversation(c, dm, me, 40)
	theirs := conversation(c, dm, other, 70)
	conversation(c, left, me, 60)
	c.States[len(c.States)-1].Row.Joined = false
	conversation(c, hidden, me, 60)
	c.States[len(c.States)-1].Row.Visible = false
	w.write(c)
	page := func(m readstate.MemberKey, kind readstate.ScopeType) (got []facts.Conversation) {
		w.Helper()
		w.view(func(v facts.View) {
			var err error
			got, err = v.ConversationPage(w.Context(), facts.ConversationQuery{
				Member: m, Kind: kind, Limit: 10,
			})
			w.ok(err)
		})
		return got
	}
	w.same("all of mine", page(me, 0), []facts.Conversation{first, second})
	w.same("my tasks", page(me, readstate.Task), []facts.Conversation{first})
	w.same("my dms", page(me, readstate.DM), []facts.Conversation{second})
	w.same("of another", page(other, 0), []facts.Conversation{theirs})
	// The row is one, however often anything happens, and goes with its member's.
	second.SortAt, second.MessageSeq, second.ActivitySeq, second.UpdatedLSN = 55, 9, 8, 7
	w.write(&facts.Changes{Conversations: []facts.ConversationRow{second.ConversationRow}})
	w.same("touched", page(me, 0), []facts.Conversation{second, first})
	w.write(&facts.Changes{GoneStates: []facts.RowKey{first.RowKey}})
	w.write(&facts.Changes{States: []facts.StateRow{stateRow(first.Scope, me)}})
	w.same("gone", page(me, 0), []facts.Conversation{second})
	w.same("of another, still", page(other, 0), []facts.Conversation{theirs})
}

func testConversationRandom(_ *testing.T, w *world) {
	rng := rand.New(rand.NewPCG(6, 6))
	me := w.member()
	c := &facts.Changes{}
	var all []facts.Conversation
	for i := range 40 {
		t := []readstate.ScopeType{readstate.Task, readstate.DM}[rng.IntN(2)]
		s := scopeRow(w.scope(), fmt.Sprint("s", i), t)
		c.Scopes = append(c.Scopes, s)
		all = append(all, conversation(c, s, me, int64(rng.IntN(8)))) // ties, also at zero
	}
	w.write(c)
	slices.SortFunc(all, func(a, b facts.Conversation) int {
		if a.SortAt != b.SortAt {
			return int(b.SortAt - a.SortAt)
		}
		return int(b.Scope) - int(a.Scope)
	})
	for _, kind := range []readstate.ScopeType{0, readstate.Task, readstate.DM} {
		want := slices.DeleteFunc(slices.Clone(all), func(c facts.Conversation) bool {
			return kind != 0 && c.Kind != kind
		})
		var got []facts.Conversation
		q := facts.ConversationQuery{Member: me, Kind: kind, Limit: 7}
		for {
			var page []facts.Conversation
			w.view(func(v facts.View) {
				var err error
				page, err = v.ConversationPage(w.Context(), q)
				w.ok(err)
			})
			got = append(got, page...)
			if len(page) < q.Limit {
				break
			}
			q.Before = page[len(page)-1].Mark()
		}
		w.same(fmt.Sprint("pages of kind ", kind), got, want)
	}
}
