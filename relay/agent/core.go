package agent

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/relay/evidence"
	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// core is everything that the agent knows in memory. It does no input or output and knows no clock;
// whoever calls it holds the agent's lock.
type core struct {
	viewer nostrx.PubKey
	window *evidence.Window
	repair evidence.Repair
	roster roster
	asks   lookups
	leases frontier.Leases
	view   frontier.View // of the journal's record
	record journal.Record
	loaded uint64 // number of the reading of the record that is in use

	markers   bool            // what was published is known, or was once
	freshness string          // of messages
	failed    error           // the last observation's
	covered   map[string]bool // channels whose last page had room for them
	epochs    map[string]int  // of access; a channel that was lost and came back has another
	levels    map[string]string
	follows   map[evidence.FollowKey]bool

	watched map[Target]*watch
	summary Badge
	badges  map[*func()]bool
}

// watch is a target that somebody looks at.
type watch struct {
	last      Snapshot
	listeners map[*func()]bool
}

func newCore(viewer nostrx.PubKey) *core {
	return &core{
		viewer: viewer, window: evidence.New(viewer), freshness: Unknown,
		covered: make(map[string]bool), epochs: make(map[string]int), levels: make(map[string]string),
		follows: make(map[evidence.FollowKey]bool), watched: make(map[Target]*watch),
		badges: make(map[*func()]bool),
	}
}

// channels lists those of the roster that the viewer is a member of, by id.
func (c *core) channels() []Channel { return c.roster.of(c.viewer) }

// learn takes events of the roster. A whole one replaces what was known.
func (c *core) learn(events []nostrx.Event, whole bool) {
	before := c.channels()
	c.roster.take(events, whole)
	after := c.channels()
	var list []evidence.Channel
	for _, ch := range after {
		list = append(list, evidence.Channel{ID: ch.ID, Type: ch.Type})
	}
	if !c.window.SetRoster(list) {
		return
	}
	c.repair.Forget()
	for _, ch := range before {
		if !c.window.Access(ch.ID) {
			c.epochs[ch.ID]++
			c.leases.Revoke(ch.ID)
			delete(c.covered, ch.ID)
		}
	}
	c.asks.restart()
}

// add takes verified messages. An overflow is told until a refresh.
func (c *core) add(events []nostrx.Event) error {
	_, err := c.window.Add(events...)
	if errors.Is(err, evidence.ErrOverflow) {
		c.repair.Forget()
		clear(c.covered)
		c.freshness, c.failed = Stale, err
	}
	return err
}

// took takes the answer of a batch.
func (c *core) took(b evidence.Batch, events []nostrx.Event, now int64) error {
	if err := c.add(events); err != nil {
		return err
	}
	rows := 0
	for _, e := range events {
		if evidence.Content(e.Kind) {
			rows++
		}
	}
	for _, id := range b.Channels {
		if rows < evidence.PageSize {
			c.covered[id] = c.window.Access(id)
		}
	}
	c.repair.Done(b, events, now)
	return nil
}

// surface is what a reader has in front of them now.
func (c *core) surface(channel, root string) frontier.Surface {
	messages, _ := c.window.Messages(channel)
	dm, _ := c.window.DM(channel)
	return frontier.Surface{Channel: channel, Root: root, DM: dm, Messages: messages}
}

// ask queues lookups for what is undecided.
func (c *core) ask() {
	for channel, parents := range c.window.Undecided(c.view) {
		for _, p := range parents {
			c.asks.add(question{channel, p})
		}
	}
}

// changes projects everything that somebody looks at, and returns whom to tell.
func (c *core) changes() []func() {
	c.ask()
	var tell []func()
	for t, w := range c.watched {
		if s := c.snapshot(t); s != w.last {
			w.last = s
			for f := range w.listeners {
				tell = append(tell, *f)
			}
		}
	}
	if b := c.badge(); b != c.summary {
		c.summary = b
		for f := range c.badges {
			tell = append(tell, *f)
		}
	}
	return tell
}

// Channel is a channel of the roster.
type Channel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// Kinds of the roster.
const (
	kindChannel = 39000
	kindMembers = 39002
)

// roster folds the relay's events of channels and members: of each coordinate the newest counts.
type roster struct {
	about, members map[string]nostrx.Event
}

func (r *roster) take(events []nostrx.Event, whole bool) {
	if whole || r.about == nil {
		r.about, r.members = make(map[string]nostrx.Event), make(map[string]nostrx.Event)
	}
	for _, e := range events {
		to := r.about
		switch e.Kind {
		case kindChannel:
		case kindMembers:
			to = r.members
		default:
			continue
		}
		id := e.Value("d")
		if old, ok := to[id]; id != "" && (!ok || nostrx.Compare(e, old) < 0) {
			to[id] = e
		}
	}
}

func (r *roster) of(viewer nostrx.PubKey) []Channel {
	var list []Channel
	for _, id := range slices.Sorted(maps.Keys(r.members)) {
		if !slices.Contains(r.members[id].Values("p"), string(viewer)) {
			continue
		}
		ch := Channel{ID: id, Name: id}
		if e, ok := r.about[id]; ok {
			ch.Name, ch.Type = cmp.Or(strings.TrimSpace(e.Value("name")), id), cmp.Or(e.Value("t"), "stream")
		}
		list = append(list, ch)
	}
	return list
}
