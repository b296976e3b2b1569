package fanout

import (
	"sync"
	"sync/atomic"
)

// Counters is a workspace of channels. It is safe for concurrent use.
type Counters struct {
	mu       sync.RWMutex // guards the two dictionaries, not what they lead to
	members  map[string]*member
	channels map[string]*channel
	names    []string // of channels, by number
}

// member has the counters of the channels that they joined, by the channel's number.
type member struct {
	mu       sync.RWMutex
	counters map[uint32]*counter
}

type channel struct {
	number uint32
	mu     sync.RWMutex // guards the list
	list   []*counter
}

// counter is what one member has not read in one channel.
type counter struct{ unread atomic.Uint64 }

// New returns an empty workspace.
func New() *Counters {
	return &Counters{members: map[string]*member{}, channels: map[string]*channel{}}
}

// Join makes a member part of a channel; both are made where they are unknown. What was posted
// before does not count. Joining again changes nothing.
func (c *Counters) Join(id, who string) {
	c.mu.Lock()
	ch, m := c.channels[id], c.members[who]
	if ch == nil {
		ch = &channel{number: uint32(len(c.names))}
		c.channels[id] = ch
		c.names = append(c.names, id)
	}
	if m == nil {
		m = &member{counters: map[uint32]*counter{}}
		c.members[who] = m
	}
	c.mu.Unlock()
	ch.mu.Lock()
	defer ch.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counters[ch.number] != nil {
		return
	}
	n := new(counter)
	ch.list = append(ch.list, n)
	m.counters[ch.number] = n
}

// Post adds a message of the author, who need not be a member, to a channel; false for an
// unknown channel.
func (c *Counters) Post(id, author string) bool {
	c.mu.RLock()
	ch, m := c.channels[id], c.members[author]
	c.mu.RUnlock()
	if ch == nil {
		return false
	}
	ch.mu.RLock()
	defer ch.mu.RUnlock()
	own, before := m.counter(ch), uint64(0)
	if own != nil {
		before = own.unread.Load()
	}
	increment(ch.list)
	if own != nil {
		own.unread.Store(before) // one's own message is nothing new
	}
	return true
}

// increment is the work that grows with the channel.
//
//go:noinline
func increment(list []*counter) {
	for _, n := range list {
		n.unread.Add(1)
	}
}

// Read sets a counter to zero; false for a member who is not in the channel.
func (c *Counters) Read(id, who string) bool {
	n := c.find(id, who)
	if n == nil {
		return false
	}
	n.unread.Store(0)
	return true
}

// Count returns a counter; false for a member who is not in the channel.
func (c *Counters) Count(id, who string) (uint64, bool) {
	n := c.find(id, who)
	if n == nil {
		return 0, false
	}
	return n.unread.Load(), true
}

func (c *Counters) find(id, who string) *counter {
	c.mu.RLock()
	ch, m := c.channels[id], c.members[who]
	c.mu.RUnlock()
	if ch == nil {
		return nil
	}
	return m.counter(ch)
}

// counter is a member's in a channel, nil where there is none, also for nobody.
func (m *member) counter(ch *channel) *counter {
	if m == nil {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.counters[ch.number]
}

// Count is one channel's number.
type Count struct {
	Channel uint32 // in the order in which channels were made, from 0
	Unread  uint64
}

// Counts appends all of a member's counts to dst, in no order; false for an unknown member.
func (c *Counters) Counts(who string, dst []Count) ([]Count, bool) {
	c.mu.RLock()
	m := c.members[who]
	c.mu.RUnlock()
	if m == nil {
		return dst, false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for number, n := range m.counters {
		dst = append(dst, Count{number, n.unread.Load()})
	}
	return dst, true
}

// HasUnread reports that one of a member's counts is not zero.
func (c *Counters) HasUnread(who string) bool {
	c.mu.RLock()
	m := c.members[who]
	c.mu.RUnlock()
	if m == nil {
		return false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, n := range m.counters {
		if n.unread.Load() > 0 {
			return true
		}
	}
	return false
}
