package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// press presses keys by their names.
func press(m *Model, names ...string) (intents []Intent) {
	keys := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "pgup": {Code: tea.KeyPgUp},
		"end": {Code: tea.KeyEnd}, "f1": {Code: tea.KeyF1},
		"alt+u": {Code: 'u', Mod: tea.ModAlt}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	}
	for _, name := range names {
		key, named := keys[name]
		if !named {
			key = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		intents = append(intents, m.Press(key)...)
	}
	return intents
}

// said are messages of ben, one a revision, from the first to the last.
func said(from, to int) (out []readsync.Message) {
	for i := from; i <= to; i++ {
		out = append(out, readsync.Message{
			ID: fmt.Sprint(i), Seq: readsync.Seq(i), ContentRevision: readsync.Revision(i), Author: "ben",
			Payload: json.RawMessage(fmt.Sprintf(`{"text":"message %d"}`, i)),
		})
	}
	return out
}

var general, quiet = Key{ID: "general"}, Key{ID: "quiet"}

// world has a session and two channels; the messages are those of general.
func world(messages ...readsync.Message) World {
	w := World{
		Rooms: []Room{
			{Key: Key{true, "parser"}, Title: "Parser", Group: groupSessions, Known: true},
			{Key: general, Title: "General", Group: groupChannels, Known: true, Dot: true, Number: 2},
			{Key: quiet, Title: "Quiet", Group: groupChannels, Known: true},
		},
		Complete: true, Online: true, Member: "ada", Workspace: "acme",
		Messages: client.Snapshot{Session: "general", Loaded: true, Messages: messages},
	}
	if n := len(messages); n > 0 {
		w.Messages.Through = messages[n-1].ContentRevision
	}
	return w
}

// inGeneral is a model with the channel open, which was read to a revision.
func inGeneral(read readsync.Revision, messages ...readsync.Message) *Model {
	m := NewModel()
	m.Resize(80, 20)
	w := world(messages...)
	m.Opened(&Room{Key: general, ReadThrough: read})
	m.Show(w)
	return &m
}

func screen(m *Model) string {
	text, _ := m.Draw()
	return ansi.Strip(text)
}

func TestMovingThroughTheListOpensNothing(t *testing.T) {
	m := NewModel()
	m.Resize(80, 20)
	m.Show(world())
	for _, step := range []struct {
		keys string
		at   string
	}{
		{"j", "general"}, {"j", "quiet"}, {"j", "quiet"}, {"k", "general"}, {"g", "parser"}, {"n", "general"},
		{"n", "general"}, {"end", "quiet"}, {"n", "general"}, {"tab", "general"},
	} {
		if got := press(&m, step.keys); len(got) != 0 || m.selected.ID != step.at || m.inRoom {
			t.Errorf("%s: at %v, %v", step.keys, m.selected, got)
		}
	}
	got := press(&m, "enter")
	if len(got) != 1 || got[0].(Open).Room.Number != 2 {
		t.Errorf("Enter: %v", got)
	}
	// Rooms above it may come and go: the choice stays with its room.
	w := world()
	w.Rooms = w.Rooms[1:]
	m.Show(w)
	if m.selected != general {
		t.Errorf("the choice went to %v", m.selected)
	}
	w.Rooms[0].Dot = false
	if press(&m, "n"); m.notice != "Nothing is unread." {
		t.Errorf("it says %q", m.notice)
	}
}

// Only all of it together is a look that reads.
func TestLooking(t *testing.T) {
	for name, change := range map[string]func(*Model){
		"":                      func(*Model) {},
		"in the list":           func(m *Model) { press(m, "esc") },
		"another window":        func(m *Model) { m.Focus(false) },
		"help is above it":      func(m *Model) { press(m, "f1") },
		"scrolled away":         func(m *Model) { press(m, "up") },
		"no room for it":        func(m *Model) { m.Resize(80, 3) },
		"not loaded":            func(m *Model) { m.world.Messages.Loaded = false },
		"messages of elsewhere": func(m *Model) { m.world.Messages.Session = "quiet" },
	} {
		m := inGeneral(0, said(1, 30)...)
		if change(m); m.Looking() != (name == "") {
			t.Errorf("%q: looking is %v", name, m.Looking())
		}
	}
	m := inGeneral(0, said(1, 30)...)
	m.Focus(false)
	m.Focus(true)
	press(m, "esc", "tab", "f1", "x", "up", "down")
	if !m.Looking() {
		t.Error("after all came back nobody looks")
	}
}

// Who passes by, or looks away in between, has read nothing.
func TestLooksWithABreakReadNothing(t *testing.T) {
	a := &app{model: *inGeneral(0, said(1, 3)...), window: new(client.Window)}
	if a.watch() == nil || a.watch() != nil {
		t.Error("a look is not timed once")
	}
	began := a.gaze.number
	a.model.Focus(false)
	if a.watch() != nil {
		t.Error("nobody looks, and it is timed")
	}
	a.model.Focus(true)
	if a.watch() == nil {
		t.Error("the second look is not timed")
	}
	if a.observe(looked{number: began}) != nil {
		t.Error("the first look is observed though it was broken")
	}
	if a.observe(looked{number: a.gaze.number, snapshot: a.model.world.Messages}) == nil {
		t.Error("the second look is not observed")
	}
	if a.watch() != nil {
		t.Error("what was observed is timed again")
	}
	a.model.Show(world(said(1, 4)...))
	if a.watch() == nil {
		t.Error("a further message is not timed")
	}
}

func TestSeparator(t *testing.T) {
	const rule = "─ new"
	m := inGeneral(2, said(1, 3)...)
	if lines := screen(m); !strings.Contains(lines, rule) || strings.Index(lines, rule) > strings.Index(lines, "message 3") {
		t.Errorf("no line above what is new:\n%s", lines)
	}
	m = inGeneral(3, said(1, 3)...)
	m.Show(world(said(1, 4)...))
	if strings.Contains(screen(m), rule) {
		t.Error("a message that came before somebody's eyes is below the line")
	}
	m.Focus(false)
	m.Show(world(said(1, 5)...))
	m.Focus(true)
	m.Show(world(said(1, 6)...))
	if lines := screen(m); strings.Index(lines, rule) < strings.Index(lines, "message 4") ||
		strings.Index(lines, rule) > strings.Index(lines, "message 5") {
		t.Errorf("the line is not above what came meanwhile:\n%s", lines)
	}
	own := said(4, 4)
	own[0].Author = "ada"
	if m = inGeneral(3, append(said(1, 3), own...)...); strings.Contains(screen(m), rule) {
		t.Error("one's own message is below the line")
	}
}

func TestMarks(t *testing.T) {
	m := NewModel()
	m.world.Stuck = true
	for _, c := range []struct {
		room Room
		want string
	}{
		{Room{Known: true}, ""},
		{Room{Known: true, Dot: true}, "•"},
		{Room{Known: true, Dot: true, Number: 3, Attention: 1}, "3 @1"},
		{Room{Known: true, Dot: true, Manual: true}, "●"},
		{Room{Known: true, Dot: true, Manual: true, Number: 2, Pending: 1}, "↑ 2 ●"},
		{Room{Dot: true, Number: 3, Attention: 1}, "?"},
		{Room{}, "?"}, // unknown is no zero
		{Room{Known: true, Thinking: true, Asks: true}, "… !"},
	} {
		if got := m.marks(&c.room); got != c.want {
			t.Errorf("%+v: %q, want %q", c.room, got, c.want)
		}
	}
}

func TestComposer(t *testing.T) {
	m := inGeneral(0)
	if got := press(m, "enter"); got != nil {
		t.Errorf("nothing was written, and it asks for %v", got)
	}
	press(m, "h", "i", "?", "q", "enter")
	m.Sent(Post{general, "hi?q"}, errors.New("no"))
	if m.input.Value() != "hi?q" || m.notice != "Not sent: no. Enter sends it again." {
		t.Errorf("after a failure it has %q and says %q", m.input.Value(), m.notice)
	}
	m.Opened(&Room{Key: quiet})
	if m.input.Value() != "" {
		t.Error("another room has the draft")
	}
	m.Opened(&Room{Key: general})
	m.Paste(tea.PasteMsg{Content: " and\nmore"})
	got := press(m, "enter", "enter", "x")
	if diff := cmp.Diff([]Intent{Post{general, "hi?q and more"}}, got); diff != "" {
		t.Error(diff)
	}
	m.Sent(Post{general, "hi?q and more"}, nil)
	if m.input.Value() != "" || m.sending {
		t.Errorf("after it was sent it has %q", m.input.Value())
	}
	got = press(m, "alt+u", "ctrl+c")
	if len(got) != 2 || got[0].(Mark).Room.Key != general || got[1] != (Quit{}) || m.inRoom {
		t.Errorf("it asks for %v", got)
	}
}

// A text that failed is sent again under its id; another text is another message.
func TestPostsKeepTheirID(t *testing.T) {
	a := &app{model: NewModel()}
	a.send(Post{general, "hi"})
	id := a.post.id
	a.take(sent{Post{general, "hi"}, context.DeadlineExceeded})
	if a.send(Post{general, "hi"}); a.post.id != id {
		t.Error("the same text has another id")
	}
	a.take(sent{Post{general, "hi"}, nil})
	if a.send(Post{general, "hi"}); a.post.id == id {
		t.Error("a new message has the id of the one before")
	}
	id = a.post.id
	if a.send(Post{quiet, "hi"}); a.post.id == id {
		t.Error("a message to another room has the same id")
	}
}

func TestScrolling(t *testing.T) {
	w := world(said(11, 60)...)
	w.Messages.Earlier = true
	m := inGeneral(60, w.Messages.Messages...)
	m.Show(w)
	press(m, "pgup")
	top := strings.Split(screen(m), "\n")[1]
	w.Messages.Messages = said(11, 63)
	m.Show(w)
	if got := strings.Split(screen(m), "\n")[1]; got != top {
		t.Errorf("the view moved from %q to %q", top, got)
	}
	var asked []Intent
	for range 10 {
		asked = append(asked, press(m, "pgup")...)
	}
	if len(asked) == 0 || asked[0] != (Earlier{}) {
		t.Errorf("at the top it asks for %v", asked)
	}
	w.Messages.Messages, w.Messages.Earlier = said(1, 63), false
	top = strings.Split(screen(m), "\n")[5]
	m.Show(w)
	if got := strings.Split(screen(m), "\n")[5]; got != top {
		t.Errorf("older messages moved the view from %q to %q", top, got)
	}
	for range 10 {
		press(m, "pgup")
	}
	if !strings.Contains(screen(m), "message 1 ") {
		t.Errorf("the oldest is not there:\n%s", screen(m))
	}
}

// Nothing that others write is a command to the terminal, or changes what stands around it.
func TestTextOfOthersIsText(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[31mb\x1b]0;title\x07c": "abc",
		"\x1b[2J\x1b[H\x9bx\u009b2J":  "2J",
		"a\r\nb\rc\x00d\x7f\te":       "a\nbcd e",
		"\u202eevil\u2066":            "evil",
		"naïve 日本 👩‍👩‍👧":              "naïve 日本 👩‍👩‍👧",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	evil, _ := json.Marshal("\x1b[2J\x1b]52;c;AAAA\x07\x1bP+q\x1b\\")
	messages := said(1, 1)
	messages[0].Payload, messages[0].Author = evil, "b\x1b[5men"
	m := inGeneral(0, messages...)
	m.world.Rooms[1].Title = "Gen\x1b[?1049leral\n"
	text, _ := m.Draw()
	for _, part := range strings.Split(text, "\x1b")[1:] {
		if body, style, ok := strings.Cut(part, "m"); !ok || strings.Trim(body, "[0123456789;") != "" {
			t.Errorf("the screen has the sequence %q %q", body, style)
		}
	}
}

func TestTextOf(t *testing.T) {
	for payload, want := range map[string]string{
		`"plain"`:                               "plain",
		`{"text":"with text","x":1}`:            "with text",
		`{"parts":[{"text":"a"},{"text":"b"}]}`: "a\nb",
		`{"other":1}`:                           `{"other":1}`,
		`[1]`:                                   `[1]`,
		``:                                      ``,
	} {
		if got := textOf(json.RawMessage(payload)); got != want {
			t.Errorf("%s is %q", payload, got)
		}
	}
}

// Whatever the size, no line is wider than the screen, and none is below it.
func TestScreensFit(t *testing.T) {
	wide := said(1, 9)
	wide[3].Payload = json.RawMessage(`"日本語の長い文章 👩‍👩‍👧 ` + strings.Repeat("x", 200) + `"`)
	for name, m := range map[string]*Model{
		"list": inGeneral(5, wide...), "room": inGeneral(5, wide...), "help": inGeneral(5, wide...),
		"notice": inGeneral(5, wide...), "sending": inGeneral(5, wide...), "empty": {drafts: map[Key]string{}},
	} {
		switch name {
		case "list":
			press(m, "esc")
		case "help":
			press(m, "f1")
		case "notice":
			m.Tell(strings.Repeat("very long ", 30))
		case "sending":
			press(m, "日", "本", "enter")
		}
		for width := 1; width < 130; width++ {
			for _, height := range []int{1, 5, 6, 7, 20, 40} {
				m.Resize(width, height)
				text, cursor := m.Draw()
				lines := strings.Split(text, "\n")
				if len(lines) > height || m.fits() && len(lines) != height {
					t.Fatalf("%s: %d lines on %d×%d", name, len(lines), width, height)
				}
				for _, line := range lines {
					if n := ansi.StringWidth(line); n > width {
						t.Fatalf("%s: a line of %d on %d×%d: %q", name, n, width, height, line)
					}
				}
				if cursor != nil && (cursor.X >= width || cursor.Y >= height) {
					t.Fatalf("%s: the cursor is at %v on %d×%d", name, cursor.Position, width, height)
				}
			}
		}
	}
}

func TestRooms(t *testing.T) {
	rooms := newRooms([]client.Session{{ID: "s", Unread: true, PendingInput: true}}, []client.Scope{
		{ID: "a", Type: "channel", Name: "A", Exact: true, Level: "all", Shown: true, ShownUnread: 2, Attention: 1},
		{ID: "b", Type: "channel", Name: "B", Level: "none", Attention: 4},
		{ID: "d", Type: "dm", Name: "D", Exact: true, Attention: 2, Shown: true, ShownUnread: 2},
		{ID: "e", Type: "dm", Name: "E", Exact: true, Activity: 1, Shown: true},
		{ID: "k", Type: "task"},
		{ID: "o", Type: "channel", Archived: true},
		{ID: "t", Type: "thread", Parent: "a", Name: "T", ManualUnread: true, ReadRevision: 9, FromRevision: 4},
	})
	var got []string
	for _, r := range rooms {
		got = append(got, fmt.Sprint(r.ID, r.Group, r.Nested, r.Dot, r.Number, r.Attention, r.Known, r.ReadThrough))
	}
	want := []string{
		fmt.Sprint("s", groupSessions, false, true, 0, 0, true, 0),
		fmt.Sprint("a", groupChannels, false, true, 2, 1, true, 0),
		fmt.Sprint("t", groupChannels, true, false, 0, 0, false, 3),
		fmt.Sprint("b", groupChannels, false, false, 0, 0, false, 0),
		fmt.Sprint("d", groupDirect, false, true, 2, 0, true, 0),
		fmt.Sprint("e", groupDirect, false, false, 0, 0, true, 0),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStatus(t *testing.T) {
	m := NewModel()
	for want, w := range map[string]World{
		"offline":                         {},
		"online · ada in acme":            {Online: true, Waiting: 1, Member: "ada", Workspace: "acme"},
		"online · 1 mark waiting":         {Online: true, Waiting: 1, Stuck: true},
		"offline · 2 marks waiting":       {Waiting: 2, Stuck: true},
		"signed out: no · 1 mark waiting": {SignedOut: "no", Waiting: 1, Stuck: true},
	} {
		m.world = w
		if got := m.Status(); got != want {
			t.Errorf("%+v: %q, want %q", w, got, want)
		}
	}
}

// A list that is longer than the screen says what is beyond its edges.
func TestLongLists(t *testing.T) {
	m := NewModel()
	w := World{Online: true, Complete: true}
	for i := range 30 {
		w.Rooms = append(w.Rooms, Room{
			Key: Key{true, fmt.Sprint(i)}, Title: fmt.Sprint("room ", i), Group: groupSessions,
			Dot: i >= 25 || i == 1, Known: true,
		})
	}
	m.Show(w)
	m.Resize(80, 11)
	edges := func() (first, last string) {
		rows := m.drawList()
		edge := func(s string) string { return strings.TrimSpace(ansi.Strip(s)) }
		return edge(rows[0]), edge(rows[len(rows)-1])
	}
	for _, at := range []struct {
		room        int
		first, last string
	}{
		{0, "Sessions", "↓ 22 more, 5 unread"},
		{15, "↑ 11 more, 1 unread", "↓ 11 more, 5 unread"},
		{29, "↑ 21 more, 1 unread", "room 29             •"},
	} {
		m.selected = w.Rooms[at.room].Key
		if first, last := edges(); first != at.first || last != at.last {
			t.Errorf("at %d: %q and %q", at.room, first, last)
		}
		if screen, _ := m.Draw(); !strings.Contains(ansi.Strip(screen), fmt.Sprint("room ", at.room, " ")) {
			t.Errorf("the choice %d is not on the screen", at.room)
		}
	}
}
