package client

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// ErrUnknownScope means that the server has not told of the scope, or that it is no longer the
// member's to see.
var ErrUnknownScope = errors.New("unknown scope")

// Scope is a channel, a direct message, a thread or a task as it may be shown: what the server
// counted, with the operations of this client on top. It is a value that does not change any more,
// and stands for what somebody saw, as Session does.
//
// Unlike sessions, scopes are counted by the server alone: revisions of one are never compared to
// find out whether something is unread.
type Scope struct {
	ID       string
	Type     string // channel, dm, thread or task
	Name     string
	Parent   string // of a thread
	Level    string // all, mentions or none: what may show a dot
	Archived bool
	// Exact says that the numbers below are the server's, or follow from them. Where it is false they
	// are the last that were known, or come before a read whose effect only the server can tell, and
	// are not to be shown as numbers.
	Exact bool
	// Unread, Attention and Activity are the server's counts; Shown is the dot, and ShownUnread the
	// number beside it, zero for a dot alone.
	Unread, Attention, Activity uint64
	Shown                       bool
	ShownUnread                 uint64
	ContentRevision             readsync.Revision
	ReadRevision                readsync.Revision // inclusive
	ManualUnread                bool
	Version                     readsync.Version
	// FromRevision is where a manual mark begins, zero for nowhere.
	FromRevision readsync.Revision
	// Pending is the number of operations that the server has not decided on.
	Pending int
	// LatestAt is the time of the newest message, zero without one; for display only.
	LatestAt time.Time

	seen readsync.View
}

// scope is what the server has said of one. Statements are ordered by the workspace's commits.
type scope struct {
	row  wireRow
	said readsync.State
	lsn  uint64
	// counted says that the row's numbers are those of the said state.
	counted bool
}

// hub is what the server has said of all scopes of the member. It is under the client's mu.
type hub struct {
	started  bool
	scopes   map[string]*scope
	gone     map[string]uint64 // by the commit at which they went: an older answer brings none back
	listed   bool
	withheld bool // the server cannot vouch for numbers for now
	live     bool
	err      error
	pages    *scopePages
	// reopen ends the open stream, which then begins anew with the windows that there are.
	reopen func()
	// subscribed are the scopes whose messages the stream tells.
	subscribed map[string]struct{}
}

// scopePages is a list that is being read.
type scopePages struct {
	lsn  uint64 // of the first page
	seen map[string]struct{}
}

// put takes in the whole present state of a scope as of a commit.
func (h *hub) put(id string, row *wireRow, lsn uint64) {
	if row.Type == "session" || h.gone[id] > lsn {
		return
	}
	x := h.scopes[id]
	if x == nil {
		x = &scope{}
		h.scopes[id] = x
	}
	if lsn < x.lsn {
		return
	}
	delete(h.gone, id)
	said, told := row.state()
	*x = scope{row: *row, said: said, lsn: lsn, counted: told && row.State == "ready"}
}

// remove takes out a scope that the member has left or does not see any more.
func (h *hub) remove(id string, lsn uint64) {
	if x := h.scopes[id]; x == nil || lsn >= x.lsn {
		delete(h.scopes, id)
		h.gone[id] = max(h.gone[id], lsn)
	}
}

// page takes in a page of the list; the first one begins it, the complete one ends it.
func (h *hub) page(p *wireScopes, first bool) {
	if p.Scopes == nil {
		h.withheld, h.pages = true, nil
		return
	}
	if first || h.pages == nil {
		h.pages = &scopePages{lsn: p.LSN, seen: make(map[string]struct{})}
	}
	for id, row := range p.Scopes {
		h.pages.seen[id] = struct{}{}
		h.put(id, &row, p.LSN)
	}
	if !p.Complete {
		return
	}
	for id, x := range h.scopes {
		if _, there := h.pages.seen[id]; !there && x.lsn <= h.pages.lsn {
			delete(h.scopes, id)
		}
	}
	for id, lsn := range h.gone {
		if lsn <= h.pages.lsn {
			delete(h.gone, id)
		}
	}
	h.pages, h.listed, h.withheld = nil, true, false
}

// answered takes in the answer to a read or a mark, also to one that was refused for a conflict.
func (h *hub) answered(id string, body []byte) {
	x := h.scopes[id]
	var w wireScopeState
	if x == nil || !w.decode(body) || w.LSN < x.lsn {
		return
	}
	x.said, _ = w.state()
	x.lsn = w.LSN
	if x.counted = w.Counts.Unread != nil; x.counted {
		x.row.Unread, x.row.Attention, x.row.Activity = *w.Counts.Unread, w.Counts.Attention, w.Counts.Activity
		x.row.Shown, x.row.ShownUnread = w.Counts.Shown, w.Counts.ShownUnread
	}
}

// forget has the next statements count, whatever commits they are of: the server's database may be
// another one.
func (h *hub) forget() {
	for _, x := range h.scopes {
		x.lsn = 0
	}
	clear(h.gone)
}

// show puts operations on top of what was said.
func (x *scope) show(id string, v readsync.View, withheld bool) Scope {
	r := &x.row
	s := Scope{
		ID: id, Type: r.Type, Name: r.Name, Parent: r.Parent, Level: r.Notification,
		Archived: r.Archived, Exact: x.counted && !withheld,
		Unread: r.Unread, Attention: r.Attention, Activity: r.Activity,
		Shown: r.Shown, ShownUnread: r.ShownUnread,
		ContentRevision: v.ContentRevision, ReadRevision: v.ReadRevision,
		ManualUnread: v.ManualUnread, Version: v.Version, FromRevision: v.FromRevision,
		Pending: v.Pending, seen: v,
	}
	if r.LatestMessage != nil {
		s.LatestAt = r.LatestMessage.At
	}
	if v.ReadRevision == x.said.ReadRevision && v.Version == x.said.Version {
		return s
	}
	s.overlay(&x.said)
	return s
}

// overlay says what the counts are once the operations are done. A read to the head leaves nothing,
// if no mark goes on from somewhere; how much another one leaves only the server knows, and no more
// than before.
func (s *Scope) overlay(said *readsync.State) {
	some := s.Unread > 0
	switch {
	case s.ReadRevision == said.ReadRevision && s.FromRevision == said.FromRevision:
	case s.ReadRevision >= s.ContentRevision && s.FromRevision == 0:
		s.Unread, s.Attention = 0, 0
	case some:
		s.Exact = false
	}
	switch s.Level {
	case "all":
		s.ShownUnread = s.Unread
	case "mentions":
		s.ShownUnread = s.Attention
	default:
		s.ShownUnread = 0
	}
	signal := s.Activity > 0 && s.Level == "all"
	s.Shown = !s.Archived && (s.ManualUnread && s.Level != "none" || s.ShownUnread > 0 || signal)
	if !s.Shown {
		s.ShownUnread = 0
	}
}

// Scopes returns the member's channels, direct messages, threads and tasks by name, and whether all
// of them were told since the client was opened. The first call begins to follow them. Nothing is
// listed before it is known what waits in the outbox. The slice is the caller's.
func (c *Client) Scopes() (list []Scope, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followScopes()
	if !c.restored {
		return nil, false
	}
	for id, x := range c.hub.scopes {
		v := c.outbox.View(scopeTarget(id), x.said)
		list = append(list, x.show(id, v, c.hub.withheld))
	}
	slices.SortFunc(list, func(a, b Scope) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return list, c.hub.listed
}

// Scope returns one scope; ErrUnknownScope when the server has not told of it, ErrNotReady before
// anything is listed.
func (c *Client) Scope(id string) (Scope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followScopes()
	if !c.restored {
		return Scope{}, ErrNotReady
	}
	x := c.hub.scopes[id]
	if x == nil {
		return Scope{}, ErrUnknownScope
	}
	return x.show(id, c.outbox.View(scopeTarget(id), x.said), c.hub.withheld), nil
}

// MarkScopeRead reads a scope to the newest revision that it had when it was seen, as MarkRead does
// a session.
func (c *Client) MarkScopeRead(seen Scope) (op string, err error) {
	if seen.seen.Session == "" {
		return "", ErrUnknownScope
	}
	return c.add(func(id string) readsync.Operation {
		return readsync.NewRead(id, seen.seen, seen.ContentRevision, c.millis())
	}, seen.seen.Base)
}

// MarkScopeUnread marks a scope as unread, as MarkUnread does a session.
func (c *Client) MarkScopeUnread(seen Scope) (op string, err error) {
	switch {
	case seen.seen.Session == "":
		return "", ErrUnknownScope
	case seen.ManualUnread:
		return "", nil
	}
	return c.add(func(id string) readsync.Operation {
		return readsync.NewUnread(id, seen.seen, c.millis())
	}, seen.seen.Base)
}

// OpenScope opens a window on a scope and loads its newest messages. Opening reads nothing. It
// returns ErrUnknownScope for one that the server has not told of.
func (c *Client) OpenScope(id string) (*Window, error) {
	c.mu.Lock()
	c.followScopes()
	_, known := c.view(scopeTarget(id))
	c.mu.Unlock()
	if !known {
		return nil, ErrUnknownScope
	}
	w, err := c.openWindow(scopeTarget(id))
	if err == nil {
		c.resubscribe()
	}
	return w, err
}
