package trace

import "errors"

// ErrFormat is input that is not a trace. The text names the line and what is wrong with it.
var ErrFormat = errors.New("not a chat trace")

// The small numbers by which a trace names things. They are numbered independently of each other.
type (
	// Channel numbers a channel.
	Channel uint32
	// Topic numbers a topic.
	Topic uint32
	// User numbers a user.
	User uint32
)

// MaxMentions bounds the users that one row may name.
const MaxMentions = 1000

// Row is one message.
type Row struct {
	At       int64 // seconds since 1970, for display; rows are ordered by their place only
	Channel  Channel
	Topic    Topic
	Sender   User
	Mentions []User // in the order named, each once; may name the sender
	Everyone bool   // everyone in the scope is named
	Length   int    // of the text, in bytes
}
