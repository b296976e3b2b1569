package live

import (
	"encoding/json"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Row is one scope as one member sees it, complete. Rows, pages and deltas are written from the
// runtime's values (encode.go); these types describe them, and clients decode into them.
type Row struct {
	Type            string         `json:"type" enum:"channel,dm,thread,task,session"`
	Name            string         `json:"name"`
	Parent          string         `json:"parent,omitempty"`
	Tags            []string       `json:"tags,omitempty"`
	Notification    string         `json:"notification" enum:"all,mentions,none"`
	Archived        bool           `json:"archived"`
	Unread          uint64         `json:"unread"`
	Attention       uint64         `json:"attention"`
	Activity        uint64         `json:"activity"`
	ManualUnread    bool           `json:"manualUnread"`
	Shown           bool           `json:"shown"`
	ShownUnread     uint64         `json:"shownUnread"`
	State           string         `json:"state" enum:"ready,snapshot_serving"`
	ContentRevision uint64         `json:"contentRevision"`
	ReplyCount      uint64         `json:"replyCount,omitempty"`
	Follow          string         `json:"follow,omitempty" enum:"following,stopped"`
	LatestMessage   *LatestMessage `json:"latestMessage,omitempty"`
	LastActivityAt  *time.Time     `json:"lastActivityAt,omitempty"`
	ReadState       ReadState      `json:"readState"`
}

// LatestMessage names the newest live message of a scope.
type LatestMessage struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// ReadState is what a member's devices share about one scope.
type ReadState struct {
	ReadRevision    uint64 `json:"readRevision"`
	ManualUnread    bool   `json:"manualUnread"`
	Version         uint64 `json:"version"`
	FromRevision    uint64 `json:"fromRevision,omitempty"`
	ActivityReadSeq uint64 `json:"activityReadSeq"`
}

// Badge is the fold of a member's shown scopes. Display is the number chosen in their settings.
type Badge struct {
	Messages      uint64 `json:"messages"`
	Conversations uint64 `json:"conversations"`
	Attention     uint64 `json:"attention"`
	Display       uint64 `json:"display"`
}

// Page is one page of a member's scopes with their totals. Complete stands on the last page.
type Page struct {
	Member    string         `json:"member,omitempty"`
	HasUnread bool           `json:"hasUnread"`
	State     string         `json:"state" enum:"ready,snapshot_serving"`
	Badge     Badge          `json:"badge"`
	Complete  bool           `json:"complete"`
	LSN       uint64         `json:"lsn"`
	Next      string         `json:"next,omitempty"`
	Scopes    map[string]Row `json:"scopes"`
}

// Withheld stands where values cannot be shown. Nothing in it is a zero that was counted.
type Withheld struct {
	Member    string   `json:"member,omitempty"`
	HasUnread bool     `json:"hasUnread"`
	Counts    NoCounts `json:"counts"`
	State     string   `json:"state" enum:"hydrating,stale,unavailable"`
}

// NoCounts is an empty object.
type NoCounts struct{}

// Delta is the whole present state of one scope of a member: its row, or removed.
type Delta struct {
	Member    string `json:"member,omitempty"`
	Scope     string `json:"scope"`
	Row       *Row   `json:"row,omitempty"`
	Removed   bool   `json:"removed,omitempty"`
	HasUnread bool   `json:"hasUnread"`
	Badge     Badge  `json:"badge"`
	LSN       uint64 `json:"lsn"`
}

// Message is a message as its readers see it.
type Message struct {
	ID               string          `json:"id"`
	Seq              uint64          `json:"seq"`
	ContentRevision  uint64          `json:"contentRevision,omitempty"`
	Author           string          `json:"author"`
	NotifyPrincipal  string          `json:"notifyPrincipal,omitempty"`
	Kind             string          `json:"kind"`
	Mentions         []string        `json:"mentions"`
	Recipients       []string        `json:"recipients,omitempty"` // of a task's, in lists only
	Delivered        int             `json:"delivered,omitempty"`  // how many they are
	MentionsEveryone bool            `json:"mentionsEveryone,omitempty"`
	Silent           bool            `json:"silent,omitempty"`
	ReplyTo          string          `json:"replyTo,omitempty"`
	LocalID          string          `json:"localId,omitempty"`
	Payload          json.RawMessage `json:"payload,omitempty"`
	CreatedAt        *time.Time      `json:"createdAt,omitempty"`
	EditedAt         *time.Time      `json:"editedAt,omitempty"`
	ExpiresAt        *time.Time      `json:"expiresAt,omitempty"`
}

// MessageEvent is one change of a message in a scope that a stream subscribed to.
type MessageEvent struct {
	Op      string  `json:"op" enum:"added,edited,removed"`
	Scope   string  `json:"scope"`
	Message Message `json:"message"`
}

// NewReadState puts a stored row's read state on the wire.
func NewReadState(r *readstate.Row) ReadState {
	return ReadState{
		ReadRevision: uint64(r.Read), ManualUnread: r.Manual.Set, Version: r.Manual.Version,
		FromRevision: uint64(r.Manual.From), ActivityReadSeq: uint64(r.Activity.Read),
	}
}

// NewWithheld says why values are not shown. A state that would be servable is hydrating: the
// runtime was asked a moment before it became ready.
func NewWithheld(s unread.State) Withheld {
	if s == "" || s.Servable() {
		s = unread.Hydrating
	}
	return Withheld{State: string(s)}
}

// NewMessage puts a message on the wire.
func NewMessage(m *facts.Message) Message {
	out := Message{
		ID: m.ID, Seq: uint64(m.Seq), ContentRevision: uint64(m.Revision),
		Author: string(m.Author), Kind: m.Kind, Mentions: make([]string, len(m.Mentions)),
		MentionsEveryone: m.Everyone, Silent: m.Silent, ReplyTo: m.ReplyTo, LocalID: m.LocalID,
		Payload: m.Payload, CreatedAt: instant(m.CreatedAt), EditedAt: instant(m.EditedAt),
		ExpiresAt: instant(m.ExpiresAt),
	}
	if m.Principal != m.Author {
		out.NotifyPrincipal = string(m.Principal)
	}
	for i, id := range m.Mentions {
		out.Mentions[i] = string(id)
	}
	out.Delivered = m.Delivered
	for _, id := range m.Recipients {
		out.Recipients = append(out.Recipients, string(id))
	}
	return out
}

// newMessageEvent puts a message change on the wire. What is removed has no content any more.
func newMessageEvent(c *facts.MessageChange) MessageEvent {
	out := MessageEvent{Scope: string(c.ScopeID), Message: NewMessage(&c.Message)}
	switch c.Op {
	case facts.MessageAdded:
		out.Op = "added"
	case facts.MessageEdited:
		out.Op = "edited"
	default:
		out.Op = "removed"
		out.Message.Payload = nil
	}
	return out
}

// instant is the time of milliseconds since the epoch, nil for none.
func instant(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}
