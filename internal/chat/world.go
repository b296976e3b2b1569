package chat

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// Key names a room. The zero value is none.
type Key struct {
	Session bool
	ID      string
}

// Room is a session or a scope as the list shows it. It stands for what somebody saw.
type Room struct {
	Key
	Title  string
	Group  string // heading above it
	Nested bool   // a thread below its channel

	Dot       bool   // unread in whatever way
	Number    uint64 // beside the dot, zero for a dot alone
	Attention uint64
	Known     bool // Number and Attention are so; otherwise nobody knows them now
	Manual    bool
	Asks      bool // an agent waits for an answer or a permission
	Thinking  bool
	Pending   int // operations that the server has not decided on
	// ReadThrough is where unread messages begin to be, exclusive.
	ReadThrough readsync.Revision

	session client.Session
	scope   client.Scope
}

// World is what the client says at one moment.
type World struct {
	Rooms     []Room // in the order of the list
	Complete  bool   // they are all
	Member    string // empty until the server was reached
	Workspace string
	Online    bool
	SignedOut string // why no token is taken, empty while one is
	Unreached string // why nothing is known of the server, empty once it was reached
	Waiting   int    // marks and reads that the server has not decided on
	Stuck     bool   // they wait for more than an answer
	// Messages are those of the open room.
	Messages client.Snapshot
}

const (
	groupSessions = "Sessions"
	groupChannels = "Channels"
	groupDirect   = "Direct messages"
)

// newWorld asks the client for everything but messages.
func newWorld(c *client.Client) World {
	sessions, allSessions := c.Sessions()
	scopes, allScopes := c.Scopes()
	status, hub := c.Status(), c.HubStatus()
	w := World{
		Rooms: newRooms(sessions, scopes), Complete: allSessions && allScopes,
		Member: status.Namespace.Member, Workspace: status.Namespace.Workspace,
		Online: status.Live && hub.Live, Waiting: status.Pending,
	}
	w.Stuck = !w.Online || status.Waiting != nil
	if w.Member == "" && status.Waiting != nil {
		w.Unreached = explain(status.Waiting)
	}
	for _, err := range []error{status.Waiting, hub.Err} {
		switch {
		case w.Online:
		case errors.Is(err, client.ErrCredentials):
			w.SignedOut = "the server takes no token that there is"
		case errors.Is(err, client.ErrNamespace):
			w.SignedOut = "the token is somebody else's now"
		}
	}
	return w
}

// newRooms puts sessions first, the most recent on top, then channels with their threads, then
// direct messages. Tasks have a place of their own elsewhere.
func newRooms(sessions []client.Session, scopes []client.Scope) []Room {
	rooms := make([]Room, 0, len(sessions)+len(scopes))
	for i := range sessions {
		rooms = append(rooms, newSessionRoom(&sessions[i]))
	}
	threads := map[string][]Room{}
	var channels, direct []Room
	for i := range scopes {
		s := &scopes[i]
		if s.Archived {
			continue
		}
		switch r := newScopeRoom(s); s.Type {
		case "channel":
			channels = append(channels, r)
		case "dm":
			direct = append(direct, r)
		case "thread":
			threads[s.Parent] = append(threads[s.Parent], r)
		}
	}
	for _, r := range channels {
		rooms = append(append(rooms, r), threads[r.ID]...)
	}
	return append(rooms, direct...)
}

func newSessionRoom(s *client.Session) Room {
	return Room{
		Key: Key{true, s.ID}, Title: cmp.Or(s.Title, s.ID), Group: groupSessions,
		Dot: s.Unread, Known: true, Manual: s.ManualUnread,
		Asks: s.PendingInput || s.PendingPermission, Thinking: s.Active && s.Thinking,
		Pending: s.Pending, ReadThrough: s.ReadRevision, session: *s,
	}
}

func newScopeRoom(s *client.Scope) Room {
	// A dot for activities alone stays away: they are not shown here, so that nobody could read them.
	dot := s.Shown && (s.ManualUnread || s.ShownUnread > 0 || !s.Exact)
	r := Room{
		Key: Key{false, s.ID}, Title: cmp.Or(s.Name, s.ID), Group: groupChannels,
		Nested: s.Type == "thread", Dot: dot, Number: s.ShownUnread, Known: s.Exact,
		Manual: s.ManualUnread, Pending: s.Pending, ReadThrough: s.ReadRevision, scope: *s,
	}
	if s.Level != "none" {
		r.Attention = s.Attention
	}
	if s.Type == "dm" {
		r.Group, r.Attention = groupDirect, 0 // all of it is meant for the member
	}
	if s.ManualUnread && s.FromRevision > 0 {
		r.ReadThrough = min(r.ReadThrough, s.FromRevision-1)
	}
	return r
}

// room returns a room by its key.
func (w *World) room(k Key) (Room, bool) {
	if i := w.index(k); i >= 0 {
		return w.Rooms[i], true
	}
	return Room{}, false
}

func (w *World) index(k Key) int {
	return slices.IndexFunc(w.Rooms, func(r Room) bool { return r.Key == k })
}
