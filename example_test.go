package tidemark_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// An engine in a program of one's own: append, ask, read, ask again.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	eng, err := tidemark.Open(ctx, tidemark.Options{Facts: "sqlite:" + filepath.Join(dir, "unread.db")})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	eng.CreateWorkspace(ctx, "acme", "Acme")
	ws := eng.Workspace("acme")
	ws.PutScope(ctx, facts.PutScope{ID: "general", Type: readstate.Channel})
	for _, name := range []readstate.MemberID{"ann", "bob"} {
		ws.PutMembership(ctx, facts.PutMembership{Scope: "general", Member: name, CreateMember: true})
	}
	post, _ := ws.Post(ctx, facts.Post{Scope: "general", OpID: "1", Author: "ann",
		Mentions: []readstate.MemberID{"bob"}})
	row, _ := ws.Row(ctx, "bob", "general")
	fmt.Println("unread", row.Values.Unread, "attention", row.Values.Attention)
	state, _ := ws.MarkRead(ctx, facts.MarkRead{Scope: "general", Member: "bob", Revision: &post.Revision})
	fmt.Println("unread", state.Row.Values.Unread)
	// Output:
	// unread 1 attention 1
	// unread 0
}

// A watch tells what changed for some members, whole values, never more than one per scope.
func ExampleWorkspace_Watch() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	eng, err := tidemark.Open(ctx, tidemark.Options{Facts: "sqlite:" + filepath.Join(dir, "unread.db")})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	eng.CreateWorkspace(ctx, "acme", "Acme")
	ws := eng.Workspace("acme")
	ws.PutScope(ctx, facts.PutScope{ID: "general", Type: readstate.Channel})
	for _, name := range []readstate.MemberID{"ann", "bob"} {
		ws.PutMembership(ctx, facts.PutMembership{Scope: "general", Member: name, CreateMember: true})
	}

	watch, err := ws.Watch("bob")
	if err != nil {
		log.Fatal(err)
	}
	defer watch.Close()
	ws.Unread(ctx, "bob", "", 100) // where the watch starts from
	ws.Post(ctx, facts.Post{Scope: "general", OpID: "1", Author: "ann"})
	ws.Post(ctx, facts.Post{Scope: "general", OpID: "2", Author: "ann"})
	<-watch.Ready()
	for _, d := range watch.Next(10) {
		fmt.Println(d.Member, d.Scope, "unread", d.Row.Values.Unread, "badge", d.Summary.Badge.Messages)
	}
	// Output:
	// bob general unread 2 badge 2
}
