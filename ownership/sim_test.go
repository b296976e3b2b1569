package ownership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// process is one keeper with what it serves. Its clock runs at a speed of its own.
type process struct {
	w      *cluster
	name   string
	speed  float64
	keeper *Keeper
	way    *way
	serves map[readstate.WorkspaceID]uint64
	next   time.Duration // when its keeper turns again
	since  time.Duration // when the process was started
	ends   bool          // it drains
}

func (p *process) Adopt(_ context.Context, w facts.WorkspaceRow) error {
	p.serves[w.ID] = w.Term
	return nil
}

func (p *process) Release(_ context.Context, w readstate.WorkspaceID) error {
	delete(p.serves, w)
	return nil
}

func (p *process) After(time.Duration) <-chan time.Time { panic("the simulation turns keepers itself") }

func (p *process) Now() time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(float64(p.w.ledger.now-p.since) * p.speed))
}

// cluster is processes that share a ledger, and what happens to them.
type cluster struct {
	t         *testing.T
	seed      uint64
	rng       *rand.Rand
	ledger    *ledger
	processes []*process
	commits   map[readstate.WorkspaceID]uint64 // the highest term that has committed
	named     int
}

const simTTL = 3 * time.Second

func newCluster(t *testing.T, seed uint64) *cluster {
	c := &cluster{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 3)), ledger: newLedger(12),
		commits: map[readstate.WorkspaceID]uint64{},
	}
	for i := range 2 + c.rng.IntN(3) {
		c.start(fmt.Sprint("n", i))
	}
	return c
}

func (c *cluster) start(name string) *process {
	p := &process{
		w: c, name: name, speed: 0.96 + 0.08*c.rng.Float64(), serves: map[readstate.WorkspaceID]uint64{},
		since: c.ledger.now, next: c.ledger.now,
	}
	p.way = &way{ledger: c.ledger, rng: c.rng, slow: c.pass, patch: 200 * time.Millisecond}
	self := facts.NodeInfo{Node: name, Address: "http://" + name}
	if c.rng.IntN(4) == 0 {
		for i := range c.ledger.spaces {
			if c.rng.IntN(2) == 0 {
				self.Only = append(self.Only, c.ledger.spaces[i].ID)
			}
		}
	}
	var err error
	p.keeper, err = New(Options{
		Registry: p.way, Engine: p, Self: self, TTL: simTTL, Clock: p, Moves: 1 + c.rng.IntN(4),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.processes = append(c.processes, p)
	return p
}

// pass lets time go by, in small steps, and looks at everybody after each.
func (c *cluster) pass(d time.Duration) {
	for d > 0 {
		step := min(d, 50*time.Millisecond)
		c.ledger.now += step
		d -= step
		c.check()
		c.commit()
	}
}

// check holds that nobody answers for a workspace for which somebody else does.
func (c *cluster) check() {
	owners := map[readstate.WorkspaceID]string{}
	for _, p := range c.processes {
		if !p.keeper.Serving() {
			continue
		}
		for w := range p.serves {
			if other, ok := owners[w]; ok {
				c.t.Fatalf("seed %d: at %v %s and %s both serve %s", c.seed, c.ledger.now, other, p.name, w)
			}
			owners[w] = p.name
		}
	}
}

// commit has every process try to write what it thinks it owns, whether it may serve or not: the
// store refuses all but the newest term.
func (c *cluster) commit() {
	for _, p := range c.processes {
		for w, term := range p.serves {
			for _, row := range c.ledger.spaces {
				if row.ID != w || row.Term != term {
					continue
				}
				if term < c.commits[w] {
					c.t.Fatalf("seed %d: term %d of %s commits after %d", c.seed, term, w, c.commits[w])
				}
				c.commits[w] = term
			}
		}
	}
}

// turn lets a keeper do what Run does between two waits; false when its process has ended.
func (c *cluster) turn(p *process) bool {
	err := p.keeper.turn(context.Background())
	p.next = c.ledger.now + time.Duration(float64(p.keeper.opts.Every)/p.speed)
	if errors.Is(err, ErrExpelled) {
		return false
	}
	if err == nil && p.ends && len(p.keeper.held) == 0 {
		return p.keeper.opts.Registry.Retire(context.Background(), p.keeper.seat) != nil
	}
	return true
}

func (c *cluster) remove(p *process) {
	for i, q := range c.processes {
		if p == q {
			c.processes = append(c.processes[:i], c.processes[i+1:]...)
			return
		}
	}
}

// happen does one thing to somebody.
func (c *cluster) happen() {
	if len(c.processes) == 0 {
		c.named++
		c.start(fmt.Sprint("m", c.named))
		return
	}
	p := c.processes[c.rng.IntN(len(c.processes))]
	switch c.rng.IntN(40) {
	case 0: // it is killed, and started again under its name or not at all
		c.remove(p)
		if c.rng.IntN(3) > 0 {
			c.start(p.name)
		}
	case 1: // it is paused
		p.next = c.ledger.now + time.Duration(c.rng.Int64N(int64(4*simTTL)))
	case 2:
		if len(c.processes) < 6 {
			c.named++
			c.start(fmt.Sprint("m", c.named))
		}
	case 3:
		p.keeper.Drain()
		p.ends = true
	default:
		c.pass(time.Duration(c.rng.Int64N(int64(300 * time.Millisecond))))
		for _, q := range append([]*process(nil), c.processes...) {
			if q.next <= c.ledger.now && !c.turn(q) {
				c.remove(q)
			}
		}
	}
}

// heal makes everything kind and lets the leases of the dead end.
func (c *cluster) heal() {
	for _, p := range c.processes {
		p.way.kind, p.next = true, min(p.next, c.ledger.now+simTTL)
	}
	for end := c.ledger.now + 8*simTTL; c.ledger.now < end; {
		c.pass(100 * time.Millisecond)
		for _, p := range append([]*process(nil), c.processes...) {
			if p.next <= c.ledger.now && !c.turn(p) {
				c.remove(p)
			}
		}
	}
}

// Processes that are killed, paused, started and drained, on a network that is slow and loses requests
// and answers, with clocks of different speeds: at no moment do two of them answer for one workspace,
// no commit of an earlier term comes after one of a later, and once all is calm every workspace is
// owned by the node that is chosen for it. Seeds replay.
//
// covers: RT-007 RT-013
func TestSeededClusters(t *testing.T) {
	seeds := 30
	if n, err := strconv.Atoi(os.Getenv("TIDEMARK_SEEDS")); err == nil {
		seeds = n
	}
	served := 0
	for seed := range uint64(seeds) {
		c := newCluster(t, seed)
		for range 600 {
			c.happen()
		}
		c.heal()
		s, _ := c.ledger.Survey(context.Background())
		for _, w := range s.Workspaces {
			chosen := Chosen(s.Nodes, w.ID)
			holders := 0
			for _, p := range c.processes {
				term, holds := p.serves[w.ID]
				if !holds {
					continue
				}
				holders++
				if p.name != chosen || term != w.Term || !p.keeper.Serving() {
					t.Errorf("seed %d: %s is served by %s at term %d, and is %+v, chosen %s", seed, w.ID,
						p.name, term, w, chosen)
				}
				served++
			}
			if want := min(1, len(chosen)); holders != want {
				t.Errorf("seed %d: %s has %d owners of %d, chosen %q", seed, w.ID, holders, want, chosen)
			}
		}
	}
	if served < seeds*6 {
		t.Errorf("only %d workspaces are served after %d runs", served, seeds)
	}
}
