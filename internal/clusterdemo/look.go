package clusterdemo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// space is a workspace that somebody writes to.
type space struct {
	id    string
	sent  atomic.Int64 // messages, each counted before it was sent for the first time
	acked atomic.Int64 // of these
	wrong atomic.Int64 // counts that were neither
	since atomic.Int64 // when the message that waits was sent, in milliseconds; 0 for none
	most  atomic.Int64 // milliseconds that a message had to wait
}

// write sends one message after the other, each until it is acknowledged.
func (s *space) write(ctx context.Context, a *api, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		id := fmt.Sprint(s.sent.Add(1))
		begun := time.Now()
		s.since.Store(begun.UnixMilli())
		for a.post(ctx, s.id, id) != nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		s.acked.Add(1)
		s.since.Store(0)
		s.most.Store(max(s.most.Load(), time.Since(begun).Milliseconds()))
	}
}

// View is what the page shows.
type View struct {
	Nodes   []NodeView  `json:"nodes"`
	Central Condition   `json:"central"`
	Spaces  []SpaceView `json:"spaces"`
	Dots    bool        `json:"dots"` // there is a substrate
}

// NodeView is a node.
type NodeView struct {
	Name      string    `json:"name"`
	Condition Condition `json:"condition"`
	Owns      int       `json:"owns"`
}

// SpaceView is a workspace. What nobody can say is absent.
type SpaceView struct {
	ID       string   `json:"id"`
	Owners   []string `json:"owners"` // nodes that answer for it
	Acked    int64    `json:"acked"`
	Unread   *int64   `json:"unread,omitempty"`
	Dot      *bool    `json:"dot,omitempty"`
	Wrong    int64    `json:"wrong"`
	WaitsMS  int64    `json:"waitsMs"` // of the message under way
	LongestS float64  `json:"longestS"`
}

// views holds what was seen last.
type views struct {
	mu   sync.Mutex
	last View
}

// View is what was seen last, with the conditions of this moment.
func (c *Cluster) View() View {
	c.views.mu.Lock()
	defer c.views.mu.Unlock()
	v := c.views.last
	v.Central = c.Central.Condition()
	v.Nodes = make([]NodeView, len(c.Nodes))
	for i, n := range c.Nodes {
		v.Nodes[i] = NodeView{Name: n.Name, Condition: n.Condition()}
		for _, s := range v.Spaces {
			for _, owner := range s.Owners {
				if owner == n.Name {
					v.Nodes[i].Owns++
				}
			}
		}
	}
	return v
}

const lookEvery = 250 * time.Millisecond

// look asks everybody again and again.
func (c *Cluster) look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		v := c.see(ctx)
		c.views.mu.Lock()
		c.views.last = v
		c.views.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// see asks once. Questions about different workspaces do not wait for each other.
func (c *Cluster) see(ctx context.Context) View {
	v := View{Spaces: make([]SpaceView, len(c.spaces)), Dots: c.redis != nil}
	var all sync.WaitGroup
	for i, s := range c.spaces {
		all.Go(func() { v.Spaces[i] = c.seeSpace(ctx, s) })
	}
	dots := map[string]bool{}
	if c.redis != nil {
		all.Go(func() {
			if known, err := c.api.dots(ctx); err == nil {
				dots = known
			}
		})
	}
	all.Wait()
	for i := range v.Spaces {
		if dot, known := dots[v.Spaces[i].ID]; known {
			v.Spaces[i].Dot = &dot
		}
	}
	return v
}

func (c *Cluster) seeSpace(ctx context.Context, s *space) SpaceView {
	least := s.acked.Load()
	n, known, err := c.api.unread(ctx, c.Central.Address, s.id)
	most := s.sent.Load()
	v := SpaceView{ID: s.id, Owners: []string{}}
	if err == nil && known {
		v.Unread = &n
		if n < least || n > most {
			s.wrong.Add(1)
		}
	}
	answers := make([]bool, len(c.Nodes))
	var all sync.WaitGroup
	for i, node := range c.Nodes {
		if node.Condition() != Running {
			continue
		}
		all.Go(func() {
			_, known, err := c.api.unread(ctx, node.Address, s.id)
			answers[i] = err == nil && known
		})
	}
	all.Wait()
	for i, node := range c.Nodes {
		if answers[i] {
			v.Owners = append(v.Owners, node.Name)
		}
	}
	v.Acked, v.Wrong = s.acked.Load(), s.wrong.Load()
	v.LongestS = float64(s.most.Load()) / 1000
	if since := s.since.Load(); since > 0 {
		v.WaitsMS = time.Now().UnixMilli() - since
	}
	return v
}
