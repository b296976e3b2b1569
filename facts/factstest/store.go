package factstest

import (
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// storePart is one thing that a store has to do.
type storePart struct {
	name string
	run  func(t *testing.T, w *world)
}

// TestStore is what every facts.Store has to pass. open returns a new empty store; the suite
// closes it.
func TestStore(t *testing.T, open func(t *testing.T) facts.Store) { testStore(t, open, 1) }

// TestFarStore is TestStore for a store where every statement is a journey. What is repeated with
// other random content is repeated a quarter as often, but in the soak.
func TestFarStore(t *testing.T, open func(t *testing.T) facts.Store) { testStore(t, open, farShare()) }

// farShare is what part of the usual repetitions is left out for far stores.
func farShare() int {
	if os.Getenv("TIDEMARK_SOAK") != "" {
		return 1
	}
	return 4
}

func testStore(t *testing.T, open func(t *testing.T) facts.Store, share int) {
	parts := []storePart{
		{"Workspaces", testWorkspaces},
		{"Members", testMembers},
		{"Scopes", testScopes},
		{"States", testStates},
		{"Settings", testSettings},
		{"Writers", testWriters},
		{"Messages", testMessages},
		{"MessageUpdates", testMessageUpdates},
		{"Operations", testOperations},
		{"Blocks", testBlocks},
		{"MemberBlocks", testMemberBlocks},
		{"Expiry", testExpiry},
		{"Payloads", testPayloads},
		{"Erasures", testErasures},
		{"Trim", testTrim},
		{"HostileIDs", testHostileIDs},
		{"NoKeys", testNoKeys},
		{"ManyKeys", testManyKeys},
		{"WriteThenLoad", testWriteThenLoad},
		{"Fence", testFence},
		{"TakeOver", testTakeOver},
		{"Rollback", testRollback},
		{"ReadBack", testReadBack},
		{"EndedTx", testEndedTx},
		{"EndedContext", testEndedContext},
		{"Snapshot", testSnapshot},
		{"ClosedStore", testClosedStore},
		{"Lists", testLists},
		{"RevisionThrough", testRevisionThrough},
		{"Seeks", testSeeks},
		{"Page", testPage},
		{"PageCursor", testPageCursor},
		{"PageOnly", testPageOnly},
		{"PageRandom", testPageRandom},
	}
	for _, p := range append(parts, taskParts...) {
		t.Run(p.name, func(t *testing.T) {
			w := newWorld(t, open(t))
			w.share = share
			p.run(t, w)
		})
	}
}

// world is a store with one workspace, and a neighbour with the same ids that nothing may leak
// from.
type world struct {
	*testing.T
	store facts.Store
	key   facts.WorkspaceKey
	fence facts.Fence
	last  uint32 // highest local number given out
	share int    // one of so many repetitions is made
}

// turns returns how many of n repetitions are made.
func (w *world) turns(n int) int { return (n + w.share - 1) / w.share }

const (
	homeKey      facts.WorkspaceKey = 7
	neighbourKey facts.WorkspaceKey = 8
)

func newWorld(t *testing.T, store facts.Store) *world {
	t.Helper()
	w := &world{T: t, store: store, key: homeKey, fence: facts.Fence{Term: 3, LSN: 10}}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	w.change(func(tx facts.Tx) {
		w.ok(tx.Write(t.Context(), &facts.Changes{NewWorkspaces: []facts.WorkspaceRow{
			{Key: homeKey, ID: "home", Name: "Home", Term: 3, LSN: 10},
			{Key: neighbourKey, ID: "next", Name: "Next", Term: 1, LSN: 5},
		}}))
	})
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// same compares answers; a missing list equals an empty one.
func (w *world) same(what string, got, want any) {
	w.Helper()
	if reflect.DeepEqual(got, want) {
		return // much faster than the comparison that explains
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// change runs f in a transaction and commits it.
func (w *world) change(f func(tx facts.Tx)) {
	w.Helper()
	tx, err := w.store.Begin(w.Context())
	w.ok(err)
	defer tx.Rollback()
	f(tx)
	w.ok(tx.Commit(w.Context()))
}

// write commits changes under the fence.
func (w *world) write(c *facts.Changes) {
	w.Helper()
	w.change(func(tx facts.Tx) {
		ok, err := tx.Advance(w.Context(), w.key, w.fence)
		w.ok(err)
		if !ok {
			w.Fatal("fence refused its owner")
		}
		w.ok(tx.Write(w.Context(), c))
	})
	w.fence.LSN++
}

// inTx runs f in a transaction that changes nothing.
func (w *world) inTx(f func(tx facts.Tx)) {
	w.Helper()
	tx, err := w.store.Begin(w.Context())
	w.ok(err)
	f(tx)
	w.ok(tx.Rollback())
}

func (w *world) view(f func(v facts.View)) {
	w.Helper()
	v, err := w.store.View(w.Context())
	w.ok(err)
	f(v)
	w.ok(v.Close())
}

func (w *world) local() uint32 {
	w.last++
	return w.last
}

func (w *world) member() readstate.MemberKey { return facts.MemberKeyOf(w.key, w.local()) }
func (w *world) scope() readstate.ScopeKey   { return facts.ScopeKeyOf(w.key, w.local()) }

// memberRow is a member with every column set.
func memberRow(key readstate.MemberKey, id string) facts.MemberChange {
	return facts.MemberChange{
		MemberInfo: readstate.MemberInfo{
			Key: key, ID: readstate.MemberID(id), Agent: true, Active: true,
			DisplayName: "Ann \x00 \"B\" 'c' 🦭", Avatar: "https://example.org/a?b=%00",
			Badge: readstate.DisplayAttention, Private: true, MemberLSN: 12, Erased: true,
		},
		CreatedAt: 1_700_000_000_123,
	}
}

// scopeRow is a scope with every column set that has no meaning to the store.
func scopeRow(key readstate.ScopeKey, id string, t readstate.ScopeType) facts.ScopeRow {
	return facts.ScopeRow{
		Info: readstate.ScopeInfo{
			Key: key, ID: readstate.ScopeID(id), Type: t, Name: "general 'x'",
			RootMessage: "root", History: readstate.HistoryShared, Archived: true,
			Tags: []string{"a", "", "<b>&\u2028"}, Active: true, Thinking: true,
		},
		Ranks: readstate.ScopeRanks{
			LatestSeq: 9, Head: 8, Floor: 2, LatestActivity: 4, SignalHead: 3, LastLSN: 11,
			Latest: readstate.Latest{ID: "m9", At: 99}, LastActivityAt: 100, Replies: 5,
		},
		FloorSeq: 1, RosterGeneration: 6, Owner: facts.MemberKeyOf(homeKey, 77), CreatedAt: 55,
	}
}

// stateRow is a row in which every number is another one.
func stateRow(scope readstate.ScopeKey, member readstate.MemberKey) facts.StateRow {
	return facts.StateRow{
		RowKey: facts.RowKey{Scope: scope, Member: member},
		Row: readstate.Row{
			Joined: true, Visible: true, Epoch: 2, ParentEpoch: 3, Follow: readstate.FollowStopped,
			Notification: readstate.Notification{Level: readstate.LevelMentions, Until: 1 << 41},
			Effective:    4, Read: 5,
			Manual: readstate.Manual{Set: true, From: 6, Version: 7},
			Point: readstate.Point{
				E: 8, AuthorRank: 9, PrincipalRank: 10, OwnRemoved: 11, OwnEveryone: 12, Direct: 13,
				Targets: 14,
			},
			Activity: readstate.ActivityPoint{Read: 15, SignalAt: 16, ActorAt: 17, Targets: 18},
		},
		MembershipLSN: 19, NotificationLSN: 20, StateLSN: 21,
	}
}

// messageRow is a message with every column set.
func messageRow(scope readstate.ScopeKey, seq readstate.Seq, id string) facts.MessageRow {
	author := facts.MemberKeyOf(homeKey, 1)
	return facts.MessageRow{
		Place: facts.Place{Scope: scope, Seq: seq}, Revision: readstate.Revision(seq), ID: id,
		Kind: "text", Author: author, Principal: facts.MemberKeyOf(homeKey, 2), AuthorRank: 3,
		PrincipalRank: 4,
		Named: []readstate.MemberKey{
			facts.MemberKeyOf(homeKey, 1<<32-1), facts.MemberKeyOf(homeKey, 1),
		},
		Recipients: []readstate.MemberKey{facts.MemberKeyOf(homeKey, 300)}, Everyone: true,
		Live: true, Silent: true, ReplyTo: "r'", Peer: facts.Place{Scope: scope + 1, Seq: 2},
		PeerRevision: 2,
		Thread:       scope + 1, Op: facts.OpKey{Workspace: homeKey, Actor: author, ID: "op " + id},
		OpDigest: facts.Digest{1, 2, 15: 255}, LocalID: "l " + id, ExpiresAt: 1 << 42,
		CreatedAt: 1 << 40, EditedAt: 1 << 41, Payload: []byte("{\"x\":\"\\u0000\"}"),
	}
}
