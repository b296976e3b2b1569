package frontier

import (
	"cmp"
	"strings"
)

// Belonging says whether a reply is inside a conversation of the viewer.
type Belonging uint8

// The answers. An undecided reply waits for one, and is quiet until then.
const (
	Outside Belonging = iota
	Inside
	Undecided // not looked up yet, or being looked up
)

// Message is what signed evidence says of one message in one channel. It is content, retained and
// verified: auxiliary events are no messages.
type Message struct {
	ID      string
	Channel string
	At      Time   // of its event
	Millis  uint16 // 0 to 999, for the order on screen only

	Reply bool
	// Root is the canonical root of a reply, once that was verified to be in the same channel; ""
	// while it is not known. A reply without one belongs to no thread's receipts. In a dm the marked
	// root is enough: there a thread only decides how far a reader has come.
	Root string

	DM        bool // its channel is one
	Own       bool // the viewer wrote it
	Quiet     bool // it is for agents only
	Deleted   bool // with authority
	Mentioned bool // it names the viewer
	Broadcast bool
	Belongs   Belonging // of a reply
}

// TopLevel tells messages that are no replies.
func (m Message) TopLevel() bool { return !m.Reply }

// Key is the key of the message itself.
func (m Message) Key() Key { return MessageKey(m.ID) }

// Home says where the message belongs.
func (m Message) Home() Home { return Home{Channel: m.Channel, Root: m.Root} }

// ordinary messages are those that catching up with a channel reads.
func (m Message) ordinary() bool { return m.TopLevel() && !m.DM && !m.Mentioned && !m.Broadcast }

// CompareShown orders messages as they are shown, oldest first.
func CompareShown(a, b Message) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Millis, b.Millis), strings.Compare(a.ID, b.ID))
}

// newer orders messages by what counts as latest: the later one, in a second the lower id.
func newer(a, b Message) bool {
	return cmp.Or(cmp.Compare(b.At, a.At), strings.Compare(a.ID, b.ID)) < 0
}

// Category says why a message has the viewer's attention.
type Category uint8

// The categories. A broadcast has attention without one of its own.
const (
	NoCategory   Category = iota // ordinary, or nothing that counts
	Direct                       // any message of a dm
	Mention                      // it names the viewer
	Conversation                 // a reply inside a conversation of the viewer
	Broadcast                    // to everybody
)

// Category classifies a message, whether it is read or not. It is the one classification that counts,
// lists and notifications share. A quiet message has none.
func (m Message) Category() Category {
	switch {
	case m.Quiet:
		return NoCategory
	case m.DM:
		return Direct
	case m.Mentioned:
		return Mention
	case m.Reply && m.Belongs == Inside:
		return Conversation
	case m.Broadcast:
		return Broadcast
	}
	return NoCategory
}

// relevant tells whether the message may count at all: everything on the top level, and the replies
// that have a category.
func (m Message) relevant() bool {
	return !m.Quiet && (m.TopLevel() || m.Category() != NoCategory)
}
