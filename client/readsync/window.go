package readsync

import (
	"encoding/json"
	"slices"
)

// Message is a message as the server tells it.
type Message struct {
	ID  string `json:"id"`
	Seq Seq    `json:"seq"`
	// ContentRevision is zero for what is not readable.
	ContentRevision Revision        `json:"contentRevision,omitempty"`
	Author          string          `json:"author,omitempty"`
	Kind            string          `json:"kind,omitempty"`
	LocalID         string          `json:"localId,omitempty"`
	Payload         json.RawMessage `json:"payload,omitempty"`
}

// Page is a page of messages, ascending by seq.
type Page struct {
	Messages []Message `json:"messages"`
	// HasMore says that there are further messages in the direction asked for.
	HasMore bool `json:"hasMore"`
	// ReadThroughRevision is the receipt, zero for none.
	ReadThroughRevision Revision `json:"readThroughRevision,omitempty"`
}

const (
	// MaxMessages bounds a window. What comes at its end pushes the oldest out.
	MaxMessages = 5000
	// maxHeld bounds what waits for a gap to be closed. It can be asked for again.
	maxHeld = 500
)

// Window is a run of messages up to the tail of a session, as far as is known without a gap, with
// the revision through which they were seen. The receipt lives and ends with the window.
type Window struct {
	session  string
	epoch    uint64 // of the session: revisions of an earlier one mean nothing
	messages []Message
	held     []Message // live ones beyond a gap, or before the first tail
	last     Seq       // everything up to here is in messages, or was pushed out or removed
	through  Revision
	synced   bool
	behind   bool // something beyond last may have been missed
	misses   uint64
	earlier  bool
	opening  View
	acked    Revision // observed and taken in, in this epoch
	observed bool
}

// Open returns a window without messages on a session. It needs a tail.
func Open(session string) Window { return Window{session: session, epoch: 1} }

// Session is the id of the session that the window is of.
func (w *Window) Session() string { return w.session }

// Epoch grows when the window comes to be of another session.
func (w *Window) Epoch() uint64 { return w.epoch }

// Messages returns what there is, ascending by seq. The slice is the caller's.
func (w *Window) Messages() []Message { return slices.Clone(w.messages) }

// Earlier tells whether there are older messages to load.
func (w *Window) Earlier() bool { return w.earlier }

// First is the seq of the oldest message, zero without one.
func (w *Window) First() Seq {
	if len(w.messages) == 0 {
		return 0
	}
	return w.messages[0].Seq
}

// Receipt is the revision through which the window was seen, inclusive; false before the first
// tail.
func (w *Window) Receipt() (Revision, bool) { return w.through, w.synced }

// NeedsTail tells whether the latest page has to be loaded.
func (w *Window) NeedsTail() bool { return !w.synced }

// NeedsCatchUp returns the seq after which messages have to be loaded; false when there is nothing
// to close.
func (w *Window) NeedsCatchUp() (after Seq, needed bool) {
	return w.last, w.synced && w.behind
}

// Asked is what to note when a page is asked for, and to hand in with it: what was missed in between
// is not in the page.
func (w *Window) Asked() uint64 { return w.misses }

// Latest takes in the latest page: the first time, it makes the tail known. Seen is what is shown of
// the session at that moment; automatic reads go by it.
func (w *Window) Latest(asked uint64, p Page, seen View) {
	if w.synced && len(p.Messages) > 0 && p.Messages[0].Seq > w.last+1 {
		w.messages, w.earlier = nil, true // a gap behind the page
	}
	if !w.synced {
		w.opening = seen
	}
	if len(w.messages) == 0 {
		w.earlier = p.HasMore
	}
	w.synced, w.behind = true, asked != w.misses
	w.append(p.Messages)
	w.through = max(w.through, p.ReadThroughRevision)
	w.release()
}

// Before takes in a page of older messages. It says nothing of the tail, whatever it carries.
func (w *Window) Before(p Page) {
	older := slices.DeleteFunc(slices.Clone(p.Messages), func(m Message) bool {
		return len(w.messages) > 0 && m.Seq >= w.messages[0].Seq
	})
	if room := MaxMessages - len(w.messages); len(older) > room {
		older, p.HasMore = older[len(older)-room:], true
	}
	w.messages, w.earlier = append(older, w.messages...), p.HasMore
}

// CatchUp takes in a page of the messages after a seq. One that was cut, or whose head has moved
// on, brings messages and no receipt.
func (w *Window) CatchUp(asked uint64, after Seq, p Page) {
	if !w.synced || after > w.last {
		return
	}
	ends := len(p.Messages) == 0 || p.Messages[len(p.Messages)-1].Seq <= w.last
	w.append(p.Messages)
	if !p.HasMore && p.ReadThroughRevision > 0 {
		w.through = max(w.through, p.ReadThroughRevision)
		ends = true
	}
	if w.behind = !ends || p.HasMore || asked != w.misses; !w.behind {
		w.release()
	}
}

// Added takes in a message as it comes. Where it follows what there is, the receipt covers it, too;
// beyond a gap, or before the first tail, it waits.
func (w *Window) Added(m Message) {
	switch {
	case w.synced && m.Seq <= w.last: // known
	case w.synced && !w.behind && w.follows(&m):
		w.append([]Message{m})
		w.through = max(w.through, m.ContentRevision)
	default:
		w.behind = w.synced
		if len(w.held) < maxHeld {
			w.held = append(w.held, m)
		} else {
			w.misses++
		}
	}
}

// follows tells that nothing lies between the window's end and the message: neither an entry nor a
// readable one.
func (w *Window) follows(m *Message) bool {
	return m.Seq == w.last+1 && m.ContentRevision <= w.through+1
}

// Edited replaces a message. Its revision stays.
func (w *Window) Edited(m Message) {
	for _, list := range [][]Message{w.messages, w.held} {
		if i := slices.IndexFunc(list, func(x Message) bool { return x.ID == m.ID }); i >= 0 {
			list[i] = m
		}
	}
}

// Removed takes a message out. What was seen of it stays seen.
func (w *Window) Removed(id string) {
	gone := func(m Message) bool { return m.ID == id }
	w.messages = slices.DeleteFunc(w.messages, gone)
	if slices.ContainsFunc(w.held, gone) {
		w.held = slices.DeleteFunc(w.held, gone)
		w.Interrupted() // its place would look like a gap
	}
}

// Interrupted notes that messages may have come which nobody told of.
func (w *Window) Interrupted() {
	w.behind = w.synced
	w.misses++
}

// Replaced makes it a window of another session: it has no messages, no receipt, and nothing that
// was held for it, and needs a fresh tail.
func (w *Window) Replaced(session string) {
	*w = Window{session: session, epoch: w.epoch + 1, misses: w.misses + 1}
}

// append adds what is new at the end and moves the end.
func (w *Window) append(messages []Message) {
	for _, m := range messages {
		if m.Seq > w.last {
			w.messages, w.last = append(w.messages, m), m.Seq
		}
	}
	if n := len(w.messages) - MaxMessages; n > 0 {
		w.messages, w.earlier = slices.Delete(w.messages, 0, n), true
	}
}

// release takes in what was held, as far as there is no gap.
func (w *Window) release() {
	held := w.held
	w.held = nil
	slices.SortFunc(held, func(a, b Message) int { return int(a.Seq) - int(b.Seq) })
	for _, m := range held {
		w.Added(m)
	}
}
