package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

const (
	// dwell is how long somebody has to look before what they look at is read: who passes by has
	// read nothing, and what is asked to be drawn is on the screen by then.
	dwell = 300 * time.Millisecond
	// postPatience is how long the composer waits for the server.
	postPatience = 10 * time.Second
)

// Options are what Run needs. All fields are required.
type Options struct {
	URL   string
	Token client.Token
	Store string // file of the client
	In    *os.File
	Out   *os.File
	// Environ is the environment, as os.Environ returns it: it says what the terminal can do.
	Environ []string
}

// Run shows the chat until somebody quits or ctx ends. In and Out are terminals; they are left as
// they were. It returns client.ErrInUse when the file is another program's now.
func Run(ctx context.Context, o Options) (err error) {
	a := &app{model: NewModel(), bell: make(chan struct{}, 1)}
	a.client, err = client.OpenWith(ctx, o.URL, o.Token, o.Store, client.Options{OnEvent: a.hear})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.client.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.ctx = ctx
	p := tea.NewProgram(a, tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Environ),
		tea.WithoutSignalHandler())
	stop := context.AfterFunc(ctx, p.Quit) // leaves the terminal as a key would
	defer stop()
	if _, err := p.Run(); err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	return nil
}

// app is the adapter. Its methods that bubbletea calls are called by one goroutine.
type app struct {
	ctx    context.Context
	client *client.Client
	model  Model
	window *client.Window // of the open room, nil for none
	gaze   gaze
	post   posting

	mu    sync.Mutex
	heard []client.Event // guarded by mu
	bell  chan struct{}
}

// gaze is an unbroken look at the open room.
type gaze struct {
	number  int // of looks; another one makes what was begun void
	looking bool
	timing  bool
	read    bool // something was observed in this window
	through readsync.Revision
}

// posting is the last attempt to post: what failed is repeated under its id.
type posting struct {
	Post
	id string
}

// The messages of commands.
type (
	changed struct{ events []client.Event }
	looked  struct {
		number   int
		snapshot client.Snapshot
	}
	done struct {
		what string
		err  error
	}
	sent struct {
		Post
		err error
	}
)

// hear is told by the client.
func (a *app) hear(e client.Event) {
	a.mu.Lock()
	a.heard = append(a.heard, e)
	a.mu.Unlock()
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// listen waits for the client to say something.
func (a *app) listen() tea.Msg {
	select {
	case <-a.ctx.Done():
		return nil
	case <-a.bell:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	events := a.heard
	a.heard = nil
	return changed{events}
}

// Init implements tea.Model.
func (a *app) Init() tea.Cmd {
	a.refresh()
	return a.listen
}

// View implements tea.Model.
func (a *app) View() tea.View {
	screen, cursor := a.model.Draw()
	v := tea.NewView(screen)
	v.AltScreen, v.ReportFocus, v.Cursor = true, true, cursor
	return v
}

// Update implements tea.Model.
func (a *app) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := a.take(msg)
	return a, tea.Batch(cmd, a.watch())
}

func (a *app) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		a.model.Resize(msg.Width, msg.Height)
	case tea.FocusMsg:
		a.model.Focus(true)
		a.client.Foreground()
	case tea.BlurMsg:
		a.model.Focus(false)
	case tea.PasteMsg:
		a.model.Paste(msg)
	case tea.KeyPressMsg:
		return a.carryOut(a.model.Press(msg))
	case changed:
		a.tell(msg.events)
		a.refresh()
		return a.listen
	case looked:
		return a.observe(msg)
	case done:
		if msg.err != nil {
			a.model.Failed(msg.what, msg.err)
		}
		a.refresh()
	case sent:
		a.model.Sent(msg.Post, msg.err)
		if msg.err == nil {
			a.post = posting{}
		}
	}
	return nil
}

// refresh shows what the client says now.
func (a *app) refresh() {
	w := newWorld(a.client)
	if a.window != nil {
		w.Messages = a.window.Snapshot()
	}
	a.model.Show(w)
}

// tell says what somebody has to know.
func (a *app) tell(events []client.Event) {
	for _, e := range events {
		switch e.Kind {
		case client.EventReplaced:
			a.model.Replaced(e.Session, e.By)
			a.gaze = gaze{number: a.gaze.number + 1} // its revisions mean something else
		case client.EventLost:
			r, ok := a.model.world.room(Key{e.Scope == "", e.Session + e.Scope})
			if ok && e.Loss.Reason != readsync.Superseded {
				a.model.Tell(fmt.Sprintf("What you marked in %s was not taken: %s.",
					cleanLine(r.Title), lossReason(e.Loss)))
			}
		}
	}
}

func lossReason(l *readsync.Loss) string {
	switch {
	case l.Reason == readsync.TooOld:
		return "it waited for too long"
	case l.Answer.Code == "version_conflict" || l.Reason == readsync.Dependent:
		return "another device was first"
	}
	return "the server refused it"
}

func (a *app) carryOut(intents []Intent) tea.Cmd {
	var cmds []tea.Cmd
	for _, i := range intents {
		cmds = append(cmds, a.do(i))
	}
	return tea.Batch(cmds...)
}

func (a *app) do(i Intent) tea.Cmd {
	switch i := i.(type) {
	case Open:
		return a.open(&i.Room)
	case Read:
		return a.change("Not marked", func() (string, error) {
			if i.Room.Session {
				return a.client.MarkRead(i.Room.session)
			}
			return a.client.MarkScopeRead(i.Room.scope)
		})
	case Mark:
		return a.change("Not marked", func() (string, error) {
			if i.Room.Session {
				return a.client.MarkUnread(i.Room.session)
			}
			return a.client.MarkScopeUnread(i.Room.scope)
		})
	case Post:
		return a.send(i)
	case Earlier:
		w := a.window
		return a.change("Not loaded", func() (string, error) { return "", w.LoadEarlier(a.ctx) })
	case Retry:
		a.client.Foreground()
	case Quit:
		return tea.Quit
	}
	return nil
}

// change does what waits for a file or the server.
func (a *app) change(what string, do func() (string, error)) tea.Cmd {
	return func() tea.Msg {
		_, err := do()
		return done{what, err}
	}
}

// open opens a window on a room, and lets go of the one before.
func (a *app) open(r *Room) tea.Cmd {
	var w *client.Window
	var err error
	if r.Session {
		w, err = a.client.OpenWindow(r.ID)
	} else {
		w, err = a.client.OpenScope(r.ID)
	}
	if err != nil {
		a.model.Failed("Not opened", err)
		return nil
	}
	before := a.window
	a.window, a.gaze = w, gaze{number: a.gaze.number + 1}
	a.model.Opened(r)
	a.refresh()
	if before == nil {
		return nil
	}
	return func() tea.Msg {
		before.Close()
		return nil
	}
}

// send posts a text, under the id that the same text had when its posting failed.
func (a *app) send(p Post) tea.Cmd {
	if a.post.Post != p {
		a.post = posting{p, uuid.NewString()}
	}
	id := a.post.id
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(a.ctx, postPatience)
		defer cancel()
		payload, err := json.Marshal(map[string]string{"text": p.Text})
		if err != nil {
			return sent{p, err}
		}
		m := client.NewMessage{ID: id, Payload: payload}
		if p.Room.Session {
			m.Kind = "prompt"
			return sent{p, a.client.Post(ctx, p.Room.ID, m)}
		}
		return sent{p, a.client.PostToScope(ctx, p.Room.ID, m)}
	}
}

// watch begins to time a look at what was not observed yet.
func (a *app) watch() tea.Cmd {
	g := &a.gaze
	if looking := a.window != nil && a.model.Looking(); !looking {
		if g.looking {
			g.number++
		}
		g.looking, g.timing = false, false
		return nil
	}
	g.looking = true
	snapshot := a.model.world.Messages
	if g.timing || g.read && snapshot.Through <= g.through {
		return nil
	}
	g.timing = true
	number := g.number
	return tea.Tick(dwell, func(time.Time) tea.Msg { return looked{number, snapshot} })
}

// observe reads what was looked at without a break.
func (a *app) observe(l looked) tea.Cmd {
	g := &a.gaze
	if l.number != g.number {
		return nil
	}
	g.timing, g.read, g.through = false, true, max(g.through, l.snapshot.Through)
	w := a.window
	return a.change("Not read", func() (string, error) {
		return w.Observe(client.Observation{
			Snapshot: l.snapshot, Visible: true, Foreground: true, Loaded: true, TailInView: true,
		})
	})
}
