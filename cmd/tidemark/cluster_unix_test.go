package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// clusterLease is that of the nodes of tests.
const clusterLease = "1s"

// crew is a cluster of processes: nodes and a central one.
type crew struct {
	t       *testing.T
	facts   string
	secret  string
	admin   string
	nodes   map[string]*program
	central *program
}

func newCrew(t *testing.T, database string, nodes ...string) *crew {
	t.Helper()
	c := &crew{t: t, facts: "--facts=" + database, secret: secretFile(t, testSecret), nodes: map[string]*program{}}
	c.admin = sign(t, c.secret, "--ws", "*", "--sub", "root", "--role", "admin")
	for _, n := range nodes {
		c.start(n)
	}
	c.central = startProgram(t, nil, c.facts, "--jwt-secret-file", c.secret, "--profile", "central", "--lease", clusterLease)
	return c
}

func (c *crew) start(node string, args ...string) {
	c.t.Helper()
	c.nodes[node] = startProgram(c.t, nil, append([]string{
		c.facts, "--jwt-secret-file", c.secret, "--profile", "workspace", "--node", node, "--lease", clusterLease,
	}, args...)...)
}

// await asks until an answer is as it should be.
func (c *crew) await(what string, good func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if good() {
			return
		}
	}
	c.t.Fatalf("in vain: %s", what)
}

// picture is what a process says of the cluster.
type clusterPicture struct {
	Profile, Node string
	Serving       bool
	Nodes         []struct {
		Node, Address, Health string
		Epoch                 uint64
		Owned                 int
	}
	Workspaces []struct {
		ID, Owner, Health string
		Term              uint64
	}
}

func (c *crew) picture(url, token string) (p clusterPicture) {
	c.t.Helper()
	code, text := ask(c.t, "GET", url+"/api/v1/cluster", token, "")
	if code != 200 {
		c.t.Fatalf("cluster: %d %s", code, text)
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

// owner is the node that owns a workspace and has a lease, and its term.
func (c *crew) owner(w string) (node string, term uint64) {
	c.t.Helper()
	for _, row := range c.picture(c.central.url, c.admin).Workspaces {
		if row.ID == w && row.Health == "owned" {
			return row.Owner, row.Term
		}
	}
	return "", 0
}

// found makes workspaces with a channel of alice and bob, by way of the central process.
func (c *crew) found(spaces ...string) {
	c.t.Helper()
	for _, w := range spaces {
		base := c.central.url + "/api/v1/workspaces/" + w
		if code, text := ask(c.t, "PUT", base, c.admin, `{"name":"`+w+`"}`); code != 200 {
			c.t.Fatalf("%d %s", code, text)
		}
		c.await(w+" is served", func() bool {
			code, _ := ask(c.t, "PUT", base+"/scopes/c", c.admin, `{"type":"channel"}`)
			return code == 200
		})
		c.await("members join", func() bool {
			code, _ := ask(c.t, "POST", base+"/scopes/c/members:batch?create=members", c.admin,
				`{"members":[{"id":"alice"},{"id":"bob"}]}`)
			return code == 200
		})
	}
}

func (c *crew) post(url, w, op string) (int, string) {
	c.t.Helper()
	return ask(c.t, "POST", url+"/api/v1/workspaces/"+w+"/scopes/c/messages", c.admin,
		fmt.Sprintf(`{"opId":%q,"messageId":%q,"author":"bob","payload":"x"}`, op, op))
}

func (c *crew) unread(url, w string) (int, string) {
	c.t.Helper()
	token := sign(c.t, c.secret, "--ws", w, "--sub", "alice")
	return ask(c.t, "GET", url+"/api/v1/workspaces/"+w+"/unread", token, "")
}

// other is a node that is not the one given.
func (c *crew) other(node string) *program {
	for name, p := range c.nodes {
		if name != node {
			return p
		}
	}
	return nil
}

// Each workspace is answered by its owner: another node says who that is, on every kind of route, and
// the central process asks it. What the central process says itself shows no unread.
//
// covers: RT-008 RT-012 RT-017 RT-020 RT-021
func TestClusterRoutes(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			c := newCrew(t, k.New(t).Facts, "n1", "n2")
			c.found("w", "v")
			if code, text := c.post(c.central.url, "w", "m1"); code != 201 {
				t.Fatalf("%d %s", code, text)
			}
			if code, text := c.unread(c.central.url, "w"); code != 200 || !strings.Contains(text, `"messages":1`) {
				t.Errorf("unread by way of the central: %d %s", code, text)
			}
			node, _ := c.owner("w")
			address := c.nodes[node].url
			stranger := c.other(node).url
			alice := sign(t, c.secret, "--ws", "w", "--sub", "alice")
			for _, path := range []string{"/workspaces/w/unread", "/workspaces/w/events", "/workspaces/w/scopes", "/workspaces/w/members/alice/inbox/badge"} {
				code, text := ask(t, "GET", stranger+"/api/v1"+path, alice, "")
				if code != 421 || !strings.Contains(text, `"owner":"`+address+`"`) || !strings.Contains(text, `"code":"not_owner"`) {
					t.Errorf("%s at another node: %d %s", path, code, text)
				}
			}
			if code, text := ask(t, "GET", stranger+"/api/sessions", alice, ""); code != 421 {
				t.Errorf("sessions at another node: %d %s", code, text)
			}
			if code, text := c.post(stranger, "w", "m2"); code != 421 {
				t.Errorf("a post to another node: %d %s", code, text)
			}
			c.shown(alice)
			c.walls()
		})
	}
}

// shown: management surfaces of the central process show no unread.
func (c *crew) shown(alice string) {
	c.t.Helper()
	code, text := ask(c.t, "GET", c.central.url+"/api/v1/workspaces", alice, "")
	if code != 200 || !strings.Contains(text, `"hasUnread":false,"state":"unavailable"`) || strings.Contains(text, `"id":"v"`) {
		c.t.Errorf("the list of the central: %d %s", code, text)
	}
	code, text = ask(c.t, "PATCH", c.central.url+"/api/v1/workspaces/w", c.admin, `{"name":"renamed"}`)
	if code != 200 || strings.Contains(text, "true") || !strings.Contains(text, "renamed") {
		c.t.Errorf("an update at the central: %d %s", code, text)
	}
	code, text = ask(c.t, "PATCH", c.central.url+"/api/v1/workspaces/nowhere", c.admin, `{"name":"x"}`)
	if code != 404 {
		c.t.Errorf("an update of nothing: %d %s", code, text)
	}
}

// walls: a token of one workspace gets nothing of another one, and nobody gets in without one.
func (c *crew) walls() {
	c.t.Helper()
	mallory := sign(c.t, c.secret, "--ws", "v", "--sub", "alice", "--role", "admin")
	for _, at := range []string{c.central.url, c.nodes["n1"].url, c.nodes["n2"].url} {
		for _, path := range []string{"/workspaces/w/unread", "/workspaces/w/events", "/workspaces/ghost/unread"} {
			if code, text := ask(c.t, "GET", at+"/api/v1"+path, mallory, ""); code != 404 || strings.Contains(text, "owner") {
				c.t.Errorf("%s with a token of v: %d %s", path, code, text)
			}
			if code, _ := ask(c.t, "GET", at+"/api/v1"+path, "", ""); code != 401 {
				c.t.Errorf("%s without a token: %d", path, code)
			}
		}
		if code, _ := ask(c.t, "PATCH", at+"/api/v1/workspaces/w", mallory, `{"name":"x"}`); code != 404 {
			c.t.Errorf("an update with a token of v: %d", code)
		}
		p := c.picture(at, mallory)
		if len(p.Workspaces) != 1 || p.Workspaces[0].ID != "v" || len(p.Nodes) > 1 {
			c.t.Errorf("an admin of v sees %+v", p)
		}
		if code, text := ask(c.t, "GET", at+"/api/v1/workspaces/ghost/unread", c.admin, ""); code != 404 {
			c.t.Errorf("a workspace that does not exist: %d %s", code, text)
		}
	}
}

// A stream by way of the central process ends when its owner gives the workspace up, and goes on at the
// next owner; a node that is asked to end gives everything up before it ends.
//
// covers: RT-024 RT-028
func TestClusterStreams(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			c := newCrew(t, k.New(t).Facts, "n1", "n2")
			c.found("w")
			alice := sign(t, c.secret, "--ws", "w", "--sub", "alice")
			body := c.open(alice)
			node, term := c.owner("w")
			if err := c.nodes[node].cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(body); err != nil && !strings.Contains(err.Error(), "EOF") {
				t.Errorf("the stream ended with %v", err)
			}
			if err := c.nodes[node].cmd.Wait(); err != nil {
				t.Errorf("the node ended with %v: %v", err, c.nodes[node].log.all)
			}
			c.await("another owner", func() bool {
				next, later := c.owner("w")
				return next != "" && next != node && later > term
			})
			c.open(alice)
		})
	}
}

// open opens a stream and reads up to its snapshot.
func (c *crew) open(token string) io.Reader {
	c.t.Helper()
	var res *http.Response
	c.await("a stream", func() bool {
		req, err := http.NewRequestWithContext(c.t.Context(), "GET", c.central.url+"/api/v1/workspaces/w/events?access_token="+token, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		if res, err = http.DefaultClient.Do(req); err != nil { //nolint:bodyclose // below, and with the test
			return false
		}
		if res.StatusCode != 200 {
			res.Body.Close()
		}
		return res.StatusCode == 200
	})
	c.t.Cleanup(func() { res.Body.Close() })
	var seen strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), "event: snapshot") {
		n, err := res.Body.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			c.t.Fatalf("%v after %s", err, seen.String())
		}
	}
	return res.Body
}
