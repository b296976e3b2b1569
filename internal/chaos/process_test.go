package chaos

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// patience bounds every wait for a server process, but for a replay.
	patience = 60 * time.Second
	// replayPatience is for traces of any length, on any machine.
	replayPatience = time.Hour
)

// server is a server process as the judge sees it.
type server struct {
	base   string // of its addresses
	opened int    // statements that its start took
	cmd    *exec.Cmd
	orders io.WriteCloser
	lines  chan []byte // standard output; closed with it
	errors *tail
	dead   chan struct{} // closed once the process is gone
	once   sync.Once
}

// launch starts a process on a database and waits until it listens. With a blow it may be dead
// instead: then the server is nil.
func launch(t *testing.T, in store, kill *blow) *server {
	t.Helper()
	set, err := json.Marshal(settings{Facts: in.facts, Secret: hex.EncodeToString(secret), Kill: kill})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(set))
	s := begin(t, cmd)
	r, ok := s.await(t, patience)
	if !ok {
		if kill == nil {
			t.Fatalf("the server did not start:\n%s", s.errors)
		}
		return nil
	}
	s.base, s.opened = "http://"+r.Address, r.Opened
	return s
}

// begin starts a process that the test ends in any case.
func begin(t *testing.T, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{
		cmd: cmd, lines: make(chan []byte, 1), dead: make(chan struct{}),
		errors: &tail{serving: make(chan string, 1)},
	}
	cmd.Stderr = s.errors
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.orders, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.attend(out)
	t.Cleanup(s.kill)
	return s
}

// build compiles the program as it is shipped.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tidemark")
	cmd := exec.Command("go", "build", "-o", binary, "github.com/tidemark-im/tidemark/cmd/tidemark")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return binary
}

// launcher starts the shipped program. It says in its log where it serves, and takes no orders.
func launcher(binary string) func(*testing.T, store, *blow) *server {
	return func(t *testing.T, in store, _ *blow) *server {
		t.Helper()
		cmd := exec.Command(binary, "serve", "--facts", in.facts,
			"--listen", "127.0.0.1:0", "--admin-listen", "off",
			"--http-member-rate", "1000000", "--http-member-burst", "1000000",
			"--http-service-rate", "1000000", "--http-service-burst", "1000000")
		cmd.Env = append(os.Environ(), "TIDEMARK_JWT_SECRET="+string(secret))
		s := begin(t, cmd)
		select {
		case s.base = <-s.errors.serving:
		case <-s.dead:
			t.Fatalf("the program did not start:\n%s", s.errors)
		case <-time.After(patience):
			t.Fatalf("the program does not say where it serves:\n%s", s.errors)
		}
		return s
	}
}

// attend reads what the process prints and collects it when it ends.
func (s *server) attend(out io.Reader) {
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		s.lines <- bytes.Clone(scan.Bytes())
	}
	close(s.lines)
	_ = s.cmd.Wait() // how it ended is told by the killed process's state
	close(s.dead)
}

// await returns the process's next reply; false when it died instead.
func (s *server) await(t *testing.T, patience time.Duration) (reply, bool) {
	t.Helper()
	select {
	case line, ok := <-s.lines:
		if !ok {
			s.wait(t)
			return reply{}, false
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("the server printed %q: %v", line, err)
		}
		return r, true
	case <-time.After(patience):
		t.Fatalf("the server does not answer:\n%s", s.errors)
		return reply{}, false
	}
}

// tell gives an order and waits for its reply; false when the process died over it.
func (s *server) tell(t *testing.T, o order) (reply, bool) {
	t.Helper()
	if err := json.NewEncoder(s.orders).Encode(o); err != nil {
		t.Fatalf("order: %v\n%s", err, s.errors)
	}
	if o.Replay != "" {
		return s.await(t, replayPatience)
	}
	return s.await(t, patience)
}

func (s *server) arm(t *testing.T, b blow) {
	t.Helper()
	if _, ok := s.tell(t, order{Arm: &b}); !ok {
		t.Fatalf("the server died before the load\n%s", s.errors)
	}
}

// strike is kill -9. It does not wait.
func (s *server) strike() { _ = s.cmd.Process.Kill() } // an error means that it is dead

// kill ends the process in any case and waits for its end.
func (s *server) kill() {
	s.once.Do(func() {
		s.strike()
		_ = s.orders.Close()
		for range s.lines { // nobody asks any more
		}
		<-s.dead
	})
}

// wait waits until the process has died, and for how: anything but the planned death is a
// failure of the product.
func (s *server) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.dead:
	case <-time.After(patience):
		t.Fatalf("the server does not die:\n%s", s.errors)
	}
	_ = s.orders.Close()
	if state := s.cmd.ProcessState; !state.Exited() {
		return // by a signal
	}
	t.Fatalf("the server ended by itself: %v\n%s", s.cmd.ProcessState, s.errors)
}

// troubles are the lines of the log that no crash excuses.
func (s *server) troubles() []string {
	var out []string
	for line := range strings.Lines(s.errors.String()) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "DATA RACE") ||
			strings.Contains(line, "panic") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// tail keeps the end of what a process writes.
type tail struct {
	mu      sync.Mutex
	text    []byte
	serving chan string // takes the address that a program says it serves at
}

var servingAt = regexp.MustCompile(`msg=serving url=(\S+)`)

const tailBytes = 64 << 10

// Write implements io.Writer.
func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if m := servingAt.FindSubmatch(l.text); m != nil {
		select {
		case l.serving <- string(m[1]):
		default: // it is known
		}
	}
	if over := len(l.text) - tailBytes; over > 0 {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) == 0 {
		return "(its log is empty)"
	}
	return fmt.Sprintf("its log:\n%s", l.text)
}
