package chat

import (
	"fmt"

	"charm.land/bubbles/v2/textinput"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// Intent is what a key asks for beyond the screen.
type Intent interface{ intent() }

type (
	// Open opens a room anew: what was there before is read by looking at it.
	Open struct{ Room Room }
	// Read reads the room as it was on the screen.
	Read struct{ Room Room }
	// Mark marks the room, as it was on the screen, as unread.
	Mark struct{ Room Room }
	// Post sends a text to a room.
	Post struct {
		Room Key
		Text string
	}
	// Earlier loads older messages of the open room.
	Earlier struct{}
	// Retry attempts at once what waits for a later attempt.
	Retry struct{}
	// Quit ends the program.
	Quit struct{}
)

func (Open) intent()    {}
func (Read) intent()    {}
func (Mark) intent()    {}
func (Post) intent()    {}
func (Earlier) intent() {}
func (Retry) intent()   {}
func (Quit) intent()    {}

// maxText bounds what is written at once; a payload may have 64 KiB.
const maxText = 16_000

// Model is what is on the screen. Its methods do no input or output.
type Model struct {
	width, height int // of the terminal, in cells
	world         World
	selected      Key // in the list
	chose         bool
	open          Key // whose messages are there
	inRoom        bool
	away          bool // the terminal said that another window is in use
	help          bool
	notice        string
	scroll        int // lines below the last one that is drawn

	input   textinput.Model
	drafts  map[Key]string
	sending bool

	// newAfter is where the separator is: before the first message of others above it.
	newAfter readsync.Revision

	// lines are the messages as they were laid out by what is in laid.
	lines []line
	laid  laid
}

// NewModel returns a model without a world, of a terminal of an unknown size.
func NewModel() Model {
	in := textinput.New()
	in.Prompt, in.CharLimit = "> ", maxText
	in.SetVirtualCursor(false)
	in.SetStyles(textinput.Styles{})
	return Model{input: in, drafts: map[Key]string{}}
}

// Show takes in what the client says now.
func (m *Model) Show(w World) {
	if m.open != (Key{}) && m.Looking() && !m.separated() {
		m.newAfter = max(m.newAfter, w.Messages.Through) // it comes before somebody's eyes
	}
	before := m.lines
	m.world = w
	m.layout()
	if m.scroll > 0 && m.open != (Key{}) {
		m.scroll += m.grown(before) // what is read stays where it is
	}
	m.clampScroll()
	if (!m.chose || m.world.index(m.selected) < 0) && len(w.Rooms) > 0 {
		m.selected = w.Rooms[0].Key // the first one, until somebody wants another
	}
}

// Resize takes in the size of the terminal, in cells.
func (m *Model) Resize(width, height int) {
	m.width, m.height = width, height
	m.input.SetWidth(max(1, m.paneWidth()-len(m.input.Prompt)-1))
	m.layout()
	m.clampScroll()
}

// Focus takes in whether the terminal is in use. One that never says so is.
func (m *Model) Focus(here bool) { m.away = !here }

// Opened is told once a room's window is open.
func (m *Model) Opened(r *Room) {
	m.keepDraft()
	m.open, m.selected, m.inRoom = r.Key, r.Key, true
	m.scroll, m.newAfter, m.notice = 0, r.ReadThrough, ""
	m.world.Messages = client.Snapshot{} // of the room before
	m.layout()
	m.input.SetValue(m.drafts[r.Key])
	m.input.CursorEnd()
	_ = m.input.Focus() // no blinking: the terminal's own cursor is shown
}

// Replaced is told when a session was merged into another one.
func (m *Model) Replaced(id, by string) {
	old, now := Key{true, id}, Key{true, by}
	if m.selected == old {
		m.selected = now
	}
	if m.open == old {
		m.open, m.newAfter = now, 0
		m.layout()
		m.notice = "This session was merged into another one, which is shown now."
	}
}

// Sent is told how the posting of a text to a room ended.
func (m *Model) Sent(p Post, err error) {
	m.sending = false
	if err != nil {
		m.notice = "Not sent: " + explain(err) + ". Enter sends it again."
		return
	}
	delete(m.drafts, p.Room)
	if m.open == p.Room {
		m.input.Reset()
		m.scroll, m.newAfter = 0, max(m.newAfter, m.world.Messages.Through)
		m.layout()
	}
}

// Failed shows that something did not work.
func (m *Model) Failed(what string, err error) {
	m.notice = fmt.Sprintf("%s: %s.", what, explain(err))
}

// Tell shows a line until the next key.
func (m *Model) Tell(text string) { m.notice = text }

// Looking tells whether somebody looks at the newest messages of the open room.
func (m *Model) Looking() bool {
	return m.inRoom && !m.away && !m.help && m.scroll == 0 && m.fits() &&
		m.world.Messages.Loaded && m.world.Messages.Session == m.open.ID
}

func (m *Model) keepDraft() {
	if m.open == (Key{}) {
		return
	}
	if text := m.input.Value(); text != "" {
		m.drafts[m.open] = text
	} else {
		delete(m.drafts, m.open)
	}
}

// separated tells whether the separator is there.
func (m *Model) separated() bool {
	for i := range m.world.Messages.Messages {
		if m.isNew(&m.world.Messages.Messages[i]) {
			return true
		}
	}
	return false
}

// isNew tells whether a message was unread when the room was opened, or came while nobody looked.
func (m *Model) isNew(x *readsync.Message) bool {
	mine := !m.open.Session && x.Author == m.world.Member
	return x.ContentRevision > m.newAfter && !mine
}
