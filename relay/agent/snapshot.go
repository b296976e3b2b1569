package agent

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/relay/frontier"
)

// Target names what a snapshot is of.
type Target struct {
	Kind      string `json:"kind"` // channel, thread, message
	ChannelID string `json:"channelId"`
	RootID    string `json:"rootId,omitempty"`
	MessageID string `json:"messageId,omitempty"`
}

// Check refuses targets of another form.
func (t Target) Check() error {
	ok := t.ChannelID != "" && len(t.ChannelID) <= 128
	switch t.Kind {
	case "channel":
		ok = ok && t.RootID == "" && t.MessageID == ""
	case "thread":
		ok = ok && isEvent(t.RootID) && t.MessageID == ""
	case "message":
		ok = ok && isEvent(t.MessageID) && t.RootID == ""
	default:
		ok = false
	}
	if !ok {
		return ErrTarget
	}
	return nil
}

func isEvent(id string) bool {
	return len(id) == 64 && strings.Trim(id, "0123456789abcdef") == ""
}

// key is what marks of the target are kept under.
func (t Target) key() frontier.Key {
	switch t.Kind {
	case "thread":
		return frontier.ThreadKey(t.RootID)
	case "message":
		return frontier.MessageKey(t.MessageID)
	}
	return frontier.ChannelKey(t.ChannelID)
}

// Count is a number that may be unknown: null on the wire, and never zero then.
type Count struct {
	N     int
	Known bool
}

// MarshalJSON implements json.Marshaler.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.Known {
		return []byte("null"), nil
	}
	return json.Marshal(c.N)
}

// Latest is the latest message of a target; the zero value is none.
type Latest struct {
	ID string
	At frontier.Time
}

// MarshalJSON implements json.Marshaler.
func (l Latest) MarshalJSON() ([]byte, error) {
	if l.ID == "" {
		return []byte("null"), nil
	}
	at := time.Unix(int64(l.At), 0).UTC().Format(time.RFC3339)
	return json.Marshal(map[string]string{"id": l.ID, "at": at})
}

// MaybeID is an id, or none.
type MaybeID string

// MarshalJSON implements json.Marshaler.
func (m MaybeID) MarshalJSON() ([]byte, error) {
	if m == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(m))
}

// Snapshot is what is known of a target. It is a value: nobody's copy changes.
type Snapshot struct {
	Observed  Count   `json:"observedCount"`
	Attention Count   `json:"attentionCount"`
	Exact     bool    `json:"exact"` // never
	Coverage  string  `json:"coverage"`
	Freshness string  `json:"freshness"`
	Pending   bool    `json:"pending"`
	Manual    string  `json:"manual"`
	Synced    bool    `json:"syncedManualUnread"` // never
	Muted     bool    `json:"muted"`
	Level     string  `json:"level"`
	Latest    Latest  `json:"latestMessage"`
	First     MaybeID `json:"firstUnread"` // of channels and threads with an open reading
}

// The words of Coverage and Freshness.
const (
	Unknown  = "unknown"
	Observed = "observed"
	Stale    = "stale"
)

// Badge sums all channels up.
type Badge struct {
	Messages      int   `json:"messages"`
	Conversations int   `json:"conversations"`
	Attention     int   `json:"attention"`
	Display       Count `json:"display"`
	HasUnread     bool  `json:"hasUnread"`
	Complete      bool  `json:"complete"`
}

// snapshot projects a target.
func (c *core) snapshot(t Target) Snapshot {
	s := Snapshot{Coverage: Unknown, Freshness: c.freshness, Manual: "none", Level: "all"}
	if !c.window.Access(t.ChannelID) {
		s.Freshness = Unknown
		return s
	}
	if level := c.levels[t.ChannelID]; level != "" {
		s.Level, s.Muted = level, level == "none"
	}
	view := c.view
	messages, belongs := c.of(t)
	if !belongs {
		s.Freshness = Unknown
		return s
	}
	s.Manual = manual(view, t)
	if !c.markers || !c.covers(t, messages) {
		return s
	}
	s.Coverage = Observed
	counts := view.Count(messages)
	s.Observed, s.Pending = Count{counts.Observed, true}, counts.Pending
	s.Attention = Count{counts.Attention, !counts.Pending || t.Kind == "channel"}
	if latest, ok := frontier.Latest(messages); ok {
		s.Latest = Latest{latest.ID, latest.At}
	}
	if t.Kind != "message" && c.leases.Has(t.ChannelID, t.RootID) {
		for _, m := range messages {
			if view.Verdict(m).Unread() {
				s.First = MaybeID(m.ID)
				break
			}
		}
	}
	return s
}

func manual(view frontier.View, t Target) string {
	if _, ok := view.Manual[t.key()]; ok {
		return "local"
	}
	if r, ok := view.State.Overrides[t.key()]; ok {
		f, _ := view.State.Effective(t.key(), frontier.Home{Channel: t.ChannelID})
		if r.Active(f) {
			return "synced"
		}
	}
	return "none"
}

// of returns the messages of a target; false when it does not belong to its channel.
func (c *core) of(t Target) ([]frontier.Message, bool) {
	messages, _ := c.window.Messages(t.ChannelID)
	if t.Kind == "channel" {
		return messages, true
	}
	var found []frontier.Message
	for _, m := range messages {
		if t.Kind == "thread" && m.Reply && m.Root == t.RootID || t.Kind == "message" && m.ID == t.MessageID {
			found = append(found, m)
		}
	}
	other, here := c.window.Message(t.RootID + t.MessageID)
	return found, !here || other.Channel == t.ChannelID
}

// covers tells whether there is evidence of a target. A full page may have had no room for a channel,
// so that one without messages is covered only by a page that was not full.
func (c *core) covers(t Target, messages []frontier.Message) bool {
	if len(messages) > 0 {
		return true
	}
	switch t.Kind {
	case "thread":
		_, here := c.window.Message(t.RootID)
		return here && c.covered[t.ChannelID]
	case "channel":
		return c.covered[t.ChannelID]
	}
	return false
}

func (c *core) badge() Badge {
	b := Badge{Complete: c.markers && c.freshness == Observed}
	for _, channel := range c.channels() {
		s := c.snapshot(Target{Kind: "channel", ChannelID: channel.ID})
		if !s.Observed.Known {
			b.Complete = false
		}
		b.Attention += s.Attention.N
		n := s.Observed.N
		switch s.Level {
		case "none":
			n = 0
		case "mentions":
			n = s.Attention.N
		}
		b.Messages += n
		if n > 0 || s.Manual != "none" && s.Level != "none" {
			b.Conversations++
		}
	}
	b.HasUnread = b.Conversations > 0
	b.Display = Count{b.Messages, b.Complete}
	return b
}
