package ownership_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/dbtest"
	"github.com/tidemark-im/tidemark/ownership"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// node is an engine on a store that it shares, with its keeper at work.
type node struct {
	*tidemark.Engine
	keeper *ownership.Keeper
	store  *sqlstore.Store
	stop   context.CancelFunc
	ended  chan error
}

const ttl = 1500 * time.Millisecond

func openNode(t *testing.T, name, database string) *node {
	t.Helper()
	n := &node{ended: make(chan error, 1)}
	store, err := sqlstore.Open(t.Context(), database, sqlstore.Options{Unsafe: true, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	n.store = store
	n.Engine, err = tidemark.OpenStore(t.Context(), store, tidemark.Options{
		Shared: &tidemark.Shared{Serving: func() bool { return n.keeper.Serving() }},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.keeper, err = ownership.New(ownership.Options{
		Registry: store.Registry(), Engine: n.Engine, TTL: ttl,
		Self: facts.NodeInfo{Node: name, Address: "http://" + name},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() { n.ended <- n.keeper.Run(ctx) }()
	return n
}

func (n *node) close(t *testing.T) {
	t.Helper()
	n.stop()
	<-n.ended
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// trial is a few nodes and what they have acknowledged.
type trial struct {
	t     *testing.T
	nodes []*node
	acked map[readstate.WorkspaceID]int
	ops   int
}

// post has whoever owns a workspace post in it, until somebody has.
func (r *trial) post(w readstate.WorkspaceID) (by *node) {
	r.t.Helper()
	r.ops++
	op := facts.Post{
		Scope: "c", OpID: fmt.Sprint("op", r.ops), Author: "A", Payload: []byte(`"x"`),
		By: facts.Actor{Trusted: true},
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		for _, n := range r.nodes {
			_, err := n.Workspace(w).Post(r.t.Context(), op)
			switch {
			case err == nil:
				r.acked[w]++
				return n
			case !errors.Is(err, facts.ErrNotOwner) && !errors.Is(err, facts.ErrUnavailable):
				r.t.Fatal(err)
			}
		}
	}
	r.t.Fatalf("nobody takes a message in %s", w)
	return nil
}

// judge asks for B's counts wherever a workspace is served: one node answers, right. For a moment none
// may, while the workspace goes from one to another.
func (r *trial) judge() {
	r.t.Helper()
	for w, want := range r.acked {
		answers := 0
		for deadline := time.Now().Add(20 * time.Second); answers == 0 && time.Now().Before(deadline); {
			for _, n := range r.nodes {
				answers += r.answers(n, w, want)
			}
		}
		if answers != 1 {
			r.t.Errorf("%d nodes answer for %s", answers, w)
		}
	}
}

// answers is one where a node answers for a workspace, which has to be right, and none where it does not.
func (r *trial) answers(n *node, w readstate.WorkspaceID, want int) int {
	r.t.Helper()
	row, err := n.Workspace(w).Row(r.t.Context(), "B", "c")
	switch {
	case err == nil && row.State == unread.Ready:
		if int(row.Values.Unread) != want {
			r.t.Errorf("%s has %d unread, not %d", w, row.Values.Unread, want)
		}
		return 1
	case err != nil && !errors.Is(err, facts.ErrNotOwner) && !errors.Is(err, facts.ErrUnavailable) &&
		!errors.Is(err, unread.ErrNoWorkspace) && !errors.Is(err, unread.ErrNotServable):
		r.t.Error(err)
	}
	away := n.Serves(w) != nil
	dot, state := n.Workspace(w).HasUnread("B")
	if away && n.Serves(w) != nil && (dot || state != unread.Unavailable) {
		r.t.Errorf("%s shows a dot, %s, where it is not served", w, state)
	}
	return 0
}

// Nodes on one database share its workspaces. One that stops without a word is replaced once its lease
// has ended; it answers nothing from then on, and nothing that anybody acknowledged is missing.
//
// covers: RT-007 RT-013 RT-014
func TestNodesShareADatabase(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			database := k.New(t)
			prepare(t, database.Facts)
			r := &trial{t: t, acked: map[readstate.WorkspaceID]int{}}
			for i := range 3 {
				n := openNode(t, fmt.Sprint("n", i), database.Facts)
				defer n.close(t)
				r.nodes = append(r.nodes, n)
			}
			busy := map[*node]int{}
			for range 3 {
				for i := range spaces {
					busy[r.post(space(i))]++
				}
			}
			r.judge()
			victim, most := r.nodes[0], 0
			for n, posts := range busy {
				if posts > most {
					victim, most = n, posts
				}
			}
			victim.stop()
			if err := <-victim.ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the keeper ended with %v", err)
			}
			victim.ended <- nil // for close
			for i := range spaces {
				if r.post(space(i)) == victim {
					t.Errorf("a node without a lease has taken a message in %s", space(i))
				}
			}
			r.judge()
		})
	}
}

const spaces = 6

func space(i int) readstate.WorkspaceID { return readstate.WorkspaceID(fmt.Sprint("w", i)) }

// prepare makes the workspaces, each with a channel of A and B, as one process that owns everything.
func prepare(t *testing.T, database string) {
	t.Helper()
	e, err := tidemark.Open(t.Context(), tidemark.Options{Facts: database})
	if err != nil {
		t.Fatal(err)
	}
	for i := range spaces {
		_, err := e.CreateWorkspace(t.Context(), space(i), "")
		b := e.Workspace(space(i)).Batch()
		b.PutScope(facts.PutScope{ID: "c", Type: readstate.Channel})
		for _, m := range []readstate.MemberID{"A", "B"} {
			b.PutMembership(facts.PutMembership{Scope: "c", Member: m, CreateMember: true})
		}
		if _, runErr := b.Run(t.Context()); err != nil || runErr != nil {
			t.Fatal(err, runErr)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
