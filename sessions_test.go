package tidemark_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// A merge takes a row away of which nothing is left in the facts. A stream from before it is not
// resumed after a restart: it would not be told that the session is gone.
func TestStreamsFromBeforeAMergeAreNotResumed(t *testing.T) {
	ctx := t.Context()
	opts := tidemark.Options{Facts: "sqlite:" + filepath.Join(t.TempDir(), "facts.db")}
	e, err := tidemark.Open(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.CreateWorkspace(ctx, "W", "Workspace"); err != nil {
		t.Fatal(err)
	}
	var r facts.SessionReceipt
	for i := range 3 {
		title := fmt.Sprint("session ", i)
		r, err = e.Workspace("W").PutSession(ctx, facts.PutSession{
			Owner: "A", ID: fmt.Sprint("s", i), Title: &title, Create: true, CreateOwner: true,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := r.LSN
	r, err = e.Workspace("W").MergeSession(ctx, facts.MergeSession{
		Owner: "A", From: "s0", Into: "s1", OpID: "merge",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = tidemark.Open(ctx, opts); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for since, whole := range map[readstate.LSN]bool{before: true, r.LSN: false} {
		c, err := e.Workspace("W").Changed(ctx, "A", since)
		if err != nil || c.Whole != whole {
			t.Errorf("after commit %d: whole %t, want %t, %v", since, c.Whole, whole, err)
		}
	}
}
