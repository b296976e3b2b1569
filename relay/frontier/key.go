package frontier

import (
	"strings"
	"unicode/utf8"
)

// Key names a context, as it is kept: not escaped. A bare key names a channel, and what is not known
// here is carried along without a meaning.
type Key string

// Scope is what a Key names, from the broadest to the narrowest.
type Scope uint8

// The scopes, in the order in which marks are kept under pressure.
const (
	Channel Scope = iota // the bare id of a channel
	Thread               // the replies of one root
	CatchUp              // what was caught up with, of a channel or of a thread
	Other                // one message, or something unknown
)

// Prefixes of keys, and of what is no frontier on the wire.
const (
	threadPrefix         = "thread:"
	messagePrefix        = "msg:"
	activityPrefix       = "activity:"
	threadActivityPrefix = "thread-activity:"

	overridePrefix = "ov_"
	escapePrefix   = "esc:"
)

// Limits of keys.
const (
	MaxKey         = 256                   // bytes of a key on the wire
	MaxOverrideKey = MaxKey - len("ov_s:") // bytes of a context that has a register
)

// ChannelKey is the key of everything in a channel.
func ChannelKey(channel string) Key { return Key(channel) }

// ThreadKey is the key of the replies below a root.
func ThreadKey(root string) Key { return Key(threadPrefix + root) }

// MessageKey is the key of one message.
func MessageKey(id string) Key { return Key(messagePrefix + id) }

// ActivityKey is the key of the ordinary top-level messages of a channel.
func ActivityKey(channel string) Key { return Key(activityPrefix + channel) }

// ThreadActivityKey is the key of the replies of a thread that somebody caught up with.
func ThreadActivityKey(root string) Key { return Key(threadActivityPrefix + root) }

// Scope returns what the key names.
func (k Key) Scope() Scope {
	text := string(k)
	switch {
	case !strings.Contains(text, ":"):
		return Channel
	case strings.HasPrefix(text, threadPrefix) && isID(text[len(threadPrefix):]):
		return Thread
	case strings.HasPrefix(text, activityPrefix),
		strings.HasPrefix(text, threadActivityPrefix) && isID(text[len(threadActivityPrefix):]):
		return CatchUp
	}
	return Other
}

// IsMessage tells the key of one message from everything else.
func (k Key) IsMessage() bool {
	id, ok := strings.CutPrefix(string(k), messagePrefix)
	return ok && isID(id)
}

// Event returns the event that the key names: the root of a thread or the message. It is "" for the
// keys of channels and for unknown ones.
func (k Key) Event() string {
	for _, prefix := range []string{threadPrefix, messagePrefix, threadActivityPrefix} {
		if id, ok := strings.CutPrefix(string(k), prefix); ok && isID(id) {
			return id
		}
	}
	return ""
}

// ChannelOf returns the channel that the key names by itself: a bare key or an activity's.
func (k Key) ChannelOf() string {
	if id, ok := strings.CutPrefix(string(k), activityPrefix); ok {
		return id
	}
	if k.Scope() == Channel {
		return string(k)
	}
	return ""
}

// isID tells an event's id: 64 lower-case hexadecimal digits.
func isID(text string) bool {
	if len(text) != 64 {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// wire returns the key of a frontier as it is published: one that could be taken for something else
// is escaped, once.
func (k Key) wire() string {
	text := string(k)
	if strings.HasPrefix(text, overridePrefix) || strings.HasPrefix(text, escapePrefix) {
		return escapePrefix + text
	}
	return text
}

// Check says why a key cannot be that of a frontier: ErrKey, or nil.
func (k Key) Check() error {
	if k == "" || len(k.wire()) > MaxKey || !utf8.ValidString(string(k)) {
		return ErrKey
	}
	return nil
}

// checkOverride says why a context cannot have a register.
func (k Key) checkOverride() error {
	if k == "" || len(k) > MaxOverrideKey || !utf8.ValidString(string(k)) {
		return ErrKey
	}
	return nil
}
