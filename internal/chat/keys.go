package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// help is what the keys do.
var help = [][2]string{
	{"In the list", ""},
	{"↑ ↓ j k", "choose"},
	{"n", "choose the next unread room"},
	{"Enter", "open: looking at it reads it"},
	{"u", "mark as unread"},
	{"r", "mark as read"},
	{"c", "try again now to connect"},
	{"q", "quit"},
	{"In a room", ""},
	{"Enter", "send what was written"},
	{"↑ ↓ PgUp PgDn", "scroll"},
	{"Alt+U", "mark as unread and leave"},
	{"Esc", "back to the list"},
	{"Everywhere", ""},
	{"Tab", "between list and room"},
	{"F1, in the list ?", "this"},
	{"Ctrl+C", "quit"},
	{"Beside a room", ""},
	{"3 @1", "three unread, one of them for you"},
	{"• ●", "unread; marked as unread"},
	{"! …", "an agent asks; is at work"},
	{"?", "not known now"},
	{"↑", "waits for the server"},
}

// Press takes in a key.
func (m *Model) Press(key tea.KeyPressMsg) []Intent {
	m.notice = ""
	name := key.String()
	switch name {
	case "ctrl+c":
		return []Intent{Quit{}}
	case "f1":
		m.help = !m.help
		return nil
	}
	switch {
	case m.help:
		m.help = false
		return nil
	case m.inRoom:
		return m.pressInRoom(key, name)
	}
	return m.pressInList(name)
}

// Paste takes in a text from the clipboard: it is for the composer, and no keys.
func (m *Model) Paste(text tea.PasteMsg) {
	if m.inRoom && !m.help && !m.sending {
		m.input, _ = m.input.Update(text)
	}
}

func (m *Model) pressInList(name string) []Intent {
	m.chose = true
	r, chosen := m.world.room(m.selected)
	switch name {
	case "up", "k":
		m.choose(-1)
	case "down", "j":
		m.choose(1)
	case "pgup":
		m.choose(-m.listHeight())
	case "pgdown":
		m.choose(m.listHeight())
	case "home", "g":
		m.choose(-len(m.world.Rooms))
	case "end", "G":
		m.choose(len(m.world.Rooms))
	case "n":
		m.chooseUnread()
	case "tab":
		m.inRoom = m.open != (Key{})
	case "c":
		return []Intent{Retry{}}
	case "?":
		m.help = true
	case "q":
		return []Intent{Quit{}}
	}
	if !chosen {
		return nil
	}
	switch name {
	case "enter", "right", "l":
		return []Intent{Open{r}}
	case "u":
		return []Intent{Mark{r}}
	case "r":
		return []Intent{Read{r}}
	}
	return nil
}

func (m *Model) pressInRoom(key tea.KeyPressMsg, name string) []Intent {
	switch name {
	case "esc", "tab":
		m.inRoom = false
	case "alt+u":
		m.inRoom = false
		if r, ok := m.world.room(m.open); ok {
			return []Intent{Mark{r}}
		}
	case "up":
		return m.scrollBy(1)
	case "down":
		return m.scrollBy(-1)
	case "pgup":
		return m.scrollBy(m.paneHeight())
	case "pgdown":
		return m.scrollBy(-m.paneHeight())
	case "enter":
		text := strings.TrimSpace(m.input.Value())
		if text == "" || m.sending {
			return nil
		}
		m.sending = true
		return []Intent{Post{m.open, text}}
	default:
		if !m.sending {
			m.input, _ = m.input.Update(key)
		}
	}
	return nil
}

// choose moves the choice by some rooms.
func (m *Model) choose(by int) {
	if n := len(m.world.Rooms); n > 0 {
		i := min(max(m.world.index(m.selected)+by, 0), n-1)
		m.selected = m.world.Rooms[i].Key
	}
}

// chooseUnread moves the choice to the next room with a dot, around the end.
func (m *Model) chooseUnread() {
	i := m.world.index(m.selected) + 1
	around := slices.Concat(m.world.Rooms[i:], m.world.Rooms[:i])
	if j := slices.IndexFunc(around, func(r Room) bool { return r.Dot }); j >= 0 {
		m.selected = around[j].Key
	} else {
		m.notice = "Nothing is unread."
	}
}

// scrollBy moves by some lines towards older messages, and asks for more of them at the end.
func (m *Model) scrollBy(lines int) []Intent {
	m.scroll += lines
	m.clampScroll()
	if lines > 0 && m.scroll == m.mostScroll() && m.world.Messages.Earlier {
		return []Intent{Earlier{}}
	}
	return nil
}
