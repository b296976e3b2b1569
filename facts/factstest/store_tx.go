package factstest

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// testWriteThenLoad looks at every change before it is committed.
func testWriteThenLoad(_ *testing.T, w *world) {
	scope := scopeRow(w.scope(), "s", readstate.Channel)
	state := stateRow(scope.Info.Key, w.member())
	message := messageRow(scope.Info.Key, 1, "m")
	message.Author, message.Principal = state.Member, 0
	w.change(func(tx facts.Tx) {
		ctx := w.Context()
		w.ok(tx.Write(ctx, &facts.Changes{
			Scopes: []facts.ScopeRow{scope}, States: []facts.StateRow{state},
			NewMessages: []facts.MessageRow{message},
		}))
		scopes, err := tx.ScopesByID(ctx, w.key, []readstate.ScopeID{"s"})
		w.ok(err)
		w.same("scope", scopes, []facts.ScopeRow{scope})
		message.Live, message.Payload = false, nil
		state.Row.Read = 77
		w.ok(tx.Write(ctx, &facts.Changes{
			Messages: []facts.MessageRow{message}, States: []facts.StateRow{state},
		}))
		states, err := tx.States(ctx, []facts.RowKey{state.RowKey})
		w.ok(err)
		w.same("state", states, []facts.StateRow{state})
		crossed, err := tx.Crossed(ctx, state.RowKey, 0, 9)
		w.ok(err)
		w.same("crossed", crossed, readstate.Crossed{OwnRemoved: 1})
		latest, err := tx.Newest(ctx, scope.Info.Key)
		w.ok(err)
		w.same("newest", latest, readstate.Latest{})
	})
}

func (w *world) fences() map[facts.WorkspaceKey]facts.Fence {
	w.Helper()
	f, err := w.store.Fences(w.Context(), []facts.WorkspaceKey{w.key, neighbourKey, 99})
	w.ok(err)
	return f
}

func testFence(_ *testing.T, w *world) {
	ctx := w.Context()
	w.inTx(func(tx facts.Tx) {
		for _, from := range []facts.Fence{
			{Term: w.fence.Term + 1, LSN: w.fence.LSN}, {Term: w.fence.Term - 1, LSN: w.fence.LSN},
			{Term: w.fence.Term, LSN: w.fence.LSN + 1}, {Term: w.fence.Term, LSN: w.fence.LSN - 1},
		} {
			ok, err := tx.Advance(ctx, w.key, from)
			w.ok(err)
			w.same("advanced from another fence", ok, false)
		}
		ok, err := tx.Advance(ctx, 99, w.fence)
		w.ok(err)
		w.same("advanced an unknown workspace", ok, false)
		// A refused workspace leaves the others of the group alone.
		ok, err = tx.Advance(ctx, neighbourKey, facts.Fence{Term: 1, LSN: 5})
		w.ok(err)
		w.same("advanced the other", ok, true)
		ok, err = tx.Advance(ctx, neighbourKey, facts.Fence{Term: 1, LSN: 5})
		w.ok(err)
		w.same("advanced twice from one fence", ok, false)
	})
	w.write(&facts.Changes{})
	w.same("fences", w.fences(), map[facts.WorkspaceKey]facts.Fence{
		w.key: w.fence, neighbourKey: {Term: 1, LSN: 5},
	})
}

func testTakeOver(_ *testing.T, w *world) {
	old := w.fence
	rows, err := w.store.TakeOver(w.Context())
	w.ok(err)
	w.same("workspaces", rows, []facts.WorkspaceRow{
		{Key: w.key, ID: "home", Name: "Home", Term: old.Term + 1, LSN: old.LSN},
		{Key: neighbourKey, ID: "next", Name: "Next", Term: 2, LSN: 5},
	})
	w.inTx(func(tx facts.Tx) {
		ok, err := tx.Advance(w.Context(), w.key, old)
		w.ok(err)
		w.same("the former owner advanced", ok, false)
	})
	w.fence.Term++
	w.write(&facts.Changes{})
}

func testRollback(_ *testing.T, w *world) {
	ctx := w.Context()
	tx, err := w.store.Begin(ctx)
	w.ok(err)
	ok, err := tx.Advance(ctx, w.key, w.fence)
	w.ok(err)
	w.same("advanced", ok, true)
	w.ok(tx.Write(ctx, &facts.Changes{Members: []facts.MemberChange{memberRow(w.member(), "m")}}))
	w.ok(tx.Rollback())
	w.ok(tx.Rollback())
	w.same("fence", w.fences()[w.key], w.fence)
	w.view(func(v facts.View) {
		members, err := v.ListMembers(ctx, w.key, "", 10)
		w.ok(err)
		w.same("members", members, []readstate.MemberInfo(nil))
	})
	w.write(&facts.Changes{})
}

// testReadBack reads the fence back while a commit is in flight: the answer waits for it.
func testReadBack(_ *testing.T, w *world) {
	ctx := w.Context()
	tx, err := w.store.Begin(ctx)
	w.ok(err)
	ok, err := tx.Advance(ctx, w.key, w.fence)
	w.ok(err)
	w.same("advanced", ok, true)
	type answer struct {
		fences map[facts.WorkspaceKey]facts.Fence
		err    error
	}
	started, answers := make(chan struct{}), make(chan answer)
	go func() {
		close(started)
		f, err := w.store.Fences(ctx, []facts.WorkspaceKey{w.key})
		answers <- answer{f, err}
	}()
	<-started
	w.ok(tx.Commit(ctx))
	a := <-answers
	w.ok(a.err)
	w.same("fence", a.fences[w.key], facts.Fence{Term: w.fence.Term, LSN: w.fence.LSN + 1})
}

// testEndedTx uses a transaction after its end.
func testEndedTx(_ *testing.T, w *world) {
	ctx := w.Context()
	for _, end := range []func(tx facts.Tx) error{
		func(tx facts.Tx) error { return tx.Commit(ctx) },
		func(tx facts.Tx) error { return tx.Rollback() },
	} {
		tx, err := w.store.Begin(ctx)
		w.ok(err)
		w.ok(end(tx))
		w.ok(tx.Rollback())
		if _, err := tx.Advance(ctx, w.key, w.fence); !errors.Is(err, facts.ErrUnavailable) {
			w.Errorf("advance after the end: %v", err)
		}
		if err := tx.Write(ctx, &facts.Changes{ForgetReceiptsBefore: 1}); !errors.Is(err, facts.ErrUnavailable) {
			w.Errorf("write after the end: %v", err)
		}
		if err := tx.Commit(ctx); !errors.Is(err, facts.ErrAborted) {
			w.Errorf("commit after the end: %v", err)
		}
	}
	v, err := w.store.View(ctx)
	w.ok(err)
	w.ok(v.Close())
	w.ok(v.Close())
	if _, err := v.Workspaces(ctx); !errors.Is(err, facts.ErrUnavailable) {
		w.Errorf("answer of a closed view: %v", err)
	}
}

// testEndedContext gives up in the middle: nothing is committed, and the store goes on.
func testEndedContext(_ *testing.T, w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	tx, err := w.store.Begin(ctx)
	w.ok(err)
	ok, err := tx.Advance(ctx, w.key, w.fence)
	w.ok(err)
	w.same("advanced", ok, true)
	cancel()
	if err := tx.Commit(ctx); !errors.Is(err, facts.ErrAborted) {
		w.Errorf("commit with an ended context: %v", err)
	}
	if _, err := w.store.Begin(ctx); !errors.Is(err, context.Canceled) {
		w.Errorf("begin with an ended context: %v", err)
	}
	if _, err := w.store.View(ctx); !errors.Is(err, context.Canceled) {
		w.Errorf("view with an ended context: %v", err)
	}
	w.same("fence", w.fences()[w.key], w.fence)
	w.write(&facts.Changes{})
	v, err := w.store.View(w.Context())
	w.ok(err)
	if _, err := v.Workspaces(ctx); !errors.Is(err, context.Canceled) {
		w.Errorf("answer with an ended context: %v", err)
	}
	w.ok(v.Close())
	w.view(func(v facts.View) {
		_, err := v.Workspaces(w.Context())
		w.ok(err)
	})
}

// testSnapshot answers from one moment while a writer goes on.
func testSnapshot(_ *testing.T, w *world) {
	ctx := w.Context()
	row := stateRow(w.scope(), w.member())
	w.write(&facts.Changes{States: []facts.StateRow{row}})
	before := row
	v, err := w.store.View(ctx)
	w.ok(err)
	first, ok, err := v.Workspace(ctx, "home")
	w.ok(err)
	w.same("found", ok, true)
	for range 3 {
		row.Row.Read++
		w.write(&facts.Changes{States: []facts.StateRow{row}})
		again, _, err := v.Workspace(ctx, "home")
		w.ok(err)
		w.same("workspace in the view", again, first)
		got, _, err := v.State(ctx, row.RowKey)
		w.ok(err)
		w.same("row in the view", got, before)
		w.view(func(v facts.View) {
			got, _, err := v.State(ctx, row.RowKey)
			w.ok(err)
			w.same("row in a new view", got, row)
		})
	}
	tx, err := w.store.Begin(ctx)
	w.ok(err)
	staged := row
	staged.Row.Read = 1000
	w.ok(tx.Write(ctx, &facts.Changes{States: []facts.StateRow{staged}}))
	w.view(func(v facts.View) {
		got, _, err := v.State(ctx, row.RowKey)
		w.ok(err)
		w.same("row not yet committed", got, row)
	})
	w.ok(tx.Rollback())
	w.ok(v.Close())
}

// testClosedStore closes the store under a transaction and a view.
func testClosedStore(_ *testing.T, w *world) {
	ctx := w.Context()
	tx, err := w.store.Begin(ctx)
	w.ok(err)
	ok, err := tx.Advance(ctx, w.key, w.fence)
	w.ok(err)
	w.same("advanced", ok, true)
	v, err := w.store.View(ctx)
	w.ok(err)
	_, err = v.Workspaces(ctx)
	w.ok(err)
	w.ok(w.store.Close())
	w.ok(w.store.Close())
	if err := tx.Commit(ctx); err == nil {
		w.Error("a commit after the store closed")
	}
	if _, err := v.Workspaces(ctx); !errors.Is(err, facts.ErrUnavailable) {
		w.Errorf("answer after the store closed: %v", err)
	}
	_ = tx.Rollback() // only must not hang
	_ = v.Close()     // likewise
	if _, err := w.store.Begin(ctx); !errors.Is(err, facts.ErrUnavailable) {
		w.Errorf("begin after the store closed: %v", err)
	}
	if _, err := w.store.View(ctx); !errors.Is(err, facts.ErrUnavailable) {
		w.Errorf("view after the store closed: %v", err)
	}
}
