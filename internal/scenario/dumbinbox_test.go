package scenario

import (
	"fmt"
	"maps"
	"slices"
)

// dumbInbox is everything that ever arrived for a member, in order.
type dumbInbox struct {
	posts        []*dumbPost
	scopes       []*dumbScope // of each
	snapshots    []uint64     // positions that overviews were opened at
	acknowledged uint64
}

func (c *dumbCall) inbox(member string) *dumbInbox {
	in := c.w.inboxes[member]
	if in == nil {
		in = &dumbInbox{}
		c.w.inboxes[member] = in
	}
	return in
}

// addressed says whether a message is for somebody in particular, and not only for the room.
func (s *dumbScope) addressed(p *dumbPost, member string) bool {
	r := s.rows[member]
	return r != nil && r.joined && p.revision > 0 && member != p.author && member != p.principal &&
		(s.kind == "dm" || slices.Contains(p.mentions, member))
}

// arrive gives a message its place in the inboxes of whom it addresses, once.
func (c *dumbCall) arrive(s *dumbScope, p *dumbPost) {
	for member := range s.rows {
		if in := c.inbox(member); s.addressed(p, member) && !slices.Contains(in.posts, p) {
			in.posts, in.scopes = append(in.posts, p), append(in.scopes, s)
		}
	}
}

func (c *dumbCall) inboxBadge() any {
	in := c.inbox(c.path("m"))
	senders := map[string]bool{}
	for i, p := range in.posts {
		if uint64(i) >= in.acknowledged && !p.deleted && in.scopes[i].addressed(p, c.path("m")) &&
			!c.w.blocks[c.path("m")][p.author] {
			senders[p.author] = true
		}
	}
	return map[string]any{
		"accepted_through": len(in.posts), "acknowledged_through": in.acknowledged,
		"count": len(senders), "senders": slices.Sorted(maps.Keys(senders)),
	}
}

func (c *dumbCall) openInbox() any {
	in := c.inbox(c.path("m"))
	in.snapshots = append(in.snapshots, uint64(len(in.posts)))
	return map[string]any{"snapshotId": fmt.Sprint(len(in.snapshots) - 1)}
}

func (c *dumbCall) ackInbox() any {
	var body struct{ SnapshotID string }
	c.into(&body)
	in := c.inbox(c.path("m"))
	for i, through := range in.snapshots {
		if fmt.Sprint(i) == body.SnapshotID {
			in.acknowledged = max(in.acknowledged, through)
		}
	}
	if c.fault == "an acknowledgement reaches the head" {
		in.acknowledged = uint64(len(in.posts))
	}
	return map[string]any{"acknowledgedThrough": in.acknowledged}
}
