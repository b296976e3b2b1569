package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/dbtest"
	"github.com/tidemark-im/tidemark/ownership"
	"github.com/tidemark-im/tidemark/readstate"
)

const (
	clusterRounds = 5
	clusterLease  = "1s"
	roundsEnv     = "TIDEMARK_CHAOS_ROUNDS"
	resultsEnv    = "TIDEMARK_CHAOS_RESULTS"
	afterFault    = "after a fault"
)

// trouble is what happens to a cluster in the middle of a round.
type trouble string

const (
	killOwner    trouble = "kill -9 of an owner"
	pauseOwner   trouble = "an owner stopped beyond its lease"
	holdDatabase trouble = "the way from a node to its database held up beyond the lease"
	dropDatabase trouble = "the connections of a node to its database dropped"
	cutDatabase  trouble = "all sessions of the database ended"
	killCentral  trouble = "kill -9 of the central process"
)

var clusterTroubles = []trouble{killOwner, pauseOwner, holdDatabase, dropDatabase, cutDatabase, killCentral}

// cluster is a siege of three nodes and a central process, which is the one that clients know.
type cluster struct {
	*siege
	binary string
	admin  string
	nodes  []*node
	counts map[trouble]int
	order  []int // troubles of the next rounds
}

type node struct {
	*server
	name  string
	facts string
	way   *lossy
}

func newCluster(t *testing.T, k dbtest.Kind, binary string, seed uint64) *cluster {
	c := &cluster{
		siege: newSiege(t, onServer(t, k), seed), binary: binary, counts: map[trouble]int{},
		admin: token(t, string(httpapi.AllWorkspaces), "root", httpapi.RoleAdmin),
	}
	for i := range 3 {
		n := &node{name: fmt.Sprint("n", i)}
		n.way, n.facts = newLossy(t, c.store.facts)
		c.nodes = append(c.nodes, n)
		c.startNode(n)
	}
	c.launch = func(t *testing.T, in store, _ *blow) *server {
		t.Helper()
		return c.program(in.facts, "--profile", "central")
	}
	return c
}

func (c *cluster) startNode(n *node) {
	c.t.Helper()
	n.server = c.program(n.facts, "--profile", "workspace", "--node", n.name)
}

// program starts the program as it is shipped.
func (c *cluster) program(facts string, args ...string) *server {
	c.t.Helper()
	cmd := exec.Command(c.binary, append([]string{
		"serve", "--facts", facts, "--lease", clusterLease, "--listen", "127.0.0.1:0", "--admin-listen", "off",
		"--http-member-rate", "1000000", "--http-member-burst", "1000000",
		"--http-service-rate", "1000000", "--http-service-burst", "1000000",
	}, args...)...)
	cmd.Env = append(os.Environ(), "TIDEMARK_JWT_SECRET="+string(secret))
	s := begin(c.t, cmd)
	select {
	case s.base = <-s.errors.serving:
	case <-s.dead:
		c.t.Fatalf("the program did not start:\n%s", s.errors)
	case <-time.After(patience):
		c.t.Fatalf("the program does not say where it serves:\n%s", s.errors)
	}
	return s
}

type clusterState struct {
	Nodes []struct {
		Node, Health string
	}
	Workspaces []struct {
		ID, Owner, Health string
		Term              uint64
	}
}

func (c *cluster) state() (out clusterState, ok bool) {
	status, body, err := c.wire.call(c.t.Context(), c.admin, http.MethodGet, "/api/v1/cluster", nil)
	return out, err == nil && status == http.StatusOK && json.Unmarshal(body, &out) == nil
}

// settled reports that every node lives and every workspace is where it belongs.
func (s *clusterState) settled(nodes int) bool {
	var alive []facts.NodeRow
	for _, n := range s.Nodes {
		if n.Health == "alive" {
			alive = append(alive, facts.NodeRow{NodeInfo: facts.NodeInfo{Node: n.Node}, Left: 1})
		}
	}
	for _, w := range s.Workspaces {
		if w.Owner != ownership.Chosen(alive, readstate.WorkspaceID(w.ID)) {
			return false
		}
	}
	return len(alive) == nodes && len(s.Workspaces) > 0
}

// await asks until the cluster is as it should be.
func (c *cluster) await(what string, good func(*clusterState) bool) clusterState {
	c.t.Helper()
	var s clusterState
	pace := time.NewTicker(20 * time.Millisecond) // the database has others to answer
	defer pace.Stop()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		var ok bool
		if s, ok = c.state(); ok && good(&s) {
			return s
		}
		<-pace.C
	}
	c.fail("waiting", fmt.Sprintf("in vain for %s: %+v", what, s))
	return s
}

// owner is the node that owns a workspace, and the term.
func (c *cluster) owner(w string) (*node, uint64) {
	c.t.Helper()
	s := c.await("an owner of "+w, func(s *clusterState) bool { return s.of(w) != "" })
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.name == s.of(w) })
	return c.nodes[i], s.term(w)
}

func (s *clusterState) of(w string) string {
	for _, row := range s.Workspaces {
		if row.ID == w && row.Health == "owned" {
			return row.Owner
		}
	}
	return ""
}

func (s *clusterState) term(w string) (term uint64) {
	for _, row := range s.Workspaces {
		if row.ID == w {
			term = row.Term
		}
	}
	return term
}

// begin founds the workspaces by way of the central process.
func (c *cluster) begin() {
	c.t.Helper()
	c.start(nil)
	c.wire.cluster = true
	for _, w := range c.worlds {
		status, body, err := c.wire.call(c.t.Context(), c.admin, http.MethodPut, address(w.name), []byte(`{"name":"`+w.name+`"}`))
		if err != nil || status != http.StatusOK {
			c.t.Fatalf("%d %s %v", status, body, err)
		}
	}
	c.await("everything in its place", func(s *clusterState) bool { return s.settled(len(c.nodes)) })
	c.found()
	c.watch()
}

// round has something go wrong under load, mends it, and judges what is there.
func (c *cluster) round(rng *rand.Rand) trouble {
	c.t.Helper()
	if len(c.order) == 0 { // every trouble has its turn
		c.order = rng.Perm(len(clusterTroubles))
	}
	what := clusterTroubles[c.order[0]]
	c.order = c.order[1:]
	c.counts[what]++
	w := pick(rng, c.worlds).name
	n, term := c.owner(w)
	mend := func() {}
	struck := make(chan struct{})
	moved := func() {
		c.await("another owner of "+w, func(s *clusterState) bool { return s.of(w) != "" && s.term(w) > term })
	}
	strike := func() {
		defer close(struck)
		switch what {
		case killOwner:
			n.strike()
			mend = func() { n.kill(); moved(); c.startNode(n) }
		case pauseOwner:
			_ = n.cmd.Process.Signal(syscall.SIGSTOP)
			mend = func() { moved(); _ = n.cmd.Process.Signal(syscall.SIGCONT) }
		case holdDatabase:
			n.way.hold()
			mend = func() { moved(); n.way.release() }
		case dropDatabase:
			n.way.drop()
		case cutDatabase:
			c.store.cut(c.t)
		case killCentral:
			c.server.strike()
			mend = c.server.kill
		}
	}
	c.journal.alarmAfter(1+rng.IntN(60), func() { go strike() })
	c.load(400)
	<-struck
	c.end()
	if what == killCentral {
		mend()
		c.start(nil)
	} else {
		c.wire = dial(c.server)
		c.wire.cluster = true
		mend()
	}
	c.wire.cluster = true
	c.await("everything in its place", func(s *clusterState) bool { return s.settled(len(c.nodes)) })
	c.watch()
	c.resolve(c.judge(afterFault))
	c.judge(resolved)
	for _, n := range c.nodes {
		if troubles := n.troubles(); len(troubles) > 0 {
			c.fail("running", troubles...)
		}
	}
	return what
}

// Three nodes and a central process lose nothing that they acknowledged, and count right, whatever is
// killed, stopped, held up or cut.
//
// covers: RT-008 RT-355
func TestClusterRounds(t *testing.T) {
	binary := build(t)
	rounds := number(t, roundsEnv, clusterRounds)
	for i, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			seed := uint64(number(t, seedEnv, 1))
			c := newCluster(t, k, binary, seed)
			c.begin()
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for range share(rounds, i) {
				began := c.journal.answers
				what := c.round(rng)
				record(t, k.Name, seed, what, c.journal.answers-began, c.counted)
			}
			c.server.kill()
			c.end()
			t.Logf("%v; %d requests answered, %d without an answer, %d served rows equal a recount", c.counts,
				c.journal.answers, c.unanswered, c.counted)
		})
	}
}

// share divides rounds among the kinds of servers.
func share(rounds, i int) int { return (rounds + len(dbtest.Kinds) - 1 - i) / len(dbtest.Kinds) }

// record adds a round that held to the file of results, where there is one.
func record(t *testing.T, on string, seed uint64, what trouble, answers, rows int) {
	t.Helper()
	path := os.Getenv(resultsEnv)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Join([]string{on, strconv.FormatUint(seed, 10), string(what), strconv.Itoa(answers), strconv.Itoa(rows)}, "\t")
	if _, err := fmt.Fprintln(f, line); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
