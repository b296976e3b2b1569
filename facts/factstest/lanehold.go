package factstest

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/tidemark-im/tidemark/facts"
)

// hold lets the next commit wait for the returned function, and end as it is told then.
func (f *faulty) hold(t *testing.T) (release func(end fault)) {
	ends := make(chan fault, 1)
	f.nextCommit(func(tx facts.Tx) error { return (<-ends)(f, tx) })
	t.Cleanup(func() { // of a test that failed before
		select {
		case ends <- committed:
		default:
		}
	})
	return func(end fault) { ends <- end }
}

// outcome is an answer that may not have come yet.
type outcome[R any] struct {
	done   bool
	result R
	err    error
}

// start runs an operation in the background and returns once everybody is blocked.
func start[R any](ctx context.Context, run func(context.Context) (R, error)) *outcome[R] {
	o := &outcome[R]{}
	go func() {
		o.result, o.err = run(ctx)
		o.done = true
	}()
	synctest.Wait()
	return o
}

// unread fails unless the durable rows give B this many unread messages in s1.
func (r *rig) unread(t *testing.T, want uint64) {
	t.Helper()
	view, err := r.store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	b, _, err := view.Member(t.Context(), r.key, "B")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Evaluate(t.Context(), view, r.key, b, 10, 0)
	if err != nil || got["s1"].Values.Unread != want {
		t.Fatalf("unread of B: %+v, %v; want %d", got["s1"].Values, err, want)
	}
}
