package relaytest

import (
	"slices"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Kinds of the roster.
const (
	KindChannel        = 39000 // name and type
	KindChannelMembers = 39002
)

func isRoster(kind int) bool { return kind == KindChannel || kind == KindChannelMembers }

// Channel is a channel with its members.
type Channel struct {
	ID, Name string
	Type     string // stream, forum, dm
	Members  []nostrx.PubKey
}

// SetChannel makes a channel or changes it. Those who may see it are told by new roster events.
func (r *Relay) SetChannel(c Channel) error {
	c.Members = slices.Clone(c.Members)
	slices.Sort(c.Members)
	members := []nostrx.Tag{{"d", c.ID}}
	for _, m := range c.Members {
		members = append(members, nostrx.Tag{"p", string(m)})
	}
	about := []nostrx.Tag{{"d", c.ID}, {"name", c.Name}, {"t", c.Type}}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.channels[c.ID] = c
	for kind, tags := range map[int][]nostrx.Tag{KindChannel: about, KindChannelMembers: members} {
		// Later than the last of its kind, so that it counts even in the same second.
		at := r.options.Now().Unix()
		if old, ok := r.store.at(coordinate(nostrx.Event{
			Kind: kind, PubKey: r.options.Self.Public(), Tags: tags,
		})); ok {
			at = max(at, old.CreatedAt+1)
		}
		e, err := r.options.Self.Sign(nostrx.Event{Kind: kind, CreatedAt: at, Tags: tags})
		if err != nil {
			return err
		}
		if r.store.put(e) {
			r.push(e)
		}
	}
	return nil
}

// SetMember lets somebody into the community, or out of it and all its channels. It needs a relay
// that does not let everybody in.
func (r *Relay) SetMember(who nostrx.PubKey, in bool) error {
	r.mu.Lock()
	if r.members == nil {
		r.members = make(map[nostrx.PubKey]bool)
	}
	r.members[who] = in
	var left []Channel
	for _, c := range r.channels {
		if !in && slices.Contains(c.Members, who) {
			c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(m nostrx.PubKey) bool { return m == who })
			left = append(left, c)
		}
	}
	r.mu.Unlock()
	for _, c := range left {
		if err := r.SetChannel(c); err != nil {
			return err
		}
	}
	return nil
}
