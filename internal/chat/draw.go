package chat

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tidemark-im/tidemark/client/readsync"
)

const (
	leastWidth, leastHeight = 24, 6 // below it nothing is drawn
	bothWidth               = 60    // from here on list and room are side by side
)

// Colours are those of the terminal's own palette. What they say is said by text as well.
var (
	bold    = lipgloss.NewStyle().Bold(true)
	faint   = lipgloss.NewStyle().Faint(true)
	chosen  = lipgloss.NewStyle().Reverse(true)
	heading = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)
	fresh   = lipgloss.NewStyle().Foreground(lipgloss.Red)
	alarm   = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Yellow)
)

// line is one line of messages.
type line struct {
	text string
	seq  readsync.Seq // of its message
}

func (m *Model) fits() bool { return m.width >= leastWidth && m.height >= leastHeight }

// both tells that list and room are side by side; else the one that has the focus is there alone.
func (m *Model) both() bool { return m.width >= bothWidth }

func (m *Model) listWidth() int {
	if !m.both() {
		return m.width
	}
	return min(max(m.width/4, 22), 36)
}

func (m *Model) listHeight() int { return max(1, m.height-1) } // the last line is the status

func (m *Model) paneWidth() int {
	if !m.both() {
		return m.width
	}
	return m.width - m.listWidth() - 3
}

// paneHeight is that of the messages: title, composer with its line, and status are around them.
func (m *Model) paneHeight() int { return max(1, m.height-4) }

func (m *Model) mostScroll() int { return max(0, len(m.lines)-m.paneHeight()) }

func (m *Model) clampScroll() { m.scroll = min(max(m.scroll, 0), m.mostScroll()) }

// grown is how many lines came at the end.
func (m *Model) grown(before []line) (lines int) {
	if len(before) == 0 {
		return 0
	}
	for _, l := range m.lines {
		if l.seq > before[len(before)-1].seq {
			lines++
		}
	}
	return lines
}

// laid is what the layout of messages depends on.
type laid struct {
	room     Key
	member   string
	width    int
	newAfter readsync.Revision
	messages []readsync.Message
}

func (l *laid) same(other *laid) bool {
	return l.room == other.room && l.member == other.member && l.width == other.width &&
		l.newAfter == other.newAfter &&
		slices.EqualFunc(l.messages, other.messages, func(a, b readsync.Message) bool {
			return a.ID == b.ID && bytes.Equal(a.Payload, b.Payload)
		})
}

// layout breaks the messages of the open room into lines.
func (m *Model) layout() {
	now := laid{m.open, m.world.Member, m.paneWidth(), m.newAfter, m.world.Messages.Messages}
	if now.same(&m.laid) {
		return
	}
	m.laid, m.lines = now, nil
	last, separated := "", false
	for i := range now.messages {
		x := &now.messages[i]
		if !separated && m.isNew(x) {
			separated, last = true, ""
			rule := strings.Repeat("─", max(0, now.width-5)) + " new"
			m.lines = append(m.lines, line{fresh.Render(ansi.Truncate(rule, now.width, "")), x.Seq})
		}
		if name := m.author(x); name != last {
			last = name
			m.lines = append(m.lines, line{bold.Render(ansi.Truncate(name, now.width, "…")), x.Seq})
		}
		for _, text := range wrap(clean(textOf(x.Payload)), now.width-2) {
			m.lines = append(m.lines, line{"  " + text, x.Seq})
		}
	}
}

// Draw returns the whole screen, and where the cursor is, nil for nowhere.
func (m *Model) Draw() (screen string, cursor *tea.Cursor) {
	if !m.fits() {
		return fit("The terminal is too small.", m.width), nil
	}
	var rows []string
	switch {
	case m.help:
		rows = m.drawHelp()
	case m.both():
		list, pane := m.drawList(), m.drawPane()
		for i := range list {
			rows = append(rows, list[i]+faint.Render(" │ ")+pane[i])
		}
	case m.inRoom:
		rows = m.drawPane()
	default:
		rows = m.drawList()
	}
	if m.inRoom && !m.help && !m.sending {
		if cursor = m.input.Cursor(); cursor != nil {
			cursor.Y = m.height - 2
			if m.both() {
				cursor.X += m.listWidth() + 3
			}
		}
	}
	return strings.Join(append(rows, m.drawStatus()), "\n"), cursor
}

// drawList is exactly as high and wide as the list.
func (m *Model) drawList() []string {
	var rows []string
	var of []*Room // by row, nil for a heading
	at, group := 0, ""
	for i := range m.world.Rooms {
		r := &m.world.Rooms[i]
		if r.Group != group {
			if group = r.Group; len(rows) > 0 {
				rows, of = append(rows, fit("", m.listWidth())), append(of, nil)
			}
			rows, of = append(rows, heading.Render(fit(group, m.listWidth()))), append(of, nil)
		}
		if r.Key == m.selected {
			at = len(rows)
		}
		rows, of = append(rows, m.drawRoom(r)), append(of, r)
	}
	if len(m.world.Rooms) == 0 {
		text := "Nothing is here yet."
		if !m.world.Complete {
			text = "Connecting…"
		}
		rows = append(rows, fit(text, m.listWidth()))
	}
	from, to := visible(len(rows), at, m.listHeight())
	if from > 0 { // the choice is in the middle then
		rows[from] = m.drawBeyond("↑", of[:from+1])
	}
	if to < len(rows) {
		rows[to-1] = m.drawBeyond("↓", of[to-1:])
	}
	return window(rows, at, m.listHeight(), m.listWidth())
}

// drawBeyond says what the list has beyond its edge.
func (m *Model) drawBeyond(arrow string, rooms []*Room) string {
	more, unread := 0, 0
	for _, r := range rooms {
		if r != nil {
			more++
			if r.Dot {
				unread++
			}
		}
	}
	text := fmt.Sprintf(" %s %d more", arrow, more)
	if unread > 0 {
		text += fmt.Sprintf(", %d unread", unread)
	}
	return faint.Render(fit(text, m.listWidth()))
}

// visible is the part of so many rows that is drawn around one of them, in a height.
func visible(rows, at, height int) (from, to int) {
	from = min(max(0, at-height/2), max(0, rows-height))
	return from, min(rows, from+height)
}

// window is the part of rows around one of them, filled up to a height.
func window(rows []string, at, height, width int) []string {
	from, to := visible(len(rows), at, height)
	out := append([]string(nil), rows[from:to]...)
	for len(out) < height {
		out = append(out, fit("", width))
	}
	return out
}

func (m *Model) drawRoom(r *Room) string {
	marks := m.marks(r)
	title := " "
	if r.Key == m.open {
		title = "›"
	}
	if r.Nested {
		title += "  "
	}
	title += cleanLine(r.Title)
	text := fit(title, m.listWidth()-ansi.StringWidth(marks)-1) + " " + marks
	switch {
	case r.Key == m.selected && !m.inRoom:
		return chosen.Render(text)
	case r.Dot:
		return bold.Render(text)
	}
	return text
}

// marks are what stands beside a room; see help.
func (m *Model) marks(r *Room) string {
	var out []string
	if r.Pending > 0 && m.world.Stuck {
		out = append(out, "↑")
	}
	if r.Thinking {
		out = append(out, "…")
	}
	if r.Asks {
		out = append(out, "!")
	}
	switch {
	case !r.Known:
		out = append(out, "?")
	case r.Number > 0:
		out = append(out, strconv.FormatUint(r.Number, 10))
	case r.Dot && !r.Manual:
		out = append(out, "•")
	}
	if r.Known && r.Attention > 0 {
		out = append(out, "@"+strconv.FormatUint(r.Attention, 10))
	}
	if r.Manual {
		out = append(out, "●")
	}
	return strings.Join(out, " ")
}

// drawPane is exactly as high as the list: title, messages, a line, the composer.
func (m *Model) drawPane() []string {
	width, height := m.paneWidth(), m.paneHeight()
	if m.open == (Key{}) {
		rows := []string{fit("", width)}
		for _, text := range m.welcome() {
			rows = append(rows, fit(text, width))
		}
		return window(rows, 0, m.listHeight(), width)
	}
	r, _ := m.world.room(m.open)
	rows := []string{heading.Render(fit(cleanLine(r.Title), width))}
	lines := m.lines
	end := len(lines) - m.scroll
	for _, l := range lines[max(0, end-height):end] {
		rows = append(rows, fit(l.text, width))
	}
	if len(lines) == 0 {
		rows = append(rows, faint.Render(fit(m.emptiness(), width)))
	}
	for len(rows) < height+1 {
		rows = append(rows, fit("", width))
	}
	return append(rows, faint.Render(m.rule()), m.drawComposer())
}

// welcome is what stands where no room is open.
func (m *Model) welcome() []string {
	if why := m.world.Unreached; why != "" && len(m.world.Rooms) == 0 {
		next := "It is tried again; c tries at once."
		if m.world.SignedOut != "" {
			next = "Another token is needed."
		}
		return []string{"Not connected: " + why + ".", next, "", "Marks of before are kept, and sent later."}
	}
	return []string{"Choose a room and open it with Enter. ? is help."}
}

// emptiness says why there are no messages.
func (m *Model) emptiness() string {
	s := &m.world.Messages
	switch {
	case s.Err != nil:
		return "Not loaded: " + explain(s.Err) + "."
	case !s.Loaded:
		return "Loading…"
	}
	return "Nothing was said here yet."
}

// rule is the line above the composer, which says what is below the messages.
func (m *Model) rule() string {
	text := ""
	switch {
	case m.scroll > 0 && m.scroll == m.mostScroll() && m.world.Messages.Earlier:
		text = " loading older ones… "
	case m.scroll > 0:
		text = fmt.Sprintf(" %d more ↓ ", m.scroll)
	case m.world.Messages.Err != nil && len(m.lines) > 0:
		text = " may not be the newest "
	}
	return ansi.Truncate("──"+text+strings.Repeat("─", m.paneWidth()), m.paneWidth(), "")
}

func (m *Model) drawComposer() string {
	switch {
	case m.sending:
		return fit(faint.Render("Sending… "+m.input.Value()), m.paneWidth())
	case !m.inRoom:
		return fit(faint.Render("> "+m.input.Value()), m.paneWidth())
	}
	return fit(m.input.View(), m.paneWidth())
}

// drawHelp takes two columns where one is too long.
func (m *Model) drawHelp() []string {
	width, two := m.width, len(help) > m.listHeight() && m.both()
	if two {
		width /= 2
	}
	rows := make([]string, 0, len(help))
	for _, h := range help {
		if h[1] == "" {
			rows = append(rows, heading.Render(fit(h[0], width)))
		} else {
			rows = append(rows, fit("  "+fit(h[0], min(18, width/2))+" "+h[1], width))
		}
	}
	if two {
		left := (len(rows) + 1) / 2
		for i := range rows[left:] {
			rows[i] += rows[left+i]
		}
		rows = rows[:left]
	}
	return window(rows, 0, m.listHeight(), width)
}

// drawStatus is the last line.
func (m *Model) drawStatus() string {
	hint := "? help  q quit"
	switch {
	case m.help:
		hint = "any key closes this"
	case m.inRoom:
		hint = "Esc list  F1 help"
	}
	room := max(0, m.width-ansi.StringWidth(hint)-1)
	if m.notice != "" {
		return alarm.Render(fit(m.notice, m.width))
	}
	return fit(m.Status(), room) + " " + faint.Render(hint)
}

// Status says how the connection is, what matters most first.
func (m *Model) Status() string {
	w := &m.world
	var parts []string
	switch {
	case w.SignedOut != "":
		parts = append(parts, "signed out: "+w.SignedOut)
	case w.Online:
		parts = append(parts, "online")
	default:
		parts = append(parts, "offline")
	}
	switch {
	case w.Waiting == 1 && w.Stuck:
		parts = append(parts, "1 mark waiting")
	case w.Waiting > 1 && w.Stuck:
		parts = append(parts, strconv.Itoa(w.Waiting)+" marks waiting")
	}
	if w.Member != "" {
		parts = append(parts, cleanLine(w.Member)+" in "+cleanLine(w.Workspace))
	}
	return strings.Join(parts, " · ")
}
