//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// patience bounds every wait for something on a screen.
const patience = 20 * time.Second

// terminal is a real one, of the system, with the program in it and somebody who looks at it.
type terminal struct {
	t       *testing.T
	cmd     *exec.Cmd
	master  *os.File // what a person has: keys go in, the screen comes out
	slave   *os.File // what the program has
	before  *term.State
	ended   chan struct{} // the program did
	readers sync.WaitGroup
	news    chan struct{}

	mu     sync.Mutex
	screen *vt.Emulator
	modes  map[ansi.Mode]bool // that were changed
}

// startChat starts the program in a terminal of a size.
func startChat(t *testing.T, width, height int, environ []string, args ...string) *terminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{
		t: t, master: master, slave: slave, ended: make(chan struct{}), news: make(chan struct{}, 1),
		screen: vt.NewEmulator(width, height), modes: map[ansi.Mode]bool{},
	}
	x.screen.SetCallbacks(vt.Callbacks{
		EnableMode:  func(mode ansi.Mode) { x.modes[mode] = true },
		DisableMode: func(mode ansi.Mode) { x.modes[mode] = false },
	})
	if x.before, err = term.GetState(slave.Fd()); err != nil {
		t.Fatal(err)
	}
	x.resize(width, height)
	x.take([]byte("$ tidemark chat\r\n"))
	x.cmd = exec.CommandContext(t.Context(), os.Args[0], append([]string{"chat"}, args...)...)
	x.cmd.Env = append([]string{
		asProgram + "=1", "TERM=xterm-256color", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"),
	}, environ...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x.readers.Go(x.look)
	x.readers.Go(func() { _, _ = io.Copy(master, x.screen) }) // what a terminal answers; ends with it
	go func() {
		_ = x.cmd.Wait() // the code is asked for where it matters
		close(x.ended)
	}()
	t.Cleanup(x.close)
	return x
}

// look takes in what the program draws until the terminal is gone.
func (x *terminal) look() {
	buffer := make([]byte, 1<<15)
	for {
		n, err := x.master.Read(buffer)
		x.take(buffer[:n])
		if err != nil {
			return
		}
	}
}

func (x *terminal) take(drawn []byte) {
	x.mu.Lock()
	_, _ = x.screen.Write(drawn)
	x.mu.Unlock()
	select {
	case x.news <- struct{}{}:
	default:
	}
}

func (x *terminal) close() {
	_ = x.cmd.Process.Kill() // it may have ended
	<-x.ended
	x.slave.Close()
	x.master.Close()
	x.screen.InputPipe().(io.Closer).Close() // Close may not be called beside Read
	x.readers.Wait()
	if x.t.Failed() {
		x.t.Logf("the screen was\n%s", x.text())
	}
}

// text is what is on the screen, without colours.
func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.String()
}

// keys presses keys, as a terminal sends them.
func (x *terminal) keys(text string) {
	x.t.Helper()
	if _, err := x.master.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) resize(width, height int) {
	x.t.Helper()
	x.mu.Lock()
	x.screen.Resize(width, height)
	x.mu.Unlock()
	err := pty.Setsize(x.master, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	if err != nil {
		x.t.Fatal(err)
	}
}

// await waits until the screen is so.
func (x *terminal) await(what string, so func(screen string) bool) {
	x.t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	for !so(x.text()) {
		select {
		case <-x.news:
		case <-end.C:
			x.t.Fatalf("never on the screen: %s; it is\n%s", what, x.text())
		}
	}
}

// shows waits for a text.
func (x *terminal) shows(text string) {
	x.t.Helper()
	x.await(text, func(screen string) bool { return strings.Contains(screen, text) })
}

// room waits until the list has a line that begins with a title and ends with marks.
func (x *terminal) room(title, marks string) {
	x.t.Helper()
	x.await(fmt.Sprintf("%s with %q", title, marks), func(screen string) bool {
		for line := range strings.Lines(screen) {
			line, _, _ = strings.Cut(line, "│")
			fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "›"))
			if len(fields) > 0 && fields[0] == title && strings.Join(fields[1:], " ") == marks {
				return true
			}
		}
		return false
	})
}

// leaves waits for the end of the program, which leaves the terminal as it was.
func (x *terminal) leaves(code int) {
	x.t.Helper()
	select {
	case <-x.ended:
	case <-time.After(patience):
		x.t.Fatal("the program does not end")
	}
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("code %d, want %d", got, code)
	}
	state, err := term.GetState(x.slave.Fd())
	if err != nil || !reflect.DeepEqual(state, x.before) {
		x.t.Errorf("the terminal's settings are others: %v", err)
	}
	x.await("the screen from before, with a cursor and without further modes", func(screen string) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for mode, on := range x.modes {
			usual := mode == ansi.ModeTextCursorEnable || mode == ansi.ModeAutoWrap
			if on != usual {
				return false
			}
		}
		return strings.HasPrefix(screen, "$ tidemark") && !x.screen.IsAltScreen() &&
			!x.screen.CursorHidden()
	})
}

// coloured tells whether anything on the screen has a colour.
func (x *terminal) coloured() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for row := range x.screen.Height() {
		for column := range x.screen.Width() {
			c := x.screen.CellAt(column, row)
			if c != nil && (c.Style.Fg != nil || c.Style.Bg != nil) {
				return true
			}
		}
	}
	return false
}

// wire is a connection to a server that can be cut.
type wire struct {
	listener net.Listener
	to       string
	work     sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: listener, to: strings.TrimPrefix(to, "http://")}
	w.work.Go(w.accept)
	t.Cleanup(func() {
		listener.Close()
		w.drop()
		w.work.Wait()
	})
	return w
}

func (w *wire) url() string { return "http://" + w.listener.Addr().String() }

func (w *wire) accept() {
	for {
		from, err := w.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			w.connect(from)
		}
	}
}

func (w *wire) connect(from net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		from.Close()
		return
	}
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		from.Close()
		return
	}
	w.conns = append(w.conns, from, to)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		w.work.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			pair[0].Close()
			pair[1].Close()
		})
	}
}

// drop cuts every connection; nobody gets another one until it is mended.
func (w *wire) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, c := range slices.Concat(w.conns) {
		c.Close()
	}
	w.conns = nil
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// office is a server with ada, ben, a channel and a session of ada's.
type office struct {
	t        *testing.T
	url, dir string
	ada, ben string // tokens
	said     int
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, dir: t.TempDir()}
	secret := filepath.Join(o.dir, "secret")
	if err := os.WriteFile(secret, []byte(testSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	o.url = serve(t, "--facts", "sqlite:"+filepath.Join(o.dir, "facts.db"), "--jwt-secret-file", secret).url
	admin := sign(t, secret, "--ws", "*", "--sub", "root", "--role", "admin")
	o.ada, o.ben = sign(t, secret, "--ws", "acme", "--sub", "ada"), sign(t, secret, "--ws", "acme", "--sub", "ben")
	api := o.url + "/api/v1/workspaces/acme"
	put(t, api, admin, `{"name":"Acme"}`)
	for _, member := range []string{"ada", "ben"} {
		put(t, api+"/members/"+member, admin, `{"kind":"human"}`)
	}
	for _, scope := range []string{"General", "Quiet"} {
		put(t, api+"/scopes/"+scope, admin, `{"type":"channel","name":"`+scope+`"}`)
		for _, member := range []string{"ada", "ben"} {
			put(t, api+"/scopes/"+scope+"/members/"+member, admin, `{}`)
		}
	}
	o.ask("POST", "/api/sessions", o.ada, `{"id":"parser","title":"Parser"}`)
	return o
}

func (o *office) ask(method, path, token, body string) string {
	o.t.Helper()
	code, answer := ask(o.t, method, o.url+path, token, body)
	if code >= 300 {
		o.t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

// says has ben say something in a channel.
func (o *office) says(scope, text, mention string) {
	o.t.Helper()
	o.said++
	mentions := ""
	if mention != "" {
		mentions = `"` + mention + `"`
	}
	o.ask("POST", "/api/v1/workspaces/acme/scopes/"+scope+"/messages", o.ben, fmt.Sprintf(
		`{"opId":"%d","mentions":[%s],"payload":{"text":%q}}`, o.said, mentions, text))
}

// read is a read state of ada's, or of another member, as the server says it.
func (o *office) read(scope, token string) string {
	o.t.Helper()
	return o.ask("GET", "/api/v1/workspaces/acme/scopes/"+scope+"/read-state", token, "")
}

// chat starts a chat of ada's with a file of a name.
func (o *office) chat(url, file string, environ ...string) *terminal {
	o.t.Helper()
	return startChat(o.t, 90, 20, environ, "--url", url, "--token", o.ada,
		"--store", filepath.Join(o.dir, file))
}
