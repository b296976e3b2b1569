package tidemark_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/intake"
)

// A program that keeps its messages elsewhere tells an engine of them, and has its read states
// from memory. What was flushed comes back after a crash as a hint; a cursor at the head makes it
// exact again.
func ExampleOpen_snapshots() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	open := func() (*tidemark.Engine, *tidemark.Workspace) {
		eng, err := tidemark.Open(ctx, tidemark.Options{
			Snapshots: &tidemark.Snapshots{Store: "sqlite:" + filepath.Join(dir, "snapshots.db")},
		})
		if err != nil {
			log.Fatal(err)
		}
		eng.Intake().Open("acme")
		return eng, eng.Workspace("acme")
	}
	show := func(eng *tidemark.Engine, ws *tidemark.Workspace) {
		eng.Intake().Settle(ctx, "acme") // until everything told is taken in
		row, err := ws.Row(ctx, "bob", "general")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("unread", row.Values.Unread, row.State)
	}
	message := func(r readstate.Revision) intake.Event {
		return intake.MessageStored{Scope: "general", Seq: readstate.Seq(r), Revision: r, Author: "ann"}
	}

	eng, ws := open()
	ws.Tell(
		intake.ScopeStateChanged{Scope: "general", Type: readstate.Channel},
		intake.MembershipChanged{Scope: "general", Member: "ann", Joined: true},
		intake.MembershipChanged{Scope: "general", Member: "bob", Joined: true},
		message(1), message(2),
	)
	show(eng, ws)
	eng.Intake().Flush(ctx) // the interval does this every 30 s
	ws.Tell(message(3))
	show(eng, ws)

	eng.Intake().Abandon() // as a crash does: the third message was not flushed
	eng.Close()
	eng, ws = open()
	defer eng.Close()
	show(eng, ws)
	ws.Tell(intake.ReadCursorAdvanced{Scope: "general", Member: "bob", Revision: 3, Head: 3})
	show(eng, ws)
	ws.Tell(message(4))
	show(eng, ws)
	// Output:
	// unread 2 ready
	// unread 3 ready
	// unread 2 snapshot_serving
	// unread 0 ready
	// unread 1 ready
}
