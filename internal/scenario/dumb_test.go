package scenario

import (
	"slices"
	"sync"
)

// dumb is a server that knows nothing of ranks: it keeps every message and recounts by looking
// at all of them. It exists so that the runner can be shown wrong servers, which the real one
// must never be: a runner that cannot fail proves nothing. Its faults are switched on by name.
type dumb struct {
	mu         sync.Mutex
	workspaces map[string]*dumbWorkspace
	fault      string
	changed    chan struct{} // closed and replaced at every change
	cut        chan struct{} // closed and replaced by restart
}

type dumbWorkspace struct {
	lsn      uint64
	streamed bool
	members  map[string]bool
	badges   map[string]string
	private  map[string]bool // whose receipts are
	blocks   map[string]map[string]bool
	scopes   map[string]*dumbScope
	receipts map[string]receipt
	inboxes  map[string]*dumbInbox
}

type receipt struct {
	body   string
	answer map[string]any
}

type dumbScope struct {
	kind, parent, root, history string
	tags                        []string
	archived                    bool
	posts                       []*dumbPost
	revisions                   uint64
	rows                        map[string]*dumbRow
}

type dumbPost struct {
	id, author, principal string
	mentions              []string
	everyone, deleted     bool
	seq, revision         uint64    // revision 0: not readable
	twin                  *dumbPost // the same reply in the channel
}

type dumbRow struct {
	joined, visible bool
	eff, read       uint64
	manual          bool
	from            *uint64
	version         uint64
	level           string
	unfollowed      bool
	parentEpoch     uint64
	epoch           uint64
}

func newDumb(fault string) *dumb {
	return &dumb{workspaces: map[string]*dumbWorkspace{}, fault: fault,
		changed: make(chan struct{}), cut: make(chan struct{})}
}

func newDumbWorkspace() *dumbWorkspace {
	return &dumbWorkspace{members: map[string]bool{}, badges: map[string]string{},
		private: map[string]bool{},
		blocks:  map[string]map[string]bool{}, scopes: map[string]*dumbScope{},
		receipts: map[string]receipt{}, inboxes: map[string]*dumbInbox{}}
}

// bump records a change and wakes the streams. The caller holds the lock.
func (d *dumb) bump(w *dumbWorkspace) {
	w.lsn++
	close(d.changed)
	d.changed = make(chan struct{})
}

func (s *dumbScope) join(w *dumbWorkspace, member string) *dumbRow {
	r := s.rows[member]
	if r == nil {
		r = &dumbRow{level: "all"}
		if s.kind == "thread" {
			r.level = "inherit"
		}
		s.rows[member] = r
	} else if r.joined {
		return r
	} else if s.history == "shared" {
		r.joined = true
		return r
	}
	r.joined, r.visible = true, true
	r.eff, r.read = s.revisions+1, max(r.read, s.revisions)
	r.epoch++
	if r.manual {
		r.manual, r.from = false, nil
		r.version++
	}
	if parent := w.scopes[s.parent]; parent != nil && parent.rows[member] != nil {
		r.parentEpoch = parent.rows[member].epoch
	}
	return r
}

// draw makes a member of the channel follow a thread, unless they said that they do not.
func (s *dumbScope) draw(w *dumbWorkspace, name string) {
	up := w.scopes[s.parent].rows[name]
	if up == nil || !up.joined || s.rows[name] != nil && s.rows[name].unfollowed {
		return
	}
	s.join(w, name)
}

func (s *dumbScope) find(id string) *dumbPost {
	for _, p := range s.posts {
		if p.id == id {
			return p
		}
	}
	return nil
}

// effective is the revision below and at which nothing counts.
func (r *dumbRow) effective() uint64 {
	e := r.read
	if r.manual && r.from != nil {
		e = min(e, *r.from-1)
	}
	return max(e, r.eff-1)
}

// unreadPosts lists what counts for a member.
func (d *dumb) unreadPosts(w *dumbWorkspace, s *dumbScope, member string) []*dumbPost {
	var out []*dumbPost
	e := s.rows[member].effective()
	for _, p := range s.posts {
		gone := p.deleted && d.fault != "deleted messages count"
		if gone || p.revision <= e || p.author == member || p.principal == member ||
			w.blocks[member][p.author] {
			continue
		}
		out = append(out, p)
	}
	return out
}

func (s *dumbScope) attention(posts []*dumbPost, member string) uint64 {
	var n uint64
	for _, p := range posts {
		if s.kind == "dm" || p.everyone || slices.Contains(p.mentions, member) {
			n++
		}
	}
	return n
}

// listedRow is the row of a member, or false when there is none to see.
func (d *dumb) listedRow(w *dumbWorkspace, name, member string) (row, bool) {
	s := w.scopes[name]
	r := s.rows[member]
	if r == nil || !r.joined || !r.visible {
		return row{}, false
	}
	level, archived := r.level, s.archived
	if parent := w.scopes[s.parent]; s.kind == "thread" && parent != nil {
		up := parent.rows[member]
		if up == nil || !up.joined || !up.visible || up.epoch != r.parentEpoch {
			return row{}, false
		}
		archived = archived || parent.archived || s.rootDeleted(parent)
		if level == "inherit" {
			level = up.level
		}
	}
	posts := d.unreadPosts(w, s, member)
	out := row{Type: s.kind, Parent: s.parent, Tags: s.tags, Notification: level,
		Archived: archived, State: "ready", Unread: uint64(len(posts)),
		Attention: s.attention(posts, member), ManualUnread: r.manual,
		ContentRevision: s.revisions, ReadState: readState{ReadRevision: r.read,
			ManualUnread: r.manual, Version: r.version, FromRevision: r.from}}
	if len(s.posts) > 0 {
		out.LatestMessage = &messageAt{ID: s.posts[len(s.posts)-1].id}
	}
	if archived {
		return out, true
	}
	contribution := map[string]uint64{"all": out.Unread, "mentions": out.Attention}[level]
	if d.fault == "muted messages are shown" {
		contribution = out.Unread
	}
	out.ShownUnread = contribution
	out.Shown = contribution > 0 || r.manual && level != "none"
	return out, true
}

func (s *dumbScope) rootDeleted(parent *dumbScope) bool {
	for _, p := range parent.posts {
		if p.id == s.root {
			return p.deleted
		}
	}
	return false
}

func (d *dumb) page(w *dumbWorkspace, member string) *page {
	p := &page{State: "ready", Complete: true, LSN: w.lsn, Scopes: map[string]row{}}
	for name := range w.scopes {
		if r, ok := d.listedRow(w, name, member); ok {
			p.Scopes[name] = r
		}
	}
	p.Badge = fold(p.Scopes)
	if d.fault == "the badge drifts" && w.lsn > 6 {
		p.Badge.Messages++
	}
	p.Badge.Display = map[string]uint64{"conversations": p.Badge.Conversations,
		"attention": p.Badge.Attention}[w.badges[member]]
	if mode := w.badges[member]; mode == "" || mode == "messages" {
		p.Badge.Display = p.Badge.Messages
	}
	p.HasUnread = p.Badge.Conversations > 0
	return p
}

// read applies a read or a manual mark to a row and returns the status.
func (d *dumb) mark(r *dumbRow, in readRequest, through uint64) string {
	current := in.ExpectedVersion == nil || *in.ExpectedVersion == r.version
	before := *r
	if in.Type == "unread" {
		if !current {
			return "conflict"
		}
		same := r.manual && (r.from == nil) == (in.FromRevision == nil) &&
			(r.from == nil || *r.from == *in.FromRevision)
		if same {
			return "unchanged"
		}
		r.manual, r.from = true, in.FromRevision
		r.version++
		return "applied"
	}
	r.read = max(r.read, through)
	if d.fault == "the cursor moves back" {
		r.read = through
	}
	covered := r.from == nil || through >= *r.from
	if r.manual && covered && (current || d.fault == "late reads clear marks") {
		r.manual, r.from = false, nil
		r.version++
	}
	if *r == before {
		return "unchanged"
	}
	return "applied"
}

type readRequest struct {
	Scope           string        `json:"scope"`
	Type            string        `json:"type"`
	ReadRevision    uint64        `json:"readRevision"`
	ThroughMessage  string        `json:"throughMessage"`
	FromRevision    *uint64       `json:"fromRevision"`
	ExpectedVersion *uint64       `json:"expectedVersion"`
	Threads         []readRequest `json:"threads"`
}
