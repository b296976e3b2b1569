package live

// Event names a kind of frame.
type Event string

const (
	EventHello    Event = "hello"
	EventSnapshot Event = "snapshot"
	EventUnread   Event = "unread"
	EventMessage  Event = "message"
	EventSession  Event = "session-updated" // streams of sessions
	EventInbox    Event = "inbox"           // a hint to read the badge again
	EventRefused  Event = "refused"
	EventExpired  Event = "expired"
	EventPing     Event = "ping" // sockets; server-sent events use a comment line
)

// Frame is one message to a client. A socket carries it as one JSON object; server-sent events
// put the same parts into their own fields.
type Frame struct {
	Event Event  `json:"event"`
	ID    string `json:"id,omitempty"`
	Data  any    `json:"data,omitempty"`
}

// Hello is the first frame of a stream.
type Hello struct {
	Connection       string `json:"connection"`
	HeartbeatSeconds int    `json:"heartbeatSeconds"`
	Resumed          bool   `json:"resumed"`
}

// Expired is the last frame of a stream whose token ended.
type Expired struct{}

// InboxHint says that a member's inbox changed. The badge is left out where it cannot be read now.
type InboxHint struct {
	Member string `json:"member,omitempty"`
	Badge  any    `json:"badge,omitempty"`
}

// Refused answers a client's frame, or a part of the stream's address, that cannot be followed.
// The stream goes on without it.
type Refused struct {
	Code    string   `json:"code" enum:"not_found,over_budget"`
	Detail  string   `json:"detail"`
	Members []string `json:"members,omitempty"`
	Scopes  []string `json:"scopes,omitempty"`
}

// ClientFrame is what a client may send on a socket. Each frame names one thing to do.
type ClientFrame struct {
	Watch       []string `json:"watch,omitempty" maxItems:"10000"`
	Unwatch     []string `json:"unwatch,omitempty" maxItems:"10000"`
	Subscribe   []string `json:"subscribe,omitempty" maxItems:"1000"`
	Unsubscribe []string `json:"unsubscribe,omitempty" maxItems:"1000"`
}
