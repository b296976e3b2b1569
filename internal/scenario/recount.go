package scenario

import "slices"

// tally is the dumb second opinion of "random": it keeps everything that was ever said and
// counts by looking at all of it, so it shares no idea with a server that derives counts.
type tally struct {
	scopes map[string]*tallyScope
	blocks map[string]map[string]bool // who blocks whom
}

type tallyScope struct {
	posts   []*tallyPost // index + 1 is the revision
	members map[string]*tallyMember
}

type tallyPost struct {
	name, author string
	mentions     []string
	everyone     bool
	deleted      bool
}

type tallyMember struct {
	joined    bool
	effective int // first revision that can count
	read      int
	manual    bool
	from      int // 0: manual without a start
	version   int
	level     string
}

func newTally() *tally {
	return &tally{scopes: map[string]*tallyScope{}, blocks: map[string]map[string]bool{}}
}

// counts are what one row must show.
type counts struct {
	unread, attention int
	manual, shown     bool
	shownUnread       int
}

// recount counts for one member by looking at every post.
func (t *tally) recount(scope, member string) counts {
	s := t.scopes[scope]
	m := s.members[member]
	var c counts
	for i, post := range s.posts {
		revision := i + 1
		again := m.manual && m.from > 0 && revision >= m.from
		if post.deleted || revision <= m.read && !again || revision < m.effective || post.author == member ||
			t.blocks[member][post.author] {
			continue
		}
		c.unread++
		if post.everyone || slices.Contains(post.mentions, member) {
			c.attention++
		}
	}
	c.manual = m.manual
	switch m.level {
	case "all":
		c.shownUnread = c.unread
	case "mentions":
		c.shownUnread = c.attention
	}
	c.shown = c.shownUnread > 0 || m.manual && m.level != "none"
	return c
}

func (t *tally) join(scope, member string) {
	s := t.scopes[scope]
	m := s.members[member]
	if m == nil {
		m = &tallyMember{level: "all"}
		s.members[member] = m
	}
	if m.manual {
		m.version++
	}
	m.joined, m.manual, m.from = true, false, 0
	m.effective = len(s.posts) + 1
	m.read = max(m.read, len(s.posts))
}
