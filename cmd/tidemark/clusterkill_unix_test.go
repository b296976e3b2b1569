package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/dbtest"
	"github.com/tidemark-im/tidemark/readstate"
)

// registry is the one that the nodes of a crew meet at.
func (c *crew) registry() facts.Registry {
	c.t.Helper()
	store, err := sqlstore.Open(c.t.Context(), strings.TrimPrefix(c.facts, "--facts="), sqlstore.Options{Shared: true})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { store.Close() })
	return store.Registry()
}

// signal sends a signal to a node.
func (c *crew) signal(node string, s syscall.Signal) {
	c.t.Helper()
	if err := c.nodes[node].cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// taken waits until another node owns a workspace at a higher term.
func (c *crew) taken(w, from string, term uint64) (node string) {
	c.t.Helper()
	c.await("another owner of "+w, func() bool {
		next, later := c.owner(w)
		node = next
		return next != "" && next != from && later > term
	})
	return node
}

// posted posts until the owner acknowledges, as a client does.
func (c *crew) posted(w, op string) {
	c.t.Helper()
	c.await("a message is taken", func() bool {
		code, _ := c.post(c.central.url, w, op)
		return code == 201 || code == 200
	})
}

// counted: alice has so many unread messages, whoever is asked for the owner.
func (c *crew) counted(w string, want int) {
	c.t.Helper()
	c.await(fmt.Sprint(want, " unread"), func() bool {
		code, text := c.unread(c.central.url, w)
		if code == 200 && strings.Contains(text, `"state":"ready"`) && !strings.Contains(text, fmt.Sprintf(`"messages":%d,`, want)) {
			c.t.Fatalf("unread is not %d: %s", want, text)
		}
		return code == 200 && strings.Contains(text, fmt.Sprintf(`"messages":%d,`, want))
	})
}

// A node that is killed is replaced before two leases of the same length, begun at its end, could have
// ended one after the other by the store's clock; nothing that it acknowledged is lost.
//
// covers: RT-008 RT-010
func TestClusterOwnerIsKilled(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			c := newCrew(t, k.New(t).Facts, "n1", "n2")
			c.start("n3", "--workspaces", "elsewhere,nowhere")
			c.found("w", "v", "elsewhere")
			registry := c.registry()
			for i := range 3 {
				c.posted("w", fmt.Sprint("before", i))
			}
			node, term := c.owner("w")
			c.signal(node, syscall.SIGKILL)
			lease, err := time.ParseDuration(clusterLease)
			if err != nil {
				t.Fatal(err)
			}
			// A lease that nobody renews measures the time of the store.
			_, err = registry.Enroll(t.Context(), facts.NodeInfo{Node: "measure", Only: []readstate.WorkspaceID{}}, 2*lease)
			if err != nil {
				t.Fatal(err)
			}
			next := c.taken("w", node, term)
			s, err := registry.Survey(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range s.Nodes {
				if n.Node == "measure" && n.Left <= 0 {
					t.Errorf("taken over only %v after two leases", -n.Left)
				}
			}
			if next == "n3" {
				t.Error("n3 owns what it may not")
			}
			c.posted("w", "after")
			c.posted("w", "before1") // once more
			c.counted("w", 4)
			c.start(node) // under its old name, with nothing
			c.await("all is owned", func() bool {
				owned := 0
				for _, w := range []string{"w", "v", "elsewhere"} {
					if n, _ := c.owner(w); n != "" {
						owned++
					}
				}
				return owned == 3
			})
			c.counted("w", 4)
		})
	}
}

// An owner that is stopped beyond its lease and goes on commits nothing, not even what it was sent before
// anybody else owned the workspace, and answers nothing.
//
// covers: RT-007 RT-013 RT-478
func TestClusterOwnerIsPaused(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			c := newCrew(t, k.New(t).Facts, "n1", "n2")
			c.found("w")
			c.posted("w", "one")
			node, term := c.owner("w")
			old := c.nodes[node].url
			c.signal(node, syscall.SIGSTOP)
			token := sign(t, c.secret, "--ws", "w", "--sub", "alice")
			type answer struct {
				code int
				text string
			}
			late := make(chan answer, 2)
			for _, req := range []struct{ method, path, token, body string }{
				{"POST", "/scopes/c/messages", c.admin, `{"opId":"late","messageId":"late","author":"bob"}`},
				{"GET", "/unread", token, ""},
			} {
				go func() {
					code, text := ask(t, req.method, old+"/api/v1/workspaces/w"+req.path, req.token, req.body)
					late <- answer{code, text}
				}()
			}
			c.taken("w", node, term)
			c.posted("w", "two")
			c.signal(node, syscall.SIGCONT)
			for range 2 {
				if a := <-late; a.code != 421 && a.code != 503 {
					t.Errorf("the paused owner answers %d %s", a.code, a.text)
				}
			}
			for range 50 {
				if code, text := c.unread(old, "w"); code != 421 && code != 503 {
					// It may be the owner once more, and then it is right.
					if now, later := c.owner("w"); now != node || later <= term || !strings.Contains(text, `"messages":2,`) {
						t.Fatalf("the paused owner answers %d %s", code, text)
					}
				}
			}
			c.counted("w", 2)
		})
	}
}

// No process asks another one for anything, but the central one on behalf of its clients: the address of
// a node that owns something is left alone.
//
// covers: RT-026 RT-486 RT-487
func TestClusterNodesDoNotTalk(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			var asked atomic.Int64
			spy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
			defer spy.Close()
			c := newCrew(t, k.New(t).Facts)
			c.start("n1", "--workspaces", "w,v")
			c.start("n2", "--workspaces", "w,v")
			registry := c.registry()
			_, err := registry.Enroll(t.Context(), facts.NodeInfo{Node: "spy", Address: spy.URL, Only: []readstate.WorkspaceID{"spied"}}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			seat := facts.Seat{Node: "spy", Epoch: 1}
			c.found("w", "v")
			row, _, err := registry.PutWorkspace(t.Context(), facts.PutWorkspace{ID: "spied"})
			if err != nil {
				t.Fatal(err)
			}
			for claimed := false; !claimed; {
				s, err := registry.Survey(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range s.Workspaces {
					if w.Key == row.Key {
						_, err = registry.Claim(t.Context(), seat, []facts.Claim{{Key: w.Key, Term: w.Term}})
						claimed = err == nil && w.Owner == "spy"
					}
				}
			}
			for i := range 20 {
				c.posted("w", fmt.Sprint("w", i))
				c.posted("v", fmt.Sprint("v", i))
			}
			node, term := c.owner("w")
			c.signal(node, syscall.SIGKILL)
			c.taken("w", node, term)
			c.counted("w", 20)
			if n := asked.Load(); n != 0 {
				t.Errorf("a node was asked %d times", n)
			}
			spied := sign(t, c.secret, "--ws", "spied", "--sub", "alice")
			if ask(t, "GET", c.central.url+"/api/v1/workspaces/spied/unread", spied, ""); asked.Load() != 1 {
				t.Errorf("the owner was asked %d times on behalf of a client", asked.Load())
			}
		})
	}
}
