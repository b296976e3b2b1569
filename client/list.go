package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// Session is a session as it may be shown: what the server said, with the operations of this client
// on top. It is a value that does not change any more, and stands for what somebody saw: MarkRead
// and MarkUnread act on it, and not on what the session has become.
type Session struct {
	ID                string
	Title             string
	Active            bool
	Thinking          bool
	PendingInput      bool
	PendingPermission bool
	ContentRevision   readsync.Revision
	ReadRevision      readsync.Revision // inclusive
	ManualUnread      bool
	Version           readsync.Version
	// Unread is what a dot goes by. It is false while the server has not told the read state.
	Unread bool
	// Pending is the number of operations that the server has not decided on.
	Pending   int
	UpdatedAt time.Time // zero until the list was loaded; for display only
	CreatedAt time.Time

	seen readsync.View
}

// session is what the server has said of one.
type session struct {
	wireSession
	said     readsync.State
	told     bool   // the read state is known
	streamed uint64 // the tick of the last event
}

// merge takes in a statement. Flags and titles have no number to be ordered by, so that those of an
// answer count only if no event came since its request.
func (x *session) merge(w *wireSession, newest bool) {
	if s, told := w.state(); told {
		x.said, x.told = x.said.Merge(s), true
	}
	updated, created := x.UpdatedAt, x.CreatedAt
	if newest {
		x.wireSession = *w
	}
	x.UpdatedAt, x.CreatedAt = created, created
	if updated.After(w.UpdatedAt) {
		x.UpdatedAt = updated
	} else {
		x.UpdatedAt = w.UpdatedAt
	}
	if created.IsZero() {
		x.CreatedAt = w.CreatedAt
	}
}

// show puts this client's operations on top.
func (c *Client) show(x *session) Session {
	v := c.outbox.View(x.ID, x.said)
	return Session{
		ID: x.ID, Title: x.Title, Active: x.Active, Thinking: x.Thinking,
		PendingInput: x.PendingInput, PendingPermission: x.PendingPermission,
		ContentRevision: v.ContentRevision, ReadRevision: v.ReadRevision,
		ManualUnread: v.ManualUnread, Version: v.Version,
		Unread:  x.told && v.Unread(x.Active, x.Thinking),
		Pending: v.Pending, UpdatedAt: x.UpdatedAt, CreatedAt: x.CreatedAt, seen: v,
	}
}

// Sessions returns the list, the most recently touched first, and whether it was loaded whole since
// the client was opened. Nothing is listed before it is known what waits in the outbox: a session
// would be shown as unread that was read. The slice is the caller's.
func (c *Client) Sessions() (list []Session, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.restored {
		return nil, false
	}
	list = make([]Session, 0, len(c.sessions))
	for _, x := range c.sessions {
		list = append(list, c.show(x))
	}
	slices.SortFunc(list, func(a, b Session) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, c.listed
}

// Session returns one session; ErrUnknownSession when the server has not told of it, ErrNotReady
// before anything is listed.
func (c *Client) Session(id string) (Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.restored {
		return Session{}, ErrNotReady
	}
	x := c.sessions[id]
	if x == nil {
		return Session{}, ErrUnknownSession
	}
	return c.show(x), nil
}

// tell takes in an event of a session.
func (c *Client) tell(w *wireSession) {
	if w.ID == "" {
		return // no server says that
	}
	if w.Removed {
		c.remove(w.ID)
		return
	}
	c.mu.Lock()
	c.tick++
	c.put(w, c.tick, true)
	c.mu.Unlock()
	c.events.add()
}

// put takes in a statement; c.mu is held.
func (c *Client) put(w *wireSession, tick uint64, newest bool) {
	if c.departures.has(w.ID) {
		return
	}
	x := c.sessions[w.ID]
	if x == nil {
		x = &session{said: c.early[w.ID]}
		delete(c.early, w.ID)
		c.sessions[w.ID], newest = x, true
	}
	x.merge(w, newest)
	x.streamed = max(x.streamed, tick)
}

// hear takes in what an answer to an operation says of a session; c.mu is held.
func (c *Client) hear(id string, s readsync.State) {
	if x := c.sessions[id]; x != nil {
		x.said, x.told = x.said.Merge(s), true
		return
	}
	c.early[id] = c.early[id].Merge(s)
}

// remove takes out a session that the stream tells to be merged into another one, and finds out into
// which. The stream may tell of it again, and an answer may have told before.
func (c *Client) remove(id string) {
	c.mu.Lock()
	for w := range c.windows { // of the other one: what was copied there is no event of its own
		w.state.Interrupted()
		wake(w.wake)
	}
	concerned := c.concerned(id)
	c.departures.note(id, func(x *departure) {
		x.streamed, x.resolving = true, x.resolving || concerned
	})
	if concerned && !slices.Contains(c.unresolved, id) {
		c.unresolved = append(c.unresolved, id)
	}
	c.mu.Unlock()
	if concerned {
		c.supersede(id)
		wake(c.listWake)
	}
}

// supersede forgets a session whose id leads to another one, and what was meant for it.
func (c *Client) supersede(id string) {
	c.mu.Lock()
	c.departures.note(id, func(*departure) {})
	delete(c.sessions, id)
	c.mu.Unlock()
	err := c.commit(func() (readsync.Change, error) { return c.outbox.Supersede(id), nil }, nil)
	if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNotReady) {
		// The server refuses them, too.
		c.opts.Log.Warn("operations of a session that is gone are kept", "session", id, "error", err)
	}
	c.events.add()
}

// replaced moves everything from a session to the one in its place. The answers to several requests
// may tell of it; the caller is told once.
func (c *Client) replaced(id, by string) {
	c.supersede(id)
	c.mu.Lock()
	told := c.departures.told(id)
	c.departures.note(id, func(x *departure) { x.told = true })
	for w := range c.windows {
		if w.state.Session() == id {
			w.state.Replaced(by)
			w.err = nil
			wake(w.wake)
		}
	}
	c.mu.Unlock()
	if told {
		c.events.add() // windows that were opened since
		return
	}
	c.events.add(Event{Kind: EventReplaced, Session: id, By: by})
}

// runList loads the list when the stream could not go on where it was, and asks what became of
// sessions that are gone.
func (c *Client) runList(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		err := c.listOnce(ctx)
		if err == nil {
			failures = 0
			select {
			case <-ctx.Done():
			case <-c.listWake:
			}
			continue
		}
		failures++
		c.pause(ctx, c.delay(failures), c.listWake)
	}
}

// listOnce does what there is to do.
func (c *Client) listOnce(ctx context.Context) error {
	for {
		c.mu.Lock()
		var id string
		if ids := c.unresolved; len(ids) > 0 && c.restored { // what was meant for them is known
			id = ids[0]
		}
		stale := c.filled != c.gaps
		c.mu.Unlock()
		switch {
		case id != "":
			if err := c.resolve(ctx, id); err != nil {
				return err
			}
			c.mu.Lock()
			c.departures.resolve(id, true)
			c.unresolved = slices.DeleteFunc(c.unresolved,
				func(other string) bool { return other == id })
			c.mu.Unlock()
		case stale:
			if err := c.relist(ctx); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// resolve asks what is in the place of a session.
func (c *Client) resolve(ctx context.Context, id string) error {
	defer c.asking(false)()
	w := wireSession{asked: id}
	err := c.get(ctx, sessionPath(id, ""), &w)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused) && refused.ReplacedBy != "":
		c.replaced(id, refused.ReplacedBy)
		return nil
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound && refused.Code != "":
		c.supersede(id) // gone for good
		return nil
	case err == nil:
		c.mu.Lock()
		c.put(&w, 0, false)
		c.mu.Unlock()
		c.events.add()
	}
	return err
}

// listPage loads a page of the list, and notes whom it lists.
func (c *Client) listPage(
	ctx context.Context, token string, listed map[string]struct{},
) (page wireSessions, err error) {
	path := "/api/sessions?limit=500"
	if token != "" {
		path += "&pageToken=" + url.QueryEscape(token)
	}
	if err := c.get(ctx, path, &page); err != nil {
		return page, err
	}
	before := len(listed)
	for i := range page.Sessions {
		listed[page.Sessions[i].ID] = struct{}{}
	}
	if page.Next != "" && len(listed) == before {
		return page, fmt.Errorf("GET %s: %w", path, errEndless)
	}
	return page, nil
}

// relist loads all pages. What they do not have, and no event told of since, was merged away, or it
// was touched while the pages were loaded: the server is asked about each.
func (c *Client) relist(ctx context.Context) error {
	defer c.asking(false)()
	c.mu.Lock()
	gaps, began := c.gaps, c.tick
	c.mu.Unlock()
	listed := make(map[string]struct{})
	for token := ""; ; {
		page, err := c.listPage(ctx, token, listed)
		if err != nil {
			return err
		}
		c.mu.Lock()
		for i := range page.Sessions {
			w := &page.Sessions[i]
			x := c.sessions[w.ID]
			c.put(w, 0, x == nil || x.streamed <= began)
		}
		c.mu.Unlock()
		c.events.add()
		if token = page.Next; token == "" {
			break
		}
	}
	c.mu.Lock()
	for id, x := range c.sessions {
		_, there := listed[id]
		if !there && x.streamed <= began && !slices.Contains(c.unresolved, id) {
			c.departures.resolve(id, false)
			c.unresolved = append(c.unresolved, id)
		}
	}
	clear(c.early) // of those that are no more
	c.listed, c.filled = true, gaps
	c.mu.Unlock()
	c.events.add()
	return nil
}
